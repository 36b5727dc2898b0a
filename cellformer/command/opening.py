"""Opening a workbook in the user's spreadsheet program."""

import os
import shutil
import subprocess
import sys
import webbrowser
from pathlib import Path

from cellformer.engine import InputError

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")  # one of them names the screen of a Linux desktop
OFFICE = ("soffice", "libreoffice")  # asked first where no program is the system's own


def show(path: Path) -> None:
    """Open a file without waiting, a page in the browser. Raises InputError if there is no program
    or no screen."""
    if path.suffix == ".html":
        if not webbrowser.open(path.absolute().as_uri()):
            raise InputError(f"no browser was found; open {path} in a browser yourself")
        return
    if sys.platform == "win32":
        os.startfile(path)
        return
    command = opener(path)
    if not command:
        raise InputError(
            f"no spreadsheet program was found; open {path} in Excel or LibreOffice yourself"
        )
    if sys.platform == "linux" and not any(map(os.environ.get, SCREENS)):
        raise InputError(
            f"there is no screen ({' and '.join(SCREENS)} are not set); open {path} on a "
            "computer with a screen"
        )
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)


def opener(path: Path) -> list[str]:
    """The command that opens a file; [] if there is none."""
    if sys.platform == "darwin":
        return ["open", str(path)]
    for office in OFFICE:
        if found := shutil.which(office):
            return [found, "--calc", str(path)]
    found = shutil.which("xdg-open")
    return [found, str(path)] if found else []
