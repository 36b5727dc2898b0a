"""Ranks in a large vocabulary, found by binary search instead of sorting.

All logits are different (see `choosing`), and the one of rank m is LARGE(logits, m): the first m
words together have the probabilities of all larger logits, and its own. The last rank with at most
a given probability before it is found by halving: steps of ..., 4, 2 and 1 ranks.
"""

from collections.abc import Callable
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import IF, LARGE, MATCH, MAX, MIN, SUMPRODUCT, N
from cellformer.engine.cells.graph import Graph

ONE = ("token", "")
STEPS = ("token", "step")
MOST = 0.999999999999  # of a random number


def in_range(number: Expression) -> Expression:
    """A typed random number, forced into [0, 1)."""
    return MAX(0, MIN(MOST, N(number)))


class Ranks:
    """Tables over the ranked `choice.logits` of a graph, and the probabilities of its words, or
    multiples of them: each [n_tokens, n_words]."""

    def __init__(self, at: Graph, probs: Block):
        self.graph, self.logits, self.probs = at, at["choice.logits"], probs
        self.n_tokens, self.n_words = self.logits.shape

    def one(self, name: str, formula: Callable[[int], Any]) -> Block:
        """A table with one number for each token: [n_tokens, 1]."""
        return self.graph.table(name, (self.n_tokens, 1), lambda t, _: formula(t), ONE)

    def logit(self, t: int, rank: Any) -> Expression:
        """The logit of a rank."""
        return LARGE(self.logits[t, :].as_range, rank)

    def hold(self, t: int, logit: Any) -> Expression:
        """The probability of all words with at least this logit."""
        logits, probs = self.logits[t, :].as_range, self.probs[t, :].as_range
        return SUMPRODUCT((logits >= logit) * probs)

    def with_at_least(self, t: int, share: Expression) -> Expression:
        """The number of words with at least this probability."""
        return SUMPRODUCT((self.probs[t, :].as_range >= share) * 1)

    def at_most(self, top_k: Block) -> Expression:
        """The number of words that top-k keeps."""
        k = top_k[0, 0]
        return IF(k == 0, self.n_words, MIN(k, self.n_words))

    def count(self, name: str, limit: Callable[[int], Expression], strictly: bool) -> Block:
        """The number of first words that together have at most a given probability, or
        `strictly` less: [n_tokens, n_steps], with the result in the last column. Rows are fixed,
        as in `choosing`."""
        at, n_steps = self.graph.at(name), self.n_words.bit_length()
        shape = self.n_tokens, n_steps

        def found(t: int, s: int) -> Expression:
            return count[t, s - 1].fixed_rows if s else expression(0)

        def counts(t: int, s: int) -> Expression:
            held = holds[t, s].fixed_rows
            fits = held < limit(t) if strictly else held <= limit(t)
            return IF(fits, tried[t, s].fixed_rows, found(t, s))

        tried = at.table(
            "tried",
            shape,
            lambda t, s: MIN(self.n_words, found(t, s) + (1 << (n_steps - 1 - s))),
            STEPS,
        )
        value = at.table("value", shape, lambda t, s: self.logit(t, tried[t, s].fixed_rows), STEPS)
        holds = at.table("holds", shape, lambda t, s: self.hold(t, value[t, s].fixed_rows), STEPS)
        count = at.table("count", shape, counts, STEPS)
        return count

    def drawn(
        self, whole: Block, top_k: Block, top_p: Block, likely: Block, random: Block
    ) -> Block:
        """The ids that the random numbers fall on, among the `likely` words that top-k and top-p
        keep of `whole`."""
        last = self.n_words.bit_length() - 1

        def share(t: int) -> Expression:
            """The limit of top-p; a limit of all is raised above all, so that rounding does not
            matter."""
            return IF(top_p[0, 0] < 1, top_p[0, 0], 2) * whole[t, 0]

        less = self.count("top_p", share, strictly=True)
        n_kept = self.one(
            "n_kept", lambda t: MIN(self.at_most(top_k), less[t, last] + 1, MAX(1, likely[t, 0]))
        )
        held = self.one("held", lambda t: self.hold(t, self.logit(t, n_kept[t, 0])))
        self.one("total", lambda t: held[t, 0] / whole[t, 0])
        before = self.count(
            "draw", lambda t: in_range(random[t + 1, 0]) * held[t, 0], strictly=False
        )
        rank = self.one("rank", lambda t: MIN(n_kept[t, 0], before[t, last] + 1))
        value = self.one("drawn_value", lambda t: self.logit(t, rank[t, 0]))
        return self.one("drawn", lambda t: MATCH(value[t, 0], self.logits[t, :].as_range, 0) - 1)
