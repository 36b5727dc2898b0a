"""A LibreOffice that opens workbooks with the values they hold, types in them, and saves each time.

It is driven as people drive it: nothing is recalculated but what depends on what is typed. A Basic
macro in a profile of its own does it, so that no more than LibreOffice need be there.
"""

import subprocess
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from conftest import CellAt, needs

from exporters.reading import WorkbookFile

Typed = Mapping[CellAt, float | str]
TIMEOUT = 300
FILTER = {"Name": "FilterName", "Value": "Calc MS Excel 2007 XML"}

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


def typed_in_libreoffice(
    jobs: Mapping[Path, Sequence[Typed]], folder: Path
) -> dict[Path, list[WorkbookFile]]:
    """What workbooks hold after each of the texts that are typed in them, one upon the other."""
    needs("libreoffice")
    profile = folder / "profile"
    saved = {
        path: [folder / f"{n}-{k}.xlsx" for k in range(len(texts))]
        for n, (path, texts) in enumerate(jobs.items())
    }
    lines = [line for path, texts in jobs.items() for line in _lines(path, texts, saved[path])]
    for name, text in PROFILE.items() | {"basic/Standard/Typist.xba": _module(lines)}.items():
        part = profile / "user" / name
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
    command = ["soffice", f"-env:UserInstallation={profile.resolve().as_uri()}", "--headless"]
    command += ["--norestore", "--nologo", "macro:///Standard.Typist.Main"]
    subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=True)
    return {path: [WorkbookFile(file) for file in files] for path, files in saved.items()}


def _lines(path: Path, texts: Sequence[Typed], targets: Sequence[Path]) -> list[str]:
    """The Basic that opens a workbook, types, and saves a copy after every text."""
    lines = [f'book = StarDesktop.loadComponentFromURL({_text(_url(path))}, "_blank", 0, none())']
    for cells, target in zip(texts, targets, strict=True):
        for (sheet, row, col), value in cells.items():
            cell = f"book.Sheets.getByName({_text(sheet)}).getCellByPosition({col}, {row})"
            typed = f"String = {_text(value)}" if isinstance(value, str) else f"Value = {value!r}"
            lines.append(f"{cell}.{typed}")
        lines.append(f"book.storeToURL({_text(_url(target))}, xlsx())")
    return [*lines, "book.close(True)"]


def _module(lines: Sequence[str]) -> str:
    """The macro."""
    setting = [f"xlsx(0).{name} = {_text(value)}" for name, value in FILTER.items()]
    begin = ["Sub Main", "Dim none()", "Dim xlsx(0) As New com.sun.star.beans.PropertyValue"]
    body = "\n".join([*begin, *setting, *lines, "StarDesktop.terminate()", "End Sub"])
    return MODULE.format(escape(body))


def _text(text: str) -> str:
    """A text as Basic has it; a line's end is put together."""
    return '"' + text.replace('"', '""').replace("\n", '" & Chr(10) & "') + '"'


def _url(path: Path) -> str:
    return path.resolve().as_uri()
