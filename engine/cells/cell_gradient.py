"""The gradient of any single cell, a logit or a cell of a worksheet, by every other cell.

Reverse mode over single cells, in numbers (Griewank and Walther 2008, chapter 3): from the last
computed cell to the first, each passes its derivative on to the cells that its formula reads, by
the derivatives in `functions`. `gradient` does the same for whole blocks, as formulas.

Branches that are not taken, conditions and texts have no derivative. Where a block's cells follow
what is computed from them (`Graph.follow`), the backward pass ends.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.derivatives import slopes
from cellformer.engine.cells.expression import (
    Area,
    Call,
    Constant,
    Expression,
    Held,
    Look,
    Negative,
    Operation,
    expression,
)
from cellformer.engine.cells.functions import IF, MAX, MIN
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.table import Reader, compute, pending
from cellformer.engine.cells.values import RANGES, FormulaError, number, numbers_or_0

Slopes = dict[str, np.ndarray]  # block name -> the slope by each of its cells: [rows, columns]


def of_cell(graph: Graph, block: Block, i: int, j: int) -> Slopes:
    """The gradient of a cell by every cell that it depends on.

    Raises InputError if the cell does not exist.
    """
    graph.check(block, i, j)
    found: Slopes = {}
    add(found, block[i, j], 1.0)
    return spread(graph, found)


def spread(graph: Graph, found: Slopes) -> Slopes:
    """Pass the derivatives by some cells on to all cells that these depend on."""
    read = Reader(graph.computed)

    def look(area: Area) -> Any:
        value = read(area)
        return np.reshape(value, (1, -1)) if 1 in area.shape and area.rect.size > 1 else value

    for block, cells in reversed(_computed(graph)):
        if block.name in found:
            for cell in cells:
                if slope := float(found[block.name][cell]):
                    back(block.formula(*cell), slope, look, partial(add, found))
    return found


def add(found: Slopes, area: Area, slope: Any) -> None:
    """Add a derivative by the cells of an area: one for all of them, or one each."""
    assert isinstance(area.grid, Block)
    cells = found.setdefault(area.grid.name, np.zeros(area.grid.shape))
    cells[area.rect.slices] += np.reshape(slope, area.shape) if np.size(slope) > 1 else slope


def of_shape(slope: np.ndarray, shape: tuple[int, ...]) -> Any:
    """A derivative in the shape of its argument: summed where the argument was broadcast."""
    if slope.ndim > len(shape):
        return slope.sum()
    for axis, n in enumerate(shape):
        if n == 1 < slope.shape[axis]:
            slope = slope.sum(axis, keepdims=True)
    return slope


def _computed(graph: Graph) -> list[tuple[Block, list[tuple[int, int]]]]:
    """All computed cells, inputs first."""
    found: list[tuple[Block, list[tuple[int, int]]]] = []
    values: dict[str, Any] = dict(graph.inputs)
    for block in graph.tables:
        values.setdefault(block.name, pending(block))

    def done(block: Block) -> None:
        if block.op:
            found.append((block, [c for c in block.whole.cells() if block.has(*c)]))

    blocks = [block for block in graph if block.name not in graph.inputs]
    compute(blocks, values, done, _Recorder(values, found))
    return found


class _Recorder(Reader):
    """A reader that records the order in which cells of tables are computed."""

    def __init__(self, values: dict[str, Any], found: list[Any]):
        super().__init__(values)
        self.found = found

    def compute(self, block: Block, i: int, j: int) -> Any:
        value = super().compute(block, i, j)
        self.found.append((block, [(i, j)]))
        return value

    def _run(self, *row: Any) -> None:
        """Compute a row cell by cell, so that each is recorded."""


def back(part: Expression, slope: Any, look: Look, add: Callable[[Area, Any], None]) -> None:
    """Pass the derivative by a part of a formula on to the areas that it reads."""
    if isinstance(part, Area):
        add(part, of_shape(slope, np.shape(look(part))) if np.ndim(slope) else slope)
        return
    for x, share in _shares(part, look):
        try:
            by = as_numbers(share.value(look))
        except FormulaError:  # what has no value has no slope
            continue
        back(x, slope * by, look, add)


def _shares(part: Expression, look: Look) -> list[tuple[Expression, Expression]]:
    """The arguments of a part of a formula, and the derivative by each."""
    match part:
        case Operation("+" | "-" as sign, x, y):
            return [(x, Constant(1)), (y, Constant(1 if sign == "+" else -1))]
        case Operation("*", x, y):
            return [(x, y), (y, x)]
        case Operation("/", x, y):
            return [(x, 1 / y), (y, Negative(x) / (y * y))]
        case Held(x):  # a constant where it cancels; here it may be looked at by itself
            return [(x, Constant(1))]
        case Negative(x):
            return [(x, Constant(-1))]
        case Call(function, _) if function.lazy:
            return _branch(part, look)
    try:
        given = [Constant(x.value(look)) for x in part.parts]
        whose = {id(x): part.parts[k] for k, x in enumerate(given)}
        found = slopes(part.of(*given), Constant(part.value(look)))
    except FormulaError:
        return []
    shares = [(whose[id(x)], expression(share)) for x, share in found]
    if isinstance(part, Call) and part.function in (MAX, MIN):  # equal numbers share the slope
        n_equal = sum(np.sum(as_numbers(share.value(look))) for _, share in shares)
        shares = [(x, share / n_equal) for x, share in shares]
    return shares


def as_numbers(x: Any) -> Any:
    """A number, or the numbers of a range, with 0 for anything else."""
    return numbers_or_0(np.asarray(x)) if isinstance(x, RANGES) else number(x)


def _branch(part: Call, look: Look) -> list[tuple[Expression, Expression]]:
    """The branch that is taken, the last argument that was computed; for an array, by cell."""
    asked: list[int] = []

    def argument(k: int) -> Any:
        asked.append(k)
        return part.arguments[k].value(look)

    try:
        part.function.compute(*[partial(argument, k) for k in range(len(part.arguments))])
    except FormulaError:
        return []
    if asked == [0, 1, 2]:  # a condition for each cell
        condition, x, y = part.arguments
        return [(x, IF(condition, 1, 0)), (y, IF(condition, 0, 1))]
    return [(part.arguments[asked[-1]], Constant(1))]
