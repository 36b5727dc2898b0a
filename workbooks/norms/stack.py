"""The sheet Stack: one sublayer eight times in a row, without norms, with pre-norm, with
post-norm."""

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import AVERAGE, SQRT, SUMPRODUCT, VARP
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer

X_0 = (1.0, -0.5, 0.25, 0.5)
D = len(X_0)
LAYERS, STRENGTH = 8, 1.0
W = np.random.default_rng(1).normal(0, 0.5, (D, D)).round(1).T
ENTRIES = [f"x{j}" for j in range(1, D + 1)]
KINDS = ("no norms", "pre-norm", "post-norm")
NONE, PRE, POST = range(len(KINDS))
STEPS = (LAYERS, D)  # a row for each layer


def add(w: Workbook) -> None:
    """Add the sheet, and charts of the sizes of the streams."""
    ws = w.sheet(
        "Stack",
        "eight layers with the same sublayer: a norm before it, a norm after it, or no norm",
        widths={0: 12, **dict.fromkeys(range(1, 27), 9), **dict.fromkeys((5, 6, 21, 22), 2)},
    )
    typed(ws)
    top = ws.rect(ws["x_0"]).top
    ws.cursor = top + 15  # the charts stand beside
    streams = [stream(ws, kind) for kind in range(len(KINDS))]

    def size(n: int, kind: int) -> Expression:
        x = streams[kind][n, :]
        return SQRT(SUMPRODUCT(x, x))

    ws.heading("Sizes of the streams, sqrt(sum of x²), by number of layers")
    sizes = ws.computed("sizes", (LAYERS + 1, len(KINDS)), size, range(LAYERS + 1), KINDS)
    chart(ws, (top - 1, 7), "Before or after", sizes, (PRE, POST))
    chart(ws, (top - 1, 13), "Or none", sizes, (NONE, PRE))


def typed(ws: Composer) -> None:
    """Add the initial vector, and the sublayer f."""
    ws.typed("x_0", X_0, ["x before"], ENTRIES)
    ws.typed("strength", STRENGTH, ["strength"], style="input setting")
    ws.typed("W", W, title="W   [d, d], in every layer", style="weight")
    ws.text(
        "f(x) = strength · W x",
        "without norms: x + f(x)",
        "pre-norm: x + f(LayerNorm(x))",
        "post-norm: LayerNorm(x + f(x))",
        style="equation",
    )


def stream(ws: Composer, kind: int) -> Area:
    """Add one kind's stream before layer 0 and after each: [layers + 1, d].

    Its steps are to its right: each row of them reads a row of the stream, and makes the next one.
    """
    x_0, strength, weights = ws["x_0"], ws["strength"], ws["W"]
    ws.heading(KINDS[kind])
    name = KINDS[kind].replace("-", "_").replace(" ", "_")
    x = ws.promised(name, (LAYERS + 1, D), range(LAYERS + 1), ENTRIES, "x, by number of layers")
    read = layer_norm(ws, name, x) if kind == PRE else x
    f = ws.computed(
        f"{name}_f",
        STEPS,
        lambda n, j: strength * SUMPRODUCT(read[n, :], weights[j, :]),
        cols=ENTRIES,
        title="f",
        beside=read,
    )
    total = ws.computed(
        f"{name}_sum", STEPS, lambda n, j: x[n, j] + f[n, j], cols=ENTRIES, title="x + f", beside=f
    )
    after = layer_norm(ws, name, total) if kind == POST else total
    ws.fill(x, lambda n, j: after[n - 1, j] if n else x_0[j])
    return x


def layer_norm(ws: Composer, name: str, x: Area) -> Area:
    """LayerNorm without gain and bias of a row for each layer, beside it: [layers, d]."""
    eps = ws["settings"][2]

    stats = ws.computed(
        f"{name}_stats",
        (LAYERS, 2),
        lambda n, j: SQRT(VARP(x[n, :]) + eps) if j else AVERAGE(x[n, :]),
        cols=["mean", "root"],
        beside=x,
    )
    return ws.computed(
        f"{name}_norm",
        STEPS,
        lambda n, j: (x[n, j] - stats[n, 0]) / stats[n, 1],
        cols=ENTRIES,
        title="norm",
        beside=stats,
    )


def chart(
    ws: Composer, at: tuple[int, int], title: str, sizes: Area, kinds: tuple[int, ...]
) -> None:
    """The sizes of some streams, as lines over the layers."""
    top, bottom, left, _ = ws.rect(sizes)
    layers = ws.sheet[top:bottom, left - 1]
    ws.chart(
        Chart(
            *at,
            "line",
            title,
            [Series(KINDS[kind], layers, sizes[:, kind]) for kind in kinds],
            size=(350, 300),
            axes=("layers", "size"),
            number="0",
        )
    )
