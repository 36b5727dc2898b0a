"""The numpy interpreter: an op over a rectangle of its output at once, in float64.

An operand that a cell reads at one place becomes an array oriented like the output (so that
`+ - * /` broadcast); one that it reads along an axis becomes a `Line`: one vector per output row
(or per output column), which the reducing primitives consume.

Every array may have leading axes, one entry for each of many variants of a graph; what is alike in
all variants has none, and broadcasts.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from engine.cells.access import ALONG, Mask, Rect, Subscript, partners, reads
from engine.cells.block import Block
from engine.cells.op import Math
from engine.cells.stored import Stored

exp, log, power, sqrt, tanh = np.exp, np.log, np.power, np.sqrt, np.tanh
maximum, sin, cos = np.maximum, np.sin, np.cos
erf = np.vectorize(math.erf, otypes=[np.float64])  # numpy has none


_PRIMITIVES = cast(Math, sys.modules[__name__])  # the `m` that ops call: this module


@dataclass(slots=True)
class Line:
    """What one output cell reads along an axis, for every output row or column at once."""

    values: np.ndarray  # [..., n_lines, n_read]
    along: str  # 'i': one line per output row; 'j': one per column
    seen: np.ndarray | None  # bool [n_lines, n_read]: the entries that a row reads; None: all


def dot(a: Line, b: Line) -> np.ndarray:
    """Sum of products along both lines: [rows, columns]."""
    if a.along == b.along:
        return _oriented(np.einsum("...lr,...lr->...l", a.values, b.values), a.along)
    if a.along == "j" or b.along == "i":
        a, b = b, a
    if a.seen is not None and not np.isfinite(b.values).all():
        # What a row does not see must not reach it, and 0 * nan is nan: only where it is seen.
        rows = [
            a.values[..., i : i + 1, s] @ b.values[..., s].swapaxes(-1, -2)
            for i, s in enumerate(a.seen)
        ]
        return np.concatenate(rows, axis=-2)
    product: np.ndarray = a.values @ b.values.swapaxes(-1, -2)
    return product


def sum(line: Line) -> np.ndarray:
    """Sum along each line."""
    return _oriented(np.add.reduce(line.values, axis=-1), line.along)


def max(line: Line) -> np.ndarray:
    """Largest along each line."""
    return _oriented(np.maximum.reduce(line.values, axis=-1), line.along)


def mean(line: Line) -> np.ndarray:
    """Mean along each line."""
    return _oriented(np.add.reduce(line.values, axis=-1) / count(line), line.along)


def varp(line: Line) -> np.ndarray:
    """Variance along each line, of a whole population (divided by n)."""
    n = count(line)
    centred = line.values - np.add.reduce(line.values, axis=-1, keepdims=True) / n
    return _oriented(np.einsum("...lr,...lr->...l", centred, centred) / n, line.along)


def count(line: Line) -> int:
    """How many entries each line has."""
    return int(line.values.shape[-1])


def rank(x: np.ndarray, line: Line, place: np.ndarray, places: Line) -> np.ndarray:
    """How many of each line come before a cell: larger ones, or equal ones at earlier places."""
    others = line.values[..., :, None, :]  # [rows, 1, n_read], beside x [rows, columns, 1]
    larger = others > x[..., None]
    earlier = (others == x[..., None]) & (places.values[..., None, :] < place[..., None])
    found: np.ndarray = np.add.reduce(larger | earlier, axis=-1, dtype=np.float64)
    return found


def below(x: np.ndarray | float, y: np.ndarray) -> np.ndarray:
    """1 where x is less than y, else 0."""
    return np.asarray(np.less(x, y), dtype=np.float64)


def equal(x: np.ndarray, y: np.ndarray | float) -> np.ndarray:
    """1 where x is equal to y, else 0."""
    return np.asarray(np.equal(x, y), dtype=np.float64)


def held(x: np.ndarray) -> np.ndarray:
    """x, as a constant."""
    return x


def lookup(table: Line, ids: np.ndarray) -> np.ndarray:
    """Entry `ids` of each line; an id that is no entry of the table gives nan."""
    n = count(table)
    known = (ids >= 0) & (ids < n)  # [..., n_ids, 1]
    index = np.where(known, ids, 0)[..., 0].astype(int)  # [..., n_ids]
    if index.ndim == 1:
        picked = table.values[..., index]
    else:
        lines = np.broadcast_to(table.values, (*index.shape[:-1], *table.values.shape[-2:]))
        picked = np.take_along_axis(lines, index[..., None, :], axis=-1)
    return np.where(known, picked.swapaxes(-1, -2), np.nan)


def _oriented(vector: np.ndarray, along: str) -> np.ndarray:
    return vector[..., :, None] if along == "i" else vector[..., None, :]


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
    pairs = []
    whole = rect == block.whole  # then every operand is read whole
    for parameter, subscript, operand in block.operands:
        read = operand.whole if whole else reads(subscript, rect, operand.shape, block.mask)
        array = values[operand.name]
        if isinstance(array, Stored):
            part = array.part(*read.slices)
            array = part if "?" in subscript else np.asarray(part)
        elif not whole:
            array = array[(..., *read.slices)]
        pairs.append((parameter, _view(array, subscript, read, rect, block.mask)))
    result: np.ndarray = block.op.call(_PRIMITIVES, pairs)
    if block.partial:
        return np.where(block.mask.seen(rect), result, block.op.blank)
    rows, cols = rect.bottom - rect.top, rect.right - rect.left
    if result.shape[-2:] != (rows, cols):  # all cells of a row, or of a column, are alike
        return np.broadcast_to(result, (*result.shape[:-2], rows, cols)).copy()
    handed_on = result.base is not None or any(result is x for _, x in pairs)
    return result.copy() if handed_on else result


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
