"""The pre-tokenizers: how a text is split into the words within which symbols are merged.

Each split is a regular expression. Each of its parts is a row: how many characters, from each
character on, the pattern matches from that part to its end (negative: none). So a row reads the
next part's row at the next character, and where a part may fit in several ways, the first that
leads to the end is taken, as the library's search does. From the lengths follows where words
begin. Several splits follow each other: each is within the words of the one before it.
"""

from collections.abc import Sequence as Several
from functools import lru_cache

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import AND, IF, INDEX, MAX, NOT, OR
from cellformer.engine.text.tokenizing.patterns import (
    Ahead,
    Choice,
    One,
    Part,
    Sequence,
    Split,
    Star,
    infallible,
    ones,
    text_of,
)
from cellformer.engine.text.tokenizing.steps import Steps
from cellformer.engine.text.tokenizing.unicode import ALONE, OUTSIDE, all_characters

NO_MATCH = -10_000  # of a length: less than any text has characters
FIRST_KIND = OUTSIDE + 1  # of the characters that patterns tell apart


@lru_cache(maxsize=16)  # it asks the library about every character
def kinds(splits: tuple[Split, ...]) -> tuple[dict[str, int], np.ndarray]:
    """The kind of each character by the classes of patterns, and the table of classes: [kinds,
    classes], 1 where a class has the characters of a kind."""
    found, every = classes(splits), all_characters()
    codes = np.array([*map(ord, every)])
    which = np.zeros(len(codes), dtype=np.int64)  # of each character: a bit for each class
    for c, one in enumerate(found):
        which[np.searchsorted(codes, [*map(ord, one.members)])] |= 1 << c
    alike, kind = np.unique(which, return_inverse=True)
    of_kind = np.zeros((FIRST_KIND + len(alike), len(found)))
    of_kind[FIRST_KIND:] = (alike[:, None] >> np.arange(len(found))) & 1
    return dict(zip(every, (kind + FIRST_KIND).tolist(), strict=True)), of_kind


def classes(splits: Several[Split]) -> list[One]:
    """The different classes of patterns that have more than a few characters."""
    every = [one for split in splits for one in ones((split.pattern,))]
    return [one for one in dict.fromkeys(every) if not one.codes]


class Words:
    """The rows of several splits: `begins` is 1 where a word begins; `kept` is 0 for characters
    that are dropped, and None if none are."""

    def __init__(self, steps: Steps, splits: tuple[Split, ...]):
        self.steps, self.classes = steps, {one: c for c, one in enumerate(classes(splits))}
        self.begins: Block | None = None
        self.kept: Block | None = None
        if self.classes:
            self.belongs = self._belongs(kinds(splits)[1])
        for k, split in enumerate(splits):
            Splitting(self, split, f"_{k + 1}" if len(splits) > 1 else "").add()

    def _belongs(self, of_kind: np.ndarray) -> Block:
        """A row for each class: 1 where a character belongs to it."""
        steps = self.steps
        table = steps.input("classes", of_kind)
        steps.texts("class", (one.text for one in self.classes))
        return steps.graph.table(
            "belongs",
            (len(self.classes), steps.n),
            lambda c, k: INDEX(table[:, c].fixed, steps.kind[0, k] + 1),
            runs=True,
        )

    def has(self, one: One, k: int) -> Expression:
        """Whether a character belongs to a class."""
        if one in self.classes:
            return self.belongs[self.classes[one], k] > 0
        same = [self.steps.code[0, k] == code for code in one.codes]
        return OR(*same) if len(same) > 1 else same[0]


class Splitting:
    """The rows of one split, within the words of those before it."""

    def __init__(self, words: Words, split: Split, suffix: str):
        self.words, self.split, self.suffix = words, split, suffix
        self.steps, self.n, self.before = words.steps, words.steps.n, words.begins
        self.rows: dict[str, tuple[int, Sequence]] = {}  # by what each part looks like
        self.match: Block | None = None
        for way in split.pattern.ways:  # to know which parts there are
            self._value(way, 0, expression(NO_MATCH))
        done = 0
        while done < len(self.rows):
            self._row(list(self.rows.values())[done][1], 0)
            done += 1

    def add(self) -> None:
        """Add the rows, and mark their splits in the words."""
        steps, graph = self.steps, self.steps.graph
        parts = [parts for _, parts in self.rows.values()]
        if parts:
            steps.texts(f"part{self.suffix}", map(text_of, parts))
            self.match = graph.table(
                f"match{self.suffix}", (len(parts), self.n), lambda r, k: self._row(parts[r], k)
            )
        self.length = steps.row(f"length{self.suffix}", self._length)
        self.next = steps.row(f"next{self.suffix}", self._next)
        kept = self.words.kept
        if self.split.behavior in ("Removed", "Kept"):
            self.words.kept = steps.row(f"kept{self.suffix}", lambda k: self._kept(kept, k))
        self.words.begins = steps.row(f"begins{self.suffix}", self._begins)

    # --- how long a match is ------------------------------------------------------------------

    def _length(self, k: int) -> Expression:
        return self._value((self.split.pattern,), k, expression(NO_MATCH))

    def _row(self, parts: Sequence, k: int) -> Expression:
        """The number of characters that a sequence matches from here on, in a row of its own."""
        first, none = parts[0], expression(NO_MATCH)
        if not isinstance(first, Star):
            return self._value(parts, k, none)
        again, rest = self._at(parts, k + 1), self._value(parts[1:], k, none)
        more = self.words.has(first.one, k)
        return IF(more if infallible(parts) else AND(more, again >= 0), 1 + again, rest)

    def _value(self, parts: Sequence, k: int, other: Expression) -> Expression:
        """The number of characters that a sequence matches from here on; `other` if it does not."""
        if not parts:
            return expression(0)
        first = parts[0]
        if isinstance(first, Choice):
            for way in reversed(first.ways):
                other = self._value(way + parts[1:], k, other)
            return other
        if isinstance(first, One):
            return self._ones(parts, k, other)
        if isinstance(first, Ahead):
            return IF(self.words.has(first.one, k), other, self._value(parts[1:], k, other))
        whole = self._at(parts, k)
        return whole if infallible(parts) else IF(whole < 0, other, whole)

    def _ones(self, parts: Sequence, k: int, other: Expression) -> Expression:
        """The same of a sequence that begins with characters that must be there."""
        m = next((m for m, part in enumerate(parts) if not isinstance(part, One)), len(parts))
        if k + m > self.n:
            return other
        fits = [self.words.has(one, k + d) for d, one in enumerate(ones(parts[:m]))]
        if self.before is not None:
            fits += [self.before[0, k + d] == 0 for d in range(1, m)]
        rest = self._at(parts[m:], k + m)
        if not infallible(parts[m:]):
            fits.append(rest >= 0)
        return IF(AND(*fits) if len(fits) > 1 else fits[0], m + rest, other)

    def _at(self, parts: Sequence, k: int) -> Expression:
        """The match of a sequence at a character that may be beyond the end of the word."""
        if not parts:
            return expression(0)
        at_end = expression(0 if all(map(_fits_nothing, parts)) else NO_MATCH)
        if k >= self.n:
            return at_end
        row, _ = self.rows.setdefault(text_of(parts), (len(self.rows), parts))
        here = self.match[row, k] if self.match is not None else expression(0)
        return IF(self.before[0, k] > 0, at_end, here) if self.before is not None else here

    # --- where words begin --------------------------------------------------------------------

    def _free(self, k: int) -> list[Expression]:
        """The conditions for a match to begin here: none is under way, and the pattern matches."""
        number = self.steps.number[0, k].fixed_rows
        return [self.length[0, k] > 0, *([self.next[0, k - 1] <= number] if k else [])]

    def _next(self, k: int) -> Expression:
        number, free = self.steps.number[0, k].fixed_rows, self._free(k)
        before = MAX(self.next[0, k - 1], number) if k else number
        return IF(AND(*free), number + self.length[0, k], before)

    def _begins(self, k: int) -> Expression:
        code, number = self.steps.code[0, k], self.steps.number[0, k].fixed_rows
        if k == 0:
            return IF(code > 0, 1, 0)
        behind, at = self.next[0, k - 1] == number, AND(*self._free(k))  # a match, at a match
        where: list[Expression] = {
            "MergedWithNext": [at],
            "MergedWithPrevious": [behind],
            "Contiguous": [AND(OR(behind, at), NOT(AND(behind, at)))],
        }.get(self.split.behavior, [behind, at])
        if self.before is not None:
            where.append(self.before[0, k] > 0)
        if self.steps.marks:
            kind = self.steps.kind
            where += [kind[0, k] == ALONE, kind[0, k - 1] == ALONE]
        return IF(AND(code > 0, OR(*where) if len(where) > 1 else where[0]), 1, 0)

    def _kept(self, before: Block | None, k: int) -> Expression:
        """1 for a character that is not dropped."""
        matched = self.next[0, k] > self.steps.number[0, k].fixed_rows
        yes, no = (1, 0) if self.split.behavior == "Kept" else (0, 1)
        found = IF(matched, yes, no)
        if before is not None:
            found = IF(before[0, k] > 0, found, 0)
        return IF(self.steps.kind[0, k] == ALONE, 1, found) if self.steps.marks else found


def _fits_nothing(part: Part) -> bool:
    """Whether a part fits the end of a word."""
    return isinstance(part, Ahead) or infallible((part,))
