"""The hidden sheet Key of a workbook of exercises: what each answer is compared with.

A row for each yellow cell: the right number, what was typed, how far it is off, what each slip
leads to, how far off that is, and what to say. The nearest decides, as in
`engine.studies.exercises.judged`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.cells.block import Block
from engine.cells.expression import Area, Expression, expression
from engine.cells.functions import ABS, AND, IF, IFERROR, INT, ISNUMBER, MAX, MID, MIN, OR, SUM, N
from engine.cells.language import worded
from engine.studies import exercises
from engine.studies.exercises import EXACT
from engine.studies.slips import TOLD, Slip
from exporters.compose.book import Book
from exporters.compose.composer import Composer
from exporters.compose.sentences import sentence

KEY = "Key"
NONE = 9e99  # the distance to a slip that is not there
FIRST_SLIP = 12  # the column of the slips' numbers; then their distances, then their texts
LONGEST_TOLD = 300  # characters of the slips that are named

BLANK = "type a number, or a formula that begins with ="
A_TEXT = "this is a text: type a number, or a formula that begins with ="
AN_ERROR = "this formula gives an error: look at the cells that it names, and the shapes of ranges"
RIGHT = "right"
ROUNDED = "right, rounded; cells that read it use all decimals"
NOT_YET = "not yet: {slips}"
BETWEEN = " or "
NO_SLIP = "not yet: look at the hints; cells that read it use the right number"
A_DATE = "this became a date: begin a fraction with =, as in =2/6"
DATES = 40_000, 60_000  # the numbers of days that programs make of 2/6
BEFORE = "not yet: it reads another yellow cell, which is not right yet; fill that in first"
AS_BUILT = "this was right for the inputs as built: a formula would follow when they change"
OTHER = {"row": "column", "column": "row", "row before": "column before"}
OTHER |= {"column before": "row before"}


@dataclass(frozen=True)
class Answer:
    """One yellow cell."""

    exercise: int  # its number, from 0
    block: Block
    i: int
    j: int
    cell: Area  # of the sheet
    right: Expression
    slips: Sequence[Slip]
    turned: bool  # whether the block's rows run across the sheet

    def told(self, slip: Slip) -> str:
        """The sentence for a slip: on the sheet, rows may be columns."""
        return TOLD[OTHER.get(slip.kind, slip.kind) if self.turned else slip.kind]

    @property
    def name(self) -> str:
        """The name of the cell, as the engine has it."""
        return f"{self.block.name}[{self.i},{self.j}]"

    def reads(self, other: "Answer") -> bool:
        """Whether its formula reads another yellow cell."""
        ends = [exercises.Tried(a.block, (a.i, a.j), frozenset(), 0.0) for a in (self, other)]
        return exercises.reads(*ends)


class AnswerKey:
    """The rows of the sheet Key, one for each yellow cell, as columns that other formulas read."""

    names: Area
    right: Area  # the right number
    good: Area  # 1 if the answer is right
    said: Area  # what is said of it

    def __init__(self, book: Book, key: Composer, answers: Sequence[Answer]):
        self.book, self.key, self.answers = book, key, answers
        self.n, self.top = len(answers), key.cursor + 2
        self.most = max(len(a.slips) for a in answers)
        self._label()
        copies = [self._copied(a) for a in answers]
        self.right = self._column("right", 1, copies)
        typed = [a.cell for a in answers]
        kinds = [IFERROR(IF(ISNUMBER(x), 0, IF(x == "", 1, 2)), 3) for x in typed]
        self.kind = self._column("kind", 3, kinds)
        self.number = self._column("number", 4, [IFERROR(N(x), 0) for x in typed])
        self.off = self._column("off", 5, [ABS(self.number[k] - self.right[k]) for k in self.rows])
        self.near = self._column("rounding", 6, [_tolerance(self.right[k]) for k in self.rows])
        self.apart = self._slips()
        self.nearest = self._column("nearest", 7, [MIN(self.apart[k, :]) for k in self.rows])
        self.slip = self._column("slip", 8, [self._is_slip(k) for k in self.rows])
        self.good = self._column("good", 9, [self._is_right(k) for k in self.rows])
        self.said = self._column("said", 10, [self._told(k) for k in self.rows], "text")
        key.cursor = self.top + self.n

    @property
    def rows(self) -> range:
        """The numbers of the rows, from 0."""
        return range(self.n)

    def _label(self) -> None:
        """Add the heads of the columns, and what is typed: names, values as built, slips in
        words."""
        sheet, top = self.key.sheet, self.top
        sheet.put(top - 2, 0, "Each yellow cell", "heading")
        heads = ("cell", "right", "as built", "kind", "number", "off", "rounding", "nearest slip")
        self.key.heads_at((top - 1, 0), *heads, "slip", "right?", "said", style="block")
        self.names, self.built = (sheet[top : top + self.n, col] for col in (0, 2))
        texts = FIRST_SLIP + 2 * self.most
        self.texts = sheet[top : top + self.n, texts : texts + self.most]
        for k, a in enumerate(self.answers):
            sheet.hold(top + k, 0, a.name, "text")
            sheet.put(top + k, 2, float(self.book.clean(a.block[a.i, a.j])), "step")
            for s, slip in enumerate(a.slips):
                sheet.hold(top + k, texts + s, worded(BETWEEN) + worded(a.told(slip)), "text")

    def _column(
        self, name: str, col: int, cells: Sequence[Expression], style: str = "step"
    ) -> Area:
        return self.key.show(name, (self.top, col), lambda k, _: cells[k], style, (self.n, 1))

    def _copied(self, a: Answer) -> Area:
        """The cell of the copy that has the right number."""
        copy = self.book.blanks[a.block.name].copy
        return self.key.sheet[copy.cell(a.i, a.j)]

    def _slips(self) -> Area:
        """Add what each slip leads to; gives how far each is from what was typed."""
        slips = self.key.table("slips", (self.top, FIRST_SLIP), (self.n, self.most))
        apart = self.key.table("apart", (self.top, FIRST_SLIP + self.most), (self.n, self.most))
        for k, a in enumerate(self.answers):
            for s in range(self.most):
                away: Any = NONE
                if s < len(a.slips):
                    wrong = slips.put(k, s, IFERROR(a.slips[s].formula, ""), "step")
                    away = IFERROR(ABS(self.number[k] - wrong), NONE)
                apart.put(k, s, expression(away) + 0, "step")
        return apart.area

    def _is_slip(self, k: int) -> Expression:
        """1 if a slip is nearer than the right number."""
        closer = self.nearest[k] < self.off[k]
        near = self.nearest[k] <= _tolerance(self.number[k])
        right, off = self.right[k], self.off[k]
        beyond = OR(off > _as_shown(right), self.nearest[k] <= _exact(right))
        wrong = AND(self.kind[k] == 0, off > _exact(right), beyond)
        return IF(AND(wrong, closer, near), 1, 0)

    def _is_right(self, k: int) -> Expression:
        """1 for the right number, rounded or not."""
        return IF(AND(self.kind[k] == 0, self.slip[k] == 0, self.off[k] <= self.near[k]), 1, 0)

    def _told(self, k: int) -> Expression:
        """What is said of an answer."""
        right, built = self.right[k], self.built[k]
        number = IF(self.off[k] <= _exact(right), sentence(RIGHT), sentence(ROUNDED))
        moved = AND(ABS(right - built) > _exact(built), ABS(self.number[k] - built) <= self.near[k])
        before = [self.good[m] for m in self.rows if self.answers[k].reads(self.answers[m])]
        rest = sentence(NO_SLIP)
        if before:
            rest = IF(SUM(*before) < len(before), sentence(BEFORE), rest)
        first, last = DATES
        typed_as = self.number[k]
        dated = AND(typed_as == INT(typed_as), typed_as > first, typed_as < last)
        rest = IF(dated, sentence(A_DATE), rest)
        wrong = IF(moved, sentence(AS_BUILT), IF(self.slip[k] == 1, self._named(k), rest))
        typed = IF(self.good[k] == 1, number, wrong)
        kind = self.kind[k]
        other = IF(kind == 1, worded(BLANK), IF(kind == 2, worded(A_TEXT), worded(AN_ERROR)))
        return IF(kind == 0, typed, other)

    def _named(self, k: int) -> Expression:
        """The slips that lead to the number typed, or as near to it as the nearest."""
        most = self.nearest[k] + _exact(self.right[k])
        own, beside = expression(""), expression("")
        for s, slip in enumerate(self.answers[k].slips):
            part = IF(self.apart[k, s] <= most, self.texts[k, s], "")
            if slip.kind in exercises.BESIDE:
                beside = beside & part
            else:
                own = own & part
        joined = IF(own == "", beside, own)
        return sentence(NOT_YET, slips=MID(joined, len(worded(BETWEEN)) + 1, LONGEST_TOLD))


def _exact(right: Expression) -> Expression:
    """As `exercises.exact`."""
    return EXACT * MAX(1, ABS(right))


def _tolerance(right: Expression) -> Expression:
    """As `exercises.tolerance`."""
    return MAX(MIN(0.005, 0.05 * ABS(right)) + EXACT, _as_shown(right))


def _as_shown(right: Expression) -> Expression:
    """As `exercises.shown`."""
    return 0.0005 * MAX(1, ABS(right)) + EXACT
