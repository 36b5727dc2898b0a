"""Excel's rules for a workbook file, checked without Excel: what it would repair, refuse or
misread.

Sheets are streamed and numbers skipped: a hundred million cells take a few minutes.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, ParseError
from zipfile import BadZipFile, ZipFile

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.errors import InputError
from cellformer.exporters.checking.rules import Fault, package, workbook
from cellformer.exporters.checking.rules.cycles import Run, cycle
from cellformer.exporters.checking.rules.formulas import parsed, rectangle
from cellformer.exporters.checking.rules.sheet import SheetRules
from cellformer.exporters.compose.address import column
from cellformer.exporters.file.reading import listing, related, worksheets

DAMAGED = (BadZipFile, OSError, KeyError, ParseError, struct.error, ValueError, zlib.error)
CALC = "{*}calcPr"
LATCH = "latch."  # how the names begin of cells that may wait for themselves: see `Book.iterates`
MOST_OF_A_CYCLE = 6  # cells of it that are reported


def audit(path: str | Path) -> list[str]:
    """Excel's objections to a workbook, a line each; [] if there are none.

    A rule that many cells break is reported once, with the first of them. Raises InputError for a
    file that is not a workbook.
    """
    first: dict[str, str] = {}
    n: dict[str, int] = {}
    try:
        with ZipFile(path) as archive:
            for rule, where in _faults(archive):
                first.setdefault(rule, where)
                n[rule] = n.get(rule, 0) + 1
    except DAMAGED as error:
        raise InputError(f"{path} is not an .xlsx workbook ({type(error).__name__})") from None
    more = {rule: f" (and {n[rule] - 1:,} more)" if n[rule] > 1 else "" for rule in first}
    return [f"{where}: {rule}{more[rule]}" for rule, where in first.items()]


def _faults(archive: ZipFile) -> Iterator[Fault]:
    """Every broken rule, and where."""
    yield from package.faults(archive)
    (main,) = related(archive, "", "/officeDocument").values()
    book = listing(archive, main)
    sheets = worksheets(archive, book, related(archive, main, "/worksheet"))
    yield from workbook.of_sheets([s.get("name", "") for s in book.iterfind("{*}sheets/{*}sheet")])
    names = book.findall("{*}definedNames/{*}definedName")
    yield from workbook.of_names(names, set(sheets))
    areas = frozenset(n.get("name", "").casefold() for n in names if ":" in (n.text or ""))
    n_dressings = 0
    for _, root in _parts(archive, related(archive, main, "/styles").values()):
        yield from workbook.of_styles(root)
        n_dressings = len(root.findall("{*}dxfs/{*}dxf"))
    for _, root in _parts(archive, related(archive, main, "/sharedStrings").values()):
        yield from workbook.of_texts(root)
    charts = [part for part in archive.namelist() if part.startswith("xl/charts/chart")]
    for part, root in _parts(archive, charts):
        yield from workbook.of_chart(root, part, set(sheets))
    runs: list[Run] = []
    for name, part in sheets.items():
        rules = SheetRules(name, set(sheets), areas, n_dressings)
        with archive.open(part) as stream:
            yield from rules.faults(stream)
        runs += rules.runs
    if around := cycle(runs, _kept(book, names)):
        cells = [f"{run.sheet}!{column(run.col)}{run.top + 1}" for run in around[:MOST_OF_A_CYCLE]]
        yield "formulas refer to each other in a circle", ", ".join(cells)


def _kept(book: Element, names: Iterable[Element]) -> list[tuple[str, Rect]]:
    """The ranges that may depend on themselves, by the names that declare them, if the workbook has
    iteration on, one per recalculation."""
    once = [c.get("iterate") == "1" and c.get("iterateCount") == "1" for c in book.iterfind(CALC)]
    if not any(once):
        return []
    areas = [name.text or "" for name in names if name.get("name", "").startswith(LATCH)]
    return [(parsed(area)[0], rectangle(area)) for area in areas]


def _parts(archive: ZipFile, names: Iterable[str]) -> Iterator[tuple[str, Element]]:
    """Parsed parts of the file."""
    return ((name, ElementTree.fromstring(archive.read(name))) for name in names)
