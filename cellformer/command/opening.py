"""A workbook in the spreadsheet program that is there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from engine import InputError

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")  # one of them names the screen of a Linux desktop
OFFICE = ("soffice", "libreoffice")  # asked first where no program is the system's own


def show(path: Path) -> None:
    """Open a file, and go on. Raises InputError where there is no program for it, or no screen."""
    if sys.platform == "win32":
        os.startfile(path)
        return
    command = opener(path)
    if not command:
        raise InputError(
            f"no spreadsheet program was found; {path} is there: open it in Excel or LibreOffice"
        )
    if sys.platform == "linux" and not any(map(os.environ.get, SCREENS)):
        raise InputError(
            f"there is no screen, as over ssh ({' and '.join(SCREENS)} are not set); "
            f"{path} is there: open it where you have one"
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
