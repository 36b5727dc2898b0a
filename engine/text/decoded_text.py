"""Decoding in cells: token ids to one line of text, for a sentence and its continuation.

Each token adds its text to the line. Tokens that are bytes may be incomplete characters: the cells
count how many bytes of a character are missing and assemble it from its bits. Invalid UTF-8 becomes
U+FFFD, as in the `tokenizers` library, in one of two ways:

- byte-level tokens: one U+FFFD for each character that is cut off (Unicode, table 3-8);
- byte-fallback tokens: one U+FFFD for each byte, unless a whole run of bytes is valid UTF-8.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import (
    AND,
    IF,
    IFERROR,
    INDEX,
    LEFT,
    LEN,
    MATCH,
    MID,
    MIN,
    REPT,
    UNICHAR,
)
from cellformer.engine.cells.graph import Graph
from cellformer.engine.text import detokenizing
from cellformer.engine.text.detokenizing import ALL_TEXT, FIELDS, NO_TEXT, Decoding
from cellformer.engine.text.tokenizer import Tokenizer

TOKENS = ("token", "")


def add(g: Graph, tokenizer: Tokenizer, hidden: Callable[[int], Expression] | None = None) -> None:
    """Add the text of a graph's tokens, `text.whole` [1, 1], without those that are `hidden` (1);
    adds nothing if tokens have no text."""
    decoding = detokenizing.read(tokenizer)
    if decoding is None:
        return
    tokens = g["tokens"]
    if hidden:
        nothing = decoding.add_nothing()
        tokens = g.at("text").table(
            "seen",
            tokens.shape,
            lambda t, _: IF(hidden(t) == 1, nothing, g["tokens"][t, 0]),
            TOKENS,
        )
    KINDS[decoding.of](g, decoding, tokens).add()


class Line:
    """Tables from token ids to a line of text, for tokens that are whole texts."""

    def __init__(self, g: Graph, decoding: Decoding, tokens: Block):
        self.graph, self.tokens = g.at("text"), tokens
        self.n, self.decoding = self.tokens.shape[0], decoding

    def add(self) -> None:
        """Add the text of each vocabulary entry, the text of each token, and the line as it
        grows."""
        self._pieces()
        text = self.column("text", self.steps())
        line = self.column("line", lambda t: self.before(line, t, "") & text[t, 0])
        whole = line[self.n - 1, 0] & self.end()
        if self.decoding.stripped:
            whole = IF(LEFT(whole, 1) == " ", MID(whole, 2, LEN(whole)), whole)
        self.graph.table("whole", (1, 1), lambda i, j: whole)

    def steps(self) -> Callable[[int], Expression]:
        """Add intermediate columns; returns a function from a token's position to the text that it
        adds."""
        if self.decoding.first == self.decoding.later:
            return lambda t: self.own(self.later, t)
        first = self._texts("first", self.decoding.first)

        def begins(t: int) -> Any:
            if not self.decoding.odd:
                return 1
            return IF(self.piece(t, "left out") == 1, self.before(begun, t), 1)

        begun = self.column("begun", begins)
        return lambda t: IF(self.before(begun, t) == 0, self.own(first, t), self.own(self.later, t))

    def end(self) -> Expression:
        """The text after the last token's."""
        return expression("")

    # --- what all of them share -------------------------------------------------------------

    def _pieces(self) -> None:
        """The text of every id, and the FIELDS of ids that are bytes."""
        self.later = self._texts("later", self.decoding.later)
        if self.decoding.odd:
            rows = [ALL_TEXT, *sorted(self.decoding.odd.values())]
            self.odd = self.graph.input("odd", np.array(rows, dtype=np.float64), kind="table")
            ids = self.odd[:, 0].fixed
            self.row = self.column("row", lambda t: IFERROR(MATCH(self.tokens[t, 0], ids, 0), 1))

    def _texts(self, name: str, texts: Sequence[str]) -> Block:
        found = np.array([detokenizing.held(text) for text in texts], dtype=object)
        return self.graph.input(name, found[:, None], kind="table")

    def column(self, name: str, formula: Callable[[int], Any]) -> Block:
        """A table [n_tokens, 1]."""
        return self.graph.table(name, (self.n, 1), lambda t, _: expression(formula(t)), TOKENS)

    def before(self, column: Block, t: int, at_first: Any = 0) -> Expression:
        """A column's value for the previous token; `first` for the first token."""
        return column[t - 1, 0] if t else expression(at_first)

    def piece(self, t: int, name: str) -> Expression:
        """A field of FIELDS for the token at a position."""
        return INDEX(self.odd[:, FIELDS.index(name)].fixed, self.row[t, 0])

    def own(self, texts: Block, t: int) -> Expression:
        """The text of the token at a position; blank cells are empty texts."""
        return INDEX(texts.area.fixed.as_range, self.tokens[t, 0] + 1) & ""


class ByteLevel(Line):
    """Byte-level tokens: one may complete a character and leave another incomplete."""

    def steps(self) -> Callable[[int], Expression]:
        before, piece = self.before, self.piece
        bits_of = self.odd[:, FIELDS.index("bits 1") : FIELDS.index("bits 3") + 1].fixed

        def takes(t: int) -> Expression:
            goes_on = AND(
                before(to_come, t) > 0,
                piece(t, "first") >= before(lowest, t),
                piece(t, "first") <= before(highest, t),
            )
            return IF(goes_on, MIN(before(to_come, t), piece(t, "continuing")), 0)

        def fills(t: int) -> Expression:
            k, bits = takes_[t, 0], before(open_, t)
            return IF(k > 0, bits * 64**k + INDEX(bits_of, self.row[t, 0], k), bits)

        def stays(t: int) -> Expression:
            k = takes_[t, 0]
            all_of_it = AND(piece(t, "more") == 0, k == piece(t, "continuing"))
            return IF(all_of_it, IF(k < before(to_come, t), 1, 0), 0)

        def follows(name: str, on: Callable[[int], Any]) -> Callable[[int], Expression]:
            return lambda t: IF(stays_[t, 0] == 1, on(t), piece(t, name))

        def text(t: int) -> Expression:
            loose = REPT(NO_TEXT, piece(t, "continuing") - takes_[t, 0]) & self.own(self.later, t)
            done = takes_[t, 0] == before(to_come, t)
            closed = IF(done, character(filled[t, 0]), IF(stays_[t, 0] == 1, "", NO_TEXT))
            return IF(before(to_come, t) == 0, "", closed) & loose

        takes_ = self.column("takes", takes)
        filled = self.column("filled", fills)
        stays_ = self.column("stays", stays)
        to_come = self.column(
            "to_come", follows("to come", lambda t: before(to_come, t) - takes_[t, 0])
        )
        open_ = self.column("open", follows("bits", lambda t: filled[t, 0]))
        lowest = self.column(
            "lowest", follows("lowest", lambda t: IF(takes_[t, 0] > 0, 128, before(lowest, t)))
        )
        highest = self.column(
            "highest", follows("highest", lambda t: IF(takes_[t, 0] > 0, 191, before(highest, t)))
        )
        self.to_come = to_come
        return text

    def end(self) -> Expression:
        return IF(self.to_come[self.n - 1, 0] > 0, NO_TEXT, "")


class Fallback(Line):
    """Byte-fallback tokens: single bytes; each run of them is valid UTF-8 or not."""

    def steps(self) -> Callable[[int], Expression]:
        before, piece = self.before, self.piece

        def follows(name: str, on: Callable[[int], Any]) -> Callable[[int], Expression]:
            def formula(t: int) -> Expression:
                here = IF(piece(t, "continuing") == 1, on(t), piece(t, name))
                return self.unless_left_out(t, columns[name], here)

            return formula

        def fits(t: int) -> Expression:
            first, low, high = piece(t, "first"), columns["lowest"], columns["highest"]
            goes_on = AND(first >= before(low, t), first <= before(high, t))
            begins = AND(piece(t, "continuing") == 0, piece(t, "unfit") == 0)
            open_ = before(columns["to come"], t) > 0
            return IF(IF(open_, goes_on, begins), before(sound, t, 1), 0)

        def joins(t: int) -> Expression:
            closed = IF(columns["to come"][t, 0] == 0, character(columns["bits"][t, 0]), "")
            added = IF(piece(t, "continuing") == 1, closed, self.own(self.later, t))
            here = IF(piece(t, "byte") == 0, "", before(joined, t, "") & added)
            return self.unless_left_out(t, joined, here, "")

        def stands(t: int) -> Expression:
            whole = AND(sound[t, 0] == 1, columns["to come"][t, 0] == 0)
            return IF(whole, joined[t, 0], REPT(NO_TEXT, run[t, 0]))

        def text(t: int) -> Expression:
            waits = piece(t, "left out") + piece(t, "byte") > 0
            return IF(waits, "", before(stood, t, "") & self.own(self.later, t))

        goes_on: dict[str, Callable[[int], Any]] = {
            "to come": lambda t: before(columns["to come"], t) - 1,
            "bits": lambda t: before(columns["bits"], t) * 64 + piece(t, "bits 1"),
            "lowest": lambda t: 128,
            "highest": lambda t: 191,
        }
        columns = {
            name: self.column(name.replace(" ", "_"), follows(name, on))
            for name, on in goes_on.items()
        }
        sound = self.column(
            "sound",
            lambda t: self.unless_left_out(t, sound, IF(piece(t, "byte") == 0, 1, fits(t)), 1),
        )
        run = self.column(
            "run",
            lambda t: self.unless_left_out(
                t, run, IF(piece(t, "byte") == 0, 0, before(run, t) + 1)
            ),
        )
        joined = self.column("joined", joins)
        stood = self.stood = self.column("stands", stands)
        return text

    def unless_left_out(self, t: int, column: Block, here: Any, at_first: Any = 0) -> Expression:
        """A value; for a token that decoding skips, the previous token's."""
        return IF(self.piece(t, "left out") == 1, self.before(column, t, at_first), here)

    def end(self) -> Expression:
        return expression("") & self.stood[self.n - 1, 0]


def character(code: Expression) -> Expression:
    """The character of a code point, or U+FFFD."""
    return IFERROR(UNICHAR(code), NO_TEXT)


KINDS = {"texts": Line, "bytes": ByteLevel, "fallback": Fallback}
