"""Steps that all tokenizers share: the sentence, its characters, and symbols made of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, Row, expression
from cellformer.engine.cells.functions import (
    AND,
    EXACT,
    IF,
    IFERROR,
    INDEX,
    INT,
    LEFT,
    LEN,
    MATCH,
    MID,
    MOD,
    OR,
    SUBSTITUTE,
    TRIM,
    UNICHAR,
    UNICODE,
)
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.sentence import sentence
from cellformer.engine.text.tokenizer import Tokenizer, shown
from cellformer.engine.text.tokenizing.settings import SPACE_SIGN, Mark, Settings
from cellformer.engine.text.tokenizing.unicode import (
    FIRST_MARK,
    OUTSIDE,
    UNREADABLE,
    moved,
    with_marks,
)

# taken away one after another: any number up to 63
SPACES = tuple(" " * n for n in (32, 16, 8, 4, 2, 1))
WHITE = (9, 10, 13, 32, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288)
# a character beyond the first 65,536 in UTF-16: one of 1,024 high surrogates, and a low one
FIRST_HALF, SECOND_HALF, HALVES, BEYOND = 0xD800, 0xDC00, 1024, 0x10000
Problem = tuple[Expression, Expression]  # its condition, and its message


@dataclass(frozen=True)
class Spread:
    """A column for each symbol: how many each character gives, the number of the character that a
    symbol comes from (0: there is no symbol), its index within that character's symbols, from
    0."""

    gives: Block
    source: Block
    within: Block

    def of(self, row: Block, k: Any) -> Expression:
        """The value, in a row of characters, of the character that symbol k comes from; the first
        character's if there is no symbol."""
        at = self.source[0, k]
        return INDEX(row.area.fixed, 1, IF(at > 0, at, 1))


@dataclass
class Steps:
    """A graph to which a tokenizer's tables are added, row by row, each as wide as the text."""

    graph: Graph
    tokenizer: Tokenizer
    typed: str
    text_length: int
    n_tokens: int
    problems: list[Problem] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)  # added tokens that are found in the text

    def __post_init__(self) -> None:
        if (name := f"{self.graph.prefix}sentence") in self.graph.blocks:  # a conversation
            self.sentence = self.graph[name]
        else:
            held = np.array([[self.typed]], dtype=object)
            self.sentence = self.graph.input("sentence", held, kind="table")
        self.graph = self.graph.at("tokenizer")
        self.n = self.text_length
        self.missing = 0  # a symbol that stands for what the vocabulary lacks

    def input(self, name: str, values: Any) -> Block:
        """A constant table of the tokenizer: numbers or texts [rows, columns].

        The tokenizer of a second sentence shares the first one's.
        """
        if (first := f"tokenizer.{name}") in self.graph.blocks:
            return self.graph[first]
        return self.graph.input(name, values, kind="table")

    @cached_property
    def pieces(self) -> Block:
        """The vocabulary in readable form, by symbol: a symbol is an id plus 1."""
        return self.texts("pieces", shown(self.tokenizer.texts))

    def texts(self, name: str, texts: Iterable[str]) -> Block:
        """A constant table of texts, one a row."""
        return self.input(name, np.array([[text] for text in texts], dtype=object))

    def one(self, name: str, formula: Any) -> Block:
        """A table of a single cell."""
        return self.graph.table(name, (1, 1), lambda i, j: expression(formula))

    def row(self, name: str, formula: Callable[[int], Any], runs: bool = False) -> Block:
        """A table of one row, as wide as the text."""
        return self.graph.table(name, (1, self.n), lambda i, j: expression(formula(j)), runs=runs)

    # --- the text and its characters --------------------------------------------------------

    def text(self, settings: Settings | None = None) -> None:
        """Add the text after replacements, its characters, and their code points."""
        typed: Any = self.sentence[0, 0]
        if settings:
            self.marks = settings.marks
            found = {mark.text for mark in self.marks}
            self._refuse_added([text for text in settings.added if text not in found])
            typed = self._marked(typed) if self.marks else typed
            typed = _collapsed(typed, settings)
            self.n += 1 if settings.prefix else 0
            if self.marks and (settings.prefix or settings.stripped or settings.collapsed):
                typed = self._parted(typed, settings)
            elif settings.prefix:
                typed = _prefixed(typed, settings)
        self.number = self.graph.input("number", np.arange(1.0, self.n + 1)[None, :], kind="table")
        self.whole = self.one("text", typed & "")
        self._codes()

    def _refuse_added(self, added: Sequence[str]) -> None:
        """Refuse a text that is an added token wherever it stands."""
        if not added:
            return
        texts = self.texts("added", added)
        typed = self.sentence[0, 0].fixed
        held = self.graph.table(
            "holds",
            (len(added), 1),
            lambda k, j: IF(LEN(SUBSTITUTE(typed, texts[k, 0], "")) < LEN(typed), 1, 0),
        )
        which = MATCH(1, held.area.as_range, 0)
        name = INDEX(texts.area, which, 1) if len(added) > 1 else texts[0, 0]
        self.refuse(
            IFERROR(which, 0) > 0,
            sentence("the text contains the special token {token}: delete {token}", token=name),
        )

    def _marked(self, typed: Expression) -> Expression:
        """The text with each added token replaced by one private-use character."""
        n = len(self.marks)
        self.mark_texts = self.texts("marks", (mark.text for mark in self.marks))
        whole = typed.fixed if isinstance(typed, Area) else typed

        def marked(k: int, _: int) -> Expression:
            sign = UNICHAR(FIRST_MARK + k)
            before = self.marked[k - 1, 0] if k else whole
            found: Expression = SUBSTITUTE(before, self.mark_texts[k, 0], sign)
            newline = UNICHAR(10)
            for spaces in (newline & newline, newline, *map(expression, SPACES), newline):
                if self.marks[k].strips:
                    found = SUBSTITUTE(found, spaces & sign, sign)
                if self.marks[k].strips_after:
                    found = SUBSTITUTE(found, sign & spaces, sign)
            return found

        def clash(k: int, _: int) -> Expression:
            """Whether the private-use character itself was typed, or white space is left where it
            is stripped."""
            sign = UNICHAR(FIRST_MARK + k)
            left: Expression = self.marked[n - 1, 0]
            signs = [sign] if k + 1 < n else [UNICHAR(FIRST_MARK + k + d) for d in range(3)]
            typed_so = OR(*(LEN(SUBSTITUTE(whole, one, "")) < LEN(whole) for one in signs))
            if not (self.marks[k].strips or self.marks[k].strips_after):
                return IF(typed_so, 1, 0)
            for white in map(UNICHAR, WHITE):
                if self.marks[k].strips:
                    left = SUBSTITUTE(left, white & sign, "")
                if self.marks[k].strips_after:
                    left = SUBSTITUTE(left, sign & white, "")
            return IF(OR(typed_so, LEN(left) < LEN(self.marked[n - 1, 0])), 1, 0)

        self.marked = self.graph.table("marked", (n, 1), marked)
        clashes = self.graph.table("clash", (n, 1), clash)
        which = IFERROR(MATCH(1, clashes.area.as_range, 0), 0)
        name = INDEX(self.mark_texts.area, which, 1) if n > 1 else self.mark_texts[0, 0]
        self.refuse(
            which > 0, sentence("the sheet has no ids for the text around {token}", token=name)
        )
        return self.marked[n - 1, 0]

    def _parted(self, typed: Expression, settings: Settings) -> Expression:
        """The text with the treatment of each part between added tokens: spaces at its ends are
        stripped, a space is put before it. A private-use character stands for that space, and
        disappears from empty parts."""
        n, start, end = (
            len(self.marks),
            *(UNICHAR(FIRST_MARK + len(self.marks) + k) for k in (0, 1)),
        )
        strips_end = settings.stripped or settings.collapsed == "ends too"
        strips = settings.stripped == "ends" or settings.collapsed == "ends too"
        first = start if settings.prefix else expression("")

        def parted(k: int, _: int) -> Expression:
            sign = UNICHAR(FIRST_MARK + k)
            found = parts[k - 1, 0] if k else IF(LEN(typed) > 0, first & typed, "")
            if strips_end:
                found = SUBSTITUTE(found, expression(" ") & sign, sign)
            if strips:
                found = SUBSTITUTE(found, sign & " ", sign)
            again = settings.prefix and not settings.once
            return SUBSTITUTE(found, sign, sign & start) if again else found

        def filled(k: int, _: int) -> Expression:
            sign = UNICHAR(FIRST_MARK + k)
            return SUBSTITUTE(full[k - 1, 0] if k else parts[n - 1, 0], start & sign, sign)

        parts = self.graph.table("parted", (n, 1), parted)
        if not settings.prefix:
            return parts[n - 1, 0] & ""
        full = self.graph.table("filled", (n, 1), filled)
        found = SUBSTITUTE(SUBSTITUTE(full[n - 1, 0] & end, start & end, ""), end, "")
        for there in (" ", SPACE_SIGN) if settings.prefix == "unless there" else ():
            if there == " " or settings.signed:
                found = SUBSTITUTE(found, start & there, there)
        return SUBSTITUTE(found, start, " ")

    def _codes(self) -> None:
        """The code point of each character, a column each. Excel counts a character beyond the
        first 65,536 as two, which LEN(UNICHAR()) reveals, and half of it has no code; other
        programs give the half's own code, so the halves are joined here."""
        text = self.whole[0, 0].fixed

        def wide(k: int) -> Expression:
            return IF(codes[0, k] > 65535, LEN(UNICHAR(codes[0, k])), 1)

        def code(k: int) -> Expression:
            at = position[0, k]
            one, other = (UNICODE(MID(text, place, 1)) for place in (at, at + 1))
            pair = (one - FIRST_HALF) * HALVES + other - SECOND_HALF + BEYOND
            half = INT(one / HALVES) == FIRST_HALF // HALVES
            of_two = IFERROR(UNICODE(MID(text, at, 2)), UNREADABLE)
            return IF(at > LEN(text), 0, IFERROR(IF(half, pair, one), of_two))

        position = self.row("position", lambda k: 1 if k == 0 else position[0, k - 1] + wide(k - 1))
        self.code = codes = self.row("code", code)
        self.row("character", lambda k: self._character(codes[0, k]))
        last = self.n - 1
        self.refuse(
            AND(codes[0, last] > 0, position[0, last] + wide(last) <= LEN(text)),
            sentence("the text has more than {n} characters", n=self.text_length),
        )

    def _character(self, code: Area) -> Expression:
        """A readable character, or the added token in its place."""
        n = len(self.marks)
        if not n:
            return _sign(code)
        text: Expression = self.mark_texts[0, 0].fixed
        if n > 1:
            text = INDEX(self.mark_texts.area.fixed, code - (FIRST_MARK - 1), 1)
        return IF(AND(code >= FIRST_MARK, code < FIRST_MARK + n), text, _sign(code))

    def look_up(
        self, characters: np.ndarray, of_mark: Callable[[Mark], float] = lambda mark: 1.0
    ) -> None:
        """Add each character's row in a table [ranges, fields] (first column: the first code of a
        range), and its kind (second column). `of_mark` gives the third column for added tokens: by
        default how many symbols each is, one."""
        fields = [of_mark(mark) for mark in self.marks]
        self.characters = self.input("characters", with_marks(characters, fields))
        first, kinds = self.characters[:, 0].fixed, self.characters[:, 1].fixed
        self.entry = self.row("entry", lambda k: MATCH(self.code[0, k], first, 1), runs=True)
        self.kind = self.row("kind", lambda k: INDEX(kinds, self.entry[0, k]), runs=True)
        self.refuse_first(self.kind, OUTSIDE)

    def field_of(self, column: int, entry: Any) -> Expression:
        """A field of the character table, for a character."""
        return INDEX(self.characters[:, column].fixed, entry)

    def normalized(self, k: int) -> Expression:
        """The code of the character of symbol k: its entry has the distance of the first from
        the typed one, and the others."""
        entry, place = self.symbols.of(self.entry, k), self.symbols.within[0, k]
        first = self.symbols.of(self.code, k) + self.field_of(3, entry)
        other = IF(place == 1, self.field_of(4, entry), self.field_of(5, entry))
        return IF(place == 0, first, other)

    def refuse(self, condition: Expression, message: Expression) -> None:
        """Show a message and no ids if a condition holds."""
        self.problems.append((condition, message))

    def refuse_first(self, row: Block, value: float) -> None:
        """Refuse the text, naming the first character with a value in a row."""
        which = MATCH(value, row.area, 0)
        code = INDEX(self.code.area, 1, which)
        sign = IFERROR(UNICHAR(code), "?")
        text = sentence(
            "the character {sign} (code {code}) has no id in the vocabulary", sign=sign, code=code
        )
        self.refuse(IFERROR(which, 0) > 0, text)

    # --- symbols ----------------------------------------------------------------------------

    def spread(self, length: Callable[[Any], Any], prefix: str = "") -> "Spread":
        """Add a column for each symbol, given how many symbols each character has: the number of
        its character, and its index within that character's symbols, from 0. With a prefix, the
        symbols are characters again."""
        gives = self.row(f"{prefix}gives", length, runs=True)
        before = self.row(
            f"{prefix}before", lambda k: 0 if k == 0 else before[0, k - 1] + gives[0, k - 1]
        )
        last = self.n - 1
        self.total = self.one(f"{prefix}total", before[0, last] + gives[0, last])
        total, starts = self.total[0, 0].fixed, before.area.fixed

        def of(k: Any) -> Expression:
            number = self.number[0, k].fixed_rows
            return IF(number > total, 0, MATCH(number - 0.5, starts, 1))

        source = self.row(f"{prefix}source", of, runs=True)
        found = Spread(
            gives,
            source,
            self.row(
                f"{prefix}within",
                lambda k: IF(
                    source[0, k] > 0, self.number[0, k].fixed_rows - 1 - found.of(before, k), 0
                ),
                runs=True,
            ),
        )
        self.symbols = found
        self.refuse(
            self.total[0, 0] > self.n,
            sentence(
                "the text is longer than the {n} symbols of this sheet: a letter with an "
                "accent can use two symbols, an emoji four",
                n=self.n,
            ),
        )
        return found

    def utf8(self, k: Any) -> Expression:
        """The number of UTF-8 bytes of a character."""
        code = self.code[0, k]
        return IF(code < 1, 0, IF(code < 128, 1, IF(code < 2048, 2, IF(code < 65536, 3, 4))))

    def bytes(self) -> Block:
        """Add the UTF-8 byte of each symbol: six bits of the code point, with the prefix of its
        place."""

        def byte(k: int) -> Expression:
            symbols = self.symbols
            code, length, place = (
                symbols.of(self.code, k),
                symbols.of(symbols.gives, k),
                symbols.within[0, k],
            )
            bits = INT(code / 64 ** (length - 1 - place))
            lead = IF(length < 2, 0, IF(length < 3, 192, IF(length < 4, 224, 240)))
            return IF(symbols.source[0, k] > 0, IF(place > 0, 128 + MOD(bits, 64), bits + lead), -1)

        return self.row("byte", byte, runs=True)


def _sign(code: Area) -> Expression:
    """A character in readable form."""
    control = IF(code == 10, "\\n", IF(code == 9, "\\t", "\\x"))
    return IF(
        code < 1, "", IF(code < 32, control, IF(code == 32, "␣", IFERROR(UNICHAR(code), "?")))
    )


def _collapsed(typed: Expression, settings: Settings) -> Expression:
    """Apply the tokenizer's replacements, and collapse runs of spaces if it does."""
    for old, new in settings.replaced:
        typed = SUBSTITUTE(typed, old, new)
    if settings.collapsed not in ("between", "ends too"):
        return typed
    ends_too = settings.collapsed == "ends too"
    if ends_too or moved(settings.normalizers).get("\n") == " ":
        typed = SUBSTITUTE(SUBSTITUTE(typed, UNICHAR(10), " "), UNICHAR(9), " ")
    if ends_too:
        return TRIM(typed)
    first, last = LEFT(typed, 1), MID(typed, LEN(typed), 1)
    inner: Expression = TRIM(typed)
    if settings.stripped != "ends":
        inner = IF(EXACT(first, " "), " ", "") & inner
    if not settings.stripped:
        inner = inner & IF(EXACT(last, " "), " ", "")
    alone = "" if settings.stripped else first
    return IF(LEN(typed) > 0, IF(LEN(TRIM(typed)) > 0, inner, alone), "")


def _prefixed(typed: Expression, settings: Settings) -> Expression:
    """Add a space before the text, if the tokenizer does."""
    with_space = expression(" ") & typed
    if settings.prefix == "always":
        return IF(LEN(typed) > 0, with_space, "")
    code = UNICODE(typed)
    there = OR(code == 32, code == ord(SPACE_SIGN)) if settings.signed else code == 32
    return IF(LEN(typed) > 0, IF(there, typed, with_space), "")


def listed(key: Expression, keys: Area, values: Area, otherwise: Any) -> Expression:
    """The value beside a number in a list sorted by numbers, or another if it is not there."""
    at = MATCH(key, keys, 1)
    return IF(INDEX(keys, at) == key, INDEX(values, at), otherwise)


def shifted(
    formula: Callable[[Any], Expression], k: Any, last: int, at_end: Callable[[int], Any]
) -> Expression:
    """A row whose formula reads the next column; the columns from `last` on get another formula.
    `k` is a column or an array of columns."""
    if not isinstance(k, np.ndarray):
        return expression(at_end(k)) if k >= last else formula(k)
    inner = k[k < last]
    rest: list[Expression] = [expression(at_end(int(c))) for c in k[k >= last]]
    return Row([formula(inner), *rest]) if inner.size else Row(rest)
