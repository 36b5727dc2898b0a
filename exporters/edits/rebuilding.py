"""A workbook of worksheets, rebuilt from its file: the graph of its named tables, as it was built.

A named range is a table. Its formulas are read from its own cells; the numbers that were typed when
it was built stand on the sheet Built. The sums on Digest tell whether a formula was changed since.
So a workbook of somebody's own needs no name that cellformer knows.
"""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.assemble import start
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose import digest
from cellformer.exporters.compose.address import a1, of_cell, rectangle, unquoted
from cellformer.exporters.compose.book import START, Book, Entry
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story
from cellformer.exporters.edits.formula_reader import Reader
from cellformer.exporters.file.reading import Sheet, WorkbookFile
from cellformer.exporters.pages import ledger

OWN = (START, ledger.SHEET, digest.SHEET)  # sheets that every workbook gets
BUILT = "built."  # how the names of numbers as built begin
TITLE, PURPOSE, FIRST = (0, 0), (2, 0), 3  # of a sheet; below stands what is its own
NOT_OURS = (
    "the workbook has no sheet Source, and some tables have no names. cellformer did not make "
    "this workbook, or its sheets were separated; build the workbook again"
)
NAMELESS = (
    "reads cells without a name; give all tables names that differ in more than capital letters"
)
MOST_CELLS = 2_000_000  # of all tables
AMISS = (ValueError, IndexError, KeyError, TypeError, RecursionError)  # of names that were changed
Inputs = Mapping[str, np.ndarray]

UNDO = "the file does not keep the original formula: undo that change, or write the workbook again"


class Named(NamedTuple):
    """A named range."""

    name: str
    sheet: str
    rect: Rect


def rebuilt(file: WorkbookFile, inputs: Inputs | None = None) -> Book:
    """The workbook as it was built; with `inputs`, with these numbers in its typed tables.

    Raises InputError for a file without named tables, and for one whose formulas were changed.
    """
    try:
        book = _Rebuilding(file).book(inputs or {})
        if not inputs:
            _check(file, book)
    except InputError:
        raise
    except AMISS:
        raise InputError(NOT_OURS) from None
    return book


class _Rebuilding:
    def __init__(self, file: WorkbookFile):
        self.file = file
        self.sheets = [name for name in file if name not in OWN]
        named = [
            Named(name, areas[0][0], rectangle(areas[0][1]))
            for name, areas in file.names.items()
            if areas
        ]
        self.tables = sorted(
            (one for one in named if one.sheet in self.sheets),
            key=lambda one: (self.sheets.index(one.sheet), one.rect),
        )
        self.as_built = {
            one.name.removeprefix(BUILT): one for one in named if one.name.startswith(BUILT)
        }
        if not self.tables or not all(name in file for name in (START, digest.SHEET)):
            raise InputError(NOT_OURS)
        if file.iterates or ledger.SHEET not in file:
            raise InputError(
                "the cells of this workbook keep their values from earlier computations, so the "
                "file does not show which values were typed"
            )
        if (n := sum(one.rect.size for one in named)) > MOST_CELLS:
            raise InputError(
                f"the named tables of this workbook have {n:,} cells, but cellformer can read at "
                f"most {MOST_CELLS:,}; build a smaller workbook"
            )

    def book(self, inputs: Inputs) -> Book:
        """The book, sheet by sheet."""
        title = str(self.file[self.sheets[0]][TITLE]).partition(" · ")[0]
        self.workbook = Workbook(title)
        pages = {
            name: self.workbook.sheet(name, str(self.file[name][PURPOSE] or ""))
            for name in self.sheets
        }
        promised = [
            (pages[table.sheet], area, table)
            for table in self.tables
            if (area := self._add(pages[table.sheet], table, inputs.get(table.name))) is not None
        ]
        for page, area, table in promised:  # a table may read one that stands below it
            page.fill(area, cache(partial(self._cell, table, self.file[table.sheet].formulas)))
        for name in self.sheets:
            self._others(pages[name], self.file[name])
        return self.workbook.done(_story(self.file[START]))

    def _add(self, page: Composer, table: Named, given: np.ndarray | None) -> Area | None:
        """Add a table of inputs, or promise a table of formulas."""
        sheet, (top, bottom, left, right) = self.file[table.sheet], table.rect
        page.cursor = top
        formulas = sheet.formulas
        if any(at in formulas for at in table.rect.cells()):
            return page.promised(table.name, (bottom - top, right - left), left=left)
        page.typed(table.name, self._as_built(table) if given is None else given, left=left)
        return None

    def _as_built(self, table: Named) -> np.ndarray:
        """The entries as built: on the sheet Built, in a named range, beside its line if it is
        one cell, and below its name if it holds texts."""
        if table.name in self.as_built:
            built = self.as_built[table.name]
            return _held(self.file[built.sheet], built.rect)
        rows, cols = table.rect.bottom - table.rect.top, table.rect.right - table.rect.left
        built_on = self.file[ledger.SHEET]
        for (row, col), value in built_on.values.items():
            if value != table.name:
                continue
            if table.rect.size == 1 and col == ledger.WHAT:
                return _held(built_on, Rect(row, row + 1, ledger.WAS, ledger.WAS + 1))
            if table.rect.size > 1 and col == ledger.ORIGINALS - 1:
                top, left = row + 1, ledger.ORIGINALS
                return _held(built_on, Rect(top, top + rows, left, left + cols))
        return _held(self.file[table.sheet], table.rect)

    def _cell(self, table: Named, formulas: Mapping[Span, str], i: int, j: int) -> Expression:
        """The formula of a table's cell, or the constant that it has."""
        at = table.rect.top + i, table.rect.left + j
        if at in formulas:
            found = self._read(formulas[at], table.sheet)
            if all(isinstance(area.grid, Block) for area in found.areas()):
                return found
            raise InputError(
                f"the workbook has no sheet Source, and {table.name}[{i},{j}] {NAMELESS}"
            )
        value = self.file[table.sheet][at]
        return expression("" if value is None else value)

    def _read(self, formula: str, here: str) -> Expression:
        return Reader(formula, here, self._at).read()

    def _at(self, sheet: str, rect: Rect) -> Area:
        """Cells by their place: of a table, or else of a sheet."""
        for place in self.workbook.book.places.values():
            if place.sheet == sheet and place.rect(place.block.whole).covers(rect):
                return Area(place.block, place.own_rect(rect))
        if sheet not in self.workbook.book.sheets:
            raise InputError(
                f"a formula reads the sheet {sheet!r}, which is missing; restore that sheet"
            )
        return self.workbook.book.sheets[sheet][rect]

    def _others(self, page: Composer, sheet: Sheet) -> None:
        """Add the cells beside the tables: labels, and formulas that only people read."""
        formulas, labelled = sheet.formulas, {row for row, col in sheet.values if col}
        for at, value in sheet.values.items():
            if at[0] < FIRST or at in page.sheet.entries:
                continue
            if f"{digest.SHEET}!" in formulas.get(at, ""):
                continue  # a note about Digest, which is built again
            if at in formulas:
                page.sheet.entries[at] = Entry(
                    None, "live", self._read(formulas[at], page.sheet.name)
                )
            elif value is not None:
                alone = at[1] == 0 and at[0] not in labelled
                page.sheet.hold(*at, value, "heading" if alone else "text")


def _held(sheet: Sheet, rect: Rect) -> np.ndarray:
    """The values of a range: numbers, or an array of objects if there are texts."""
    top, bottom, left, right = rect
    values = [[sheet[row, col] for col in range(left, right)] for row in range(top, bottom)]
    texts = any(isinstance(value, str) for row in values for value in row)
    blank: Any = "" if texts else 0.0
    filled = [[blank if value is None else value for value in row] for row in values]
    return np.array(filled, dtype=object if texts else np.float64)


def _story(sheet: Sheet) -> Story:
    """The title and the text of the first sheet."""
    about, row = list[str](), start.TOP + 1
    has_about = sheet[start.TOP, 0] in (start.ABOUT, worded(start.ABOUT))
    while has_about and sheet[row, 1] is not None:
        about.append(str(sheet[row, 1]))
        row += 1
    return Story(str(sheet[0, 0] or ""), str(sheet[1, 0] or ""), about, [], [])


def _check(file: WorkbookFile, book: Book) -> None:
    """Raise InputError for a formula that was typed over, and if formulas give another sum than the
    one that Digest keeps."""
    lines, row = file[digest.SHEET], digest.TOP
    while isinstance(sheet := lines[row, digest.ON], str):
        place = [lines[row, col] for col in (digest.ROW, digest.COL, digest.HIGH, digest.WIDE)]
        was, row = lines[row, digest.WAS[0]], row + 1
        name = unquoted(sheet)
        if name in OWN or name not in file or not all(isinstance(x, int | float) for x in place):
            continue
        top, left, high, wide = (int(x) for x in place if isinstance(x, int | float))
        rect = Rect(top - 1, top - 1 + high, left - 1, left - 1 + wide)
        if rect.top < FIRST or rect.size > MOST_CELLS:
            continue
        formulas = file[name].formulas
        for at in rect.cells():
            if at not in formulas and file[name][at] is not None:
                cell = f"{sheet}!{of_cell(*at)}"
                raise InputError(
                    f"{cell} had a formula, and something else was typed over it; {UNDO}"
                )
        there = [book.clean.cell(name, *at) for at in rect.cells() if at in formulas]
        now = sum(map(digest.counts, there))
        if isinstance(was, int | float) and abs(was - now) > NEAR * max(1.0, abs(was)):
            raise InputError(f"the formulas of {sheet}!{a1(rect)} were changed; {UNDO}")
