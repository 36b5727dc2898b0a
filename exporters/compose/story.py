"""The story of a workbook, three suggested edits, and the tables of its source."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.graph import Graph

# What a source's figures are of, where they need not be ours: then they differ, and are no slips.
Other = Literal["", "other settings", "other training"]


@dataclass(frozen=True)
class Suggestion:
    """A suggested edit: a cell, or the k-th word of the prompt, and its effect.

    A test checks the text's promise: with `value` typed there, and `also` into other cells, the
    cell `watch` shows `becomes`.
    """

    text: str
    cell: tuple[str, int, int] | int
    value: float | str | None = None
    watch: tuple[str, int, int] | None = None
    becomes: float | str | None = None
    also: tuple[tuple[tuple[str, int, int], float | str], ...] = ()


@explained_class
@dataclass(frozen=True)
class Story:
    """The texts of a workbook's start sheet. The title is `name: what it is`; lists show the latter
    part.

    `section` is the document and section whose printed numbers the workbook recomputes; `errata` is
    what is to be said of the document, below all else; `words` are lines about words that a reader
    may not know, shown beside the sentence.

    >>> cf.Story("shares: a softmax", "", ["Four logits become shares."], [], []).title
    'shares: a softmax'
    """

    title: str
    source: str
    about: Sequence[str]
    look: Sequence[str]
    suggestions: Sequence[Suggestion]
    section: str = ""
    errata: Sequence[str] = ()
    words: Sequence[str] = ()


@dataclass(frozen=True)
class Printed:
    """A table as a source prints it, for comparison with the cells `rows` x `cols` of `block`.

    An entry that the source leaves out is None. If no block holds what is printed, `cell` is the
    formula of entry (i, j) of the block's rows and columns, over the blocks of the graph. `follows`
    computes the r-th row and c-th column from the tables printed before, by title: it tells whether
    a difference is a slip in this step or carried over. `other` says why figures need not be equal
    to ours.
    """

    title: str
    printed: Sequence[Sequence[float | None]]
    block: str
    rows: Sequence[int] | None = None  # None: the first
    cols: Sequence[int] | None = None
    decimals: int = 2
    note: str = ""
    cell: Callable[[Graph, int, int], Any] | None = None
    follows: Callable[[Mapping[str, Area], int, int], Any] | None = None
    other: Other = ""


class PrintedNumber(NamedTuple):
    """A number that a source prints, and the cell of the sheet Printed that recomputes it."""

    section: str  # the document, and where in it
    what: str
    printed: float
    cell: Area
    decimals: int  # that are printed
    note: str
    other: Other = ""
    before: Area | None = None  # the cell of what the tables printed before it give


@dataclass(frozen=True)
class Chosen:
    """The initial contents of the word maps, by token ids: words in coloured groups, two
    directions, and a word whose neighbours are shown."""

    groups: Mapping[str, Sequence[int]]
    directions: Sequence[tuple[Sequence[int], Sequence[int]]]  # the words of each, plus and minus
    nearest: int
    suggestions: Sequence[Suggestion] = ()

    @property
    def ids(self) -> list[int]:
        """The words of all groups, in order."""
        return [v for ids in self.groups.values() for v in ids]

    @property
    def named(self) -> list[int]:
        """The words of all groups and directions, and the one whose neighbours are shown."""
        ends = [v for sides in self.directions for side in sides for v in side]
        return [*self.ids, *ends, self.nearest]
