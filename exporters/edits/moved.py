"""Cells of a file that have moved: a row was inserted, a list sorted.

Everything below or beside them then differs, so one error line is raised instead of a long list.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.errors import InputError
from cellformer.exporters.file.scanning import Cells

FEWEST_SORTED = 4  # reordered cells that count as sorted, not as typed
MOST_INSERTED = 5  # rows or columns at once
WAYS = (
    ("row", "inserted", 1, 0),
    ("row", "deleted", -1, 0),
    ("column", "inserted", 0, 1),
    ("column", "deleted", 0, -1),
)
UNDO = "undo that, or build the workbook again and type the edits there"


def check(
    sheet: str, changed: Mapping[Span, Any], written: Cells, alike: Callable[[Any, Any], bool]
) -> None:
    """Raise InputError if the differing cells were shifted or reordered.

    `changed` has the built content of cells with other content now, even if it is a formula of the
    same value.
    """
    if len(changed) < 2:
        return
    here = written.valued(written.at(*np.array([*changed], np.int64).T))
    pairs = zip(changed.items(), here, strict=True)
    moved = {at: was for (at, was), now in pairs if not alike(was, now)}
    if len(moved) < 2:
        return
    rows, cols = np.array([*moved], np.int64).T
    for n in range(1, MOST_INSERTED + 1):
        for what, verb, down, right in WAYS:
            beside = written.valued(written.at(rows + n * down, cols + n * right))
            same = sum(
                alike(was, now) and moved.get((r + n * down, c + n * right)) != was
                for (r, c), was, now in zip(moved, moved.values(), beside, strict=True)
            )
            if 2 * same > len(moved):
                at = min(rows if what == "row" else cols) + 1
                some = f"a {what} was" if n == 1 else f"{n} {what}s were"
                raise InputError(f"{some} {verb} in sheet {sheet!r} near {what} {at}; {UNDO}")
    there = written.valued(written.at(rows, cols))
    if len(moved) >= FEWEST_SORTED and _shuffled([*moved.values()], there):
        first, last = min(rows) + 1, max(rows) + 1
        raise InputError(
            f"cells of sheet {sheet!r}, rows {first} to {last}, have changed their order: they "
            f"were sorted, or moved; {UNDO}"
        )


def _shuffled(was: list[Any], now: list[Any]) -> bool:
    """Whether two lists have the same values in another order."""
    return len(set(map(str, was))) > 2 and sorted(map(_spelt, was)) == sorted(map(_spelt, now))


def _spelt(value: Any) -> str:
    """A value in one form, whether written with 15 digits or as any number type."""
    if isinstance(value, int | float | np.number):
        return f"{value:.13g}"
    return "" if value is None else str(value)
