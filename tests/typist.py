"""A LibreOffice that opens workbooks with the values they hold, types in them, and tells of cells.

It is driven as people drive it: nothing is recalculated but what depends on what is typed. A Basic
macro in a profile of its own does it, so that no more than LibreOffice need be there.
"""

import subprocess
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from conftest import CellAt, needs

from engine.cells.values import CellError
from exporters.reading import Value

Typed = Mapping[CellAt, float | str]
TIMEOUT = 300

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
<library:element library:name="Typist"/></library:library>""",
}
MODULE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE script:module PUBLIC "-//OpenOffice.org//DTD OfficeDocument 1.0//EN" "module.dtd">
<script:module xmlns:script="http://openoffice.org/2000/script" script:name="Typist"
script:language="StarBasic">{}</script:module>"""


MACRO = """
Sub Main
  Dim nothing_set()
{}
  Close
  StarDesktop.terminate()
End Sub

Sub Tell(file, cell)  ' a text as its codes behind a T, a number as it is, an error as E
  If cell.getError() <> 0 Then
    Print #file, "E"
  ElseIf cell.String = "" Then
    Print #file, "T"
  ElseIf cell.FormulaResultType2 = 2 Or cell.Type = 2 Then
    codes = "T"
    For k = 1 To Len(cell.String)
      codes = codes & " " & Asc(Mid(cell.String, k, 1))
    Next
    Print #file, codes
  Else
    Print #file, cell.Value
  End If
End Sub
"""


class Job(NamedTuple):
    """A workbook, what is typed in it one upon the other, and the cells that are looked at."""

    path: Path
    texts: Sequence[Typed]
    watched: Sequence[CellAt]
    recalculated: bool = False  # all of it each time: the file's values may be wrong


Told = dict[CellAt, Value]


def typed_in_libreoffice(jobs: Sequence[Job], folder: Path) -> list[list[Told]]:
    """What the cells that are looked at show after each text, for each job."""
    needs("libreoffice")
    folder.mkdir(exist_ok=True)
    profile = folder / "profile"
    lines = [line for n, job in enumerate(jobs) for line in _lines(job, folder / f"{n}.txt")]
    module = MODULE.format(escape(MACRO.format("\n".join(lines))))
    for name, text in {**PROFILE, "basic/Standard/Typist.xba": module}.items():
        part = profile / "user" / name
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
    command = ["soffice", f"-env:UserInstallation={profile.resolve().as_uri()}", "--headless"]
    command += ["--norestore", "--nologo", "macro:///Standard.Typist.Main"]
    subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=True)
    return [_told(job, folder / f"{n}.txt") for n, job in enumerate(jobs)]


def _lines(job: Job, target: Path) -> list[str]:
    """The Basic that opens a workbook, types, and tells of its cells."""
    url = _text(job.path.resolve().as_uri())
    lines = [f'book = StarDesktop.loadComponentFromURL({url}, "_blank", 0, nothing_set())']
    lines += ["file = FreeFile", f"Open {_text(str(target))} For Output As #file"]
    for cells in job.texts:
        for at, value in cells.items():
            typed = f"String = {_text(value)}" if isinstance(value, str) else f"Value = {value!r}"
            lines.append(f"{_cell(at)}.{typed}")
        lines += ["book.calculateAll()"] * job.recalculated
        lines += [f"Tell file, {_cell(at)}" for at in job.watched]
    return [*lines, "Close #file", "book.close(True)"]


def _told(job: Job, target: Path) -> list[Told]:
    """The values that are told after each text."""
    lines = target.read_text().splitlines()
    assert len(lines) == len(job.texts) * len(job.watched)
    values = iter(map(_value, lines))
    return [{at: next(values) for at in job.watched} for _ in job.texts]


def _value(line: str) -> Value:
    kind, *codes = line.split()
    if kind == "T":
        units = b"".join(int(code).to_bytes(2, "little") for code in codes)
        return units.decode("utf-16-le")
    return CellError("#ERROR!") if kind == "E" else float(kind)


def _cell(at: CellAt) -> str:
    sheet, row, col = at
    return f"book.Sheets.getByName({_text(sheet)}).getCellByPosition({col}, {row})"


def _text(text: str) -> str:
    """A text as Basic has it; a line's end is put together."""
    return '"' + text.replace('"', '""').replace("\n", '" & Chr(10) & "') + '"'
