"""Interval arithmetic that allows for rounding: bounds on what any program computes with doubles.

Each operation widens its result by `SLACK` of the size of its terms. A double is rounded by at most
1.1e-16 of its size, so this leaves room for thousands of roundings where a program makes fewer than
a hundred: sums of up to 40 terms in any order, and functions that are wrong in a few last bits.
The bounds are computed with doubles, too, and `SLACK` covers their rounding as well.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

SLACK = 1e-12  # of the size of the terms of an operation
TINY = 1e-100  # the same for numbers so small that doubles lose digits
SILU_LOWEST = -1.2784645427610738  # where SiLU is least

Array = np.ndarray


@dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`, cell by cell. NaN: nothing is known."""

    low: Array
    high: Array

    @property
    def size(self) -> Array:
        """The largest absolute value."""
        return np.asarray(np.maximum(abs(self.low), abs(self.high)))

    @property
    def middle(self) -> Array:
        """One number of each cell."""
        return self.low / 2 + self.high / 2

    @property
    def radius(self) -> Array:
        """The distance of its ends from its middle."""
        return self.high / 2 - self.low / 2

    def __getitem__(self, at: Any) -> "Interval":
        return Interval(self.low[at], self.high[at])

    def __add__(self, other: "Interval") -> "Interval":
        """The sum of terms that were widened before."""
        return Interval(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Interval") -> "Interval":
        ends = [x * y for x in (self.low, self.high) for y in (other.low, other.high)]
        low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
        return widened(low, high, np.maximum(abs(low), abs(high)))

    def __matmul__(self, matrix: Array) -> "Interval":
        up, down = np.maximum(matrix, 0), np.minimum(matrix, 0)
        low, high = self.low @ up + self.high @ down, self.high @ up + self.low @ down
        return widened(low, high, self.size @ abs(matrix))


def exactly(x: Array) -> Interval:
    """Known numbers."""
    return Interval(x, x)


def widened(low: Array, high: Array, size: Array) -> Interval:
    """An interval with room for the rounding of terms of a size."""
    room = SLACK * size + TINY
    return Interval(low - room, high + room)


def any_of(x: Interval, axis: int) -> Interval:
    """The range of all cells along an axis."""
    return Interval(x.low.min(axis), x.high.max(axis))


def exp(x: Interval) -> Interval:
    """e^x"""
    low, high = np.exp(x.low), np.exp(x.high)
    return widened(low, high, high)


def inverse(x: Interval) -> Interval:
    """1 / x, of positive numbers; NaN of others."""
    low = np.where(x.low > 0, x.low, np.nan)
    return widened(1 / x.high, 1 / low, 1 / low)


def normed(x: Interval, gain: Array, eps: float) -> Interval:
    """RMSNorm."""
    crosses = (x.low <= 0) & (x.high >= 0)
    least = np.where(crosses, 0, np.minimum(x.low**2, x.high**2))
    mean = widened(least.mean(-1), (x.size**2).mean(-1), (x.size**2).mean(-1))
    low = np.maximum(mean.low, 0) + eps  # a sum of squares has no negative terms
    scale = inverse(Interval(np.sqrt(low), np.sqrt(mean.high + eps)))[..., None]
    return x * scale * exactly(gain)


def silu(x: Interval) -> Interval:
    """x / (1 + e^-x), which falls and then rises."""
    ends = [end / (1 + np.exp(-end)) for end in (x.low, x.high)]
    lowest = SILU_LOWEST / (1 + np.exp(-SILU_LOWEST))
    dips = (x.low < SILU_LOWEST) & (x.high > SILU_LOWEST)
    low = np.where(dips, lowest, np.minimum(*ends))
    return widened(low, np.maximum(*ends), x.size)
