"""The values of tables: blocks in which each cell has an expression of its own.

A cell is computed on demand, so a table's cells may read each other in any order, and a table may
read a later one; a cell that depends on itself is an error. The rows of a table whose expression
takes runs of columns are computed at once.

Long chains of dependent cells do not recurse deeply: from DEEPEST on, a needed cell is put on a
list, and everything that waits for it is started again when it is computed.
"""

from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, TypeGuard

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.evaluation import evaluate
from cellformer.engine.cells.expression import Area, Call, Expression, Operation
from cellformer.engine.cells.stored import Stored
from cellformer.engine.cells.values import (
    CellError,
    FormulaError,
    as_shown,
    no_error,
    number,
    refuse,
)


class _Pending:
    """Marks a cell that is not yet computed, or is being computed."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


DEEPEST = 20  # areas under way that wait for each other; each takes a dozen frames of Python
MOST_KNOWN = 300  # changes for which the cells of a table that read them are kept
PENDING, UNDER_WAY = _Pending("pending"), _Pending("under way")


class _DeeperError(Exception):
    """An area, block and rectangle, whose cells must be computed before its readers go on."""


def pending(block: Block) -> np.ndarray:
    """The values of a table before any is computed: object [rows, columns]."""
    values = np.empty(block.shape, dtype=object)
    values[:] = PENDING
    return values


class Reader:
    """Gives expressions the values of the areas that they read, from blocks' values."""

    def __init__(self, values: MutableMapping[str, Any]):
        self.values = values
        self._depth = 0

    def __call__(self, area: Area) -> Any:
        """The value of one cell, or an array [rows, columns]. Raises FormulaError for an error."""
        block = area.grid
        assert isinstance(block, Block)
        rect, array = area.rect, self.values[block.name]
        top, bottom, left, right = rect
        if bottom - top == right - left == 1:
            value = array.item(top, left)
            if type(value) is float and value == value:
                return value
            if isinstance(value, _Pending):
                self._settle(block, rect)
                value = array.item(top, left)
            refuse(value != value, "#NUM!")  # an error among numbers, as ops have it
            return value.item() if isinstance(value, np.generic) else no_error(value)
        if block.expression is not None and array.dtype.hasobject:
            self._settle(block, rect)
            if rect == block.whole and (numbers := settled(array)) is not array:
                array = self.values[block.name] = numbers
        if isinstance(array, Stored):
            return array.part(*rect.slices)  # not read before a function needs its numbers
        return settled(array[rect.slices]) if block.runs else array[rect.slices]

    def _settle(self, block: Block, rect: Rect) -> None:
        """Compute the cells of an area, and all that they depend on."""
        if _Pending not in map(type, self.values[block.name][rect.slices].flat):
            return
        if self._depth == DEEPEST:
            raise _DeeperError(block, rect)
        self._depth += 1
        try:
            self._compute_area(block, rect)
        except _DeeperError as deeper:
            if self._depth > 1:
                raise
            self._settle_all([(block, rect), deeper.args])
        finally:
            self._depth -= 1

    def _settle_all(self, waiting: list[tuple[Any, ...]]) -> None:
        """Compute areas, last one first, and before each the ones that turn out to be needed."""
        while waiting:
            try:
                self._compute_area(*waiting[-1])
                waiting.pop()
            except _DeeperError as deeper:
                if deeper.args in waiting:
                    block, (top, _, left, _) = deeper.args
                    raise ValueError(f"{block.name}[{top},{left}] depends on itself") from None
                waiting.append(deeper.args)

    def _compute_area(self, block: Block, rect: Rect) -> None:
        array = self.values[block.name]
        if block.runs:
            for i in range(rect.top, rect.bottom):
                self._run(block, i, max(rect.left, 1), rect.right, array)
        for i, j in rect.cells():
            value = array.item(i, j)
            if type(value) is _Pending:
                if value is UNDER_WAY:
                    raise ValueError(f"{block.name}[{i},{j}] depends on itself")
                array[i, j] = UNDER_WAY
                try:
                    array[i, j] = self.compute(block, i, j)
                except _DeeperError:
                    array[i, j] = PENDING
                    raise

    def _run(self, block: Block, i: int, left: int, right: int, array: np.ndarray) -> None:
        """Compute a row's cells from `left` on at once, unless one of them has an error.

        A row in which each cell adds to the one before, as `before` does, is a running sum. Its
        first column is computed by itself.
        """
        if right - left < 2 or any(x is not PENDING for x in array[i, left:right]):
            return
        assert block.expression is not None
        array[i, left:right] = UNDER_WAY
        formula = unguarded(block.expression(i, np.arange(left, right)))
        try:
            if _adds_to(formula, block[i, left - 1 : right - 1]):
                begin, added = self(block[i, left - 1]), np.ravel(formula.right.value(self))
                found = np.cumsum(np.concatenate([[begin], added]))[1:]
            else:
                found = number(np.ravel(formula.value(self)))
            whole = bool(np.isfinite(found).all())
        except FormulaError:
            whole = False
        except _DeeperError:
            array[i, left:right] = PENDING
            raise
        array[i, left:right] = found if whole else PENDING

    def compute(self, block: Block, i: int, j: int) -> Any:
        """The value of one cell of a table: a number, a text, TRUE or FALSE, or an error."""
        try:
            return as_shown(block.formula(i, j).value(self))
        except FormulaError as error:
            return CellError(error)

    def rows(self, block: Block, rows: Iterable[int]) -> np.ndarray:
        """A table's values, after computing its pending rows."""
        for i in rows:
            self._settle(block, Rect(i, i + 1, 0, block.shape[1]))
        return settled(self.values[block.name])

    def fill(self, block: Block) -> None:
        """Compute all of a table; if all values are numbers they become float64."""
        self.values[block.name] = self.rows(block, range(block.shape[0]))


def unguarded(formula: Expression) -> Expression:
    """A formula without IFERROR, for rows without errors. Otherwise an error in one cell would
    count as an error of the whole row."""
    parts = [unguarded(part) for part in formula.parts]
    if isinstance(formula, Call) and formula.function.name == "IFERROR":
        return parts[0]
    same = all(new is old for new, old in zip(parts, formula.parts, strict=True))
    return formula if same else formula.of(*parts)


def _adds_to(formula: Expression, area: Area) -> TypeGuard[Operation]:
    """Whether a formula is that area plus something."""
    if not (isinstance(formula, Operation) and formula.sign == "+"):
        return False
    first = formula.left
    return isinstance(first, Area) and first.grid is area.grid and first.rect == area.rect


@np.errstate(all="ignore")  # an overflow is inf or nan in its cell, which `finite` finds
def compute(
    blocks: Iterable[Block],
    values: MutableMapping[str, Any],
    done: Callable[[Block], object] = lambda block: None,
    reader: Reader | None = None,
) -> None:
    """Compute blocks, each after those that it reads, into `values` by name; tables are `pending`
    there. `done` is called with each as soon as it is computed, before others read it."""
    reader = reader or Reader(values)
    for block in blocks:
        if block.op:
            values[block.name] = evaluate(block, block.whole, values)
            done(block)
        elif block.expression:
            reader.fill(block)
            done(block)


def settled(array: np.ndarray) -> np.ndarray:
    """A table's values: float64 if all are numbers."""
    if array.dtype.hasobject and {*map(type, array.flat)} <= {float}:
        return array.astype(np.float64)
    return array


class Readings:
    """The cells that a table's cells read, cached for incremental recompute."""

    def __init__(self, block: Block):
        found: dict[str, list[tuple[int, int, Rect]]] = {}
        for i, j in block.whole.cells():
            for operand, rect in block.reads(Rect(i, i + 1, j, j + 1)):
                found.setdefault(operand.name, []).append((i, j, rect))
        self.cells = {name: [(i, j) for i, j, _ in rows] for name, rows in found.items()}
        # the edges of what is read, each a row of memory: [4, readings]
        self.rects = {
            name: np.array([r for *_, r in rows]).T.copy() for name, rows in found.items()
        }
        # by what changed: one edit asks what another asked
        self._known: dict[tuple[str, Rect], list[tuple[int, int]]] = {}

    def of(self, name: str, changed: Rect) -> list[tuple[int, int]]:
        """The table's cells that read any of the cells `changed` of a block."""
        if name not in self.rects:
            return []
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        if (name, changed) not in self._known:
            top, bottom, left, right = self.rects[name]
            meets = (top < changed.bottom) & (bottom > changed.top)
            meets &= (left < changed.right) & (right > changed.left)
            cells = self.cells[name]
            self._known[name, changed] = [cells[k] for k in np.flatnonzero(meets)]
        return self._known[name, changed]
