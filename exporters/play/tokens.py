"""The tokens of a sentence, one per column: text, id, origin."""

from collections.abc import Callable, Mapping

from engine.cells.expression import Expression, expression
from engine.cells.functions import IF, LEFT
from exporters.compose.book import Place
from exporters.compose.composer import Composer
from exporters.compose.dressing import between
from exporters.compose.lookups import entry
from exporters.model import layout
from exporters.model.layout import PLAY, PROMPT_COL
from exporters.model.model_book import ModelBook
from exporters.play import every_word
from exporters.play.sentence import answered, not_given

# the rows: a label, the block that stands there, if any, and its style
WORD_BY_WORD = (
    ("position", "", "label number"),
    ("pick instead", "prompt.pick", "token"),
    ("word", "", "word shown"),
    ("built with", "", "built"),
    ("from", "", "label"),
    ("random number", "random", "number typed"),
    ("token id", "tokens", "id"),
    ("built with id", "prompt.built", "built"),
)
OF_LAST_TOKEN = (
    ("position", "", "label number"),
    ("type an id instead", "prompt.pick", "dial"),
    ("token", "", "word shown"),
    ("token id", "tokens", "id"),
    ("given; -1: none", "prompt.id", "id"),
    ("built with", "prompt.built", "built"),
)
OF_ENCODER = (
    ("tokens", "n_prompt", "id"),
    ("position", "", "label number"),
    ("token", "", "word shown"),
    ("token id", "tokens", "id"),
    ("attention mask", "attention_mask", "id"),
)
NAMED = ("tokens", "attention_mask", "n_prompt")  # blocks whose names the workbook defines


def add(book: ModelBook, ws: Composer, top: int, prefix: str = "") -> None:
    """Add the rows that the workbook has."""
    sheet, whole = ws.sheet, book.plan.ranks_every_token
    if whole:
        sheet.put(top, 0, "Word by word", "heading")
        layout.place_vocabulary(book)
        top += 1
    lines = OF_LAST_TOKEN if book.plan.gives == "next word" else OF_ENCODER
    for row, (label, name, style) in enumerate(WORD_BY_WORD if whole else lines, top):
        block = book.graph.blocks.get(prefix + name) if name else None
        if block:
            typed = style == "id" and not block.computed
            asked = "dial" if block.kind == "table" else "input count"
            turned, named = name != "n_prompt", name in NAMED
            place = Place(block, PLAY, row, PROMPT_COL, turned, named)
            book.lay(place, asked if typed else style)
        if block or not name:
            sheet.put(row, PROMPT_COL - 1, label, "row label")
        if not name:
            _show(book, ws, row, label, style, prefix)
    if whole:
        _choices(book, ws, top)
    elif not book.live:
        _rules(book, ws, top, prefix)


def _show(book: ModelBook, ws: Composer, row: int, label: str, style: str, prefix: str) -> None:
    """Add a row that is not a block of the model: labels, or formulas."""
    n = len(book.passage.ids)
    cells = [CELLS[label](book, prefix, t) for t in range(n)]
    if isinstance(cells[0], Expression):
        ws.show(prefix + label, (row, PROMPT_COL), lambda _, t: cells[t], style, (1, n))
        return
    for col, cell in enumerate(cells, PROMPT_COL):
        assert not isinstance(cell, Expression)
        ws.sheet.put(row, col, cell, style)


def _choices(book: ModelBook, ws: Composer, row: int) -> None:
    """Add lists of words to pick from, and marks for words that were not typed, or are unknown."""
    for t in range(len(book.passage.ids)):
        ws.sheet.lists[book.places["prompt.pick"].cell(t, 0)] = layout.vocabulary_texts(book)
    ws.sheet.put(row, PROMPT_COL + len(book.passage.ids), "next", "label")
    origins, words = book.shown["play.from"].block.area, book.shown["play.word"].block.area
    ws.mark(origins, "differs", LEFT(origins[0, 0], 7) == "unknown")
    ws.mark(words, "generated", origins[0, 0] == not_given(book))


def _rules(book: ModelBook, ws: Composer, row: int, prefix: str) -> None:
    """Restrict what may be typed for an id, and mark the positions after the last token."""
    tokens, n_prompt = book.graph[f"{prefix}tokens"], book.graph.blocks.get("n_prompt")
    if not book.plan.answers:
        present = book.graph[f"{prefix}attention_mask"][0, 0]
        ws.mark(book.shown[f"play.{prefix}token"].block.area, "stale", present == 0)
        return
    typed = book.places[book.graph.blocks.get("prompt.pick", tokens).name]
    last = book.graph.looked_up(tokens)[1] - 1
    rule = between(0, last, f"An id from 0 to {last}.", whole=True)
    ws.sheet.rules |= {typed.cell(t, 0): rule for t in range(len(book.passage.ids))}
    if n_prompt:
        position = ws.sheet[row, PROMPT_COL].fixed_rows
        ws.mark(tokens.area, "built", position >= n_prompt[0, 0].fixed)


# --- the cells of a token -----------------------------------------------------------------


def _text(book: ModelBook, prefix: str, t: int) -> Expression | str:
    """The text of a token; "" if there is none."""
    if book.live:
        return layout.prompt_text(book, t)
    tokens, n_prompt = book.graph[f"{prefix}tokens"], book.graph.blocks.get(f"{prefix}n_prompt")
    if book.plan.answers:
        shown = entry(every_word.texts(book), tokens[t, 0] + 1, 1)
    elif f"{prefix}tokenizer.token" in book.graph.blocks:
        return book.graph[f"{prefix}tokenizer.token"][t, 0] & ""
    elif book.graph.looked_up(tokens)[0].name in book.pieces:  # its texts are on several sheets
        shown = "#" & tokens[t, 0]
    else:
        shown = layout.text_at(book, tokens[t, 0] + 1)
    return IF(expression(t) < n_prompt[0, 0], shown, "") if n_prompt else shown


def _word(book: ModelBook, _: str, t: int) -> Expression:
    """The word at a position: the typed one, or the chosen one in the continuation."""
    shown = layout.text_at(book, book.graph["tokens"][t, 0] + 1)
    word = IF(book.graph["prompt.found"][t, 0] < 0, "?", shown)
    return IF(_given(book, t), word, answered(book, shown)) if t else word


def _origin(book: ModelBook, _: str, t: int) -> Expression:
    """The origin of the word at a position: typed, picked, continued."""
    origin = IF(book.graph["prompt.pick"][t, 0] != "", "picked", "given")
    unknown = "unknown: " & book.graph["prompt.typed"][t, 0]
    origin = IF(book.graph["prompt.found"][t, 0] < 0, unknown, origin)
    return IF(_given(book, t), origin, not_given(book)) if t else origin


def _given(book: ModelBook, t: int) -> Expression:
    """Whether the word at a position was typed."""
    return expression(t) < book.graph["n_prompt"][0, 0]


CELLS: Mapping[str, Callable[[ModelBook, str, int], Expression | str | int]] = {
    "position": lambda _, __, t: t,
    "token": _text,
    "word": _word,
    "built with": lambda book, _, t: book.labels["vocab"][book.passage.ids[t]],
    "from": _origin,
}
