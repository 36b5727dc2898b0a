"""The sheet Head: an attention head on the same 5 x 5 pixels, which connects opposite corners in
one step.

Every pixel is a token: its position and its ink. The head's query asks for the opposite pixel,
through the middle; the score is minus the squared distance from there, which is a dot product of
four numbers. A filter of 3 x 3 needs two layers before one number depends on both corners.
"""

from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import EXP, IF, INT, MAX, SUM, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer

N = 5  # rows and columns of the picture
SHARPNESS = 4.0
FEATURES = ("1", "row", "col", "row² + col²", "ink")
LAYERS = 6
# A place asks for the one opposite, (4 - row, 4 - col): q · k = -|place of key - that place|²
ASKS = ("-|o|²", "2 o row", "2 o col", "-1")  # o: the pixel opposite
IS = ("1", "row", "col", "row² + col²")
W_Q = ((-2 * (N - 1) ** 2, 2 * (N - 1), 2 * (N - 1), -1), (2 * (N - 1), -2, 0, 0),
       (2 * (N - 1), 0, -2, 0), (-1, 0, 0, 0), (0, 0, 0, 0))  # fmt: skip
W_K = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 0, 0))
W_V = ((0,), (0,), (0,), (0,), (1,))


def add(w: Workbook) -> None:
    """Add the sheet, with suggested edits."""
    ws = w.sheet(
        "Head",
        "an attention head on the same pixels: from corner to corner in one step",
        "A filter at the top left sees 3 x 3 pixels, and never the bottom right corner. A head "
        "compares all pixels.",
        "This head is set by hand. The head looks for the opposite pixel, and brings the ink "
        "of that pixel in one step.",
        widths={0: 18, **dict.fromkeys(range(1, 30), 8)},
    )
    ws.typed("place", [[0.0, 0.0]], ["a pixel"], ("row", "col"), style="dial")
    ws.typed("sharpness", SHARPNESS, ["sharpness"], style="input setting")
    ws.heading(
        "Every pixel is a token with place and ink. The weights turn tokens into queries, keys, "
        "values",
        "q = x W_Q   k = x W_K   [4];   v = x W_V   [1];   o: the opposite pixel",
        style="equation",
    )
    wq = ws.typed("W_Q", W_Q, FEATURES, ASKS, "W_Q   [5, 4]", "weight")
    wk = ws.typed("W_K", W_K, (), IS, "W_K   [5, 4]", "weight", beside=wq)
    ws.typed("W_V", W_V, (), ["ink"], "W_V   [5, 1]", "weight", beside=wk)
    query(ws)
    look(ws)
    reach(ws)
    suggest(w, ws)


def features(row: Expression | int, col: Expression | int, ink: Expression) -> list[Expression]:
    """A pixel as a token: [5]."""
    row, col = expression(row), expression(col)
    return [expression(1), row, col, row**2 + col**2, ink]


def query(ws: Composer) -> None:
    """Add the chosen pixel's query [1, 4]."""
    (row, col), wq = ws["place"].cells, ws["W_Q"]

    def entry(_: int, j: int) -> Expression:
        token = features(row, col, expression(0))[:4]
        return SUM(*(x * wq[k, j] for k, x in enumerate(token)))

    ws.computed("head_q", (1, 4), entry, ["query"], ASKS)


def look(ws: Composer) -> None:
    """Add the scores of the 25 keys, and their shares, each at its pixel's place: [5, 5]."""
    q, sharp, image, wk = (ws[name] for name in ("head_q", "sharpness", "image", "W_K"))
    ws.heading(
        "Where the chosen pixel looks: scores and shares of all keys, at the places of the keys",
        "score = sharpness · q · k = -sharpness · (squared distance from the opposite pixel)",
        "share = exp(score - largest) / sum over the 25",
        style="equation",
    )

    def score(i: int, j: int) -> Expression:
        token = features(i, j, image[i, j])
        keys = [SUM(*(x * wk[k, d] for k, x in enumerate(token))) for d in range(4)]
        return sharp.fixed * SUM(*(q[d] * keys[d] for d in range(4)))

    scores = ws.computed("head_scores", (N, N), score, range(N), range(N), "scores")
    exps = ws.computed(
        "head_exps",
        (N, N),
        lambda i, j: EXP(scores[i, j] - MAX(scores.fixed)),
        cols=range(N),
        title="exponentials",
        beside=scores,
    )
    ws.computed(
        "head_shares",
        (N, N),
        lambda i, j: exps[i, j] / SUM(exps.fixed),
        cols=range(N),
        title="shares",
        style="attention",
        beside=exps,
        dress="scale",
    )


def reach(ws: Composer) -> None:
    """Add the head's result, the filter's result there, and how many layers a filter needs."""
    ws.heading(
        "The result of the head in one step, and the result of the vertical filter in the first "
        "window",
        "head = sum of share · v, with v = ink · W_V;   filter: the map at [0, 0]",
        style="equation",
    )
    head = SUMPRODUCT(ws["head_shares"], ws["image"]) * ws["W_V"][4, 0]
    formulas = (head, ws["conv_vertical"][0, 0])
    ws.computed(
        "brought",
        (1, 2),
        lambda _, j: formulas[j],
        ["one step"],
        ("head", "filter"),
        style="readout",
    )
    ws.heading(
        "How many 3 x 3 layers are needed to join two opposite corners of a picture",
        "after n layers, a number depends on a square 2n + 1 pixels wide",
        style="equation",
    )
    side = ws.typed("side", float(N), ["pixels per row"], style="input setting")
    ws.computed("layers_needed", (1, 1), INT(side / 2), ["filter: layers needed"], style="readout")
    ws.computed(
        "steps_of_a_head", (1, 1), IF(side > 0, 1, 0), ["head: steps needed"], style="readout"
    )


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits: ink in the far corner, another pixel, a larger picture."""
    ws.suggest(
        w.suggestion(
            "Type ‘1’ to put ink at the bottom right: the head brings this ink to the top left "
            "in one step. The value at the top left goes from {now:.2f} to {then:.2f}.",
            {w["image"][N - 1, N - 1]: 1.0},
            w["brought"][0],
        ),
        w.suggestion(
            "Type ‘4’ for the top right pixel. This pixel gives the bottom left pixel {then:.0%} "
            "of its attention.",
            {w["place"][1]: float(N - 1)},
            w["head_shares"][N - 1, 0],
        ),
        w.suggestion(
            "Type ‘28’, for a picture of 28 x 28 pixels: a filter needs {then:.0f} layers, not "
            "{now:.0f}. A head still needs one step.",
            {w["side"][0]: 28.0},
            w["layers_needed"][0],
        ),
    )
