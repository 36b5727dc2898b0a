"""Sheet Streams: the streams of the three models, their differences, and their predictions."""

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import EXP, SQRT, SUM, SUMPRODUCT, added, dot
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer, Formula
from cellformer.workbooks.no_attention.layers import (
    DELETED,
    LEFT,
    MODELS,
    N_TOKENS,
    TRANSPARENT,
    WHOLE,
)
from cellformer.workbooks.two_layers.fitting import D_MODEL, PROMPT, WORDS

LAST = N_TOKENS - 1
FORBIDDEN = -12.0  # the logit of the word itself: e to it is 6 in a million
GAPS = ((WHOLE, DELETED), (TRANSPARENT, DELETED), (WHOLE, TRANSPARENT))
GAP_NAMES = [f"{a} − {b}" for a, b in GAPS]
Streams = dict[str, Area]  # of each model: [n_tokens, d_model]


def compare_streams(ws: Composer, streams: list[Streams]) -> None:
    """Add the streams after each layer, and their final differences."""
    _, after_0, after_1 = streams
    streams_after(ws, 0, after_0)
    differences(ws, streams_after(ws, 1, after_1))


def copied(x: Area) -> Formula:
    """The formula of a copied cell."""
    return lambda i, j: x[i, j]


def difference(x: Area, y: Area) -> Formula:
    """x - y, cell by cell."""
    return lambda i, j: x[i, j] - y[i, j]


def streams_after(ws: Composer, n: int, streams: Streams) -> Streams:
    """The three streams after layer n, side by side."""
    ws.heading(f"The stream after layer {n}")
    top = ws.cursor
    return {
        model: ws.computed(
            f"{model}_after_{n}",
            stream.shape,
            copied(stream),
            PROMPT,
            title=model,
            left=left,
            top=top,
            dress="diverging",
        )
        for left, (model, stream) in zip(LEFT, streams.items(), strict=True)
    }


def differences(ws: Composer, after: Streams) -> None:
    """Add the final differences of the streams, and their sizes."""
    ws.heading(
        "Differences after layer 1, and their sizes",
        "size of a word's difference = square root of the sum of its squared numbers",
        style="equation",
    )
    top = ws.cursor
    gaps = [
        ws.computed(
            f"gap_{a}_{b}",
            (N_TOKENS, D_MODEL),
            difference(after[a], after[b]),
            PROMPT,
            title=f"{a} − {b}",
            left=left,
            top=top,
        )
        for left, (a, b) in zip(LEFT, GAPS, strict=True)
    ]

    def size(gap: int, word: int) -> Expression:
        row = gaps[gap][word, :]
        return SQRT(SUMPRODUCT(row, row))

    ws.computed("sizes", (len(GAPS), N_TOKENS), size, GAP_NAMES, PROMPT, "sizes")


def read_out(ws: Composer, streams: Streams, U: Area) -> None:
    """Logits, exponentials and probabilities after the last word: [models, d_vocab]."""
    ws.heading(
        "The probabilities of the next word",
        "logits = last row of h² U; probability = exponential / sum of the row",
        style="equation",
    )
    last = [streams[model][LAST, :] for model in MODELS]

    def table(name: str, title: str, cell: Formula) -> Area:
        return ws.computed(name, (len(MODELS), len(WORDS)), cell, MODELS, WORDS, title, "readout")

    logits = table("logits", "logits", lambda m, j: dot(last[m], U[:, j]))
    exps = table("exps", "exponentials", lambda m, j: EXP(logits[m, j]))
    probs = table("probs", "probabilities", lambda m, j: exps[m, j] / SUM(exps[m, :]))
    first_row = ws.rect(probs[0, :])
    words = ws.sheet[first_row.top - 1, first_row.left : first_row.right]
    ws.chart(
        Chart(
            ws.rect(logits).top - 2,
            12,
            "column",
            "Probabilities, next word",
            [Series(MODELS[m], words, probs[m, :]) for m in range(2)],
            shares=True,
        )
    )


def never_the_same(ws: Composer) -> Area:
    """A model without attention that keeps the essay's example of a rule: [1, d_vocab], the
    probabilities that it gives to the word itself."""
    ws.text(
        "The essay says that a model without attention cannot express ‘the next item must differ "
        "from the current one’.",
        "But a model without attention sees the current word, and a table can forbid that "
        "word. A rule about an earlier word does need attention.",
    )
    ws.heading(
        "One row of logits for each current word: the same word almost never comes next",
        "probability = exp(logit) / sum of exps in the row    [d_vocab, d_vocab]",
        style="equation",
    )
    n = len(WORDS)
    logits = ws.typed(
        "next_logits", np.where(np.eye(n) > 0, FORBIDDEN, 0.0), WORDS, WORDS, "logits", "weight"
    )
    shares = ws.computed(
        "next_probs",
        (n, n),
        lambda i, j: EXP(logits[i, j]) / added(EXP(logits[i, k]) for k in range(n)),
        WORDS,
        WORDS,
        "probabilities",
        "readout",
        dress="scale",
    )
    own = [shares[k, k] for k in range(n)]
    return ws.computed("repeats", (1, n), lambda _, k: own[k], ["the same again"], WORDS)


def copies(ws: Composer, h0: Area) -> None:
    """The stricter case, which is not transparent: every word attends only to itself, and its
    vector is copied."""
    ws.heading(
        "Not transparent: each word attends only to itself, and values are copies (W_V W_O = I)",
        "h_mid = h⁰ + pattern h⁰ = 2 h⁰: attention doubles the stream",
        style="equation",
    )
    top = ws.cursor
    own = ws.typed("copy_pattern", np.eye(N_TOKENS), PROMPT, title="pattern")

    def doubled(i: int, j: int) -> Expression:
        return added([h0[i, j], *(own[i, word] * h0[word, j] for word in range(N_TOKENS))])

    ws.computed("copy_mid", h0.shape, doubled, PROMPT, title="h_mid", left=LEFT[1], top=top)
