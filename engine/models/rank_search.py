"""Ranks of many words, found without sorting them: for large vocabularies.

No two logits are the same (see `choosing`), and that of rank m is LARGE(logits, m): the first m
words hold the probabilities of all larger logits, and its own. The last rank before which no
more than so much stands is found by halving: it tries steps of ..., 4, 2 and 1 ranks.
"""

from collections.abc import Callable
from typing import Any

from engine.cells.block import Block
from engine.cells.expression import Expression, expression
from engine.cells.functions import IF, LARGE, MATCH, MAX, MIN, SUMPRODUCT, N
from engine.cells.graph import Graph

ONE = ("token", "")
STEPS = ("token", "step")
MOST = 0.999999999999  # of a random number


def in_range(number: Expression) -> Expression:
    """A random number, from 0 to below 1 whatever is typed for it."""
    return MAX(0, MIN(MOST, N(number)))


class Ranks:
    """Tables over the ranked `choice.logits` and `probs` [n_tokens, n_words] of a graph."""

    def __init__(self, at: Graph):
        self.graph, self.logits, self.probs = at, at["choice.logits"], at["probs"]
        self.n_tokens, self.n_words = self.logits.shape

    def one(self, name: str, formula: Callable[[int], Any]) -> Block:
        """A table with a number for each token: [n_tokens, 1]."""
        return self.graph.table(name, (self.n_tokens, 1), lambda t, _: formula(t), ONE)

    def logit(self, t: int, rank: Any) -> Expression:
        """The logit of a rank."""
        return LARGE(self.logits[t, :].as_range, rank)

    def hold(self, t: int, logit: Any) -> Expression:
        """How much probability the first words hold, the last of which has that logit."""
        logits, probs = self.logits[t, :].as_range, self.probs[t, :].as_range
        return SUMPRODUCT((logits >= logit) * probs)

    def at_most(self, top_k: Block) -> Expression:
        """How many words top-k keeps."""
        k = top_k[0, 0]
        return IF(k == 0, self.n_words, MIN(k, self.n_words))

    def count(self, name: str, limit: Callable[[int], Expression], strictly: bool) -> Block:
        """How many of the first words together hold no more than a limit, or `strictly` less:
        [n_tokens, n_steps], of which the last column is the result. Rows are fixed as where words
        are ranked."""
        at, n_steps = self.graph.at(name), self.n_words.bit_length()
        shape = self.n_tokens, n_steps

        def found(t: int, s: int) -> Expression:
            return count[t, s - 1].fixed_rows if s else expression(0)

        def tries(t: int, s: int) -> Expression:
            return MIN(self.n_words, found(t, s) + (1 << (n_steps - 1 - s)))

        def counts(t: int, s: int) -> Expression:
            held = holds[t, s].fixed_rows
            fits = held < limit(t) if strictly else held <= limit(t)
            return IF(fits, tried[t, s].fixed_rows, found(t, s))

        def values(t: int, s: int) -> Expression:
            return self.logit(t, tried[t, s].fixed_rows)

        def shares(t: int, s: int) -> Expression:
            return self.hold(t, value[t, s].fixed_rows)

        tried = at.table("tried", shape, tries, STEPS)
        value = at.table("value", shape, values, STEPS)
        holds = at.table("holds", shape, shares, STEPS)
        count = at.table("count", shape, counts, STEPS)
        return count

    def drawn(self, whole: Block, top_k: Block, top_p: Block, random: Block) -> Block:
        """The ids that the random numbers fall on, among what top-k and top-p keep of `whole`."""
        last = self.n_words.bit_length() - 1

        def share(t: int) -> Expression:
            """What less than top-p is; where that is all, more than all, whatever is rounded."""
            return IF(top_p[0, 0] < 1, top_p[0, 0] * whole[t, 0], 2)

        def keeps(t: int) -> Expression:
            return MIN(self.at_most(top_k), less[t, last] + 1)

        def holds(t: int) -> Expression:
            return self.hold(t, self.logit(t, n_kept[t, 0]))

        def drawn_at(t: int) -> Expression:
            return in_range(random[t + 1, 0]) * held[t, 0]

        less = self.count("top_p", share, strictly=True)
        n_kept = self.one("n_kept", keeps)
        held = self.one("held", holds)
        self.one("total", lambda t: held[t, 0] / whole[t, 0])
        before = self.count("draw", drawn_at, strictly=False)
        rank = self.one("rank", lambda t: MIN(n_kept[t, 0], before[t, last] + 1))
        value = self.one("drawn_value", lambda t: self.logit(t, rank[t, 0]))
        return self.one("drawn", lambda t: MATCH(value[t, 0], self.logits[t, :].as_range, 0) - 1)
