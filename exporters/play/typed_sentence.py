"""A sentence that is typed for an encoder: its cell, its tokens, and which places are filled.

Two of them may stand on Play, the second one's blocks with a prefix.
"""

from engine.cells.expression import Expression, expression
from engine.cells.functions import IF
from exporters.compose.book import Place, Sheet
from exporters.compose.dressing import When
from exporters.model import layout
from exporters.model.layout import PLAY, PROMPT_COL
from exporters.model.model_book import ModelBook

LABEL_COL = PROMPT_COL - 1
# where things stand, seen from the row of the tokens' texts
HEADING, SENTENCE, MESSAGE, COUNT, NUMBER, ID, MASK = -5, -4, -3, -2, -1, 1, 2
WIDE = 12  # columns of the yellow cell


def place(book: ModelBook, prefix: str, row: int) -> None:
    """Say where a sentence's blocks stand, before other pages refer to them."""
    for leaf, at in (("tokens", ID), ("attention_mask", MASK)):
        block = book.graph[prefix + leaf]
        book.places[block.name] = Place(block, PLAY, row + at, PROMPT_COL, turned=True)
    for leaf, at in (("n_prompt", COUNT), ("sentence", SENTENCE)):
        if block_of := book.graph.blocks.get(prefix + leaf):
            book.places[block_of.name] = Place(block_of, PLAY, row + at, PROMPT_COL, turned=False)


def add(book: ModelBook, sheet: Sheet, prefix: str, row: int, heading: str) -> None:
    """The yellow cell and what became of it: tokens, ids, attention mask."""
    typed, n = prefix + "sentence" in book.graph.blocks, len(book.passage.ids)
    sheet.put(row + HEADING, 0, heading, "heading")
    if typed:
        sheet.put(row + SENTENCE, LABEL_COL, "sentence", "row label")
        book.lay(book.places[prefix + "sentence"], "sentence")
        cells = sheet[row + SENTENCE, PROMPT_COL : PROMPT_COL + max(8, min(n, WIDE))]
        sheet.merged.append(cells.rect)
        told = book.graph[f"{prefix}tokenizer.message"][0, 0]
        sheet.formula(row + MESSAGE, PROMPT_COL, told & f"; {n} fit", "note")
    else:
        text = "its tokenizer has no formulas here, or no text has these ids: type token ids below"
        sheet.put(row + MESSAGE, PROMPT_COL, text, "note")
    for at, text in (
        (COUNT, "tokens"),
        (NUMBER, "position"),
        (0, "token"),
        (ID, "token id"),
        (MASK, "attention mask"),
    ):
        sheet.put(row + at, LABEL_COL, text, "row label")
    for leaf in ("n_prompt", "tokens", "attention_mask"):
        block = book.places[prefix + leaf]
        by_formula = block.block.expression is not None
        book.lay(block, "id" if by_formula else "dial")
    for t in range(n):
        sheet.put(row + NUMBER, PROMPT_COL + t, t, "label number")
        sheet.formula(row, PROMPT_COL + t, _text(book, prefix, t), "word shown")
    texts = sheet[row, PROMPT_COL : PROMPT_COL + n]
    sheet.dress(texts, When("stale", sheet[row + MASK, PROMPT_COL] == 0))


def _text(book: ModelBook, prefix: str, t: int) -> Expression:
    """The text of a token; nothing where there is none."""
    tokens, n_prompt = book.graph[f"{prefix}tokens"], book.graph[f"{prefix}n_prompt"][0, 0]
    if f"{prefix}tokenizer.token" in book.graph.blocks:
        return book.graph[f"{prefix}tokenizer.token"][t, 0] & ""
    table, _ = book.graph.looked_up(tokens)
    ident: Expression = tokens[t, 0]
    if table.name in book.pieces:  # its texts are on several sheets
        return IF(expression(t) < n_prompt, "#" & ident, "")
    return IF(expression(t) < n_prompt, layout.text_at(book, ident + 1), "")
