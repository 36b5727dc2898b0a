"""What pages of books hold, opened in Node.js, and their values beside the engine's."""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from in_node import call

from cellformer.engine import Evaluator
from cellformer.engine.cells.values import CellError
from cellformer.exporters.checking import javascript
from cellformer.exporters.compose.book import Book
from cellformer.exporters.web import page

NEAR = 1e-12  # of the larger of 1 and a value
# Scores that are ranked are rounded to ten digits: if the eleventh is about a 5, a difference in
# the last place of a logit, which is held to NEAR itself, moves them to the next.
RANKED, ONE_DIGIT = ("choice.logits", "choice.value"), 1.001e-10


def written(book: Book, path: Path) -> Path:
    """The page of a book, and, for values.mjs, beside it what the page holds: `path`.json. Raises
    InputError for kernels that `verify` would not run."""
    page.write(book, path)
    held = Path(f"{path}.json")
    held.write_text(json.dumps(javascript.read(path)._asdict()))
    return held


def values(folder: Path, of: str = "dump") -> dict[str, Any]:
    """The values of the page that is open, by block: numbers, or a list."""
    call("values.mjs", of, str(folder / "values"))
    return read(folder / "values")


def read(path: Path) -> dict[str, Any]:
    """Values by block from a file of numbers, `path`.bin, and a list of what stands where."""
    numbers = np.fromfile(f"{path}.bin")
    listed = json.loads(Path(f"{path}.json").read_text())
    starts = [at for _, at in listed if isinstance(at, int)] + [numbers.size]
    ends = dict(pairwise(starts))
    return {n: numbers[at : ends[at]] if isinstance(at, int) else at for n, at in listed}


def differing(found: Mapping[str, Any], live: Evaluator) -> Iterator[str]:
    """The cells in which a page's values are not those of the engine."""
    for name, cells in found.items():
        own = live[name].ravel()
        if own.dtype != object and isinstance(cells, np.ndarray):
            near = _near(own, cells)
            if name in RANKED:
                near |= np.abs(own - cells) <= ONE_DIGIT
            for k in np.flatnonzero(~near):
                yield f"{_cell(live, name, k)} is {own[k]!r}, not {cells[k]!r}"
            continue
        wanted, given = own.tolist(), _listed(cells)
        if wanted == given and _which(wanted) == _which(given):  # which is soon said
            continue
        for k, (x, y) in enumerate(zip(wanted, given, strict=True)):
            if not _same(x, y):
                yield f"{_cell(live, name, k)} is {x!r}, not {y!r}"


def _which(cells: list[Any]) -> list[bool]:
    """Which cells are TRUE or FALSE, which Python takes for 1 and 0."""
    return [type(x) is bool for x in cells]


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
