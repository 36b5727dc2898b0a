"""One LibreOffice for all tests of a process: it opens, types, recomputes and saves as it is told.

To start takes it longer than to compute most workbooks, and to open a workbook again far longer
than to type into one that is open. A macro in a profile of its own (`libreoffice.bas`) drives it:
no more than LibreOffice need be there. It ends when its socket closes, however tests end.
"""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from html import escape
from pathlib import Path

from cellformer.exporters.checking.programs import CSV, XLSX, Recomputed, written_sheets

# One thread reads a sheet and parses it: two take a twelfth more of the cores that tests share.
ALONE = {"SAX_DISABLE_THREADS": "1"}
PIXEL = 2540 / 96  # hundredths of a millimetre
PDF = "pdf:calc_pdf_Export"
ODS = "ods:calc8"
# commas, texts in quotes, UTF-8, cells as they look, every sheet
SHOWN = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,true,true,true,false,false,-1"
FINE = 10  # texts are measured so much larger than they are
TIMEOUT = 600  # seconds in which it answers
CellAt = tuple[str, int, int]  # a sheet, a row and a column, counted from 0
Typed = Mapping[CellAt, float | str]  # a text stays one, as =1 does; an empty one clears the cell


class Formula(str):
    """What is typed as a formula, in LibreOffice's own spelling."""


Command = tuple[object, ...]  # a word of the macro's, and what it is about
STARTING, ENDING = 300, 60  # seconds, at most

PROFILE = {
    "registrymodifications.xcu": """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Setup/Office">
<prop oor:name="ooSetupInstCompleted" oor:op="fuse"><value>true</value></prop></item>
</oor:items>""",
    "basic/script.xlc": """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE library:libraries PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" "libraries.dtd">
<library:libraries xmlns:library="http://openoffice.org/2000/library">
<library:library library:name="Standard" library:link="false"/></library:libraries>""",
    "basic/Standard/script.xlb": """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE library:library PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" "library.dtd">
<library:library xmlns:library="http://openoffice.org/2000/library" library:name="Standard"
library:readonly="false" library:passwordprotected="false">
<library:element library:name="Told"/></library:library>""",
    "basic/Standard/Told.xba": """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE script:module PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" "module.dtd">
<script:module xmlns:script="http://openoffice.org/2000/script" script:name="Told"
script:language="StarBasic">{}</script:module>""".format(
        escape(Path(__file__).with_suffix(".bas").read_text(encoding="utf-8"))
    ),
}


class Office:
    """A LibreOffice that has started and waits for commands."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="office")
        folder = Path(self._folder.name).resolve()
        self._commands, profile = folder / "commands", folder / "profile"
        for name, text in PROFILE.items():
            part = profile / "user" / name
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(text, encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as waiting:
            port = waiting.getsockname()[1]
            command = [
                shutil.which("soffice") or "libreoffice",
                f"-env:UserInstallation={profile.as_uri()}",
                *("--headless", "--norestore", "--nologo"),
                f'macro:///Standard.Told.Main("{port}","{self._commands.as_uri()}")',
            ]
            # of a group of its own: an interrupt from the keyboard reaches the tests alone
            self._program = subprocess.Popen(
                command,
                start_new_session=True,
                stderr=subprocess.DEVNULL,
                env=os.environ | ALONE,
            )
            waiting.settimeout(STARTING)
            try:
                self._link, _ = waiting.accept()
            except BaseException:  # it did not come, or nobody waits for it
                self._kill()
                raise
        self._link.settimeout(TIMEOUT)

    def does(self, commands: Iterable[Command]) -> None:
        """Wait until commands are done. Where it does not answer, another one starts next time."""
        lines = ["\t".join(map(str, command)) for command in commands]
        self._commands.write_text("\n".join(lines), encoding="utf-8")
        said = b""
        try:
            self._link.sendall(b"!")
            while not said.endswith(b"\n"):
                some = self._link.recv(1000)
                if not some:
                    raise ConnectionError("LibreOffice has ended")
                said += some
        except OSError:
            self._kill()
            office.cache_clear()
            raise
        assert said == b"\n", f"LibreOffice: {said.decode()}"

    def close(self) -> None:
        """End it."""
        self._link.close()
        try:
            self._program.wait(ENDING)
        except subprocess.TimeoutExpired:
            self._kill()
        self._folder.cleanup()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._program.pid, signal.SIGKILL)
        self._program.wait()


@cache
def office() -> Office:
    """The one LibreOffice, which starts when it is first asked for."""
    started = Office()
    atexit.register(started.close)
    return started


def recomputed(path: Path, edits: Sequence[Typed], folder: Path) -> list[Recomputed]:
    """What a workbook shows after each of several edits, which are made one at a time.

    For each of them cells are typed, every formula is computed, whatever value it had, and the
    cells become again what they were.
    """
    commands = [_open(path)]
    for k, cells in enumerate(edits):
        commands += [*_type(cells), ("compute",), _save_sheets(path, folder / str(k))]
        commands += [("put back",)]
    office().does([*commands, ("close",)])
    return [written_sheets(path, folder / str(k)) for k in range(len(edits))]


def typed_by_hand(path: Path, texts: Sequence[Typed], folder: Path) -> list[Recomputed]:
    """What a workbook shows after each of several texts, typed one upon the other as people do it:
    it opens with the values that it holds, and nothing is computed but what depends on a text."""
    commands = [_open(path)]
    for k, cells in enumerate(texts):
        commands += [*_type(cells), _save_sheets(path, folder / str(k))]
    office().does([*commands, ("close",)])
    return [written_sheets(path, folder / str(k)) for k in range(len(texts))]


def watched_while_typed(
    path: Path, texts: Sequence[Typed], watched: Sequence[CellAt], folder: Path, n_checked: int
) -> list[list[str]]:
    """What some cells of a workbook show after each of several texts, typed one upon the other as
    people do it. Before them stands how many cells hold errors, after the last `n_checked` texts:
    to count them, every cell is computed."""
    told = folder / "told"
    commands = [_open(path), *(("watch", *at) for at in watched)]
    for k, cells in enumerate(texts):
        seen = "show" if k < len(texts) - n_checked else "tell"
        commands += [*_type(cells), (seen,)]
    office().does([*commands, ("write", told.as_uri()), ("close",)])
    return [line.split("\t") for line in told.read_text(encoding="utf-8").splitlines()]


def told_of(
    path: Path, watched: Sequence[CellAt], acts: Sequence[Sequence[Command]], folder: Path
) -> tuple[list[list[str]], bool]:
    """What cells of a workbook show, wherever they go, after each of several acts, each done with
    what `libreoffice.bas` can and then undone; how many cells hold errors stands before them. And
    whether after all that everything is as it was. (A sheet that undoing brings back comes without
    the formulas that read it, and one moved back ends LibreOffice: the workbook is opened again.)
    """
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "told"
    begin = [_open(path), *(("watch", *at) for at in watched), ("compute",)]
    commands = [*begin, _save_sheets(path, folder / "before")]
    for act in acts:
        lasting = any(command[0] in ("delete sheet", "move sheet") for command in act)
        back: list[Command] = [("close",), *begin] if lasting else [("undo",)]
        commands += [*act, ("tell",), *back]
    after = _save_sheets(path, folder / "after")
    office().does([*commands, ("write", told.as_uri()), after, ("close",)])
    rows = [line.split("\t") for line in told.read_text(encoding="utf-8").splitlines()]
    kinds = [(folder / when).iterdir() for when in ("before", "after")]
    before, again = ({file.name: file.read_bytes() for file in files} for files in kinds)
    return rows, before == again


def places(path: Path, at: CellAt, folder: Path) -> list[tuple[str, float, float]]:
    """Where each chart ends, to the right and below, and at last a cell: sheet, pixels, pixels."""
    told = folder / "told"
    office().does([_open(path), ("places", *at), ("write", told.as_uri()), ("close",)])
    rows = (line.split("\t") for line in told.read_text(encoding="utf-8").splitlines())
    return [(sheet, int(x) / PIXEL, int(y) / PIXEL) for sheet, x, y in rows]


def looked_at(path: Path, folder: Path) -> tuple[list[list[str]], Path]:
    """Where columns, rows and charts of each visible sheet stand, as `libreoffice.bas` tells it,
    and the folder of CSV files with what each cell shows."""
    told = folder / "told"
    shown = _save(folder / f"{path.stem}.csv", SHOWN)
    office().does([_open(path), ("look",), shown, ("write", told.as_uri()), ("close",)])
    return [line.split("\t") for line in told.read_text(encoding="utf-8").splitlines()], folder


def measured(texts: Sequence[tuple[str, float, bool, str]], folder: Path) -> list[float]:
    """The widths in pixels of texts, each in a font: name, size in points, whether it is bold."""
    told = folder / "measured"
    asked: list[Command] = [
        ("measure", font, round(size * FINE), 150 if bold else 100, _in_a_line(text))
        for font, size, bold, text in texts
    ]
    office().does([*asked, ("write", told.as_uri())])
    widths = map(int, told.read_text(encoding="utf-8").split())
    return [width / FINE * 96 / 72 for width in widths]  # it takes points for pixels


def save(path: Path, target: Path) -> Path:
    """A workbook as LibreOffice computes and saves it."""
    office().does([_open(path), ("compute",), _save(target, XLSX), ("close",)])
    return target


def through_ods(path: Path, target: Path) -> Path:
    """A workbook that LibreOffice saved in its own format, opened, and saved as .xlsx again."""
    own = target.with_suffix(".ods")
    office().does([_open(path), _save(own, ODS), ("close",)])
    return save(own, target)


def printed(path: Path, target: Path) -> Path:
    """A workbook as LibreOffice prints it: a PDF."""
    office().does([_open(path), _save(target, PDF), ("close",)])
    return target


def _open(path: Path) -> Command:
    return "open", path.resolve().as_uri()


def _type(cells: Typed) -> Iterator[Command]:
    for at, value in cells.items():
        if isinstance(value, Formula):
            yield "type", *at, "formula", value
        elif not isinstance(value, str):
            yield "type", *at, "number", repr(float(value))
        else:
            yield "type", *at, "text" if value else "nothing", _in_a_line(value)


def _in_a_line(text: str) -> str:
    """A text without what ends a field or a line of commands, which the macro puts in again."""
    return text.translate({code: 0xE000 + code for code in range(9, 14)})


def _save_sheets(path: Path, folder: Path) -> Command:
    return _save(folder / f"{path.stem}.csv", CSV)


def _save(target: Path, kind: str) -> Command:
    """The command that writes a file, of CSV one for each sheet."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _, name, *options = kind.split(":")
    return "save", target.resolve().as_uri(), name, *(options or [""])
