"""Book: a workbook before it is a file. Sheets, what stands in their cells, and where blocks are.

A sheet holds single entries (texts, numbers, formulas with their computed value) and regions, a
region being a whole block of the graph. Rows and columns count from 0, as everywhere in Python.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from engine.cells.access import Rect
from engine.cells.block import Block
from engine.cells.formula import A1, Formulas
from engine.cells.graph import Graph
from engine.models.generate import Passage
from engine.studies.lens import Views
from exporters.story import Try

MAX_SHEET_NAME = 31


class Entry(NamedTuple):
    """One cell: a value, or a formula with its computed value."""

    value: str | float
    style: str
    formula: str | None = None  # without the leading "="
    array: bool = False  # an array formula: it looks at a range entry by entry


class Place(NamedTuple):
    """Where a block stands. `turned`: its rows run across the sheet, its columns down."""

    block: Block
    sheet: str
    top: int
    left: int
    turned: bool

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns on the sheet."""
        rows, cols = self.block.shape
        return (cols, rows) if self.turned else (rows, cols)

    def rect(self, rect: Rect) -> Rect:
        """A rectangle of the block, as one of the sheet."""
        top, bottom, left, right = rect
        if self.turned:
            top, bottom, left, right = left, right, top, bottom
        return Rect(top + self.top, bottom + self.top, left + self.left, right + self.left)

    def cell(self, i: int, j: int) -> tuple[int, int]:
        """The sheet row and column of one cell of the block."""
        row, col = (j, i) if self.turned else (i, j)
        return row + self.top, col + self.left


class Series(NamedTuple):
    """One series of a chart; its ranges stand on the chart's own sheet."""

    name: str
    categories: Rect  # texts, or the x of a scatter chart
    values: Rect
    labels: Sequence[str] = ()  # a text for every point


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


class Run(NamedTuple):
    """A row or column of labels: texts, or 0, 1, 2, ... where there are none."""

    area: Rect
    style: str
    texts: Sequence[str] = ()

    def at(self, k: int) -> str | int:
        return self.texts[k] if self.texts else k


@dataclass(repr=False)
class Sheet:
    """A sheet: entries and regions by place, and what dresses it."""

    name: str
    entries: dict[tuple[int, int], Entry] = field(default_factory=dict)
    regions: list[tuple[Place, str]] = field(default_factory=list)  # (place, style)
    runs: list[Run] = field(default_factory=list)
    widths: Mapping[int, float] = field(default_factory=dict)
    # cell -> 'Sheet'!A1, or external:file.xlsx
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    lists: dict[tuple[int, int], str] = field(default_factory=dict)  # cell -> range of choices
    scales: list[tuple[Rect, str]] = field(default_factory=list)  # (area, kind of dressing)
    charts: list[Chart] = field(default_factory=list)
    frozen: tuple[int, int] = (0, 0)
    merged: list[Rect] = field(default_factory=list)  # one cell to the eye; the first holds it
    heights: dict[int, float] = field(default_factory=dict)
    rules: dict[tuple[int, int], dict] = field(default_factory=dict)  # what may be typed, and why
    purpose: str = ""  # a line, for a sheet of the workbook's own

    def put(self, row: int, col: int, value: str | float, style: str = "text") -> None:
        self.entries[row, col] = Entry(value, style)

    def calc(
        self, row: int, col: int, formula: str, value: str | float, style: str, array: bool = False
    ) -> None:
        """Put a formula and the value that it has now."""
        self.entries[row, col] = Entry(value, style, formula, array)

    def link(self, row: int, col: int, text: str, target: str) -> None:
        self.put(row, col, text, "link")
        self.links[row, col] = target


class Pieces(NamedTuple):
    """A block that stands on several sheets, so many words on each; `places` has the pieces."""

    step: int
    names: list[str]


@dataclass(repr=False)
class Book:
    """A workbook: its graph, the values that its cells carry, its sheets and places."""

    title: str
    graph: Graph
    values: dict[str, Any]  # by name: an array, or a Stored one
    labels: Mapping[str, Sequence[str]]  # axis name -> a text for each index of it
    headings: Mapping[str, str]  # block -> the heading of the step that it begins
    passage: Passage
    views: Views
    by_hand: bool  # small enough that weights stand beside what they multiply
    live: tuple[str, ...] = ()  # the parts that recompute; (): all
    pieces: dict[str, Pieces] = field(default_factory=dict)  # blocks wider than a sheet
    spots: dict[str, tuple[str, int, int]] = field(default_factory=dict)  # name -> sheet, row, col
    sheets: dict[str, Sheet] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    tries: Sequence[Try] = ()  # the edits that its start sheet suggests

    def sheet(self, name: str) -> Sheet:
        """The sheet of that name, made at the end if it is new."""
        if len(name) > MAX_SHEET_NAME:
            raise ValueError(f"sheet name {name!r} is longer than {MAX_SHEET_NAME} characters")
        return self.sheets.setdefault(name, Sheet(name))

    @property
    def large(self) -> bool:
        """Whether it is of many words, with the logits of one token alone, or of a part."""
        return self.graph.spec.last_only or bool(self.live)

    @property
    def n_formulas(self) -> int:
        """How many cells hold a formula."""
        entries = [e for sheet in self.sheets.values() for e in sheet.entries.values() if e.formula]
        return len(entries) + sum(block.n_cells for block in self.graph if block.op)

    @property
    def n_cells(self) -> int:
        """How many cells there are, labels and all."""
        sheets = self.sheets.values()
        entries = sum(len(sheet.entries) for sheet in sheets)
        runs = sum(run.area.size for sheet in sheets for run in sheet.runs)
        return entries + runs + sum(p.block.n_cells for s in sheets for p, _ in s.regions)

    def area(self, name: str, sheet: str = "") -> str:
        """The range of a whole block, with its sheet unless it stands on `sheet`."""
        place = self.places[name]
        return self._text(place.sheet, place.rect(place.block.whole), sheet)

    def at(self, name: str, i: int, j: int, sheet: str = "") -> str:
        """The address of one cell of a block."""
        place = self.places[name]
        return self._text(place.sheet, place.rect(Rect(i, i + 1, j, j + 1)), sheet)

    def spot(self, name: str, sheet: str = "") -> str:
        """The address of a named single cell, with its sheet unless it stands on `sheet`."""
        where, row, col = self.spots[name]
        return self._text(where, one(row, col), sheet)

    def value(self, name: str, i: int, j: int) -> float:
        return float(self.values[name][i, j])

    def locate(self, block: Block, rect: Rect) -> tuple[Place, Rect]:
        """Where a rectangle of a block stands; of one in pieces, a rectangle within one piece."""
        place = self.places[block.name]
        if self.pieces and block.name in self.pieces:
            step, names = self.pieces[block.name]
            k = (rect.top if place.turned else rect.left) // step
            place, back = self.places[names[k]], -k * step
            rect = shifted(rect, back, 0) if place.turned else shifted(rect, 0, back)
        return place, place.rect(rect)

    def _lookup(self, block: Block, i: int, j: int) -> str:
        """The formula that looks an id up in a table that is in pieces."""
        (_, _, ids), (_, _, table) = block.operands
        step, names = self.pieces[table.name]
        ident = self.at(ids.name, i, 0, self.places[block.name].sheet)
        rows = []
        for name in names:
            place = self.places[name]
            whole = place.rect(place.block.whole)
            row = whole._replace(top=whole.top + j, bottom=whole.top + j + 1)
            rows.append(f"{quoted(place.sheet)}!{a1(row)}")
        piece = f"CHOOSE(INT({ident}/{step})+1,{','.join(rows)})"
        return f"INDEX({piece},1,MOD({ident},{step})+1)"

    def formulas(self, block: Block) -> Callable[[int, int], str]:
        """The A1 formulas of a computed block that has a place.

        LibreOffice computes cells that stand in a column and share a formula as one, in threads;
        where a column of tokens waits for the one before it, it then sees cycles that are none.
        A fixed row (`B$7`) makes every cell's formula its own.

        In a large workbook sharing is what counts, see `shared`: rows that do not move down the
        column are fixed there, and a matrix's column is picked by the row that the formula is in.
        """
        here = self.places[block.name].sheet
        generates = self.passage.n_prompt < len(self.passage.ids)
        ways = self._down(block) if self.large else {}
        if any(b.name in self.pieces and "?" in subscript for _, subscript, b in block.operands):
            return lambda i, j: self._lookup(block, i, j)

        def address(operand: Block, rect: Rect) -> str:
            place, area = self.locate(operand, rect)
            sheet = "" if place.sheet == here else f"{quoted(place.sheet)}!"
            way = ways.get(operand.name)
            if way == "picked" and operand.name not in self.pieces:
                whole = place.rect(rect._replace(left=0, right=operand.shape[1]))
                row = 1 if rect.bottom - rect.top == 1 else 0
                above = self.places[block.name].top
                return f"INDEX({sheet}{a1(whole, absolute=True)},{row},ROW()-{above})"
            return sheet + (fixed_rows(area) if generates or way == "still" else a1(area))

        return Formulas(
            block, A1, address, lambda b, axis: self.places[b.name].turned == (axis == 1)
        )

    def shared(self, block: Block) -> bool:
        """Whether the cells of a column share a formula, but for the rows that it reads.

        Then it is written once. LibreOffice keeps it once, and listens once to each range: a large
        model takes a third less of memory, and is recalculated in half the time.
        """
        if not self.large or block.partial or self.places[block.name].size[0] == 1:
            return False
        ways = self._down(block)
        return all(ways[b.name] and b.name not in self.pieces for _, _, b in block.operands)

    def _down(self, block: Block) -> dict[str, str]:
        """What each operand does as one goes down a column of the block: "still", it stays;
        "moving", its next row is read; "picked", its next column is; "", none of these."""
        turned = self.places[block.name].turned
        down = "j" if turned else "i"
        ways: dict[str, str] = {}
        for _, codes, operand in block.operands:
            crosswise = self.places[operand.name].turned
            if any(code[0] == "~" for code in codes):
                way = ""
            elif not any(down in code for code in codes):
                way = "still"
            elif codes[1 if crosswise else 0] == down:
                way = "moving"
            elif turned and codes[1] == "j" and codes[0] != "?" and operand.shape[1] > 1:
                way = "picked"
            else:
                way = ""
            ways[operand.name] = way if ways.get(operand.name, way) == way else ""
        return ways

    def _text(self, sheet: str, rect: Rect, here: str) -> str:
        return ("" if sheet == here else f"{quoted(sheet)}!") + a1(rect)


@cache
def quoted(sheet: str) -> str:
    """A sheet name as formulas have it."""
    return sheet if sheet.isalnum() and sheet[0].isalpha() else "'" + sheet.replace("'", "''") + "'"


@cache
def column(index: int) -> str:
    """A column's letters: 0 is A."""
    index, letter = divmod(index, 26)
    return (column(index - 1) if index else "") + chr(65 + letter)


def a1(rect: Rect, absolute: bool = False) -> str:
    """A rectangle of a sheet as text: `B2` or `B2:C9`; absolute: `$B$2:$C$9`."""
    top, bottom, left, right = rect
    d = "$" if absolute else ""
    first = f"{d}{column(left)}{d}{top + 1}"
    if bottom - top == right - left == 1:
        return first
    return f"{first}:{d}{column(right - 1)}{d}{bottom}"


def span(rect: Rect, absolute: bool = False) -> str:
    """A rectangle of a sheet as a range even where it is one cell: `B2:B2`."""
    text = a1(rect, absolute)
    return text if ":" in text else f"{text}:{text}"


def entry(rect: Rect, row: str, col: str, sheet: str = "", absolute: bool = False) -> str:
    """A formula for the entry of a range at a row and column, counted from 1. Of one cell, that
    cell: not every program looks things up in a lone one."""
    prefix = f"{quoted(sheet)}!" if sheet else ""
    text = prefix + a1(rect, absolute)
    return f"INDEX({text},{row},{col})" if rect.size > 1 else text


def fixed_rows(rect: Rect) -> str:
    """A rectangle of a sheet as text with absolute rows: `B$2:C$9`."""
    first = f"{column(rect.left)}${rect.top + 1}"
    last = f"{column(rect.right - 1)}${rect.bottom}"
    return first if first == last else f"{first}:{last}"


def cell(row: int, col: int, absolute: bool = False) -> str:
    """The address of one cell as text."""
    return a1(one(row, col), absolute)


def shifted(rect: Rect, down: int, right: int) -> Rect:
    """A rectangle, moved."""
    top, bottom, left, end = rect
    return Rect(top + down, bottom + down, left + right, end + right)


def one(row: int, col: int) -> Rect:
    """The rectangle of one cell."""
    return Rect(row, row + 1, col, col + 1)
