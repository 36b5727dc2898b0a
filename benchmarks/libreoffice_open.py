"""Open workbooks in LibreOffice, one after another: seconds, memory, and edits of each.

    /usr/bin/python3 benchmarks/libreoffice_open.py FILE.xlsx ... [--edit CELL VALUE] ...

Runs under the Python that has LibreOffice's `uno` module (Debian: python3-uno). For each file, with
a LibreOffice of its own: seconds to open, on the clock and of its processor time, and its peak
memory. With --edit, a cell (`Weights 1!AL75`, or a block's name for its first cell) is typed and
put back several times; shown is the least processor time until all that its sheet shows is computed
anew, and until every cell is, which other work on the machine disturbs least. A block that a file
does not have is passed over.
"""

import argparse
import re
import subprocess
import tempfile
import time
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from office import connect

PROCESS_CLOCK = 2  # of Linux: with a process' number, the clock of its processor time
N_EDITS = 8  # each cell is typed and put back so often


class Office:
    """A LibreOffice that was started here."""

    def __init__(self, folder: str):
        pipe = f"cellformer{time.time_ns()}"
        profile = f"-env:UserInstallation=file://{folder}/profile"
        accept = f"--accept=pipe,name={pipe};urp;"
        self.started = subprocess.Popen(["soffice", profile, "--headless", "--norestore", accept])
        self.desktop = connect(pipe)
        self.pid = next(pid for pid in self._family() if "soffice.bin" in self._name(pid))

    def _family(self) -> list[int]:
        """The process that was started, and those that it has started."""
        found = [self.started.pid]
        for pid in found:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
        return found

    def _name(self, pid: int) -> str:
        return Path(f"/proc/{pid}/cmdline").read_text()

    def seconds(self) -> tuple[float, float]:
        """On the clock, and of the processor."""
        return time.perf_counter(), time.clock_gettime(~self.pid << 3 | PROCESS_CLOCK)

    def peak(self) -> float:
        """The most memory that it has held, in GB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1e6


def measure(path: Path, edits: list[list[str]]) -> str:
    """Lines about a file."""
    with tempfile.TemporaryDirectory() as folder:
        office = Office(folder)
        before = office.seconds()
        hidden = PropertyValue(Name="Hidden", Value=True)
        book = office.desktop.loadComponentFromURL(path.resolve().as_uri(), "_blank", 0, (hidden,))
        clock, spent = (after - x for after, x in zip(office.seconds(), before, strict=True))
        found = [
            f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, opened in {clock:.1f} s "
            f"({spent:.1f} s of the processor)"
        ]
        book.calculate()  # as a window does when it is idle; before that no edit is followed
        for name, value in edits:
            cell = cell_of(book, name)
            if cell is not None:
                shown, whole = edited(office, book, cell, value)
                found.append(f"    {name} edited: its sheet {shown:.3f} s, all {whole:.3f} s")
        found[0] += f", peak {office.peak():.2f} GB"
        book.close(True)
        office.desktop.terminate()
        office.started.wait(60)
    return "\n".join(found)


def cell_of(book: object, name: str) -> object | None:
    """A cell by its address, or the first one of a block."""
    sheet, _, address = name.rpartition("!")
    if sheet:
        return book.Sheets.getByName(sheet).getCellRangeByName(address)
    if not book.NamedRanges.hasByName(name):
        return None
    return book.NamedRanges.getByName(name).ReferredCells.getCellByPosition(0, 0)


def edited(office: Office, book: object, cell: object, value: str) -> tuple[float, float]:
    """The least processor time of typing a value, or what was there: until the cell's sheet is
    computed, and until all is."""
    before, times = cell.FormulaLocal, []
    cursor = cell.Spreadsheet.createCursor()
    cursor.gotoEndOfUsedArea(True)
    for text in (value, before) * N_EDITS:
        _, start = office.seconds()
        cell.FormulaLocal = text
        cursor.getDataArray()
        _, shown = office.seconds()
        book.calculate()
        times.append((shown - start, office.seconds()[1] - start))
    return min(t[0] for t in times), min(t[1] for t in times)


def main() -> None:
    """Measure every file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--edit", nargs=2, action="append", metavar=("CELL", "VALUE"), default=[])
    asked = parser.parse_args()
    for path in asked.files:
        print(measure(path, asked.edit), flush=True)


if __name__ == "__main__":
    main()
