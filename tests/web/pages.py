"""What pages of books hold, opened in Node.js, and their values beside the engine's."""

import json
import math
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from in_node import call

from engine import Evaluator
from engine.cells.values import CellError
from exporters.checking.javascript import unexpected
from exporters.compose.book import Book
from exporters.web import data, page

NEAR = 1e-12  # of the larger of 1 and a value


def written(book: Book, path: Path, main: str = "data") -> Path:
    """What a book's page holds, for values.mjs: `main` is the module that its script has all of."""
    found = data.of_book(book)
    assert not unexpected(",".join(found.kernels))
    texts = {"data": orjson.dumps(found.data), "weights": found.weights}
    held = {name: b64encode(zlib.compress(raw, 1)).decode() for name, raw in texts.items()}
    path.write_text(json.dumps({"script": page.joined(main, found.kernels), **held}))
    return path


def values(folder: Path, of: str = "dump") -> dict[str, Any]:
    """The values of the page that is open, by block: numbers, or a list."""
    call("values.mjs", of, str(folder / "values"))
    numbers = np.fromfile(folder / "values.bin")
    listed = json.loads((folder / "values.json").read_text())
    starts = [at for _, at in listed if isinstance(at, int)] + [numbers.size]
    ends = dict(pairwise(starts))
    return {n: numbers[at : ends[at]] if isinstance(at, int) else at for n, at in listed}


def differing(found: Mapping[str, Any], live: Evaluator) -> Iterator[str]:
    """The cells in which a page's values are not those of the engine."""
    for name, cells in found.items():
        own = live[name].ravel()
        if own.dtype != object and isinstance(cells, np.ndarray):
            for k in np.flatnonzero(~_near(own, cells)):
                yield f"{_cell(live, name, k)} is {own[k]!r}, not {cells[k]!r}"
            continue
        for k, (x, y) in enumerate(zip(own.tolist(), _listed(cells), strict=True)):
            if not _same(x, y):
                yield f"{_cell(live, name, k)} is {x!r}, not {y!r}"


def _cell(live: Evaluator, name: str, k: int) -> str:
    i, j = divmod(int(k), live.graph[name].shape[1])
    return f"{name}[{i},{j}]"


def _near(a: np.ndarray, b: np.ndarray) -> Any:
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= NEAR * np.maximum(1, np.abs(a))
    return near | (a == b) | (np.isnan(a) & np.isnan(b))


def _listed(cells: Any) -> list[Any]:
    return cells.tolist() if isinstance(cells, np.ndarray) else list(map(_python, cells))


def _python(x: Any) -> Any:
    """A value as JSON carries it."""
    if isinstance(x, dict):
        return CellError(x["error"]) if "error" in x else float(x["number"])
    return x


def _same(x: Any, y: Any) -> bool:
    """Whether two values are one; a blank cell is an empty text or none."""
    if isinstance(x, CellError) or isinstance(y, CellError):
        return isinstance(x, CellError) and isinstance(y, CellError) and str(x) == str(y)
    if isinstance(x, bool | str) or x is None:
        return x == y and type(x) is type(y)
    if isinstance(y, bool | str) or y is None:
        return False
    return x == y or (math.isnan(x) and math.isnan(y)) or abs(x - y) <= NEAR * max(1, abs(x))
