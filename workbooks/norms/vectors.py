"""The sheet Norms: LayerNorm and RMSNorm of one vector as typed, scaled and offset."""

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import AVERAGE, SQRT, SUMPRODUCT, VARP
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer

X = (2.0, -1.0, 0.5, 3.0, -0.5, 1.0)
GAIN = (1.0, 1.5, 1.0, 0.5, 1.0, 2.0)
BIAS = (0.0, 0.0, 0.5, 0.0, -0.5, 0.0)
SCALE, OFFSET, EPS = 3.0, 2.0, 1e-5
D = len(X)
STATES = ("x", "scale · x", "x + offset")
ENTRIES = [f"x{j}" for j in range(1, D + 1)]
ALL = (len(STATES), D)  # a row for each state
EACH = (len(STATES), 1)  # a number for each state

CHART_COL = 14  # right of the tables


def add(w: Workbook) -> None:
    """Add the sheet: the inputs, LayerNorm and RMSNorm."""
    ws = w.sheet(
        "Norms",
        "a vector as typed, scaled and offset, with both norms of each version",
        widths={0: 18, **dict.fromkeys((7, 8, 11), 2), 9: 12},
    )
    three_states(ws)
    layer_norm(ws)
    rms_norm(ws)
    chart(ws, 3, "LayerNorm", ws["layer_out"])
    chart(ws, 15, "RMSNorm", ws["rms_out"])


def three_states(ws: Composer) -> None:
    """Add the settings, and the vector as typed, scaled and offset."""
    settings = ws.typed(
        "settings", [SCALE, OFFSET, EPS], cols=["scale", "offset", "eps"], style="input setting"
    )
    scale, offset = settings[0], settings[1]
    labels = ["x   [d_model]", "gain γ", "bias β"]
    x = ws.typed("typed", [X, GAIN, BIAS], labels, ENTRIES)[0, :]

    def entry(i: int, j: int) -> Expression:
        return (x[j], x[j] * scale, x[j] + offset)[i]

    ws.heading("The vector in three states: if a norm ignores a change, two results are equal")
    states = ws.computed("states", ALL, entry, STATES, ENTRIES)
    ws.computed("mean", EACH, lambda i, _: AVERAGE(states[i, :]), cols=["mean"], beside=states)


def layer_norm(ws: Composer) -> None:
    """Add LayerNorm of the three states."""
    states, mean, (gain, bias) = ws["states"], ws["mean"], (ws["typed"][k, :] for k in (1, 2))
    ws.heading(
        "LayerNorm: subtract the mean, and divide by the root of the variance",
        "LayerNorm(x) = (x - mean) / sqrt(variance + eps) · γ + β   [d]",
        style="equation",
    )
    start = ws.computed(
        "layer_start",
        ALL,
        lambda i, j: states[i, j] - mean[i],
        STATES,
        ENTRIES,
        "x - mean",
    )
    over = divided(ws, "layer", start, "variance")
    out = ws.computed(
        "layer_out",
        ALL,
        lambda i, j: over[i, j] * gain[j] + bias[j],
        STATES,
        ENTRIES,
        "times gain, plus bias",
        "readout",
    )
    changes(ws, "layer_moved", out)


def rms_norm(ws: Composer) -> None:
    """Add RMSNorm of the three states."""
    states, gain = ws["states"], ws["typed"][1, :]
    ws.heading(
        "RMSNorm: keep the mean, and divide by the root of the mean square",
        "RMSNorm(x) = x / sqrt(mean square + eps) · γ   [d]",
        style="equation",
    )
    start = ws.computed("rms_start", ALL, lambda i, j: states[i, j], STATES, ENTRIES, "x")
    over = divided(ws, "rms", start, "mean square")
    out = ws.computed(
        "rms_out",
        ALL,
        lambda i, j: over[i, j] * gain[j],
        STATES,
        ENTRIES,
        "times gain",
        "readout",
    )
    changes(ws, "rms_moved", out)


def divided(ws: Composer, name: str, x: Area, what: str) -> Area:
    """Add the mean square of each row, the rows divided by its root, and their mean and variance;
    returns the rows."""
    eps = ws["settings"][2]
    square = ws.computed(
        f"{name}_square", EACH, lambda i, _: SUMPRODUCT(x[i, :], x[i, :]) / D, cols=[what], beside=x
    )
    root = ws.computed(
        f"{name}_root", EACH, lambda i, _: SQRT(square[i] + eps), cols=["root"], beside=square
    )
    over = ws.computed(
        f"{name}_over", ALL, lambda i, j: x[i, j] / root[i], STATES, ENTRIES, "divided by the root"
    )
    ws.computed(
        f"{name}_after",
        (len(STATES), 2),
        lambda i, j: (AVERAGE, VARP)[j](over[i, :]),
        cols=["mean", "variance"],
        beside=over,
    )
    return over


def changes(ws: Composer, name: str, out: Area) -> None:
    """Add the changes of a norm's result by the scale and by the offset: [2, d_model]."""
    ws.computed(
        name,
        (len(STATES) - 1, D),
        lambda i, j: out[i + 1, j] - out[0, j],
        [f"{state}: change" for state in STATES[1:]],
        style="tiny",
    )


def chart(ws: Composer, row: int, title: str, out: Area) -> None:
    """The results for the vector as typed and offset, as bars."""
    top, _, first, end = ws.rect(out)
    entries = ws.sheet[top - 1, first:end]
    ws.chart(
        Chart(
            row,
            CHART_COL,
            "column",
            title,
            [Series(STATES[i], entries, out[i, :]) for i in (0, 2)],
            size=(330, 240),
            number="0.0",
        )
    )
