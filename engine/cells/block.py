"""Block: a named 2-D array of cells, the unit that everything here is made of.

Its cells hold values (tokens, weights, settings), or all share one op over other blocks, or each
has an expression of its own: a table. A backward pass's are of the kind "gradient" (see
`gradient`). What is of no model, but stands on a page of its workbook or
on a worksheet, is of the kind "table" also where it is typed. What its name says: see `name`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from engine.cells.access import EVERYTHING, Mask, Rect, Span, Subscript, reads
from engine.cells.compiled import compiled
from engine.cells.expression import (
    Area,
    Constant,
    Expression,
    Index,
    Read,
    Row,
    Steps,
    constant,
    rebuilt,
    steps,
)
from engine.cells.name import Named
from engine.cells.op import Op

Kind = Literal["ids", "weight", "setting", "computed", "gradient", "table"]
Axes = tuple[str, str]
MOST_KEPT = 2048  # cells of a table whose formulas are kept, at about 1 KB each


@dataclass(frozen=True, eq=False)
class Block(Named):
    """A named array of cells that hold values, share one op, or have an expression each."""

    name: str
    shape: Span  # (rows, columns)
    axes: Axes  # what the rows and the columns are: "token", "d_model", "d_head", "vocab", ...
    kind: Kind
    op: Op | None = None
    operands: tuple[tuple[str, Subscript, "Block"], ...] = ()  # (parameter, subscript, block)
    mask: Mask = EVERYTHING
    expression: Callable[[Any, Any], Expression] | None = None  # of a table, by row and column
    runs: bool = False  # whether that computes a whole row at once, given an array of columns

    def __getitem__(self, key: Index | tuple[Index, Index]) -> Area:
        """Some of its cells, for expressions: `block[i, j]`, `block[i, :]`."""
        return self.area[key]

    @cached_property
    def area(self) -> Area:
        """All of its cells, for expressions."""
        return Area(self, self.whole)

    @property
    def computed(self) -> bool:
        """Whether its cells have formulas."""
        return self.op is not None or self.expression is not None

    @cached_property
    def whole(self) -> Rect:
        return Rect(0, self.shape[0], 0, self.shape[1])

    @cached_property
    def partial(self) -> bool:
        """Whether some cells are blank: a query has no cell for a key that it does not see."""
        return self.op is not None and self.op.out[1] == "≤i" and self.mask.causal

    def has(self, i: int, j: int) -> bool:
        """Whether there is a cell at row i and column j, and not a blank or nothing."""
        if not (0 <= i < self.shape[0] and 0 <= j < self.shape[1]):
            return False
        start, stop = self.mask.keys(i, self.shape[1]) if self.partial else (0, self.shape[1])
        return start <= j < stop

    @property
    def n_cells(self) -> int:
        """How many cells there are, blanks not counted."""
        return int(self.mask.seen(self.whole).sum()) if self.partial else self.whole.size

    @cached_property
    def shared(self) -> Expression:
        """The formula that all cells share, over what each reads."""
        assert self.op is not None
        return self.op.formula([(name, Read(operand, at)) for name, at, operand in self.operands])

    @cached_property
    def steps(self) -> Steps:
        """The same, part by part."""
        return steps(self.shared)

    @cached_property
    def over_arrays(self) -> Callable[..., Any]:
        """The same, as a function of what it reads of each operand."""
        return compiled(self.shared, [(operand, at) for _, at, operand in self.operands])

    def formula(self, i: int, j: int) -> Expression:
        """The formula of one cell, over the cells that it reads. A small table's is made once: its
        value, its text and what it reads are each asked for at another time."""
        if self.expression is None:
            return rebuilt(self.shared, lambda part: self._area(part, Rect(i, i + 1, j, j + 1)))
        if self.whole.size > MOST_KEPT:
            return self.expression(i, j)
        made = self._formulas.get((i, j))
        if made is None:
            made = self._formulas[i, j] = self.expression(i, j)
        return made

    def _area(self, part: Expression, cell: Rect) -> Expression:
        """What a cell reads, if the part of its formula is a read."""
        if not isinstance(part, Read):
            return part
        return Area(part.block, reads(part.at, cell, part.block.shape, self.mask))

    @cached_property
    def _formulas(self) -> dict[Span, Expression]:
        return {}

    def begun(self, i: int) -> list[Any]:
        """What a row of a table begins with: the numbers and texts of its cells that are constants,
        None for the others: [columns]. A run shows at once that it has none."""
        assert self.expression is not None
        n = self.shape[1]
        if self.runs and n > 2:
            run = self.expression(i, np.arange(1, n))
            if not isinstance(run, Constant | Row):
                return [constant(self.formula(i, 0))] + [None] * (n - 1)
        return [constant(self.formula(i, j)) for j in range(n)]

    def reads(self, out: Rect) -> list[tuple["Block", Rect]]:
        """What the cells `out` read: rectangles of other blocks."""
        if self.expression is not None:
            return [
                (area.grid, area.rect)
                for i, j in out.cells()
                for area in self.formula(i, j).areas()
                if isinstance(area.grid, Block)
            ]
        return [
            (operand, reads(subscript, out, operand.shape, self.mask))
            for _, subscript, operand in self.operands
        ]


Address = Callable[[Block, Rect], str]  # where a rectangle of a block stands, as text
