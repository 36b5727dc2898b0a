"""Let a workbook that learns, `learn` or `microgpt`, do so in LibreOffice: the loss before every
step, as JSON.

    /usr/bin/python3 benchmarks/learn_in_libreoffice.py FILE.xlsx STEPS [WAY ...]

Runs under the Python that has LibreOffice's `uno` module; benchmarks/learn.py and a test call it. A
step is two recalculations, as F9 makes them; those after a switch may complete the step that is
there. WAY says what is read between two of them; `screen` unless one is given:

    nothing    no more than the number of steps, and the loss
    loss       the loss of the batch, as Learn shows it, before the number of steps
    screen     the sheet Learn row by row, as a window paints it
    backwards  the sheets of the step, the last one and its last rows first
    paused     as `screen`; halfway `pause` is chosen, another rate typed, and `learn` chosen again
    window     in a window on a screen of its own (Xvfb): `learn` and F9 are typed on the keyboard
               (xdotool), and the sheet of the way back is shown now and then

One LibreOffice goes all ways but the last, which needs one with windows. Of each: the losses, and
the weights after the last step; the loss when `start` is chosen then; the recalculations; the
seconds on the clock and of the processor; the peak memory in GB.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uno  # noqa: F401  it makes com.sun.star importable
from com.sun.star.beans import PropertyValue
from office import connect

TICKS = os.sysconf("SC_CLK_TCK")
STEP_SHEETS = re.compile(r"(Step|Part) \d")  # by their names
ANOTHER_RATE = 0.05
EACH = 2  # recalculations for each step, as built
PAINTED = 0.1  # seconds in which a window paints what has been computed
LATEST = 60  # seconds until a key that is pressed has done its work


def main(path: str, n_steps: str, *ways: str) -> None:
    """Learn in every way, and print what came of it."""
    ways, found = ways or ("screen",), {}
    for windows in (False, True):
        asked = [way for way in ways if (way == "window") == windows]
        if asked:
            found |= all_learnt(path, int(n_steps), asked, windows)
    print(json.dumps(found))


def all_learnt(path: str, n_steps: int, ways: list[str], windows: bool) -> dict[str, object]:
    """Learn in every way, in one LibreOffice."""
    found = {}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        _screen(windows) as screen,
        _started(folder, screen) as (desktop, pid),
    ):
        copy = Path(shutil.copy(path, folder)).as_uri()  # no lock beside the workbook itself
        for way in ways:
            hidden = _property("Hidden", not windows)
            book = desktop.loadComponentFromURL(copy, "_blank", 0, (hidden,))
            seen = Window(book, screen) if windows else Hidden(book, way)
            found[way] = learnt(seen, n_steps, pid)
            book.setModified(False)
            book.close(True)
    return found


class Hidden:
    """A workbook that no window shows, some of whose cells are read."""

    def __init__(self, book: object, way: str):
        self.book, self.way = book, way

    def choose(self, state: str) -> None:
        """Choose `learn`, `pause` or `start`."""
        self.type("state", state)

    def type(self, name: str, value: str | float) -> None:
        """Type into a cell that has a name."""
        cell = _cell(self.book, name)
        if isinstance(value, str):
            cell.String = value
        else:
            cell.Value = value
        self.look()

    def recalculate(self) -> None:
        """What F9 does."""
        self.book.calculate()
        self.look()

    def look(self) -> None:
        """Read what the way says."""
        sheets = self.book.Sheets
        if self.way == "loss":
            _cell(self.book, "this_loss").getValue()
        elif self.way in ("screen", "paused"):
            sheets.getByName("Learn").getCellRangeByPosition(0, 0, 8, 60).getDataArray()
        elif self.way == "backwards":
            for name in filter(STEP_SHEETS.match, reversed(sheets.ElementNames)):
                sheet = sheets.getByName(name)
                cursor = sheet.createCursor()
                cursor.gotoEndOfUsedArea(False)
                for row in range(cursor.RangeAddress.EndRow, 0, -100):
                    sheet.getCellRangeByPosition(0, row - 1, 9, row).getDataArray()


class Window:
    """A workbook in a window, and its keyboard."""

    def __init__(self, book: object, screen: dict[str, str]):
        self.book, self.way, self.screen, self.pressed = book, "window", screen, 0
        self.controller = book.CurrentController
        self.show("Learn")
        names = book.Sheets.ElementNames
        self.back = next(name for name in names if name.endswith("Backward"))
        title = Path(book.URL).name
        found = ["xdotool", "search", "--sync", "--onlyvisible", "--name", title]
        shown = subprocess.run(found, env=screen, capture_output=True, text=True, timeout=LATEST)
        subprocess.run(["xdotool", "windowfocus", "--sync", shown.stdout.split()[-1]], env=screen)

    def choose(self, state: str) -> None:
        """Type a state, and Enter."""
        self.controller.select(_cell(self.book, "state"))
        self.controller.Frame.ContainerWindow.setFocus()
        time.sleep(PAINTED)
        self._keys("type", "--delay", "40", state)
        self._keys("key", "Return")
        self._until(lambda: _cell(self.book, "state").String == state)

    def recalculate(self) -> None:
        """Press F9, now and then with the sheet of the way back before one's eyes."""
        before = _cell(self.book, "latch.tick").Value
        self.pressed += 1
        if self.pressed % 8 == 3:
            self.show(self.back)
        self._keys("key", "F9")
        self._until(lambda: _cell(self.book, "latch.tick").Value != before)
        self.show("Learn")

    def show(self, sheet: str) -> None:
        "Turn; values: a"
        if self.controller.ActiveSheet.Name != sheet:
            self.controller.setActiveSheet(self.book.Sheets.getByName(sheet))
        time.sleep(PAINTED)

    def _keys(self, *keys: str) -> None:
        subprocess.run(["xdotool", *keys], env=self.screen, check=True)

    def _until(self, done: object) -> None:
        latest = time.monotonic() + LATEST
        time.sleep(PAINTED)
        while not done():
            if time.monotonic() > latest:
                raise SystemExit("a key that was pressed did nothing")
            time.sleep(PAINTED)


def learnt(seen: Hidden | Window, n_steps: int, pid: int) -> dict[str, object]:
    """Switch learning on, and make so many steps."""
    book, losses, pressed, before = seen.book, [], 0, _seconds(pid)
    loss, steps = _cell(book, "loss"), _cell(book, "steps")
    seen.choose("learn")
    for n in range(n_steps + 1):
        if seen.way == "paused" and n == n_steps // 2 + 1:
            seen.choose("pause")
            seen.recalculate()
            seen.type("rate", ANOTHER_RATE)
            seen.choose("learn")
        for _ in range(2 * EACH):  # after a switch, the first may complete the step that is there
            if steps.Value < n:
                seen.recalculate()
                pressed += 1
        if steps.Value != n or loss.getError():
            raise SystemExit(f"{seen.way}: {steps.Value:g} steps made, not {n}; {loss.getError()}")
        losses.append(loss.Value)
    clock, processor = (b - a for a, b in zip(before, _seconds(pid), strict=True))
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1e6
    weights = {name: _range(book, name).DataArray for name in _weights(book)}
    names = _range(book, "names").DataArray if book.NamedRanges.hasByName("names") else []
    seen.choose("start")
    return {
        "losses": losses, "weights": weights, "names": names, "begun": [steps.Value, loss.Value],
        "recalculations": pressed,
        "clock": clock, "processor": processor, "peak": peak,
    }  # fmt: skip


def _weights(book: object) -> list[str]:
    """The names of what learns: of each the workbook tells what it `start`s from."""
    names = book.NamedRanges.ElementNames
    return [name.removeprefix("start.") for name in names if name.startswith("start.")]


def _range(book: object, name: str) -> object:
    return book.NamedRanges.getByName(name).getReferredCells()


def _cell(book: object, name: str) -> object:
    return _range(book, name).getCellByPosition(0, 0)


@contextmanager
def _screen(wanted: bool) -> Iterator[dict[str, str]]:
    """A screen that nobody sees, where one is wanted; the environment of what is started there."""
    if not wanted:
        yield {}
        return
    asked = ["Xvfb", "-displayfd", "1", "-screen", "0", "1400x1000x24", "-nolisten", "tcp"]
    hush = subprocess.DEVNULL
    server = subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=hush, text=True)
    number = server.stdout.readline().strip()
    try:
        yield os.environ | {"DISPLAY": f":{number}", "SAL_USE_VCLPLUGIN": "gen"}
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _started(folder: str, screen: dict[str, str]) -> Iterator[tuple[object, int]]:
    """A LibreOffice with a profile of its own: its desktop, and the process that computes."""
    pipe = f"cellformer{time.time_ns()}"
    asked = ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--norestore"]
    asked += ["--nologo", "--nofirststartwizard", f"--accept=pipe,name={pipe};urp;"]
    asked += [] if screen else ["--headless"]
    started = subprocess.Popen(asked, env=screen or None, stdout=subprocess.DEVNULL)
    desktop = connect(pipe)
    try:
        yield desktop, _office(started.pid)
    finally:
        desktop.terminate()
        started.wait()


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


def _property(name: str, value: object) -> object:
    found = PropertyValue()
    found.Name, found.Value = name, value
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
