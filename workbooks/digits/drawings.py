"""The drawings of digits: 1,797 images of 8 x 8 pixels with values 0 to 16, from scikit-learn.

They are the test set of UCI's *Optical Recognition of Handwritten Digits* (Alpaydin & Kaynak 1998;
CC BY 4.0), as `sklearn.datasets.load_digits` has it: 13 people's digits, scanned as 32 x 32 black
and white pixels, of which each value counts 4 x 4. digits.txt has a line for each: its digit, and
64 pixels, row by row, in the characters 0 to 9 and a to g.
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

FILE = Path(__file__).with_name("digits.txt")
LEVELS = "0123456789abcdefg"  # the characters of values 0 to 16
SIDE, MOST = 8, len(LEVELS) - 1  # pixels of a side; the value of full ink
N_DIGITS = 10
N_HELD_OUT, SPLIT = 360, 2026  # drawings that training never sees, and the seed that chooses them


class Drawings(NamedTuple):
    """Some drawings, and the digit that each means."""

    pixels: np.ndarray  # [n, SIDE, SIDE], whole numbers from 0 to MOST
    digits: np.ndarray  # [n]


@lru_cache(maxsize=1)
def every() -> Drawings:
    """All of them, in the file's order."""
    lines = FILE.read_text(encoding="ascii").splitlines()
    pixels = np.array([[LEVELS.index(c) for c in line[2:]] for line in lines])
    return Drawings(pixels.reshape(-1, SIDE, SIDE), np.array([int(line[0]) for line in lines]))


def split() -> tuple[Drawings, Drawings]:
    """The drawings to learn from, and the held-out ones, each in the file's order."""
    found = every()
    order = np.random.default_rng(SPLIT).permutation(len(found.digits))
    parts = np.sort(order[N_HELD_OUT:]), np.sort(order[:N_HELD_OUT])
    learnt, held_out = (Drawings(found.pixels[at], found.digits[at]) for at in parts)
    return learnt, held_out
