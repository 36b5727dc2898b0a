"""Choosing: from logits to the next word, step by step, as tables of cells.

For the word after a token, along its row: the logits, with ties broken for the lower id; the ids by
rank; softmax with temperature over the k likeliest (top-k); how much stands before each rank; the
ranks that top-p keeps; and the rank that the random number falls on. The Sampling page of a
workbook lays these tables out, and `Sampling.choose` evaluates one row of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.cells.block import Block
from engine.cells.errors import InputError
from engine.cells.expression import Expression, Nth, expression
from engine.cells.functions import EXP, IF, INDEX, LARGE, MATCH, SUM
from engine.cells.graph import Graph
from engine.cells.table import Reader, pending
from engine.cells.values import CellError

TIE = 1e-12  # what ids take off their logits, so that no two are alike
MOST = 512  # words of a vocabulary that is ranked in full; of a larger one, the first FIRST ranks
FIRST = 64
GREEDILY, BY_NUMBER = "greedy", "sampled"  # what the dial `choose` says
RANKS = ("token", "rank")


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. Temperature 0 is greedy: the largest logit, the first of ties.

    `top_k` keeps the k most likely tokens, `top_p` the fewest that hold that share of probability
    (Holtzman et al. 2020, section 3.1); both 0 and 1 respectively leave everything in.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.temperature) and self.temperature >= 0):
            raise InputError(f"temperature is {self.temperature}; it must be 0 (greedy) or more")
        if self.top_k < 0:
            raise InputError(f"top_k is {self.top_k}; it must be 0 (all) or more")
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p is {self.top_p}; it must be above 0 and at most 1")

    @property
    def how(self) -> str:
        """What the dial `choose` says."""
        return BY_NUMBER if self.temperature else GREEDILY

    def choose(self, logits: np.ndarray, r: float) -> int:
        """The token that logits [d_vocab] and a random number r in [0, 1) lead to.

        Raises InputError where logits are no finite numbers.
        """
        g = Graph(None, None)
        g.input("logits", np.reshape(logits, (1, -1)), ("token", "vocab"))
        g.input("temperature", self.temperature or 1.0)
        n_words = len(logits)
        n_ranks = min(self.top_k or n_words, n_words) if self.temperature else 1
        chosen = choice(g, self, np.array([0.0, r]), n_ranks)
        values = {**g.inputs, **{table.name: pending(table) for table in g.tables}}
        found = Reader(values).compute(chosen, 0, 0)  # and no more than it needs
        if isinstance(found, CellError):
            raise InputError(f"no token can be chosen: the logits lead to {found}")
        return int(found)


GREEDY = Sampling()


def n_ranks(n_words: int) -> int:
    """How many ranks a workbook lays out."""
    return n_words if n_words <= MOST else FIRST


def choice(g: Graph, sampling: Sampling, numbers: np.ndarray, n_ranks: int) -> Block:
    """Add the choice of the word after every token: the ids that are chosen, [n_tokens, 1].

    `numbers` [n_tokens + 1] are random, one for each place: the word after token t stands in place
    t + 1.
    """
    n_tokens = g["logits"].shape[0]
    choose = g.input("choose", sampling.how, kind="table")
    top_k = g.input("top_k", sampling.top_k, kind="table")
    top_p = g.input("top_p", sampling.top_p, kind="table")
    random = g.input("random", np.reshape(numbers, (-1, 1)), ("token", ""), "table")
    at, axes = g.at("choice"), ("token", "")
    order = _ranking(at, n_ranks)
    weight = _weights(at, order, top_k)
    before, total = _shares(at, weight, top_p)

    def falls_on(t: int, _: int) -> Expression:
        return MATCH(random[t + 1, 0] * total[t, 0], before[t, :].as_range, 1)

    def chosen(t: int, _: int) -> Expression:
        return IF(choose[0, 0] == BY_NUMBER, drawn[t, 0], greedy[t, 0])

    one = (n_tokens, 1)
    rank = at.table("rank", one, falls_on, axes)  # from 1
    greedy = at.table("greedy", one, lambda t, _: order[t, 0], axes)
    drawn = at.table("drawn", one, lambda t, _: Nth(order[t, :].as_range, rank[t, 0]), axes)
    return at.table("chosen", one, chosen, axes)


def _ranking(at: Graph, n_ranks: int) -> Block:
    """The ids, from the largest logit down: [n_tokens, n_ranks]."""
    logits = at["logits"]

    def key(t: int, v: Any) -> Expression:
        return logits[t, v] - expression(v) * TIE

    def ident(t: int, k: Any) -> Expression:
        own = keys[t, :].as_range
        return MATCH(LARGE(own, k + 1), own, 0) - 1

    keys = at.table("keys", logits.shape, key, logits.axes, runs=True)  # [n_tokens, d_vocab]
    return at.table("order", (logits.shape[0], n_ranks), ident, RANKS, runs=True)


def _weights(at: Graph, order: Block, top_k: Block) -> Block:
    """Exponentials of (logit - largest) / temperature, 0 beyond top-k: [n_tokens, n_ranks]."""
    logits, temperature = at["logits"], at["temperature"]

    def weight(t: int, k: Any) -> Expression:
        own = logits[t, :].as_range
        away = INDEX(own, order[t, k] + 1) - INDEX(own, order[t, 0] + 1)
        among = IF(top_k[0, 0] == 0, 1, IF(expression(k + 1) <= top_k[0, 0], 1, 0))
        return among * EXP(away / temperature[0, 0])

    return at.table("weight", order.shape, weight, RANKS, runs=True)


def _shares(at: Graph, weight: Block, top_p: Block) -> tuple[Block, Block]:
    """The share of the weight that stands before each rank, [n_tokens, n_ranks]; and what top-p
    keeps in all: the ranks that less than top-p stands before, [n_tokens, 1]."""

    def share(t: int, k: Any) -> Expression:
        return weight[t, k] / SUM(weight[t, :].as_range)

    def sum_before(t: int, k: Any) -> Expression:
        return before[t, k - 1] + share(t, k - 1) if np.all(k) else expression(0.0)

    def keep(t: int, k: Any) -> Expression:
        return IF(before[t, k] < top_p[0, 0], share(t, k), 0)

    before = at.table("before", weight.shape, sum_before, RANKS, runs=True)
    kept = at.table("kept", weight.shape, keep, RANKS, runs=True)
    total = at.table(
        "total", (weight.shape[0], 1), lambda t, _: SUM(kept[t, :].as_range), ("token", "")
    )
    return before, total
