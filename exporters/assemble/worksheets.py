"""Worksheets: tables of typed numbers and of formulas, for machines that are no transformer.

A `Workbook` has sheets; a `Worksheet` takes headings, texts and tables from top to bottom. A table
is a block of the workbook's graph, and what `typed` and `computed` give is its area, so that a
formula is written over the tables before it and gives both its text and its value:

    exps = ws.computed("exps", (4, 4), lambda i, j: EXP(scores[i, j] - MAX(scores[i, : i + 1])))

A table's name is the name of its range in the workbook, and what an edit points to.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.cells.access import Rect, Span
from engine.cells.expression import Area, Expression, expression
from engine.cells.functions import AND, IF, MAX, MIN, harmless, may_fail
from engine.cells.graph import Graph
from exporters.assemble import start
from exporters.compose import digest, legend, unharmed
from exporters.compose.address import quoted
from exporters.compose.book import START, Book, Chart, Place, Reading, Sheet, TableFormula
from exporters.compose.dressing import Beyond, Dressing, Unlike, When
from exporters.compose.story import Held, Other, Story, Suggestion
from exporters.pages import ledger

FIRST_ROW = 4  # below title, links and purpose
NEAR = 1e-9
LINK_ROOM = 20  # characters: where the ledger stands depends on no sheet's name
FEW_DECIMALS = 3  # that a printed number is shown with; one that has more is shown with five
FILLS = ("weight", "activation", "attention", "readout", "input")
Formula = Callable[[int, int], Any]  # an expression, or a constant, by row and column
Texts = Sequence[str | int | Expression]  # labels; one that is an expression follows other cells


class Comparison(NamedTuple):
    """A number that the source prints, the cell that recomputes it, and why they differ."""

    what: str
    printed: float
    cell: Expression
    note: str = ""
    decimals: int = 2  # that the source prints
    section: str = ""  # where it does, unless where the others of the sheet are
    other: Other = ""  # what its figure is of, where that need not be ours


def near(cells: Expression, value: Any = 1) -> Expression:
    """Whether all of a range is a number, to within 1e-9, for `Workbook.checks`."""
    return AND(MAX(cells) - value < NEAR, value - MIN(cells) < NEAR)


class Workbook:
    """A workbook that is put together table by table; on a graph that has blocks already, if any.

    One that `iterates` has cells that keep what they hold, see `Book`.
    """

    def __init__(self, title: str, graph: Graph | None = None, iterates: bool = False):
        self.book = Book(title, graph or Graph(), iterates=iterates)
        self.book.graph.iterates = iterates
        self.book.sheet(START)
        self._edited: dict[Any, Reading] = {}  # by what is typed, and how many blocks there are

    def __getitem__(self, name: str) -> Area:
        """The table of that name."""
        return self.book.graph[name].area

    @property
    def now(self) -> Reading:
        """The values as built: `w.now(probs[0, 2])`."""
        return self.book.clean

    def edited(self, edits: Mapping[Area, float | str]) -> Reading:
        """The values after edits: `w.edited({scores[2, 1]: 4.0})(probs[0, 2])`. A story asks for
        the same ones again and again; they are computed once."""
        typed = tuple((*_spot(cell), value) for cell, value in edits.items())
        key = typed, len(self.book.graph.blocks)
        if key not in self._edited:
            self._edited[key] = self.book.edited(edits)
        return self._edited[key]

    def suggestion(self, text: str, edits: Mapping[Area, float | str], watch: Area) -> Suggestion:
        """An edit for the reader to make, with what the cell `watch` then shows.

        The reader is led to the first cell of `edits`.
        """
        first, *others = ((_spot(cell), value) for cell, value in edits.items())
        becomes = self.edited(edits)(watch)
        return Suggestion(text, *first, _spot(watch), becomes, tuple(others))

    def sheet(self, name: str, purpose: str) -> "Worksheet":
        """A new sheet, after those there are; the purpose is one line."""
        return Worksheet(self.book, self.book.sheet(name), purpose)

    def compare(self, rows: Sequence[Comparison], section: str) -> None:
        """The sheet Printed: what the source prints, what the cells give, and the difference.

        `section` is the document, and where in it the numbers stand.
        """
        ws = self.sheet(
            "Printed", "what the source prints: printed, recomputed, difference, and why"
        )
        compare(ws, rows, section)

    def checks(self, rows: Sequence[tuple[str, Expression]]) -> None:
        """The sheet Check: claims that hold as built, each with a formula that says whether."""
        ws = self.sheet("Check", "what should hold whatever you type")
        ws.widths({0: 3, 1: 90, 2: 10})
        for k, (claim, holds) in enumerate(rows, ws.cursor):
            ws.sheet.put(k, 1, claim)
            ws.formula(k, 2, IF(holds, "ok", "no"), "status")
        ws.sheet.dress(ws.sheet[ws.cursor : ws.cursor + len(rows), 2], Unlike("ok"))
        ws.cursor += len(rows) + 2

    def done(self, story: Story) -> Book:
        """The book, with its start sheet, the ways from sheet to sheet, the ledger on each, and the
        verdict. A book that iterates has no ledger: it would go round with the cells that it
        watches."""
        told = not self.book.iterates
        if told:
            self.sheet(ledger.SHEET, ledger.PURPOSE)
            ledger.fill(self.book)
        self.sheet(digest.SHEET, digest.PURPOSE)
        names = list(self.book.sheets)
        for name, following in zip(names[1:], [*names[2:], START], strict=True):
            sheet = self.book.sheets[name]
            way = f"next: {following} →"
            sheet.link(1, 2, way, f"{quoted(following)}!A1")
            if told:
                ledger.show(self.book, sheet, 1, legend.past(sheet, 2, max(len(way), LINK_ROOM)))
            legend.add(sheet)
        start.add(self.book, story)
        if told:
            ledger.show(self.book, self.book.sheet(START), 2, 0)
        unharmed.make(self.book)
        digest.show(self.book)
        digest.fill(self.book, ledger.edited(self.book) if told else None)
        return self.book


def compare(ws: "Worksheet", rows: Sequence[Comparison], section: str = "") -> None:
    """Numbers that a source prints, what cells give, the difference, and why they differ."""
    ws.widths({0: 3, 1: 56, 2: 11, 3: 12, 4: 11, 5: 3, 6: 80})
    sheet = ws.sheet
    for col, head in enumerate(("", "what", "printed", "recomputed", "difference", "", "note")):
        sheet.put(ws.cursor, col, head, "head" if 2 <= col <= 4 else "block")
    for k, row in enumerate(rows, ws.cursor + 1):
        what, printed, cell, note, decimals, elsewhere, other = row
        fine = " fine" if decimals > FEW_DECIMALS else ""
        sheet.put(k, 1, what)
        sheet.put(k, 2, printed, f"printed{fine}")
        found = ws.formula(k, 3, cell, f"live{fine}")
        where = elsewhere or section
        ws.book.held.append(Held(where, what, printed, found, decimals, note, other))
        ws.formula(k, 4, sheet[k, 3] - sheet[k, 2], f"change{fine}")
        sheet.put(k, 6, note, "note")
        sheet.dress(sheet[k, 4], Beyond(0.5 * 10.0**-decimals * (1 + 1e-6)))
    ws.cursor += len(rows) + 2


class Worksheet:
    """One sheet, filled from top to bottom; `cursor` is the next free row."""

    def __init__(self, book: Book, sheet: Sheet, purpose: str):
        self.book, self.sheet, self.cursor = book, sheet, FIRST_ROW
        self._formulas: dict[str, Callable[[int, int], Expression]] = {}  # by table
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

    def typed(
        self,
        name: str,
        values: Any,
        rows: Texts = (),
        cols: Texts = (),
        title: str = "",
        style: str = "input",
        beside: Area | None = None,
        left: int = 1,
    ) -> Area:
        """A table of numbers or texts to be typed over, at the cursor or right of another one.

        `values` [rows, columns]; `rows` and `cols` are its labels; `style` is one of theme's, or a
        fill: "weight", "activation", "attention", "readout", "input".
        """
        block = self.book.graph.input(name, values, kind="setting")
        held = self.book.graph.inputs[name]
        area = self._place(name, block.shape, rows, cols, title, beside, left)
        for i, j in np.ndindex(*block.shape):
            value: Any = held[i, j]
            value = value if isinstance(value, str) else float(value)
            self.sheet.put(area.top + i, area.left + j, value, _style(style, "blue"))
        return block.area

    def computed(
        self,
        name: str,
        shape: Span,
        formula: Formula | Expression,
        rows: Texts = (),
        cols: Texts = (),
        title: str = "",
        style: str = "activation",
        beside: Area | None = None,
        left: int = 1,
    ) -> Area:
        """A table of formulas: `formula(i, j)` is the expression of a cell. Else as `typed`."""
        area = self.promised(name, shape, rows, cols, title, beside, left)
        self.fill(area, formula, style)
        return area

    def promised(
        self,
        name: str,
        shape: Span,
        rows: Texts = (),
        cols: Texts = (),
        title: str = "",
        beside: Area | None = None,
        left: int = 1,
    ) -> Area:
        """The place of a table that `fill` gives its formulas later, once what they read stands.

        So a table may read what is computed from it: a state, the state one step before.
        """
        block = self.book.graph.table(name, shape, lambda i, j: self._formulas[name](i, j))
        self._place(name, shape, rows, cols, title, beside, left)
        return block.area

    def fill(self, table: Area, formula: Formula | Expression, style: str = "activation") -> None:
        """Give a promised table its formulas."""

        def cell(i: int, j: int) -> Expression:
            made = expression(formula(i, j) if callable(formula) else formula)
            return harmless(made) if may_fail(made) and not self.book.iterates else made

        self._formulas[table.grid.name] = cell
        place, block = self.rect(table), self.book.graph[table.grid.name]
        for i, j in np.ndindex(*table.shape):
            self.formula(place.top + i, place.left + j, TableFormula(block, i, j), style)

    def columns(self, n: int, top: int, left: int = 0) -> "Columns":
        """Tables of one column and n rows side by side, with their heads in row `top`."""
        return Columns(self, n, top, left)

    def suggest(self, *suggestions: Suggestion) -> None:
        """Edits to make on this sheet, each with the ways to its cell and to what it changes."""
        self.sheet.suggestions = suggestions
        self.heading("Three things to try here")
        for suggestion in suggestions:
            places = (("type in", suggestion.cell), ("see", suggestion.watch))
            for col, (verb, at) in enumerate(places):
                assert isinstance(at, tuple)
                name, i, j = at
                cell = self.book.graph[name][i, j]
                where = self.book.address(cell, self.sheet.name).replace("'", "")
                self.sheet.link(self.cursor, 2 * col, f"{verb} {where}", self.book.address(cell))
            self.sheet.put(self.cursor, 4, suggestion.text)
            self.cursor += 1

    def _place(
        self,
        name: str,
        shape: Span,
        rows: Texts,
        cols: Texts,
        title: str,
        beside: Area | None,
        left: int,
    ) -> Rect:
        """Find room for a table and its labels: the rectangle of its cells."""
        top = self.cursor + bool(title) + bool(cols)
        if beside is not None:
            _, other = self.book.locate(self.book.graph[beside.grid.name].area)
            top, left = other.top, other.right + 2
        height, width = shape
        area = Rect(top, top + height, left, left + width)
        if any(cell in self.sheet.entries for cell in area.cells()):
            raise ValueError(f"{name} stands on something else in row {top + 1}")
        if re.fullmatch(r"[A-Za-z]{1,3}\d+|[rRcC]", name):
            raise ValueError(f"{name} is a cell's name")
        self.book.places[name] = Place(
            self.book.graph[name], self.sheet.name, top, left, turned=False
        )
        if title:
            self.sheet.put(top - 1 - bool(cols), left, title, "block")
        for j, label in enumerate(cols):
            self._label(top - 1, left + j, label, "label")
        for i, label in enumerate(rows):
            self._label(top + i, left - 1, label, "row label")
        self.cursor = max(self.cursor, top + height + 1)
        return area

    def _label(self, row: int, col: int, label: str | int | Expression, style: str) -> None:
        if isinstance(label, Expression):
            self.formula(row, col, label, style)
        else:
            self.sheet.put(row, col, label, style)

    def rect(self, area: Area) -> Rect:
        """Where an area of a table stands on this sheet."""
        return self.book.locate(area)[1]

    def formula(self, row: int, col: int, formula: Any, style: str) -> Area:
        """One formula, in a fill's style in the colour of what it reads; gives its cell."""
        elsewhere = any(
            self.book.locate(area)[0] != self.sheet.name for area in expression(formula).areas()
        )
        style = _style(style, "green" if elsewhere else "black")
        return self.sheet.formula(row, col, formula, style)

    def shade(self, area: Area, dressing: Dressing) -> None:
        """Colour cells by what they hold: "scale", "diverging", "bar", or see `dressing`."""
        self.sheet.dressings.append((self.rect(area), dressing))

    def mark(self, area: Area, style: str, holds: Expression) -> None:
        """Dress the cells for which a formula holds; it is that of the first of them."""
        self.shade(area, When(style, holds))

    def chart(self, chart: Chart) -> None:
        """A chart; it stands where its row and column say."""
        self.sheet.charts.append(chart)


class Columns:
    """Tables of one column side by side: a column is a step, its formulas are given by row."""

    def __init__(self, ws: Worksheet, n: int, top: int, left: int):
        self.ws, self.n, self.top, self.left = ws, n, top, left

    def typed(self, name: str, head: str, values: Iterable[Any], style: str = "input") -> Area:
        """The next column, of numbers or texts to be typed over."""
        column = [[value] for value in values]
        return self.ws.typed(name, column, cols=[head], style=style, left=self._next())

    def computed(
        self, name: str, head: str, formula: Callable[[int], Any], style: str = "activation"
    ) -> Area:
        """The next column, of formulas: `formula(i)` is the expression of row i."""

        def cell(i: int, _: int) -> Any:
            return formula(i)

        shape, left = (self.n, 1), self._next()
        return self.ws.computed(name, shape, cell, cols=[head], style=style, left=left)

    def _next(self) -> int:
        """The column of the next table, whose head stands in the row of the others."""
        self.ws.cursor = self.top
        self.left += 1
        return self.left - 1


def _spot(cell: Area) -> tuple[str, int, int]:
    """A cell by its table's name, row and column."""
    return cell.grid.name, cell.rect.top, cell.rect.left


def _style(style: str, font: str) -> str:
    """A fill with the font that says what a cell is; other styles as they are."""
    return f"{style} {font}" if style in FILLS else style
