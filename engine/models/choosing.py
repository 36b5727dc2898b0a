"""Sampling in cells: from logits to the next word, step by step, as tables.

For the word after a token, along its row: the logits, smaller for words that were there before
(repetition penalty); the logits by rank, and their words; the probabilities of the k most likely
(top-k); the cumulative probability before each rank; the ranks that top-p and min-p keep; and the
rank that the random number falls on. Programs add in different orders, so the last digits
of a logit differ: logits are rounded before ranking, and a multiple of the word's id is subtracted,
so that no two are equal and of equal logits the lower id comes first. The Sampling page lays these
tables out, and `Sampling.choose` evaluates one row of them.

For a large vocabulary only the first ranks are laid out, and what lies beyond is found without
sorting, see `rank_search`. Either way, the sample is drawn from all words.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError, check_all
from cellformer.engine.cells.expression import Expression, Nth, expression
from cellformer.engine.cells.functions import (
    ABS,
    AND,
    EXP,
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
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.table import Reader, pending
from cellformer.engine.cells.values import CellError, is_finite, is_whole
from cellformer.engine.models import parts, rank_search
from cellformer.engine.models.rank_search import in_range

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
NEVER = -10_000  # the logit of a word that may not come
Share = Callable[[int, Any, Any], Expression]  # of a token, and a word's logit and probability


@explained_class
@dataclass(frozen=True)
class Sampling:
    """The settings that choose the next token. Temperature 0 is greedy: the largest logit, the
    first of ties.

    `top_k` keeps the k most likely tokens, `top_p` the fewest that reach that probability (Holtzman
    et al. 2020, section 3.1); 0 and 1 respectively keep all. `min_p` keeps tokens that have at
    least that share of the likeliest one's probability (Nguyen et al. 2024, section 3); 0 keeps
    all. `repetition_penalty` divides the logits of the tokens so far, or multiplies negative ones
    (Keskar et al. 2019, section 4.1), before anything else; 1 leaves them.

    >>> model, sampling = cf.load("dialogue-game"), cf.Sampling(temperature=0.8, top_k=4)
    >>> words = cf.passage(model, [1, 4], n_tokens=5, sampling=sampling, seed=1)
    >>> model.vocabulary.decode(words.ids)
    '<BOS> Pietro chiama 3 <SEP>'
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        heat, k, p, least = self.temperature, self.top_k, self.top_p, self.min_p
        penalty = self.repetition_penalty
        check_all(
            (
                is_finite(heat) and heat >= 0,
                f"temperature is {heat}; it must be 0 (greedy) or more",
            ),
            (
                is_whole(k) and k >= 0,
                f"top_k is {k!r}; it must be a whole number, 0 (all) or more",
            ),
            (is_finite(p) and 0 < p <= 1, f"top_p is {p}; it must be above 0 and at most 1"),
            (
                is_finite(least) and 0 <= least <= 1,
                f"min_p is {least}; it must be from 0 (all) to 1",
            ),
            (
                is_finite(penalty) and 1e-6 <= penalty <= 1e6,
                f"repetition_penalty is {penalty}; it must be from 0.000001 to 1000000 (1 means "
                "no penalty)",
            ),
        )

    @property
    def how(self) -> str:
        """The value of the setting `choose`."""
        return BY_NUMBER if self.temperature else GREEDILY

    def choose(self, logits: np.ndarray, r: float, so_far: Sequence[int] = ()) -> int:
        """The token for logits [d_vocab], a random number r in [0, 1), and the tokens so far.

        Raises InputError if logits are not finite.
        """
        array = np.asarray(logits)
        if array.ndim != 1 or not array.size or array.dtype.kind not in "biuf":
            raise InputError("logits must be a list of numbers, one for each token")
        kept, chosen = _of_one_token(self, np.size(logits))
        row = penalized(logits, self.repetition_penalty, so_far)[None]  # [1, d_vocab]
        given = {"logits": row, "random": np.array([[0.0], [r]])}
        values = kept.inputs | given | {"probs": kept.last("probs", given)}
        values |= {table.name: pending(table) for table in kept.tables}
        found = Reader(values).compute(chosen, 0, 0)  # and no more than it needs
        if isinstance(found, CellError):
            raise InputError(
                f"no token can be chosen, because the computation from these logits gives {found}; "
                "give finite logits"
            )
        return int(found)


GREEDY = Sampling()


def penalized(
    logits: np.ndarray, penalty: float, so_far: Sequence[int], never: Sequence[int] = ()
) -> np.ndarray:
    """The logits [d_vocab] after the repetition penalty for the tokens so far; very low for ids of
    `never`."""
    found = np.array(logits, np.float64)
    there = np.array(so_far, int)
    x = found[there]
    found[there] = np.where(x < 0, x * penalty, x / penalty)
    found[list(never)] = NEVER
    return found


@lru_cache(maxsize=8)  # a text is many tokens
def _of_one_token(sampling: Sampling, n_words: int) -> tuple[Graph, Block]:
    """A graph from one token's logits to the chosen word, and the block of the word."""
    g = Graph(None, None)
    logits = g.input("logits", np.zeros((1, n_words)), ("token", "vocab"))
    temperature = g.input("temperature", sampling.temperature or 1.0)
    parts.softmax(g.at("softmax"), logits, (g, "probs"), temperature)
    return g, choice(g, sampling, np.zeros(2))


def choice(g: Graph, sampling: Sampling, numbers: np.ndarray, never: Sequence[int] = ()) -> Block:
    """Add the choice of the word after every token: the chosen ids, [n_tokens, 1].

    `numbers` [n_tokens + 1] are random numbers, one for each position: the word after token t
    stands at position t + 1. The ids of `never` are not chosen.
    """
    n_tokens, n_words = g["logits"].shape
    choose = g.input("choose", sampling.how, kind="table")
    top_k = g.input("top_k", sampling.top_k, kind="table")
    top_p = g.input("top_p", sampling.top_p, kind="table")
    min_p = g.input("min_p", sampling.min_p, kind="table")
    random = g.input("random", np.reshape(numbers, (-1, 1)), ("token", ""), "table")
    at, one = g.at("choice"), (n_tokens, 1)
    warm = N(g["temperature"][0, 0]) > 0
    limits = _in_range(at, top_k, top_p, min_p)
    order = _ranking(at, min(n_words, N_RANKS), _penalized(g, sampling, never))
    draw = _among_all_ranks if n_words <= N_RANKS else _beyond_the_ranks
    drawn = draw(at, order, limits, random, _share(at, never))
    greedy = at.table("greedy", one, lambda t, _: order[t, 0], ONE)
    return at.table(
        "chosen",
        one,
        lambda t, _: IF(AND(choose[0, 0] == BY_NUMBER, warm), drawn[t, 0], greedy[t, 0]),
        ONE,
    )


class Limits(NamedTuple):
    """The valid values of top-k, top-p and min-p, each [1, 1]."""

    k: Block
    p: Block
    m: Block


def _in_range(at: Graph, top_k: Block, top_p: Block, min_p: Block) -> Limits:
    """Add the valid values of top-k, top-p and min-p for any entry: a whole number of words, 0
    for all; a probability above 0, 1 for all; a share, 0 for all."""
    k, p, m = top_k[0, 0], top_p[0, 0], min_p[0, 0]
    valid = {
        "k": IF(ISNUMBER(k), INT(MAX(0, k)), 0),
        "p": IF(ISNUMBER(p), MAX(LEAST, MIN(1, p)), 1),
        "m": IF(ISNUMBER(m), MAX(0, MIN(1, m)), 0),
    }
    return Limits(*(at.table(name, (1, 1), lambda *_, x=x: x) for name, x in valid.items()))


def _penalized(g: Graph, sampling: Sampling, never: Sequence[int]) -> Block:
    """Add the logits after the repetition penalty, [n_tokens, n_words], of a graph that has its
    tokens and gives words out of the same vocabulary; of another one, its logits as they are.

    A penalty that is typed and is no number above 0 counts as 1.
    """
    logits = g["logits"]
    if "tokens" not in g.blocks or logits.axes[1] != "vocab":
        return logits
    tokens, of = g["tokens"], sampling.repetition_penalty
    typed = g.input("repetition_penalty", of, kind="table")
    at, valid = g.at("choice"), IF(N(typed[0, 0]) > 0, N(typed[0, 0]), 1)
    penalty = at.table("penalty", (1, 1), lambda *_: valid)[0, 0].fixed
    ids = _ids(at, logits.shape[1])

    def smaller(t: int, v: Any) -> Expression:
        x, so_far = logits[t, v].fixed_rows, tokens[: t + 1, 0].fixed
        there = IFERROR(MATCH(ids[0, v].fixed_rows, so_far, 0), 0) > 0
        found = IF(penalty == 1, x, IF(there, IF(x < 0, x * penalty, x / penalty), x))
        for i in never:
            found = IF(ids[0, v].fixed_rows == i, NEVER, found)
        return found

    return at.table("penalized", logits.shape, smaller, logits.axes, runs=True)


def _ids(at: Graph, n_words: int) -> Block:
    """The id of every word: [1, n_words]."""
    if "choice.ids" in at.blocks:
        return at["choice.ids"]
    return at.input("ids", np.arange(n_words)[None, :], kind="table")


def _ranking(at: Graph, n_ranks: int, of: Block) -> Block:
    """Add the ids by logit, largest first: [n_tokens, n_ranks].

    Rows are fixed, so that no two cells of a column share a formula: LibreOffice computes cells
    with a shared formula together, and would see circular references if a token waits for the one
    before it. For the same reason there are no array formulas: LibreOffice would use the previous
    token's old value.
    """
    logits = _ranked(at, of)
    n_tokens, n_words = logits.shape
    _ids(at, n_words)

    shape = n_tokens, n_ranks
    value = at.table(
        "value", shape, lambda t, k: LARGE(logits[t, :].as_range, k + 1), RANKS, runs=True
    )
    return at.table(
        "order",
        shape,
        lambda t, k: MATCH(value[t, k].fixed_rows, logits[t, :].as_range, 0) - 1,
        RANKS,
    )


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


def _among_all_ranks(at: Graph, order: Block, limits: Limits, random: Block, share: Share) -> Block:
    """The sampled ids if all ranks are laid out: [n_tokens, 1]."""
    one = order.shape[0], 1

    def of_rank(t: int, k: Any) -> Expression:
        if "choice.penalized" not in at.blocks:
            return Nth(at["probs"][t, :].as_range, order[t, k], 0)
        x, p = (at[name][t, :].as_range for name in ("choice.penalized", "probs"))
        return share(t, Nth(x, order[t, k], 0), Nth(p, order[t, k], 0))

    weight = _weights(at, order, limits, of_rank)
    whole = at.table("whole", one, lambda t, _: SUM(weight[t, :].as_range), ONE)
    before, kept = _shares(at, weight, whole, limits)
    total = at.table("total", one, lambda t, _: SUM(kept[t, :].as_range), ONE)

    def falls_on(t: int, _: int) -> Expression:
        wanted = in_range(random[t + 1, 0]) * total[t, 0]
        return IFERROR(MATCH(wanted, before[t, :].as_range, 1), 1)

    rank = at.table("rank", one, falls_on, ONE)  # from 1
    return at.table("drawn", one, lambda t, _: Nth(order[t, :].as_range, rank[t, 0]), ONE)


def _beyond_the_ranks(
    at: Graph, order: Block, limits: Limits, random: Block, share: Share
) -> Block:
    """The sampled ids if there are more words than ranks laid out: [n_tokens, 1]."""
    probs = at["probs"]
    if "choice.penalized" in at.blocks:
        x, p = at["choice.penalized"], at["probs"]
        shares = lambda t, v: share(t, x[t, v].fixed_rows, p[t, v].fixed_rows)  # noqa: E731
        probs = at.table("probs", p.shape, shares, p.axes, runs=True)
    weight = _weights(at, order, limits, lambda t, k: Nth(probs[t, :].as_range, order[t, k], 0))
    ranks = rank_search.Ranks(at, probs)
    in_k = ranks.at_most(limits.k)
    whole = ranks.one("whole", lambda t: ranks.hold(t, ranks.logit(t, in_k)))
    _shares(at, weight, whole, limits)
    likely = ranks.one("likely", lambda t: ranks.with_at_least(t, limits.m[0, 0] * weight[t, 0]))
    return ranks.drawn(whole, limits.k, limits.p, likely, random)


def _share(at: Graph, never: Sequence[int]) -> Share:
    """The weight of a word in the draw, by its penalized logit and its probability. With a
    repetition penalty, it is the probability as a multiple of the likeliest word's. It is 0 for
    a forbidden word."""
    if "choice.penalized" not in at.blocks:
        return lambda t, x, p: p
    penalty, heat = at["choice.penalty"][0, 0].fixed, N(at["temperature"][0, 0].fixed)
    logits = at["choice.penalized"]
    top = at.table("top", (logits.shape[0], 1), lambda t, _: MAX(logits[t, :].as_range), ONE)

    def share(t: int, x: Any, p: Any) -> Expression:
        found = IF(penalty == 1, p, IF(heat > 0, EXP((x - top[t, 0].fixed) / heat), p))
        return IF(x > NEVER, found, 0) if never else found

    return share


def _weights(
    at: Graph, order: Block, limits: Limits, of_rank: Callable[[int, Any], Expression]
) -> Block:
    """Add the probabilities by rank, 0 beyond top-k: [n_tokens, n_ranks]."""
    top_k = limits.k[0, 0]

    return at.table(
        "weight",
        order.shape,
        lambda t, k: IF(top_k == 0, 1, IF(expression(k + 1) <= top_k, 1, 0)) * of_rank(t, k),
        RANKS,
        runs=True,
    )


def _shares(at: Graph, weight: Block, whole: Block, limits: Limits) -> tuple[Block, Block]:
    """Add the cumulative probability before each rank, and the probabilities of the ranks that
    top-p and min-p keep. Top-p keeps ranks with less than top-p before them. Each [n_tokens,
    n_ranks]."""
    top_p, min_p = limits.p[0, 0], limits.m[0, 0]

    def share(t: int, k: Any) -> Expression:
        return weight[t, k] / whole[t, 0]

    def keep(t: int, k: Any) -> Expression:
        likely = IF(weight[t, k] >= min_p * weight[t, 0].fixed_cols, share(t, k), 0)
        return IF(before[t, k] < top_p, likely, 0)

    before = at.table(
        "before",
        weight.shape,
        lambda t, k: before[t, k - 1] + share(t, k - 1) if np.all(k) else expression(0.0),
        RANKS,
        runs=True,
    )
    return before, at.table("kept", weight.shape, keep, RANKS, runs=True)
