"""Unigram in cells: the tokens with the largest sum of scores, by dynamic programming.

`best` is the largest sum of scores of a tokenization of a word that ends at a symbol: the maximum,
over all tokens that end there, of the token's score plus the best before it. Following the tokens
back from the last symbol gives the result.

Two orders of the same tokens have sums that differ in the last digit or not at all. So sums are the
library's, addition by addition: they begin with 0 in every word, and of equal ones the longest last
token counts.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import (
    AND,
    IF,
    INDEX,
    INT,
    LARGE,
    LEN,
    MATCH,
    MAX,
    MIN,
    OR,
    SUBSTITUTE,
)
from cellformer.engine.cells.sentence import sentence
from cellformer.engine.text.tokenizing import normalizing, result
from cellformer.engine.text.tokenizing.result import Result
from cellformer.engine.text.tokenizing.settings import SPACE_SIGN, Settings
from cellformer.engine.text.tokenizing.steps import Steps
from cellformer.engine.text.tokenizing.trie import MOST_NODES, Tree, tree, walk
from cellformer.engine.text.tokenizing.unicode import FIRST_MARK, OTHER, OUTSIDE, normalized, spaces

NO_PIECE = -1_000_000_000  # a score
NEAR = 0.005  # two sums that rounding to float32 may exchange
UNKNOWN = 10.0  # how much worse than the worst piece an unknown character is


def add(steps: Steps, settings: Settings, special: bool) -> Result:
    """Add normalized characters, the tree of tokens, the best path."""
    vocabulary, unknown = settings.model["vocab"], settings.model["unk_id"]
    lacking = None if settings.numbers else unknown  # Marian's is no piece
    pieces = [
        (0, piece, -1 if i == lacking else i + 1, score)
        for i, (piece, score) in zip(settings.numbers or count(), vocabulary, strict=False)
    ]
    pieces += [(0, chr(FIRST_MARK + k), mark.id + 1, 0.0) for k, mark in enumerate(settings.marks)]
    found = tree(pieces)
    if len(found.rows) > MOST_NODES:
        raise InputError(
            f"the tokenizer's vocabulary needs {len(found.rows):,} rows of a sheet, above the "
            f"limit of {MOST_NODES:,}"
        )
    steps.text(settings)
    sorts = normalizing.sorts_marks(settings.normalizers)
    if sorts:
        normalizing.add(steps, settings)
    steps.look_up(_characters(settings, () if sorts else settings.normalizers))
    worst = min(score for _, score in vocabulary)
    return Path(steps, settings, found, worst - UNKNOWN).result(special)


def _characters(settings: Settings, normalizers: Sequence[dict[str, Any]]) -> np.ndarray:
    """The character table, with what normalizers make of each. If spaces are collapsed, white
    space, a typed ▁, and characters that leave adjacent spaces are unsupported."""
    typed_sign = OUTSIDE if settings.collapsed == "ends too" else OTHER
    white = OUTSIDE if settings.stripped else typed_sign

    kinds = dict.fromkeys(spaces(), white) | {" ": OTHER, SPACE_SIGN: typed_sign}
    nothing = OUTSIDE if settings.collapsed else OTHER
    alphabet = {" "}.union(*(piece for piece, _ in settings.model["vocab"]))
    outside = settings.apart_from_text
    kinds |= dict.fromkeys(outside, OUTSIDE)
    return normalized(list(normalizers), kinds, alphabet, nothing=nothing, outside=outside)


class Path:
    """The tables from symbols to the best path."""

    def __init__(self, steps: Steps, settings: Settings, found: Tree, unknown: float):
        self.steps, self.settings, self.n, self.unknown = steps, settings, steps.n, unknown
        steps.spread(lambda k: steps.field_of(2, steps.entry[0, k]))
        self.symbol = steps.row("symbol", self._symbol, runs=True)
        self.begins = steps.row("begins", self._begins)
        self.room = steps.row("room", self._room)
        self.longest = min(found.longest, self.n)
        root = expression(1)  # of the tree, for every token
        self.walk = walk(steps, found, self.symbol, self.room, lambda _: root, self.longest)
        self.so_far = steps.row("so_far", self._so_far)
        self.score = steps.graph.table("score", (self.longest, self.n), self._score)
        self.best = steps.row("best", lambda k: MAX(self.score[:, k]))
        self.near = steps.row("near", lambda k: (INT(self.best[0, k] * 1000) - 0.5) / 1000)
        self.behind = steps.graph.table("behind", (self.longest, self.n), self._behind)
        self.length = steps.row("last", self._length)
        self.ends = steps.row("ends", self._ends)
        self.left = steps.row("left", self._left)
        self.piece = steps.row("piece", self._piece)
        self.taken = steps.row("taken", self._taken)

    def _symbol(self, k: int) -> Expression:
        """The code of a normalized character; SentencePiece's ▁ for a space."""
        code = self.steps.normalized(k)
        if self.settings.signed:
            code = IF(code == 32, ord(SPACE_SIGN), code)
        return IF(self.steps.symbols.source[0, k] > 0, code, 0)

    def _begins(self, k: int) -> Any:
        """Whether a word begins here: at the space before it, at an added token and behind it."""
        if k == 0:
            return 1
        here, n_marks = self.symbol[0, k], len(self.settings.marks)
        begun: list[Expression] = [here == ord(SPACE_SIGN)] if self.settings.split else []
        for symbol in (self.symbol[0, k - 1], here) if n_marks else ():
            begun.append(AND(symbol >= FIRST_MARK, symbol < FIRST_MARK + n_marks))
        return IF(OR(*begun), 1, 0) if begun else 0

    def _room(self, k: int) -> Any:
        """The maximum number of symbols of a token that begins here."""
        if k + 1 == self.n:
            return IF(self.symbol[0, k] > 0, 1, 0)
        more = IF(self.begins[0, k + 1] > 0, 1, self.room[0, k + 1] + 1)
        return IF(self.symbol[0, k] > 0, more, 0)

    def _so_far(self, k: int) -> Any:
        """The best sum of the word before this symbol."""
        return IF(self.begins[0, k] > 0, 0, self.best[0, k - 1]) if k else 0

    def _score(self, row: int, k: int) -> Any:
        """The best score of a path whose last token ends here: the longest token in the first row.
        A character outside the vocabulary is unknown."""
        length = self.longest - row
        start = k - length + 1
        if start < 0:
            return expression(NO_PIECE)
        node, unknown = self.walk.nodes[length - 1, start], expression(NO_PIECE)
        if length == 1:
            unknown = self.so_far[0, start] + self.unknown
        own = IF(node > 0, node, 1)
        return IF(self.walk.symbol(own) == 0, unknown, self.so_far[0, start] + self.walk.score(own))

    def _behind(self, row: int, k: int) -> Expression:
        """A path's score minus a number near the best one. The same tokens in another order give
        sums that differ in the last digit, and LibreOffice treats them as equal. After the
        subtraction, it does not. The number is never too near, because LibreOffice turns tiny
        differences into 0."""
        return self.score[row, k] - self.near[0, k].fixed_rows

    def _length(self, k: int) -> Expression:
        """The length of the last token of the best path that ends here."""
        return self.longest + 1 - MATCH(self.best[0, k] - self.near[0, k], self.behind[:, k], 0)

    def _ends(self, k: int) -> Expression:
        """Whether a token of the best path ends here: the last one, or one followed by another."""
        number = self.steps.number[0, k].fixed_rows
        last = IF(number == self.steps.total[0, 0].fixed, 1, 0)
        if k + 1 == self.n:
            return last
        return IF(last > 0, 1, IF(self.left[0, k + 1] == number, 1, 0))

    def _left(self, k: int) -> Expression:
        """The number of symbols before the token that a symbol belongs to."""
        number = self.steps.number[0, k].fixed_rows
        after: Any = self.left[0, k + 1] if k + 1 < self.n else 0
        return IF(self.ends[0, k] > 0, number - self.length[0, k], after)

    def _piece(self, k: int) -> Expression:
        """The symbol of the token that ends here; 0 if it is unknown or none ends, -1 for the text
        of the unknown token."""
        start = self.steps.number[0, k].fixed_rows - self.length[0, k] + 1
        node = INDEX(self.walk.nodes.area.fixed, self.length[0, k], start)
        return IF(self.ends[0, k] > 0, self.walk.symbol(IF(node > 0, node, 1)), 0)

    def _taken(self, k: int) -> Any:
        """The number of tokens up to here; adjacent unknown characters count as one."""
        one = self.ends[0, k] + 0
        if k == 0:
            return one
        before = AND(self.piece[0, k] == 0, self.begins[0, k] == 0, self.ends[0, k - 1] > 0)
        return self.taken[0, k - 1] + IF(AND(before, self.piece[0, k - 1] == 0), 0, one)

    def result(self, special: bool) -> Result:
        """The ids of the tokens."""
        steps, unknown = self.steps, self.settings.model["unk_id"]
        if self.settings.model.get("byte_fallback") or unknown is None:
            self._refuse_unknown()
        if self.settings.numbers:
            self._refuse_as_sentencepiece()
        elif unknown is not None:  # as one token with unknown characters beside it
            name = self.settings.model["vocab"][unknown][0]
            typed = "the text contains the special token {token}: delete {token}"
            steps.refuse(MIN(self.piece.area) < 0, sentence(typed, token=expression(name)))
        counted, total = self.taken.area.fixed, self.taken[0, self.n - 1]

        def ident(k: int) -> Expression:
            piece = INDEX(self.piece.area.fixed, 1, MATCH(k + 1, counted, 0))
            return IF(piece > 0, piece - 1, unknown or 0)

        return result.add(steps, ident, total, self.settings, special)

    def _refuse_as_sentencepiece(self) -> None:
        """Refuse what Marian may cut in another way: its sums are rounded to fewer digits, and a
        language counts at the beginning alone."""

        def close(k: int) -> Any:
            if self.longest == 1:
                return 0
            second = LARGE(self.score[:, k], 2)
            return IF(AND(self.ends[0, k] > 0, self.best[0, k] - second < NEAR), 1, 0)

        def late(k: int) -> Any:
            first = FIRST_MARK + self.settings.n_anywhere
            last = FIRST_MARK + len(self.settings.marks)
            here = self.symbol[0, k]
            return IF(AND(here >= first, here < last), 1, 0) if k else 0

        message = "two ways to cut the text into pieces are equally good: change a word"
        self.steps.refuse(MAX(self.steps.row("close", close).area) > 0, expression(message))
        message = "a language, as in >>fr<<, can stand only at the beginning of the text"
        typed = self.steps.whole[0, 0]
        other = LEN(SUBSTITUTE(typed, ">>", "")) < LEN(typed)
        late_ones = MAX(self.steps.row("late", late).area) > 0
        self.steps.refuse(OR(late_ones, other), expression(message))

    def _refuse_unknown(self) -> None:
        """Refuse unknown characters, which would become bytes or nothing, with a message."""
        found = self.steps.row(
            "missing", lambda k: IF(AND(self.ends[0, k] > 0, self.piece[0, k] == 0), 1, 0)
        )
        message = "the text has a character that is in no piece of the vocabulary"
        self.steps.refuse(MAX(found.area) > 0, expression(message))
