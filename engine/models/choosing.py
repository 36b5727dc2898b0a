"""Sampling in cells: from logits to the next word, step by step, as tables.

For the word after a token, along its row: the logits by rank, and their words; the probabilities of
the k most likely (top-k); the cumulative probability before each rank; the ranks that top-p keeps;
and the rank that the random number falls on. Programs add in different orders, so the last digits
of a logit differ: logits are rounded before ranking, and a multiple of the word's id is subtracted,
so that no two are equal and of equal logits the lower id comes first. The Sampling page lays these
tables out, and `Sampling.choose` evaluates one row of them.

For a large vocabulary only the first ranks are laid out, and what lies beyond is found without
sorting, see `rank_search`. Either way, the sample is drawn from all words.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from engine.cells.block import Block
from engine.cells.errors import InputError
from engine.cells.expression import Expression, Nth, expression
from engine.cells.functions import (
    ABS,
    AND,
    IF,
    IFERROR,
    INT,
    ISNUMBER,
    LARGE,
    LOG10,
    MATCH,
    MAX,
    MIN,
    ROUND,
    SUM,
    N,
)
from engine.cells.graph import Graph
from engine.cells.table import Reader, pending
from engine.cells.values import CellError, is_finite, is_whole
from engine.models import parts, rank_search
from engine.models.rank_search import in_range

# decimals that every program tells apart (LibreOffice takes numbers for equal that differ by less
# than 4e-15 of their size); of a number above 9 one less, above 99 two less, ...
DIGITS = 13
DECIMALS = {500: 10, 50_000: 8, 500_000: 7}  # of these, a logit's where there are fewer words
FEWEST = 6  # of any other logit
N_RANKS = 128  # ranks that are laid out at most
GREEDILY, BY_NUMBER = "greedy", "sampled"  # what the dial `choose` says
RANKS = ("token", "rank")
ONE = ("token", "")  # the axes of a table with a number for each token
LEAST = 1e-9  # of a share that is kept


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen. Temperature 0 is greedy: the largest logit, the first of ties.

    `top_k` keeps the k most likely tokens, `top_p` the fewest that reach that probability (Holtzman
    et al. 2020, section 3.1); 0 and 1 respectively keep all.

    >>> model, sampling = cf.load("dialogue-game"), cf.Sampling(temperature=0.8, top_k=4)
    >>> words = cf.passage(model, [1, 4], n_tokens=5, sampling=sampling, seed=1)
    >>> model.vocabulary.decode(words.ids)
    '<BOS> Pietro chiama 3 <SEP>'
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (is_finite(self.temperature) and self.temperature >= 0):
            raise InputError(f"temperature is {self.temperature}; it must be 0 (greedy) or more")
        if not (is_whole(self.top_k) and self.top_k >= 0):
            raise InputError(f"top_k is {self.top_k!r}; it must be a whole number, 0 (all) or more")
        if not (is_finite(self.top_p) and 0 < self.top_p <= 1):
            raise InputError(f"top_p is {self.top_p}; it must be above 0 and at most 1")

    @property
    def how(self) -> str:
        """The value of the setting `choose`."""
        return BY_NUMBER if self.temperature else GREEDILY

    def choose(self, logits: np.ndarray, r: float) -> int:
        """The token for logits [d_vocab] and a random number r in [0, 1).

        Raises InputError if logits are not finite.
        """
        kept, chosen = _of_one_token(self, np.size(logits))
        row = np.reshape(np.asarray(logits, np.float64), (1, -1))
        given = {"logits": row, "random": np.array([[0.0], [r]])}
        values = kept.inputs | given | {"probs": kept.last("probs", given)}
        values |= {table.name: pending(table) for table in kept.tables}
        found = Reader(values).compute(chosen, 0, 0)  # and no more than it needs
        if isinstance(found, CellError):
            raise InputError(f"no token can be chosen: the logits lead to {found}")
        return int(found)


GREEDY = Sampling()


@lru_cache(maxsize=8)  # a text is many tokens
def _of_one_token(sampling: Sampling, n_words: int) -> tuple[Graph, Block]:
    """A graph from one token's logits to the chosen word, and the block of the word."""
    g = Graph(None, None)
    logits = g.input("logits", np.zeros((1, n_words)), ("token", "vocab"))
    temperature = g.input("temperature", sampling.temperature or 1.0)
    parts.softmax(g.at("softmax"), logits, (g, "probs"), temperature)
    return g, choice(g, sampling, np.zeros(2))


def choice(g: Graph, sampling: Sampling, numbers: np.ndarray) -> Block:
    """Add the choice of the word after every token: the chosen ids, [n_tokens, 1].

    `numbers` [n_tokens + 1] are random numbers, one for each position: the word after token t
    stands at position t + 1.
    """
    n_tokens, n_words = g["logits"].shape
    choose = g.input("choose", sampling.how, kind="table")
    top_k = g.input("top_k", sampling.top_k, kind="table")
    top_p = g.input("top_p", sampling.top_p, kind="table")
    random = g.input("random", np.reshape(numbers, (-1, 1)), ("token", ""), "table")
    at, one = g.at("choice"), (n_tokens, 1)
    warm = N(g["temperature"][0, 0]) > 0
    top_k, top_p = _in_range(at, top_k, top_p)
    order = _ranking(at, min(n_words, N_RANKS))
    draw = _among_all_ranks if n_words <= N_RANKS else _beyond_the_ranks
    drawn = draw(at, order, top_k, top_p, random)
    greedy = at.table("greedy", one, lambda t, _: order[t, 0], ONE)

    def chosen(t: int, _: int) -> Expression:
        by_number = AND(choose[0, 0] == BY_NUMBER, warm)
        return IF(by_number, drawn[t, 0], greedy[t, 0])

    return at.table("chosen", one, chosen, ONE)


def _in_range(at: Graph, top_k: Block, top_p: Block) -> tuple[Block, Block]:
    """Add the valid values of top-k and top-p, whatever is typed: a whole number of words, 0 for
    all; a probability above 0, 1 for all. Each [1, 1]."""
    k, p = top_k[0, 0], top_p[0, 0]
    whole = IF(ISNUMBER(k), INT(MAX(0, k)), 0)
    share = IF(ISNUMBER(p), MAX(LEAST, MIN(1, p)), 1)
    return (at.table("k", (1, 1), lambda *_: whole), at.table("p", (1, 1), lambda *_: share))


def _ranking(at: Graph, n_ranks: int) -> Block:
    """Add the ids by logit, largest first: [n_tokens, n_ranks].

    Rows are fixed, so that no two cells of a column share a formula: LibreOffice computes cells
    with a shared formula together, and would see circular references if a token waits for the one
    before it. For the same reason there are no array formulas: LibreOffice would use the previous
    token's old value.
    """
    logits = _ranked(at, at["logits"])
    n_tokens, n_words = logits.shape
    at.input("ids", np.arange(n_words)[None, :], kind="table")

    def number(t: int, k: Any) -> Expression:
        return LARGE(logits[t, :].as_range, k + 1)

    def ident(t: int, k: int) -> Expression:
        return MATCH(value[t, k].fixed_rows, logits[t, :].as_range, 0) - 1

    shape = n_tokens, n_ranks
    value = at.table("value", shape, number, RANKS, runs=True)
    return at.table("order", shape, ident, RANKS)


def _ranked(at: Graph, logits: Block) -> Block:
    """Add logits that are all different: rounded, minus a tiny amount for each word before."""
    n_words = logits.shape[1]
    decimals = next((n for most, n in DECIMALS.items() if n_words < most), FEWEST)
    fewer = DIGITS - decimals  # digits for the word's id, which is less than half of the last

    def ranked(t: int, v: Any) -> Expression:
        x = logits[t, v].fixed_rows
        kept = decimals - INT(LOG10(1 + ABS(x)))
        return ROUND(x, kept) - expression(v) / 10 ** (kept + fewer)

    return at.table("logits", logits.shape, ranked, logits.axes, runs=True)


def likeliest(at: Graph, logits: Block) -> Block:
    """Add the id of each token's largest logit, the lowest of ties: [n_tokens, 1]."""
    ranked = _ranked(at, logits)

    def ident(t: int, _: int) -> Expression:
        row = ranked[t, :].as_range
        return MATCH(MAX(row), row, 0) - 1

    return at.table("likeliest", (logits.shape[0], 1), ident, ONE)


def _among_all_ranks(at: Graph, order: Block, top_k: Block, top_p: Block, random: Block) -> Block:
    """The sampled ids if all ranks are laid out: [n_tokens, 1]."""
    one = (order.shape[0], 1)
    weight = _weights(at, order, top_k)
    whole = at.table("whole", one, lambda t, _: SUM(weight[t, :].as_range), ONE)
    before, kept = _shares(at, weight, whole, top_p)
    total = at.table("total", one, lambda t, _: SUM(kept[t, :].as_range), ONE)

    def falls_on(t: int, _: int) -> Expression:
        wanted = in_range(random[t + 1, 0]) * total[t, 0]
        return IFERROR(MATCH(wanted, before[t, :].as_range, 1), 1)

    rank = at.table("rank", one, falls_on, ONE)  # from 1
    return at.table("drawn", one, lambda t, _: Nth(order[t, :].as_range, rank[t, 0]), ONE)


def _beyond_the_ranks(at: Graph, order: Block, top_k: Block, top_p: Block, random: Block) -> Block:
    """The sampled ids if there are more words than ranks laid out: [n_tokens, 1]."""
    weight = _weights(at, order, top_k)
    ranks = rank_search.Ranks(at)
    in_k = ranks.at_most(top_k)
    whole = ranks.one("whole", lambda t: ranks.hold(t, ranks.logit(t, in_k)))
    _shares(at, weight, whole, top_p)
    return ranks.drawn(whole, top_k, top_p, random)


def _weights(at: Graph, order: Block, top_k: Block) -> Block:
    """Add the probabilities by rank, 0 beyond top-k: [n_tokens, n_ranks]."""
    probs = at["probs"]

    def weight(t: int, k: Any) -> Expression:
        among = IF(top_k[0, 0] == 0, 1, IF(expression(k + 1) <= top_k[0, 0], 1, 0))
        return among * Nth(probs[t, :].as_range, order[t, k], 0)

    return at.table("weight", order.shape, weight, RANKS, runs=True)


def _shares(at: Graph, weight: Block, whole: Block, top_p: Block) -> tuple[Block, Block]:
    """Add the cumulative probability before each rank, and the probabilities of the ranks that
    top-p keeps (those with less than top-p before them). Each [n_tokens, n_ranks]."""

    def share(t: int, k: Any) -> Expression:
        return weight[t, k] / whole[t, 0]

    def sum_before(t: int, k: Any) -> Expression:
        return before[t, k - 1] + share(t, k - 1) if np.all(k) else expression(0.0)

    def keep(t: int, k: Any) -> Expression:
        return IF(before[t, k] < top_p[0, 0], share(t, k), 0)

    before = at.table("before", weight.shape, sum_before, RANKS, runs=True)
    kept = at.table("kept", weight.shape, keep, RANKS, runs=True)
    return before, kept
