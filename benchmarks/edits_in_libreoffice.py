"""Make edits in a workbook in LibreOffice, one set after the other, and say what cells show.

    /usr/bin/python3 benchmarks/edits_in_libreoffice.py JOB.json

JOB.json has the workbook's path, the sets of edits ([sheet, row, column, value] each), and the
cells that are looked at; the answers are written beside it, in JOB.answers.json: for each set what
those cells show, and their numbers, on which sheets formulas have errors and how many, and the
seconds that it took. Each set is undone before the next. With `afresh` every cell is computed anew
before the first, whatever values the file has. With `saved`: n, the workbook is saved with every
n-th set in it, and looked at again after it is opened. `ledger.py` and `nudge.py` make the one and
read the other.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from office import connect

ERRORS = 4  # com.sun.star.sheet.FormulaResult.ERROR


def main() -> None:
    """Make every set of edits."""
    path = Path(sys.argv[1])
    job = json.loads(path.read_text())
    with tempfile.TemporaryDirectory() as folder:
        pipe = f"cellformer{time.time_ns()}"
        user, accept = f"-env:UserInstallation=file://{folder}", f"--accept=pipe,name={pipe};urp;"
        office = subprocess.Popen(["soffice", user, "--headless", "--norestore", accept])
        desktop = connect(pipe)
        start = time.perf_counter()
        book = opened(desktop, Path(job["path"]))
        print(f"opened in {time.perf_counter() - start:.2f} s", file=sys.stderr)
        book.calculate()  # as a window does when it is idle; before that no edit is followed
        if job.get("afresh"):
            book.calculateAll()
        answers = []
        for k, edits in enumerate(job["edits"]):
            cells = [at(book, *edit[:3]) for edit in edits]
            before = [held(cell) for cell in cells]
            start = time.perf_counter()
            for cell, (*_, value) in zip(cells, edits, strict=True):
                put(cell, value)
            watched = [at(book, *where) for where in job["watched"]]
            shown = [show(cell) for cell in watched]
            seconds = time.perf_counter() - start
            found = {"shown": shown, "errors": errors(book), "seconds": seconds}
            found["numbers"] = [cell.Value for cell in watched]
            if job.get("saved") and k % job["saved"] == 0:
                found["saved"] = saved(desktop, book, Path(folder) / "saved.xlsx", job["watched"])
            answers.append(found)
            for cell, value in zip(cells, before, strict=True):
                put(cell, value)
        book.close(True)
        desktop.terminate()
        office.wait(60)
    path.with_suffix(".answers.json").write_text(json.dumps(answers))


def opened(desktop: object, path: Path) -> object:
    """A workbook that is opened without a window."""
    hidden = PropertyValue(Name="Hidden", Value=True)
    return desktop.loadComponentFromURL(path.resolve().as_uri(), "_blank", 0, (hidden,))


def at(book: object, sheet: str, row: int, col: int) -> object:
    """A cell."""
    return book.Sheets.getByName(sheet).getCellByPosition(col, row)


def held(cell: object) -> float | str:
    """What is typed in a cell; a number with all its digits."""
    return cell.Value if cell.Type.value == "VALUE" else cell.String


def put(cell: object, value: float | str) -> None:
    """Have a cell hold a value, as pasting does: no validation is asked."""
    if isinstance(value, str):
        cell.String = value
    else:
        cell.Value = value


def show(cell: object) -> str:
    """What a cell shows; of an error, its number."""
    return f"error {cell.getError()}" if cell.getError() else cell.String


def errors(book: object) -> dict[str, int]:
    """How many formulas of each sheet have an error."""
    found = {}
    for sheet in book.Sheets:
        ranges = sheet.queryFormulaCells(ERRORS).RangeAddresses
        n = sum((r.EndRow - r.StartRow + 1) * (r.EndColumn - r.StartColumn + 1) for r in ranges)
        if n:
            found[sheet.Name] = n
    return found


def saved(desktop: object, book: object, path: Path, watched: list[list]) -> list[str]:
    """What cells show after the workbook is saved, opened again and computed anew."""
    kind = PropertyValue(Name="FilterName", Value="Calc MS Excel 2007 XML")
    book.storeToURL(path.as_uri(), (kind,))
    again = opened(desktop, path)
    again.calculateAll()
    found = [show(at(again, *where)) for where in watched]
    again.close(True)
    return found


main()
