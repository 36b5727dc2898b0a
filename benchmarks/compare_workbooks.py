"""Compare workbooks built before and after a change, cell by cell: two folders of .xlsx files.

    python benchmarks/compare_workbooks.py BEFORE AFTER [--brief] [--moved]

A change of the code that should leave the workbooks as they are is only safe if somebody looks at
every cell. This does: every formula, value and style of workbooks of the same name, every row's
height, and all that stands around the cells. Numbers that differ by rounding (1e-12 of the number,
or 1e-13) are counted and let pass; anything else makes the exit code 1. --brief is silent about
workbooks that are the same.

A change that only moves tables is held to their names instead: with --moved, the values of every
named range are compared wherever it stands, upright or transposed, and moves are let pass.
"""

import argparse
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import IO, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.texts import from_xml
from cellformer.exporters.compose.address import column, index, moved, rectangle
from cellformer.exporters.file.reading import Value, WorkbookFile
from cellformer.exporters.file.scanning import text_of, typed

RELATIVE, ABSOLUTE = 1e-12, 1e-13  # what is rounding
N_SHOWN = 5  # differences of a kind that are shown
LONGEST = 160  # characters of a text that is shown whole
ROUNDING, MOVED, TRANSPOSED = "value, by rounding", "moved", "transposed"
STRINGS, STYLES = "xl/sharedStrings.xml", "xl/styles.xml"
IN_CHARTS = re.compile(r"(?<=<c:v>)-?\d[\d.]*(?:[eE][-+]?\d+)?(?=</c:v>)")  # numbers that they keep


class Cell(NamedTuple):
    """One cell. Of those that share a formula, the first one's text stands for all."""

    value: Value
    written: str | None = None
    from_first: Span = (0, 0)  # how far down and right of the formula's first cell
    array: str = ""  # the range of an array formula
    style: int = 0

    @property
    def formula(self) -> str | None:
        """The formula as this cell has it, without its equals sign; None: there is none."""
        return self.written and moved(self.written, *self.from_first)


NOTHING = Cell(None)


class Row(NamedTuple):
    """A row of a sheet: where it stands, how it looks, and its cells by column, blank ones too."""

    number: int
    attributes: dict[str, str]
    cells: dict[int, Cell]


class Reader:
    """Reads the rows of one sheet, and remembers the formulas that its cells share."""

    def __init__(self, texts: list[str]):
        self.texts = texts
        self.shared: dict[str, tuple[str, int, int]] = {}  # the text, and where it stands

    def rows(self, stream: IO[bytes]) -> Iterator[Row]:
        """The rows of a sheet's XML."""
        last = -1
        for _, element in ElementTree.iterparse(stream):
            if element.tag.endswith("}row"):
                last = int(element.attrib.pop("r", last + 2)) - 1
                yield Row(last, element.attrib, dict(self._cells(last, element)))
                element.clear()

    def _cells(self, row: int, element: Element) -> Iterator[tuple[int, Cell]]:
        col = -1
        for c in element:
            at = c.get("r")
            col = index(at.rstrip("0123456789")) if at else col + 1
            value: Value = None
            formula: tuple[str | None, Span, str] = None, (0, 0), ""
            kind = c.get("t", "n")
            for part in c:
                if part.tag.endswith("}v"):
                    value = self._value(kind, part.text)
                elif part.tag.endswith("}f"):
                    formula = self._formula(part, row, col)
                elif part.tag.endswith("}is"):
                    value = from_xml(text_of(part))
            yield col, Cell(value, *formula, int(c.get("s", 0)))

    def _value(self, kind: str, text: str | None) -> Value:
        if text is None:
            return None
        if kind == "n":
            return float(text)
        if kind == "s":
            return self.texts[int(text)]
        return typed(kind, text)

    def _formula(self, f: Element, row: int, col: int) -> tuple[str, Span, str]:
        """A formula's text, how far the cell is from the one that has it, an array's range."""
        kind, text = f.get("t"), f.text or ""
        if kind == "shared":
            number = f.attrib["si"]
            if text:
                self.shared[number] = text, row, col
            text, top, left = self.shared[number]
            return text, (row - top, col - left), ""
        return text, (0, 0), f.get("ref", "") if kind == "array" else ""


class Report:
    """The differences of a pair of workbooks, by kind."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[str]] = {}  # kind -> how many on each sheet
        self.examples: dict[str, list[str]] = {}

    def add(self, kind: str, sheet: str, at: str, old: object = "", new: object = "") -> None:
        """Count a difference, and remember the first ones."""
        self.counts.setdefault(kind, Counter())[sheet] += 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < N_SHOWN:
            examples.append(f"{at}: {shown(old)}  ->  {shown(new)}")

    @property
    def passes(self) -> bool:
        return not {*self.counts} - {ROUNDING, MOVED, TRANSPOSED}

    def lines(self) -> Iterator[str]:
        """The report as text."""
        for kind, counts in self.counts.items():
            sheets = ", ".join(f"{name}: {n:,}" for name, n in counts.items())
            yield f"  {kind}: {counts.total():,} ({sheets})"
            yield from (f"    {example}" for example in self.examples[kind])


def shown(value: object) -> str:
    """A value or a text for a line of the report, its middle left out where it is long."""
    text = "(nothing)" if value in (None, "") else str(value)
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]} … {text[-half:]}"


class Workbook:
    """A workbook file, with what comparing asks of it."""

    def __init__(self, path: Path):
        self.file, self.zip = WorkbookFile(path), zipfile.ZipFile(path)
        self.parts = self.zip.namelist()
        self.styles = [] if STYLES not in self.parts else list(styles(self.zip.read(STYLES)))

    def part(self, name: str) -> bytes:
        """A part of the file; nothing where there is none."""
        return self.zip.read(name) if name in self.parts else b""

    def sheet(self, name: str) -> tuple[bytes, str]:
        """A sheet's XML: its rows, and what stands around them."""
        before, _, rest = self.part(self.file.parts[name]).partition(b"<sheetData")
        rows, _, after = rest.rpartition(b"sheetData>")
        return rows, (before + after).decode("utf-8", "replace")

    def rows(self, name: str) -> Iterator[Row]:
        """The rows of a sheet as they stream by."""
        with self.zip.open(self.file.parts[name]) as stream:
            yield from Reader(self.file.texts).rows(stream)


def styles(xml: bytes) -> Iterator[str]:
    """What every style of cells is, its font, fill, border and number format written out."""
    root = ElementTree.fromstring(xml)
    formats = {f.attrib["numFmtId"]: f.attrib["formatCode"] for f in root.iterfind("{*}numFmts/*")}
    lists = {
        f"{name}Id": [ElementTree.tostring(x, "unicode") for x in root.iterfind(f"{{*}}{name}s/*")]
        for name in ("font", "fill", "border")
    }
    for style in root.iterfind("{*}cellXfs/*"):
        own = dict(style.attrib)
        own |= {name: known[int(own.get(name, 0))] for name, known in lists.items()}
        number = own.get("numFmtId", "")
        own["numFmtId"] = formats.get(number, number)
        inner = [ElementTree.tostring(x, "unicode") for x in style]
        yield re.sub(r'\sxmlns:\w+="[^"]*"|(?<=[</])ns\d+:', "", f"{sorted(own.items())} {inner}")


def compare(old: Path, new: Path) -> Report:
    """Hold a workbook against another one."""
    report, books = Report(), (Workbook(old), Workbook(new))
    same_meaning = all(books[0].part(p) == books[1].part(p) for p in (STRINGS, STYLES))
    names = [list(book.file) for book in books]
    if names[0] != names[1]:
        report.add("order or names of sheets", "", "", *(", ".join(side) for side in names))
    for name in (name for name in names[0] if name in names[1]):
        (rows, around), (new_rows, new_around) = (book.sheet(name) for book in books)
        if around != new_around:
            report.add("around the cells", name, name, *first_difference(around, new_around))
        if not (rows == new_rows and same_meaning):
            compare_rows(report, name, *books)
    with_cells = {STRINGS, *(part for book in books for part in book.file.parts.values())}
    for part in dict.fromkeys((*books[0].parts, *books[1].parts)):
        if part not in with_cells:
            compare_parts(report, part, *(book.part(part) for book in books))
    return report


def compare_named(old: Path, new: Path) -> Report:
    """Hold the named ranges of a workbook against those of another one."""
    report, books = Report(), (WorkbookFile(old), WorkbookFile(new))
    for name in sorted({*books[0].names} | {*books[1].names}):
        before, after = (book.names.get(name) for book in books)
        if before is None or after is None:
            report.add("a name in one alone", "", name, before, after)
            continue
        sheet, _ = before[0]
        a, b = (values(book, book.names[name]) for book in books)
        if before != after:
            report.add(MOVED, sheet, name, before, after)
        if not alike(a, b) and alike(a.T, b):
            report.add(TRANSPOSED, sheet, name, a.shape, b.shape)
        elif not alike(a, b):
            report.add("value", sheet, name, a.tolist(), b.tolist())
    return report


def values(book: WorkbookFile, areas: list[tuple[str, str]]) -> np.ndarray:
    """The values of areas below each other, [rows, columns]."""
    found = []
    for sheet, area in areas:
        top, bottom, left, right = rectangle(area)
        cells = book[sheet].values
        found += [[cells.get((i, j)) for j in range(left, right)] for i in range(top, bottom)]
    return np.array(found, dtype=object)


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two ranges hold the same values but for rounding."""
    pairs = zip(a.flat, b.flat, strict=False)
    return a.shape == b.shape and all(x == y or rounding(x, y) for x, y in pairs)


def compare_rows(report: Report, sheet: str, old: Workbook, new: Workbook) -> None:
    """Compare a sheet of both, from top to bottom."""
    for a, b in together(old.rows(sheet), new.rows(sheet)):
        if a.attributes != b.attributes:
            at = f"{sheet}!{a.number + 1}"
            report.add("look of a row", sheet, at, a.attributes, b.attributes)
        for col in sorted({*a.cells, *b.cells}):
            at = f"{sheet}!{column(col)}{a.number + 1}"
            cell, there = a.cells.get(col, NOTHING), b.cells.get(col, NOTHING)
            if (cell.formula, cell.array) != (there.formula, there.array):
                report.add("formula", sheet, at, formula(cell), formula(there))
            if cell.value != there.value or type(cell.value) is not type(there.value):
                kind = ROUNDING if rounding(cell.value, there.value) else "value"
                report.add(kind, sheet, at, cell.value, there.value)
            if (col in a.cells) != (col in b.cells):
                report.add("a cell in one alone", sheet, at, col in a.cells, col in b.cells)
            elif (style := old.styles[cell.style]) != new.styles[there.style]:
                report.add("style", sheet, at, *first_difference(style, new.styles[there.style]))


def together(old: Iterator[Row], new: Iterator[Row]) -> Iterator[tuple[Row, Row]]:
    """The rows of two sheets, side by side; an empty one for one that is only in the other."""
    a, b = next(old, None), next(new, None)
    while a or b:
        at = min(row.number for row in (a, b) if row)
        first = a if a and a.number == at else None
        second = b if b and b.number == at else None
        yield first or Row(at, {}, {}), second or Row(at, {}, {})
        a = next(old, None) if first else a
        b = next(new, None) if second else b


def formula(cell: Cell) -> str:
    """A cell's formula as spreadsheets show it."""
    text = "" if cell.formula is None else f"={cell.formula}"
    return f"{{{text}}} over {cell.array}" if cell.array else text


def rounding(a: Value, b: Value) -> bool:
    """Whether two values are numbers that differ by rounding."""
    if not (isinstance(a, float) and isinstance(b, float)):
        return False
    return abs(a - b) <= max(ABSOLUTE, RELATIVE * max(abs(a), abs(b)))


def compare_parts(report: Report, name: str, old: bytes, new: bytes) -> None:
    """Compare a part that holds no cells; charts keep numbers, which may be rounded."""
    if old == new:
        return
    texts = [part.decode("utf-8", "replace") for part in (old, new)]
    numbers = [[float(x) for x in IN_CHARTS.findall(text)] for text in texts]
    alike = IN_CHARTS.sub("", texts[0]) == IN_CHARTS.sub("", texts[1])
    if alike and all(rounding(a, b) for a, b in zip_longest(*numbers)):
        report.add(ROUNDING, name, name)
    else:
        report.add("part of the file", name, name, *first_difference(*texts))


@cache
def first_difference(*texts: str) -> tuple[str, str]:
    """Two texts, from a little before the first character in which they differ."""
    pairs = enumerate(zip_longest(*texts))
    start = max(0, next((k for k, (a, b) in pairs if a != b), 0) - LONGEST // 4)
    return texts[0][start : start + LONGEST], texts[1][start : start + LONGEST]


def main() -> int:
    """Compare two folders; 0 where nothing differs but by rounding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="folder of the workbooks before the change")
    parser.add_argument("after", type=Path, help="folder of the workbooks after it")
    parser.add_argument("--brief", action="store_true", help="silent about those that are the same")
    parser.add_argument("--moved", action="store_true", help="compare ranges by their names alone")
    asked = parser.parse_args()
    compared = compare_named if asked.moved else compare
    folders = asked.before, asked.after
    names = [{path.name for path in folder.glob("*.xlsx")} for folder in folders]
    if not names[0] & names[1]:
        parser.error("the folders have no .xlsx file of the same name")
    alone, verdicts = sorted(names[0] ^ names[1]), Counter[str]()
    for name in sorted(names[0] & names[1]):
        report = compared(*(folder / name for folder in folders))
        usual = "same but for moves" if asked.moved else "same but for rounding"
        verdict = usual if report.passes else "DIFFERENT"
        verdict = verdict if report.counts else "same"
        verdicts[verdict] += 1
        if report.counts or not asked.brief:
            print("\n".join((f"{name}: {verdict}", *report.lines())), flush=True)
    for name in alone:
        print(f"{name}: only in {folders[name in names[1]]}")
    print(", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()))
    return int(bool(alone) or verdicts["DIFFERENT"] > 0)


if __name__ == "__main__":
    sys.exit(main())
