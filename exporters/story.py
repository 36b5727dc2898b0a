"""What a workbook says of itself: its story, three edits to try, the tables of its source."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Suggestion:
    """An edit for the reader to make: a cell, or the k-th word of the prompt, and what happens.

    What the text promises, for a test to hold it to: `value` typed there, and `also` into other
    cells, the cell `watch` shows `becomes`.
    """

    text: str
    cell: tuple[str, int, int] | int
    value: float | str | None = None
    watch: tuple[str, int, int] | None = None
    becomes: float | str | None = None
    also: tuple[tuple[tuple[str, int, int], float | str], ...] = ()


@dataclass(frozen=True)
class Story:
    """What a workbook says of itself. The title is `name: what it is`; lists show the latter."""

    title: str
    source: str
    about: Sequence[str]
    look: Sequence[str]
    tries: Sequence[Suggestion]


@dataclass(frozen=True)
class Printed:
    """A table as a source prints it, to be held against the cells `rows` x `cols` of `block`."""

    title: str
    printed: Sequence[Sequence[float]]
    block: str
    rows: Sequence[int] | None = None
    cols: Sequence[int] | None = None
    decimals: int = 2
    note: str = ""
