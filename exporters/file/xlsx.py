"""Book -> .xlsx: computed values beside every formula, a defined name for every block.

XlsxWriter writes the file, with changes that are explained where they are made: numbers keep all
their digits (it rounds to 16), and blocks are written by rows, compressed as they come. The same
book gives the same bytes with the same compressor (see `deflate`): dates are fixed. The last digits
of a book's values depend on the processor that computed them: see docs/workbook.md.
"""

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import closing
from datetime import datetime
from functools import partial
from html import escape
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from xlsxwriter import Workbook
from xlsxwriter.exceptions import FileCreateError
from xlsxwriter.sharedstrings import SharedStrings
from xlsxwriter.utility import xl_rowcol_to_cell
from xlsxwriter.worksheet import CellNumberTuple, CellStringTuple, Worksheet

from cellformer.engine.cells import language
from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import decimal, expression
from cellformer.engine.cells.files import replacing
from cellformer.engine.cells.texts import coded, in_xml, readable, storable
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.address import a1, column, of_cell, quoted
from cellformer.exporters.compose.book import Book, Entry, Place, Reading, Sheet
from cellformer.exporters.compose.dressing import (
    UNKNOWN,
    AsBuilt,
    Beyond,
    Dressing,
    Unlike,
    When,
    in_words,
)
from cellformer.exporters.file import printing, protection
from cellformer.exporters.file.charts import add_chart
from cellformer.exporters.file.deflate import Deflate, Packed
from cellformer.exporters.file.row_xml import (
    Strip,
    check_length,
    formulas,
    labels,
    numbers,
    whole_row,
)
from cellformer.exporters.file.sheet_parts import packed, part, put
from cellformer.exporters.file.writing import USUAL, Writing

Progress = Callable[[int], object]  # called with the number of cells since the last call
Begin = Callable[[], Strip]  # called when the first row of a block is written
NONE_AHEAD: Mapping[str, Future[Packed]] = {}
PADDING = 0.7109375  # what a column is wider than its characters
SPACES = " \t\r\n"  # what XML takes for space
CREATED = datetime(2026, 1, 1)
# what Excel would mark with a green triangle: words that are digits, totals below labels
UNREMARKABLE = ("number_stored_as_text", "formula_range")
NOTE = {"author": "", "width": 240, "height": 64, "color": theme.FILLS["input"]}
MOST_CHANGE = 1e6  # of a cell in one iteration, in LibreOffice: beyond it there is an error
FEW_OPERANDS = 50  # of a block; their addresses are not too long for a formula
MAX_ROW, MAX_COLUMN = 1_048_575, 16_383  # of every sheet, counted from 0


class _Formats(dict[str, Any]):
    """XlsxWriter's formats by the names of theme's styles, made on demand."""

    def __init__(self, workbook: Workbook):
        super().__init__()
        self.workbook = workbook

    def __missing__(self, style: str) -> Any:
        is_open = style.endswith(protection.OPEN)
        found = theme.look(style.removesuffix(protection.OPEN))
        self[style] = self.workbook.add_format({**found, "locked": False} if is_open else found)
        return self[style]


class _Texts(SharedStrings):
    """The table of shared strings, escaped here: XlsxWriter takes `<r>` for XML, and of two texts
    that look like escapes and share a `_` it escapes only one."""

    def _write_si(self, string: str) -> None:
        space = ' xml:space="preserve"' if string != string.strip(SPACES) else ""
        self.fh.write(f"<si><t{space}>{in_xml(string)}</t></si>")


class _Sheet(Worksheet):
    """A worksheet whose numbers are read back bit for bit, and whose blocks are written by rows.

    XlsxWriter keeps every cell as an object until the end. Blocks are not given to it: each row of
    the sheet is assembled, when it is written, from its few single cells and the rows of its
    blocks.
    """

    spell: Callable[[Entry, int, int], str]  # a formula's text
    shown: Callable[[int, int], Any]  # what a cell shows
    writing: Writing
    formats: _Formats

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[tuple[Rect, Begin]] = []  # an area, and what spells its rows
        self.bulky = False  # whether cells may go without an address
        self.alone: Rect | None = None  # a table in rows that are a part of the stream
        self.ahead: Future[Packed] | None = None  # these rows, where they are written already
        self.formulas = False  # whether a block of it is computed
        self.n_shared = 0  # formulas that a column shares
        self.n_cells = 0  # of blocks

    def add_block(self, area: Rect, begin: Begin) -> None:
        """Add a block to write. `begin` is called at its first row; `begin()(row)` then gives the
        XML of its cells in a row."""
        self._check_dimensions(area.top, area.left)
        self._check_dimensions(area.bottom - 1, area.right - 1)
        self.blocks.append((area, begin))
        self.n_cells += area.size

    def _write_rows(self) -> None:
        first, end = self.dim_rowmin, self.dim_rowmax + 1
        if self.alone is None:
            self._write_some(first, end)
            return
        top, bottom, _, _ = self.alone
        assert not any(top <= row < bottom for row in (*self.table, *self.row_info))
        self._write_some(first, top)
        self.fh.stream.begin_part()
        if self.ahead:
            self.fh.stream.append(self.ahead.result())
        else:
            self._write_some(top, bottom)
        self.fh.stream.begin_part()
        self._write_some(bottom, end)

    def _write_some(self, first: int, after: int) -> None:
        """Write the rows [start, stop); no block crosses these limits."""
        begun = [block for block in self.blocks if first <= block[0].top < after]
        blocks = deque(sorted(begun, key=lambda item: item[0].top))
        across: list[tuple[Rect, Strip]] = []  # the strips that cross a row, from left to right
        strips: list[Strip] = []  # the same without their areas
        end = 0  # the row in which the next of them is no more
        for row in range(first, after):
            if row == end or (blocks and blocks[0][0].top == row):
                across = [item for item in across if item[0].bottom > row]
                while blocks and blocks[0][0].top == row:
                    area, begin = blocks.popleft()
                    across.append((area, begin()))
                across.sort(key=lambda item: item[0].left)
                strips = [strip for _, strip in across]
                end = min([area.bottom for area, _ in across], default=0)
            if row in self.table or row in self.row_info:
                self._write_one(row, across)
            elif strips:
                self.fh.put(whole_row(row, strips))

    def _write_one(self, row: int, across: list[tuple[Rect, Strip]]) -> None:
        """Write a row of the sheet: its single cells, and the rows of its blocks."""
        if row in self.row_info:
            self._write_row(row, None, self.row_info[row])
        else:
            self.fh.put([b'<row r="%d">' % (row + 1)])
        strip_at = {area.left: strip for area, strip in across}
        cells = self.table.get(row, {})
        for col in sorted({*cells, *strip_at}):
            if col in strip_at:
                self.fh.put(strip_at[col](row))
            else:
                self._write_cell(row, col, cells[col])
        self.fh.put([b"</row>"])

    def _get_range_data(self, top: int, left: int, bottom: int, right: int) -> list[Any]:
        """The cached data of a chart's cells. XlsxWriter knows only formulas of its own kind."""
        rows, cols = range(top, bottom + 1), range(left, right + 1)
        return [x for row in rows for col in cols for x in self._kept(row, col)]

    def _kept(self, row: int, col: int) -> list[Any]:
        if isinstance(self.table.get(row, {}).get(col), Entry):
            return [self.shown(row, col)]
        return list(super()._get_range_data(row, col, row, col))

    def _prepare_formula(self, formula: str, expand_future_functions: bool = False) -> str:
        """A rule's formula, unchanged. XlsxWriter would search it for a hundred newer functions."""
        return formula.removeprefix("{").removeprefix("=").removesuffix("}")

    def _write_sheet_format_pr(self) -> None:
        self._xml_empty_tag(
            "sheetFormatPr",
            [("defaultColWidth", theme.COLUMN_WIDTH + PADDING), ("defaultRowHeight", 15)],
        )

    def _write_cell(self, row: int, col: int, cell: Any) -> None:
        kind = type(cell)
        if kind not in (CellStringTuple, CellNumberTuple, Entry):
            super()._write_cell(row, col, cell)
            return
        style = self.formats[cell.style] if kind is Entry else cell.format
        at = f'<c r="{of_cell(row, col)}" s="{style._get_xf_index()}"'
        if kind is CellStringTuple:
            self.fh.write(f'{at} t="s"><v>{cell.string}</v></c>')
            return
        if kind is CellNumberTuple:
            self.fh.write(f"{at}><v>{cell.number!r}</v></c>")
            return
        formula, value = self.spell(cell, row, col), self.shown(row, col)
        array = f' t="array" ref="{of_cell(row, col)}"' if cell.array else ""
        space = ""
        if isinstance(value, str):
            # A text as a text, also where it reads "#N/A", which XlsxWriter would make an error.
            value = in_xml(value)
            at += ' t="str"'
            if value != value.strip(SPACES):  # as Excel writes it: some programs drop outer spaces
                space = ' xml:space="preserve"'
        elif isinstance(value, bool):
            value = int(value)
            at += ' t="b"'
        formula = escape(formula, quote=False)
        self.fh.write(f"{at}><f{array}>{formula}</f><v{space}>{value}</v></c>")

    def put(self, row: int, col: int, cell: Entry | CellNumberTuple) -> None:
        """Add a number, or a formula, whose text is made when its row is written."""
        self._check_dimensions(row, col)
        self.table[row][col] = cell


class _Text:
    """A stream that takes texts, as XlsxWriter writes them, and whole rows of bytes."""

    def __init__(self, stream: Deflate):
        self.stream = stream
        self.put = stream.write

    def write(self, text: str) -> None:
        self.put([text.encode()])


class _Book(Workbook):
    """A workbook whose sheets are written one by one: a large one is never held in memory as a
    whole."""

    report: Progress
    bulky: bool
    writing: Writing
    iterates = False

    def _write_calc_pr(self) -> None:
        """Write the calculation settings: one iteration per recalculation, if the book iterates."""
        if not self.iterates:
            super()._write_calc_pr()
            return
        once = [("iterate", 1), ("iterateCount", 1), ("iterateDelta", MOST_CHANGE)]
        self._xml_empty_tag("calcPr", [("calcId", self.calc_id), *once, ("fullCalcOnLoad", 1)])

    def _store_workbook(self) -> None:
        self._prepare_all()
        beside = Path(self.filename).parent if self.bulky else None
        order = self._order()
        here = [k for k in order if self.worksheets_objs[k].ahead]
        # opened without cutting it to nothing, after which closing would wait for the disk
        with (
            open(self.filename, "r+b") as file,
            ZipFile(file, "w") as archive,
            closing(packed(self._write, order, beside, here, self.writing)) as found,
        ):
            for k, sheet in zip(order, found, strict=True):
                put(archive, f"xl/worksheets/sheet{k + 1}.xml", sheet)
                self.report(self.worksheets_objs[k].n_cells)
            packager = self._get_packager()
            packager._write_worksheet_files = lambda: None  # they are in
            packager._write_shared_strings_file = partial(self._write_texts, packager)
            packager._add_workbook(self)
            packager._set_in_memory(True)
            for source, name, _ in packager._create_package():
                archive.writestr(part(name), source.getvalue())

    def _write_texts(self, packager: Any) -> None:
        """Write the table of shared strings."""
        if self.str_table.count:
            texts = _Texts()
            texts.string_table = self.str_table
            texts._set_xml_writer(packager._filename("xl/sharedStrings.xml"))
            texts._assemble_xml_file()

    def _order(self) -> list[int]:
        """The order in which sheets are written: in a bulky file the largest first, so that all
        cores finish at about the same time."""
        sizes = [sheet.n_cells for sheet in self.worksheets_objs]
        return sorted(range(len(sizes)), key=lambda k: -sizes[k] if self.bulky else k)

    def _write(self, k: int, stream: Deflate) -> None:
        """Write the sheet of that number to a stream."""
        sheet = self.worksheets_objs[k]
        sheet.fh, sheet.internal_fh = _Text(stream), False
        stream.formulas = sheet.formulas
        sheet._assemble_xml_file()

    def _prepare_all(self) -> None:
        """XlsxWriter's own preparations before it assembles a file, in its order."""
        opened = self.worksheets_objs[self.worksheet_meta.activesheet]
        opened.selected, opened.active = 1, True
        self._prepare_sst_string_data()
        self._prepare_vml()
        self._prepare_defined_names()
        self._prepare_drawings()
        self._add_chart_data()
        self._prepare_tables()
        self._prepare_metadata()


def write(
    book: Book,
    path: str | Path,
    report: Progress = lambda n_cells: None,
    shown: Reading | None = None,
    ahead: Mapping[str, Future[Packed]] = NONE_AHEAD,
    writing: Writing = USUAL,
) -> Path:
    """Write a book to `path`, completely or not at all. Raises InputError if it cannot be written.

    `report` is called as rows are written, with the number of cells since the last call. `shown`
    are the values of its cells (default: as built); with edited ones (`book.edited`) the file is as
    if the edits had been typed into it. `ahead` has the rows of tables that are compressed already,
    by sheet.
    """
    shown = shown or book.clean
    path = Path(path)
    if path.suffix.lower() != ".xlsx":
        raise InputError(f"{path}: the name of a workbook must end in .xlsx")
    for place in book.places.values():
        _check_fits(place)
        _check_formulas(book, place, writing.longest)
    with language.speaking(book.language), replacing(path) as temporary:
        workbook = _Book(temporary, {"default_format_properties": theme.FONT})
        workbook.worksheet_class, workbook.iterates = _Sheet, book.iterates
        workbook.set_properties({"title": readable(book.title), "created": CREATED})
        workbook.set_calc_mode("auto")
        formats = _Formats(workbook)
        for style in theme.COMMONEST:
            formats[style]._get_xf_index()
        workbook.bulky, workbook.report = book.n_cells > writing.most_addressed, report
        workbook.writing = writing
        for sheet in book.sheets.values():
            ws = workbook.add_worksheet(sheet.name)
            ws.bulky, ws.ahead = workbook.bulky, ahead.get(sheet.name)
            ws.writing = writing
            if sheet.name == book.opens_on:
                ws.activate()
            _write_sheet(book, shown, sheet, workbook, ws, formats)
        for name, area in names(book).items():
            workbook.define_name(name, f"={area}")
        try:
            workbook.close()
        except FileCreateError as error:  # what the system said, in XlsxWriter's own words
            raise InputError(
                f"cannot write {path}: {error}; free some disk space, or choose another place "
                "with -o"
            ) from None
    return path


def names(book: Book) -> dict[str, str]:
    """The names that a workbook defines, unique regardless of case, and the areas that they refer
    to."""
    found = {
        place.block.name: f"{quoted(place.sheet)}!{a1(place.rect(place.block.whole), 'all')}"
        for place in book.places.values()  # a block in pieces stands there with its first, too
        if place.named
    }
    found |= {
        name: book.address(book.sheets[where][row, col].fixed)
        for name, (where, row, col) in book.named_cells.items()
        if name not in book.places and name.isidentifier() and len(name) > 2
    }
    first = {name.lower(): name for name in reversed(found)}
    return {name: area for name, area in found.items() if first[name.lower()] == name}


def _check_fits(place: Place) -> None:
    """Raise InputError for a block that crosses the edge of its sheet."""
    end = place.rect(place.block.whole)
    if end.bottom > MAX_ROW + 1 or end.right > MAX_COLUMN + 1:
        raise InputError(
            f"{place.block.name} would reach row {end.bottom:,} and column {end.right:,} of its "
            f"sheet. A sheet ends at row {MAX_ROW + 1:,} and column {MAX_COLUMN + 1:,}; use a "
            "smaller model"
        )


def _check_formulas(book: Book, place: Place, longest: int) -> None:
    """Raise InputError for formulas that are longer than programs accept, before anything is
    written; in a large block, only the cell with the longest addresses is checked."""
    block = place.block
    if block.op and len(block.operands) > FEW_OPERANDS:
        last = book.formulas(block)(block.shape[0] - 1, block.shape[1] - 1)
        remedy = "the layer has too many heads; use --live with another layer"
        check_length(last, longest, block.name, remedy)


def _frame(ws: Any, sheet: Sheet) -> None:
    """Set the parts around a sheet's cells."""
    if any(sheet.frozen):
        ws.freeze_panes(*sheet.frozen)
    if not sheet.lettered:
        ws.hide_row_col_headers()
    if sheet.tab:
        ws.set_tab_color(sheet.tab)


def _write_sheet(
    book: Book, shown: Reading, sheet: Sheet, workbook: Workbook, ws: _Sheet, formats: _Formats
) -> None:
    ws.hide_gridlines(2)
    if sheet.secret:
        ws.very_hidden()
    elif sheet.hidden:
        ws.hide()
    else:
        printing.set_up(ws, sheet, shown, readable(book.title))
    _frame(ws, sheet)
    ws.ignore_errors(dict.fromkeys(UNREMARKABLE, "A1:XFD1048576"))
    ws.spell, ws.formats = partial(_spelt, book, sheet.name, ws.writing.longest), formats
    ws.shown = partial(shown.cell, sheet.name)
    for col, width in sheet.widths.items():
        ws.set_column(col, col, width)
    for row, height in (_heights(sheet) | sheet.heights).items():
        ws.set_row(row, height)
    for area in sheet.merged:
        ws.merge_range(a1(area), "", formats[sheet.entries[area.top, area.left].style])
    blocks, cells = protection.opened(book, sheet)
    ws.protect("", protection.ALLOWED)
    for (row, col), entry in _single(book, shown, sheet).items():
        if (row, col) in cells:
            entry = entry._replace(style=_opened(entry.style))
        style = formats[entry.style]
        style._get_xf_index()  # it gets its number here, not in the copies that write sheets
        if entry.formula is not None:
            ws.put(row, col, entry)
        else:
            _write_entry(ws, row, col, entry, sheet, style)
    for run in sheet.runs:
        index = ws.str_table._get_shared_string_index
        spelt = {text: index(storable(text)) for text in run.texts if coded(text)}
        ws.add_block(run.area, partial(labels, run, formats[run.style]._get_xf_index(), spelt))
    for place, style in sheet.regions:
        style = _opened(style) if place.block.name in blocks else style
        blank = formats["blank"]._get_xf_index() if place.block.name in book.blanks else 0
        _write_region(book, shown, ws, place, formats[style], blank)
    lists: list[tuple[Rect, dict[str, Any]]] = [
        (sheet[at].rect, {"validate": "list", "source": "=" + book.address(choices), **UNKNOWN})
        for at, choices in sheet.lists.items()
    ]
    for (top, bottom, left, right), rule in lists + sheet.ruled:
        ws.data_validation(top, left, bottom - 1, right - 1, in_words(rule))
    for area, dressing in sheet.dressings:
        top, bottom, left, right = area
        rule = _rule(book, sheet, area, dressing, formats)
        ws.conditional_format(top, left, bottom - 1, right - 1, rule)
    for (row, col), text in sheet.notes.items():
        ws.write_comment(row, col, readable(text, "\n"), NOTE)
    for chart in sheet.charts:
        add_chart(book, workbook, sheet, ws, chart)


def _single(book: Book, shown: Reading, sheet: Sheet) -> dict[tuple[int, int], Entry]:
    """The single cells of a sheet, without those to fill in that lie in blocks written by rows."""
    places = [place for place, _ in sheet.regions if place.block.name in book.blanks]
    blank = {place.cell(*at) for place in places for at in book.blanks[place.block.name].cells}
    entries = sheet.entries | _edited(book, shown, sheet)
    return {at: entry for at, entry in entries.items() if at not in blank} if blank else entries


def _opened(style: str) -> str:
    """The unlocked variant of a style."""
    return style if theme.STYLES[style].get("locked") is False else style + protection.OPEN


def _edited(book: Book, shown: Reading, sheet: Sheet) -> dict[tuple[int, int], Entry]:
    """The edited values of a sheet's single cells that belong to blocks."""
    if shown is book.clean:
        return {}
    cells = [
        (place.cell(i, j), shown.values[place.block.name][i, j])
        for place in book.places.values()
        if place.sheet == sheet.name and not place.block.computed
        for i, j in place.block.whole.cells()
    ]
    entries = sheet.entries
    return {
        at: entries[at]._replace(value=value)
        for at, value in cells
        if at in entries and entries[at].formula is None
    }


def _spelt(book: Book, sheet: str, longest: int, entry: Entry, row: int, col: int) -> str:
    """The text of a sheet's own formula. Raises InputError."""
    assert entry.formula is not None
    text = book.text(entry.formula, sheet)
    if len(text) > longest:  # it takes longer to spell the address
        check_length(text, longest, f"{quoted(sheet)}!{xl_rowcol_to_cell(row, col)}")
    return text


def _heights(sheet: Sheet) -> dict[int, float]:
    """The heights of rows with larger texts, which programs do not adjust by themselves."""
    found: dict[int, float] = {}
    for (row, _), entry in sheet.entries.items():
        if height := theme.HEIGHTS.get(entry.style):
            found[row] = max(height, found.get(row, 0))
    return found


def _write_entry(ws: _Sheet, row: int, col: int, entry: Entry, sheet: Sheet, style: Any) -> None:
    """Write a text, a number or a link."""
    if (row, col) in sheet.links:
        link = sheet.links[row, col]
        ws.write_url(
            row,
            col,
            link if link.startswith("external:") else f"internal:{link}",
            style,
            string=storable(str(entry.value)),
        )
    elif entry.value == "":
        ws.write_blank(row, col, None, style)
    elif isinstance(entry.value, str):
        ws.write_string(row, col, storable(entry.value), style)
    else:
        ws.put(row, col, CellNumberTuple(float(entry.value), style))


def _write_region(
    book: Book, shown: Reading, ws: _Sheet, place: Place, style: Any, blank: int
) -> None:
    block, values = place.block, shown.values[place.block.name]
    number = style._get_xf_index()
    if block.op is None:
        begin = partial(numbers, place, values, number, ws.bulky)
    else:
        ws.formulas = True
        shared = ws.n_shared if book.shared(block) else None
        ws.n_shared += 0 if shared is None else place.size[1]
        begin = partial(formulas, book, place, values, number, shared, ws.writing, blank)
    area = place.rect(block.whole)
    ws.add_block(area, begin)
    if ws.bulky and place in book.alone:
        ws.alone = area


def _rule(
    book: Book, sheet: Sheet, area: Rect, dressing: Dressing, formats: _Formats
) -> dict[str, Any]:
    """A conditional format in XlsxWriter's form."""
    match dressing:
        case Beyond(limit, places):
            return {
                "type": "cell",
                "criteria": "not between",
                "minimum": f"=-{limit:.{places}f}",
                "maximum": f"={limit:.{places}f}",
                "format": formats["differs"],
            }
        case Unlike(value):
            text = book.text(expression(value), sheet.name)
            return {"type": "cell", "criteria": "!=", "value": text, "format": formats["differs"]}
        case When(style, condition):
            text = "=" + book.text(condition, sheet.name)
            return {"type": "formula", "criteria": text, "format": formats[style]}
        case AsBuilt(built):
            first = of_cell(area.top, area.left)
            here = f"${column(area.left)}${area.top + 1}:{first}"
            was = f"INDEX({built},ROWS({here}),COLUMNS({here}))"
            text = f"={first}<>{decimal(built) if isinstance(built, float) else was}"
            return {"type": "formula", "criteria": text, "format": formats["differs"]}
        case "diverging":
            cells = a1(area, "all", as_range=True)
            return theme.diverging(f"MAX(MAX({cells}),-MIN({cells}),{theme.FAINTEST})")
    return theme.SHADES[dressing]
