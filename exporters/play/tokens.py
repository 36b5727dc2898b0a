"""The tokens of a sentence, one per column: text, id, origin."""

from collections.abc import Callable, Mapping

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import IF, MATCH, MAX
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.models import prompt_status as status
from cellformer.exporters.compose.book import Place
from cellformer.exporters.compose.composer import Composer, slug
from cellformer.exporters.compose.dressing import between
from cellformer.exporters.compose.lookups import entry
from cellformer.exporters.model import layout, word_columns
from cellformer.exporters.model.block_sheets import PLAY, PROMPT_COL
from cellformer.exporters.model.model_book import ModelBook

Lines = tuple[tuple[str, str, str], ...]  # a label, the block that is there, if any, and a style
WORD_BY_WORD: Lines = (
    ("position", "", "label number"),
    ("pick instead", "prompt.pick", "token"),
    ("word", "", "word shown"),
    ("built with", "", "built"),
    ("from", "", "label"),
    ("random number", "random", "number typed"),
    ("token id", "tokens", "id"),
    ("built with id", "prompt.built", "built"),
)
OF_LAST_TOKEN: Lines = (
    ("position", "", "label number"),
    ("type an id instead", "prompt.pick", "dial"),
    ("token", "", "word shown"),
    ("token id", "tokens", "id"),
    ("given; -1: none", "prompt.id", "id"),
    ("built with", "prompt.built", "built"),
)
OF_ENCODER: Lines = (
    ("tokens", "n_prompt", "id"),
    ("position", "", "label number"),
    ("token", "", "word shown"),
    ("token id", "tokens", "id"),
    ("attention mask", "attention_mask", "id"),
)
OF_SOURCE: Lines = (
    ("source tokens", "n_prompt", "id"),
    ("position", "", "label number"),
    ("token", "", "word shown"),
    ("token id", "tokens", "id"),
    ("built with id", "built", "built"),
    ("attention mask", "attention_mask", "id"),
)
OF_CLASSIFIED: Lines = (*OF_ENCODER, ("class", "", "word"))
LINES = {"next word": OF_LAST_TOKEN, "token class": OF_CLASSIFIED}
SO_FAR = (
    "The answer so far. Type the id of the next token. The sheet then ranks the tokens that follow"
)
NAMED = ("tokens", "attention_mask", "n_prompt")  # blocks whose names the workbook defines


def add(book: ModelBook, ws: Composer, top: int, prefix: str = "") -> None:
    """Add the rows that the workbook has."""
    sheet, source = ws.sheet, prefix == f"{ENCODER}."
    n = book.passage.n_source if source else len(book.passage.ids)
    lines = OF_SOURCE if source else LINES.get(book.plan.gives, OF_ENCODER)
    if book.plan.ranks_every_token and not source:
        sheet.put(top, 0, book.of_words("Word by word", "Letter by letter"), "heading")
        layout.place_vocabulary(book)
        top, lines = top + 1, WORD_BY_WORD
    elif book.plan.sources and book.plan.answers and not source:
        sheet.put(top - 1, 0, SO_FAR, "heading")
    for row, (label, name, style) in enumerate(lines, top):
        if name and prefix + name not in book.graph.blocks:
            continue
        sheet.put(row, PROMPT_COL - 1, label, "row label")
        if not name:
            table = ws.table(prefix + slug(label), (row, PROMPT_COL), (1, n))
            for t in range(n):
                cell = CELLS[label](book, prefix, t)
                if isinstance(cell, Expression):
                    table.put(0, t, cell, style)
                else:
                    sheet.put(row, PROMPT_COL + t, cell, style)
            continue
        block, turned = book.graph[prefix + name], name != "n_prompt"
        typed = style == "id" and not block.computed
        book.lay(
            Place(block, PLAY, row, PROMPT_COL, turned, name in NAMED), "dial" if typed else style
        )
    if lines == WORD_BY_WORD:
        _choices(book, ws, top)
    elif not book.live:
        _rules(book, ws, top, prefix)


def _choices(book: ModelBook, ws: Composer, row: int) -> None:
    """Add lists of words to pick from, and marks for words that were not typed, or are unknown."""
    picks = book.places["prompt.pick"].rect(book.graph["prompt.pick"].whole)
    ws.sheet.lists |= dict.fromkeys(picks.cells(), layout.vocabulary_texts(book))
    ws.sheet.put(row, PROMPT_COL + len(book.passage.ids), "next", "label")
    origins, words = book.shown["play.from"].block.area, book.shown["play.word"].block.area
    ws.mark(origins, "differs", status.is_unknown(origins[0, 0]))
    ws.mark(words, "generated", origins[0, 0] == status.not_given(book.plan.continues))


def _rules(book: ModelBook, ws: Composer, row: int, prefix: str) -> None:
    """Restrict the entries for ids, and mark the positions after the last token."""
    tokens, n_prompt = book.graph[f"{prefix}tokens"], book.graph.blocks.get("n_prompt")
    if prefix or not book.plan.answers:
        present = book.graph[f"{prefix}attention_mask"][0, 0]
        ws.mark(book.shown[f"play.{prefix}token"].block.area, "stale", present == 0)
        if prefix == f"{ENCODER}." and not tokens.computed:
            _rules_of_source(book, ws, tokens)
        return
    typed = book.places[book.graph.blocks.get("prompt.pick", tokens).name]
    last = book.graph.looked_up(tokens)[1] - 1
    rule = between(0, last, worded("An id from 0 to {last}.", last=last), whole=True)
    ws.sheet.rules |= {typed.cell(t, 0): rule for t in range(len(book.passage.ids))}
    if n_prompt:
        ws.mark(tokens.area, "built", ws.sheet[row, PROMPT_COL].fixed_rows >= n_prompt[0, 0].fixed)


def _rules_of_source(book: ModelBook, ws: Composer, tokens: Block) -> None:
    """Restrict the entries for a source sentence: its ids, and their number."""
    n, last = tokens.shape[0], book.graph.looked_up(tokens)[1] - 1
    rule = between(0, last, worded("An id from 0 to {last}.", last=last), whole=True)
    ws.sheet.rules |= {book.places[tokens.name].cell(t, 0): rule for t in range(n)}
    count = between(1, n, worded("A number of tokens from 1 to {n}.", n=n), whole=True)
    ws.sheet.rules[book.places[f"{ENCODER}.n_prompt"].cell(0, 0)] = count


# --- the cells of a token -----------------------------------------------------------------


def _text(book: ModelBook, prefix: str, t: int) -> Expression | str:
    """The text of a token; "" if there is none."""
    if book.live:
        return layout.prompt_text(book, t)
    tokens, n_prompt = book.graph[f"{prefix}tokens"], book.graph.blocks.get(f"{prefix}n_prompt")
    tokenized = f"{prefix}tokenizer.token"
    if tokenized in book.graph.blocks and (prefix or not book.plan.answers):
        return book.graph[tokenized][t, 0] & ""
    if book.plan.answers:
        shown = entry(word_columns.texts(book), tokens[t, 0] + 1, 1)
    elif book.graph.looked_up(tokens)[0].name in book.pieces:  # its texts are on several sheets
        shown = "#" & tokens[t, 0]
    else:
        shown = layout.text_at(book, tokens[t, 0] + 1)
    return IF(expression(t) < n_prompt[0, 0], shown, "") if n_prompt else shown


def _class(book: ModelBook, prefix: str, t: int) -> Expression:
    """The likeliest label of a token; "" if there is none."""
    scores, labels = (
        book.graph["class_logits"][t, :],
        layout.labels_of(book, "logits", 1, book.graph["logits"].shape[1]),
    )
    found = entry(labels.as_range, MATCH(MAX(scores), scores, 0), 1)
    return IF(book.graph["attention_mask"][t, 0] > 0, found, "")


CELLS: Mapping[str, Callable[[ModelBook, str, int], Expression | str | int]] = {
    "position": lambda _, __, t: t,
    "class": _class,
    "token": _text,
    "word": lambda book, _, t: status.word(
        book.graph, t, layout.text_at(book, book.graph["tokens"][t, 0] + 1)
    ),
    "built with": lambda book, _, t: book.labels["vocab"][book.passage.ids[t]],
    "from": lambda book, _, t: status.origin(book.graph, t, book.plan.continues),
}
