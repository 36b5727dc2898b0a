"""Answers: the worth of a typed number, by one rule for the sheet Key and for `grade`.

The digits that were typed decide: an answer is right if it is the right number rounded to two or
more significant digits. The rule is written once, as formulas. The sheet has a cell for each step;
`judged` computes the steps at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cellformer.engine.cells.expression import Constant, Expression, expression
from cellformer.engine.cells.functions import (
    ABS,
    AND,
    FIND,
    IF,
    IFERROR,
    INT,
    ISNUMBER,
    LEFT,
    LEN,
    LOG10,
    MAX,
    MIN,
    NOT,
    ROUND,
    SUBSTITUTE,
    added,
)

EXACT = 1e-9  # of the number, or of 1
LEAST = 0.001  # numbers below it are held to this share of EXACT
MOST_DIGITS = 9  # that are counted; with more, a number has all its digits
FINE, TINY = 1e-10, 1e-12  # what rounding of binary numbers may leave, of digits and of logarithms
HALF = 0.5 * (1 + 1e-6)  # of a unit: ties are off by what binary numbers leave
NO_DIGITS = -99  # the place of the first digit of 0
NONE = 9e99  # the distance to a slip that does not match
DATES = 40_000, 60_000  # the numbers of days that programs make of 2/6
MOST_DATED = 1_000  # a larger right number is no fraction
BESIDE = ("row", "row before", "column", "column before")  # slips that every table has

# what an answer is, from right to wrong: those up to ROUNDED are right, FEW has too few digits,
# MOVED was right before an edit, and up to POINT it is right but for a power of ten
RIGHT, ROUNDED, FEW, MOVED, LARGE, SMALL, COMMA, POINT, SLIP, SIGN, DATE, CLOSE, WRONG = range(
    1, 14
)
# what is in a yellow cell; the last three are texts of a number
NUMBER, BLANK, TEXT, ERROR, FRACTION, MINUS, WITH_COMMA, AS_TEXT = range(8)
TYPED_MINUS = "−"  # U+2212, as printed

Put = Callable[[str, Expression], Expression]  # keeps a step; gives what others read of it


@dataclass(frozen=True)
class Verdict:
    """The verdict on an answer: a mark, the slips that lead to it, and how it was typed."""

    mark: int
    slips: tuple[str, ...] = ()
    kind: int = NUMBER

    @property
    def right(self) -> bool:
        """Whether it is a number, and the right one, rounded or not."""
        return self.kind == NUMBER and self.mark <= ROUNDED

    @property
    def rounded(self) -> bool:
        """Whether it is right, with fewer digits."""
        return self.right and self.mark == ROUNDED


def exact(right: float) -> float:
    """The largest error that counts as none."""
    return EXACT * max(1.0, abs(right))


# --- the rule -----------------------------------------------------------------------------------


class Rule:
    """The steps from a number that was typed to a mark.

    `whole`: it is a count, and right only if exact. `built` is the right number before edits;
    `dated`, whether the program took it for a date: without it, a guess.
    """

    def __init__(
        self,
        put: Put,
        typed: Expression,
        right: Expression,
        whole: bool,
        built: Expression | None = None,
        dated: bool | None = None,
    ):
        self.typed, self.right, self.whole, self.built = typed, right, whole, built
        self.dated = expression(_may_be_a_date(typed, right) if dated is None else dated)
        self.place = put("place", _place(typed))
        size = put("digits", IFERROR(ABS(typed) / _ten_to(self.place), 0))
        more = [ABS(ROUND(size, d) - size) > FINE for d in range(MOST_DIGITS)]
        self.last = put("last", self.place - added(more))
        self.first = put("first", _place(right))
        self.exact = put("exact", EXACT * MAX(LEAST, ABS(right)))
        self.off = put("off", ABS(typed - right))
        power = ROUND(LOG10(ABS(typed)) - LOG10(ABS(right)), 0)
        self.power = put("power", IFERROR(power, 0))
        self.near = put("near", self._rounding(self.last, self.place))

    def apart(self, wrong: Expression) -> Expression:
        """The distance of the answer from the number of its slip, at the typed digits."""
        off = ABS(self.typed - wrong)
        return IFERROR(IF(off <= self.near, off, NONE), NONE)

    def mark(self, nearest: Expression) -> Expression:
        """The mark, given how far the nearest slip is."""
        moved: Any = False
        if self.built is not None:
            as_built = ABS(self.typed - self.built) <= self._rounding(self.last, _place(self.built))
            moved = AND(ABS(self.right - self.built) > self.exact, as_built)
        ten = IF(AND(self.power > 0, self.typed == INT(self.typed)), COMMA, POINT)
        point = IF(self.power == 2, LARGE, IF(self.power == -2, SMALL, ten))
        steps = (
            (self.off <= self.exact, RIGHT),
            (self.off <= self._rounding(self.last, self.first), ROUNDED),
            (self._few(), FEW),
            (moved, MOVED),
            (AND(self.power != 0, self._same_digits()), point),
            (nearest < NONE, SLIP),
            (AND(self.power == 0, self._same_digits()), SIGN),
            (self.dated, DATE),
            (self._close(), CLOSE),
        )
        found: Any = WRONG
        for holds, mark in reversed(steps):
            found = found if holds is False else IF(holds, mark, found)
        return IFERROR(found, WRONG)

    def _rounding(self, last: Expression, first: Expression) -> Expression:
        """The largest error of rounding: half a unit of the last typed digit, but of the second
        significant digit at most; 0 for a count."""
        half = HALF * _ten_to(MIN(last, first - 1))
        return MAX(self.exact, IF(self._counted(), 0, half) if self.whole else half)

    def _counted(self) -> Expression:
        """Whether the right number is still whole: an edit may change that."""
        return ABS(self.right - ROUND(self.right, 0)) <= self.exact

    def _few(self) -> Expression:
        """Whether it is the right number rounded to one digit."""
        few = AND(self.last == self.place, self.off <= HALF * _ten_to(self.first))
        return AND(NOT(self._counted()), few) if self.whole else few

    def _same_digits(self) -> Expression:
        """Whether it is right except for a power of ten, or the sign."""
        off = ABS(ABS(self.typed) / _ten_to(self.power) - ABS(self.right))
        return off <= self._rounding(self.last - self.power, self.first)

    def _close(self) -> Expression:
        """Whether it is off by a unit of the second digit at most."""
        close = self.off <= _ten_to(self.first - 1) + self.exact
        return AND(NOT(self._counted()), close) if self.whole else close


def _place(number: Expression) -> Expression:
    """The place of a number's first digit: 0 of units, -1 of tenths."""
    return IFERROR(INT(LOG10(ABS(number)) + TINY), NO_DIGITS)


def _ten_to(power: Expression) -> Expression:
    return expression(10.0) ** power


def _may_be_a_date(typed: Expression, right: Expression) -> Expression:
    first, last = DATES
    return AND(typed == INT(typed), typed > first, typed < last, ABS(right) < MOST_DATED)


# --- numbers that programs take for texts -------------------------------------------------------


def read(text: Expression) -> Expression:
    """The number in a text: with the minus sign of print, a decimal comma, spaces or %; an empty
    text if there is none."""
    plain = text
    for old, new in ((TYPED_MINUS, "-"), (",", "."), (" ", ""), ("%", "")):
        plain = SUBSTITUTE(plain, old, new)
    body = SUBSTITUTE(plain, "-", "")
    digits = SUBSTITUTE(body, ".", "")
    one_of_each = AND(LEN(plain) - LEN(body) <= 1, LEN(body) - LEN(digits) <= 1, LEN(digits) > 0)
    decimals = IFERROR(LEN(body) - FIND(".", body), 0)
    percents = LEN(text) - LEN(SUBSTITUTE(text, "%", ""))
    sign = IF(LEFT(plain, 1) == "-", -1, 1)
    number = sign * (digits * 1) / _ten_to(decimals + 2 * percents)
    return IFERROR(IF(AND(one_of_each, NOT(_has(text, "/"))), number, ""), "")


def kind(cell: Expression, number: Expression) -> Expression:
    """The kind of a yellow cell's content, given the number read from its text."""
    as_text = IF(_has(cell, TYPED_MINUS), MINUS, IF(_has(cell, ","), WITH_COMMA, AS_TEXT))
    text = IF(ISNUMBER(number), as_text, IF(_has(cell, "/"), FRACTION, TEXT))
    return IFERROR(IF(ISNUMBER(cell), NUMBER, IF(cell == "", BLANK, text)), ERROR)


def _has(text: Expression, part: str) -> Expression:
    return LEN(text) > LEN(SUBSTITUTE(text, part, ""))


# --- computed at once ---------------------------------------------------------------------------


def judged(
    answer: float | str,
    right: float,
    wrong: Mapping[str, float],
    whole: bool = False,
    dated: bool | None = None,
) -> Verdict:
    """The verdict on an answer, given the right number and the number of each slip. A copy of
    another cell's number counts only if nothing else explains it."""
    how, number = NUMBER, answer
    if isinstance(answer, str):
        number = _value(read(Constant(answer)))
        how = int(_value(kind(Constant(answer), Constant(number))))
        if isinstance(number, str):
            return Verdict(WRONG, kind=how)
    rule = Rule(_at_once, Constant(number), Constant(right), whole, dated=dated)
    apart = {slip: _value(rule.apart(Constant(value))) for slip, value in wrong.items()}
    nearest = min(apart.values(), default=NONE)
    mark = int(_value(rule.mark(Constant(nearest))))
    return Verdict(mark, named(apart, nearest, right) if mark == SLIP else (), how)


def named(apart: Mapping[str, float], nearest: float, right: float) -> tuple[str, ...]:
    """The slips that are as near as the nearest."""
    found = tuple(slip for slip, off in apart.items() if off <= nearest + exact(right))
    return tuple(slip for slip in found if slip not in BESIDE) or found


def _at_once(_: str, step: Expression) -> Expression:
    return Constant(_value(step))


def _value(step: Expression) -> Any:
    return step.value(_no_cells)


def _no_cells(_: Any) -> Any:
    raise LookupError("an answer is judged only by its number")
