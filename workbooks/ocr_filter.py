"""ocr-filter: a stroke on 5 x 5 pixels, read by two filters, one stop at a time.

Draw in the grid: 1 is ink. Look at what each filter sees at each stop, and what pooling leaves.
Suggestion a horizontal stroke, a shifted one, another weight.
"""

import numpy as np

from exporters.book import Book
from exporters.by_hand import Comparison, Table, Workbook, Worksheet, near
from exporters.story import Story, Suggestion

TOPIC = "Attention"
TITLE = "ocr-filter: a convolution by hand, beside an attention head"
FILTERS = ("vertical", "horizontal")
STROKE = np.zeros((5, 5))
STROKE[:, 2] = 1.0
WEIGHTS = {
    "vertical": np.array([[-1.0, 2, -1]] * 3),
    "horizontal": np.array([[-1.0] * 3, [2.0] * 3, [-1.0] * 3]),
}
READ = np.kron(np.eye(2), np.ones((1, 4)))  # [classes, features]: each class sums its own filter
SIDE_BY_SIDE = (
    ("", "filter", "attention head"),
    ("what it keeps", "3 x 3 weights", "W_Q, W_K, W_V, and a share of W_O"),
    ("where it looks", "a small window, always the same", "any earlier token, chosen by content"),
    ("how it matches", "pixels times weights, summed", "a query with each key, then softmax"),
    ("the same everywhere", "the weights", "the weights; the pattern is new each time"),
    ("what it gives", "one number: how well the window fits", "a blend of other tokens' values"),
    ("what data sets", "the weights, in training", "the weights in training, the pattern at use"),
)


def windows(image: np.ndarray) -> np.ndarray:
    """Every 3 x 3 window of the image: [3, 3, 3, 3], stops first."""
    return np.lib.stride_tricks.sliding_window_view(image, (3, 3))


def forward(image: np.ndarray = STROKE, **edited: np.ndarray) -> dict[str, np.ndarray]:
    """Feature maps, ReLU, 2 x 2 max-pool at stride 1, features, logits, probabilities."""
    found: dict[str, np.ndarray] = {}
    for name in FILTERS:
        kernel = edited.get(name, WEIGHTS[name])
        found[f"conv_{name}"] = np.einsum("ijkl,kl->ij", windows(image), kernel)
        found[f"relu_{name}"] = np.maximum(found[f"conv_{name}"], 0)
        patches = np.lib.stride_tricks.sliding_window_view(found[f"relu_{name}"], (2, 2))
        found[f"pool_{name}"] = patches.max(axis=(2, 3))
    found["features"] = np.concatenate([found[f"pool_{name}"].ravel() for name in FILTERS])
    found["logits"] = edited.get("read", READ) @ found["features"]
    e = np.exp(found["logits"] - found["logits"].max())
    return found | {"exps": e, "probs": e / e.sum()}


def book() -> Book:
    """The workbook."""
    w, x = Workbook("ocr-filter"), forward()
    ws = w.sheet("Filter", "draw in the grid; each step of the reading follows, left to right")
    ws.widths({0: 14} | dict.fromkeys(range(1, 40), 6.5))
    ws.heading("The image, 5 x 5: type 1 for ink, 0 for blank")
    image = ws.table("image", STROKE, None, range(5), range(5), style="dial")
    ws.shade(image.rect, f"when ink {image.at().partition('!')[2]}=1")
    maps = {name: convolve(ws, x, name, image) for name in FILTERS}
    sums = maps["vertical"]["row sums"] = row_sums(ws, image, maps["vertical"]["weights"])
    probs, features, logits = classify(ws, x, [maps[name]["pool"] for name in FILTERS])
    beside = w.sheet("Filter and head", "two detectors that are used everywhere, side by side")
    beside.widths({0: 22, 1: 40, 2: 46})
    for k, line in enumerate(SIDE_BY_SIDE):
        for col, text in enumerate(line):
            beside.sheet.put(beside.cursor + k, col, text, "text" if k and col else "block")
    compare(w, maps, features, logits, probs)
    w.checks([
        ("probabilities sum to 1", near(f"SUM({probs.all()})")),
        ("nothing after ReLU is below zero", f"MIN({features.all()})>=0"),
        ("the first stop's row sums add up to its entry of the map",
         near(f"SUM({sums.column(0)})", maps["vertical"]["conv"].at(0, 0))),
    ])  # fmt: skip
    return w.done(story())


def convolve(ws: Worksheet, x: dict, name: str, image: Table) -> dict[str, Table]:
    """One filter: weights, feature map, ReLU and pool, side by side."""
    ws.heading(f"The {name} filter at its nine stops, ReLU, max-pool")
    ws.text("conv[i, j] = sum of window(i, j) · weights  [3, 3];  pool: largest of 2 x 2  [2, 2]",
            style="equation")  # fmt: skip
    kernel = ws.table(name, WEIGHTS[name], None, title="weights", style="weight")

    def stop(i: int, j: int) -> str:
        window = (
            f"{image.at(i + k, j)}:{image.at(i + k, j + 2).partition('!')[2]}" for k in range(3)
        )
        return "+".join(f"SUMPRODUCT({row},{kernel.row(k)})" for k, row in enumerate(window))

    conv = ws.table(f"conv_{name}", x[f"conv_{name}"], stop, title="conv", beside=kernel)
    relu = ws.table(f"relu_{name}", x[f"relu_{name}"], lambda i, j: f"MAX({conv.at(i, j)},0)",
                    title="ReLU", beside=conv)  # fmt: skip
    pool = ws.table(f"pool_{name}", x[f"pool_{name}"],
                    lambda i, j: f"MAX({relu.at(i, j)}:{relu.at(i + 1, j + 1).partition('!')[2]})",
                    title="pool", beside=relu)  # fmt: skip
    ws.shade(conv.rect, "diverging")
    return {"weights": kernel, "conv": conv, "relu": relu, "pool": pool}


def row_sums(ws: Worksheet, image: Table, kernel: Table) -> Table:
    """The filter's first two stops row by row, beside the image: [rows, stops]."""
    found = np.einsum("jkl,kl->kj", windows(STROKE)[0, :2], WEIGHTS["vertical"])

    def row_sum(k: int, j: int) -> str:
        end = image.at(k, j + 2).partition("!")[2]
        return f"SUMPRODUCT({image.at(k, j)}:{end},{kernel.row(k)})"

    return ws.table("row_sums", found, row_sum, range(3), ("left", "middle"),
                    "vertical filter, top stops: row sums", beside=image)  # fmt: skip


def classify(ws: Worksheet, x: dict, pools: list[Table]) -> tuple[Table, Table, Table]:
    """Flatten, a linear layer of two classes, softmax."""
    ws.heading("Flatten: four features of each filter; a linear layer; softmax")
    ws.text("logits = read · features  [2];  probs = exp(logits - largest) / sum", style="equation")
    cells = [pool.at(i, j) for pool in pools for i in range(2) for j in range(2)]
    features = ws.table("features", x["features"], lambda i, j: cells[j], ["features"])
    read = ws.table("read", READ, None, FILTERS, title="read", style="weight")
    logits = ws.table("logits", x["logits"][:, None],
                      lambda i, j: f"SUMPRODUCT({read.row(i)},{features.row(0)})",
                      title="logits", beside=read)  # fmt: skip
    exps = ws.table("exps", x["exps"][:, None],
                    lambda i, j: f"EXP({logits.at(i)}-MAX({logits.all()}))", title="exp",
                    beside=logits)  # fmt: skip
    probs = ws.table("probs", x["probs"][:, None], lambda i, j: f"{exps.at(i)}/SUM({exps.all()})",
                     title="probs", beside=exps, style="readout")  # fmt: skip
    return probs, features, logits


def compare(
    w: Workbook, maps: dict[str, dict[str, Table]], features: Table, logits: Table, probs: Table
) -> None:
    """Every number that the appendix prints."""
    printed = {
        ("vertical", "row sums"): [[-1, 2]] * 3, ("vertical", "conv"): [[-3, 6, -3]] * 3,
        ("vertical", "relu"): [[0, 6, 0]] * 3, ("vertical", "pool"): [[6, 6]] * 2,
        ("horizontal", "conv"): [[0, 0, 0]] * 3, ("horizontal", "relu"): [[0, 0, 0]] * 3,
        ("horizontal", "pool"): [[0, 0]] * 2,
    }  # fmt: skip
    rows = [
        Comparison(f"{name} {step} [{i}, {j}]", value, maps[name][step], i, j, decimals=0)
        for (name, step), table in printed.items()
        for i, line in enumerate(table)
        for j, value in enumerate(line)
    ]
    rows += [
        Comparison(f"feature {k}", value, features, 0, k, decimals=0)
        for k, value in enumerate([6] * 4 + [0] * 4)
    ]
    for k, name in enumerate(FILTERS):
        rows.append(Comparison(f"logit, {name}", (24, 0)[k], logits, k, decimals=0))
        rows.append(Comparison(f"probability, {name}", (1.0, 0.0)[k], probs, k))
    w.compare(rows)


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    x, moved, turned = forward(), np.zeros((5, 5)), np.zeros((5, 5))
    moved[:, 1], turned[2] = 1.0, 1.0
    soft = WEIGHTS["vertical"].copy()
    soft[1, 1] = -6.0
    across, shifted = forward(turned)["probs"][1], forward(moved)["logits"][0]
    weak = forward(vertical=soft)["probs"][0]

    def draw(image: np.ndarray, first: tuple[int, int]) -> tuple:
        changed = [(int(i), int(j)) for i, j in np.argwhere(image != STROKE)]
        return tuple((("image", *at), float(image[at])) for at in changed if at != first)

    return Story(
        title=TITLE,
        source="After L. Erzegovesi, QKV Attention, appendix B.",
        about=[
            "A filter is a small pattern of weights that visits every 3 x 3 window of the picture.",
            "The pool overlaps: a 3 x 3 map gives 2 x 2 windows only when they move by one.",
            "Pooling, says the appendix, outlasts a shift by a pixel: half of the logit goes.",
            "By two pixels all of it goes, since no stop has its middle on the edge.",
        ],
        look=["Filter: from pixels to a class. Filter and head: what a head does otherwise."],
        tries=[
            Suggestion(f"Draw row 2 and clear the rest: horizontal goes from {x['probs'][1]:.2f} to "
                f"{across:.2f}.", ("image", 2, 0), 1.0, ("probs", 1, 0), across,
                draw(turned, (2, 0))),
            Suggestion("Move the stroke from column 2 to column 1: the pool keeps half, and vertical's "
                f"logit goes from {x['logits'][0]:.0f} to {shifted:.0f}.", ("image", 0, 1), 1.0,
                ("logits", 0, 0), shifted, draw(moved, (0, 1))),
            Suggestion(f"Type -6 in the middle of the vertical filter: every stop is below zero, and "
                f"vertical goes from {x['probs'][0]:.2f} to {weak:.2f}.",
                ("vertical", 1, 1), -6.0, ("probs", 0, 0), weak),
        ],
    )  # fmt: skip
