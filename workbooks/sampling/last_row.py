"""sampling's sheet Last row: the lecture notes' dummy of ChatGPT, three tokens, four numbers, six
words; from the last layer's vectors to the next word, and the same tables at full size."""

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import EXP, IFERROR, MATCH, MAX, SUM, N, added
from cellformer.exporters.assemble.worksheets import Comparison, Workbook
from cellformer.exporters.compose.composer import Composer

SHEET = "Last row"
PURPOSE = "three tokens, four numbers, six words: how a model uses the last row"
SECTION = "Lecture notes, a dummy of ChatGPT"
FINAL = [[1.0, 2.0, 3.0, 4.0], [0.5, 1.0, 2.0, 1.5], [2.0, 1.0, 0.5, 3.0]]  # of the notes: [T, d]
T, D, V = 3, 4, 6
TOKENS = ("token 0", "token 1", "the last")
IDS = [f"id {v}" for v in range(V)]
UNEMBED = np.random.default_rng(4).normal(size=(D, V)).round(1)
DUMMY, CHATGPT = (T, D, V), (8192, 12_288, 50_000)  # T, d, V in the notes
COLDEST = 0.05  # a temperature
ABOUT = (
    "E holds the last layer's vector for each token. W_U has a column for every word. The notes "
    "and this sheet use random numbers for W_U.",
    "Each row of logits predicts the word after its token. The model uses only the last row, "
    "because only the last token has seen the whole text.",
)


def add(ws: Composer) -> None:
    """Add the two tables, every product of the last row, the choice, and the sizes."""
    ws.widths({0: 14} | dict.fromkeys(range(1, 24), 9) | dict.fromkeys(range(5, 9), 12))
    ws.text("logits = E · W_U    [3 x 6] = [3 x 4] · [4 x 6]", style="equation")
    ws.text(*ABOUT)
    ws.cursor += 1
    e = ws.typed("final", FINAL, TOKENS, range(D), "E   [T x d]", "activation")
    w_u = ws.typed("unembed", UNEMBED, range(D), IDS, "W_U   [d x V]", "weight", e)
    ws.heading("The last row: each logit is a sum of four products. The largest logit wins")
    choice(ws, logits(ws, e, w_u))
    ws.heading("Size of each table, in the small model and in ChatGPT")
    sizes(ws)


def logits(ws: Composer, e: Area, w_u: Area) -> Area:
    """Add the logits, the products that make the last row, and that row: [1, V]."""

    def product(i: int, v: int, k: int) -> Expression:
        return e[i, k] * w_u[k, v]

    top = ws.cursor
    found = ws.computed(
        "dummy_logits",
        (T, V),
        lambda i, v: added(product(i, v, k) for k in range(D)),
        TOKENS,
        IDS,
        "logits   [T x V]",
        left=9,
    )
    ws.cursor = top + 1
    last = T - 1
    ws.computed("products", (D, V), lambda k, v: product(last, v, k), range(D), IDS)
    return ws.computed("last_row", (1, V), lambda _, v: found[last, v], ["sum"], style="readout")


def choice(ws: Composer, row: Area) -> None:
    """Add the probabilities of the last row at a temperature, and the likeliest word."""
    one = (1, V)
    heat = ws.typed("dummy_temperature", 1.0, ["temperature"], style="input setting")
    cold = MAX(IFERROR(N(heat[0, 0]), 1), COLDEST)
    exps = ws.computed("dummy_exps", one, lambda _, v: EXP((row[0, v] - MAX(row)) / cold), ["exp"])
    probs = ws.computed(
        "dummy_probs", one, lambda _, v: exps[0, v] / SUM(exps), ["probability"], style="readout"
    )
    ws.computed("dummy_sum", (1, 1), SUM(probs), ["their sum"])
    ws.computed(
        "next_id", (1, 1), MATCH(MAX(row), row, 0) - 1, ["next id"], style="activation count"
    )


def sizes(ws: Composer) -> None:
    """Add the numbers in each table, of the dummy and of ChatGPT."""
    heads = ("T", "d", "V", "E: T · d", "W_U: d · V", "logits: T · V", "last row: V")
    given = ws.typed(
        "sizes",
        [[float(x) for x in each] for each in (DUMMY, CHATGPT)],
        ("dummy", "ChatGPT"),
        heads[:3],
        style="input count",
    )

    def counted(i: int, j: int) -> Expression:
        t, d, v = (given[i, k] for k in range(3))
        return (t * d, d * v, t * v, v * 1)[j]

    ws.computed(
        "table_sizes",
        (2, 4),
        counted,
        (),
        heads[3:],
        style="thousands",
        left=5,
        top=ws.rect(given).top - 1,
    )


def printed(w: Workbook) -> list[Comparison]:
    """Add the notes' printed numbers of the dummy, and of ChatGPT beside it."""
    given, names = w["sizes"], ("T", "d_model", "V")
    found = [
        Comparison(f"{of}, {name}", float(value), given[i, j], "", 0, SECTION)
        for i, (of, values) in enumerate({"dummy": DUMMY, "ChatGPT": CHATGPT}.items())
        for j, (name, value) in enumerate(zip(names, values, strict=True))
    ]
    return [*found, Comparison("dummy, sum of probabilities", 1, w["dummy_sum"], "", 1, SECTION)]
