"""A workbook in the spreadsheet program that is there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from engine import InputError

OFFICE = ("soffice", "libreoffice")  # asked first where no program is the system's own


def show(path: Path) -> None:
    """Open a file, and go on. Raises InputError where there is no program for it."""
    if sys.platform == "win32":
        os.startfile(path)
        return
    command = opener(path)
    if not command:
        raise InputError(
            f"no spreadsheet program was found; {path} is there: open it in Excel or LibreOffice"
        )
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def opener(path: Path) -> list[str]:
    """The command that opens a file; [] where there is none."""
    if sys.platform == "darwin":
        return ["open", str(path)]
    for office in OFFICE:
        if found := shutil.which(office):
            return [found, "--calc", str(path)]
    found = shutil.which("xdg-open")
    return [found, str(path)] if found else []
