"""A workbook file, read: the value and the formula of every cell.

It reads what Excel, LibreOffice, openpyxl and cellformer write: cells with or without addresses,
shared strings, texts within the cell, and the one formula that many cells share. A sheet is scanned
as arrays (`scanning`); cells are made when they are asked for.
Rows and columns are counted from 0.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from posixpath import join, normpath
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat

import numpy as np

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.errors import InputError, first_line, nearest
from cellformer.engine.cells.files import possible
from cellformer.engine.cells.texts import from_xml
from cellformer.engine.cells.values import CellError
from cellformer.exporters.compose.address import position
from cellformer.exporters.file import scanning
from cellformer.exporters.file.scanning import Value as Value
from cellformer.exporters.file.scanning import text_of

WORKBOOK = ".xlsx"
MOST_READ = 500_000_000  # bytes of a workbook, unpacked
MOST_TAGS = 12_000_000  # of one part; a formula cell has six
MOST_TEXTS, SHARED = 500_000, re.compile(rb"<(?:\w+:)?si[\s/>]")  # that cells share
MOST_MERGED, MERGED = 20_000, b"mergeCell "  # ranges of a sheet; programs take minutes for more
MOST_SHEETS, MOST_PARTS = 2_000, 20_000
NUMBERS = (int, float)  # a tuple, which is twice as fast to ask as a union
MOST_LISTED = 200_000  # tags of a part that lists others: sheets, names, parts
TYPES, WORKBOOKS = "[Content_Types].xml", ("spreadsheetml", "ms-excel")  # and what is there
AREA = re.compile(r"(?:'((?:[^']|'')+)'|([^'!,]+))!([$A-Z]+[$\d]+(?::[$A-Z]+[$\d]+)?)")


class Cell(NamedTuple):
    """One cell: its value, and its formula without the equals sign; None: there is none."""

    value: Value
    formula: str | None = None


class Shown:
    """The values of a sheet, read on demand: `sheet["B5"]`, `sheet[4, 1]`."""

    def __init__(self, read: Callable[[], dict[Span, Value]]):
        self._read = read

    @cached_property
    def values(self) -> dict[Span, Value]:
        """The values by row and column."""
        return self._read()

    def __getitem__(self, at: str | Span) -> Value:
        return self.values.get(position(at) if isinstance(at, str) else at)

    @property
    def errors(self) -> list[Span]:
        """The cells with an error."""
        return [at for at, value in self.values.items() if isinstance(value, CellError)]


class Sheet(Shown):
    """The cells of a sheet that are not blank.

    `arrays` has all their values, and which of them have formulas.
    """

    def __init__(self, arrays: scanning.Cells):
        super().__init__(lambda: self._of(np.arange(len(arrays))))
        self.arrays = arrays

    @cached_property
    def cells(self) -> dict[Span, Cell]:
        """The cells by row and column."""
        formulas = self.formulas
        return {at: Cell(value, formulas.get(at)) for at, value in self.values.items()}

    @property
    def computed(self) -> dict[Span, Value]:
        """The values of the cells that have formulas."""
        return self._of(np.flatnonzero(self.arrays.formulas))

    @property
    def uncomputed(self) -> list[Span]:
        """The cells whose formulas no program has computed."""
        there = self.arrays.formulas[:-1] & ~self.arrays.has_value
        return [*self.arrays.places(np.flatnonzero(there))]

    @cached_property
    def formulas(self) -> dict[Span, str]:
        """The formulas, without their equals signs."""
        which = np.flatnonzero(self.arrays.formulas)
        return dict(
            zip(self.arrays.places(which), self.arrays.spelt(which, braces=False), strict=True)
        )

    def _of(self, which: scanning.Positions) -> dict[Span, Value]:
        return dict(zip(self.arrays.places(which), self.arrays.valued(which), strict=True))

    def cell(self, at: str | Span) -> Cell:
        """A cell by its address, or by row and column; a blank one if the file has none there."""
        return self.cells.get(position(at) if isinstance(at, str) else at, Cell(None))

    def column(self, col: int) -> list[str]:
        """The texts of a column, from the first row to the last; "" for blank cells."""
        height = 1 + max((row for row, at in self.values if at == col), default=-1)
        values = [self[row, col] for row in range(height)]
        return ["" if value is None else str(value) for value in values]


class WorkbookFile:
    """An .xlsx file, its sheets read on demand: `file["Play"]["C5"]`.

    Raises InputError, here or later, for a file that is not a workbook.
    """

    def __init__(self, path: str | Path):
        self.path = present(path)
        self._sheets: dict[str, Sheet] = {}
        with a_workbook(self.path):
            with zipfile.ZipFile(self.path) as file:
                parts = file.infolist()
            if len(parts) > MOST_PARTS:
                raise too_many(self.path, len(parts), "parts", MOST_PARTS)
            size = max(sum(part.file_size for part in parts), self.path.stat().st_size)
            if size > MOST_READ:
                raise self._too_large(f"has {size / 1e6:,.0f} MB")
            # held packed: to list the parts anew takes longer than to read most sheets
            self._archive = archive = zipfile.ZipFile(io.BytesIO(self.path.read_bytes()))
            archive.filename = str(self.path)
            (self._main,) = related(archive, "", "/officeDocument").values()
            self._check_type()
            self._book = listing(archive, self._main)
            self.parts = worksheets(archive, self._book, related(archive, self._main, "/worksheet"))

    def __getitem__(self, name: str) -> Sheet:
        if name not in self._sheets:
            with a_workbook(self.path):
                arrays = scanning.Cells(self._checked(self.parts[name]), self.texts)
            self._sheets[name] = Sheet(arrays)
        return self._sheets[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    @cached_property
    def iterates(self) -> bool:
        """Whether iterative calculation is on."""
        return any(c.get("iterate") == "1" for c in self._book.iterfind("{*}calcPr"))

    @cached_property
    def names(self) -> dict[str, list[tuple[str, str]]]:
        """The names defined in the whole workbook: name -> the sheet and the area, such as
        B2:C9."""
        return {
            defined.attrib["name"]: [
                (bare or quoted.replace("''", "'"), area.replace("$", ""))
                for quoted, bare, area in AREA.findall(defined.text or "")
            ]
            for defined in self._book.iterfind("{*}definedNames/{*}definedName")
            if "localSheetId" not in defined.attrib
        }

    @cached_property
    def texts(self) -> list[str]:
        """The shared strings."""
        with a_workbook(self.path):
            parts = related(self._archive, self._main, "/sharedStrings").values()
            held = [self._checked(part) for part in parts]
            if (n := sum(len(SHARED.findall(xml)) for xml in held)) > MOST_TEXTS:
                raise self._too_large(f"has {n:,} shared texts, above the limit of {MOST_TEXTS:,}")
            tables = [ElementTree.fromstring(xml) for xml in held]
            items = [item for table in tables for item in table]
            return [from_xml(text_of(item)) for item in items]

    def _checked(self, part: str) -> bytes:
        """A part's XML, if it is small enough to be parsed in memory."""
        xml = self._archive.read(part)
        if len(xml) > MOST_TAGS and (n := xml.count(b"<")) > MOST_TAGS:
            raise self._too_large(f"has {n:,} XML tags in one part")
        if (n := xml.count(MERGED)) > MOST_MERGED:
            raise self._too_large(f"has {n:,} merged ranges, above the limit of {MOST_MERGED:,}")
        return xml

    def _check_type(self) -> None:
        """Raise ValueError if the archive does not declare itself a workbook."""
        if TYPES not in self._archive.namelist():
            raise ValueError(f"the file has no part {TYPES}")
        types = listing(self._archive, TYPES)
        own = [t.get("ContentType", "") for t in types if t.get("PartName") == f"/{self._main}"]
        usual = [
            t.get("ContentType", "")
            for t in types
            if "Extension" in t.attrib and self._main.endswith("." + t.attrib["Extension"])
        ]
        kind = [*own, *usual, "nothing"][0]
        if not kind.endswith(".main+xml") or not any(name in kind for name in WORKBOOKS):
            raise ValueError(f"the part {TYPES} gives the workbook the type {kind!r}")

    def _too_large(self, why: str) -> InputError:
        return InputError(
            f"{self.path} {why}. cellformer reads a whole file into memory, and accepts at most "
            f"{MOST_READ / 1e6:,.0f} MB and {MOST_TAGS:,} tags; build only a part of the workbook, "
            "with --live"
        )


def present(path: str | Path) -> Path:
    """The path of an existing file, whose ending .xlsx may be left out. Raises InputError for a
    missing one, with the nearest names in its folder."""
    found = possible(path)
    named = found.with_name(f"{found.name}{WORKBOOK}") if found.name else found
    if not found.is_file() and not named.is_file():
        raise InputError(f"there is no file {found}; {_beside(found)}")
    return found if found.is_file() else named


def _beside(missing: Path) -> str:
    """The workbooks in the folder of a file that is missing."""
    folder, ending = missing.parent, missing.suffix or WORKBOOK
    known = sorted(p.name for p in folder.glob(f"*{ending}")) if folder.is_dir() else []
    if not known:
        return "‘cellformer build NAME’ writes one"
    return nearest(missing.name if missing.suffix else f"{missing.name}{WORKBOOK}", known)


@contextmanager
def a_workbook(path: Path) -> Iterator[None]:
    """A context manager: turn any error of an archive or its XML into an InputError."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, SyntaxError, expat.ExpatError) as error:  # those of XML are SyntaxErrors
        fault = f"{path} is not an .xlsx workbook: {first_line(error)}"
        raise InputError(
            f"{fault}; open the file in Excel or LibreOffice, save it there, and try again"
        ) from None
    except Exception:
        other = path.suffix.lower() not in ("", ".xlsx")
        remedy = "save it as .xlsx in the program that wrote it" if other else "copy it again"
        raise InputError(f"{path} is not an .xlsx workbook; {remedy}") from None


def gap(a: Value, b: Value) -> float:
    """The difference of two values, relative for large ones; inf for a different text."""
    if isinstance(a, NUMBERS) and isinstance(b, NUMBERS):
        return abs(a - b) / max(1.0, abs(a))
    return 0.0 if (a or "") == (b or "") else float("inf")


def listing(archive: zipfile.ZipFile, part: str) -> Element:
    """A part that lists others. Raises InputError for one that lists too much."""
    xml = archive.read(part)
    if (n := xml.count(b"<")) > MOST_LISTED:
        raise too_many(archive.filename, n, f"things in {part}", MOST_LISTED)
    return ElementTree.fromstring(xml)


def too_many(file: object, n: int, what: str, most: int) -> InputError:
    """The error of a workbook with too many parts."""
    return InputError(
        f"{file} lists {n:,} {what}, above the limit of {most:,}; delete those that you do not need"
    )


def related(archive: zipfile.ZipFile, part: str, kind: str) -> dict[str, str]:
    """The parts of a kind that a part (or the archive, if "") refers to, by id."""
    folder, _, file = part.rpartition("/")
    listed = listing(archive, f"{folder}/_rels/{file}.rels".lstrip("/"))
    return {
        relation.attrib["Id"]: normpath(join("/", folder, relation.attrib["Target"])).lstrip("/")
        for relation in listed
        if relation.attrib["Type"].endswith(kind)
    }


def worksheets(archive: zipfile.ZipFile, book: Element, parts: dict[str, str]) -> dict[str, str]:
    """The parts of a workbook's sheets with cells by the sheets' names, in order; `parts` by id.
    Raises InputError for too many, and ValueError for two sheets that are one part."""
    sheets, found = book.findall("{*}sheets/{*}sheet"), {}
    if len(sheets) > MOST_SHEETS:
        raise too_many(archive.filename, len(sheets), "sheets", MOST_SHEETS)
    for sheet in sheets:
        (key,) = (v for name, v in sheet.attrib.items() if name.endswith("relationships}id"))
        if key in parts:
            found[sheet.attrib["name"]] = parts[key]
    if len({*found.values()}) < len(found):
        raise ValueError("two of its sheets use the same part")
    return found
