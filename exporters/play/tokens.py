"""The tokens of a sentence, one in each column: its text, its id, where it comes from."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from engine.cells.block import Block
from engine.cells.expression import Expression, expression
from engine.cells.functions import IF, LEFT
from exporters.compose.book import Place
from exporters.compose.composer import Composer
from exporters.compose.dressing import When
from exporters.compose.lookups import entry
from exporters.model import layout
from exporters.model.layout import PLAY, PROMPT_COL
from exporters.model.model_book import ModelBook
from exporters.play import every_word
from exporters.play.sentence import answered, not_given


class Line(NamedTuple):
    """A row of cells: its label, the block that stands there, if any, and its style."""

    label: str
    block: str = ""
    style: str = "id"


POSITION = Line("position", style="label number")
WORD, TOKEN = Line("word", style="word shown"), Line("token", style="word shown")
BUILT, FROM = Line("built with", style="built"), Line("from", style="label")
WORD_BY_WORD = (
    POSITION,
    Line("pick instead", "prompt.pick", "token"),
    WORD,
    BUILT,
    FROM,
    Line("random number", "random", "number typed"),
    Line("token id", "tokens"),
    Line("built with id", "prompt.built", "built"),
)
OF_LAST_TOKEN = (
    POSITION,
    Line("type an id instead", "prompt.pick", "dial"),
    TOKEN,
    Line("token id", "tokens"),
    Line("given; -1: none", "prompt.id"),
    Line("built with", "prompt.built", "built"),
)
OF_ENCODER = (
    Line("tokens", "n_prompt"),
    POSITION,
    TOKEN,
    Line("token id", "tokens"),
    Line("attention mask", "attention_mask"),
)


NAMED = ("tokens", "attention_mask", "n_prompt")  # blocks whose names the workbook defines


def lines(book: ModelBook) -> tuple[Line, ...]:
    """The rows that a workbook has."""
    if book.plan.ranks_every_token:
        return WORD_BY_WORD
    return OF_LAST_TOKEN if book.plan.gives == "next word" else OF_ENCODER


def place(book: ModelBook, top: int, prefix: str = "") -> None:
    """Say where the blocks stand, and the tokens' texts."""
    for row, line in enumerate(lines(book), top):
        if line in (WORD, TOKEN):
            book.token_rows[book.graph[f"{prefix}tokens"].axes[0]] = row
        elif line.block in NAMED and (block := _block(book, line, prefix)):
            turned = line.block != "n_prompt"
            book.places[block.name] = Place(block, PLAY, row, PROMPT_COL, turned)


def _block(book: ModelBook, line: Line, prefix: str) -> Block | None:
    """The block of a line, where the workbook has it."""
    return book.graph.blocks.get(prefix + line.block) if line.block else None


def add(book: ModelBook, ws: Composer, top: int, prefix: str = "") -> None:
    """The lines, those that the workbook has."""
    rows = {}
    for row, line in enumerate(lines(book), top):
        block = _block(book, line, prefix)
        if line.block and not block:
            continue
        rows[line] = row
        ws.sheet.put(row, PROMPT_COL - 1, line.label, "row label")
        if not block:
            _show(book, ws, row, line, prefix)
            continue
        place = Place(block, PLAY, row, PROMPT_COL, turned=True, named=False)
        place, typed = book.places.get(block.name, place), block.expression is None
        if typed and block.kind != "table":
            ws.sheet.regions.append((place, "input count"))
        else:
            book.lay(place, "dial" if typed and line.style == "id" else line.style)
    if book.plan.ranks_every_token:
        _choices(book, ws, rows)
    else:
        _rules(book, ws, rows, prefix)


def add_word_by_word(book: ModelBook, ws: Composer, top: int) -> None:
    """The lines of a sentence that is followed word by word, under their heading."""
    ws.sheet.put(top, 0, "Word by word", "heading")
    add(book, ws, top + 1)


def _show(book: ModelBook, ws: Composer, row: int, line: Line, prefix: str) -> None:
    """A line that is no block of the model: labels, or formulas."""
    cells = [CELLS[line](book, prefix, t) for t in range(len(book.passage.ids))]
    if isinstance(cells[0], Expression):
        at, one = (row, PROMPT_COL), (1, len(cells))
        ws.show(prefix + line.label, at, lambda _, t: cells[t], line.style, one)
        return
    for col, cell in enumerate(cells, PROMPT_COL):
        assert not isinstance(cell, Expression)
        ws.sheet.put(row, col, cell, line.style)


def _choices(book: ModelBook, ws: Composer, rows: Mapping[Line, int]) -> None:
    """The list that a word can be picked from; which words were not typed, or are unknown."""
    layout.place_vocabulary(book)
    sheet, n = ws.sheet, len(book.passage.ids)
    for t in range(n):
        sheet.lists[book.places["prompt.pick"].cell(t, 0)] = layout.vocabulary_texts(book)
    sheet.put(rows[POSITION], PROMPT_COL + n, "next", "label")
    origins, words = book.shown["play.from"].block.area, book.shown["play.word"].block.area
    ws.mark(origins, "differs", LEFT(origins[0, 0], 7) == "unknown")
    ws.mark(words, "generated", origins[0, 0] == not_given(book))


def _rules(book: ModelBook, ws: Composer, rows: Mapping[Line, int], prefix: str) -> None:
    """What may be typed for an id; which tokens are behind the last one."""
    sheet, n, tokens = ws.sheet, len(book.passage.ids), book.graph[f"{prefix}tokens"]
    if f"{prefix}attention_mask" in book.graph.blocks:
        texts = sheet[rows[TOKEN], PROMPT_COL : PROMPT_COL + n]
        sheet.dress(texts, When("stale", book.graph[f"{prefix}attention_mask"][0, 0] == 0))
    elif book.plan.answers:
        typed = book.graph.blocks.get("prompt.pick", tokens)
        last = book.graph.looked_up(tokens)[1] - 1
        rule = {"validate": "integer", "criteria": "between", "minimum": 0, "maximum": last}
        for t in range(n):
            cell = book.places[typed.name].cell(t, 0)
            sheet.rules[cell] = rule | {"error_message": f"An id from 0 to {last}."}
        if "n_prompt" in book.graph.blocks:
            position = sheet[rows[POSITION], PROMPT_COL].fixed_rows
            ws.mark(tokens.area, "built", position >= book.graph["n_prompt"][0, 0].fixed)


# --- the cells of a token -----------------------------------------------------------------


def _text(book: ModelBook, prefix: str, t: int) -> Expression | str:
    """The text of a token; nothing where there is none."""
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
    """The word at a position: what was typed, or what is chosen where the sentence goes on."""
    shown = layout.text_at(book, book.graph["tokens"][t, 0] + 1)
    word = IF(book.graph["prompt.found"][t, 0] < 0, "?", shown)
    return IF(_given(book, t), word, answered(book, shown)) if t else word


def _origin(book: ModelBook, _: str, t: int) -> Expression:
    """Where the word at a position comes from."""
    origin = IF(book.graph["prompt.pick"][t, 0] != "", "picked", "given")
    unknown = "unknown: " & book.graph["prompt.typed"][t, 0]
    origin = IF(book.graph["prompt.found"][t, 0] < 0, unknown, origin)
    return IF(_given(book, t), origin, not_given(book)) if t else origin


def _given(book: ModelBook, t: int) -> Expression:
    """Whether the word at a position was typed."""
    return expression(t) < book.graph["n_prompt"][0, 0]


def _built(book: ModelBook, _: str, t: int) -> str:
    """The word that the workbook was built with."""
    return book.labels["vocab"][book.passage.ids[t]]


CELLS: Mapping[Line, Callable[[ModelBook, str, int], Expression | str | int]] = {
    POSITION: lambda _, __, t: t,
    TOKEN: _text,
    WORD: _word,
    BUILT: _built,
    FROM: _origin,
}
