"""Recomputing a workbook in other spreadsheet programs, and comparing every formula cell.

The reference is the values in the file. A program that trusts cached values would only echo them,
so it gets a copy in which every cached value is wrong; it must recompute to agree.

`formulas` is licensed under the EUPL and imported only here.
"""

import contextlib
import gc
import io
import logging
import re
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.cells.values import CellError
from cellformer.exporters.checking import libraries
from cellformer.exporters.checking.child_processes import Job, OnProgress, Outcome, run
from cellformer.exporters.checking.libraries import UnreadableError, Values, Where, installed
from cellformer.exporters.checking.programs import (
    Recomputed,
    program,
    recompute_in_gnumeric,
    recompute_in_libreoffice,
)
from cellformer.exporters.compose.address import column, index, of_cell, rectangle
from cellformer.exporters.file.reading import Value, WorkbookFile, a_workbook, gap, related
from cellformer.exporters.model import source

# INDEX('Weights 0'!$B$9:$BM$776,0,ROWS($A$12:$A15)), as `ModelBook` writes it
PICKED = re.compile(
    rb"INDEX\(((?:'(?:[^']|'')*'!|\w+!)?)\$([A-Z]+)\$(\d+):\$[A-Z]+\$(\d+),([01]),"
    rb"ROWS\(\$[A-Z]+\$(\d+):\$[A-Z]+(\d+)\)\)"
)
STYLED = re.compile(rb'(<c r="\w+") s="\d+"')
SHEET = re.compile(rb"<((?:[\w.-]+:)?)worksheet\b")  # with the prefix of all its names
WRONG = -987654321.5  # in every formula cell of the copy that programs get
UNCOMPUTED: tuple[Value, ...] = (WRONG, str(WRONG), CellError("#NAME?"))
TEXT = re.compile(r'"[^"]*"|\'[^\']*\'')
FUNCTION = re.compile(r"(?:_xlfn\.)?\b([A-Z][A-Z0-9.]*)\(")
MANY_DIGITS = re.compile(r"\d+\.\d{15,}")

NOTHING: Mapping[str, Job] = {}
Change = Callable[[bytes], bytes]  # of a part of a workbook

MAX_FORMULAS_CELLS = 5000  # `formulas` takes about 20 s for so many
SECONDS = 600.0  # that an engine is given
MUCH_ROOM = 10_000_000  # bytes of a compressed workbook


@dataclass(frozen=True)
class Verdict:
    """One engine's verdict on a workbook."""

    engine: str
    n_cells: int
    largest: float  # largest difference; inf where one is no number and the other is
    where: str  # the cell of the largest difference, and the block that it belongs to
    skipped: str = ""  # why the engine was not asked

    @property
    def agrees(self) -> bool:
        return not self.skipped and self.largest <= NEAR


@dataclass(frozen=True)
class FormulaCells:
    """The formula cells of a workbook file, with their values."""

    path: Path
    formulas: Values
    names: dict[str, list[tuple[str, str]]]  # of areas, by defined name: sheet and range
    digits: float | None = None  # what weights with fewer digits do to a logit; None: exact
    n_uncomputed: int = 0  # formulas besides these that have no value in the file


def read(path: str | Path) -> FormulaCells:
    """Open a workbook. Raises InputError for a file that is not a workbook, lacks computed values,
    or is too large for every program."""
    return formula_cells(WorkbookFile(path))


def formula_cells(file: WorkbookFile) -> FormulaCells:
    """The formula cells of an open workbook. Raises InputError if values are missing."""
    found: Values = {
        (sheet, row, col): value
        for sheet in file
        for (row, col), value in file[sheet].computed.items()
    }
    if not found:
        raise InputError(f"{file.path} contains no formulas, so there is nothing to verify")
    if all(value is None for value in found.values()):
        fault = (
            f"{file.path} contains no computed values; open the file in a spreadsheet program "
            "and save it"
        )
        raise InputError(fault)
    uncomputed = [(name, *at) for name in file for at in file[name].uncomputed]
    for cell in uncomputed:
        del found[cell]
    ours = source.SHEET in file
    digits = source.digits(file[source.SHEET].column(0)) if ours else None
    return FormulaCells(file.path.resolve(), found, file.names, digits, len(uncomputed))


def verify(book: FormulaCells | Path, engine: str) -> Verdict:
    """Recompute a workbook in one engine, from wrong cached values, and compare every formula."""
    found = verify_all(book, [engine])[engine]
    return found.value or Verdict(engine, 0, 0.0, "", found.fault)


def verify_all(
    book: FormulaCells | Path,
    engines: Sequence[str],
    on_progress: OnProgress = lambda engine, what: None,
    seconds: float = SECONDS,
    beside: Mapping[str, Job] = NOTHING,
) -> dict[str, Outcome]:
    """Recompute a workbook in several engines at once, each in its own process with a time limit:
    each engine's outcome, a Verdict if it answered.

    `on_progress` is called with an engine's name and what it does, "" at the end. The jobs in
    `beside` run at the same time.
    """
    if isinstance(book, Path):
        book = read(book)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        wrong = folder / "book.xlsx"
        poison(book.path, wrong)
        jobs: dict[str, Job] = {e: partial(_verdict, book, e, wrong) for e in engines}
        return run(jobs | dict(beside), folder, seconds, on_progress)


def _verdict(book: FormulaCells, engine: str, wrong: Path) -> Verdict:
    """An engine's verdict on a workbook; it gets the copy with `wrong` values."""
    if engine == "formulas" and len(book.formulas) > MAX_FORMULAS_CELLS:
        reason = (
            f"{len(book.formulas):,} formula cells are too many for this program; the limit is "
            f"{MAX_FORMULAS_CELLS:,}"
        )
        return Verdict(engine, 0, 0.0, "", reason)
    try:
        return compare(engine, book, ENGINES[engine].recompute(wrong, book))
    except UnreadableError as error:
        return Verdict(engine, 0, 0.0, "", str(error))


def compare(engine: str, book: FormulaCells, recomputed: Values) -> Verdict:
    """Compare an engine's values with the file's."""
    gaps = [_gap(value, recomputed.get(cell)) for cell, value in book.formulas.items()]
    largest = max(gaps)
    worst = [*book.formulas][gaps.index(largest)]
    where = _describe(book, worst)
    if largest == float("inf"):
        where += (
            f": {book.formulas[worst]!r} in the file, but {recomputed.get(worst)!r} when recomputed"
        )
    if largest > NEAR:
        where += _uncomputed(book, recomputed)
    return Verdict(engine, len(gaps), largest, where)


def _uncomputed(book: FormulaCells, recomputed: Values) -> str:
    """The functions that the program does not compute in any cell, or else the first uncomputed
    cell: it keeps the wrong number, or says #NAME?."""
    file = WorkbookFile(book.path)
    sheets = {sheet for sheet, *_ in book.formulas}
    formulas = {
        (sheet, *at): f
        for sheet in file
        if sheet in sheets
        for at, f in file[sheet].formulas.items()
    }
    left = {at: formula for at, formula in formulas.items() if recomputed.get(at) in UNCOMPUTED}
    computed = (formula for at, formula in formulas.items() if at not in left)
    lacks = _functions(left.values()) - _functions(computed)
    if lacks:
        return f"; it cannot compute cells with {', '.join(sorted(lacks))}"
    first = next(iter(left), None)
    return f"; it cannot compute {_describe(book, first)}: {left[first]}" if first else ""


def _functions(formulas: Iterable[str]) -> set[str]:
    """The functions that formulas call."""
    return {name for formula in formulas for name in FUNCTION.findall(TEXT.sub("", formula))}


def _gap(a: Value, b: Value) -> float:
    """The difference of two values; inf for an error, which is never right, not even twice."""
    return float("inf") if isinstance(a, CellError) else gap(a, b)


def _describe(book: FormulaCells, cell: Where) -> str:
    """A cell's address, and the name of its block."""
    sheet, row, col = cell
    at = f"{sheet}!{of_cell(row, col)}"
    for name, areas in book.names.items():
        for there, area in areas:
            top, bottom, left, right = rectangle(area)
            if there == sheet and top <= row < bottom and left <= col < right:
                return f"{at} ({name})"
    return at


def poison(source: Path, target: Path) -> None:
    """Copy a workbook with a wrong cached value in every formula cell.

    All cells get the same number format, since other formats, such as dates, are not numbers in
    CSV. What stands behind the cells (conditional formats, validations, links, charts) changes no
    value and is left out: IronCalc and gnumeric would take longer with it than with the formulas.
    """
    look = re.compile(rb"""(<(?:\w+:)?xf\b[^>]*?\snumFmtId=)["']\d+["']""")
    with a_workbook(source):
        _copy(source, target, _wrong, lambda data: look.sub(rb'\1"2"', data))  # 0.00


def _wrong(xml: bytes) -> bytes:
    """A sheet's XML, with any namespace prefix, with a wrong cached value in every formula cell.
    Raises InputError if the cells cannot be found."""
    named = SHEET.search(xml)
    if named is None:
        fault = (
            "a sheet is not written in UTF-8; open the workbook in a spreadsheet program and "
            "save it"
        )
        raise InputError(fault)
    prefix = re.escape(named[1])
    value = rb"(?:\s*<%sv\b[^>]*>[^<]*</%sv\s*>)?" % (prefix, prefix)  # a program writes none
    own = re.compile(rb"</%sf\s*>" % prefix + value)
    shared = re.compile(rb"(<%sf\b[^>]*/>)" % prefix + value)
    wrong = b"<%sv>%r</%sv>" % (named[1], WRONG, named[1])
    head, cells, tail = xml.rpartition(b"sheetData")
    xml = b"%b%b%b>\n</%bworksheet>" % (head, cells, tail.partition(b">")[0], named[1])
    kind = rb"""(<%sc\b[^>]*?\s)t=["'][be]["'](?=[^>]*>\s*<%sf\b)""" % (prefix, prefix)
    xml = re.sub(kind, rb'\1t="str"', xml)  # a number is neither an error nor a truth value
    xml = own.sub(b"</%sf>" % named[1] + wrong, xml)
    return shared.sub(lambda formula: formula[1] + wrong, xml)


def _copy(source: Path, target: Path, sheet: Change, styles: Change = lambda data: data) -> None:
    """Copy a workbook with changed sheets and styles; compressed only if it is large, since it is
    read once."""
    method = zipfile.ZIP_DEFLATED if source.stat().st_size > MUCH_ROOM else zipfile.ZIP_STORED
    packing = zipfile.ZipFile(target, "w", method, compresslevel=1)
    with zipfile.ZipFile(source) as old, packing as new:
        (main,) = related(old, "", "/officeDocument").values()
        changes = dict.fromkeys(related(old, main, "/worksheet").values(), sheet)
        changes |= dict.fromkeys(related(old, main, "/styles").values(), styles)
        for part in old.namelist():
            data = old.read(part)
            new.writestr(part, changes[part](data) if part in changes else data)


# --- the engines --------------------------------------------------------------------------


def _libreoffice(path: Path, book: FormulaCells) -> Values:
    (recomputed,) = recompute_in_libreoffice([path], path.parent / "out")
    return read_values(recomputed, book)


def _gnumeric(path: Path, book: FormulaCells) -> Values:
    """Recompute in gnumeric. Its INDEX does not give whole columns, which large workbooks use,
    so it gets their addresses. It also gets cells without styles, which it reads and writes
    faster."""
    plain = path.with_name("plain.xlsx")
    _copy(path, plain, lambda data: PICKED.sub(_picked, STYLED.sub(rb"\1", data)))
    file = recompute_in_gnumeric(plain, path.with_name("recalculated.xlsx"))
    return {at: _spelt_shortly(value) for at, value in read_values(file, book).items()}


def _picked(found: re.Match[bytes]) -> bytes:
    """The column, or the cell of a row, that an INDEX picks by its formula's row."""
    sheet, left, top, bottom, row, first, last = found.groups()
    letters = column(index(left.decode()) + int(last) - int(first)).encode()
    cell = b"%s%s$%s" % (sheet, letters, top)
    return cell if row == b"1" else b"%s:%s$%s" % (cell, letters, bottom)


def _spelt_shortly(value: Value) -> Value:
    """Round numbers inside texts: gnumeric computes with more digits than others and writes all,
    2.3800000000000000001."""
    if not isinstance(value, str) or isinstance(value, CellError):
        return value
    return MANY_DIGITS.sub(lambda digits: f"{float(digits[0]):.15g}", value)


def _formulas(path: Path, book: FormulaCells) -> Values:
    logging.getLogger("schedula").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), _uncollected():
        warnings.simplefilter("ignore")
        import formulas

        solution = formulas.ExcelModel().loads(str(path)).finish().calculate()
    found: Values = {}
    for cell in book.formulas:
        sheet, *at = cell
        key = f"'[{path.name}]{sheet.upper()}'!{of_cell(*at)}"
        if key in solution:
            value = solution[key].value[0, 0]
            value = value.item() if hasattr(value, "item") else value
            found[cell] = value if isinstance(value, int | float | str) else str(value)
    return found


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Turn off garbage collection meanwhile: none of the many objects that `formulas` makes is
    garbage."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def read_values(file: WorkbookFile | Recomputed, book: FormulaCells) -> Values:
    """The values in a recomputed file, for the book's formula cells."""
    shown = {name: file[name].values for name in {sheet for sheet, *_ in book.formulas}}
    return {at: shown[at[0]].get(at[1:]) for at in book.formulas}


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(map(program, names))


@dataclass(frozen=True)
class Engine:
    """A spreadsheet program: how to find it, and how it recomputes a file."""

    installed: Callable[[], bool]
    recompute: Callable[[Path, FormulaCells], Values]
    remedy: str
    by_name: bool = False  # asked by its name alone


def _library(
    package: str,
    recompute: Callable[[Path, Iterable[Where]], Values],
    remedy: str = "pip install 'cellformer[verify]'",
    by_name: bool = False,
) -> Engine:
    """An engine that is a Python package."""
    return Engine(
        partial(installed, package),
        lambda path, book: recompute(path, book.formulas),
        remedy,
        by_name,
    )


ENGINES = {
    "ironcalc": _library("ironcalc", libraries.in_ironcalc),
    "libreoffice": Engine(
        _program("soffice", "libreoffice"), _libreoffice, "install LibreOffice Calc"
    ),
    "gnumeric": Engine(_program("ssconvert"), _gnumeric, "install gnumeric"),
    "formualizer": _library("formualizer", libraries.in_formualizer),
    "formulas": Engine(
        partial(installed, "formulas"), _formulas, "pip install 'cellformer[verify]'"
    ),
    "aspose": _library(
        "aspose.cells", libraries.in_aspose, "pip install aspose-cells-python", by_name=True
    ),
    "betteroffice": _library(
        "betteroffice_xlsx",
        libraries.in_betteroffice,
        "pip install betteroffice-xlsx",
        by_name=True,
    ),
    "formulon": _library("formulon", libraries.in_formulon, "pip install formulon", by_name=True),
}
