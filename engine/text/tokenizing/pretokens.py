"""The pre-tokenizers of byte-level BPE: their regular expressions as rows of character classes.

A pattern is expressed as the length of the word that would begin at each character, computed from
the character's kind and from the lengths of the runs to the right of it.
"""

from typing import Any

from engine.cells.block import Block
from engine.cells.expression import Expression, expression
from engine.cells.functions import AND, IF, MIN, OR
from engine.text.tokenizing.settings import Settings
from engine.text.tokenizing.steps import Steps
from engine.text.tokenizing.unicode import ALONE, LETTER, NEWLINE, NUMBER, OTHER, SPACE

SHORT, LONG = ("s", "t", "m", "d"), ("re", "ve", "ll")  # what follows an apostrophe
LONG_S = 0x17F  # which is an s to a pattern that ignores case
MOST_DIGITS = 3  # of a piece, in Llama 3


def add(steps: Steps, settings: Settings) -> Block:
    """Add a row that is 1 where a word begins."""
    split = Splitting(steps, settings)
    length = split.later() if settings.pattern in ("llama3", "qwen2") else split.gpt2()
    length = steps.row("length", length)
    following: Block

    def begins(k: int) -> Any:
        code, number = steps.code[0, k], steps.number[0, k].fixed_rows
        if k == 0:
            return IF(code > 0, 1, 0)
        return IF(AND(code > 0, following[0, k - 1] == number), 1, 0)

    begin = steps.graph.table("begins", (1, steps.n), lambda i, k: expression(begins(k)))

    def follows(k: int) -> Any:
        after = steps.number[0, k].fixed_rows + length[0, k]
        return IF(begin[0, k] > 0, after, following[0, k - 1] if k else 1)

    following = steps.row("next", follows)
    return begin


class Splitting:
    """The rows that patterns are made of."""

    def __init__(self, steps: Steps, settings: Settings):
        self.steps, self.settings = steps, settings
        self.n, self.kind, self.code = steps.n, steps.kind, steps.code
        self.run = steps.row("run", lambda k: self._run(k, self._like(k)))
        self.white = steps.row("white", self._white)
        self.after_white = steps.row("after_white", self._after_white)
        self.contraction = steps.row("contraction", self._contraction)

    def at(self, row: Block, k: int) -> Any:
        """A cell of a row; 0 beyond its end."""
        return row[0, k] if k < self.n else expression(0)

    def _like(self, k: int) -> Expression:
        return expression(self.at(self.kind, k + 1) == self.kind[0, k])

    def _run(self, k: int, goes_on: Expression) -> Any:
        """The length of the run of one kind that begins at each character."""
        return 1 if k + 1 == self.n else IF(goes_on, self.run[0, k + 1] + 1, 1)

    def is_white(self, k: int) -> Expression:
        kind = self.at(self.kind, k)
        return OR(kind == SPACE, kind == NEWLINE)

    def _white(self, k: int) -> Any:
        """The length of the run of white space that begins at each character, newlines included."""
        more = self.white[0, k + 1] + 1 if k + 1 < self.n else 1
        return IF(self.is_white(k), more, 0)

    def _after_white(self, k: int) -> Any:
        """The kind of the first character after the white space."""
        if k + 1 == self.n:
            return 0
        return IF(self.white[0, k] > 1, self.after_white[0, k + 1], self.kind[0, k + 1])

    def _contraction(self, k: int) -> Any:
        """The length of a contraction that begins here: 's, 't, 're, 've, 'm, 'll, 'd."""
        codes = [self.at(self.code, k + d) for d in (1, 2)]
        short = OR(*(self._is(codes[0], letter) for letter in SHORT))
        long = OR(*(AND(*map(self._is, codes, pair)) for pair in LONG))
        return IF(self.code[0, k] == ord("'"), IF(short, 2, IF(long, 3, 0)), 0)

    def _is(self, code: Expression, letter: str) -> Expression:
        if self.settings.pattern == "gpt2":
            return code == ord(letter)
        cases = [code == ord(letter), code == ord(letter.upper())]
        return OR(*cases, *([code == LONG_S] if letter == "s" else []))

    def space(self, k: int, joined: Expression) -> Expression:
        """The length of white space by `\s+(?!\S)|\s+`: the last of several spaces is left to the
        next word; `joined` is the length of a word that begins with a space."""
        white, after = self.white[0, k], self.after_white[0, k]
        ends = after == 0
        if self.steps.marks:
            ends = OR(ends, after == ALONE)
        if self.settings.digits:  # which end what stands before them
            ends = OR(ends, after == NUMBER)
        return IF(ends, white, IF(white > 1, white - 1, joined))

    def gpt2(self) -> Any:
        """The lengths of `'s|... | ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+`."""

        def length(k: int) -> Expression:
            joined = IF(self.code[0, k] == 32, 1 + self.at(self.run, k + 1), 1)
            run: Any = self.run[0, k]
            if self.settings.digits:
                run = IF(self.kind[0, k] == NUMBER, 1, run)
            piece = IF(self.white[0, k] > 0, self.space(k, joined), run)
            return self._by_itself(k, piece)

        return length

    def _by_itself(self, k: int, piece: Any) -> Expression:
        """The length of a contraction or an added token, or else of a word."""
        if self.steps.marks:
            piece = IF(self.kind[0, k] == ALONE, 1, piece)
        return IF(self.contraction[0, k] > 0, self.contraction[0, k], piece)

    def later(self) -> Any:
        """The lengths by the pattern of Llama 3 and Qwen."""
        self.newlines = self.steps.row("newlines", self._newlines)
        self.to_newline = self.steps.row("to_newline", self._to_newline)
        self.others = self.steps.row("others", self._others)

        def length(k: int) -> Expression:
            kind, after = self.kind[0, k], self.at(self.kind, k + 1)
            letters = 1 + self.at(self.run, k + 1)
            spaced = IF(
                AND(self.code[0, k] == 32, after == OTHER), 1 + self.at(self.others, k + 1), 1
            )
            white = IF(self.to_newline[0, k] > 0, self.to_newline[0, k], self.space(k, spaced))
            other = IF(after == LETTER, letters, IF(kind == OTHER, self.others[0, k], white))
            piece = IF(kind == LETTER, self.run[0, k], IF(kind == NUMBER, self._digits(k), other))
            return self._by_itself(k, IF(kind == NEWLINE, white, piece))

        return length

    def _digits(self, k: int) -> Any:
        return MIN(MOST_DIGITS, self.run[0, k]) if self.settings.pattern == "llama3" else 1

    def _newlines(self, k: int) -> Any:
        """The length of the run of newlines that begins at each character."""
        return IF(self.kind[0, k] == NEWLINE, self.at(self.newlines, k + 1) + 1, 0)

    def _to_newline(self, k: int) -> Any:
        """The number of white space characters from here to the last newline among them."""
        more = self.at(self.to_newline, k + 1)
        here = IF(self.kind[0, k] == NEWLINE, 1, 0)
        return IF(self.is_white(k), IF(more > 0, more + 1, here), 0)

    def _others(self, k: int) -> Any:
        """The length of `[^\s\p{L}\p{N}]+[\r\n]*`."""
        more = IF(
            self.at(self.kind, k + 1) == OTHER,
            self.at(self.others, k + 1),
            self.at(self.newlines, k + 1),
        )
        return IF(self.kind[0, k] == OTHER, 1 + more, 0)
