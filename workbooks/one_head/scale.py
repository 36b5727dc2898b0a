"""one-head's sheet Scale: how the variance of q · k grows with d_head, and the score table with
T."""

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import AVERAGE, EXP, IF, MAX, SQRT, SUM, SUMPRODUCT, VARP
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer

N, D_MOST = 100, 64  # pairs of q and k that are drawn, and how long they are at most
WIDTHS = (4.0, 16.0, 64.0)
KEYS = 10  # scores that share a softmax
RNG = np.random.default_rng(11)
Q, K = (RNG.normal(size=(N, D_MOST)).round(2) for _ in range(2))
CONTEXTS = (128.0, 1024.0, 2048.0, 32768.0)
DRAWN = "Draws"
ROOM = 6  # rows of Draws for three edits, above the numbers


def add(w: Workbook) -> None:
    """The sheets Scale and Draws."""
    ws = w.sheet(
        "Scale",
        "why scores are divided by √d_head: the spread of q · k grows with √d_head",
        "Suppose the numbers of q and k are independent, with mean 0 and variance 1. Each "
        "product q_i k_i then has variance 1.",
        "The sum q · k of d_head such products has variance d_head. After the division by "
        "√d_head, the variance is 1.",
        f"The sheet Draws has {N} random pairs of q and k. Each column uses the first d_head "
        "numbers of q and k.",
        widths={0: 34, **dict.fromkeys(range(1, 12), 12)},
    )
    width = ws.typed("widths", WIDTHS, ["d_head, up to 64"], style="input setting")
    drawn = w.sheet(DRAWN, f"{N} random pairs of q and k (normal distribution), and their products")
    draws(drawn, width)
    spread(ws, w["dots"], width)
    grows(ws)
    suggest(w, ws)
    suggest_draws(w, drawn)


def draws(ws: Composer, width: Area) -> None:
    """The random numbers, and the products of the first d_head of each: [N, widths]."""
    ws.widths({0: 8})
    ws.text("q · k = sum over i < d_head of q_i k_i", style="equation")
    ws.cursor += ROOM
    index = ws.typed("index", np.arange(D_MOST)[None, :], style="count", left=8)
    used = ws.computed(
        "used",
        (len(WIDTHS), D_MOST),
        lambda j, i: IF(index[i] < width[j], 1, 0),
        [f"used at width {j + 1}" for j in range(len(WIDTHS))],
        left=8,
    )
    top = ws.cursor
    q = ws.typed("drawn_q", Q, title="q   [draws, 64]", left=8)
    k = ws.typed("drawn_k", K, title="k   [draws, 64]", beside=q)
    ws.computed(
        "dots",
        (N, len(WIDTHS)),
        lambda i, j: SUMPRODUCT(q[i, :], k[i, :], used[j, :].fixed),
        range(N),
        [f"width {j + 1}" for j in range(len(WIDTHS))],
        top=top,
    )


def spread(ws: Composer, dots: Area, width: Area) -> None:
    """Add the variance of the products, plain and divided; the largest share of a softmax over
    them."""
    ws.heading("Over all draws: the variance of q · k, and of q · k / √d_head")
    n = (1, len(WIDTHS))
    ws.computed("means", n, lambda _, j: AVERAGE(dots[:, j]), ["mean of q · k: about 0"])
    variances = ws.computed("variances", n, lambda _, j: VARP(dots[:, j]), ["variance of q · k"])
    ws.computed(
        "scaled",
        n,
        lambda _, j: variances[j] / width[j],
        ["variance of q · k / √d_head"],
        style="readout",
    )
    ws.heading(
        f"Share of the likeliest key, if the first {KEYS} products are the scores of a softmax",
        "share = 1 / sum of exp(score - largest)",
        style="equation",
    )

    def largest(j: int, divisor: Expression | float) -> Expression:
        scores = dots[:KEYS, j].cells
        top = MAX(*scores)
        return 1 / SUM(*(EXP((score - top) / divisor) for score in scores))

    ws.computed("sharp", n, lambda _, j: largest(j, 1), ["without the division"], style="readout")
    ws.computed(
        "soft", n, lambda _, j: largest(j, SQRT(width[j])), ["with the division"], style="readout"
    )


def grows(ws: Composer) -> None:
    """Add the number of scores, T²."""
    ws.heading(
        "The table of scores has a row and a column for every token: T² scores in every head",
        "The notes say that the table's size is the square root of the context size. In fact, "
        "the table's size is the square of the context size.",
    )
    contexts = ws.typed("contexts", CONTEXTS, ["T, tokens"], style="input setting")
    n = (1, len(CONTEXTS))
    squares = ws.computed(
        "squares", n, lambda _, j: contexts[j] ** 2, ["scores of one head"], style="thousands"
    )
    ws.computed(
        "gigabytes",
        n,
        lambda _, j: squares[j] * 96 * 96 * 2 / 10**9,
        ["GB, 96 layers × 96 heads, 2 bytes each"],
    )


def suggest_draws(w: Workbook, ws: Composer) -> None:
    """Suggest an edit of one number of a q. It moves its own product and the variance, but not a
    narrower head."""
    q, dots, variances = w["drawn_q"], w["dots"], w["variances"]
    ws.cursor = 5
    ws.suggest(
        w.suggestion(
            "Type ‘30’, one extreme draw: with the first d_head, the variance goes from "
            "{now:.1f} to {then:.1f}. A variance reacts strongly to extremes.",
            {q[0, 1]: 30.0},
            variances[0],
        ),
        w.suggestion(
            "Type ‘10’ as the last number of the same q. Only the third d_head is long enough to "
            "use this number: the product goes from {now:.1f} to {then:.1f}.",
            {q[0, D_MOST - 1]: 10.0},
            dots[0, 2],
        ),
        w.suggestion(
            "Type ‘5’ as the first d_head. One more number of q and of k now counts. The first "
            "product goes from {now:.2f} to {then:.2f}.",
            {w["widths"][0]: 5.0},
            dots[0, 0],
        ),
    )


def suggest(w: Workbook, ws: Composer) -> None:
    """Edits: a single number, the most likely key, the context."""
    width, sharp, squares = w["widths"], w["sharp"], w["squares"]
    ws.suggest(
        w.suggestion(
            "Type ‘1’, so that q and k have one number each: the variance of q · k is "
            "{then:.2f}, not {now:.2f}.",
            {width[0]: 1.0},
            w["variances"][0],
        ),
        w.suggestion(
            "Type ‘64’: without the division, the likeliest of ten keys gets {then:.1%} of the "
            "weight, not {now:.1%}.",
            {width[0]: 64.0},
            sharp[0],
        ),
        w.suggestion(
            "Type ‘256’, for twice as many tokens. The number of scores is four times as large: "
            "{then:,.0f}, not {now:,.0f}.",
            {w["contexts"][0]: 256.0},
            squares[0],
        ),
    )
