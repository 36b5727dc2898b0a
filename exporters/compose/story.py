"""The story of a workbook, three suggested edits, and the tables of its source."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.language import AsIs, worded

# What a source's figures are of, where they need not be ours: then they differ, and are no slips.
Other = Literal["", "other settings", "other training"]


PERCENT = re.compile(r"(-?\d+(?:[.,]\d+)?) %")
MOST_DECIMALS = 4  # of a percentage that a start sheet shows
LAST = -1  # a row: the last word of the prompt


def outcome(
    live: Evaluator, cell: tuple[str, int, int], value: float | str, watch: tuple[str, int, int]
) -> float:
    """The value of the cell `watch` after an edit, which is then undone."""
    live.set(*cell, value)
    found = float(live[watch[0]][watch[1:]])
    live.reset()
    return found


@dataclass(frozen=True)
class Suggestion:
    """A suggested edit: a cell, or the k-th word of the prompt, and its effect.

    A test checks the text's promise: with `value` typed there, and `also` into other cells, the
    cell `watch` shows `becomes`. A text with braces is completed when a sheet gets it (`told`):
    `{now}` is what `watch` shows as built, `{then}` what it shows after the edit, and `{x.now}` and
    `{x.then}` are those of a cell `x` of `others`.
    """

    text: str
    cell: tuple[str, int, int] | int
    value: float | str | None = None
    watch: tuple[str, int, int] | None = None
    becomes: float | str | None = None
    also: tuple[tuple[tuple[str, int, int], float | str], ...] = ()
    others: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)

    @classmethod
    def tried(
        cls,
        live: Evaluator,
        text: str,
        cell: tuple[str, int, int],
        value: float | str,
        watch: tuple[str, int, int],
        /,
        **values: Any,
    ) -> "Suggestion":
        """An edit that is tried in `live`, and then undone; its text has values for its braces, and
        `{becomes}` is what `watch` shows after it."""
        becomes = outcome(live, cell, value, watch)
        return cls(worded(text, becomes=becomes, **values), cell, value, watch, becomes)

    @property
    def decimals(self) -> int | None:
        """The decimals with which the text names, in percent, what `watch` shows; None if it does
        not name it so."""
        if not isinstance(self.becomes, float | int):
            return None
        named = [found.replace(",", ".") for found in PERCENT.findall(self.text)]
        decimals = [len(x.partition(".")[2]) for x in named]
        told = zip(named, decimals, strict=True)
        if any(abs(self.becomes - float(x) / 100) < 0.006 / 10**d for x, d in told):
            return min(max(1, *decimals), MOST_DECIMALS)
        return None

    def told(self, graph: Graph, last: int = 0) -> "Suggestion":
        """The same with its text completed, by carrying out the edit; `last` is the row of the last
        word of the prompt."""
        if self.watch is None or self.value is None or isinstance(self.text, AsIs):
            return self
        live = Evaluator(graph)
        first = ("prompt.pick", self.cell, 0) if isinstance(self.cell, int) else self.cell
        for at, value in ((first, self.value), *self.also):
            live.set(*at, value)

        def seen(name: str, i: int, j: int) -> SimpleNamespace:
            return SimpleNamespace(now=graph.values[name][i, j], then=live[name][i, j])

        name, row, col = self.watch
        watch = name, last if row == LAST else row, col
        watched = seen(*watch)
        others = {name: seen(*cell) for name, cell in self.others.items()}
        return replace(
            self,
            text=worded(self.text, now=watched.now, then=watched.then, **others),
            watch=watch,
            becomes=watched.then,
        )


@explained_class
@dataclass(frozen=True)
class Story:
    """The texts of a workbook's start sheet. The title is `name: what it is`; lists show the latter
    part.

    `section` is the document and section whose printed numbers the workbook recomputes; `errata` is
    what is to be said of the document, below all else; `words` are lines about words that a reader
    may not know, shown beside the sentence. `likeliest` has numbers of tokens, each with how many
    of the likeliest words after them the start sheet lists. `examples` are sentences to choose
    from on the page.

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
    likeliest: Mapping[int, int] = field(default_factory=dict)
    examples: Sequence[str] = ()


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
