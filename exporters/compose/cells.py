"""Cells of a workbook as a person calls them: by address, `Machine!B20`, or by table and place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError, UnknownNameError
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.formula import InWords, readable
from cellformer.exporters.compose.address import address, index
from cellformer.exporters.compose.book import Book, Entry, Place, Reading

ADDRESS = re.compile(
    r"\s*(?:'(?P<quoted>(?:[^']|'')+)'|(?P<plain>[^'!]+))\s*!"
    r"\s*\$?(?P<column>[A-Za-z]{1,3})\$?(?P<row>[1-9]\d{0,6})\s*"
)


def is_address(text: str) -> bool:
    """Whether a text is meant as a cell of a sheet."""
    return "!" in text


def position(book: Book, text: str) -> tuple[str, int, int]:
    """The sheet, row and column of an address, in any case. Raises InputError."""
    match = ADDRESS.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not the address of a cell; write for example Sheet!B20")
    name = (match["quoted"] or match["plain"]).replace("''", "'").strip()
    sheets = {sheet.casefold(): sheet for sheet in book.sheets}
    if name.casefold() not in sheets:
        raise UnknownNameError("sheet", name, book.sheets)
    return sheets[name.casefold()], int(match["row"]) - 1, index(match["column"].upper())


def owner(book: Book, sheet: str, row: int, col: int) -> tuple[Block, Span] | None:
    """The block or table of a sheet's cell, and the cell's place in it."""
    regions = [place for place, _ in book.sheets[sheet].regions]
    for place in (*regions, *book.places.values(), *book.shown.values()):
        if place.sheet == sheet and place.holds(row, col):
            return place.block, place.own(row, col)
    return None


def of_table(book: Book, text: str) -> tuple[str, int, int] | None:
    """The sheet and place of a cell of a sheet's own table, `machine.stage[0,1]`; None for other
    names."""
    match = re.fullmatch(r"\s*([\w.]+)\s*\[\s*(\d+)\s*,\s*(\d+)\s*\]\s*", text)
    place: Place | None = book.shown.get(match[1]) if match else None
    if match is None or place is None:
        return None
    i, j = int(match[2]), int(match[3])
    if not place.block.has(i, j):
        rows, cols = place.block.shape
        raise InputError(
            f"{text.strip()} is outside its table, which has {rows} rows and {cols} columns"
        )
    return place.sheet, *place.cell(i, j)


@dataclass(frozen=True)
class SheetCell:
    """A cell of a sheet with its value and formula, like `Cell` for a graph."""

    reading: Reading
    sheet: str
    row: int
    col: int

    @property
    def book(self) -> Book:
        return self.reading.book

    @property
    def address(self) -> str:
        return address(self.sheet, Rect(self.row, self.row + 1, self.col, self.col + 1))

    @cached_property
    def _of(self) -> tuple[Block, Span] | None:
        return owner(self.book, self.sheet, self.row, self.col)

    @property
    def _entry(self) -> Entry | None:
        return self.book.sheets[self.sheet].entries.get((self.row, self.col))

    @property
    def _formula(self) -> Expression | None:
        return self._entry.formula if self._entry else None

    @property
    def name(self) -> str:
        """Its table and place; if it is in no table, its address."""
        if self._of is None:
            return self.address
        block, (i, j) = self._of
        return f"{block.name}[{i},{j}]"

    @property
    def value(self) -> Any:
        """Its value; "" if it is blank. A number that is typed in is the graph's, which an edit
        may have changed."""
        block = self._of[0] if self._of else None
        if block and not block.computed and block.name in self.book.graph.blocks:
            found = self.reading.in_block(self.book.places[block.name], self.row, self.col)
        else:
            found = self.reading.cell(self.sheet, self.row, self.col)
        return "" if found is None else found

    @property
    def formula(self) -> str | None:
        """Its formula with names; None if it holds a value."""
        if self._of and self._of[0].op:
            return readable(self._of[0], *self._of[1])
        names = _Named(self._of[0].name if self._of else "", self.book)
        return None if self._formula is None else self._formula.text(names)

    @property
    def a1(self) -> str | None:
        """Its formula as in the workbook; None if it holds a value."""
        if self._of and self._of[0].op:
            return f"={self.book.formulas(self._of[0])(*self._of[1])}"
        return None if self._formula is None else f"={self.book.text(self._formula, self.sheet)}"

    @property
    def precedents(self) -> list[Self]:
        """The cells that its formula reads; of blank cells, only those that you can type into."""
        found = dict.fromkeys((sheet, *at) for sheet, rect in self.reads() for at in rect.cells())
        cells = (type(self)(self.reading, *at) for at in found)
        return [cell for cell in cells if cell.exists]

    @property
    def exists(self) -> bool:
        """Whether there is a cell, though it may be blank, and no empty paper."""
        if self._of and self._of[0].op:
            return self._of[0].has(*self._of[1])
        return self._entry is not None or self.value != ""

    def reads(self) -> Iterator[tuple[str, Rect]]:
        """The rectangles of sheets that its formula reads."""
        if self._of and self._of[0].op:
            block, (i, j) = self._of
            yield from (
                self.book.locate(Area(operand, rect))
                for operand, rect in block.reads(Rect(i, i + 1, j, j + 1))
            )
        elif self._formula is not None:
            yield from map(self.book.locate, self._formula.areas())


@dataclass(frozen=True)
class _Named(InWords):
    """The notation with names, also for formulas that read a sheet's cells: by table, row and
    column."""

    book: Book

    def address(self, area: Area) -> str:
        if isinstance(area.grid, Block):
            return super().address(area)
        sheet, (top, bottom, left, right) = self.book.locate(area)
        first = owner(self.book, sheet, top, left)
        last = owner(self.book, sheet, bottom - 1, right - 1)
        if first is None or last is None or first[0] is not last[0]:
            return address(sheet, area.rect)
        (block, (i, j)), (_, (k, m)) = first, last
        return super().address(Area(block, Rect(i, k + 1, j, m + 1)))
