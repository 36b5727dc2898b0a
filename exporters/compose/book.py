"""Book: a workbook before it is a file; its sheets, the contents of their cells, the places of
blocks.

A sheet holds single entries (texts, numbers, formulas) and regions, which are whole blocks of the
graph. A formula is an expression: its text and its value are made on demand, so it may read cells
that are added later. The formulas of tables are made even later, since comparing a workbook with
its file needs none of them. Rows and columns count from 0.

Nothing here knows a model; `model_book` does.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.arrays import Arrays
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError, UnknownNameError
from cellformer.engine.cells.evaluator import Evaluator, edited
from cellformer.engine.cells.expression import Area, Expression, Look, Notation
from cellformer.engine.cells.formula import Formulas
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.language import Language, current, translated
from cellformer.engine.cells.table import Reader, settled
from cellformer.engine.cells.texts import cut
from cellformer.engine.cells.values import CellError, FormulaError, as_shown, no_error
from cellformer.exporters.compose.address import A1, address
from cellformer.exporters.compose.dressing import Dressing
from cellformer.exporters.compose.story import PrintedNumber, Suggestion

START = "Start"  # the first sheet
MAX_SHEET_NAME = 31
# styles of cells that hold data, which is the same in every language
DATA = {"token", "word", "word shown", "built", "sentence", "clipped", "line", "dial", "input blue"}
OnLayout = Callable[["Book"], object]  # called with a book when `alone` is known, before values


class Entry(NamedTuple):
    """One cell: a value, or a formula."""

    value: Any  # of a formula: None, and it is computed when it is asked for
    style: str
    formula: Expression | None = None
    array: bool = False  # an array formula: it looks at a range entry by entry


@dataclass(slots=True, eq=False)
class TableFormula(Expression):
    """The formula of a table's cell, made on demand. Its value is the table's."""

    block: Block
    i: int
    j: int

    def text(self, notation: Notation) -> str:
        return self._made.text(notation)

    def value(self, look: Look) -> Any:
        return look(self.block[self.i, self.j])

    def areas(self) -> Iterator[Area]:
        return self._made.areas()

    @property
    def _made(self) -> Expression:
        return self.block.formula(self.i, self.j)


@dataclass(slots=True, eq=False)
class Filled(TableFormula):
    """The formula of a cell that a reader would fill in: it reads cells where they stand, and no
    copy of a block with blanks."""

    locate: Callable[[Area], tuple[str, Rect]]

    def text(self, notation: Notation) -> str:
        assert isinstance(notation, A1)
        return self._made.text(A1(self.locate, notation.here))


class Place(NamedTuple):
    """The place of a block on a sheet. `turned`: its rows run across the sheet, its columns down.
    `named`: the workbook defines its name."""

    block: Block
    sheet: str
    top: int
    left: int
    turned: bool
    named: bool = True

    @property
    def size(self) -> tuple[int, int]:
        """Its number of rows and columns on the sheet."""
        rows, cols = self.block.shape
        return (cols, rows) if self.turned else (rows, cols)

    def rect(self, rect: Rect) -> Rect:
        """A rectangle of the block as a rectangle of the sheet."""
        top, bottom, left, right = rect
        if self.turned:
            top, bottom, left, right = left, right, top, bottom
        return Rect(top + self.top, bottom + self.top, left + self.left, right + self.left)

    def holds(self, row: int, col: int) -> bool:
        """Whether a cell of the sheet belongs to the block."""
        height, width = self.size
        return 0 <= row - self.top < height and 0 <= col - self.left < width

    def cell(self, i: int, j: int) -> tuple[int, int]:
        """The sheet row and column of one cell of the block."""
        row, col = (j, i) if self.turned else (i, j)
        return row + self.top, col + self.left

    def own(self, row: int, col: int) -> tuple[int, int]:
        """The cell of the block that stands in a row and column of the sheet."""
        i, j = row - self.top, col - self.left
        return (j, i) if self.turned else (i, j)

    def own_rect(self, rect: Rect) -> Rect:
        """A rectangle of the sheet as a rectangle of the block."""
        top, left = self.own(rect.top, rect.left)
        bottom, right = self.own(rect.bottom, rect.right)
        return Rect(top, bottom, left, right)


class Blanks(NamedTuple):
    """Cells of a block for the reader to fill in, and the block's copy that formulas read in its
    place: it has the right numbers there."""

    cells: frozenset[tuple[int, int]]
    copy: Place

    def touch(self, rect: Rect) -> bool:
        """Whether any of them lies in a rectangle of the block."""
        return any(
            rect.top <= i < rect.bottom and rect.left <= j < rect.right for i, j in self.cells
        )


class Series(NamedTuple):
    """One series of a chart."""

    name: str | Area  # a text, or the cell that has it
    categories: Area  # texts, or the x of a scatter chart
    values: Area
    labels: Sequence[str] = ()  # a text for every point
    colour: str = ""  # one of the chart's own, unless it is given
    joined: bool = False  # scatter: a line from point to point
    bears: str = ""  # on which side of its points the series' name stands: "right", "above", ...


@dataclass
class Chart:
    """A chart: "column", "bar", "line", or "scatter" with or without lines between the points."""

    row: int
    col: int
    kind: str
    title: str
    series: list[Series]
    size: tuple[int, int] = (620, 300)  # pixels
    axes: tuple[str, str] = ("", "")  # titles of x and y
    joined: bool = False  # scatter: a line from point to point
    number: str = "0%"  # format of the values
    shares: bool = False  # of a whole: the axis ends at 100 %
    reach: float = 0.0  # scatter: both axes run from minus this to this; 0: as far as the points
    across: str = "General"  # scatter: format of x

    def __post_init__(self) -> None:
        self.title = translated(self.title)
        self.axes = (translated(self.axes[0]), translated(self.axes[1]))
        for k, series in enumerate(self.series):
            if isinstance(series.name, str):
                self.series[k] = series._replace(name=translated(series.name))


class Run(NamedTuple):
    """A row or column of labels: texts, or the numbers 0, 1, 2, ..."""

    area: Rect
    style: str
    texts: Sequence[str] = ()

    def at(self, row: int, col: int) -> str | int:
        """The entry of a row and a column of the sheet."""
        k = row - self.area.top + col - self.area.left
        return self.texts[k] if self.texts else k


@dataclass(repr=False, eq=False)
class Sheet:
    """A sheet: entries and regions by place, and their formatting."""

    name: str
    entries: dict[tuple[int, int], Entry] = field(default_factory=dict)
    regions: list[tuple[Place, str]] = field(default_factory=list)  # (place, style)
    runs: list[Run] = field(default_factory=list)
    widths: Mapping[int, float] = field(default_factory=dict)
    # cell -> 'Sheet'!A1, or external:file.xlsx
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    lists: dict[tuple[int, int], Area] = field(default_factory=dict)  # cell -> its choices
    dressings: list[tuple[Rect, Dressing]] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    frozen: tuple[int, int] = (0, 0)
    merged: list[Rect] = field(default_factory=list)  # one cell to the eye; the first holds it
    heights: dict[int, float] = field(default_factory=dict)
    rules: dict[tuple[int, int], dict[str, Any]] = field(
        default_factory=dict
    )  # what may be typed, and why
    areas: list[tuple[Rect, dict[str, Any]]] = field(default_factory=list)  # the same, of many
    notes: dict[tuple[int, int], str] = field(default_factory=dict)  # what a cell says when asked
    purpose: str = ""  # a line, for a sheet of the workbook's own
    tab: str = ""  # the colour of its tab; "": the program's own
    hidden: bool = False  # only programs read it; it is shown by a right click on any tab
    secret: bool = False  # nor by that
    lettered: bool = True  # whether the letters of columns and the numbers of rows are seen
    print_area: Rect | None = None  # what prints; None: all of it
    prints: Literal["all", "first page", "nothing"] = "all"
    heads: int | None = None  # the row of column heads that every printed page repeats
    suggestions: Sequence[Suggestion] = ()  # the edits that it suggests itself

    def __repr__(self) -> str:
        n_blocks = len(self.regions)
        return f"<Sheet {self.name}: {len(self.entries)} cells and {n_blocks} blocks>"

    def __getitem__(self, key: tuple[int | slice, int | slice] | Rect) -> Area:
        """Cells of the sheet, for formulas: `sheet[row, col]`, `sheet[top:bottom, col]`."""
        if isinstance(key, Rect):
            return Area(self, key)
        row, col = key
        top, bottom = (row.start, row.stop) if isinstance(row, slice) else (row, row + 1)
        left, right = (col.start, col.stop) if isinstance(col, slice) else (col, col + 1)
        return Area(self, Rect(top, bottom, left, right))

    @property
    def ruled(self) -> list[tuple[Rect, dict[str, Any]]]:
        """The areas with rules for typed values."""
        return [*((self[at].rect, rule) for at, rule in self.rules.items()), *self.areas]

    def put(self, row: int, col: int, value: str | float, style: str = "text") -> None:
        """Put a number, or a text in the book's language; typed entries and words stay as they
        are."""
        if isinstance(value, str) and style not in DATA:
            value = translated(value)
        self.entries[row, col] = Entry(value, style)

    def across(self, row: int, col: int, values: Iterable[Any], style: str) -> None:
        """Put numbers or texts side by side, the first into that cell."""
        for k, value in enumerate(values, col):
            self.put(row, k, value, style)

    def down(self, row: int, col: int, values: Iterable[Any], style: str) -> None:
        """Put numbers or texts one below the other, the first into that cell."""
        for k, value in enumerate(values, row):
            self.put(k, col, value, style)

    def lines(self, row: int, lines: Iterable[Iterable[Any]], styles: Mapping[int, str]) -> None:
        """Put lines of numbers and texts from a row on, into the columns that have a style."""
        for k, line in enumerate(lines, row):
            for (col, style), value in zip(styles.items(), line, strict=True):
                self.put(k, col, value, style)

    def hold(self, row: int, col: int, value: str | float, style: str) -> None:
        """Put data: a typed number or text, a word, a name."""
        self.entries[row, col] = Entry(value, style)

    def dress(self, area: Area, *dressings: Dressing) -> None:
        """Add a conditional format to cells of this sheet."""
        assert area.grid is self, "these are cells of a block: use the composer"
        self.dressings += [(area.rect, dressing) for dressing in dressings]

    def link(self, row: int, col: int, text: str, target: str, style: str = "link") -> None:
        """Put a text that is a link."""
        self.put(row, col, text, style)
        self.links[row, col] = target


class Reading(Reader):
    """The values of a book's cells, given the values of its graph's blocks.

    A sheet's own formulas are computed on demand, and cached.
    """

    def __init__(self, book: "Book", values: MutableMapping[str, Any]):
        super().__init__(values)
        self.book = book
        self._kept = dict[tuple[str, int, int], Any]()
        self._ranges = dict[tuple[str, Rect], np.ndarray]()
        self._across = dict[tuple[str, int, int], list[Place]]()

    def __call__(self, area: Area) -> Any:
        """The value of an area of a block or of a sheet. Raises FormulaError for an error."""
        if not isinstance(area.grid, Sheet) and area.grid.name not in self.book.shown:
            return self._of_block(area)
        name, rect = self.book.locate(area)
        if rect.size > 1:
            return self._range(name, rect)
        return no_error(self.cell(name, rect.top, rect.left))

    def _of_block(self, area: Area) -> Any:
        """An area of a block, oriented as on the sheet."""
        found, block = super().__call__(area), area.grid
        if area.rect.size == 1 or not isinstance(block, Block):
            return found
        if block.partial:
            found = np.where(block.mask.seen(area.rect), found, None)
        place = self.book.places.get(block.name)
        return found.swapaxes(0, 1) if place and place.turned else found

    def _range(self, sheet: str, rect: Rect) -> np.ndarray:
        if (sheet, rect) not in self._ranges:
            run = next((r for r in self.book.sheets[sheet].runs if r.area.covers(rect)), None)
            cells = [run.at(*at) if run else self.cell(sheet, *at) for at in rect.cells()]
            array = np.empty(len(cells), dtype=object)
            array[:] = cells
            self._ranges[sheet, rect] = settled(array).reshape(
                (rect.bottom - rect.top, rect.right - rect.left)
            )
        return self._ranges[sheet, rect]

    def cell(self, sheet: str, row: int, col: int) -> Any:
        """The value of a cell of a sheet; None if it is blank."""
        at = (sheet, row, col)
        if at not in self._kept:
            self._kept[at] = self._cell(*at)
        return self._kept[at]

    def _cell(self, sheet: str, row: int, col: int) -> Any:
        entry = self.book.sheets[sheet].entries.get((row, col))
        if entry is not None:
            return self.of(entry)
        for place in self._regions(sheet, row):
            if place.holds(row, col):
                return self.in_block(place, row, col)
        for run in self.book.sheets[sheet].runs:
            top, bottom, left, right = run.area
            if top <= row < bottom and left <= col < right:
                return run.at(row, col)
        return None

    def _regions(self, sheet: str, row: int) -> list[Place]:
        """The regions that cross a row of a sheet, cached until one is added."""
        regions = self.book.sheets[sheet].regions
        key = sheet, row, len(regions)
        if key not in self._across:
            self._across[key] = [p for p, _ in regions if 0 <= row - p.top < p.size[0]]
        return self._across[key]

    def in_block(self, place: Place, row: int, col: int) -> Any:
        """The value of a block's cell, by its row and column on the sheet; None if it is blank."""
        i, j = place.own(row, col)
        value = self.values[place.block.name][i, j] if place.block.has(i, j) else None
        return value.item() if isinstance(value, np.generic) else value

    def of(self, entry: Entry) -> Any:
        """The value of an entry."""
        formula = entry.formula
        if formula is None:
            return None if entry.value == "" else entry.value
        try:
            if isinstance(formula, TableFormula):  # the graph has computed it
                return as_shown(self.values[formula.block.name].item(formula.i, formula.j))
            return as_shown(formula.value(self))
        except FormulaError as error:
            return CellError(error)


@dataclass(repr=False)
class Book:
    """A workbook: its graph, its sheets, and the places of the graph's blocks on them.

    >>> book = cf.build("loss")
    >>> book
    <Book loss: 8 sheets, 42 blocks>
    >>> list(book.sheets)[:2]
    ['Start', 'Entropy']
    """

    title: str
    graph: Graph = field(default_factory=Graph)
    # single cells that have a name: name -> sheet, row, column
    named_cells: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    sheets: dict[str, Sheet] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    # blocks that are not in the graph, for only people read them: labels, sums, verdicts
    shown: dict[str, Place] = field(default_factory=dict)
    suggestions: Sequence[Suggestion] = ()  # the edits that its start sheet suggests
    about: Sequence[str] = ()  # the sentences of its start sheet
    examples: Sequence[str] = ()  # sentences that its page offers
    held: list[PrintedNumber] = field(
        default_factory=list
    )  # what its source prints, number by number
    # whether its blocks `latch.*` read what is computed from them: a recalculation is one iteration
    iterates: bool = False
    opens_on: str = ""  # the sheet that one sees first; "": the first one
    language: Language = field(default_factory=current)  # that it is built in

    # large tables of numbers that have their rows of a sheet to themselves, but for labels
    alone: list[Place] = field(default_factory=list)
    blanks: dict[str, Blanks] = field(default_factory=dict)  # cells to fill in, by block
    # values of blocks that are not in the graph: pieces of large ones, baselines
    others: dict[str, Any] = field(default_factory=dict)
    _clean: "Reading | None" = None
    _notations: dict[str, A1] = field(default_factory=dict)  # by the sheet that formulas stand on

    def __repr__(self) -> str:
        what = f"{len(self.sheets)} sheets, {len(self.graph.blocks)} blocks"
        return f"<{type(self).__name__} {cut(self.title)}: {what}>"

    @explained
    def sheet(self, name: str) -> Sheet:
        """The sheet of that name, appended if it is new."""
        if len(name) > MAX_SHEET_NAME:
            raise InputError(f"the sheet name {name!r} is longer than {MAX_SHEET_NAME} characters")
        return self.sheets.setdefault(name, Sheet(name))

    @property
    def n_given(self) -> int:
        """The number of given words of a sentence that continues itself; 0 if none does."""
        return 0

    @property
    def n_formulas(self) -> int:
        """The number of cells with a formula."""
        return sum(
            sum(entry.formula is not None for entry in sheet.entries.values())
            + sum(place.block.n_cells for place, _ in sheet.regions if place.block.op)
            for sheet in self.sheets.values()
        )

    @property
    def n_cells(self) -> int:
        """The number of cells, labels included."""
        return sum(
            len(sheet.entries)
            + sum(run.area.size for run in sheet.runs)
            + sum(place.block.n_cells for place, _ in sheet.regions)
            for sheet in self.sheets.values()
        )

    def lay(self, place: Place, style: str) -> None:
        """Place a table: its typed values, or its formulas."""
        block, sheet = place.block, self.sheet(place.sheet)
        self.places[block.name] = place
        for i in range(block.shape[0]):
            typed = self.graph.inputs[block.name][i] if block.expression is None else block.begun(i)
            for j, number in enumerate(typed):
                at = place.cell(i, j)
                if number is None:
                    sheet.entries[at] = Entry(None, style, TableFormula(block, i, j))
                else:
                    sheet.hold(*at, number, style)

    # --- where things stand ---------------------------------------------------------------

    def locate(self, area: Area) -> tuple[str, Rect]:
        """The sheet and the rectangle of an area of a block or of a sheet."""
        if isinstance(area.grid, Sheet):
            return area.grid.name, area.rect
        place = self.shown.get(area.grid.name) or self.places[area.grid.name]
        return place.sheet, place.rect(area.rect)

    def read_at(self, area: Area) -> tuple[str, Rect]:
        """The place where formulas read an area: its own, or a copy of a block with blanks."""
        blanks = self.blanks.get(area.grid.name)
        if blanks and not isinstance(area.grid, Sheet) and blanks.touch(area.rect):
            return blanks.copy.sheet, blanks.copy.rect(area.rect)
        return self.locate(area)

    @explained
    def cell(self, name: str, i: int, j: int) -> tuple[str, int, int]:
        """The sheet, row and column of one cell of a block."""
        place = self._place(name)
        return place.sheet, *place.cell(i, j)

    def _place(self, name: str) -> Place:
        if name not in self.places:
            raise UnknownNameError("block on a sheet", name, self.places)
        return self.places[name]

    def address(self, area: Area, here: str = "") -> str:
        """An area's address, with its sheet's name unless that is `here`."""
        sheet, rect = self.locate(area)
        return address(sheet, rect, here, area.stays, area.range)

    @explained
    def area(self, name: str, sheet: str = "") -> str:
        """The address of a whole block, with its sheet's name unless that is `sheet`."""
        return self.address(self._place(name).block.area, sheet)

    # --- formulas and their values --------------------------------------------------------

    def text(self, formula: Expression, here: str) -> str:
        """The text of a formula on a sheet, without the leading "="."""
        return formula.text(self.notation(here))

    def notation(self, here: str) -> A1:
        """The notation for formulas on a sheet."""
        return self._notations.setdefault(here, A1(self.read_at, here))

    def formulas(self, block: Block) -> Callable[[int, int], str]:
        """The formulas of a placed, computed block, by row and column.

        LibreOffice computes cells that share a formula down a column together, and uses old values
        if cells depend on each other in a circle: in a book that iterates, fixed rows make every
        formula different.
        """
        here = self.places[block.name].sheet
        if block.expression is not None:
            return lambda i, j: self.text(block.formula(i, j), here)

        def where(operand: Block, rect: Rect) -> str:
            sheet, there = self.read_at(Area(operand, rect))
            return address(sheet, there, here, "rows" if self.iterates else "")

        return Formulas(
            block,
            self.notation(here),
            where,
            lambda b, axis: self.places[b.name].turned == (axis == 1),
        )

    def lines(self, block: Block) -> Callable[[int, int, Sequence[int]], list[str]]:
        """The formulas of some cells of a row (axis 0) or a column (axis 1) of a computed block."""
        formulas = self.formulas(block)
        if isinstance(formulas, Formulas):
            return formulas.line
        return lambda axis, at, cells: [formulas(k, at) if axis else formulas(at, k) for k in cells]

    def shared(self, block: Block) -> bool:
        """Whether the cells of a column share one formula, which is written once."""
        return False

    @property
    def values(self) -> Mapping[str, Any]:
        """The values of all blocks, by name: an array each, or a matrix that stays in its file."""
        return Arrays(ChainMap(self.graph.computed, self.others))

    @property
    def clean(self) -> Reading:
        """The values as built."""
        computed = self.graph.computed  # of blocks that were added since, too
        self._clean = self._clean or Reading(self, ChainMap(computed, self.others))
        return self._clean

    def refresh(self) -> None:
        """Compute the values as built again, after a change of cells."""
        self._clean = None

    @explained
    def edited(self, edits: Mapping[Area, float | str]) -> Reading:
        """The values after edits of cells that blocks hold: `{scores[2, 1]: 4.0}`."""
        return Reading(self, {**self.others, **edited(self.graph, edits).values})

    def reading(self, live: Evaluator) -> Reading:
        """The values as an evaluator of the book's graph has them."""
        return Reading(self, {**self.others, **{name: live[name] for name in self.graph.blocks}})

    @explained
    def value(self, name: str, i: int, j: int) -> float:
        """The number in one cell of a block."""
        return float(self.values[name][i, j])
