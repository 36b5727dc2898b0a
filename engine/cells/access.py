"""The access interpreter: the cells that a cell reads, and the cells that read it.

An op gives every operand a subscript, written as one would index an array. In the cell at row
i and column j of the output, `x="i,:"` reads row i of x, whole, and `w=":,j"` column j of w.

    i, j   the output cell's own row, own column
    :      the whole axis
    0      the only index of an axis of length one
    ≤i     the keys that query i sees: up to and including i under a causal mask, or only those
           before i (`before`)
    ≥i     the queries that see key i
    ?      one index that another operand's value chooses (a lookup): any of the axis
    @n     index n, the same for all cells of the block: one expert's share, one column
    i-n    the row n rows before; i+n: n rows after. Where there is none, nothing is read: 0
    ~h/n   the partner of column j in rotary positions: h further on, or h back; n columns have one

Invariant: `reads` and `dirties` are inverse. Cell b is in what `reads` gives for cell a exactly
when a is in what `dirties` gives for b. Everything else (precedents, dependents, incremental
recompute, the ranges in the workbook's formulas) follows from these two functions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np

Span = tuple[int, int]  # [start, stop)
Subscript = tuple[str, str]  # one code per axis
ALONG = (":", "≤i", "≥i", "?")  # codes that read more than one place of an axis


class Rect(NamedTuple):
    """A rectangle of cells of one block: rows [top, bottom), columns [left, right)."""

    top: int
    bottom: int
    left: int
    right: int

    @property
    def size(self) -> int:
        top, bottom, left, right = self
        return (bottom - top) * (right - left) if bottom > top and right > left else 0

    @property
    def slices(self) -> tuple[slice, slice]:
        """The rectangle as indices of numpy: `values[rect.slices]`."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    def cells(self) -> Iterator[tuple[int, int]]:
        return product(range(self.top, self.bottom), range(self.left, self.right))

    def meets(self, other: "Rect") -> bool:
        """Whether they have a cell in common."""
        return (
            self.top < other.bottom
            and other.top < self.bottom
            and self.left < other.right
            and other.left < self.right
        )

    def covers(self, other: "Rect") -> bool:
        return (
            self.top <= other.top
            and self.bottom >= other.bottom
            and self.left <= other.left
            and self.right >= other.right
        )


@dataclass(frozen=True)
class Mask:
    """The keys that a query sees: those up to itself, all, or the last `window`. If several
    sentences of equal length follow each other, a query sees only its own `sentence`. With
    `before`, a query does not see its own key."""

    causal: bool = True
    window: int | None = None
    sentence: int | None = None
    before: bool = False

    def keys(self, query: int, n_keys: int) -> Span:
        if not self.causal:
            return 0, n_keys
        start = 0 if self.window is None else max(0, query + 1 - self.window)
        if self.sentence is not None:
            start = max(start, query - query % self.sentence)
        return start, min(query if self.before else query + 1, n_keys)

    def queries(self, keys: Span, n_queries: int) -> Span:
        """The queries that see any of these keys."""
        if not self.causal:
            return 0, n_queries
        last = keys[1] - 1
        stop = n_queries if self.window is None else last + self.window
        if self.sentence is not None:
            stop = min(stop, last - last % self.sentence + self.sentence)
        first = keys[0] + 1 if self.before else keys[0]
        return first, min(stop, n_queries)

    @lru_cache(maxsize=256)  # noqa: B019  a mask lives as long as the program
    def seen(self, rect: Rect) -> np.ndarray:
        """bool [queries, keys], read-only: True if the query (row) sees the key."""
        i, j = np.ogrid[rect.top : rect.bottom, rect.left : rect.right]
        found = (j < i if self.before else j <= i) | (not self.causal)
        if self.causal and self.window is not None:
            found &= j > i - self.window
        if self.causal and self.sentence is not None:
            found &= j // self.sentence == i // self.sentence
        found.flags.writeable = False
        return found


EVERYTHING = Mask(causal=False)


def reads(subscript: Subscript, out: Rect, shape: Span, mask: Mask) -> Rect:
    """The rectangle of an operand of this shape that the cells `out` of the output read."""

    def axis(code: str, n: int) -> Span:
        match code:
            case "i":
                return out.top, out.bottom
            case "j":
                return out.left, out.right
            case "0":
                return 0, 1
            case _ if code[0] == "@":
                return int(code[1:]), int(code[1:]) + 1
            case _ if further := shift(code):
                return min(max(out.top + further, 0), n), min(max(out.bottom + further, 0), n)
            case _ if code[0] == "~":
                found = partners(code, out.left, out.right)
                return int(found.min()), int(found.max()) + 1
            case "≤i":
                return mask.keys(out.top, n)[0], mask.keys(out.bottom - 1, n)[1]
            case "≥i":
                return mask.queries((out.top, out.bottom), n)
            case _:  # ":" and "?"
                return 0, n

    return Rect(*axis(subscript[0], shape[0]), *axis(subscript[1], shape[1]))


def dirties(subscript: Subscript, changed: Rect, out_shape: Span, mask: Mask) -> Rect:
    """The rectangle of the output that reads any of the operand's cells `changed`."""
    rows, cols = (0, out_shape[0]), (0, out_shape[1])
    for code, span in zip(subscript, (changed[:2], changed[2:]), strict=True):
        match code:
            case "i":
                rows = _common(rows, span)
            case "j":
                cols = _common(cols, span)
            case "≤i":
                rows = _common(rows, mask.queries(span, out_shape[0]))
            case "≥i":
                n = out_shape[0]
                keys = mask.keys(span[0], n)[0], mask.keys(span[1] - 1, n)[1]
                rows = _common(rows, keys)
            case _ if code[0] == "@" and not span[0] <= int(code[1:]) < span[1]:
                return Rect(0, 0, 0, 0)
            case _ if further := shift(code):
                rows = _common(rows, (span[0] - further, span[1] - further))
            case _ if code[0] == "~":  # pairing is its own inverse
                found = partners(code, *span)
                cols = _common(cols, (int(found.min()), int(found.max()) + 1))
    return Rect(*rows, *cols)


def shift(code: str) -> int:
    """The number of rows that a code adds: -1 for `i-1`, 1 for `i+1`, 0 for all others."""
    return int(code[1:]) if code[0] == "i" and len(code) > 1 else 0


def shifted(code: str, further: int) -> str:
    """The code of a row that stands so many rows after `i`: `i-n` or `i+n`."""
    total = shift(code) + further
    return f"i{total:+d}" if total else "i"


def partners(code: str, start: int, stop: int) -> np.ndarray:
    """The partners of columns [start, stop) under the code `~h/n`; columns from n on are their own.

    `~4/8` pairs column 0 with 4, 1 with 5, ...; `~1/8` pairs 0 with 1, 2 with 3, ...
    """
    (apart, n), cols = map(int, code[1:].split("/")), np.arange(start, stop)
    ahead = cols % max(2 * apart, 1) < apart
    return np.where(cols >= n, cols, np.where(ahead, cols + apart, cols - apart))


def _common(a: Span, b: Span) -> Span:
    return max(a[0], b[0]), min(a[1], b[1])
