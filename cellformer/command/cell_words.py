"""Phrases for single cells: of a block, by its row and its column; of a page, by the texts around
the cell. `exporters.model.words` has the phrases for whole blocks."""

import re
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.texts import cut, readable
from cellformer.engine.studies.part_names import said
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.cells import SheetCell

OF_CELL = {  # by the leaf of a block's name; for decoders, whose words have a row each
    "tokens": "the id of token {i}",
    "W_E": "one of the numbers that represent {row}",
    "embed": "one of the numbers that represent {row}",
    "resid_pre": "one number of the residual stream of {row} before the layer",
    "resid_mid": "one number of the residual stream of {row} after attention",
    "resid_post": "one number of the residual stream of {row} after the layer",
    "resid_final": "one number of the final residual stream of {row}, which gives the logits",
    "q": "one number of the query of {row}; the query says what {row} looks for",
    "k": "one number of the key of {row}; queries find {row} by this key",
    "v": "one number of the value of {row}; tokens that attend to {row} receive this value",
    "scores": "the score that shows how well the query of {row} matches the key of {column}",
    "row_max": "the largest score of {row}",
    "exp": "EXP of a difference: the score of {row} for {column} minus the largest score of {row}",
    "row_sum": "the sum of all exponentials in the row of {row}",
    "pattern": "the attention weight that {row} gives to {column}",
    "z": "one number of the sum that {row} receives: all values times their attention weights",
    "result": "one number that the head adds to the residual stream of {row}",
    "attn_out": "one number that attention adds to the residual stream of {row}",
    "mlp_out": "one number that the MLP adds to the residual stream of {row}",
    "pre": "neuron {j} of the MLP at {row}, before the activation function",
    "post": "neuron {j} of the MLP at {row}",
    "logits": "the logit of {column} as the word after {row}",
    "probs": "the probability of {column} as the word after {row}",
}
UP, LEFT = 60, 12  # cells that are searched for a heading, and for the text beside a cell
FIRST = 4  # rows of a page before it are its title and its links
LONGEST = 40  # characters of a heading
TOKEN = re.compile(r"(\d+) (.+)", re.S)  # the label of a token: its position and its word


def of_block(graph: Graph, block: Block, i: int, j: int) -> str:
    """A phrase for a cell of a decoder's block; "" for a block without one."""
    phrase = OF_CELL.get(block.leaf)
    in_order = block.axes[0] == "token" or block.leaf == "W_E"
    if phrase is None or not in_order or block.passes or block.name.startswith("encoder"):
        return ""
    frame = graph.frame(block.name)
    told = phrase.format(i=i, j=j, row=_label(frame.rows[i]), column=_label(frame.columns[j]))
    where = block.name.rpartition(".")[0]
    return f"{told}, in {said(where)}" if where.startswith("blocks.") else told


def _label(label: Any) -> str:
    """A row or a column: a word in quotes, a token with its position."""
    found = TOKEN.fullmatch(label) if isinstance(label, str) else None
    if found:
        return f"‘{readable(found[2])}’ (token {found[1]})"
    return f"‘{readable(label)}’" if isinstance(label, str) else f"number {label}"


def of_page(book: Book, sheet: str, row: int, col: int) -> str:
    """A phrase for a cell of a page, by the heading above it and the text beside it; "" where
    there is neither."""
    top, heading = _heading(book, sheet, row, col)
    beside = (_shown(book, sheet, row, k) for k in range(col - 1, max(col - LEFT, -1), -1))
    text = next(filter(None, beside), "")
    if not heading:
        return f"the cell beside ‘{text}’ on the sheet {sheet}" if text else ""
    what = f"the {heading}" if heading.isalpha() and len(heading) > 2 else f"‘{heading}’"
    of = f" of ‘{text}’" if text else _numbered(book, sheet, row, col)
    title = _shown(book, sheet, top - 1, 0)
    return f"{what}{of}{f', in the table ‘{title}’' if title else ''}"


def _heading(book: Book, sheet: str, row: int, col: int) -> tuple[int, str]:
    """The nearest text above a cell that is no sentence, and its row; "": there is none."""
    for k in range(row - 1, max(row - UP, FIRST - 1), -1):
        if text := _text(book, sheet, k, col):
            return (k, text) if len(text) <= LONGEST else (k, "")
    return row, ""


def _numbered(book: Book, sheet: str, row: int, col: int) -> str:
    """The number of a row, by the first column of its table: ` of rank 1`."""
    heading = _heading(book, sheet, row, 0)[1] if col else ""
    number = SheetCell(book.clean, sheet, row, 0).value
    return f" of {heading} {number:g}" if heading and isinstance(number, int | float) else ""


def _text(book: Book, sheet: str, row: int, col: int) -> str:
    """The text that stands in a cell without a formula."""
    cell = SheetCell(book.clean, sheet, row, col)
    return _shown(book, sheet, row, col) if cell.formula is None else ""


def _shown(book: Book, sheet: str, row: int, col: int) -> str:
    """The text that a cell shows; "" for a number."""
    value = SheetCell(book.clean, sheet, row, col).value
    return cut(readable(value), 60) if isinstance(value, str) else ""
