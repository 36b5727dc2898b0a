"""ocr-filter: a stroke on 5 x 5 pixels, read by two convolution filters, one position at a time.

Draw in the grid: 1 is ink. Look at each filter's result at each position, and at what pooling
leaves. Try a horizontal stroke, a shifted one, another weight.
"""

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import EXP, MAX, MIN, SUM, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Comparison, Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story
from cellformer.workbooks.ocr_filter import head

TOPIC, AFTER, LEVEL = "Attention", "", 1
TITLE = "ocr-filter: a convolution by hand, beside an attention head"
N = 5  # rows and columns of the image
STROKE = [[0, 0, 1, 0, 0]] * N
VERTICAL, HORIZONTAL = FILTERS = ("vertical", "horizontal")
WEIGHTS = {VERTICAL: [[-1, 2, -1]] * 3, HORIZONTAL: [[-1] * 3, [2] * 3, [-1] * 3]}
READ = [[1] * 4 + [0] * 4, [0] * 4 + [1] * 4]  # each class sums the features of its own filter
SIDE_BY_SIDE = (
    ("", "filter", "attention head"),
    ("what it keeps", "3 x 3 weights", "W_Q, W_K, W_V, and part of W_O"),
    ("where it looks", "a small window of fixed form", "any earlier token, chosen by content"),
    ("how it matches", "sum of pixels times weights", "a query times each key, then softmax"),
    ("the same everywhere", "the weights", "the weights, but not the pattern"),
    ("what it gives", "one number: how well the window fits", "a blend of other tokens' values"),
    (
        "what the data decide",
        "the weights, in training",
        "the weights in training, the pattern during use",
    ),
)


def book() -> Book:
    """The workbook."""
    w = Workbook("ocr-filter")
    ws = w.sheet(
        "Filter",
        "draw in the grid, and follow the steps of the reading from left to right",
        widths={0: 14} | dict.fromkeys(range(1, 40), 6.5),
    )
    ws.heading("The image, 5 x 5: type 1 for ink, 0 for blank")
    image = ws.typed("image", STROKE, range(N), range(N), style="dial")
    ws.mark(image, "ink", image[0, 0] == 1)
    for name in FILTERS:
        convolve(ws, name)
    row_sums(ws)
    classify(ws)
    head.add(w)
    side_by_side(w)
    compare(w)
    w.checks([
        ("probabilities sum to 1", near(SUM(w["probs"].fixed))),
        ("nothing after ReLU is below zero", MIN(w["features"].fixed) >= 0),
        (
            "the row sums of the first window add up to the first number of the map",
            near(SUM(w["row_sums"][:, 0]), w["conv_vertical"][0, 0]),
        ),
    ])  # fmt: skip
    return w.done(story(w))


def convolve(ws: Composer, name: str) -> None:
    """Add one filter: weights, feature map, ReLU and pool, side by side."""
    image = ws["image"]
    ws.heading(
        f"The {name} filter in nine windows, then ReLU and max-pool",
        "conv[i, j] = sum of window(i, j) · weights  [3, 3];  pool: largest of 2 x 2  [2, 2]",
        style="equation",
    )
    kernel = ws.typed(name, WEIGHTS[name], title="weights", style="weight")

    def stop(i: int, j: int) -> Expression:
        top, middle, bottom = (SUMPRODUCT(image[i + k, j : j + 3], kernel[k, :]) for k in range(3))
        return top + middle + bottom

    conv = ws.computed(f"conv_{name}", (3, 3), stop, title="conv", beside=kernel, dress="diverging")
    relu = ws.computed(
        f"relu_{name}", (3, 3), lambda i, j: MAX(conv[i, j], 0), title="ReLU", beside=conv
    )
    ws.computed(
        f"pool_{name}",
        (2, 2),
        lambda i, j: MAX(relu[i : i + 2, j : j + 2]),
        title="pool",
        beside=relu,
    )


def row_sums(ws: Composer) -> None:
    """Add the first two positions of the vertical filter row by row, beside the image: [rows,
    positions]."""
    image, kernel = ws["image"], ws[VERTICAL]
    ws.computed(
        "row_sums",
        (3, 2),
        lambda k, j: SUMPRODUCT(image[k, j : j + 3], kernel[k, :]),
        range(3),
        ("left", "middle"),
        "vertical filter, top windows: row sums",
        beside=image,
    )


def classify(ws: Composer) -> None:
    """Flatten, a linear layer of two classes, softmax."""
    ws.heading(
        "Four features of each filter in one row, then a linear layer and softmax",
        "logits = read · features  [2];  probs = exp(logits - largest) / sum",
        style="equation",
    )
    flat = [cell for name in FILTERS for cell in ws[f"pool_{name}"].cells]
    features = ws.computed("features", (1, len(flat)), lambda _, j: flat[j], ["features"])
    read = ws.typed("read", READ, FILTERS, title="read", style="weight")
    logits = ws.computed(
        "logits", (2, 1), lambda i, _: SUMPRODUCT(read[i, :], features), title="logits", beside=read
    )
    exps = ws.computed(
        "exps", (2, 1), lambda i, _: EXP(logits[i] - MAX(logits.fixed)), title="exp", beside=logits
    )

    ws.computed(
        "probs",
        (2, 1),
        lambda i, _: exps[i] / SUM(exps.fixed),
        title="probs",
        style="readout",
        beside=exps,
    )


def side_by_side(w: Workbook) -> None:
    """Add a comparison of a filter and a head, in words."""
    ws = w.sheet(
        "Filter and head",
        "a comparison of two detectors that work at every place",
        widths={0: 22, 1: 40, 2: 46},
    )
    for k, line in enumerate(SIDE_BY_SIDE):
        for col, text in enumerate(line):
            ws.sheet.put(ws.cursor + k, col, text, "text" if k and col else "block")


def compare(w: Workbook) -> None:
    """Every number that the appendix prints."""
    printed = [
        ("vertical row sums", "row_sums", [[-1, 2]] * 3),
        ("vertical conv", "conv_vertical", [[-3, 6, -3]] * 3),
        ("vertical relu", "relu_vertical", [[0, 6, 0]] * 3),
        ("vertical pool", "pool_vertical", [[6, 6]] * 2),
        ("horizontal conv", "conv_horizontal", [[0, 0, 0]] * 3),
        ("horizontal relu", "relu_horizontal", [[0, 0, 0]] * 3),
        ("horizontal pool", "pool_horizontal", [[0, 0]] * 2),
    ]
    rows = [
        Comparison(f"{what} [{i}, {j}]", value, w[name][i, j], decimals=0)
        for what, name, lines in printed
        for i, line in enumerate(lines)
        for j, value in enumerate(line)
    ]
    rows += [
        Comparison(f"feature {k}", value, w["features"][k], decimals=0)
        for k, value in enumerate([6] * 4 + [0] * 4)
    ]
    for k, (name, logit, prob) in enumerate([(VERTICAL, 24, 1), (HORIZONTAL, 0, 0)]):
        rows.append(Comparison(f"logit, {name}", logit, w["logits"][k], decimals=0))
        rows.append(Comparison(f"probability, {name}", prob, w["probs"][k]))
    w.compare(rows, "QKV Attention, appendix B")


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    image, probs = w["image"], w["probs"]
    ends = (0, 1, 3, 4)  # all but the middle
    lying = {image[2, j]: 1.0 for j in ends} | {image[i, 2]: 0.0 for i in ends}
    moved = {image[i, 1]: 1.0 for i in range(N)} | {image[i, 2]: 0.0 for i in range(N)}
    return Story(
        title=TITLE,
        source="Based on L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), appendix B.",
        about=[
            "Before transformers, filters read pictures. A filter is a small pattern of weights. "
            "The filter visits every 3 x 3 window of the picture.",
            "The filter gives each window a number, which is large where the window looks like "
            "the pattern. Here two filters read a stroke.",
            "The picture has 5 x 5 pixels. One filter looks for vertical strokes, the other for "
            "horizontal strokes. Numbers below 0 become 0.",
            "Pooling keeps the largest number of each neighbourhood. A last layer says which "
            "stroke the picture shows.",
            "Why it matters: a filter and an attention head both compute weighted sums, with the "
            "same weights at every place.",
            "But the window of a filter is small and fixed. A head chooses by content where to "
            "look, and reaches any place in one step.",
        ],
        errata=[
            "The source says that pooling tolerates a shift of the stroke by one pixel. Here, "
            "too, the answer keeps a probability of 1.00.",
            "But a shift by one pixel halves the score of the answer, and a shift by two "
            "pixels makes it 0. Also, 3 x 3 numbers give 2 x 2 numbers only if the pooling "
            "windows overlap.",
        ],
        look=[
            "On the sheet Filter, type ‘1’ and ‘0’ into the picture, and follow the steps from "
            "pixels to probabilities.",
            "The sheet Head shows an attention head on the same pixels. Ink in one corner "
            "reaches the opposite corner in one step.",
            "The sheet Filter and head compares a filter with an attention head.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘1’ in all of row 2, and ‘0’ in the rest of column 2: the probability of "
                "horizontal goes from {now:.0%} to {then:.0%}.",
                lying,
                probs[1],
            ),
            w.suggestion(
                "Type ‘1’ in all of column 1, and ‘0’ in all of column 2. Pooling keeps half of "
                "the stroke. The logit of vertical goes from {now:.0f} to {then:.0f}.",
                moved,
                w["logits"][0],
            ),
            w.suggestion(
                "Type ‘-6’ in the middle of the vertical filter. All results of this filter are "
                "now below zero. The probability of vertical goes from {now:.0%} to {then:.0%}.",
                {w[VERTICAL][1, 1]: -6.0},
                probs[0],
            ),
        ],
    )
