"""A workbook's own sheets beside a model: typed cells and formulas that an edit can refer to.

A sheet's own formula may read any cell; a table, which has a name, reads only blocks, so that the
engine computes it after an edit. Tables have their places as soon as they are made.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.cells.access import Span
from engine.cells.block import Block
from engine.cells.expression import Expression
from exporters.compose.book import Place, Sheet
from exporters.model.model_book import ModelBook


def typed(
    book: ModelBook, sheet: Sheet, name: str, at: tuple[int, int], values: Any, style: str
) -> Block:
    """A table of typed numbers and texts [rows, columns], its first cell at `at`."""
    block = book.graph.input(name, np.array(values, dtype=object), ("", ""), "table")
    book.lay(Place(block, sheet.name, *at, turned=False), style)
    return block


def computed(
    book: ModelBook,
    sheet: Sheet,
    name: str,
    at: tuple[int, int],
    shape: Span,
    formula: Callable[[int, int], Expression],
    style: str,
) -> Block:
    """A table of formulas over blocks, `formula(i, j)`, its first cell at `at`."""
    block = book.graph.table(name, shape, formula)
    book.lay(Place(block, sheet.name, *at, turned=False), style)
    return block


def heads(sheet: Sheet, row: int, col: int, texts: Sequence[str], style: str = "block") -> None:
    """Put the heads of a table's columns."""
    for k, text in enumerate(texts):
        sheet.put(row, col + k, text, style)
