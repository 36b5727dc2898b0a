"""adder: a transformer of 228 weights that adds, beside the + of a spreadsheet.

Type two numbers of up to ten digits. The model writes their sum digit by digit, ones first, and
each digit is what it finds most likely after those before. Every weight is on the same screen:
change one, and the sum breaks. Eleven digits show what it has learnt, and what it has not.

`learning` trained it, on sums alone; `cellformer train adder` repeats that.
"""

from collections.abc import Iterator

import numpy as np

from cellformer.engine import Model
from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import ABS, MAX, SUM
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.learning.training import Progress
from cellformer.engine.models import checkpoint
from cellformer.engine.models.forward import Forward
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story
from cellformer.workbooks.adder import learning, machine, proof_sheet, sheets, sums, trained
from cellformer.workbooks.adder.trained import HEADS

TOPIC, AFTER, LEVEL = "A first model", "", 1
TITLE = "adder: a transformer of 228 weights that adds"
PARTS = ("proof",)  # options of `build` and of `book`
HARD = (  # sums that carry far, or not at all
    (0, 0), (9999999999, 1), (1, 9999999999), (9999999999, 9999999999), (5555555555, 4444444445),
    (5555555555, 5555555555), (9090909090, 909090910), (1234567890, 9876543210), (1000000000, 9000000000),
    (9999999999, 0),
)  # fmt: skip
FORM = "write ten digits of each number, ones first: 12 + 34 is 021000000000043000000000"
N_SEEN = learning.RECIPE.steps * learning.RECIPE.batch  # in training
N_FRESH, FRESH = 10_000, 2026  # sums that no training draws, and their random seed

save, is_part = checkpoint.save, checkpoint.is_part
transformer = trained.load


def book(proof: bool = False) -> Book:
    """The workbook, with the proof if it is asked for."""
    g = machine.build(transformer())
    w = Workbook("adder-proof" if proof else "adder", g)
    sheets.add_sheet(w, g)
    sheets.looks_sheet(w, g)
    sheets.inside_sheet(w, g)
    told = story(w)
    if proof:
        proof_sheet.add(w, g)
        told = proof_sheet.told_on_start(told)
    checks(w, g, proof)
    return w.done(told)


def train(seed: int, steps: int | None = None) -> Iterator[Progress | Model]:
    """Each step's progress and, last, the trained model."""
    yield from (
        step if isinstance(step, Progress) else trained.model(step)
        for step in learning.learn(seed, steps or learning.RECIPE.steps)
    )


def figures(model: Model) -> list[tuple[str, str]]:
    """The number of sums that a model gets right: fresh ones, and hard ones."""
    rows = {f"of {N_FRESH:,} fresh sums": fresh(), f"of {len(HARD)} hard sums": hard()}
    counted = [(text, f"{trained.right(model, ids).sum():,} right") for text, ids in rows.items()]
    return [*counted, ("weights", f"{sum(w.size for w in model.weights.values())}")]


def fresh() -> np.ndarray:
    """Sums of numbers with any ten digits, leading zeros included: [n, LENGTH]."""
    rng = np.random.default_rng(FRESH)
    return sums.tokens(*(rng.integers(0, 10, (N_FRESH, sums.PLACES)) for _ in range(2)))


def hard() -> np.ndarray:
    """The hard sums: [n, LENGTH]."""
    return sums.tokens(*(sums.digits(numbers) for numbers in zip(*HARD, strict=True)))


def checks(w: Workbook, g: Forward, proof: bool) -> None:
    """Claims that hold for any typed numbers and weights."""
    shares = [SUM(g[f"{head}.pattern"][:, : machine.N_TOKENS].as_range) for head in HEADS]
    gap = MAX(*[ABS(total - machine.N_TOKENS) for total in shares])
    tokens = g["tokens"].area.as_range
    by_hand: Expression = ABS(
        machine.number(g["right"], 0)
        - machine.number(g["digits"], 0)
        - machine.number(g["digits"], 1)
    )
    rows = [
        ("the attention weights of one token in one head sum to 1", gap < NEAR),
        ("every token is a digit", MAX(tokens) - 9 < NEAR),
        ("adding digit by digit with carries gives the same sum as +", by_hand < NEAR),
    ]  # fmt: skip
    bound = "on Proof, the lead in the typed sum is at least the bound of its case"
    w.checks([*rows, (bound, proof_sheet.holds(g))] if proof else rows)


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    typed, found = w["typed"], w["sums"]
    return Story(
        title=TITLE,
        source="The model was trained for this workbook, only on sums. The contest "
        "AdderBoard (2026) asks for the smallest model that adds.",
        about=[
            "A spreadsheet adds with +. Here a transformer adds. Chatbots use the same kind of "
            "language model, with billions of numbers.",
            "This model has only 228 numbers. The model reads the digits of two numbers, and "
            "then predicts the sum, digit by digit.",
            worded(
                "Nobody told the model how to add. The model was trained on {n:,} sums. After "
                "every few sums, its weights moved a little towards the correct digits.",
                n=N_SEEN,
            ),
            "Why this matters: you can check every answer with +. You also see what the model "
            "has learnt: where to look, and a formula for the carry.",
            "A proof shows that the model is right for all sums of two numbers of up to ten "
            "digits. But the model has not learnt what a number is: with eleven digits, it "
            "fails.",
            "What to do: open the sheet Add, type two numbers in the yellow cells, and follow "
            "the carry from right to left. These steps take a minute.",
        ],
        look=[
            "The sheet Add shows two numbers and their sum (from the model, and from +). The "
            "sheet also shows how certain the model is of each digit, and all weights.",
            "On the sheet Add, ‘it has added up’ shows the model’s state before each digit is "
            "written. One direction of the model’s vectors holds both digits and the carry.",
            "The sheet Looks shows where heads 0.0 and 0.1 look at each step. With each digit, "
            "the pattern moves by one place. In this way the model adds.",
            "Layers and heads are counted from 0: head 0.1 is number 1 in layer 0.",
            "The sheet Inside shows every formula from the digits to the sum.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘19876543210’, a number of eleven digits: the model writes {then:,.0f}. "
                "The model was trained on at most ten digits.",
                {typed[0, 0]: 19876543210.0},
                found[0, 0],
            ),
            w.suggestion(
                "Type ‘0’ to switch head 0.0 off: the model writes {then:,.0f}.",
                {w[f"{HEADS[0]}.switch"][0, 0]: 0.0},
                found[0, 0],
            ),
            w.suggestion(
                "This cell is one number of the vector for the digit 9. Type ‘0’: the sum "
                "becomes {then:,.0f}.",
                {w["W_E"][9, 0]: 0.0},
                found[0, 0],
            ),
        ],
    )
