"""Let the workbook `learn` learn in LibreOffice: the loss before every step, as JSON.

    /usr/bin/python3 benchmarks/learn_in_libreoffice.py FILE.xlsx STEPS [SAVED.xlsx]

Runs under the Python that has LibreOffice's `uno` module; benchmarks/learn.py calls it. A step is
what F9 does, one recalculation. Gives the losses, the seconds on the clock and of the processor for
all steps, and the peak memory in GB; with a second name, the workbook is saved as it is then.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from office import connect

TICKS = os.sysconf("SC_CLK_TCK")


def main(path: str, n_steps: str, saved: str = "") -> None:
    """Learn, and print what came of it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pipe = f"cellformer{time.time_ns()}"
        profile = f"-env:UserInstallation=file://{folder}/profile"
        accept = f"--accept=pipe,name={pipe};urp;"
        started = subprocess.Popen(["soffice", profile, "--headless", "--norestore", accept])
        desktop = connect(pipe)
        book = desktop.loadComponentFromURL(_url(path), "_blank", 0, (_property("Hidden", True),))
        print(json.dumps(learnt(book, int(n_steps), _office(started.pid))))
        if saved:
            kind = _property("FilterName", "Calc MS Excel 2007 XML")
            book.storeToURL(_url(saved), (kind,))
        book.close(True)
        desktop.terminate()
        started.wait()


def learnt(book: object, n_steps: int, pid: int) -> dict[str, object]:
    """Switch learning on, and make so many steps."""
    loss, steps = _cell(book, "loss"), _cell(book, "steps")
    before = _seconds(pid)
    _cell(book, "state").String = "learn"
    book.calculate()  # the step that is there once more
    losses = []
    for n in range(n_steps):
        assert steps.Value == n and not loss.getError(), (n, steps.Value, loss.getError())
        losses.append(loss.Value)
        book.calculate()
    clock, processor = (b - a for a, b in zip(before, _seconds(pid), strict=True))
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1e6
    return {"losses": losses, "clock": clock, "processor": processor, "peak": peak}


def _cell(book: object, name: str) -> object:
    return book.NamedRanges.getByName(name).getReferredCells().getCellByPosition(0, 0)


def _office(pid: int) -> int:
    """The process of those that were started that computes."""
    found = [pid]
    for one in found:
        for thread in Path(f"/proc/{one}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return next(p for p in found if "soffice.bin" in Path(f"/proc/{p}/cmdline").read_text())


def _seconds(pid: int) -> tuple[float, float]:
    """On the clock, and of the processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.perf_counter(), (int(fields[11]) + int(fields[12])) / TICKS


def _url(path: str) -> str:
    return Path(path).resolve().as_uri()


def _property(name: str, value: object) -> object:
    found = PropertyValue()
    found.Name, found.Value = name, value
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
