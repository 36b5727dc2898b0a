"""Files are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.cells.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[str]:
    """A temporary file beside `path` that takes its place at the end, or goes without a trace.

    Raises InputError where nothing can be written.
    """
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
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
