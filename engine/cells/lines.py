"""Lines of cells: what each cell of a block reads along an axis, for all of its cells at once.

An operand that a cell reads at one place is an array oriented like the output, so that `+ - * /`
broadcast; one that it reads along an axis is a `Line`: one vector for each row of the output, or
for each column, which functions of ranges reduce. Every array may have leading axes, one entry for
each of many variants of a graph; what is alike in all variants has none, and broadcasts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(slots=True)
class Line:
    """What one cell reads along an axis, for every row or column of the output."""

    values: np.ndarray  # [..., n_lines, n_read]
    along: str  # 'i': one line per output row; 'j': one per column
    seen: np.ndarray | None = (
        None  # bool [n_lines, n_read]: the entries that a row reads; None: all
    )

    @property
    def n(self) -> int:
        """How many entries each line has."""
        return int(self.values.shape[-1])


def product_sum(a: Any, b: Any = None, *others: Any) -> Any:
    """Sum of products along lines: [rows, columns]; of cells, their product."""
    if b is None:
        return _total(a) if isinstance(a, Line) else a
    if not isinstance(a, Line):
        return product_sum(a * b, *others)
    if others:
        return product_sum(Line(a.values * b.values, a.along, a.seen), *others)
    if a.along == b.along:
        return oriented(np.einsum("...lr,...lr->...l", a.values, b.values), a.along)
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


def reduced(compute: Callable[[np.ndarray], np.ndarray]) -> Callable[[Line], np.ndarray]:
    """A function of each line's values [..., n_lines, n_read] -> [..., n_lines]."""
    return lambda line: oriented(compute(line.values), line.along)


def largest(*xs: Any) -> Any:
    """The largest of cells, and of all entries of lines."""
    found = [_largest(x) if isinstance(x, Line) else x for x in xs]
    total = found[0]
    for x in found[1:]:
        total = np.maximum(total, x)
    return total


_largest = reduced(lambda x: np.maximum.reduce(x, axis=-1))
_total = reduced(lambda x: np.add.reduce(x, axis=-1))


def variance(x: np.ndarray) -> np.ndarray:
    """Variance of a whole population (divided by n) along the last axis."""
    n = x.shape[-1]
    centred = x - np.add.reduce(x, axis=-1, keepdims=True) / n
    found: np.ndarray = np.einsum("...lr,...lr->...l", centred, centred) / n
    return found


def rank(x: Any, line: Line, place: Any, places: Line) -> np.ndarray:
    """How many of each line come before a cell: larger ones, or equal ones at earlier places."""
    others = line.values[..., :, None, :]  # [rows, 1, n_read], beside x [rows, columns, 1]
    larger = others > x[..., None]
    earlier = (others == x[..., None]) & (places.values[..., None, :] < place[..., None])
    found: np.ndarray = np.add.reduce(larger | earlier, axis=-1, dtype=np.float64)
    return found


def entry(table: Line, ids: np.ndarray, first: int = 0) -> np.ndarray:
    """Entry `ids` of each line, counted from `first`; an id that is no entry gives nan."""
    ids = ids - first if first else ids
    known = (ids >= 0) & (ids < table.n)  # [..., n_ids, 1]
    index = np.where(known, ids, 0)[..., 0].astype(int)  # [..., n_ids]
    if index.ndim == 1:
        picked = table.values[..., index]
    else:
        lines = np.broadcast_to(table.values, (*index.shape[:-1], *table.values.shape[-2:]))
        picked = np.take_along_axis(lines, index[..., None, :], axis=-1)
    return np.where(known, picked.swapaxes(-1, -2), np.nan)


def oriented(vector: np.ndarray, along: str) -> np.ndarray:
    """A number for each line as an array that is oriented like the output."""
    return vector[..., :, None] if along == "i" else vector[..., None, :]
