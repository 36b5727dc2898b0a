"""norms: LayerNorm and RMSNorm on the same vector, and where in a layer they stand.

Look at each step, and at the size of the stream layer by layer. Try another scale, another offset:
LayerNorm sees neither, RMSNorm sees the offset.
"""

from collections.abc import Callable

import numpy as np

from engine.access import Rect
from exporters.book import Book, Chart, Series
from exporters.pages import Story, Try
from exporters.worksheet import Table, Workbook, Worksheet, near

TOPIC = "Inside a block"
TITLE = "norms: LayerNorm and RMSNorm, before and after a sublayer"
X = np.array([2.0, -1.0, 0.5, 3.0, 0.0, -1.5])
SCALE, OFFSET, EPS = 1.0, 0.0, 1e-5
GAIN, BIAS = np.ones(6), np.zeros(6)
START = np.array([1.0, -0.5, 0.25, 0.75])  # of the stream, [d_model]
W = np.array(
    [[0.6, -0.2, 0.1, 0.3], [0.2, 0.5, -0.3, 0.1], [-0.1, 0.3, 0.7, 0.2], [0.3, 0.1, -0.2, 0.4]]
)  # fmt: skip  [d_model, d_model], a row for each output
N_LAYERS = 8
FEATURES = tuple(f"x{k + 1}" for k in range(6))
PLACES = ("none", "pre", "post")


def layer_norm(x: np.ndarray, eps: float = EPS) -> np.ndarray:
    """Centred, divided by the standard deviation (Ba et al. 2016, section 3): [..., d_model]."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)


def rms_norm(x: np.ndarray, eps: float = EPS) -> np.ndarray:
    """Divided by the root mean square (Zhang & Sennrich 2019, section 4): [..., d_model]."""
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)


def stack(place: str, w: np.ndarray = W) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The stream, what the sublayer reads and what it writes: each [N_LAYERS + 1, d_model]."""
    stream, read, wrote = [START], [], []
    for _ in range(N_LAYERS + 1):
        x = stream[-1]
        read.append(layer_norm(x) if place == "pre" else x)
        wrote.append(w @ read[-1])
        total = x + wrote[-1]
        stream.append(layer_norm(total) if place == "post" else total)
    return np.array(stream[:-1]), np.array(read), np.array(wrote)


def size(x: np.ndarray) -> np.ndarray:
    """The root mean square of each row."""
    return np.sqrt((x**2).mean(axis=1, keepdims=True))


def book() -> Book:
    """The workbook."""
    w = Workbook("norms")
    layer, rms = step_by_step(w)
    layers(w)
    w.checks([
        ("what LayerNorm leaves has mean 0", near(f"AVERAGE({layer.all()})", 0), True),
        ("what RMSNorm leaves has root mean square 1, but for eps",
         f"ABS(SQRT(SUMPRODUCT({rms.all()},{rms.all()})/6)-1)<0.001", True),
    ])  # fmt: skip
    return w.done(story())


def step_by_step(w: Workbook) -> tuple[Table, Table]:
    """Both norms of one vector, a column for each step; what each leaves before the gain."""
    ws = w.sheet("Norms", "the same vector through both norms, a step in each column")
    ws.heading("The vector: x = scale · typed + offset   [d_model]")
    settings = ws.table("settings", [[SCALE, OFFSET, EPS]], None, (), ("scale", "offset", "eps"),
                        style="input setting")  # fmt: skip
    scale, offset, eps = (settings.at(0, k, fixed=True) for k in range(3))
    typed = ws.table("typed", X[:, None], None, FEATURES, ["typed"])
    x = SCALE * X + OFFSET
    column = Columns(ws, typed)
    moved = column.add("x", x, lambda i: f"{scale}*{typed.at(i)}+{offset}")
    gain = column.add("gain", GAIN, None)
    bias = column.add("bias", BIAS, None)
    ws.heading("LayerNorm: centre, divide by the standard deviation, gain and bias")
    ws.text("out = (x - mean) / sqrt(variance + eps) · gain + bias", style="equation")
    mean = ws.table("mean", x.mean(), f"AVERAGE({moved.all()})", ["mean"])
    variance = ws.table("variance", x.var(), f"VARP({moved.all()})", ["variance"])
    deviation = ws.table("deviation", np.sqrt(x.var() + EPS),
                         f"SQRT({variance.at()}+{eps})", ["deviation"])  # fmt: skip
    centred = ws.table("centred", (x - x.mean())[:, None],
                       lambda i, j: f"{moved.at(i)}-{mean.at(fixed=True)}", FEATURES,
                       ["centred"])  # fmt: skip
    column = Columns(ws, centred)
    left = column.add("divided", layer_norm(x), lambda i: f"{centred.at(i)}/{deviation.at()}")
    column.add("layer_norm", layer_norm(x) * GAIN + BIAS,
               lambda i: f"{left.at(i)}*{gain.at(i)}+{bias.at(i)}")  # fmt: skip
    ws.heading("RMSNorm: divide by the root mean square, gain; nothing is centred, no bias")
    ws.text("out = x / sqrt(mean of squares + eps) · gain", style="equation")
    squares = ws.table("mean_square", (x**2).mean(),
                       f"SUMPRODUCT({moved.all()},{moved.all()})/6", ["mean square"])  # fmt: skip
    root = ws.table("root", np.sqrt((x**2).mean() + EPS), f"SQRT({squares.at()}+{eps})", ["root"])
    plain = ws.table("rms_divided", rms_norm(x)[:, None],
                     lambda i, j: f"{moved.at(i)}/{root.at(fixed=True)}", FEATURES,
                     ["divided"])  # fmt: skip
    Columns(ws, plain).add("rms_norm", rms_norm(x) * GAIN, lambda i: f"{plain.at(i)}*{gain.at(i)}")
    return left, plain


class Columns:
    """Tables of one column, each to the right of the one before."""

    def __init__(self, ws: Worksheet, first: Table):
        self.ws, self.last = ws, first

    def add(self, name: str, values: np.ndarray, formula: Callable[[int], str] | None) -> Table:
        """One more; typed where there is no formula."""
        text = (lambda i, j: formula(i)) if formula else None
        self.last = self.ws.table(name, values[:, None], text, cols=[name.replace("_", " ")],
                                  style="" if formula else "weight", beside=self.last)  # fmt: skip
        return self.last


def layers(w: Workbook) -> None:
    """The same linear sublayer again and again: without a norm, before it, after it."""
    ws = w.sheet("Layers", "how the stream grows: no norm, a norm before each sublayer, or after")
    ws.widths(dict.fromkeys(range(1, 24), 7))
    start = ws.table("start", START, None, ["stream at first"])
    weights = ws.table("W", W, None, ("o1", "o2", "o3", "o4"), title="W of every sublayer, a row for each output",
                       style="weight")  # fmt: skip
    sizes = [run(ws, place, start, weights) for place in PLACES]
    numbers = Table(ws.sheet.name, Rect(sizes[0].rect.top, sizes[0].rect.bottom, 0, 1), np.zeros(1))
    series = [Series(title, numbers.rect, table.rect)
              for title, table in zip(("no norm", "before", "after"), sizes, strict=True)]  # fmt: skip
    ws.chart(Chart(4, 10, "scatter", "Size of the stream after each layer", series, (560, 220),
                   ("layers", "root mean square"), joined=True, number="0.0"))  # fmt: skip


def run(ws: Worksheet, place: str, start: Table, weights: Table) -> Table:
    """One stack: stream, read, written, size; a row for each layer."""
    equations = {"none": "x ← x + W x", "pre": "x ← x + W LayerNorm(x)",
                 "post": "x ← LayerNorm(x + W x)"}  # fmt: skip
    ws.heading({"none": "No norm", "pre": "Before the sublayer", "post": "After it"}[place])
    ws.text(equations[place] + "   [layers, d_model]", style="equation")
    values = stack(place)
    top, rows = ws.cursor + 1, N_LAYERS + 1
    x, read, wrote = (Table(ws.sheet.name, Rect(top, top + rows, left, left + 4), v)
                      for left, v in zip((1, 7, 13), values, strict=True))  # fmt: skip

    def norm(cell: str, row: str) -> str:
        return f"({cell}-AVERAGE({row}))/SQRT(VARP({row})+{EPS:.5f})"

    def stream(i: int, j: int) -> str:
        if i == 0:
            return start.at(0, j)
        if place != "post":
            return f"{x.at(i - 1, j)}+{wrote.at(i - 1, j)}"
        total = [f"{x.at(i - 1, k)}+{wrote.at(i - 1, k)}" for k in range(4)]
        mean = f"(SUM({x.row(i - 1)})+SUM({wrote.row(i - 1)}))/4"
        spread = "+".join(f"({cell}-{mean})^2" for cell in total)
        return f"({total[j]}-{mean})/SQRT(({spread})/4+{EPS:.5f})"

    ws.table(f"stream_{place}", values[0], stream, range(rows), title="stream x")
    ws.table(f"read_{place}", values[1],
             lambda i, j: norm(x.at(i, j), x.row(i)) if place == "pre" else x.at(i, j),
             title="read", beside=x)  # fmt: skip
    ws.table(f"wrote_{place}", values[2],
             lambda i, j: f"SUMPRODUCT({weights.row(j)},{read.row(i)})",
             title="written W · read", beside=read)  # fmt: skip
    return ws.table(f"size_{place}", size(values[0]),
                    lambda i, j: f"SQRT(SUMPRODUCT({x.row(i)},{x.row(i)})/4)",
                    title="size", beside=wrote, style="readout")  # fmt: skip


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    scaled, shifted = layer_norm(10 * X)[0], rms_norm(X + 5)[0]
    strong = W.copy()
    strong[0, 0] = 2.0
    grown, before = size(stack("pre", strong)[0])[-1, 0], size(stack("pre")[0])[-1, 0]
    return Story(
        title=TITLE,
        source="After A Gentle Introduction to Transformers, LayerNorm, and lecture slides, RMSNorm.",
        about=[
            "A norm keeps what a sublayer reads on one scale, whatever the stream has grown to.",
            "The slides call RMSNorm the same effect: it is, but for the mean, which it leaves in.",
            "Before the sublayer (GPT-2) the stream may grow; after it (2017) it is set back each time.",
        ],
        look=["Norms: each step. Layers: the stream of eight layers, and its size as a chart."],
        tries=[
            Try(f"Type 10, a scale: the first number stays {scaled:.3f}; neither norm sees it.",
                ("settings", 0, 0), 10.0, ("layer_norm", 0, 0), scaled),
            Try(f"Type 5, an offset: RMSNorm's first number goes from {rms_norm(X)[0]:.3f} to "
                f"{shifted:.3f}; LayerNorm's stays.",
                ("settings", 0, 1), 5.0, ("rms_norm", 0, 0), shifted),
            Try(f"Type 2, a larger weight: with norms before it the stream's size after eight "
                f"layers is {grown:.1f} instead of {before:.1f}: it grows step by step, not by factors.",
                ("W", 0, 0), 2.0, ("size_pre", N_LAYERS, 0), grown),
        ],
    )  # fmt: skip
