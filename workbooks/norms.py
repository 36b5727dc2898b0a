"""norms: LayerNorm and RMSNorm on the same vector, step by step, and before or after a sublayer.

LayerNorm ignores a vector's scale and an offset of all its entries; RMSNorm ignores only the scale.
Look at what changes in each, and at the size of the stream in a stack. Suggestion a scale of 0.001.
"""

import numpy as np

from engine.cells.access import Rect
from exporters.book import Book, Chart, Series
from exporters.by_hand import Comparison, Table, Workbook, near
from exporters.story import Story, Suggestion

TOPIC = "Inside a block"
TITLE = "norms: LayerNorm and RMSNorm, before and after a sublayer"
X, SCALE, OFFSET, EPS = np.array([2.0, -1.0, 0.5, 3.0, -0.5, 1.0]), 3.0, 2.0, 1e-5
GAIN, BIAS = np.array([1.0, 1.5, 1.0, 0.5, 1.0, 2.0]), np.array([0.0, 0.0, 0.5, 0.0, -0.5, 0.0])
STATES, ENTRIES = ("x", "scale · x", "x + offset"), [f"x{j}" for j in range(1, len(X) + 1)]
X_0, LAYERS, STRENGTH = np.array([1.0, -0.5, 0.25, 0.5]), 8, 1.0  # of the stack
W = np.random.default_rng(1).normal(0, 0.5, (len(X_0), len(X_0))).round(1).T
KINDS = ("no norms", "pre-norm", "post-norm")
NONE, PRE, POST = range(len(KINDS))


def states(scale: float = SCALE, offset: float = OFFSET) -> np.ndarray:
    """The vector as typed, scaled, and offset: [3, d_model]."""
    return np.array([X, scale * X, X + offset])


def normed(x: np.ndarray, centre: bool) -> np.ndarray:
    """Each row over the root of its mean square, its mean taken off before if `centre`: [n, d]."""
    x = x - centre * x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPS)


def stacks(strength: float = STRENGTH) -> np.ndarray:
    """The streams of `KINDS` before the first layer and after each: [3, layers + 1, d]."""
    f = strength * W.T
    streams = [np.array([X_0] * len(KINDS))]
    for _ in range(LAYERS):
        none, pre, post = streams[-1]
        after = none + none @ f, pre + normed(pre, True) @ f, normed(post + post @ f, True)
        streams.append(np.array(after))
    return np.stack(streams, axis=1)


def vectors(w: Workbook) -> tuple[Table, ...]:
    """Both norms of the three states: the settings, then of each norm what `norm` gives."""
    ws = w.sheet("Norms", "a vector as typed, scaled and offset: what each norm makes of the three")
    ws.widths({0: 18, **dict.fromkeys((7, 8, 11), 2), 9: 12})
    settings = ws.table("settings", [SCALE, OFFSET, EPS], None, (), ["scale", "offset", "eps"],
                        style="input setting")  # fmt: skip
    eps = settings.at(0, 2)
    typed = ws.table("typed", [X, GAIN, BIAS], None, ["x   [d_model]", "gain γ", "bias β"], ENTRIES)
    ws.heading("The vector in three states: what a norm ignores, it makes the same in two of them")
    x = ws.table("states", states(), lambda i, j: typed.at(0, j) if i == 0 else
                 f"{typed.at(0, j)}{' *+'[i]}{settings.at(0, i - 1)}", STATES, ENTRIES)  # fmt: skip
    mean = ws.table("mean", states().mean(axis=1)[:, None], lambda i, _: f"AVERAGE({x.row(i)})",
                    cols=["mean"], beside=x)  # fmt: skip

    def norm(name: str, centre: bool, steps: tuple[str, str, str]) -> tuple[Table, ...]:
        """One norm: the squares' mean before it, mean and variance after, the result, changes."""
        c, n = states() - centre * states().mean(axis=1, keepdims=True), normed(states(), centre)
        y = n * GAIN + centre * BIAS
        start = ws.table(f"{name}_start", c, lambda i, j: x.at(i, j) + (
                         f"-{mean.at(i)}" if centre else ""), STATES, ENTRIES, steps[0])  # fmt: skip
        squares = (c**2).mean(axis=1)[:, None]
        square = ws.table(f"{name}_square", squares, lambda i, _: f"SUMPRODUCT({start.row(i)},"
                          f"{start.row(i)})/{len(X)}", cols=[steps[1]], beside=start)  # fmt: skip
        root = ws.table(f"{name}_root", np.sqrt(squares + EPS), lambda i, _:
                        f"SQRT({square.at(i)}+{eps})", cols=["root"], beside=square)  # fmt: skip
        over = ws.table(f"{name}_over", n, lambda i, j: f"{start.at(i, j)}/{root.at(i)}", STATES,
                        ENTRIES, "divided by the root")  # fmt: skip
        after = ws.table(f"{name}_after", np.column_stack([n.mean(axis=1), n.var(axis=1)]), lambda
            i, j: f"{('AVERAGE', 'VARP')[j]}({over.row(i)})", (), ["mean", "variance"], beside=over)  # fmt: skip
        out = ws.table(f"{name}_out", y, lambda i, j: f"{over.at(i, j)}*{typed.at(1, j)}" + (
            f"+{typed.at(2, j)}" if centre else ""), STATES, ENTRIES, steps[2], "readout")  # fmt: skip
        moved = ws.table(f"{name}_moved", y[1:] - y[0], lambda i, j: f"{out.at(i + 1, j)}-"
                         f"{out.at(0, j)}", [f"{s}: change" for s in STATES[1:]], style="tiny")  # fmt: skip
        return square, after, out, moved

    ws.heading("LayerNorm: take the mean off, and divide by the root of the variance")
    ws.text("LayerNorm(x) = (x - mean) / sqrt(variance + eps) · γ + β   [d]", style="equation")
    layer = norm("layer", True, ("x - mean", "variance", "times gain, plus bias"))
    ws.heading("RMSNorm: leave the mean where it is, and divide by the root of the mean square")
    ws.text("RMSNorm(x) = x / sqrt(mean square + eps) · γ   [d]", style="equation")
    rms = norm("rms", False, ("x", "mean square", "times gain"))
    for left, title, out in ((0, "LayerNorm", layer[2]), (7, "RMSNorm", rms[2])):
        heads = out.part(slice(1))._replace(top=out.rect.top - 1, bottom=out.rect.top)
        bars = [Series(STATES[i], heads, out.part(slice(i, i + 1))) for i in (0, 2)]
        ws.chart(Chart(ws.cursor, left, "column", title, bars, (480, 280), number="0.0"))
    return settings, *layer, *rms


def stack(w: Workbook, eps: str) -> Table:
    """Layer on layer, without norms, with pre-norm and with post-norm: the sizes of the streams."""
    ws = w.sheet("Stack", "the same sublayer eight times, its norm before it, after it or left out")
    ws.widths({0: 12, **dict.fromkeys(range(1, 27), 9), **dict.fromkeys((5, 6, 21, 22), 2)})
    values, cols = stacks(), ENTRIES[: len(X_0)]
    x_0 = ws.table("x_0", X_0, None, ["x before"], cols)
    strength = ws.table("strength", STRENGTH, rows=["strength"], style="input setting")
    weights = ws.table("W", W, title="W   [d, d], in every layer", style="weight")
    ws.text("f(x) = strength · W x", "without norms: x + f(x)", "pre-norm: x + f(LayerNorm(x))",
            "post-norm: LayerNorm(x + f(x))", style="equation")  # fmt: skip
    row, ws.cursor = x_0.rect.top - 1, x_0.rect.top + 15  # the charts stand beside

    def run(kind: int) -> Table:
        """One kind's stream. Its place is told before it is filled: it reads what it feeds."""
        ws.heading(KINDS[kind])
        start, name = ws.cursor, KINDS[kind].replace("-", "_").replace(" ", "_")
        area, found = Rect(start + 2, start + 3 + LAYERS, 1, 1 + len(cols)), values[kind]
        stream = Table(ws.sheet.name, area, found)

        def layer_norm(z: Table) -> Table:
            x = z.values[:LAYERS].astype(float)
            stats = np.stack([x.mean(axis=1), np.sqrt(x.var(axis=1) + EPS)], axis=1)
            by = ws.table(f"{name}_stats", stats, lambda n, j:
                          f"SQRT(VARP({z.row(n)})+{eps})" if j else f"AVERAGE({z.row(n)})",
                          cols=["mean", "root"], beside=z)  # fmt: skip
            return ws.table(f"{name}_norm", normed(x, True), lambda n, j:
                            f"({z.at(n, j)}-{by.at(n)})/{by.at(n, 1)}",
                            (), cols, "norm", beside=by)  # fmt: skip

        read = layer_norm(stream) if kind == PRE else stream
        f_x = STRENGTH * read.values[:LAYERS].astype(float) @ W.T
        f = ws.table(f"{name}_f", f_x, lambda n, j: f"{strength.at()}*SUMPRODUCT({read.row(n)},"
                     f"{weights.row(j)})", (), cols, "f", beside=read)  # fmt: skip
        total = ws.table(f"{name}_sum", found[:-1] + f_x, lambda n, j:
                         f"{stream.at(n, j)}+{f.at(n, j)}", (), cols, "x + f", beside=f)  # fmt: skip
        after = layer_norm(total) if kind == POST else total
        ws.cursor = start
        return ws.table(name, found, lambda n, j: after.at(n - 1, j) if n else x_0.at(0, j),
                        range(LAYERS + 1), cols, "x, after so many layers")  # fmt: skip

    streams = [run(kind) for kind in range(len(KINDS))]
    ws.heading("Sizes of the streams, sqrt(sum of x²), after so many layers")
    sizes = ws.table("sizes", np.linalg.norm(values, axis=2).T, lambda n, kind: "SQRT(SUMPRODUCT("
                     f"{streams[kind].row(n)},{streams[kind].row(n)}))", range(LAYERS + 1), KINDS)  # fmt: skip
    layers = sizes.part(cols=slice(1))._replace(left=0, right=1)
    for left, title, kinds in ((7, "Before or after", (PRE, POST)), (15, "Or none", (NONE, PRE))):
        lines = [Series(KINDS[k], layers, sizes.part(cols=slice(k, k + 1))) for k in kinds]
        ws.chart(Chart(row, left, "line", title, lines, (440, 300), ("layers", "size"), number="0"))
    return sizes


def book() -> Book:
    """The workbook."""
    w = Workbook("norms")
    settings, _, after, _, moved, square, rms_after, _, _ = vectors(w)
    eps, sizes = settings.at(0, 2), stack(w, settings.at(0, 2))
    left = f"LayerNorm gives 0, but RMSNorm leaves the mean in: {rms_after.values[0, 0]:.3f}"
    w.compare([
        Comparison("LayerNorm before gain and bias: mean of the entries", 0, after, decimals=0),
        Comparison("their variance", 1, after, 0, 1, decimals=0),
        Comparison("RMSNorm, said to do essentially the same: mean", 0, rms_after, note=left),
    ])  # fmt: skip
    post = ",".join(sizes.at(n + 1, POST) for n in range(LAYERS))
    w.checks([
        ("LayerNorm: the entries of every row have mean 0", near(after.column(0), 0)),
        ("RMSNorm: the entries' mean square is mean square / (mean square + eps)",
         near(f"{rms_after.at(0, 1)}+{rms_after.at()}^2", f"{square.at()}/({square.at()}+{eps})")),
        ("LayerNorm ignores the offset", near(moved.row(1), 0)),
        ("post-norm: no size exceeds sqrt(d)", f"MAX({post})<SQRT({len(X_0)})+0.000000001"),
    ])  # fmt: skip
    return w.done(story())


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    full, tiny = (normed(states(scale=s), True)[1, 3] * GAIN[3] + BIAS[3] for s in (SCALE, 0.001))
    close, far = (normed(states(offset=s), False)[2, 1] * GAIN[1] for s in (OFFSET, 100))
    was, now = (np.linalg.norm(stacks(k)[:, -1], axis=1) for k in (STRENGTH, 3))
    return Story(
        title=TITLE,
        source="After lecture slides and A Gentle Introduction to Transformers; pre-norm and post-norm: Xiong et al. 2020.",
        about=[
            "A norm gives each sublayer an input of one size. LayerNorm ignores a vector's positive scale, and an offset of all",
            "its entries; RMSNorm only the scale. The slides say that it does essentially the same: it leaves the mean in.",
            "The introduction gives the result a mean β and deviation γ: but each entry has a β and γ of its own. It omits eps.",
            "Pre-norm: the stream is never divided and may grow; the norm before the logits is missing in the introduction's table.",
        ],
        look=[
            "Norms: the changes, six decimals each: what eps leaves, and what RMSNorm lets through.",
            "Stack: without norms the stream grows by a factor, with pre-norm by steps of one size, with post-norm it stays at sqrt(d).",
        ],
        tries=[
            Suggestion(f"Type 0.001, a scale that brings the variance near eps: LayerNorm of it gives {tiny:.3f} for x4, not {full:.3f}.",
                ("settings", 0, 0), 0.001, ("layer_out", 1, 3), float(tiny)),
            Suggestion(f"Type 100: RMSNorm makes x2 {far:.3f}, not {close:.3f}: nearly its gain, whatever x2 was. LayerNorm's rows stay.",
                ("settings", 0, 1), 100, ("rms_out", 2, 1), float(far)),
            Suggestion(f"Type 3: pre-norm ends at {now[PRE]:.1f}, not {was[PRE]:.1f}; without norms at {now[NONE]:.0f}, not {was[NONE]:.0f}; post-norm stays at {now[POST]:.1f}.",
                ("strength", 0, 0), 3, ("sizes", LAYERS, PRE), float(now[PRE])),
        ],
    )  # fmt: skip
