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
from engine.cells.access import ALONG, Mask, Rect, Span, Subscript, partners, reads
from engine.cells.block import Block
from engine.cells.expression import Area, Call, Constant, Expression, Function, Nth, Read
from engine.cells.lines import Line
from engine.cells.stored import Stored
from engine.cells.values import NUMBERS, TRUTHS, FormulaError


def _comparison(holds: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """1 where it holds, and 0 elsewhere: truths of numpy's are no numbers to add."""
    return lambda x, y: holds(x, y).astype(np.float64)


SIGNS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": np.divide,
    "^": np.power,
    "=": _comparison(np.equal),
    "<>": _comparison(np.not_equal),
    "<": _comparison(np.less),
    "<=": _comparison(np.less_equal),
    ">": _comparison(np.greater),
    ">=": _comparison(np.greater_equal),
    "negative": operator.neg,
    "held": lambda x: x,
}


def compute(part: Expression, xs: list[Any]) -> Any:
    """A sign or a function applied to arrays, or to lines."""
    if isinstance(part, Call):
        arrays, function = part.function.arrays, part.function
    elif isinstance(part, Nth):
        arrays, function = partial(lines.entry, first=part.first), _nth(part.first)
    else:
        return SIGNS[part.name](*xs)
    found = arrays(*xs) if arrays else NotImplemented
    return cell_by_cell(function, *xs) if found is NotImplemented else found


def _nth(first: int) -> Function:
    def compute(line: Any, k: Any) -> Any:
        return Nth(Constant(line), Constant(k), first).value(_no_area)

    return Function("nth", compute)


def _no_area(area: Area) -> Any:
    raise TypeError(f"{area.grid.name} is no value")


def cell_by_cell(function: Function, *xs: Any) -> np.ndarray:
    """A function over arrays and lines as tables have it, one cell at a time; an error is nan, and
    so is what is no number."""

    def apply(*values: Any) -> float:
        try:
            found = function.compute(*[partial(_itself, v) if function.lazy else v for v in values])
        except FormulaError:
            return np.nan
        return float(found) if isinstance(found, NUMBERS + TRUTHS) else np.nan

    if not xs:
        return np.asarray(apply())
    arrays = [_vectors(x) if isinstance(x, Line) else x for x in xs]
    return np.asarray(np.vectorize(apply, otypes=[np.float64])(*arrays))


def _itself(x: Any) -> Any:
    return x


def _vectors(line: Line) -> np.ndarray:
    """What each cell reads, a row or a column of cells: object, oriented like the output. One cell
    is a number."""
    *others, n_lines, _ = line.values.shape
    by_row = line.along == "i"
    n_rows = 1 if line.seen is None else len(line.seen)
    found = np.empty((*others, n_lines, 1) if by_row else (*others, n_rows, n_lines), dtype=object)
    for index in np.ndindex(found.shape):
        *variant, row, col = index
        cells = line.values[(*variant, row if by_row else col)]
        cells = cells if line.seen is None else cells[line.seen[row]]
        found[index] = cells.reshape(-1, 1) if line.down else cells.reshape(1, -1)
        if cells.size == 1:
            found[index] = cells.item()
    return found


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
        views[operand, subscript] = _view(operand, array, subscript, read, rect, block.mask)
    result = np.asarray(run(block, views), np.float64)
    if block.partial:
        return np.where(block.mask.seen(rect), result, block.op.blank)
    rows, cols = rect.bottom - rect.top, rect.right - rect.left
    if result.shape[-2:] != (rows, cols):  # all cells of a row, or of a column, are alike
        return np.broadcast_to(result, (*result.shape[:-2], rows, cols)).copy()
    handed_on = result.base is not None or any(result is x for x in views.values())
    return result.copy() if handed_on else result


def run(block: Block, views: dict[Any, Any]) -> Any:
    """What the formula of a block comes to, of what it reads. Values that no other part uses are
    let go at once: memory that is used again stays in the processor's cache."""
    found: list[Any] = []
    for (part, of), spent in zip(block.steps, block.spent, strict=True):
        if isinstance(part, Read):
            found.append(views[part.key])
        elif isinstance(part, Constant):
            found.append(part.number)
        else:
            found.append(compute(part, [found[k] for k in of]))
            for k in spent:
                found[k] = None
    return found[-1]


def _view(
    operand: Block, array: np.ndarray, subscript: Subscript, read: Rect, out: Rect, mask: Mask
) -> Any:
    """What the op sees of an operand, of which `array` holds the rectangle `read`."""
    axis = next((axis for axis, code in enumerate(subscript) if code in ALONG), None)
    if axis is not None:
        lines, other = (array, subscript[0]) if axis else (array.swapaxes(-1, -2), subscript[1])
        along, down = "j" if other == "j" else "i", axis == 0
        seen = _seen(subscript[axis], read[2:] if axis else read[:2], out, mask)
        blank = operand.op.blank if operand.op and operand.mask == mask else None
        return Line(lines, along, seen, down, blank if operand.partial else None)
    if subscript[1][0] == "@":
        n = int(subscript[1][1:]) - read.left
        array = array[..., n : n + 1]
    elif subscript[1][0] == "~":
        return array[..., partners(subscript[1], out.left, out.right) - read.left]
    return array.swapaxes(-1, -2) if subscript[0] == "j" or subscript[1] == "i" else array


def _seen(code: str, entries: Span, out: Rect, mask: Mask) -> np.ndarray | None:
    """Which entries of a line each row of the output reads; None: all."""
    if not mask.causal or code not in ("≤i", "≥i"):
        return None
    if code == "≤i":
        return mask.seen(Rect(out.top, out.bottom, *entries))
    return mask.seen(Rect(*entries, out.top, out.bottom)).T
