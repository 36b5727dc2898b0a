"""Placing the words of a map beside their points, without overlaps.

Each word in turn takes the first free side of its point; a word without a free side is left out.
Sizes are those of a chart, in points. Its axes may be somewhat longer than the data, so texts are
taken to be larger than they are drawn.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SIDES = ("right", "left", "above", "below")
LETTER, LINE, GAP = 6.5, 13.0, 6.0  # pixels: a letter's width, a line's height, from the point
AXES = (70, 80)  # pixels of a chart's width and height that are not its plot
SHRINK = 0.8  # of the plot that the data surely fills, along each axis


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Whether two rectangles overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


def sides(
    points: np.ndarray,
    texts: Sequence[str],
    size: tuple[int, int],
    allowed: Sequence[str] = SIDES,
) -> list[str]:
    """The side of each point's text, for points [n, 2], or "" if there is no room."""
    at = pixels(points, size).tolist()
    dots = [Box(x - 4, y - 4, x + 4, y + 4) for x, y in at]
    taken: list[Box] = []
    found = []
    for k, ((x, y), text) in enumerate(zip(at, texts, strict=True)):
        others = [*taken, *dots[:k], *dots[k + 1 :]]
        boxes = ((side, box(x, y, text, side)) for side in allowed)
        free = (side for side, own in boxes if not any(map(own.meets, others)))
        side = next(free, "")
        found.append(side)
        if side:
            taken.append(box(x, y, text, side))
    return found


def pixels(points: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The places of points [n, 2] in pixels, y downwards, at most as far apart as in the chart."""
    spread = points.max(axis=0) - points.min(axis=0)
    room = SHRINK * (np.array(size, dtype=float) - AXES)
    scaled = (points - points.min(axis=0)) / np.where(spread > 0, spread, 1) * room
    return np.column_stack([scaled[:, 0], room[1] - scaled[:, 1]])


def box(x: float, y: float, text: str, side: str) -> Box:
    """The rectangle of a text on one side of its point."""
    width = LETTER * len(text)
    if side in ("right", "left"):
        left = x + GAP if side == "right" else x - GAP - width
        return Box(left, y - LINE / 2, left + width, y + LINE / 2)
    top = y - GAP - LINE if side == "above" else y + GAP
    return Box(x - width / 2, top, x + width / 2, top + LINE)
