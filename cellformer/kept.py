"""The results of a long run, kept in a file FILE.partial so that a run that was stopped can go on.

Its first line describes the work. Each other line is a result, and is written as soon as it is
there. A line begins with a checksum, of a result's line and the first one: so a line that a power
cut damaged, or that is of other work, is not taken, and its part is done again. The file is locked
while a run writes it.
"""

import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, Generic, TypeVar
from zlib import crc32

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import check_file, possible

Result = TypeVar("Result")
SUFFIX = ".partial"
LONGEST = 1 << 28  # bytes of a line
LARGEST = 1 << 31  # bytes of the file
FLAGS = ("O_RDWR", "O_CREAT", "O_APPEND", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
KINDS = {stat.S_IFLNK: "is a symbolic link", stat.S_IFDIR: "is a folder"}
ELSE = "delete that file, or choose another -o"


class Kept(Generic[Result]):
    """The results of parts by their number; the file is deleted when all is done.

    Without a path, results are kept in memory.
    """

    def __init__(self, output: Path | None, work: Any, resume: bool, what: str, n: int):
        self.results: dict[int, Result] = {}
        self._file, self._what, self._n = None, what, n
        if output is None:
            return
        output = check_file(output)
        self._path = possible(output.with_name(output.name + SUFFIX))
        self._file = opened(self._path)
        try:
            self._begin(json.dumps(work, sort_keys=True), resume)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, work: str, resume: bool) -> None:
        """Take the results that are there, and go on behind them."""
        assert self._file
        head = _line(work)
        self._sum = crc32(head)
        size = os.fstat(self._file.fileno()).st_size
        if size and not resume:
            raise InputError(
                f"{self._path} has the results of a stopped run; continue that run with "
                "--resume, or delete the file"
            )
        if size > LARGEST:
            raise InputError(f"{self._path} has more than {LARGEST >> 20:,} MB; {ELSE}")
        lines = iter(partial(self._file.readline, LONGEST), b"")
        first = next(lines, b"")
        if first == head:
            self.results = dict(self._whole(lines))
        elif not head.startswith(first.rstrip(b"\0")):  # which a power cut may leave of it
            raise InputError(f"{self._path} {_other(first)}")
        else:
            self._file.truncate(0)
            self._file.write(head)
            self._file.flush()

    def _whole(self, lines: Iterator[bytes]) -> Iterator[tuple[int, Result]]:
        """The results of the undamaged lines; text behind the last line is cut off."""
        assert self._file
        at = self._file.tell()
        for line in lines:
            if not line.endswith(b"\n"):
                continue
            at = self._file.tell()
            if text := _text(line, self._sum):
                k, result = json.loads(text)
                yield k, result
        self._file.truncate(at)

    @property
    def missing(self) -> list[int]:
        """The numbers of the parts that are still to be done."""
        return [k for k in range(self._n) if k not in self.results]

    def add(self, k: int, result: Result) -> None:
        """Keep the result of a part, as JSON."""
        self.results[k] = result
        if self._file:
            self._file.write(_line(json.dumps([k, result]), self._sum))
            self._file.flush()

    def __enter__(self) -> "Kept[Result]":
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        """Delete the file if all went well; otherwise say that it is kept, unless it is empty."""
        if self._file is None:
            return
        self._file.close()
        if error is None or not self.results:
            self._path.unlink(missing_ok=True)
        else:
            told = f"{len(self.results):,} of {self._n:,} {self._what} are saved in {self._path}"
            print(
                f"cellformer: {told}; repeat the command with --resume to continue", file=sys.stderr
            )


def _line(text: str, before: int = 0) -> bytes:
    """A text with its checksum."""
    raw = text.encode()
    return b"%08x %b\n" % (crc32(raw, before), raw)


def _text(line: bytes, before: int = 0) -> bytes:
    """The text of a line; of a damaged one, nothing."""
    text = line[9:-1]
    return text if line == b"%08x %b\n" % (crc32(text, before), text) else b""


def _other(first: bytes) -> str:
    """Why a file that begins with this line cannot be resumed, and the remedy."""
    if _text(first):
        return (
            "has results of another run (another model, option, file or version); delete the "
            "file, or repeat the command of that run"
        )
    return f"does not begin like a results file of cellformer; {ELSE}"


def opened(path: Path) -> IO[bytes]:
    """A file to resume, made if there is none, and locked: a regular file, and not a link.
    Raises InputError."""
    if os.path.lexists(path):
        _check_kind(path, os.lstat(path))
    flags = sum(getattr(os, flag, 0) for flag in FLAGS)
    try:
        file = os.fdopen(os.open(path, flags, 0o666), "r+b")
    except OSError as error:
        why = "is a symbolic link" if error.errno == errno.ELOOP else f"fails ({error.strerror})"
        raise InputError(f"{path}, the file for the results, {why}; {ELSE}") from None
    try:
        found = os.fstat(file.fileno())
        _check_kind(path, found)
        if not _locked(file):
            raise InputError(
                f"another run is writing {path}; wait until that run ends, or choose another "
                "file with -o"
            )
    except BaseException:
        file.close()
        raise
    return file


def _check_kind(path: Path, found: os.stat_result) -> None:
    """Raise InputError for anything but a regular file."""
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        what = KINDS.get(kind, "is a pipe or a device")
        raise InputError(f"{path}, the file for the results, {what}; {ELSE}")


def _locked(file: IO[bytes]) -> bool:
    """Whether no other run writes a file, which this one then locks until it is closed. Not every
    system can lock."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return os.fstat(file.fileno()).st_nlink > 0  # the other one may just have ended
