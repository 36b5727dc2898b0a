"""A file of lists: one entry a line; a line that begins with `# ` names the list below it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cellformer.engine.cells.errors import InputError

LARGEST = 100_000  # bytes of a file
LONGEST = 60  # characters of an entry that a message shows
HEADING = "# "


class Line(NamedTuple):
    """A line of such a file that is not blank."""

    number: int  # from 1
    list: str  # the name of the list that it is in; "" before the first heading
    text: str  # the entry; "": this line is the list's heading


def lines(path: Path, of: str, most: int) -> Iterator[Line]:
    """The lines of a file of lists `of` words, or sentences, that takes at most so many. Raises
    InputError for a file that cannot be read as one."""
    name = ""
    for number, line in enumerate(_text(path, of, most).splitlines(), 1):
        text = line.strip()
        if text.startswith(HEADING):
            name = text.removeprefix(HEADING).strip()
            yield Line(number, name, "")
        elif text:
            yield Line(number, name, text)


def _text(path: Path, of: str, most: int) -> str:
    if not path.is_file():
        raise InputError(
            f"there is no file {path}; give a file with a list of {of}, one on each line"
        )
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} is too large for a list of {most} {of}; shorten the list")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a UTF-8 text; save the list of {of} as UTF-8") from None


def quoted(text: str) -> str:
    """An entry as messages show it: in quotes, and cut if it is long."""
    return repr(text if len(text) <= LONGEST else text[:LONGEST] + "…")
