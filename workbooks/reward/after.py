"""Before and after: what the model writes, how varied it is, and whether its certainty is justified.

Everything is exact. The probabilities after all 127 beginnings give those of all 255 texts. In the
random books that the model imitated at first, the probability of each next word is known, too: so
one can tell how often the word comes that the model holds for the likeliest (figure 8 of the GPT-4
report). The expected calibration error (ECE; Naeini et al. 2015) is the mean distance between that
share and the probability that the model gives.
"""

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import (
    ABS,
    EXP,
    IF,
    INDEX,
    INT,
    LN,
    MATCH,
    MAX,
    SUM,
    SUMIF,
    SUMPRODUCT,
)
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.language import worded
from cellformer.workbooks.reward import game
from cellformer.workbooks.reward.game import END, EVERY, LENGTH, N_BEGINNINGS, WORDS

BEFORE, NOW = SIDES = ("before", "now")
LEAST = 1e-300  # of a probability whose logarithm is taken
FIRST_BIN, N_BINS = 3, 7  # of certainties: from 30 % on, each of 10 %
EDGES = [k / 10 for k in range(FIRST_BIN, FIRST_BIN + N_BINS + 1)]


def names() -> list[str]:
    """The names of the kinds of texts."""
    return [
        worded("as many D as C"),
        worded("more debits"),
        worded("more credits"),
        worded("no entry"),
        worded("no end"),
    ]


def kinds() -> list[str]:
    """The kind of each of the 255 texts."""
    of = game.Counts.of(game.ids(EVERY))
    chosen = np.select(
        [~of.ended, of.debits + of.credits == 0, of.debits > of.credits, of.debits < of.credits],
        [4, 3, 1, 2],
    )
    named = names()
    return [named[k] for k in chosen]


def spelt(text: list[int]) -> str:
    """A text as a word; a full stop is its end."""
    return "".join("." if word == END else WORDS[word] for word in text)


def add(g: Graph, reference: np.ndarray) -> None:
    """Add all figures; `reference` [127, 3] are the probabilities of the model that imitates."""
    g.input("before.probs", reference)
    g.input("books.probs", game.next_in_books())
    g.input("text.name", np.array([[spelt(text)] for text in EVERY], dtype=object))
    g.input("text.kind", np.array([[kind] for kind in kinds()], dtype=object))
    every = game.ids(EVERY)
    g.input("text.rewards", np.transpose([game.rewards(kind, every) for kind in game.REWARDS]))
    g.input("kind", np.array([[kind] for kind in names()], dtype=object))
    probs = {BEFORE: g["before.probs"], NOW: g["all.probs"]}
    reach(g, "books", g["books.probs"])
    for side in SIDES:
        reach(g, side, probs[side])
        texts(g, side, probs[side])
        certain(g, side, probs[side])
    figures(g)


def reach(g: Graph, side: str, probs: Block) -> None:
    """Add the probability that each beginning is written: [127, 1]."""

    def formula(n: int, _: int) -> Expression:
        b = n + 1
        return g[f"{side}.reach"][b // 2 - 1, 0] * probs[b // 2 - 1, b % 2] if n else expression(1)

    g.table(f"{side}.reach", (N_BEGINNINGS, 1), formula)


def texts(g: Graph, side: str, probs: Block) -> None:
    """Add the probability of each text, and its share of the entropy: each [255, 1]."""
    reached = g[f"{side}.reach"]

    def probability(n: int, _: int) -> Expression:
        if n < N_BEGINNINGS:
            return reached[n, 0] * probs[n, END]
        b, word = divmod(n - N_BEGINNINGS + 2**LENGTH, 2)
        return reached[b - 1, 0] * probs[b - 1, word]

    p = g.table(f"{side}.text", (len(EVERY), 1), probability)
    g.table(f"{side}.nats", p.shape, lambda n, _: -p[n, 0] * LN(MAX(p[n, 0], LEAST)))


def certain(g: Graph, side: str, probs: Block) -> None:
    """Add for each beginning the probability of the likeliest word, how often that word comes in
    books, and the bin; and the sums of each bin."""
    shape, books, often = (N_BEGINNINGS, 1), g["books.probs"], g["books.reach"].area.fixed
    sure = g.table(f"{side}.sure", shape, lambda n, _: MAX(probs[n, :]))

    def bin_of(n: int, _: int) -> Expression:
        k = INT(sure[n, 0] * 10) - FIRST_BIN + 1
        return IF(k > N_BINS, N_BINS, k)

    right = g.table(
        f"{side}.comes",
        shape,
        lambda n, _: INDEX(books[n, :], 1, MATCH(sure[n, 0], probs[n, :], 0)),
    )
    bins = g.table(f"{side}.bin", shape, bin_of).area.fixed

    def weighted(n: int, j: int) -> Expression:
        weight = often[n, 0] / SUM(often)
        return (weight, weight * sure[n, 0], weight * right[n, 0])[j]

    share = g.table(f"{side}.share", (N_BEGINNINGS, 3), weighted)

    sums = g.table(f"{side}.sums", (N_BINS, 3), lambda k, j: SUMIF(bins, k + 1, share[:, j].fixed))

    g.table(
        f"{side}.bins",
        (N_BINS, 2),
        lambda k, j: IF(sums[k, 0] == 0, 0, sums[k, j + 1] / MAX(sums[k, 0], LEAST)),
    )
    g.table(f"{side}.gap", (N_BINS, 1), lambda k, _: ABS(sums[k, 1] - sums[k, 2]))


def figures(g: Graph) -> None:
    """Add the figures that stand side by side: of each, a column for each side."""

    def of(name: str, side: int) -> Area:
        return g[f"{SIDES[side]}.{name}"].area.fixed

    def likeliest(_: int, side: int) -> Expression:
        p = of("text", side)
        return INDEX(g["text.name"].area.fixed, MATCH(MAX(p), p, 0), 1)

    def varied(what: int, side: int) -> Expression:
        nats = SUM(of("nats", side))
        return (nats, EXP(nats))[what]

    def sure(what: int, side: int) -> Expression:
        sums = of("sums", side)
        return (SUM(sums[:, 1]), SUM(sums[:, 2]), SUM(of("gap", side)))[what]

    kind, rewards = g["text.kind"].area.fixed, g["text.rewards"].area.fixed
    g.table(
        "kinds", (g["kind"].shape[0], 2), lambda k, s: SUMIF(kind, g["kind"][k, 0], of("text", s))
    )
    g.table("expected", (3, 2), lambda k, s: SUMPRODUCT(rewards[:, k], of("text", s)))
    g.table("variety", (2, 2), varied)
    g.table("likeliest", (1, 2), likeliest)
    g.table("likeliest.share", (1, 2), lambda _, side: MAX(of("text", side)))
    g.table("certainty", (3, 2), sure)
