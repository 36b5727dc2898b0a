"""Block: a named 2-D array of cells. Graphs consist of blocks.

Its cells hold values (tokens, weights, settings), or share one op over other blocks, or have an
expression each: a table. Blocks of a backward pass have the kind "gradient" (see `gradient`).
Blocks that belong to a page or a worksheet and not to a model have the kind "table", even if they
are typed. See `name` for their names.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from cellformer.engine.cells import notebook
from cellformer.engine.cells.access import EVERYTHING, Mask, Rect, Span, Subscript, reads, shift
from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.compiled import compiled
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import (
    Area,
    Call,
    Constant,
    Expression,
    Index,
    Read,
    ReadKey,
    Row,
    Steps,
    constant,
    rebuilt,
    steps,
)
from cellformer.engine.cells.functions import SUMPRODUCT
from cellformer.engine.cells.name import Named
from cellformer.engine.cells.op import Op
from cellformer.engine.cells.texts import cut

Kind = Literal["ids", "weight", "setting", "computed", "gradient", "table"]
Axes = tuple[str, str]
MOST_KEPT = 2048  # cells of a table whose formulas are kept, at about 1 KB each


@explained_class
@dataclass(frozen=True, eq=False)
class Block(Named):
    """A named array of cells that hold values, share one op, or have an expression each.

    >>> block = cf.graph("cat-sat", "the cat sat")["logits"]
    >>> block
    <Block logits [3 token x 20 vocab], linear(resid_final, W_U)>
    >>> block.shape, block.axes, block.op.name
    ((3, 20), ('token', 'vocab'), 'linear')
    """

    name: str
    shape: Span  # (rows, columns)
    axes: Axes  # what the rows and the columns are: "token", "d_model", "d_head", "vocab", ...
    kind: Kind
    op: Op | None = None
    # (parameter, subscript, block)
    operands: tuple[tuple[str, Subscript, "Block"], ...] = field(default=(), repr=False)
    mask: Mask = EVERYTHING
    expression: Callable[[Any, Any], Expression] | None = None  # of a table, by row and column
    runs: bool = False  # whether that computes a whole row at once, given an array of columns

    def __repr__(self) -> str:
        """Its name, its shape, and its op with operands, or the kind of its values."""
        return f"<Block {self.name} [{self.sides}], {cut(self.holds)}>"

    @property
    def sides(self) -> str:
        """Its shape with the names of its axes: `3 token x 20 vocab`."""
        sides = zip(self.shape, self.axes, strict=True)
        return " x ".join(f"{n} {axis}".rstrip() for n, axis in sides)

    @property
    def holds(self) -> str:
        """The op with its operands, or the kind of the block's values."""
        of = ", ".join(operand.name for _, _, operand in self.operands)
        return f"{self.op.name}({of})" if self.op else self.kind

    def _repr_html_(self) -> str:
        """A card; its values are those of a graph, see `Graph.frame`."""
        reads = [f"{operand.name}, {operand.sides}" for _, _, operand in self.operands]
        computed = [("computed by", self.op.name), ("reads", reads)] if self.op else []
        return notebook.card(f"{self.name}, {self.sides}", computed or [("holds", self.kind)])

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
        """Whether there is a cell at row i and column j that is not blank."""
        if not (0 <= i < self.shape[0] and 0 <= j < self.shape[1]):
            return False
        start, stop = self.mask.keys(i, self.shape[1]) if self.partial else (0, self.shape[1])
        return start <= j < stop

    @property
    def n_cells(self) -> int:
        """The number of cells that are not blank."""
        return int(self.mask.seen(self.whole).sum()) if self.partial else self.whole.size

    @cached_property
    def sources(self) -> tuple[tuple[str, Subscript, "Block"], ...]:
        """All that its cells read: its operands, and itself if it is a recurrence."""
        own = sorted(self.op.itself) if self.op else []
        return self.operands + tuple((p, self.op.subscripts[p], self) for p in own if self.op)

    @property
    def recurs(self) -> int:
        """1 if its rows read rows before them, so that they are computed one after another; -1 if
        they read rows after them; 0 if they do not read each other."""
        own = [at for _, (at, _), operand in self.sources if operand is self]
        return 0 if not own else 1 if own[0] == "≤i" or shift(own[0]) < 0 else -1

    def passes_over(self, rect: Rect) -> list[Rect]:
        """The rectangle in the order of computation: at once, or row by row."""
        if not self.recurs:
            return [rect]
        rows = range(rect.top, rect.bottom)[:: self.recurs]
        return [rect._replace(top=i, bottom=i + 1) for i in rows]

    @cached_property
    def shared(self) -> Expression:
        """The formula that all cells share, over their operands."""
        if self.op is None:
            raise InputError(f"{self.name} has no formula, because its values are given")
        return self.op.formula([(name, Read(operand, at)) for name, at, operand in self.sources])

    @cached_property
    def steps(self) -> Steps:
        """The parts of that formula, each after its own parts."""
        return steps(self.shared)

    @cached_property
    def over_arrays(self) -> Callable[..., Any]:
        """The same function, over the parts of operands that it reads."""
        return compiled(self.shared, [(operand, at) for _, at, operand in self.sources])

    def formula(self, i: int, j: int) -> Expression:
        """The formula of one cell, over the cells that it reads. A small table's formulas are
        cached, since value, text and precedents are asked for separately."""
        if self.expression is None:
            return rebuilt(self.shared, lambda part: self._area(part, Rect(i, i + 1, j, j + 1)))
        if self.whole.size > MOST_KEPT:
            return self.expression(i, j)
        made = self._formulas.get((i, j))
        if made is None:
            made = self._formulas[i, j] = self.expression(i, j)
        return made

    def _area(self, part: Expression, cell: Rect) -> Expression:
        """The area that a cell reads, if this part of its formula is a read; 0 for none."""
        if not isinstance(part, Read):
            return part if not _of_nothing(part) else Constant(0)
        rect = reads(part.at, cell, part.block.shape, self.mask)
        return Area(part.block, rect) if rect.size else Constant(0)

    @cached_property
    def _formulas(self) -> dict[Span, Expression]:
        return {}

    def begun(self, i: int) -> list[Any]:
        """The initial row of a table: numbers and texts of cells that are constants, None for
        others: [columns]. A row that is computed at once has none."""
        if self.expression is None:
            raise InputError(
                f"{self.name} is not a table; only the cells of a table have formulas of their own"
            )
        n = self.shape[1]
        at_once = self.runs and n > 2
        if at_once and not isinstance(self.expression(i, np.arange(1, n)), Constant | Row):
            return [constant(self.formula(i, 0))] + [None] * (n - 1)
        return [constant(self.formula(i, j)) for j in range(n)]

    def reads(self, out: Rect) -> list[tuple["Block", Rect]]:
        """The rectangles of other blocks that the cells `out` read."""
        if self.expression is not None:
            return [
                (area.grid, area.rect)
                for i, j in out.cells()
                for area in self.formula(i, j).areas()
                if isinstance(area.grid, Block)
            ]
        found = [
            (operand, reads(subscript, out, operand.shape, self.mask))
            for _, subscript, operand in self.sources
        ]
        return [(operand, rect) for operand, rect in found if rect.size]


def _of_nothing(part: Expression) -> bool:
    """Whether a part of a formula is a sum of products with a row that does not exist."""
    sums = isinstance(part, Call) and part.function is SUMPRODUCT
    return sums and any(isinstance(x, Constant) and x.number == 0 for x in part.parts)


def without(formula: Expression, absent: Collection[ReadKey]) -> Expression:
    """A formula that treats missing rows as 0."""

    def change(part: Expression) -> Expression:
        gone = isinstance(part, Read) and part.key in absent
        return Constant(0) if gone or _of_nothing(part) else part

    return rebuilt(formula, change)


Address = Callable[[Block, Rect], str]  # where a rectangle of a block stands, as text
