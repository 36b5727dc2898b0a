"""Boxes: few rectangles of a book's sheets that together hold all ranges of formulas.

Programs take as long for a small range as for a larger one. A box holds cells of ranges alone: a
formula that a reader adds elsewhere cannot make up for one that was typed over.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.block import Block
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.ranges import Range

RECENT = 8  # boxes that a range may join


Box = tuple[str, Rect, int]  # a rectangle of a sheet, and how many formulas it holds


def boxes(book: Book, ranges: Sequence[Range], blank: Mapping[str, Collection[Span]]) -> list[Box]:
    """The boxes of some ranges, given the cells of each sheet that the reader fills in."""
    found = list[Box]()
    by_sheet = sorted(ranges, key=lambda one: (one.sheet, one.rect))
    for name, here in groupby(by_sheet, key=lambda one: one.sheet):
        found += _of_sheet(book, name, [*here], blank.get(name, ()))
    return found


def _of_sheet(
    book: Book, name: str, ranges: Sequence[Range], blank: Collection[Span]
) -> Iterator[Box]:
    """The boxes of a sheet. A range joins the first recent box with which it fills a rectangle."""
    size = max(one.rect.bottom for one in ranges), max(one.rect.right for one in ranges)
    held, free = np.zeros(size, bool), np.zeros(size, bool)
    for one in ranges:
        held[one.rect.slices], free[one.rect.slices] = _held(book, one), True
    for at in blank:
        held[at] = free[at] = False
    found = list[Rect]()
    for one in ranges:
        for k in range(max(0, len(found) - RECENT), len(found)):
            joined = _joined(found[k], one.rect)
            if free[joined.slices].all():
                found[k] = joined
                break
        else:
            found.append(one.rect)
    yield from ((name, rect, int(held[rect.slices].sum())) for rect in found)


def _held(book: Book, one: Range) -> NDArray[np.bool_] | bool:
    """Whether each cell of a range holds a formula: beyond a block's mask there is none."""
    block = one.area.grid
    if not isinstance(block, Block) or not block.partial:
        return True
    seen = block.mask.seen(one.area.rect)
    return seen.T if book.places[block.name].turned else seen


def _joined(one: Rect, other: Rect) -> Rect:
    return Rect(
        min(one.top, other.top),
        max(one.bottom, other.bottom),
        min(one.left, other.left),
        max(one.right, other.right),
    )
