"""The visible texts and cells of each sheet of a workbook, as LibreOffice places them.

Positions are LibreOffice's, in pixels at 100 %. Texts are as wide as LibreOffice measures them,
and cells show what it writes. Styles and links are read from the file. See `screen_faults.py`.
"""

import csv
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from libreoffice import PIXEL, looked_at, measured

from cellformer.exporters.compose.address import of_cell, position
from cellformer.exporters.compose.theme import FILLS, GREY, STYLES
from cellformer.exporters.file.reading import WorkbookFile

At = tuple[int, int]  # a row and a column, counted from 0
MARGIN = 2.7  # pixels at both sides of a cell's text, together
TYPED = {fill.lstrip("#") for fill in (FILLS["input"], STYLES["blank"]["bg_color"])}
CELL = re.compile(rb'<c r="([A-Z]+\d+)"(?: s="(\d+)")?([^>]*?)(/?)>')
FIELDS = 1 << 20  # characters of one in a CSV file


class Style(NamedTuple):
    """How a cell looks, as the file says."""

    font: str
    size: float
    bold: bool
    fill: str
    number: str  # its format; "": a program's own
    align: str
    wraps: bool
    turned: bool
    shrinks: bool
    open: bool  # not locked
    grey: bool
    framed: bool

    @property
    def is_head(self) -> bool:
        """Whether it is the style of a column's head."""
        return self.grey and self.align == "center"

    @property
    def is_mark(self) -> bool:
        """Whether cells of this style show only a colour, and no number."""
        return self.number == ";;;" and not self.grey and not self.framed


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        """Whether they share more than a pixel."""
        across = min(self.right, other.right) - max(self.left, other.left)
        return across > 1 and min(self.bottom, other.bottom) - max(self.top, other.top) > 1


class Cell(NamedTuple):
    """A cell that is not blank."""

    shown: str
    style: Style
    is_text: bool


class Axis(NamedTuple):
    """An axis of a chart: the format of its numbers, and the least and the greatest of them."""

    number: str
    least: float
    most: float


@dataclass
class Screen:
    """A sheet, as LibreOffice shows it."""

    name: str
    xs: list[float]  # where each column begins
    ys: list[float]  # where each row begins
    cells: dict[At, Cell]
    inputs: list[At]  # the cells for what is typed, also blank ones
    merged: dict[At, At]  # the first cell of an area, and its last
    links: dict[At, str]
    charts: list[tuple[Box, list[Axis]]]
    widths: Mapping[tuple[Style, str], float]

    def box(self, at: At) -> Box:
        """The rectangle of a cell, or of the area that it is merged into."""
        (top, left), (bottom, right) = at, self.merged.get(at, at)
        return Box(
            _edge(self.xs, left), _edge(self.ys, top), _edge(self.xs, right + 1),
            _edge(self.ys, bottom + 1),
        )  # fmt: skip

    def width(self, style: Style, text: str) -> float:
        """The width of a text, or of a number whose digits are as wide as 0."""
        return self.widths[style, text]

    @cached_property
    def texts(self) -> dict[At, Box]:
        """Where the text of each cell runs, over blank cells beside it, too, if nothing cuts it."""
        found = {}
        for at, cell in self.cells.items():
            if cell.shown and not (cell.style.wraps or cell.style.turned):
                found[at] = self._run(at, cell)
        return found

    def _run(self, at: At, cell: Cell) -> Box:
        box = self.box(at)
        more = self.width(cell.style, plain(cell)) + MARGIN - (box.right - box.left)
        if more <= 0 or not cell.is_text or cell.style.shrinks or cell.style.align == "fill":
            return box
        left = {"right": more, "center": more / 2}.get(cell.style.align, 0)
        return box._replace(left=box.left - left, right=box.right + more - left)

    def beside(self, at: At, step: int) -> At | None:
        """The next cell of a row that is not blank, to the right or the left."""
        row, col = at
        columns = self._columns[row]
        k = columns.index(col) + step
        return (row, columns[k]) if 0 <= k < len(columns) else None

    @cached_property
    def _columns(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for row, col in sorted(self.cells):
            found.setdefault(row, []).append(col)
        return found

    def shown(self, at: At) -> str:
        """What a cell shows; "" if it is blank."""
        return self.cells[at].shown if at in self.cells else ""

    def says(self, at: At, fault: str) -> str:
        """A sentence about a cell."""
        told = f": ‘{self.shown(at)}’" if self.shown(at) else ""
        return f"{self.name}!{of_cell(*at)}: {fault}{told}"


def _edge(edges: Sequence[float], k: int) -> float:
    return edges[min(k, len(edges) - 1)]


def plain(cell: Cell) -> str:
    """What is measured: of a number, zeros for digits."""
    return cell.shown if cell.is_text else re.sub(r"\d", "0", cell.shown)


# --- a workbook, read ---------------------------------------------------------------------------


def screens_of(path: Path, folder: Path, font: str = "") -> list[Screen]:
    """The visible sheets of a workbook. With a `font`, texts are as wide as in it."""
    told, folder = looked_at(path, folder)
    reading = _Reading(path, folder)
    screens: list[Screen] = []
    for kind, *fields in told:
        if kind == "sheet":
            screens.append(reading.screen(fields[0]))
            axes = iter(reading.axes(fields[0]))
        elif kind == "columns":
            screens[-1].xs = _edges(fields)
        elif kind == "rows":
            screens[-1].ys = _edges(fields)
        else:
            left, top, width, height = (int(field) / PIXEL for field in fields)
            box = Box(left, top, left + width, top + height)
            screens[-1].charts.append((box, next(axes, [])))
    wanted = sorted({key for screen in screens for key in _measures(screen)})
    asked = [(font or style.font, style.size, style.bold, text) for style, text in wanted]
    widths = dict(zip(wanted, measured(asked, folder), strict=True))
    for screen in screens:
        screen.widths = widths
    return screens


def _edges(sizes: Sequence[str]) -> list[float]:
    return [0.0, *(size / PIXEL for size in accumulate(map(int, sizes)))]


def _measures(screen: Screen) -> Iterator[tuple[Style, str]]:
    for cell in screen.cells.values():
        if cell.shown:
            yield cell.style, plain(cell)
        if cell.shown and cell.style.wraps:
            yield cell.style, " "
            yield from ((cell.style, word) for word in re.split("[ \n]", cell.shown))


class _Reading:
    """A workbook's file, and the CSV files of what its cells show."""

    def __init__(self, path: Path, folder: Path):
        self.file, self.folder, self.stem = WorkbookFile(path), folder, path.stem
        self.archive = zipfile.ZipFile(path)
        self.styles = [*_styles(ElementTree.fromstring(self.archive.read("xl/styles.xml")))]

    def screen(self, name: str) -> Screen:
        xml = self.archive.read(self.file.parts[name])
        shown = self._shown(name)
        cells, inputs = dict[At, Cell](), list[At]()
        for where, style, rest, blank in CELL.findall(xml):
            at, look = position(where.decode()), self.styles[int(style or 0)]
            if look.open and look.fill in TYPED:
                inputs.append(at)
            if not blank:
                cells[at] = Cell(shown.get(at, ""), look, b' t="s' in rest or b"inline" in rest)
        head, _, tail = xml.partition(b"</sheetData>")
        rest = ElementTree.fromstring(head[: head.index(b"<sheetData>")] + tail)
        merged = {}
        for area in rest.iterfind("{*}mergeCells/{*}mergeCell"):
            first, _, last = area.attrib["ref"].partition(":")
            merged[position(first)] = position(last or first)
        inside = {
            (row, col)
            for (top, left), (bottom, right) in merged.items()
            for row in range(top, bottom + 1)
            for col in range(left, right + 1)
        } - set(merged)
        links = {
            position(link.attrib["ref"].partition(":")[0]): link.get("location", "")
            for link in rest.iterfind("{*}hyperlinks/{*}hyperlink")
        }
        inputs = [at for at in inputs if at not in inside]
        return Screen(name, [], [], cells, inputs, merged, links, [], {})

    def _shown(self, name: str) -> dict[At, str]:
        csv.field_size_limit(FIELDS)
        with open(self.folder / f"{self.stem}-{unquote(name)}.csv", encoding="utf-8") as file:
            lines = csv.reader(file)
            return {
                (row, col): text
                for row, line in enumerate(lines)
                for col, text in enumerate(line)
                if text
            }

    def axes(self, name: str) -> Iterator[list[Axis]]:
        """The axes with numbers of each chart of a sheet."""
        drawings = self._beside(self.file.parts[name], "drawing")
        charts = [chart for drawing in drawings for chart in self._beside(drawing, "chart")]
        for chart in charts:
            yield [*_axes(ElementTree.fromstring(self.archive.read(chart)))]

    def _beside(self, part: str, kind: str) -> list[str]:
        """The parts of a kind that a part refers to."""
        folder, _, file = part.rpartition("/")
        relations = f"{folder}/_rels/{file}.rels"
        if relations not in self.archive.namelist():
            return []
        return [
            "xl/" + relation.attrib["Target"].removeprefix("../")
            for relation in ElementTree.fromstring(self.archive.read(relations))
            if relation.attrib["Type"].endswith(f"/{kind}")
        ]


def _styles(xml: Element) -> Iterator[Style]:
    """The styles of a workbook's cells, by number."""
    formats = {"1": "0", "2": "0.00", "9": "0%", "10": "0.00%", "49": "@"}
    formats |= {f.attrib["numFmtId"]: f.attrib["formatCode"] for f in xml.iterfind(".//{*}numFmt")}
    fonts, fills = xml.findall("{*}fonts/{*}font"), xml.findall("{*}fills/{*}fill")
    for xf in xml.iterfind("{*}cellXfs/{*}xf"):
        font = fonts[int(xf.attrib["fontId"])]
        colour = fills[int(xf.attrib["fillId"])].find("*/{*}fgColor")
        found = xf.find("{*}alignment")
        align = {} if found is None else found.attrib
        yield Style(
            font=_value(font, "name", "Arial"),
            size=float(_value(font, "sz", "10")),
            bold=font.find("{*}b") is not None,
            fill="" if colour is None else colour.get("rgb", "")[2:],
            number=formats.get(xf.attrib["numFmtId"], ""),
            align=align.get("horizontal", ""),
            wraps=align.get("wrapText") == "1",
            turned="textRotation" in align,
            shrinks=align.get("shrinkToFit") == "1",
            grey=GREY.lstrip("#") in (_colour(font) or ""),
            framed=xf.attrib["borderId"] != "0",
            open=xf.find("{*}protection[@locked='0']") is not None,
        )


def _colour(font: Element) -> str | None:
    found = font.find("{*}color")
    return None if found is None else found.get("rgb")


def _value(font: Element, tag: str, usual: str) -> str:
    found = font.find(f"{{*}}{tag}")
    return usual if found is None else found.attrib["val"]


def _axes(xml: Element) -> Iterator[Axis]:
    """The axes of a chart that show numbers: of a scatter chart two, of others that of values."""
    x, y = ([*_numbers(xml, tag)] for tag in ("xVal", "yVal"))
    values = [*_numbers(xml, "val")]
    across = [axis.find("{*}axPos").attrib["val"] in "bt" for axis in xml.iterfind(".//{*}valAx")]  # type: ignore[union-attr]
    for axis, horizontal in zip(xml.iterfind(".//{*}valAx"), across, strict=True):
        format_ = axis.find("{*}numFmt")
        here = values or (x if horizontal else y)
        if format_ is not None and here:
            yield Axis(format_.attrib["formatCode"], min(here), max(here))


def _numbers(xml: Element, tag: str) -> Iterator[float]:
    for point in xml.iterfind(f".//{{*}}{tag}//{{*}}numCache/{{*}}pt/{{*}}v"):
        if point.text:
            yield float(point.text)
