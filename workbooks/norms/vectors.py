"""The sheet Norms: LayerNorm and RMSNorm of one vector as typed, scaled and offset."""

from typing import NamedTuple

from cellformer.engine.cells.expression import Area
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


class Given(NamedTuple):
    """The inputs of the two norms."""

    scale: Area
    offset: Area
    eps: Area
    gain: Area  # [1, d_model]
    bias: Area  # [1, d_model]
    states: Area  # [3, d_model]
    mean: Area  # [3, 1]


class Norm(NamedTuple):
    """A norm's results for the three states."""

    square: Area  # [3, 1]: the mean square of what it divides
    after: Area  # [3, 2]: mean and variance of what it has divided
    out: Area  # [3, d_model]
    moved: Area  # [2, d_model]: what the scale and the offset change of it


def add(w: Workbook) -> tuple[Given, Norm, Norm]:
    """Add the sheet: the inputs, LayerNorm and RMSNorm."""
    ws = w.sheet(
        "Norms",
        "a vector as typed, scaled and offset: what each norm makes of the three",
        widths={0: 18, **dict.fromkeys((7, 8, 11), 2), 9: 12},
    )
    given = three_states(ws)
    layer, rms = layer_norm(ws, given), rms_norm(ws, given)
    chart(ws, 3, "LayerNorm", layer.out)
    chart(ws, 15, "RMSNorm", rms.out)
    return given, layer, rms


def three_states(ws: Composer) -> Given:
    """The settings, and the vector as typed, scaled and offset."""
    settings = ws.typed(
        "settings", [SCALE, OFFSET, EPS], cols=["scale", "offset", "eps"], style="input setting"
    )
    scale, offset, eps = (settings[0, k] for k in range(3))
    typed = ws.typed("typed", [X, GAIN, BIAS], ["x   [d_model]", "gain γ", "bias β"], ENTRIES)
    x, gain, bias = (typed[k, :] for k in range(3))

    ws.heading("The vector in three states: what a norm ignores, it makes the same in two of them")
    states = ws.computed(
        "states", ALL, lambda i, j: (x[j], x[j] * scale, x[j] + offset)[i], STATES, ENTRIES
    )
    mean = ws.computed(
        "mean", EACH, lambda i, _: AVERAGE(states[i, :]), cols=["mean"], beside=states
    )
    return Given(scale, offset, eps, gain, bias, states, mean)


def layer_norm(ws: Composer, given: Given) -> Norm:
    """LayerNorm of the three states."""
    ws.heading(
        "LayerNorm: take the mean off, and divide by the root of the variance",
        "LayerNorm(x) = (x - mean) / sqrt(variance + eps) · γ + β   [d]",
        style="equation",
    )
    start = ws.computed(
        "layer_start",
        ALL,
        lambda i, j: given.states[i, j] - given.mean[i],
        STATES,
        ENTRIES,
        "x - mean",
    )
    square, over, after = divided(ws, "layer", start, "variance", given.eps)
    out = ws.computed(
        "layer_out",
        ALL,
        lambda i, j: over[i, j] * given.gain[j] + given.bias[j],
        STATES,
        ENTRIES,
        "times gain, plus bias",
        "readout",
    )
    return Norm(square, after, out, changes(ws, "layer_moved", out))


def rms_norm(ws: Composer, given: Given) -> Norm:
    """RMSNorm of the three states."""
    ws.heading(
        "RMSNorm: leave the mean where it is, and divide by the root of the mean square",
        "RMSNorm(x) = x / sqrt(mean square + eps) · γ   [d]",
        style="equation",
    )
    states = given.states
    start = ws.computed("rms_start", ALL, lambda i, j: states[i, j], STATES, ENTRIES, "x")
    square, over, after = divided(ws, "rms", start, "mean square", given.eps)
    out = ws.computed(
        "rms_out",
        ALL,
        lambda i, j: over[i, j] * given.gain[j],
        STATES,
        ENTRIES,
        "times gain",
        "readout",
    )
    return Norm(square, after, out, changes(ws, "rms_moved", out))


def divided(ws: Composer, name: str, x: Area, what: str, eps: Area) -> tuple[Area, Area, Area]:
    """Add the mean square of each row, the rows divided by its root, and their mean and
    variance."""
    square = ws.computed(
        f"{name}_square", EACH, lambda i, _: SUMPRODUCT(x[i, :], x[i, :]) / D, cols=[what], beside=x
    )
    root = ws.computed(
        f"{name}_root", EACH, lambda i, _: SQRT(square[i] + eps), cols=["root"], beside=square
    )
    over = ws.computed(
        f"{name}_over", ALL, lambda i, j: x[i, j] / root[i], STATES, ENTRIES, "divided by the root"
    )
    after = ws.computed(
        f"{name}_after",
        (len(STATES), 2),
        lambda i, j: (AVERAGE, VARP)[j](over[i, :]),
        cols=["mean", "variance"],
        beside=over,
    )
    return square, over, after


def changes(ws: Composer, name: str, out: Area) -> Area:
    """Add the changes of a norm's result by the scale and by the offset: [2, d_model]."""
    return ws.computed(
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
    bars = [Series(STATES[i], entries, out[i, :]) for i in (0, 2)]
    ws.chart(Chart(row, CHART_COL, "column", title, bars, (330, 240), number="0.0"))
