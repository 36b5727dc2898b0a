"""Dressings: how cells look by what they hold, which spreadsheets call conditional formats, and
which numbers may be typed into them, which they call data validation."""

from dataclasses import dataclass
from typing import Any, Literal

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.language import translated

# "scale": 0 is white, 1 is full; "diverging": two colours about 0, alike at the same distance;
# "bar": as long as the number, 1 is the whole cell; "ink": 0 is white, 16 is black;
# "paper": the same, where 0 is as yellow as what is typed
Shade = Literal["scale", "diverging", "bar", "ink", "paper"]


@dataclass(frozen=True)
class Beyond:
    """Marks numbers further from 0 than `limit`, which is written with so many decimals."""

    limit: float
    places: int = 10


@dataclass(frozen=True)
class Unlike:
    """Marks cells with another value than the given one."""

    value: float | str


@dataclass(frozen=True, eq=False)
class When:
    """Gives cells a style of theme's if a condition is true.

    The condition is written for the first cell of the area, and adjusted for the others like a
    copied formula.
    """

    style: str
    condition: Expression


@dataclass(frozen=True)
class AsBuilt:
    """Marks cells that differ from their value as built: a number, or the cells of a block of that
    name, whose range the workbook defines."""

    built: float | str


Dressing = Shade | Beyond | Unlike | When | AsBuilt
CHANGED = Beyond(0.0005, 4)  # what a cell with three decimals, or a percentage with one, shows


UNKNOWN = {"error_title": "Unknown word", "error_message": "Choose a word from the list."}
MESSAGES = ("error_title", "error_message", "input_title", "input_message")


def in_words(rule: dict[str, Any]) -> dict[str, Any]:
    """A rule with its messages in the current language."""
    return rule | {name: translated(rule[name]) for name in MESSAGES if name in rule}


def between(
    low: float | str, high: float, message: str, title: str = "", whole: bool = False
) -> dict[str, Any]:
    """A rule for an entry: a number, or a whole one, from `low` to `high`. Excel shows the
    message for any other entry."""
    kind = "integer" if whole else "decimal"
    rule = {"validate": kind, "criteria": "between", "minimum": low, "maximum": high}
    return rule | {"error_message": message} | ({"error_title": title} if title else {})
