"""low-rank: what a head reads and writes, as thin factors and as whole matrices.

A head's value matrix is down then up, its OV circuit; its scores come from one matrix too, QK. Look
at the differences: zero. Try a weight, and GPT-3's sizes.
"""

import numpy as np

from exporters.book import Book
from exporters.pages import Story, Try
from exporters.worksheet import Comparison, Table, Workbook, near
from workbooks._matrices import Page, across, times

TOPIC = "Inside a block"
TITLE = "low-rank: OV and QK, thin factors and whole matrices"
HEADS = (0, 1)
WEIGHTS = {
    "x": [[1, 0, 0.5, -0.5], [0, 1, -1, 0.5], [0.5, 0.5, 1, 1]],  # [T, d_model]
    "W_Q_0": [[1, 0], [0, 1], [0.5, 0], [0, -0.5]], "W_K_0": [[0, 1], [1, 0], [0, 0.5], [0.5, 0]],
    "W_Q_1": [[0.5, 1], [-1, 0], [0, 1], [1, 0]], "W_K_1": [[1, 0.5], [0, 1], [1, 0], [0, -1]],
    "down_0": [[1, 0], [0, 1], [1, 1], [0, 0.5]], "up_0": [[0.5, 0, 1, 0], [0, 1, 0, -0.5]],
    "down_1": [[0, 1], [1, 0], [-1, 0], [0.5, 1]], "up_1": [[0, 1, 0, 0.5], [1, 0, -0.5, 0]],
}  # fmt: skip
SIZES = ("d_model", "d_head", "heads", "vocabulary")
GPT3 = np.array([12288.0, 128, 96, 50257])


def compute(**edited: np.ndarray) -> dict[str, np.ndarray]:
    """Every matrix of the page, by the name of its table."""
    a = {name: np.array(values, float) for name, values in WEIGHTS.items()} | edited
    x, seen = a["x"], np.tri(3)
    for h in HEADS:
        a[f"QK_{h}"] = a[f"W_Q_{h}"] @ a[f"W_K_{h}"].T
        a[f"OV_{h}"] = a[f"down_{h}"] @ a[f"up_{h}"]
        a[f"q_{h}"], a[f"k_{h}"] = x @ a[f"W_Q_{h}"], x @ a[f"W_K_{h}"]
        a[f"scores_{h}"] = a[f"q_{h}"] @ a[f"k_{h}"].T
        a[f"direct_{h}"] = x @ a[f"QK_{h}"] @ x.T
        e = np.exp(a[f"scores_{h}"] / np.sqrt(2)) * seen
        a[f"exp_{h}"], a[f"pattern_{h}"] = e, e / e.sum(axis=1, keepdims=True)
        a[f"v_{h}"] = x @ a[f"down_{h}"]
        a[f"z_{h}"] = a[f"pattern_{h}"] @ a[f"v_{h}"]
        a[f"wrote_{h}"] = a[f"z_{h}"] @ a[f"up_{h}"]
        a[f"mixed_{h}"] = a[f"pattern_{h}"] @ x
        a[f"whole_{h}"] = a[f"mixed_{h}"] @ a[f"OV_{h}"]
        a[f"minor_{h}"] = np.zeros((1, 1))  # of rank d_head = 2: its 3 x 3 determinants are 0
    a["sum"] = a["wrote_0"] + a["wrote_1"]
    a["concat"], a["W_O"] = np.hstack([a["z_0"], a["z_1"]]), np.vstack([a["up_0"], a["up_1"]])
    a["product"] = a["concat"] @ a["W_O"]
    a["difference"] = a["product"] - a["sum"]
    return a


def book() -> Book:
    """The workbook."""
    w, a = Workbook("low-rank"), compute()
    ws = w.sheet("Weights", "what is typed: three tokens, two heads of d_head = 2 in d_model = 4")
    page = Page(ws, a)
    page.put("x", style="input", rows=["the", "cat", "sat"])
    for h in HEADS:
        page.section(f"Head {h}", "W_Q, W_K, down: [d_model, d_head]; up: [d_head, d_model]")
        left = f"W_Q_{h}"
        page.put(left)
        for name in (f"W_K_{h}", f"down_{h}", f"up_{h}"):
            page.put(name, beside=left)
            left = name
    for h in HEADS:
        head(w, page, h)
    heads_together(w, page)
    sizes, counts = scale(w)
    compare(w, sizes, counts)
    t = page.at
    w.checks([
        ("q · k and x QK x^T are the same scores",
         near(f"SUM({t['scores_0'].all()})-SUM({t['direct_0'].all()})", 0), True),
        ("down then up, and OV, write the same",
         near(f"SUM({t['wrote_1'].all()})-SUM({t['whole_1'].all()})", 0), True),
        ("OV has rank d_head = 2: a 3 × 3 determinant is 0", near(t["minor_0"].at(), 0), True),
        ("heads added and heads side by side are equal", near(t["difference"].all(), 0), True),
    ])  # fmt: skip
    return w.done(story())


def head(w: Workbook, page: Page, h: int) -> None:
    """One head, by its factors and by its two whole matrices."""
    page.ws = w.sheet(f"Head {h}", "scores and writings twice: by thin factors, by whole matrices")
    t = page.at
    page.section("Who looks at whom", "scores = (x W_Q)(x W_K)^T = x QK x^T,  QK = W_Q W_K^T",
                 "QK: [d_model, d_model], of rank d_head; scores: [queries, keys]")  # fmt: skip
    page.put(f"QK_{h}", across(t[f"W_Q_{h}"], t[f"W_K_{h}"]))
    page.put(f"q_{h}", times(t["x"], t[f"W_Q_{h}"]), beside=f"QK_{h}")
    page.put(f"k_{h}", times(t["x"], t[f"W_K_{h}"]), beside=f"q_{h}")
    page.put(f"scores_{h}", across(t[f"q_{h}"], t[f"k_{h}"]))
    x, qk = t["x"], t[f"QK_{h}"]

    def direct(i: int, j: int) -> str:
        pairs = ((a, b) for a in range(4) for b in range(4))
        return "+".join(f"{x.at(i, a)}*{qk.at(a, b)}*{x.at(j, b)}" for a, b in pairs)

    page.put(f"direct_{h}", direct, beside=f"scores_{h}")
    scores = t[f"scores_{h}"]
    page.put(f"exp_{h}", lambda i, j: f"EXP({scores.at(i, j)}/SQRT(2))" if j <= i else "0")
    e = t[f"exp_{h}"]
    page.put(f"pattern_{h}", lambda i, j: f"{e.at(i, j)}/SUM({e.row(i)})", f"exp_{h}", "attention")
    page.section("What is written", "pattern (x down) up = (pattern x) OV,  OV = down · up",
                 "OV: [d_model, d_model], of rank d_head; writings: [T, d_model]")  # fmt: skip
    page.put(f"OV_{h}", times(t[f"down_{h}"], t[f"up_{h}"]))
    page.put(f"v_{h}", times(t["x"], t[f"down_{h}"]), beside=f"OV_{h}")
    page.put(f"z_{h}", times(t[f"pattern_{h}"], t[f"v_{h}"]), beside=f"v_{h}")
    page.put(f"wrote_{h}", times(t[f"z_{h}"], t[f"up_{h}"]))
    page.put(f"mixed_{h}", times(t[f"pattern_{h}"], t["x"]), beside=f"wrote_{h}")
    page.put(f"whole_{h}", times(t[f"mixed_{h}"], t[f"OV_{h}"]), beside=f"mixed_{h}")
    page.put(f"minor_{h}", determinant(t[f"OV_{h}"]))


def determinant(m: Table) -> str:
    """The determinant of the first three rows and columns (Sarrus)."""
    down = [f"{m.at(0, k)}*{m.at(1, (k + 1) % 3)}*{m.at(2, (k + 2) % 3)}" for k in range(3)]
    up = [f"{m.at(0, k)}*{m.at(1, (k + 2) % 3)}*{m.at(2, (k + 1) % 3)}" for k in range(3)]
    return "+".join(down) + "-" + "-".join(up)


def heads_together(w: Workbook, page: Page) -> None:
    """The heads' writings added; and concatenated, times the stacked W_O."""
    page.ws, t = w.sheet("Heads", "the heads' writings added, and concatenated times W_O"), page.at
    page.section("Added", "sum over heads of z up   [T, d_model]")
    page.put("sum", lambda i, j: f"{t['wrote_0'].at(i, j)}+{t['wrote_1'].at(i, j)}")
    page.section("Concatenated", "[z_0 | z_1] · W_O, with up_0 above up_1 in W_O   [T, d_model]")
    page.put("concat", lambda i, j: t[f"z_{j // 2}"].at(i, j % 2))
    page.put("W_O", lambda i, j: t[f"up_{i // 2}"].at(i % 2, j), beside="concat")
    page.put("product", times(t["concat"], t["W_O"]))
    page.put("difference", lambda i, j: f"{t['product'].at(i, j)}-{t['sum'].at(i, j)}", "product")


def scale(w: Workbook) -> tuple[Table, Table]:
    """What the factors save at GPT-3's sizes."""
    ws = w.sheet("Sizes", "parameters of a value matrix, whole and factored")
    ws.widths({0: 46, 1: 20})
    sizes = ws.table("sizes", GPT3[:, None], None, SIZES, ["GPT-3"], style="input setting")
    d, d_head = (sizes.at(k) for k in range(2))
    formulas = (f"{d}*{d}", f"2*{d}*{d_head}", f"{d}*{d}/(2*{d}*{d_head})")
    ws.text("whole: d_model²;  factored: 2 d_model d_head", style="equation")
    counts = ws.table("counts", parameters(GPT3), lambda i, j: formulas[i],
                      ("whole", "factored", "how many times fewer"), style="thousands")  # fmt: skip
    return sizes, counts


def parameters(sizes: np.ndarray) -> np.ndarray:
    """Of a head's value matrix, whole and factored, and their ratio: [3, 1]."""
    d, d_head = sizes[:2]
    return np.array([[d * d], [2 * d * d_head], [d / (2 * d_head)]])


def compare(w: Workbook, sizes: Table, counts: Table) -> None:
    """The slides' sizes of GPT-3."""
    w.compare([
        Comparison("rows of W_Q and W_K", 128, sizes, 1, decimals=0),
        Comparison("columns of W_Q and W_K", 12288, sizes, 0, decimals=0),
        Comparison("rows of W_E", 12888, sizes, 0, decimals=0,
                   note="printed 12,888: two digits changed places, d_model is 12,288 everywhere else"),
        Comparison("columns of W_E, among tokens and words", 50527, sizes, 3, decimals=0,
                   note="printed 50,527: digits changed places, the vocabulary is 50,257"),
    ])  # fmt: skip


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    a = compute()
    down, up, small = (
        np.array(WEIGHTS["down_0"], float),
        np.array(WEIGHTS["up_1"], float),
        GPT3.copy(),
    )
    down[0, 0], up[0, 1], small[1] = 3.0, -2.0, 64.0
    ov, both = compute(down_0=down)["whole_0"][2, 2], compute(up_1=up)["product"][2, 1]
    before, after = parameters(GPT3)[2, 0], parameters(small)[2, 0]
    return Story(
        title=TITLE,
        source="After lecture slides, Value/Output Matrices, and A Gentle Introduction to Transformers.",
        about=[
            "A head never needs its value matrix whole: it goes down to d_head numbers, and up again.",
            "The up-projections of all heads, one above the other, are what code calls W_O.",
            "So a head has two matrices that matter, QK and OV, each of rank d_head.",
            "Rows are tokens here; the slides have them as columns, and their matrices transposed.",
        ],
        look=["Head 0, Head 1: each number twice. Heads: added or concatenated. Sizes: what is saved."],
        tries=[
            Try("Type 3: what head 0 writes for `sat` in the third feature goes from "
                f"{a['whole_0'][2, 2]:.2f} to {ov:.2f}, by the factors and by OV alike.",
                ("down_0", 0, 0), 3.0, ("whole_0", 2, 2), ov),
            Try(f"Type -2: concatenated times W_O gives {both:.2f} instead of "
                f"{a['product'][2, 1]:.2f}, and so do the heads added.",
                ("up_1", 0, 1), -2.0, ("product", 2, 1), both),
            Try(f"Type 64, thinner heads: the factors have {after:.0f} times fewer parameters than "
                f"the whole matrix, instead of {before:.0f}.",
                ("sizes", 1, 0), 64.0, ("counts", 2, 0), after),
        ],
    )  # fmt: skip
