"""Worksheets written by hand: for machines that are no transformer, tables of typed numbers and of
formulas, each formula beside the value that numpy has for it.

A `Workbook` has sheets, a `Worksheet` takes text and tables from top to bottom, and a `Table` knows
where its cells stand, so that formulas are put together from `table.at(i, j)` and its ranges. A
table's name is the name of its range in the workbook, and what an edit (`Try`) points to.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from engine.cells.access import Rect
from engine.cells.block import Block
from exporters.address import a1, quoted
from exporters.book import Book, Chart, Place, Sheet
from exporters.model_book import one
from exporters.pages import start
from exporters.story import Story

FIRST_ROW = 4  # below title, links and purpose
Formula = str | Callable[[int, int], str]  # without "="; of one cell, or by row and column


@dataclass(frozen=True)
class Table:
    """Where a table stands, and its values: [rows, columns] of numbers or texts."""

    sheet: str
    rect: Rect
    values: np.ndarray

    def at(self, i: int = 0, j: int = 0, fixed: bool = False) -> str:
        """The address of one cell; `fixed` with dollar signs."""
        return self._text(one(self.rect.top + i, self.rect.left + j), fixed)

    def row(self, i: int, fixed: bool = False) -> str:
        """The range of a row."""
        top, _, left, right = self.rect
        return self._text(Rect(top + i, top + i + 1, left, right), fixed)

    def column(self, j: int, fixed: bool = False) -> str:
        """The range of a column."""
        top, bottom, left, _ = self.rect
        return self._text(Rect(top, bottom, left + j, left + j + 1), fixed)

    def all(self, fixed: bool = True) -> str:
        """The whole range."""
        return self._text(self.rect, fixed)

    def part(self, rows: slice = slice(None), cols: slice = slice(None)) -> Rect:
        """A rectangle of the sheet: the cells of some rows and columns. Charts take these."""
        top, left = self.rect.top, self.rect.left
        r0, r1, _ = rows.indices(self.values.shape[0])
        c0, c1, _ = cols.indices(self.values.shape[1])
        return Rect(top + r0, top + r1, left + c0, left + c1)

    def _text(self, rect: Rect, fixed: bool) -> str:
        text = a1(rect, "all" if fixed else "", rect.size > 1)
        return f"{quoted(self.sheet)}!{text}"


def near(cells: str, value: float | str = 1) -> str:
    """A formula for whether all of a range is a number, to within 1e-9, for `Workbook.checks`."""
    return f"AND(MAX({cells})-{value}<0.000000001,{value}-MIN({cells})<0.000000001)"


class Comparison(NamedTuple):
    """A number that the source prints, the cell that recomputes it, and why they differ."""

    what: str
    printed: float
    table: Table
    i: int = 0
    j: int = 0
    note: str = ""
    decimals: int = 2  # that the source prints


class Workbook:
    """A workbook that is put together by hand."""

    def __init__(self, title: str):
        self.book = Book(title)
        self.book.sheet(start.SHEET)

    def sheet(self, name: str, purpose: str) -> "Worksheet":
        """A new sheet, after those there are; the purpose is one line."""
        return Worksheet(self.book, self.book.sheet(name), purpose)

    def compare(self, rows: Sequence[Comparison]) -> None:
        """The sheet Printed: what the source prints, what the cells give, and the difference."""
        ws = self.sheet(
            "Printed", "what the source prints: printed, recomputed, difference, and why"
        )
        ws.widths({0: 3, 1: 56, 2: 11, 3: 12, 4: 11, 5: 3, 6: 80})
        for col, head in enumerate(("", "what", "printed", "recomputed", "difference", "", "note")):
            ws.sheet.put(ws.cursor, col, head, "head" if 2 <= col <= 4 else "block")
        for k, (what, printed, table, i, j, note, decimals) in enumerate(rows, ws.cursor + 1):
            value = float(table.values[i, j])
            ws.sheet.put(k, 1, what)
            ws.sheet.put(k, 2, printed, "printed")
            ws.calc(k, 3, table.at(i, j), value, "live")
            ws.calc(k, 4, f"D{k + 1}-C{k + 1}", value - printed, "change")
            ws.sheet.put(k, 6, note, "note")
            limit = f"beyond {0.5 * 10.0**-decimals * (1 + 1e-6):.10f}"
            ws.sheet.scales.append((one(k, 4), limit))
        ws.cursor += len(rows) + 2

    def checks(self, rows: Sequence[tuple[str, str]]) -> None:
        """The sheet Check: claims that hold as built, each with a formula that says whether."""
        ws = self.sheet("Check", "what should hold whatever you type")
        ws.widths({0: 3, 1: 90, 2: 10})
        for k, (claim, formula) in enumerate(rows, ws.cursor):
            ws.sheet.put(k, 1, claim)
            ws.calc(k, 2, f'IF({formula},"ok","no")', "ok", "status")
        area = Rect(ws.cursor, ws.cursor + len(rows), 2, 3)
        ws.sheet.scales.append((area, "unlike ok"))
        ws.cursor += len(rows) + 2

    def done(self, story: Story) -> Book:
        """The book, with its start sheet and the ways from sheet to sheet."""
        names = list(self.book.sheets)
        for name, following in zip(names[1:], [*names[2:], start.SHEET], strict=True):
            sheet = self.book.sheets[name]
            sheet.link(1, 2, f"next: {following} →", f"{quoted(following)}!A1")
        start.add(self.book, story)
        return self.book


class Worksheet:
    """One sheet, filled from top to bottom; `cursor` is the next free row."""

    def __init__(self, book: Book, sheet: Sheet, purpose: str):
        self.book, self.sheet, self.cursor = book, sheet, FIRST_ROW
        sheet.purpose = purpose
        sheet.put(0, 0, f"{book.title} · {sheet.name}", "title")
        sheet.link(1, 0, "← Start", "Start!A1")
        sheet.put(2, 0, purpose, "note")
        sheet.frozen = (3, 0)
        self.widths({0: 16})

    def widths(self, widths: Mapping[int, float]) -> None:
        """Column widths, in characters."""
        self.sheet.widths = {**self.sheet.widths, **widths}

    def heading(self, text: str) -> None:
        """A heading, with a blank row above it."""
        self.cursor += 1
        self.sheet.put(self.cursor, 0, text, "heading")
        self.cursor += 1

    def text(self, *lines: str, style: str = "text") -> None:
        """Lines of text. Equations have the style "equation", remarks "note"."""
        for line in lines:
            self.sheet.put(self.cursor, 0, line, style)
            self.cursor += 1

    def table(
        self,
        name: str,
        values: Any,
        formula: Formula | None = None,
        rows: Sequence[str | int] = (),
        cols: Sequence[str | int] = (),
        title: str = "",
        style: str = "",
        beside: Table | None = None,
        left: int = 1,
    ) -> Table:
        """A table at the cursor, or to the right of another one, with labels of rows and columns.

        Without `formula` its cells are typed: blue, and to be typed over. With one they are
        computed: `formula(i, j)` is the text of a cell, and `values` [rows, columns] what numpy has
        for it. `style` is one of theme's; "weight", "activation", "attention", "readout" and
        "input" are fills.
        """
        array = np.array(values, dtype=object)
        array = array.reshape(1, 1) if array.ndim == 0 else np.atleast_2d(array)
        top = self.cursor + bool(title) + bool(cols)
        if beside:
            top, left = beside.rect.top, beside.rect.right + 2
        height, width = array.shape
        found = Table(self.sheet.name, Rect(top, top + height, left, left + width), array)
        if title:
            self.sheet.put(top - 1 - bool(cols), left, title, "block")
        for j, label in enumerate(cols):
            self.sheet.put(top - 1, left + j, label, "label")
        for i, label in enumerate(rows):
            self.sheet.put(top + i, left - 1, label, "row label")
        for i, j in np.ndindex(*array.shape):
            cell: Any = array[i, j]
            value: str | float = cell if isinstance(cell, str) else float(cell)
            if (top + i, left + j) in self.sheet.entries:
                raise ValueError(f"{name} stands on something else in row {top + i + 1}")
            if formula is None:
                self.sheet.put(top + i, left + j, value, _style(style or "input", "blue"))
            else:
                text = formula if isinstance(formula, str) else formula(i, j)
                self.calc(top + i, left + j, text, value, style or "activation")
        block = Block(name, (height, width), ("", ""), "setting")
        if name in self.book.places or re.fullmatch(r"[A-Za-z]{1,3}\d+|[rRcC]", name):
            raise ValueError(f"{name} is another table's name, or a cell's")
        self.book.places[name] = Place(block, self.sheet.name, top, left, False)
        self.cursor = max(self.cursor, top + height + 1)
        return found

    def calc(self, row: int, col: int, formula: str, value: str | float, style: str) -> None:
        """One formula; addresses on this sheet go without its name, and colours follow."""
        own = re.escape(f"{quoted(self.sheet.name)}!")
        text = re.sub(rf"(?<![\w']){own}", "", formula)
        self.sheet.calc(row, col, text, value, _style(style, "green" if "!" in text else "black"))

    def shade(self, area: Rect, kind: str) -> None:
        """Colour cells by value: "scale" (0 is white), "diverging" (about 0), "bar"."""
        self.sheet.scales.append((area, kind))

    def chart(self, chart: Chart) -> None:
        """A chart; it stands where its row and column say."""
        self.sheet.charts.append(chart)


def _style(style: str, font: str) -> str:
    """A fill with the font that says what a cell is; other styles as they are."""
    fills = ("weight", "activation", "attention", "readout", "input")
    return f"{style} {font}" if style in fills else style
