"""The values that cells with the wrong kind of value count as: a text, nothing, an error.

A workbook computes with whatever is typed or pasted into its inputs. Its ledger (`pages.ledger`)
and `diff` report this in the same words; a replaced formula has no substitute value.
"""

from typing import Any, NamedTuple

import numpy as np

from cellformer.engine import Evaluator
from cellformer.engine.cells.access import ALONG, Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.values import CellError
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.scanning import Value
from cellformer.exporters.model.model_book import ModelBook

TEXT, EMPTY, ERROR = "a text", "empty", "an error"  # what stands where a number belongs
AS_0 = {
    TEXT: "a text: counts as 0",
    EMPTY: "empty: counts as 0",
    ERROR: "an error: results that use the cell count as 0",
}
DIGITS = 15  # of a number that is read as a text


class Counted(NamedTuple):
    """A cell's content, as reported; the value that it counts as, None for blank; what it is, if of
    the wrong kind; and whether nothing can be computed with it."""

    now: float | str
    value: Any
    why: str = ""
    lost: bool = False


def number(value: Value, block: Block) -> Counted:
    """The number that a cell counts as where a formula expects one. The tables' formulas handle
    anything else."""
    if isinstance(value, bool):
        said = "a truth value: counts as 1" if value else "a truth value: counts as 0"
        return Counted(str(value).upper(), float(value), said)
    if isinstance(value, int | float):
        return Counted(float(value), float(value))
    is_what = what(value)
    now = text(value).now
    if block.kind == "table":
        return Counted(now, value, is_what)
    return Counted(now, value if isinstance(value, CellError) else 0.0, AS_0[is_what])


def text(value: Value) -> Counted:
    """The text that a cell counts as where a formula expects one; a word that looks like a whole
    number may be one."""
    if isinstance(value, CellError):
        return Counted(value, value, ERROR)
    if isinstance(value, float):
        value = f"{value:.{DIGITS}G}"
    found = "" if value is None else str(value)
    return Counted(found, found)


def what(value: Value) -> str:
    """The description of a value of the wrong kind."""
    if isinstance(value, CellError):
        return ERROR
    return EMPTY if value is None or value == "" else TEXT


class AsCounted(Evaluator):
    """The values of a graph as its workbook shows them, whatever its inputs hold.

    Results of formulas that read an error in an input, or that overflow, count as 0. An error among
    numbers is NaN here, as in ops; so is an infinity, except where it may stand for a masked token.
    """

    def __init__(self, book: Book):
        super().__init__(book.graph)
        self._errors: dict[str, np.ndarray] = {}  # inputs as tables read them: an error is one
        harmless = isinstance(book, ModelBook) and not book.compact
        self._reads_inputs = {
            block.name
            for block in book.graph
            if harmless and any(_is_typed(operand) for _, _, operand in block.operands)
        }

    def put(self, name: str, i: int, j: int, value: Any) -> None:
        """Put a person's entry into a cell, even a text or an error in place of a number."""
        block = self.graph[name]
        if self.graph.readers[name] and isinstance(value, CellError):
            value = np.nan if self._in_ranges(name) else 0.0
            self._errors.setdefault(name, self._live[name].copy())[i, j] = np.nan
        if not isinstance(value, float):  # tables compute with anything
            self._live[name] = self._live[name].astype(object)
        self._put(block, i, j, value)

    def _in_ranges(self, name: str) -> bool:
        """Whether a formula reads a range of a block, so that its result counts as 0; if it reads
        single cells, those do."""
        shape = self.graph[name].shape
        return any(
            code in ALONG and n > 1
            for _, subscript in self.graph.readers[name]
            for code, n in zip(subscript, shape, strict=True)
        )

    def _refresh_cells(self, block: Block, cells: list[tuple[int, int]]) -> list[Rect]:
        errors = {name: array for name, array in self._errors.items() if name != block.name}
        as_ops_read = {name: self._live[name] for name in errors}
        self._live.update(errors)
        try:
            return super()._refresh_cells(block, cells)
        finally:
            self._live.update(as_ops_read)

    def _refresh(self, block: Block, rect: Rect) -> Rect | None:
        changed = super()._refresh(block, rect)
        if changed:
            cells = self._own(block.name)[changed.slices]
            harmless = block.name in self._reads_inputs
            errors = ~np.isfinite(cells) if harmless or block.mask.causal else np.isposinf(cells)
            cells[errors & block.mask.seen(changed)] = 0.0 if harmless else np.nan
        return changed


def _is_typed(block: Block) -> bool:
    """Whether a block holds input values."""
    return block.kind in ("weight", "setting") and not block.computed
