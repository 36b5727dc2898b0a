"""Formulas that were typed over: the first cell that held a formula and no longer does.

ISFORMULA of a range is known to Excel and LibreOffice, which count the formulas of few large boxes,
and look for the place only if a box holds another number than as built. Others know ISFORMULA of a
single cell: for these, small workbooks have formulas that add it for `EACH` cells, each times
another power of two, so that what is missing from the sum tells the cell. To open, these take
LibreOffice as long as a formula for every fifth cell. The cells are those of Digest's ranges, one
after the other. A formula that another one replaced is not noticed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine.cells.access import Mask, Rect, Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import (
    Area,
    Expression,
    Function,
    Look,
    Notation,
    expression,
)
from cellformer.engine.cells.functions import IF, IFERROR, INDEX, MATCH, MAX, SUM
from cellformer.exporters.compose.address import column, quoted
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.boxes import Box, boxes
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.ranges import Range

MOST, MOST_SINGLE = 1_000_000, 2_500  # formulas of a workbook: of ranges, and of single cells
TOGETHER = 40  # boxes, or ranges, of a formula
EACH = 48  # cells of a formula: the sum of so many powers of two has 15 digits
ISFORMULA = Function("ISFORMULA", lambda x: True)
Piece = tuple[Range, int, int]  # of a range, the cells from one index up to another
Numbered = tuple[Area, Area]  # cells that hold 0, 1, 2, ...: down a column, across a row


@dataclass(slots=True, eq=False)
class IsFormula(Expression):
    """Whether a cell holds a formula: as built it does, and of three the first and the last."""

    cell: Area

    def text(self, notation: Notation) -> str:
        return notation.call(ISFORMULA, [notation.address(self.cell)])[0]

    def value(self, look: Look) -> Any:
        return 1.0 if self.cell.rect.size == 1 else np.array([[1.0], [0.0], [1.0]])

    def areas(self) -> Iterator[Area]:
        yield self.cell


class Missing(Expression):
    """A number that tells what is missing: 0 as built."""

    __slots__ = ()

    def value(self, look: Look) -> Any:
        return 0.0


@dataclass(slots=True, eq=False)
class InBoxes(Missing):
    """The number of boxes with another number of formulas than as built. For an array formula."""

    book: Book
    boxes: Sequence[Box]
    numbered: Numbered

    def text(self, notation: Notation) -> str:
        terms = list[str]()
        for name, rect, n in self.boxes:
            here = Here(self.book, name, rect, self.numbered)
            held = here.without_blanks(notation) or ["1"]
            terms.append(f"(SUM({'*'.join([here.is_formula(notation), *held])})<>{n})")
        return f"IFERROR(0+{'+'.join(terms)},0)"

    def areas(self) -> Iterator[Area]:
        yield from self.numbered
        yield from (self.book.sheets[name][rect] for name, rect, _ in self.boxes)


@dataclass(slots=True, eq=False)
class InRanges(Missing):
    """The number of cells from the first without a formula to the last of all ranges; 0 if all
    have one. For an array formula."""

    book: Book
    ranges: Sequence[tuple[Range, int]]  # and how many cells there are from its first to the last
    numbered: Numbered

    def text(self, notation: Notation) -> str:
        terms = [self._missing(found, n, notation) for found, n in self.ranges]
        return f"IFERROR(MAX({','.join(terms)}),0)"

    def _missing(self, found: Range, n: int, notation: Notation) -> str:
        """The number of cells from each cell without a formula to the end of its range, else 0."""
        here = Here(self.book, found.sheet, found.rect, self.numbered)
        height, width = here.size
        rows, cols = here.numbers(notation)
        place = str(n)
        if height > 1:
            place += f"-{rows}" if width == 1 else f"-{rows}*{width}"
        if width > 1:
            place += f"-{cols}"
        seen, block = list[str](), found.area.grid
        if isinstance(block, Block) and block.partial:
            i, j = (cols, rows) if self.book.places[block.name].turned else (rows, cols)
            seen = [*_seen(block.mask, i, j, found.area.rect)]
        held = here.without_blanks(notation)
        return "*".join([f"(1-{here.is_formula(notation)})", f"({place})", *held, *seen])

    def areas(self) -> Iterator[Area]:
        yield from self.numbered
        yield from (found.area for found, _ in self.ranges)


class Here(NamedTuple):
    """A rectangle of a sheet as formulas spell it."""

    book: Book
    sheet: str
    rect: Rect
    numbered: Numbered

    @property
    def size(self) -> Span:
        """Its rows and columns."""
        return self.rect.bottom - self.rect.top, self.rect.right - self.rect.left

    def is_formula(self, notation: Notation) -> str:
        """Whether each cell holds a formula."""
        cells = self.book.sheets[self.sheet][self.rect]
        return notation.call(ISFORMULA, [notation.address(cells)])[0]

    def numbers(self, notation: Notation) -> tuple[str, str]:
        """The numbers of its rows, and of its columns, from 0."""
        (height, width), (down, across) = self.size, self.numbered
        areas = down[:height, 0].as_range, across[0, :width].as_range
        return notation.address(areas[0]), notation.address(areas[1])

    def without_blanks(self, notation: Notation) -> list[str]:
        """The conditions that leave out the cells that the reader fills in."""
        rows, cols = self.numbers(notation)
        blank = _blank(self.book, self.sheet, self.rect)
        return [f"(({rows}<>{i})+({cols}<>{j})>0)" for i, j in blank]


def _seen(mask: Mask, i: str, j: str, rect: Rect) -> Iterator[str]:
    """The conditions under which a query of a rectangle sees a key, given their indices there."""
    i, j = f"{i}+{rect.top}", f"{j}+{rect.left}"
    yield f"({j}{'<' if mask.before else '<='}{i})"
    if mask.window is not None:
        yield f"({j}>{i}-{mask.window})"
    if mask.sentence is not None:
        yield f"({j}>=INT(({i})/{mask.sentence})*{mask.sentence})"


@dataclass(slots=True, eq=False)
class OfCells(Missing):
    """The missing part of the sum of some cells: 0 as built."""

    book: Book
    pieces: Sequence[Piece]

    def text(self, notation: Notation) -> str:
        weight, whole, terms = 1 << EACH, 0, list[str]()
        for found, first, end in self.pieces:
            top, _, left, right = found.rect
            here, blank = quoted(found.sheet), _blank(self.book, found.sheet, found.rect)
            for k in range(first, end):
                i, j = divmod(k, right - left)
                weight >>= 1
                if (i, j) not in blank and _holds(self.book, found, i, j):
                    address = f"{here}!{column(left + j)}{top + i + 1}"
                    terms.append(f"{notation.call(ISFORMULA, [address])[0]}*{weight}")
                    whole += weight
        return f"IFERROR({whole}-({'+'.join(terms)}),0)" if terms else "0"

    def areas(self) -> Iterator[Area]:
        yield from (found.area for found, *_ in self.pieces)


def _holds(book: Book, found: Range, i: int, j: int) -> bool:
    """Whether a cell of a range is not beyond a block's mask."""
    block, rect = found.area.grid, found.area.rect
    if not isinstance(block, Block) or not block.partial:
        return True
    i, j = (j, i) if book.places[block.name].turned else (i, j)
    return block.has(rect.top + i, rect.left + j)


def _blank(book: Book, sheet: str, rect: Rect) -> list[Span]:
    """The cells of a rectangle that the reader fills in, as rows and columns of it."""
    top, bottom, left, right = rect
    cells = _blanks(book, sheet)
    return [(i - top, j - left) for i, j in cells if top <= i < bottom and left <= j < right]


def _blanks(book: Book, sheet: str) -> list[Span]:
    """The cells of a sheet that the reader fills in."""
    return [
        book.places[name].cell(*cell)
        for name, blanks in book.blanks.items()
        for cell in sorted(blanks.cells)
        if book.places[name].sheet == sheet
    ]


def begins(ranges: Sequence[Range]) -> list[int]:
    """The index of the first cell of each range among all cells."""
    return [0, *accumulate(one.rect.size for one in ranges[:-1])]


def add(page: Composer, ranges: Sequence[Range], at: Span, numbered: Numbered) -> Area:
    """Add the formulas that look at all cells of the ranges. Returns the cell with the index of the
    first that holds no formula; it is negative where all do, or nothing is known."""
    top, left = at
    n = sum(one.n_cells for one in ranges)
    known = page.table("typed_over.known", at, (3, 1))
    for k in (0, 2):  # two formulas, and a number between them
        known.put(k, 0, 0, "count")
    page.sheet.put(top + 1, left, 0, "count")
    # no cell shows it: programs differ, and their cells are compared
    takes_ranges = IFERROR(SUM(IsFormula(page.sheet[top : top + 3, left].fixed) * 1), 0) == 2
    found = expression(-1)
    if n <= MOST_SINGLE:
        found = _by_cells(page, ranges, (top + 4, left + 1), takes_ranges)
    if n <= MOST:
        by_ranges = _by_ranges(page, ranges, (top + 4, left), numbered, takes_ranges)
        found = IF(takes_ranges, by_ranges, found)
    return page.show("typed_over.index", (top + 3, left), found, "count", array=True)


def _by_ranges(
    page: Composer, ranges: Sequence[Range], at: Span, numbered: Numbered, takes_ranges: Expression
) -> Expression:
    """Add the formulas of boxes, and of ranges; returns the index of the first cell without one."""
    top, left = at
    blanks = {name: _blanks(page.book, name) for name in page.book.sheets}
    found = boxes(page.book, ranges, blanks)
    some = [found[k : k + TOGETHER] for k in range(0, len(found), TOGETHER)]

    def in_some(k: int, _: int) -> Expression:
        # IronCalc would give some a number, and others an error
        return IF(takes_ranges, InBoxes(page.book, some[k], numbered), 0)

    shape = (len(some), 1)
    in_boxes = page.show("typed_over.boxes", at, in_some, "count", shape, array=True)
    # of SUM, LibreOffice knows that it is one number, and computes one of IF's branches only
    changed = SUM(in_boxes) > 0
    end = sum(one.rect.size for one in ranges)
    rest = [(one, end - begin) for one, begin in zip(ranges, begins(ranges), strict=True)]
    places = [rest[k : k + TOGETHER] for k in range(0, len(rest), TOGETHER)]

    def in_places(k: int, _: int) -> Expression:
        return IF(changed, InRanges(page.book, places[k], numbered), 0)

    at, shape = (top + len(some), left), (len(places), 1)
    furthest = MAX(page.show("typed_over.ranges", at, in_places, "count", shape, array=True))
    return IF(furthest == 0, -1, end - furthest)


def _by_cells(
    page: Composer, ranges: Sequence[Range], at: Span, not_needed: Expression
) -> Expression:
    """Add the formulas of single cells, and powers of two beside them; returns the index of the
    first cell that holds none."""
    top, left = at
    parts = [*_parts(ranges)]

    def of_part(k: int, _: int) -> Expression:
        return IF(not_needed, 0, OfCells(page.book, parts[k]))

    cells = page.show("typed_over.cells", at, of_part, "count", (len(parts), 1), array=True)
    page.sheet.down(top, left + 1, [float(1 << k) for k in range(EACH)], "count")
    missing, powers = cells.as_range, page.sheet[top : top + EACH, left + 1]
    part = page.show(
        "typed_over.part",
        (top - 1, left),
        IFERROR(MATCH(1, (missing > 0) * 1, 0), 0),
        "count",
        array=True,
    )
    return IF(part == 0, -1, EACH * part - MATCH(INDEX(missing, part, 1), powers, 1))


def _parts(ranges: Sequence[Range]) -> Iterator[list[Piece]]:
    """The cells of all ranges, so many at a time."""
    pieces, room = list[Piece](), EACH
    for one in ranges:
        first = 0
        while first < one.rect.size:
            end = min(one.rect.size, first + room)
            pieces.append((one, first, end))
            first, room = end, room - (end - first)
            if room == 0:
                yield pieces
                pieces, room = [], EACH
    if pieces:
        yield pieces
