"""Ranges: all formulas of a book in rectangles of like cells, in the order of computation.

A rectangle holds only numbers or only texts, of one block or of none. What depends on the generated
words of a sentence comes after what depends on the given ones. So the first rectangle that a
program computes wrongly is where the error begins.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.expression import Area
from cellformer.exporters.compose.book import Book, Place, Sheet

FRACTION = re.compile(r"\d+\.\d")  # in a text: programs spell so many digits of it, or more
FEW = 100  # cells that are listed sooner than sorted
MOST_COLUMNS = 8  # of cells that read each other, distinguished by column
Kind = tuple[bool, str, bool]  # whether it is a text; the block; whether a sentence goes on there
Apart = Sequence[tuple[str, Rect]]  # areas of sheets
Grids = Mapping[str, NDArray[np.int64]]  # by sheets: the range that each cell is of, or -1


class Range(NamedTuple):
    """A rectangle of like cells: where it stands, and how formulas read it."""

    sheet: str
    rect: Rect
    area: Area
    texts: bool
    n_cells: int  # blanks not counted
    chained: bool = False  # whether some of its cells read others of them


class _Found(NamedTuple):
    """A range, and the areas that its formulas read."""

    range: Range
    reads: list[tuple[str, Rect]]
    rank: tuple[bool, int]  # where it stands among others that do not wait for each other


def of_formulas(book: Book, apart: Apart) -> list[Range]:
    """Every range of formulas, except those on the first sheet in `apart`, and those that depend on
    the areas there."""
    order = {name: k for k, name in enumerate(book.graph.blocks)}
    found = [*_of_regions(book, order)]
    for sheet in book.sheets.values():
        if sheet.name != apart[0][0]:
            found += _of_entries(book, sheet, apart, order)
    found.sort(key=lambda one: one.rank)
    return [found[k].range for k in _waiting(found, book.sheets)]


def of_inputs(book: Book) -> list[Range]:
    """Every range of input cells of blocks."""
    found: list[Range] = []
    for sheet in book.sheets.values():
        owners = _owners(book, sheet)
        typed = {
            at: (isinstance(entry.value, str), owners[at].block.name, False)
            for at, entry in sheet.entries.items()
            if entry.formula is None and at in owners
        }
        for rect, kind in rectangles(typed):
            place = book.places[kind[1]]
            found.append(
                Range(
                    sheet.name,
                    rect,
                    Area(place.block, place.own_rect(rect), range=True),
                    kind[0],
                    rect.size,
                )
            )
    return found


def _of_regions(book: Book, order: Mapping[str, int]) -> Iterator[_Found]:
    """The ranges of computed blocks that are written as regions."""
    for place in (p for sheet in book.sheets.values() for p, _ in sheet.regions if p.block.op):
        block, (_, rows, _, cols) = place.block, place.block.whole
        given = book.n_given if block.axes[0] == "token" else 0
        ends = [0, given, rows] if 0 < given < rows else [0, rows]
        for later, (top, bottom) in enumerate(pairwise(ends)):
            seen = block.mask.keys(bottom - 1, cols)[1] if block.partial else cols
            rect = Rect(top, bottom, 0, seen)
            n_cells = int(block.mask.seen(rect).sum()) if block.partial else rect.size
            area = Area(block, rect, range=True)
            there = Range(place.sheet, place.rect(rect), area, False, n_cells)
            places = [(book.places[operand.name], cells) for operand, cells in block.reads(rect)]
            reads = [(other.sheet, other.rect(cells)) for other, cells in places]
            yield _Found(there, reads, (later > 0, order.get(block.name, 0)))


def _of_entries(
    book: Book, sheet: Sheet, apart: Apart, order: Mapping[str, int]
) -> Iterator[_Found]:
    """The ranges of formulas that are single entries."""
    reads = {
        at: [book.locate(area) for area in entry.formula.areas()]
        for at, entry in sheet.entries.items()
        if entry.formula is not None
    }
    owners, kinds = _owners(book, sheet), dict[Span, Kind]()
    for at in _independent(reads, sheet.name, apart):
        place = owners.get(at)
        held = book.clean.cell(sheet.name, *at)
        text, name = isinstance(held, str), place.block.name if place else ""
        if text and FRACTION.search(held):
            name = f"{name} {at}"  # alone: of it a part is compared
        kinds[at] = text, name, place is not None and _goes_on(book, place, at)
    last = len(order) + [*book.sheets].index(sheet.name)

    def found(rect: Rect, kind: Kind) -> _Found:
        read = [one for at in rect.cells() for one in reads[at]]
        rank = (kind[2], order[kind[1]]) if kind[1] in order else (kind[2], last)
        chained = any(name == sheet.name and rect.meets(other) for name, other in read)
        own = Range(sheet.name, rect, sheet[rect].as_range, kind[0], rect.size, chained)
        return _Found(own, read, rank)

    for rect, kind in rectangles(kinds):
        one, width = found(rect, kind), rect.right - rect.left
        if not one.range.chained or width > MOST_COLUMNS or rect.bottom - rect.top == 1:
            yield one
            continue
        yield from (
            found(rect._replace(left=left, right=left + 1), kind)
            for left in range(rect.left, rect.right)
        )


def _goes_on(book: Book, place: Place, at: Span) -> bool:
    """Whether a cell of a block belongs to a generated word."""
    return place.block.axes[0] == "token" and 0 < book.n_given <= place.own(*at)[0]


def _owners(book: Book, sheet: Sheet) -> dict[Span, Place]:
    """The block of each cell, for blocks whose cells are single entries."""
    places = [p for p in book.places.values() if p.sheet == sheet.name and not p.block.op]
    regions = {place.block.name for place, _ in sheet.regions}
    return {
        at: place
        for place in places
        if place.block.name not in regions
        for at in place.rect(place.block.whole).cells()
    }


def _independent(
    reads: Mapping[Span, Sequence[tuple[str, Rect]]], sheet: str, apart: Apart
) -> list[Span]:
    """The cells of a sheet that are not of the areas `apart`, and do not depend on them, directly
    or by other cells of the sheet."""
    sheets = {name for name, _ in apart}

    def is_apart(name: str, rect: Rect) -> bool:
        return name in sheets and any(name == there and rect.meets(area) for there, area in apart)

    out = {
        at
        for at, areas in reads.items()
        if is_apart(sheet, Rect(at[0], at[0] + 1, at[1], at[1] + 1))
        or any(is_apart(*one) for one in areas)
    }
    rest, n_before = {at: areas for at, areas in reads.items() if at not in out}, 0
    while len(out) > n_before:
        n_before = len(out)
        for at, areas in rest.items():
            if any(name == sheet and _holds(rect, out) for name, rect in areas):
                out.add(at)
        rest = {at: areas for at, areas in rest.items() if at not in out}
    return [*rest]


def _holds(rect: Rect, cells: Iterable[Span]) -> bool:
    return any(rect.top <= i < rect.bottom and rect.left <= j < rect.right for i, j in cells)


# --- rectangles ---------------------------------------------------------------------------


def rectangles(kinds: Mapping[Span, Kind]) -> list[tuple[Rect, Kind]]:
    """Cells as rectangles of one kind: of joined rows, or of joined columns, whichever are
    fewer."""
    across = _joined(kinds)
    turned = _joined({(col, row): kind for (row, col), kind in kinds.items()})
    down = [(Rect(left, right, top, bottom), k) for (top, bottom, left, right), k in turned]
    return min(across, down, key=len)


def _joined(kinds: Mapping[Span, Kind]) -> list[tuple[Rect, Kind]]:
    """Rectangles made of runs in a row and the equal runs below them."""
    runs: list[tuple[int, int, int, Kind]] = []
    for row, col in sorted(kinds):
        kind = kinds[row, col]
        if runs and runs[-1][0] == row and runs[-1][2] == col and runs[-1][3] == kind:
            runs[-1] = *runs[-1][:2], col + 1, kind
        else:
            runs.append((row, col, col + 1, kind))
    found: list[tuple[Rect, Kind]] = []
    growing = dict[Any, int]()  # the last rectangle of these columns and kind
    for row, left, right, kind in runs:
        k = growing.get((left, right, kind))
        if k is not None and found[k][0].bottom == row:
            found[k] = found[k][0]._replace(bottom=row + 1), kind
        else:
            growing[left, right, kind] = len(found)
            found.append((Rect(row, row + 1, left, right), kind))
    return found


# --- their order --------------------------------------------------------------------------


def _waiting(found: Sequence[_Found], sheets: Iterable[str]) -> list[int]:
    """The indices of ranges, each after those that it reads. Generated words depend on each other
    in a circle: there, blocks keep their order."""
    grids = _grids(found, sheets)
    known = dict[tuple[str, Rect], set[int]]()
    before: list[list[int]] = []
    for number, one in enumerate(found):
        wanted: set[int] = set()
        for sheet, rect in one.reads:
            if (sheet, rect) not in known:
                known[sheet, rect] = _there(grids[sheet][rect.slices])
            wanted |= known[sheet, rect]
        before.append(sorted(k for k in wanted if k < number or not one.rank[0]))
    order: list[int] = []
    begun = [False] * len(found)
    for first in range(len(found)):
        stack = [] if begun[first] else [(first, iter(before[first]))]
        begun[first] = True
        while stack:
            k, others = stack[-1]
            following = next((other for other in others if not begun[other]), None)
            if following is None:
                order.append(k)
                stack.pop()
            else:
                begun[following] = True
                stack.append((following, iter(before[following])))
    return order


def _there(cells: NDArray[np.int64]) -> set[int]:
    """The indices of the ranges in some cells; -1 stands for none."""
    return {*(cells.ravel() if cells.size < FEW else np.unique(cells)).tolist()} - {-1}


def _grids(found: Sequence[_Found], sheets: Iterable[str]) -> Grids:
    """The index of each cell's range."""
    ends = dict.fromkeys(sheets, (0, 0))
    for one in found:
        (rows, cols), (sheet, rect, *_) = ends[one.range.sheet], one.range
        ends[sheet] = max(rows, rect.bottom), max(cols, rect.right)
    grids = {sheet: np.full(end, -1, np.int64) for sheet, end in ends.items()}
    for k, one in enumerate(found):
        grids[one.range.sheet][one.range.rect.slices] = k
    return grids
