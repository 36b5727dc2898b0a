"""Open workbooks in LibreOffice, one after another: seconds, memory, and one edit of each.

    /usr/bin/python3 benchmarks/libreoffice_open.py FILE.xlsx ... [--edit SHEET CELL VALUE]

Runs under the Python that has LibreOffice's `uno` module (Debian: python3-uno). For each file, with
a LibreOffice of its own: seconds to open, on the clock and of its processor time, its peak memory,
and with --edit the same seconds from typing into a cell until every cell is computed anew.
"""

import argparse
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from office import connect

TICKS = os.sysconf("SC_CLK_TCK")


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
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return time.perf_counter(), (int(fields[11]) + int(fields[12])) / TICKS

    def peak(self) -> float:
        """The most memory that it has held, in GB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1e6


def measure(path: Path, edit: list[str] | None) -> str:
    """A line about a file."""
    with tempfile.TemporaryDirectory() as folder:
        office = Office(folder)
        before = office.seconds()
        hidden = PropertyValue(Name="Hidden", Value=True)
        book = office.desktop.loadComponentFromURL(path.resolve().as_uri(), "_blank", 0, (hidden,))
        opened = office.seconds()
        found = (
            f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, opened in {taken(before, opened)}"
        )
        if edit:
            book.calculate()  # as a window does when it is idle; before that no edit is followed
            opened = office.seconds()
            sheet, cell, value = edit
            book.Sheets.getByName(sheet).getCellRangeByName(cell).FormulaLocal = value
            book.calculate()
            found += f", edited in {taken(opened, office.seconds())}"
        found += f", peak {office.peak():.2f} GB"
        book.close(True)
        office.desktop.terminate()
        office.started.wait(60)
    return found


def taken(start: tuple[float, float], end: tuple[float, float]) -> str:
    """How long it took."""
    return f"{end[0] - start[0]:.1f} s ({end[1] - start[1]:.1f} s of the processor)"


def main() -> None:
    """Measure every file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--edit", nargs=3, metavar=("SHEET", "CELL", "VALUE"))
    asked = parser.parse_args()
    for path in asked.files:
        print(measure(path, asked.edit), flush=True)


main()
