"""The texts of a step as cells: drawn by random numbers from the table of the model, and rewarded.

A text begins at beginning 1. A random number below the probability of D writes D; below that of D
or C, C; else END. The texts stay for as many updates as the reader chose, and then others follow.

A word reads the rows of its own beginnings alone. If it reads the whole table, LibreOffice 7.4 takes
the words for a circular reference when it computes all cells (Err:523).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_

import numpy as np

from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import (
    AND,
    COUNTIF,
    IF,
    INDEX,
    INT,
    LN,
    MAX,
    MOD,
    SQRT,
    SUM,
    VARP,
)
from cellformer.engine.cells.graph import Graph
from cellformer.engine.learning import policy
from cellformer.workbooks.learn import clock
from cellformer.workbooks.reward import game, learning
from cellformer.workbooks.reward.game import CREDIT, DEBIT, END, LENGTH, TEXTS, WORDS

GRID = TEXTS, LENGTH
EACH = TEXTS, 1  # a number for each text


def add(g: Graph, begun: learning.Weights) -> None:
    """Add the texts, their rewards and advantages, and make the step read them; at first those that
    the weights `begun` write."""
    numbers, reads = game.random_numbers(0), learning.one_text(begun)
    g.input("words", WORDS)
    g.input("random", numbers.reshape(game.STEPS, -1))
    ids = learning.written(reads, begun, numbers[0])
    before = learning.probabilities(reads, begun, ids)
    for name, values in learning.inputs(ids, game.BALANCED, before).items():
        g.fill(name, values)
    _draw(g)
    _reward(g)
    _read(g)


def _draw(g: Graph) -> None:
    """Add the random numbers of this step, and the words that they draw."""
    made, updates = clock.steps(g), g["updates.used"][0, 0].fixed
    batch = MOD(INT(made / updates), game.STEPS) + 1
    row, numbers = g.table("batch", (1, 1), lambda i, j: batch)[0, 0].fixed, g["random"].area.fixed
    probs = g["all.probs"].area.fixed
    g.follow("policy.fresh", lambda i, j: IF(MOD(made, updates) == 0, 1, 0))
    fresh = g["policy.fresh"][0, 0].fixed
    kept = g.input("kept.texts", np.zeros(GRID))

    def begun(k: int, t: int) -> Expression:
        if not t:
            return expression(1)
        before, word = g["beginning"][k, t - 1], g["texts"][k, t - 1]
        return IF(before == 0, 0, IF(word == END, 0, 2 * before + word))

    def sure(n_words: int) -> Callable[[int, int], Expression]:
        def cell(k: int, t: int) -> Expression:
            first = 2**t  # of the beginnings with t entries: as many follow
            at = MAX(1, g["beginning"][k, t] - first + 1)
            rows = probs[first - 1 : 2 * first - 1, :]
            shares = [INDEX(rows, at, word + 1) for word in range(n_words)]
            return shares[0] if n_words == 1 else shares[0] + shares[1]

        return cell

    def word(k: int, t: int) -> Expression:
        number = g["chance"][k, t]
        found = IF(number < g["below.D"][k, t], DEBIT, IF(number < g["below.C"][k, t], CREDIT, END))
        return IF(g["beginning"][k, t] == 0, END, found)

    g.add_tables(GRID, {
        "chance": lambda k, t: INDEX(numbers, row, k * LENGTH + t + 1),
        "beginning": begun,
        "below.D": sure(1),
        "below.C": sure(2),
        "drawn": word,
        "texts": lambda k, t: IF(fresh == 1, g["drawn"][k, t], kept[k, t]),
        "shown": lambda k, t: _spelt(g, k, t, WORDS),
    })  # fmt: skip


def _spelt(g: Graph, k: int, t: int, words: Sequence[str]) -> Expression:
    """A word of a text; nothing after its end."""
    debit, credit, end = words
    written = g["texts"][k, t]
    return IF(
        g["beginning"][k, t] == 0,
        "",
        IF(written == DEBIT, debit, IF(written == CREDIT, credit, end)),
    )


def _reward(g: Graph) -> None:
    """Add the reward of each text by each name, that of the chosen name, and the advantage."""
    texts, begun = g["texts"], g["beginning"]
    chosen = g["reward.number"][0, 0].fixed

    def spelt(k: int, _: int) -> Expression:
        return reduce(and_, (_spelt(g, k, t, ("D", "C", ".")) for t in range(LENGTH)))

    def rewarded(k: int, kind: int) -> Expression:
        debits, credits = (COUNTIF(texts[k, :], word) for word in (DEBIT, CREDIT))
        ended = texts[k, LENGTH - 1] == END
        last = INDEX(texts[k, :], 1, MAX(1, g["length"][k, 0] - 1))
        balanced = IF(AND(ended, debits == credits, debits > 0), 1, 0)
        by_credit = IF(AND(ended, last == CREDIT), 1, 0)
        return (balanced, by_credit, (debits + credits) / LENGTH)[kind]

    g.add_tables(EACH, {"text": spelt, "length": lambda k, _: COUNTIF(begun[k, :], ">0")})
    g.table("rewards", (TEXTS, len(game.REWARDS)), rewarded)
    own = g.table("reward.of_text", EACH, lambda k, _: INDEX(g["rewards"][k, :], 1, chosen))
    mean = g.table("reward.mean", (1, 1), lambda i, j: SUM(own.area) / TEXTS)[0, 0].fixed
    deviation = g.table("reward.deviation", (1, 1), lambda i, j: SQRT(VARP(own.area)))[0, 0].fixed
    least = deviation + policy.LEAST
    g.table("advantage.of_text", EACH, lambda k, _: (own[k, 0] - mean) / least)


def _read(g: Graph) -> None:
    """Make the tokens, the targets, their shares, the advantages and the surprises of the reference
    follow the texts."""
    texts, begun = g["texts"], g["beginning"]
    before = g["before.probs"].area.fixed

    def token(n: int, _: int) -> Expression:
        k, t = divmod(n, LENGTH)
        return texts[k, t - 1] + 0 if t else expression(END)

    def share(n: int, _: int) -> Expression:
        k, t = divmod(n, LENGTH)
        return IF(begun[k, t] == 0, 0, 1 / g["length"][k, 0] / TEXTS)

    def reference(n: int, _: int) -> Expression:
        k, t = divmod(n, LENGTH)
        return IF(begun[k, t] == 0, 0, -LN(INDEX(before, MAX(1, begun[k, t]), texts[k, t] + 1)))

    g.follow_all({
        "tokens": token,
        "loss.targets": lambda n, _: texts[divmod(n, LENGTH)] + 0,
        "loss.share": share,
        "policy.reference": reference,
        "advantage": lambda n, _: g["advantage.of_text"][n // LENGTH, 0] + 0,
    })  # fmt: skip
