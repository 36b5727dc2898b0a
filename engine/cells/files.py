"""Files are written whole or not at all, and read with an eye on what they are."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.cells.errors import InputError

MOST_JSON = 200_000_000  # bytes; the largest tokenizers take 35 million


def read_json(path: Path) -> Any:
    """What a JSON file holds. Raises InputError."""
    check_size(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    except RecursionError:
        raise InputError(
            f"{path} is not JSON that a program writes: it is nested too deep"
        ) from None


def possible(name: str | Path) -> Path:
    """The path of a name. Raises InputError for one that no file can have."""
    try:
        os.lstat(name)
    except ValueError:
        raise InputError(f"no file can be named {str(name)!r}; choose another name") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(
                f"{name} is too long for a file's name; choose a shorter one"
            ) from None
    return Path(name)


def check_size(path: Path, most: int = MOST_JSON) -> None:
    """Raise InputError for what is no regular file, and for a file of more bytes than `most`."""
    if not path.is_file():
        what = "is no regular file" if path.exists() else "is not there"
        raise InputError(f"{path} {what}; take it from the model's folder anew")
    if path.stat().st_size > most:
        raise InputError(f"{path} has more than {most / 1e6:,.0f} MB, which no model needs")


def check_file(path: Path) -> Path:
    """A path at which a file can stand, where a link leads to. Raises InputError for another."""
    path = possible(path).resolve()
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no regular file; name another one with -o")
    if path.exists() and not path.stat().st_mode & 0o222:
        raise InputError(f"{path} is read-only; allow writing to it, or name another file with -o")
    return path


@contextmanager
def replacing(path: Path) -> Iterator[str]:
    """A temporary file beside `path` that takes its place at the end, or goes without a trace.

    Of a link, the file that it leads to is replaced. Raises InputError where nothing can be
    written.
    """
    path = check_file(path)
    try:
        handle, temporary = tempfile.mkstemp(suffix=".part", dir=path.parent)
    except OSError as error:
        raise InputError(
            f"cannot write in {path.parent}: {error.strerror}; choose another folder with -o"
        ) from None
    os.close(handle)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_replaceable(folder: Path, known: Callable[[str], bool], force: bool) -> None:
    """Raise InputError where `replacing_folder` would."""
    if possible(folder).exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder with -o")
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    strange = [name for name in names if not known(name)]
    if strange:
        raise InputError(f"{folder} holds {strange[0]!r}, which is of no model; name another")
    if names and not force:
        raise InputError(f"{folder} holds a model; name another folder, or replace it with --force")
    above = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        raise InputError(f"cannot write in {above}; choose another folder with -o")


@contextmanager
def replacing_folder(folder: Path, known: Callable[[str], bool], force: bool) -> Iterator[Path]:
    """A temporary folder whose files take the place of all in `folder` at the end, or none does.

    A folder that holds something is replaced only by `force`, and only if every file in it is
    `known` by its name. Raises InputError.
    """
    check_replaceable(folder, known, force)
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(suffix=".part", dir=folder) as temporary:
            new, before = Path(temporary) / "new", Path(temporary) / "before"
            new.mkdir()
            before.mkdir()
            yield new
            try:
                _move(folder, before, leave=temporary)
                _move(new, folder)
            except BaseException:
                _move(before, folder)
                raise
    except BaseException as error:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise InputError(f"cannot write in {folder}: {error.strerror or error}") from None
        raise


def _move(source: Path, target: Path, leave: str = "") -> None:
    for path in list(source.iterdir()):
        if str(path) != leave:
            path.replace(target / path.name)
