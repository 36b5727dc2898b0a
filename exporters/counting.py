"""What a cell counts as that holds something else than was asked for: a text, nothing, an error.

A workbook computes on whatever is typed or pasted into its inputs. The words are those of its own
ledger (see `pages.built`); where a formula was, nothing stands in for it.
"""

from typing import NamedTuple

from engine.cells.values import CellError
from exporters.scanning import Value

OTHERWISE = {"top_p": 1.0}  # dials that count as this, and not as 0, where they hold no number


class Counted(NamedTuple):
    """What a cell holds, what that counts as (None: nothing does), and why, if it is no value."""

    now: float | str
    value: float | str | None
    why: str = ""


def number(value: Value, block: str, dial: bool) -> Counted:
    """Where a number belongs: a dial's own note says what else than a number counts as."""
    if isinstance(value, bool):
        said = "a truth value: counts as 1" if value else "a truth value: counts as 0"
        return Counted(str(value).upper(), float(value), said)
    if isinstance(value, int | float):
        return Counted(float(value), float(value))
    counts = ", see its note" if dial else ": counts as 0"
    return Counted(text(value).now, OTHERWISE.get(block, 0.0), what(value) + counts)


def text(value: Value) -> Counted:
    """Where a text belongs; a word that reads as a whole number may have become one."""
    if isinstance(value, CellError):
        return Counted(value, "", "an error: counts as empty")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    found = "" if value is None else str(value)
    return Counted(found, found)


def what(value: Value) -> str:
    """What stands where a number belongs."""
    if isinstance(value, CellError):
        return "an error"
    return "empty" if value is None or value == "" else "a text"
