"""Lines of cells that each cell of a block reads along an axis, for all of its cells at once.

An operand that a cell reads at one place is an array oriented like the output, so that `+ - * /`
broadcast. One that it reads along an axis is a `Line`: one vector for each row of the output, or
for each column, which functions of ranges reduce. If they cannot compute something over whole
arrays they return NotImplemented, and it is computed cell by cell. Arrays may have leading axes,
one entry for each of many variants of a graph; values that are equal in all have none, and
broadcast.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np


@dataclass(slots=True)
class Line:
    """The cells that one cell reads along an axis, for every row or column of the output."""

    values: np.ndarray  # [..., n_lines, n_read]
    along: str  # 'i': one line per output row; 'j': one per column
    seen: np.ndarray | None = None  # bool [rows, n_read]: what a row of the output reads; None: all
    down: bool = False  # whether it runs down a column of its block
    blank: float | None = None  # what all that is not seen holds, if it is one number

    @property
    def n(self) -> int:
        """The number of entries of each line."""
        return int(self.values.shape[-1])

    def kept(self, blank: float) -> np.ndarray:
        """The values, with `blank` for the cells that a row does not see."""
        if self.seen is None or self.blank == blank:
            return self.values
        return np.where(self.seen, self.values, blank)


def product_sum(*xs: Any) -> Any:
    """Sum of products along two lines: [rows, columns]."""
    if len(xs) != 2:
        return NotImplemented
    a, b = xs
    if not (isinstance(a, Line) and isinstance(b, Line)) or (a.seen is None) != (b.seen is None):
        return NotImplemented
    if a.along == b.along:
        if a.along == "j" and a.seen is not None:
            return NotImplemented
        return oriented(np.einsum("...lr,...lr->...l", a.kept(0), b.kept(0)), a.along)
    if a.along == "j":
        a, b = b, a
    if a.seen is not None and not np.isfinite(b.values).all():
        # What a row does not see must not reach it, and 0 * nan is nan: only where it is seen.
        rows = [
            a.values[..., i : i + 1, s] @ b.values[..., s].swapaxes(-1, -2)
            for i, s in enumerate(a.seen)
        ]
        return np.concatenate(rows, axis=-2)
    return np.asarray(a.kept(0) @ b.values.swapaxes(-1, -2))


def reduced(
    compute: Callable[[np.ndarray], np.ndarray], blank: float | None = None
) -> Callable[..., Any]:
    """A function of each line's values [..., n_lines, n_read] -> [..., n_lines]; `blank` is neutral
    for it."""

    def apply(*xs: Any) -> Any:
        line, *others = xs
        if others or not isinstance(line, Line):
            return NotImplemented
        if line.seen is None:
            return oriented(compute(line.values), line.along)
        if blank is None or line.along == "j":
            return NotImplemented
        return oriented(compute(line.kept(blank)), line.along)

    return apply


def gathered(
    join: Callable[[Any, Any], Any], along: Callable[[np.ndarray], np.ndarray], blank: float
) -> Callable[..., Any]:
    """A function of all given cells and all entries of lines; `join` combines two values."""
    of_line = reduced(along, blank)

    def apply(*xs: Any) -> Any:
        if len(xs) == 1 and isinstance(xs[0], Line):
            return of_line(xs[0])
        found = [of_line(x) if isinstance(x, Line) else x for x in xs]
        return NotImplemented if any(x is NotImplemented for x in found) else reduce(join, found)

    return apply


total = gathered(np.add, lambda x: np.add.reduce(x, axis=-1), 0)
largest = gathered(np.maximum, lambda x: np.maximum.reduce(x, axis=-1), -np.inf)
smallest = gathered(np.minimum, lambda x: np.minimum.reduce(x, axis=-1), np.inf)
mean = reduced(lambda x: np.add.reduce(x, axis=-1) / x.shape[-1])


@reduced
def variance(x: np.ndarray) -> np.ndarray:
    """Variance of a whole population (divided by n) along the last axis."""
    n = x.shape[-1]
    centred = x - np.add.reduce(x, axis=-1, keepdims=True) / n
    return np.asarray(np.einsum("...lr,...lr->...l", centred, centred) / n)


def rank(x: Any, line: Any, place: Any, places: Any) -> Any:
    """The number of entries of each line before a cell: larger ones, or equal ones with a
    smaller index."""
    given = (x, line, place, places)
    if [isinstance(y, Line) and y.seen is None and y.along == "i" for y in given] != [0, 1, 0, 1]:
        return NotImplemented
    others = line.values[..., :, None, :]  # [rows, 1, n_read], beside x [rows, columns, 1]
    x, place = np.asarray(x)[..., None], np.asarray(place)[..., None]
    earlier = (others == x) & (places.values[..., :, None, :] < place)
    return np.asarray(np.add.reduce((others > x) | earlier, axis=-1, dtype=np.float64))


def chosen(condition: Any, then: Any, otherwise: Any = 0.0) -> Any:
    """One cell or the other, by a condition."""
    if any(isinstance(x, Line) for x in (condition, then, otherwise)):
        return NotImplemented
    return np.where(condition, np.asarray(then, np.float64), np.asarray(otherwise, np.float64))


def entry(table: Any, ids: Any, first: int = 0) -> Any:
    """Entry `ids` of each line, counted from `first`; nan for an id out of range."""
    if not isinstance(table, Line) or table.seen is not None or isinstance(ids, Line):
        return NotImplemented
    ids = np.atleast_2d(ids) - first
    if table.along == "j":
        ids = ids.swapaxes(-1, -2)  # [..., n_lines or 1, n_ids]
    known = (ids >= 0) & (ids < table.n)
    index = np.where(known, ids, 0).astype(int)
    if index.shape[:-1] == (1,):
        picked = table.values[..., index[0]]
    else:
        shape = np.broadcast_shapes(table.values.shape[:-1], index.shape[:-1])
        lines = np.broadcast_to(table.values, (*shape, table.n))
        index = np.broadcast_to(index, (*shape, index.shape[-1]))
        picked = np.take_along_axis(lines, index, axis=-1)
    found = np.where(known, picked, np.nan)
    return found.swapaxes(-1, -2) if table.along == "j" else found


def oriented(vector: np.ndarray, along: str) -> np.ndarray:
    """A number for each line as an array that is oriented like the output."""
    return vector[..., :, None] if along == "i" else vector[..., None, :]
