"""Values of whole blocks: a formula over a rectangle of its block's cells at once, in float64.

Every part of the formula is computed once, over arrays and `Line`s (see `lines`): signs as `SIGNS`
says, functions as the column `arrays` of their row in `functions` says; a function that has none is
computed cell by cell.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from engine.cells import lines
from engine.cells.access import ALONG, Mask, Rect, Subscript, partners, reads
from engine.cells.block import Block
from engine.cells.expression import Call, Constant, Expression, Function, Nth, Read
from engine.cells.lines import Line
from engine.cells.stored import Stored
from engine.cells.values import FormulaError

SIGNS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": np.power,
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "negative": operator.neg,
    "held": lambda x: x,
}


def compute(part: Expression, xs: list[Any]) -> Any:
    """A sign or a function applied to arrays, or to lines."""
    if isinstance(part, Call):
        return (part.function.arrays or partial(cell_by_cell, part.function))(*xs)
    if isinstance(part, Nth):
        return lines.entry(xs[0], xs[1], part.first)
    return SIGNS[part.name](*xs)


def cell_by_cell(function: Function, *xs: Any) -> np.ndarray:
    """A function over arrays and lines as tables have it, one cell at a time; an error is nan."""

    def apply(*values: Any) -> float:
        try:
            found = function.compute(*[partial(_itself, v) if function.lazy else v for v in values])
            return float(found)
        except FormulaError:
            return np.nan

    arrays = [_vectors(x) if isinstance(x, Line) else x for x in xs]
    return np.asarray(np.vectorize(apply, otypes=[np.float64])(*arrays))


def _itself(x: Any) -> Any:
    return x


def _vectors(line: Line) -> np.ndarray:
    """The entries that each cell reads, a vector each: object, oriented like the output."""
    found = np.empty(line.values.shape[:-1], dtype=object)
    for index in np.ndindex(found.shape):
        vector = line.values[index]
        found[index] = vector if line.seen is None else vector[line.seen[index[-1]]]
    return lines.oriented(found, line.along)


MOST_READ = 1 << 18  # numbers of a matrix in a file that are read together


def evaluate(block: Block, rect: Rect, values: dict[str, np.ndarray]) -> np.ndarray:
    """The values of `rect` of a computed block: float64 [..., rows of rect, columns of rect].

    Where it reads much of a matrix that is in a file, a few columns at a time.
    """
    for _, subscript, operand in block.operands:
        stored = isinstance(values[operand.name], Stored) and "?" not in subscript
        size = reads(subscript, rect, operand.shape, block.mask).size if stored else 0
        if size > MOST_READ and rect.right - rect.left > 1:
            middle = (rect.left + rect.right) // 2
            halves = rect._replace(right=middle), rect._replace(left=middle)
            return np.concatenate([evaluate(block, half, values) for half in halves], axis=-1)
    return _evaluate(block, rect, values)


def _evaluate(block: Block, rect: Rect, values: dict[str, np.ndarray]) -> np.ndarray:
    assert block.op is not None
    views: dict[Any, Any] = {}  # by the key of a Read
    whole = rect == block.whole  # then every operand is read whole
    for _, subscript, operand in block.operands:
        read = operand.whole if whole else reads(subscript, rect, operand.shape, block.mask)
        array = values[operand.name]
        if isinstance(array, Stored):
            part = array.part(*read.slices)
            array = part if "?" in subscript else np.asarray(part)
        elif not whole:
            array = array[(..., *read.slices)]
        views[operand, subscript] = _view(array, subscript, read, rect, block.mask)
    result: np.ndarray = run(block, views)
    if block.partial:
        return np.where(block.mask.seen(rect), result, block.op.blank)
    rows, cols = rect.bottom - rect.top, rect.right - rect.left
    if result.shape[-2:] != (rows, cols):  # all cells of a row, or of a column, are alike
        return np.broadcast_to(result, (*result.shape[:-2], rows, cols)).copy()
    handed_on = result.base is not None or any(result is x for x in views.values())
    return result.copy() if handed_on else result


def run(block: Block, views: dict[Any, Any]) -> Any:
    """What the formula of a block comes to, of what it reads."""
    found: list[Any] = []
    for part, of in block.steps:
        if isinstance(part, Read):
            found.append(views[part.key])
        elif isinstance(part, Constant):
            found.append(part.number)
        else:
            found.append(compute(part, [found[k] for k in of]))
    return found[-1]


def _view(array: np.ndarray, subscript: Subscript, read: Rect, out: Rect, mask: Mask) -> Any:
    """What the op sees of an operand, of which `array` holds the rectangle `read`."""
    if subscript[1] in ALONG:
        keys = Rect(out.top, out.bottom, *read[2:])
        partly = subscript[1] == "≤i" and mask.causal
        return Line(array, subscript[0], mask.seen(keys) if partly else None)
    if subscript[0] in ALONG:
        lines = array.swapaxes(-1, -2)
        if subscript == ("≥i", "i") and mask.causal:
            return Line(lines, "i", mask.seen(read).T)
        return Line(lines, subscript[1], None)
    if subscript[1][0] == "@":
        n = int(subscript[1][1:]) - read.left
        array = array[..., n : n + 1]
    elif subscript[1][0] == "~":
        return array[..., partners(subscript[1], out.left, out.right) - read.left]
    return array.swapaxes(-1, -2) if subscript[0] == "j" or subscript[1] == "i" else array
