"""WordPiece in cells: the longest token that a word begins with, then the same for the rest.

A word that cannot be split into tokens is the unknown token. A list of whole words is a special
case: all tokens begin words, and an unknown word gives a message.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import AND, IF, IFERROR, INDEX, MATCH, OR
from cellformer.engine.cells.sentence import sentence
from cellformer.engine.text import tokenizers_library as library
from cellformer.engine.text.tokenizer import WordList
from cellformer.engine.text.tokenizing import result
from cellformer.engine.text.tokenizing.result import Result
from cellformer.engine.text.tokenizing.settings import Settings
from cellformer.engine.text.tokenizing.steps import Steps
from cellformer.engine.text.tokenizing.trie import Tree, tree, walk
from cellformer.engine.text.tokenizing.unicode import (
    ALONE,
    FIRST_MARK,
    OUTSIDE,
    SPACE,
    all_characters,
    normalized,
    spaces,
)


def add(steps: Steps, settings: Settings, special: bool) -> Result:
    """Add normalized characters, words, the longest tokens."""
    vocabulary, mark = settings.vocabulary, settings.model["continuing_subword_prefix"]
    pieces = [
        (1, piece[len(mark) :], i + 1, 0.0) if piece.startswith(mark) else (0, piece, i + 1, 0.0)
        for piece, i in vocabulary.items()
    ]
    pieces += [(0, chr(FIRST_MARK + k), mark.id + 1, 0.0) for k, mark in enumerate(settings.marks)]
    steps.text(settings)
    steps.look_up(_characters(settings))
    unknown = vocabulary[settings.model["unk_token"]]
    longest = settings.model["max_input_chars_per_word"]
    return Words(steps, tree(pieces, 2), longest).result(unknown, settings, special)


@lru_cache(maxsize=16)  # it asks the library about every character
def _characters(settings: Settings) -> np.ndarray:
    """The character table."""
    alphabet = {character for piece in settings.vocabulary for character in piece}
    return normalized(settings.normalizers, _kinds(settings.apart), alphabet, cut_off=True)


def _kinds(parts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The characters that pre-tokenizers drop, the characters that are words of their own, and
    the characters that form words only with their like."""
    every, group, alone, dropped = all_characters(), dict[str, int](), set[str](), {" "}
    for k, part in enumerate(parts):
        does = library.treated(json.dumps(part), every)
        dropped |= does["drops"]
        if part["type"] == "Whitespace" or "Contiguous" in part.values() or False in part.values():
            group |= {c: group.get(c, OUTSIDE) + (1 << k) for c in does["parts"]}
        else:
            alone |= does["parts"]
    return group | dict.fromkeys(alone, ALONE) | dict.fromkeys(dropped, SPACE)


def add_words(steps: Steps, tokenizer: WordList) -> Result:
    """Add words split at white space, each an entry of the list."""
    pieces = [(0, word, i + 1, 0.0) for i, word in enumerate(tokenizer.words)]
    alphabet = {character for word in tokenizer.words for character in word}
    steps.text()
    steps.look_up(normalized([], dict.fromkeys(spaces(), SPACE), alphabet))
    words = Words(steps, tree(pieces, 2), steps.n)
    which = MATCH(1, words.fails.area, 0)
    at = INDEX(steps.number.area, 1, which)
    message = sentence("the word that begins at character {n} is not in the vocabulary", n=at)
    steps.refuse(IFERROR(which, 0) > 0, message)
    return words.result(0)


class Words:
    """The tables from symbols to the tokens of words."""

    def __init__(self, steps: Steps, found: Tree, longest_word: int):
        self.steps, self.n, self.longest_word = steps, steps.n, longest_word
        steps.spread(lambda k: steps.field_of(2, steps.entry[0, k]))
        self.symbol = steps.row("symbol", self._symbol, runs=True)
        self.word_kind = steps.row("word_kind", self._kind, runs=True)
        self.begins = steps.row("begins", self._begins)
        self.room = steps.row("room", self._room)
        self.longest = min(found.longest, self.n)
        self.walk = walk(steps, found, self.symbol, self.room, self._root, self.longest)
        self.length_so_far = steps.graph.table(
            "longest", (self.longest, self.n), self._length, runs=True
        )
        self.starts = steps.row("starts", self._starts)
        self.next = steps.row("next", self._next)
        self.failing = steps.row("failing", self._failing)
        self.fails = steps.row("fails", self._fails)

    def _symbol(self, k: int) -> Expression:
        """The code of a normalized character."""
        return IF(self.steps.symbols.source[0, k] > 0, self.steps.normalized(k), 0)

    def _kind(self, k: int) -> Expression:
        steps = self.steps
        return IF(steps.symbols.source[0, k] > 0, steps.symbols.of(steps.kind, k), SPACE)

    def _begins(self, k: int) -> Expression:
        """Whether a word begins here: at a character that is its own word, or of another kind than
        the one before."""
        kind = self.word_kind[0, k]
        if k == 0:
            return IF(kind == SPACE, 0, 1)
        return IF(kind == SPACE, 0, IF(OR(kind == ALONE, self.word_kind[0, k - 1] != kind), 1, 0))

    def _room(self, k: int) -> Expression:
        """The number of symbols up to the end of the word, including this one."""
        if k + 1 == self.n:
            return IF(self.word_kind[0, k] == SPACE, 0, 1)
        more = IF(self.begins[0, k + 1] > 0, 1, self.room[0, k + 1] + 1)
        return IF(self.word_kind[0, k] == SPACE, 0, more)

    def _root(self, k: int) -> Expression:
        return IF(self.begins[0, k] > 0, 1, 2)

    def _length(self, step: int, k: int) -> Expression:
        """The length of the longest token of at most so many symbols."""
        shorter = self.length_so_far[step - 1, k] if step else expression(0)
        node = self.walk.nodes[step, k]
        return IF(self.walk.symbol(IF(node > 0, node, 1)) > 0, step + 1, shorter)

    def _own(self, k: int) -> Expression:
        return self.length_so_far[self.longest - 1, k]

    def _starts(self, k: int) -> Expression:
        """Whether a token begins here: at the word's beginning, or where the previous token
        ends."""
        if k == 0:
            return self.begins[0, k] + 0
        follows = IF(self.next[0, k - 1] == self.steps.number[0, k].fixed_rows, 1, 0)
        return IF(self.room[0, k] > 0, IF(self.begins[0, k] > 0, 1, follows), 0)

    def _next(self, k: int) -> Expression:
        """The start of the next token; infinity after a token that is not in the vocabulary."""
        own = IF(self._own(k) > 0, self.steps.number[0, k].fixed_rows + self._own(k), 0)
        return IF(self.starts[0, k] > 0, own, self.next[0, k - 1] if k else 0)

    def _failing(self, k: int) -> Expression:
        """Whether the rest of a word has a part that is not in the vocabulary."""
        here = AND(self.starts[0, k] > 0, self._own(k) == 0)
        if k + 1 == self.n:
            return IF(here, 1, 0)
        return IF(here, 1, IF(self.room[0, k] > 1, self.failing[0, k + 1], 0))

    def _fails(self, k: int) -> Expression:
        """Whether the word of a symbol is unknown."""
        before: Any = self.fails[0, k - 1] if k else 0
        whole: Expression = self.failing[0, k]
        if self.longest_word < self.n:
            whole = IF(self.room[0, k] > self.longest_word, 1, whole)
        return IF(self.begins[0, k] > 0, whole, IF(self.room[0, k] > 0, before, 0))

    def result(
        self, unknown: int, settings: Settings | None = None, special: bool = False
    ) -> Result:
        """The ids: one per token, or one for an unknown word."""
        steps, nodes = self.steps, self.walk.nodes

        def ident(k: int) -> Expression:
            length = self._own(k)
            node = INDEX(nodes[:, k], IF(length > 0, length, 1), 1)
            return IF(self.fails[0, k] > 0, unknown, self.walk.symbol(IF(node > 0, node, 1)) - 1)

        def taken(k: int) -> Expression:
            if k == 0:
                return self.begins[0, k] + 0
            here = IF(self.fails[0, k] > 0, self.begins[0, k], self.starts[0, k])
            return self.taken[0, k - 1] + here

        found = steps.row("id", ident)
        self.taken = steps.row("taken", taken)
        counted, total = self.taken.area.fixed, self.taken[0, self.n - 1]
        return result.add(
            steps,
            lambda k: INDEX(found.area.fixed, 1, MATCH(k + 1, counted, 0)),
            total,
            settings,
            special,
        )
