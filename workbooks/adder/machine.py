"""The adder as cells: two typed numbers, their digits as tokens, and one pass that writes the sum.

The token after the numbers is the digit that the model found most likely one place before it, and
so on: attention looks back only, so no cell waits for itself.

Numbers of eleven digits fit, too. The model has never seen any: what follows the first number then
stands a place further on, and its heads look beside the digits.
"""

import numpy as np

from cellformer.engine import Model
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, Nth, expression
from cellformer.engine.cells.functions import (
    AND,
    FIND,
    IF,
    IFERROR,
    LEN,
    MATCH,
    MAX,
    MID,
    MIN,
    MOD,
    TRIM,
    added,
)
from cellformer.engine.models.forward import Forward, Readout
from cellformer.workbooks.adder import sums
from cellformer.workbooks.adder.sums import DIGITS, FIRST, LENGTH, PLACES
from cellformer.workbooks.adder.trained import ROOM

TYPED = (9876543210, 123456790)  # a carry at every place
MOST = PLACES + 1  # digits of a number that there is room for
N_TOKENS = ROOM - 1
COLUMNS = MOST + 1  # digits of a sum; the ones stand in the last column, as on paper
# The direction of the stream after attention, [d_model], along which it holds both digits and the
# carry together, and where that begins: least squares over sums. A test fits it again.
PROBE, SHIFT = (0.156, 0.007, 0.040, -0.172), 7.802
ACROSS = ("", "place")
OF_TWO = ("number", "place")
ONE = (1, 1)


def column(place: int) -> int:
    """The column of a place, counted from the ones."""
    return COLUMNS - 1 - place


def build(model: Model) -> Forward:
    """The pass over two typed numbers."""
    ids = sums.tokens(*(sums.digits([x]) for x in TYPED))[0]
    g = model.graph([*ids, *[0] * (N_TOKENS - LENGTH)], Readout(by_head=False))
    read(g)
    likeliest(g)
    follow(g)
    by_hand(g)
    read_out(g)
    numbers = [*(number(g["digits"], i) for i in (0, 1)), number(g["written"], 0)]
    value = g.table("value", (2, 1), lambda i, _: numbers[i])
    both, fits = (numbers[2], value[0, 0] + value[1, 0]), g["fits"]
    g.table("sums", (2, 1), lambda i, _: IF(fits[0, 0] == 1, both[i], ""))
    return g


def read(g: Forward) -> None:
    """Add the entries, their digits, and whether they are two numbers."""
    typed = g.input("typed", np.array(TYPED, dtype=object).reshape(2, 1), kind="table")
    at = g.at("typed")
    text = at.table("text", (2, 1), lambda i, _: TRIM(typed[i, 0] & ""))

    def digit(i: int, j: int) -> Expression:
        size, place = LEN(text[i, 0]), column(j)
        found = IFERROR(FIND(MID(text[i, 0], size - place, 1), DIGITS) - 1, -1)
        return IF(size > place, found, 0)

    seen = at.table("read", (2, COLUMNS), digit, OF_TWO)
    least = at.table("least", (2, 1), lambda i, _: MIN(seen[i, :].as_range))
    sizes = [LEN(text[i, 0]) for i in (0, 1)]
    whole = AND(MIN(*sizes) > 0, MAX(*sizes) <= MOST, MIN(least.area.as_range) >= 0)
    fits = g.table("fits", ONE, lambda *_: IF(whole, 1, 0))
    longer = AND(fits[0, 0] == 1, MAX(*sizes) > PLACES)
    g.table("places", ONE, lambda *_: IF(longer, MOST, PLACES))
    g.table("digits", (2, COLUMNS), lambda i, j: IF(fits[0, 0] == 1, seen[i, j], 0), OF_TWO)


def likeliest(g: Forward) -> None:
    """Add the digit with the largest logit after each token: [n_tokens, 1]."""

    def digit(t: int, _: int) -> Expression:
        logits = g["logits"][t, :].as_range
        return MATCH(MAX(logits), logits, 0) - 1

    g.table("likeliest", (N_TOKENS, 1), digit, ("token", ""))


def follow(g: Forward) -> None:
    """Make the tokens follow the digits, and then the model's choices."""
    places, digits, chosen = g["places"], g["digits"], g["likeliest"]

    def of(size: int, t: int) -> Expression:
        """Token t of a sum of numbers with so many digits."""
        second, end = size + 3, 2 * size + 3
        if 1 <= t <= size:
            return digits[0, column(t - 1)]
        if second <= t < end:
            return digits[1, column(t - second)]
        return chosen[t - 1, 0] if end < t <= end + size + 1 else expression(0)

    def token(t: int, _: int) -> Expression:
        moves = t == PLACES + 1 or PLACES + 2 < t < FIRST + 3 or t >= LENGTH
        usual = of(PLACES, t)
        return IF(places[0, 0] == PLACES, usual, of(MOST, t)) if moves else usual + 0

    g.follow("tokens", token)


def by_hand(g: Forward) -> None:
    """Add the carry into each place and the digit of the sum, as one adds on paper."""
    digits = g["digits"]

    def total(j: int) -> Expression:
        return digits[0, j] + digits[1, j] + carry[0, j]

    def carried(_: int, j: int) -> Expression:
        return expression(0) if j == column(0) else IF(total(j + 1) > PLACES - 1, 1, 0)

    carry = g.table("carry", (1, COLUMNS), carried, ACROSS)
    g.table("right", (1, COLUMNS), lambda _, j: MOD(total(j), PLACES), ACROSS)


def read_out(g: Forward) -> None:
    """Add, for each place, the token after which the model writes it, the digit, its
    probability, and its total."""
    probs, mid, places = g["probs"], g["blocks.0.resid_mid"], g["places"]
    probe, shift = g.input("probe", [PROBE], ("", "d_model")), g.input("probe.shift", SHIFT)

    def total(t: int, _: int) -> Expression:
        along = [mid[t, k] * probe[0, k] for k in range(len(PROBE))]
        return sum(along, expression(shift[0, 0]))

    held = g.table("probe.held", (N_TOKENS, 1), total, ("token", ""))
    best = g.table("best", (N_TOKENS, 1), lambda t, _: MAX(probs[t, :].as_range), ("token", ""))
    row = g.table("row", (1, COLUMNS), lambda _, j: 2 * places[0, 0] + 4 + column(j), ACROSS)

    def at(block: Block, j: int) -> Expression:
        found = Nth(block.area.fixed.as_range, row[0, j])
        return IF(places[0, 0] < column(j), 0, found) if column(j) == MOST else found

    def across(name: str, block: Block) -> None:
        g.table(name, (1, COLUMNS), lambda _, j: at(block, j), ACROSS)

    across("written", g["likeliest"])
    across("sure", best)
    across("total", held)


def number(digits: Block, i: int) -> Expression:
    """The number of a row of digits."""
    rest = (digits[i, column(place)] * 10**place for place in range(1, COLUMNS))
    return added([digits[i, column(0)], *rest])
