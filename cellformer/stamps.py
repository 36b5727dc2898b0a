"""The stamp of a model's name: by it a run that goes on sees whether the model is the same."""

import json
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from cellformer import workbooks
from cellformer.engine.cells.files import possible
from cellformer.engine.models.formats import hub
from cellformer.version import __version__


def stamp(name: str) -> str:
    """This version of the program, and a digest of the files of a named model. Raises InputError
    for an impossible name."""
    path = possible(name)
    if not path.exists() and name in workbooks.names():
        return _of_gallery()
    return _of_files(_folder(name, path))


@cache
def _of_gallery() -> str:
    """The stamp of each workbook: they share code, and stay as they are while the program runs."""
    return _of_files(Path(*workbooks.__path__))


def _folder(name: str, path: Path) -> Path:
    """The file or folder of a model: the named one, or the one in which the Hub's library keeps
    a model. That folder has the name of its commit; it does not exist before the download."""
    if path.exists():
        return hub.snapshot(path, None) or path
    wanted = hub.wanted_of(name)
    with suppress(ImportError):  # without that library there is no such model
        return (hub.cached(wanted) if wanted else None) or path
    return path


def _of_files(place: Path) -> str:
    """The stamp of a file, or of all files in a folder: their names, sizes and times."""
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    there = [(file, file.stat()) for file in files if file.is_file() and file.suffix != ".pyc"]
    told = [
        (str(file.relative_to(place.parent)), found.st_size, found.st_mtime_ns)
        for file, found in there
    ]
    return json.dumps([__version__, sha256(json.dumps(told).encode()).hexdigest()])
