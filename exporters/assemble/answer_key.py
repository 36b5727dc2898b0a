"""The hidden sheet Key of a workbook of exercises: the right answers and slips for the check.

A row for each yellow cell: the right number, what was typed, the steps of the rule of
`cellformer.engine.studies.answers`, what each slip leads to, how far off that is, and what to say.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import ABS, CHOOSE, IF, IFERROR, ISNUMBER, MAX, MID, MIN, SUM
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.texts import cut
from cellformer.engine.studies import answers as rule
from cellformer.engine.studies import exercises
from cellformer.engine.studies.answers import BESIDE, EXACT, Rule, Verdict
from cellformer.engine.studies.slips import TOLD, Slip
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.composer import Composer, Table
from cellformer.exporters.compose.sentences import sentence

KEY = "Key"
PLAIN, KIND, NUMBER, FIRST_STEP = 3, 4, 5, 6  # columns: how it was typed, and the rule's steps
NEAREST, MARK, GOOD, JUDGED, SAID = range(14, 19)
FIRST_SLIP = 20  # the column of the slips' numbers; then their distances, then their texts
LONGEST_TOLD = 300  # characters of the slips that are named

BLANK = "type a number, or a formula that starts with ="
A_TEXT = "this is a text: type a number, or a formula that starts with ="
AN_ERROR = "this formula gives an error: check the cells that it uses, and the sizes of its ranges"
A_FRACTION = "this is a text: start a fraction with =, for example =2/6"
TYPED_AS = {
    rule.MINUS: "you typed a text; with the minus sign of the keyboard: {said}",
    rule.WITH_COMMA: "you typed a text; with a point, not a comma: {said}",
    rule.AS_TEXT: "you typed a text; as a number: {said}",
}
RIGHT = "right"
ROUNDED = "right, but rounded; other cells use all decimals"
FEW = "right, but type at least two digits"
NOT_YET = "not yet: {slips}"
BETWEEN = " or "
NO_SLIP = "not yet: look at the hints; other cells use the right number here"
BEFORE = "not yet: the formula uses a yellow cell that is not right; fill in that cell first"
AS_BUILT = "right for the first inputs only: type a formula, so that the answer follows changes"
MISTAKES = {
    rule.LARGE: "the number is 100 times too large: type % after the number, or divide by 100",
    rule.SMALL: "the number is 100 times too small: did you type an extra %?",
    rule.COMMA: "the digits are right, but the decimal point is wrong: did you type a comma?",
    rule.POINT: "the digits are right, but the decimal point is wrong",
    rule.SIGN: "the sign is wrong",
    rule.DATE: "is this a date? Start a fraction with =, for example =2/6",
    rule.CLOSE: "almost right, but the last digits are wrong: compute with all decimals",
}
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
    whole: bool  # whether its block has whole numbers alone

    def told(self, slip: Slip) -> str:
        """The sentence for a slip: on the sheet, rows may be columns."""
        return TOLD[OTHER.get(slip.kind, slip.kind) if self.turned else slip.kind]

    @property
    def name(self) -> str:
        """The name of the cell, as the engine has it."""
        return f"{self.block.name}[{self.i},{self.j}]"

    def reads(self, other: "Answer") -> bool:
        """Whether its formula reads another yellow cell."""
        return exercises.reads(
            *(exercises.Tried(a.block, (a.i, a.j), frozenset(), 0.0) for a in (self, other))
        )


def told(a: Answer, verdict: Verdict, typed: float | str) -> str:
    """The teacher's message about an answer that is not right."""
    if verdict.kind in (rule.TEXT, rule.FRACTION):
        return f"a text: {cut(str(typed), 30)}"
    kinds = {slip.kind: a.told(slip) for slip in a.slips}
    known = {
        **dict.fromkeys((rule.RIGHT, rule.ROUNDED), RIGHT),
        **MISTAKES,
        rule.FEW: FEW,
        rule.SLIP: BETWEEN.join(kinds[kind] for kind in verdict.slips),
    }
    wrong = f"wrong: {typed if isinstance(typed, str) else f'{typed:.6g}'}"
    said = known.get(verdict.mark, wrong)
    return TYPED_AS[verdict.kind].format(said=said) if verdict.kind in TYPED_AS else said


class AnswerKey:
    """The rows of the sheet Key, one for each yellow cell, as columns that other formulas read:
    the right number, whether the answer is right, what is said of it."""

    def __init__(self, book: Book, key: Composer, answers: Sequence[Answer]):
        self.book, self.key, self.answers = book, key, answers
        self.n, self.top, self.rows = len(answers), key.cursor + 2, range(len(answers))
        self.most = max(len(a.slips) for a in answers)
        self._steps: dict[str, Table] = {}
        self._label()
        copies = [book.blanks[a.block.name].copy.cell(a.i, a.j) for a in answers]
        self.right = self._column("right", 1, [key.sheet[at] for at in copies])
        typed = [a.cell for a in answers]
        texts = [IF(ISNUMBER(x), "", rule.read(x)) for x in typed]
        self.plain = self._column("plain", PLAIN, [IFERROR(x, "") for x in texts], "text")
        self.kind = self._column(
            "kind", KIND, [rule.kind(x, self.plain[k]) for k, x in enumerate(typed)]
        )
        # not N, which gives the date in the text 2/6 in gnumeric
        read = [IF(ISNUMBER(self.plain[k]), self.plain[k], x) for k, x in enumerate(typed)]
        numbers = [IF(ISNUMBER(x), x, 0) for x in read]
        self.number = self._column("number", NUMBER, [IFERROR(x, 0) for x in numbers])
        self.rules = [self._rule(k) for k in self.rows]
        self.apart = self._slips()
        self.nearest = self._column("nearest", NEAREST, [MIN(self.apart[k, :]) for k in self.rows])
        self.mark = self._column(
            "mark", MARK, [one.mark(self.nearest[k]) for k, one in enumerate(self.rules)]
        )
        good = [IF(self.mark[k] <= rule.ROUNDED, 1, 0) for k in self.rows]  # rounded or not
        good = [IF(self.kind[k] == rule.NUMBER, good[k], 0) for k in self.rows]
        self.good = self._column("good", GOOD, good)
        self.judged = self._column("judged", JUDGED, [self._judged(k) for k in self.rows], "text")
        self.said = self._column("said", SAID, [self._told(k) for k in self.rows], "text")
        key.cursor = self.top + self.n

    def _label(self) -> None:
        """Add the heads of the columns, and the inputs: names, values as built, slips in words."""
        sheet, top = self.key.sheet, self.top
        sheet.put(top - 2, 0, "Each yellow cell", "heading")
        self.key.heads_at((top - 1, 0), "cell", "right", "as built", "as a text", "kind", "number")
        self.key.heads_at(
            (top - 1, NEAREST), "nearest slip", "mark", "right?", "the number", "said"
        )
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

    def _rule(self, k: int) -> Rule:
        """The steps of an answer, each in a cell of its row."""

        def put(name: str, step: Expression) -> Expression:
            if name not in self._steps:
                at = self.top, FIRST_STEP + len(self._steps)
                self.key.sheet.hold(at[0] - 1, at[1], name, "block")
                self._steps[name] = self.key.table(name, at, (self.n, 1))
            return self._steps[name].put(k, 0, step, "step")

        return Rule(put, self.number[k], self.right[k], self.answers[k].whole, self.built[k])

    def _slips(self) -> Area:
        """Add the number of each slip; gives the distance of the answer from the slips that it
        fits."""
        slips = self.key.table("slips", (self.top, FIRST_SLIP), (self.n, self.most))
        apart = self.key.table("apart", (self.top, FIRST_SLIP + self.most), (self.n, self.most))
        for k, a in enumerate(self.answers):
            for s in range(self.most):
                away = expression(rule.NONE)
                if s < len(a.slips):
                    wrong = slips.put(k, s, IFERROR(a.slips[s].formula, ""), "step")
                    away = self.rules[k].apart(wrong)
                apart.put(k, s, away + 0, "step")
        return apart.area

    def _told(self, k: int) -> Expression:
        """The message about an answer: about its number, and how it was typed."""
        judged, kind = self.judged[k], self.kind[k]
        kinds = [sentence(text) for text in (BLANK, A_TEXT, AN_ERROR, A_FRACTION)]
        kinds += [sentence(text, said=judged) for text in TYPED_AS.values()]
        return IF(kind == rule.NUMBER, judged & "", CHOOSE(kind, *kinds))

    def _judged(self, k: int) -> Expression:
        """The message about the number."""
        before = [self.good[m] for m in self.rows if self.answers[k].reads(self.answers[m])]
        rest = sentence(NO_SLIP)
        if before:
            rest = IF(SUM(*before) < len(before), sentence(BEFORE), rest)
        known = {
            **{rule.RIGHT: sentence(RIGHT), rule.ROUNDED: sentence(ROUNDED)},
            **{rule.FEW: sentence(FEW), rule.MOVED: sentence(AS_BUILT)},
            **{mark: sentence(NOT_YET, slips=worded(text)) for mark, text in MISTAKES.items()},
            **{rule.SLIP: self._named(k), rule.WRONG: rest},
        }
        return CHOOSE(self.mark[k], *(known[mark] for mark in sorted(known)))

    def _named(self, k: int) -> Expression:
        """The slips that lead to the number typed, or as near to it as the nearest."""
        most = self.nearest[k] + EXACT * MAX(1, ABS(self.right[k]))
        own, beside = expression(""), expression("")
        for s, slip in enumerate(self.answers[k].slips):
            part = IF(self.apart[k, s] <= most, self.texts[k, s], "")
            if slip.kind in BESIDE:
                beside = beside & part
            else:
                own = own & part
        joined = IF(own == "", beside, own)
        return sentence(NOT_YET, slips=MID(joined, len(worded(BETWEEN)) + 1, LONGEST_TOLD))
