"""Sums as tokens: `0 a0..a9 0 0 b0..b9 0`, then the eleven digits of the sum; ones come first.

So the digit of a sum at place k stands 22 places after that of a, and 10 after that of b, whatever
k is.
"""

from collections.abc import Iterable

import numpy as np

DIGITS = "0123456789"
PLACES = 10  # digits of a number
FIRST = 2 * PLACES + 3  # the position of the token after which the first digit is written
LENGTH = FIRST + 1 + PLACES + 1


def tokens(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The ids of sums of digits [n, PLACES], ones first: [n, LENGTH]."""
    n = len(a)
    ids = np.zeros((n, LENGTH), int)
    ids[:, 1 : PLACES + 1], ids[:, PLACES + 3 : FIRST] = a, b
    carry = np.zeros(n, int)
    for k in range(PLACES):
        total = a[:, k] + b[:, k] + carry
        ids[:, FIRST + 1 + k], carry = total % 10, total // 10
    ids[:, -1] = carry
    return ids


def digits(numbers: Iterable[int]) -> np.ndarray:
    """The digits of numbers, ones first: [n, PLACES]."""
    return np.array([[x // 10**k % 10 for k in range(PLACES)] for x in numbers])


def drawn(rng: np.random.Generator, n: int) -> np.ndarray:
    """Sums to learn from: [n, LENGTH]. Any digits; in three of ten, digits that make nine, which
    pass a carry on; in three of ten, shorter numbers."""
    shape = (n, PLACES)
    a, b = rng.integers(0, 10, shape), rng.integers(0, 10, shape)
    nine = (rng.random((n, 1)) < 0.3) & (rng.random(shape) < rng.random((n, 1)))
    b = np.where(nine, 9 - a, b)
    short, place = rng.random((n, 1)) < 0.3, np.arange(PLACES)
    a, b = (np.where(short & (place >= rng.integers(0, PLACES + 1, (n, 1))), 0, x) for x in (a, b))
    return tokens(a, b)
