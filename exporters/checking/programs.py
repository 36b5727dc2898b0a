"""LibreOffice and gnumeric, started as programs that load workbooks and recompute every cell.

LibreOffice is started once for many workbooks, and writes every sheet as CSV: writing .xlsx takes
longer than loading and computing. CSV has all that is compared: numbers with 15 digits, and texts
and errors in quotes.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.values import CellError
from cellformer.exporters.file.reading import Shown, Value, WorkbookFile

# commas, texts in quotes, UTF-8, numbers as they are and not as they look, every sheet
CSV = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,true,true,false,false,false,-1"
XLSX = "xlsx:Calc MS Excel 2007 XML"
QUOTED = re.compile(r'"((?:[^"]++|"")*)"')
ERROR = re.compile(r"#(N/A|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!)|Err:\d+")
ALWAYS_RECALCULATE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""

Recomputed = Mapping[str, Shown]  # the sheets of a workbook by their names


def recompute_in_libreoffice(paths: Sequence[Path], folder: Path) -> list[Recomputed]:
    """Load each workbook and recompute every cell, without its cached values.

    A text that reads like an error counts as one. Raises InputError.
    """
    convert_in_libreoffice(paths, CSV, folder)
    return [written_sheets(path, folder) for path in paths]


def convert_in_libreoffice(paths: Sequence[Path], kind: str, folder: Path) -> list[Path]:
    """Write workbooks in another format into `folder`, under the same names, with every cell
    recomputed. Raises InputError."""
    profile = folder / "profile"
    (profile / "user").mkdir(parents=True, exist_ok=True)
    (profile / "user" / "registrymodifications.xcu").write_text(ALWAYS_RECALCULATE)
    command = [
        program("soffice") or program("libreoffice"),
        f"-env:UserInstallation={profile.resolve().as_uri()}",
    ]
    command += ["--headless", "--convert-to", kind, "--outdir", str(folder.resolve())]
    _run([*command, *(str(path.resolve()) for path in paths)], folder)
    return [folder / path.name for path in paths]


def recompute_in_gnumeric(path: Path, target: Path) -> WorkbookFile:
    """Load a workbook and recompute every cell. Raises InputError."""
    command = [program("ssconvert"), "--recalc", str(path.resolve()), str(target.resolve())]
    _run(command, target.parent)
    return WorkbookFile(target)


def program(name: str) -> str:
    """The path of a program; "" if it is missing, or only in the current folder."""
    found = shutil.which(name) or ""
    return found if Path(found).is_absolute() else ""


def _run(command: Sequence[str], folder: Path) -> None:
    """Run a program in an empty folder. Raises InputError with its message if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise InputError(f"{Path(command[0]).name} failed: {' '.join(done.stderr.split())[:300]}")


def written_sheets(path: Path, folder: Path) -> Recomputed:
    """The sheets of a workbook from CSV files, read on demand. Raises InputError."""
    # LibreOffice takes a sheet's name for a part of an address, and %41 in it for an A.
    files = {name: folder / f"{path.stem}-{unquote(name)}.csv" for name in WorkbookFile(path)}
    missing = [name for name, file in files.items() if not file.is_file()]
    if missing:
        fault = f"LibreOffice wrote no values of the sheet {missing[0]}"
        raise InputError(f"{fault}; use LibreOffice 7.2 or later, which writes all sheets")
    return {name: Shown(partial(_values, file)) for name, file in files.items()}


def _values(file: Path) -> dict[Span, Value]:
    """The values of a CSV file by row and column."""
    found: dict[Span, Value] = {}
    row, held = 0, ""
    for line in file.read_bytes().decode().split("\n"):
        held = f"{held}\n{line}" if held else line
        if held.count('"') % 2:
            continue  # a text that goes on in the next line
        if '"' not in held:  # numbers alone, as most lines are
            texts = enumerate(held.split(","))
            found |= {(row, col): _number(text) for col, text in texts if text}
        else:
            found |= {(row, col): value for col, value in _fields(held)}
        row, held = row + 1, ""
    return found


def _fields(line: str) -> Iterator[tuple[int, Value]]:
    """The values in a line by column, texts in quotes."""
    texts = iter(QUOTED.findall(line))
    for col, field in enumerate(QUOTED.sub('"', line).split(",")):
        if field == '"':
            text = next(texts).replace('""', '"')
            if text:
                yield col, CellError(text) if ERROR.fullmatch(text) else text
        elif field:
            yield col, _number(field)


def _number(text: str) -> Value:
    """A number, a percentage, or a truth value; a date stays a text."""
    try:
        return float(text)
    except ValueError:
        pass
    if text in ("TRUE", "FALSE"):
        return text == "TRUE"
    if text.endswith("%"):
        with suppress(ValueError):
            return float(text[:-1]) / 100
    return text
