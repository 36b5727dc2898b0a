"""HyperFormula, a spreadsheet for JavaScript that follows Excel, as one more engine of the tests.

It is licensed under the GPL-3.0: `npm ci --prefix tests/node` installs it, and only tests run it.
It does not open files: it gets the cells from `reading`, without computed values.
"""

import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from cellformer.engine.cells.values import CellError
from cellformer.exporters.checking.programs import program
from cellformer.exporters.checking.verify import Engine, FormulaCells, UnreadableError, Values
from cellformer.exporters.file.reading import Sheet, Value, WorkbookFile
from cellformer.exporters.file.scanning import Cells, Positions

NODE = Path(__file__).parent / "node"
PACKAGE, SCRIPT = NODE / "node_modules" / "hyperformula", NODE / "hyperformula.cjs"


class Limits(NamedTuple):
    """How much it is asked."""

    formulas: int = 500_000  # for which it takes a minute
    rows: int = 1 << 20
    cells: int = 10_000_000  # of all rows, each from column A to its last cell
    memory: int = 4096  # megabytes


LIMITS = Limits()


class Answer(NamedTuple):
    """Its result for a workbook."""

    values: dict[tuple[str, int, int], Value]  # of formula cells: sheet, row and column from 0
    fault: str = ""  # why there are no values


def installed() -> bool:
    """Whether it is there, and Node.js."""
    return bool(program("node")) and PACKAGE.is_dir()


def recompute(files: Sequence[WorkbookFile], limits: Limits = LIMITS) -> list[Answer]:
    """Recompute workbooks in one run. Raises InputError for unreadable files."""
    books = [_Workbook(file, limits) for file in files]
    if all(book.fault for book in books):
        return [Answer({}, book.fault) for book in books]
    lines = b"\n".join(orjson.dumps(book.rows) for book in books if not book.fault)
    command = [program("node"), f"--max-old-space-size={limits.memory}", str(SCRIPT), str(PACKAGE)]
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(command, input=lines, capture_output=True, cwd=empty)
    if done.returncode:
        return [Answer({}, _failure(done.stderr, limits)) for _ in books]
    answers = iter(done.stdout.splitlines())
    return [Answer({}, b.fault) if b.fault else b.answer(next(answers)) for b in books]


def _values(path: Path, book: FormulaCells) -> Values:
    """Its values of a file. Raises UnreadableError."""
    (answer,) = recompute([WorkbookFile(path)])
    if answer.fault:
        raise UnreadableError(answer.fault)
    return answer.values


ENGINE = Engine(installed, _values, "install Node.js, then: npm ci --prefix tests/node")


def _failure(said: bytes, limits: Limits) -> str:
    """Why it ended without an answer."""
    if b"heap out of memory" in said:
        return f"it takes more than {limits.memory:,} MB"
    error = re.search(rb"\w*Error.*", said)
    return f"it failed ({error[0].decode(errors='replace') if error else 'without a word'})"


class _Workbook:
    """A workbook in HyperFormula's form: a list for each row, up to its last cell."""

    def __init__(self, file: WorkbookFile, limits: Limits):
        self.sheets = {name: file[name] for name in file}
        turns = file.iterates
        self.fault = "it computes no cell of a circle" if turns else self._too_large(limits)

    def _too_large(self, limits: Limits) -> str:
        """The limit that the workbook exceeds; "" if none."""
        cells = [sheet.arrays for sheet in self.sheets.values()]
        n_formulas = sum(int(c.formulas.sum()) for c in cells)
        if n_formulas > limits.formulas:
            return (
                f"{n_formulas:,} formula cells are too many for this program; the limit is "
                f"{limits.formulas:,}"
            )
        if max(int(c.rows.max(initial=0)) for c in cells) >= limits.rows:
            return f"a sheet has more than {limits.rows:,} rows"
        reach = sum(int(_widths(c).sum()) for c in cells)
        if reach > limits.cells:
            return (
                f"rows of {reach:,} cells are too many for this program; the limit is "
                f"{limits.cells:,}"
            )
        return ""

    @property
    def rows(self) -> dict[str, list[list[Value]]]:
        """The rows of every sheet."""
        return {name: _rows(sheet) for name, sheet in self.sheets.items()}

    def answer(self, line: bytes) -> Answer:
        """The program's answer as cells."""
        found = orjson.loads(line)
        if found["lacks"]:
            return Answer({}, f"it has no function {', '.join(found['lacks'])}")
        if found["unparsed"]:
            return Answer({}, f"it cannot parse {found['unparsed']}")
        values = {}
        for name, sheet in self.sheets.items():
            cells = sheet.arrays
            which = np.flatnonzero(cells.formulas)
            at = zip(cells.rows[which].tolist(), cells.cols[which].tolist(), strict=True)
            for (row, col), value in zip(at, found["values"][name], strict=True):
                error = isinstance(value, dict)
                values[name, row, col] = CellError(value["error"]) if error else value
        return Answer(values)


def _widths(cells: Cells) -> Positions:
    """The column after the last cell of every row."""
    widths = np.zeros(cells.rows.max(initial=-1) + 1, np.int64)
    np.maximum.at(widths, cells.rows, cells.cols + 1)
    return widths


def _rows(sheet: Sheet) -> list[list[Value]]:
    """A sheet's cells: formulas begin with =, texts with an apostrophe."""
    cells = sheet.arrays
    rows: list[list[Value]] = [[None] * width for width in _widths(cells).tolist()]
    for (row, col), value in sheet.values.items():
        is_text = isinstance(value, str) and not isinstance(value, CellError)
        rows[row][col] = f"'{value}" if is_text else value
    for (row, col), formula in sheet.formulas.items():
        rows[row][col] = "=" + formula.replace("_xlfn.", "")
    return rows
