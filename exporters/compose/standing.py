"""Whether cells are still where they were built, by formulas.

A formula that names a cell follows it when it moves, so ROW and COLUMN of the corners of what
stands on a sheet tell whether rows, columns or cells were inserted, deleted or moved; for deleted
cells they are errors. No values are read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.expression import Area, Expression, Function, Look, Notation
from cellformer.engine.cells.functions import ABS, IFERROR, added
from cellformer.engine.cells.values import number
from cellformer.exporters.compose.book import Book, Sheet

ROW, COLUMN = (Function(name, number) for name in ("ROW", "COLUMN"))


@dataclass(slots=True, eq=False)
class Coordinate(Expression):
    """The row or column number of a cell of a sheet, counted from 1."""

    function: Function
    cell: Area

    def text(self, notation: Notation) -> str:
        return notation.call(self.function, [notation.address(self.cell)])[0]

    def value(self, look: Look) -> Any:
        return float(self.built)

    def areas(self) -> Iterator[Area]:
        yield self.cell

    @property
    def built(self) -> int:
        """Its value as built."""
        rect = self.cell.rect
        return 1 + (rect.top if self.function is ROW else rect.left)


def moved(sheet: Sheet, area: Rect) -> Expression:
    """The number of rows and columns that the corners of an area have moved, or 1 if one is
    deleted."""
    first, last = sheet[area.top, area.left], sheet[area.bottom - 1, area.right - 1]
    corners = (first,) if area.size == 1 else (first, last)
    ways = [Coordinate(way, cell) for cell in corners for way in (ROW, COLUMN)]
    return IFERROR(added(ABS(way - way.built) for way in ways), 1)


def gone(sheet: Sheet) -> Expression:
    """Whether a sheet's title, in its first cell, is gone."""
    return IFERROR(Coordinate(ROW, sheet[0, 0]), 0) == 0


def standing(book: Book, sheet: Sheet, edges: bool) -> dict[Rect, str]:
    """The checks of a sheet, by their places: its title, its blocks, and its `edges`, the lowest
    and the rightmost other text or number."""
    found = {Rect(0, 1, 0, 1): "title"}
    for place in book.places.values():
        if place.sheet == sheet.name:
            found.setdefault(place.rect(place.block.whole), place.block.name)
    put = [at for at, entry in sheet.entries.items() if entry.formula is None]
    for what, key in (("lowest", 0), ("furthest right", 1)) if edges else ():
        found.setdefault(sheet[max(put, key=lambda at: (at[key], at))].rect, what)
    return found
