"""Photograph the first screen of every sheet, in a real LibreOffice window on a laptop's screen.

    python docs/scripts/photograph.py FOLDER dialogue-game.xlsx cat-sat.xlsx
    python docs/scripts/photograph.py FOLDER dialogue-game.xlsx --sheets Start Machine

The window fills 1366 x 768 pixels, at 100 %, the sidebar closed: what a reader sees first. Needs
LibreOffice and, for a screen that nobody looks at, Xvfb, openbox, xdotool and ImageMagick.
`pictures.py` draws more of a sheet than a screen shows, and needs no window.
"""

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from pathlib import Path

SCREEN = "1366x768"
NEEDED = ("Xvfb", "openbox", "xdotool", "import", "soffice")
MAXIMISED = """<openbox_config xmlns="http://openbox.org/3.4/rc"><applications>
<application class="*"><maximized>yes</maximized></application></applications></openbox_config>"""
SETTINGS = (  # no tip of the day, no news of the version, no recalculation that asks first
    ("Office.Common/Misc", "ShowTipOfTheDay", "false"),
    ("Office.Common/Misc", "FirstRun", "false"),
    ("Setup/Product", "ooSetupLastVersion", "99.9"),
    ("Office.Common/Misc", "LastTipOfTheDayShown", "99999"),
)
SIDEBAR = "ctrl+F5"  # opens and closes it
STILL = 0.4  # seconds between two pictures that are the same
LONGEST = 300  # seconds that a window, or a sheet, may take to show


def photograph(workbooks: list[Path], folder: Path, wanted: list[str]) -> Iterator[Path]:
    """A PNG per sheet and workbook: `folder/dialogue-game-machine.png`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, _screen(Path(temporary)) as environment:
        for k, workbook in enumerate(workbooks):
            place = Path(temporary) / str(k)
            profile = _profile(place)
            copy = shutil.copy(workbook, place)  # no lock beside the workbook itself
            with _opened(Path(copy), profile, environment):
                yield from _sheets(workbook, folder, wanted, environment)


def _sheets(
    workbook: Path, folder: Path, wanted: list[str], environment: Mapping[str, str]
) -> Iterator[Path]:
    """The sheets of the workbook that is open, one after the other."""
    names = sheets(workbook)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise SystemExit(f"{workbook} has no sheet {missing[0]!r}; it has {', '.join(names)}")
    for _ in range(opened_on(workbook)):
        _press("ctrl+Prior", environment)
    shown = _still(environment)
    for k, name in enumerate(names):
        if k:
            _press("ctrl+Next", environment)
            shown = _still(environment, unlike=shown)
        if not wanted or name in wanted:
            picture = folder / f"{workbook.stem}-{name.lower().replace(' ', '-')}.png"
            picture.write_bytes(shown)
            yield picture


def sheets(workbook: Path) -> list[str]:
    """The names of a workbook's visible sheets, in their order."""
    with zipfile.ZipFile(workbook) as file:
        found = re.findall(
            r'<sheet name="([^"]+)"(?![^>]*hidden)', file.read("xl/workbook.xml").decode("utf-8")
        )
    return [unescape(name) for name in found]


def opened_on(workbook: Path) -> int:
    """The number of the sheet that a workbook opens on, from 0."""
    with zipfile.ZipFile(workbook) as file:
        found = re.search(r'activeTab="(\d+)"', file.read("xl/workbook.xml").decode("utf-8"))
    return int(found[1]) if found else 0


# --- a screen, and a window on it --------------------------------------------------------------


@contextmanager
def _screen(temporary: Path) -> Iterator[dict[str, str]]:
    """A screen in memory, whose windows fill it; the environment of programs that draw there."""
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", "1", "-screen", "0", f"{SCREEN}x24", "-nolisten", "tcp"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout
    number = server.stdout.readline().strip()
    environment = os.environ | {"DISPLAY": f":{number}", "SAL_USE_VCLPLUGIN": "gen"}
    config = temporary / "openbox.xml"
    config.write_text(MAXIMISED, encoding="utf-8")
    manager = subprocess.Popen(
        ["openbox", "--config-file", config], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        yield environment
    finally:
        for process in (manager, server):
            process.terminate()
            process.wait()


def _profile(folder: Path) -> str:
    """A fresh user's profile of LibreOffice, as its command takes it."""
    (folder / "user").mkdir(parents=True)
    items = "".join(
        f'<item oor:path="/org.openoffice.{path}"><prop oor:name="{name}" oor:op="fuse">'
        f"<value>{value}</value></prop></item>"
        for path, name, value in SETTINGS
    )
    schema = 'xmlns:oor="http://openoffice.org/2001/registry"'
    text = f'<?xml version="1.0" encoding="UTF-8"?><oor:items {schema}>{items}</oor:items>'
    (folder / "user" / "registrymodifications.xcu").write_text(text, encoding="utf-8")
    return f"-env:UserInstallation={folder.as_uri()}"


@contextmanager
def _opened(workbook: Path, profile: str, environment: Mapping[str, str]) -> Iterator[None]:
    """A workbook in a window, its sidebar closed."""
    command = ["soffice", profile, "--norestore", "--nologo", "--calc"]
    office = subprocess.Popen([*command, workbook], env=environment, stderr=subprocess.DEVNULL)
    try:
        search = ["xdotool", "search", "--sync", "--onlyvisible", "--name", workbook.name]
        subprocess.run(search, env=environment, check=True, capture_output=True, timeout=LONGEST)
        _still(environment)
        _press(SIDEBAR, environment)
        yield
    finally:
        _press("ctrl+q", environment)
        try:
            office.wait(10)
        except subprocess.TimeoutExpired:
            office.kill()
            office.wait()


def _press(keys: str, environment: Mapping[str, str]) -> None:
    subprocess.run(["xdotool", "key", keys], env=environment, check=False, capture_output=True)


def _still(environment: Mapping[str, str], unlike: bytes = b"") -> bytes:
    """What the screen shows, once it shows it twice, and something `unlike` what it showed before.

    A slow machine shows the sheet before for a while: its tab alone tells it from the next."""
    before, begun = unlike, time.monotonic()
    while time.monotonic() - begun < LONGEST:
        time.sleep(STILL)
        command = ["import", "-window", "root", "-strip", "png:-"]
        now = subprocess.run(command, env=environment, check=True, capture_output=True).stdout
        if now == before != unlike:
            return now
        before = now
    raise SystemExit(f"the window shows nothing new, or is never still, for {LONGEST} seconds")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("workbooks", type=Path, nargs="+")
    parser.add_argument("--sheets", nargs="+", default=[], help="only these, by name")
    given = parser.parse_args()
    if missing := [program for program in NEEDED if not shutil.which(program)]:
        raise SystemExit(f"not installed: {', '.join(missing)}; pictures.py needs no window")
    for path in photograph(given.workbooks, given.folder, given.sheets):
        print(path)
