"""Writing files completely or not at all, and checking files before reading them.

An unfinished file is called `.cellformer-0123456789abcdef.part`, and is locked while the program
that writes it runs. A program that the system kills leaves it unlocked: the next one that writes in
that folder deletes it.
"""

import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import monotonic, sleep
from typing import Any

from cellformer.engine.cells.errors import InputError, check_all

MOST_JSON = 200_000_000  # bytes; the largest tokenizers take 35 million
UNFINISHED = re.compile(r"\.cellformer-[0-9a-f]{16}\.part")
PATIENCE = 2.0  # seconds in which another program has made what it makes in a folder
_AT_WORK: set[Path] = set()  # unfinished files and folders of this program
BEFORE = "before"  # where the files of a folder stand while others take their place


def read_json(path: Path) -> Any:
    """The contents of a JSON file. Raises InputError."""
    check_size(path)
    try:
        return parse_json(path.read_bytes(), path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def parse_json(data: bytes, path: Path) -> Any:
    """The contents of JSON in bytes; errors name `path`. Raises InputError."""
    try:
        return json.loads(data.decode())
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    except RecursionError:
        raise InputError(
            f"the JSON of {path} is nested too deeply; download the file again"
        ) from None


def possible(name: str | Path) -> Path:
    """The path of a name. Raises InputError for an impossible file name."""
    try:
        os.lstat(name)
    except ValueError:
        raise InputError(f"no file can be named {str(name)!r}; choose another name") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(
                f"{name} is too long for a file's name; choose a shorter name"
            ) from None
    return Path(name)


def check_size(path: Path, most: int = MOST_JSON) -> None:
    """Raise InputError for anything but a regular file of at most `most` bytes."""
    if not path.is_file():
        what = "is no regular file" if path.exists() else "is not there"
        raise InputError(f"{path} {what}; copy the file from the model's folder again")
    if path.stat().st_size > most:
        raise InputError(
            f"{path} is larger than {most / 1e6:,.0f} MB, and no model needs so large a file; "
            "download the file again"
        )


def check_file(path: Path) -> Path:
    """A path at which a file can be written; a link is resolved. Raises InputError."""
    path = possible(path).resolve()
    there = path.exists()
    check_all(
        (path.parent.is_dir(), f"there is no folder {path.parent}; make this folder first"),
        (not path.is_dir(), f"{path} is a folder; name a file"),
        (
            path.is_file() or not there,
            f"{path} is not an ordinary file; name another file with -o",
        ),
        (
            not there or path.stat().st_mode & 0o222,
            f"{path} is read-only; make the file writable, or name another file with -o",
        ),
    )
    return path


@contextmanager
def replacing(path: Path) -> Iterator[str]:
    """A context manager: a temporary file beside `path` that replaces it on success, and is deleted
    on failure.

    If `path` is a link, its target is replaced. Raises InputError if nothing can be written.
    """
    path = check_file(path)
    with ExitStack() as held:
        try:
            temporary = held.enter_context(_begun(path.parent, Path.touch, Path.unlink))
        except OSError as error:
            raise InputError(
                f"cannot write in {path.parent}: {error.strerror}; choose another folder with -o"
            ) from None
        yield str(temporary)
        os.replace(temporary, path)


def temporary_folder(beside: Path) -> AbstractContextManager[Path]:
    """A context manager: a folder for unfinished files, inside another; it is deleted at the
    end."""
    return _begun(beside, Path.mkdir, partial(shutil.rmtree, ignore_errors=True))


@contextmanager
def _begun(
    folder: Path, make: Callable[[Path], None], remove: Callable[[Path], None]
) -> Iterator[Path]:
    """An unfinished file or folder, locked, and deleted at the end. Its name is chosen before it is
    made, so that a signal at any moment leaves nothing behind."""
    path = folder / f".cellformer-{token_hex(8)}.part"
    with ExitStack() as held:
        _AT_WORK.add(path)
        try:
            with _swept(folder):
                make(path)
                held.enter_context(_lock(path))
            yield path
        finally:
            with suppress(OSError):
                remove(path)
            _AT_WORK.discard(path)


def delete_unfinished() -> None:
    """Delete the unfinished files and folders of this program, which is about to be ended."""
    for path in list(_AT_WORK):
        with suppress(OSError):
            _take_away(path)


@contextmanager
def _swept(folder: Path) -> Iterator[None]:
    """A folder, locked for a moment so that no other program sees a file that is made and not yet
    locked; first, leftovers of killed programs are deleted."""
    with _lock(folder, PATIENCE) as alone:
        if alone:
            for path in [path for path in folder.iterdir() if UNFINISHED.fullmatch(path.name)]:
                with suppress(OSError), _lock(path) as left:
                    if left and path.stat().st_uid == os.geteuid():
                        _take_away(path)
        yield


def _take_away(path: Path) -> None:
    """Delete a file or folder; not one with files of a model that were moved there and not put
    back."""
    if path.is_file():
        path.unlink()
    elif not any(path.glob(f"{BEFORE}/*")):
        shutil.rmtree(path)


@contextmanager
def _lock(path: Path, seconds: float = 0) -> Iterator[bool]:
    """Lock a file or folder within some seconds; returns whether it worked. The system ends a lock
    with its program. Not every system can lock."""
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    with ExitStack() as opened:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            opened.callback(os.close, handle)
            locked, until = False, monotonic() + seconds
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    locked = True
                if locked or monotonic() >= until:
                    break
                sleep(0.01)
        except OSError:
            locked = False
        yield locked


def check_replaceable(folder: Path, known: Callable[[str], bool], force: bool) -> None:
    """Raise InputError if `replacing_folder` would."""
    if possible(folder).exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder with -o")
    with _swept(folder):
        names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    cut_short = [name for name in names if UNFINISHED.fullmatch(name)]
    if cut_short:
        raise InputError(
            f"{folder} is being replaced now, or an earlier replacement was interrupted. If it "
            f"was interrupted, the old files are in {folder / cut_short[0] / BEFORE}. Name "
            "another folder"
        )
    strange = [name for name in names if not known(name)]
    if strange:
        raise InputError(
            f"{folder} contains {strange[0]!r}, which is not part of a model; choose another folder"
        )
    if names and not force:
        raise InputError(
            f"{folder} contains a model; choose another folder, or replace the model with --force"
        )
    above = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        raise InputError(f"cannot write in {above}; choose another folder with -o")


@contextmanager
def replacing_folder(folder: Path, known: Callable[[str], bool], force: bool) -> Iterator[Path]:
    """A context manager: a temporary folder whose files replace the files of `folder` on success.

    A folder with files is replaced only with `force`, and only if every file in it is `known` by
    its name. Raises InputError.
    """
    check_replaceable(folder, known, force)
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary_folder(folder) as temporary:
            new, before = temporary / "new", temporary / BEFORE
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


def _move(source: Path, target: Path, leave: Path | None = None) -> None:
    for path in list(source.iterdir()):
        if path != leave:
            path.replace(target / path.name)
