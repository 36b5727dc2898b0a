"""fact-lookup: an MLP that knows one fact: Michael Jordan plays basketball.

A row asks whether both names are there, the bias makes the sum of two into an AND, a column writes
the sport. Look at the hidden cells, ReLU beside GELU. Suggestion another bias, and other names.
"""

import numpy as np

from exporters.book import Book, Chart, Series
from exporters.by_hand import Comparison, Table, Workbook, Worksheet, near
from exporters.story import Story, Suggestion

TOPIC = "Inside a block"
TITLE = "fact-lookup: an MLP that knows who plays basketball"
NAMES = ("F.N. Michael", "F.N. Alexis", "L.N. Jordan", "L.N. Phelps")
FACTS = ("basketball", "swimming")
WHO = ("Michael Jordan", "Michael Phelps", "Alexis Jordan", "Michael", "nobody")
FEATURES = tuple(f"x{k}" for k in range(6))
HAS = np.array([[1, 1, 0, 1, 0], [0, 0, 1, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 0, 0]], float)
ASKS = np.array([[1, 1], [0, 0], [1, 0], [0, 1]], float)  # [names, hidden cells]
WRITES = np.eye(2)  # [facts, hidden cells]
BIAS = np.array([-1.0, -1.0])
DIRECTIONS = np.eye(6)  # [directions, d_model]: four names, two facts, at right angles
CURVE = np.linspace(-3, 3, 25)


def relu(x: np.ndarray) -> np.ndarray:
    """What is above zero."""
    return np.maximum(x, 0)


def gelu(x: np.ndarray) -> np.ndarray:
    """GELU, tanh form (Hendrycks & Gimpel 2016, section 2)."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def forward(has: np.ndarray = HAS, bias: np.ndarray = BIAS, asks: np.ndarray = ASKS) -> dict:
    """Every array of the page, by the name of its table; features down, phrases across."""
    names, facts = DIRECTIONS[:4], DIRECTIONS[4:]
    found = {"E": names.T @ has, "rows": names.T @ asks, "C": facts.T @ WRITES}
    found["pre"] = found["rows"].T @ found["E"] + bias[:, None]  # [hidden cells, phrases]
    found["asked"] = found["rows"].T @ found["E"]
    for kind, bend in (("relu", relu), ("gelu", gelu)):
        found[kind] = bend(found["pre"])
        found[f"out_{kind}"] = found["E"] + found["C"] @ found[kind]  # [d_model, phrases]
        found[f"says_{kind}"] = facts @ found[f"out_{kind}"]  # [facts, phrases]
    return found


def book() -> Book:
    """The workbook."""
    w, x = Workbook("fact-lookup"), forward()
    ws = w.sheet("Lookup", "from the names that attention has put together to the sport")
    ws.widths({0: 22} | dict.fromkeys(range(1, 20), 14))
    has, names, facts = inputs(ws)
    embedded, hidden = first_layer(ws, x, has, names)
    ws.heading("Second linear layer: the fact that each column C writes")
    writes = ws.table("writes", WRITES, None, FACTS, ("C0", "C1"), style="weight")
    says = [
        second_layer(ws, x, kind, embedded, hidden[kind], (facts, writes))
        for kind in ("relu", "gelu")
    ]
    curves(w)
    w.compare(compared(ws, hidden["asked"]))
    w.checks([
        ("no ReLU cell is below zero", f"MIN({hidden['relu'].all()})>=0"),
        ("directions at right angles: the names stay as they came",
         near(f"SUM({embedded.all()})-SUM({says[0][0].all()})+SUM({says[0][1].all()})", 0)),
    ])  # fmt: skip
    return w.done(story())


def inputs(ws: Worksheet) -> tuple[Table, Table, Table]:
    """What is typed: who is meant, which way each name and each fact points."""
    ws.heading("Who is meant: attention has added these names up in one vector E")
    has = ws.table("has", HAS, None, NAMES, WHO)
    ws.heading("Directions: at right angles, one for each name and each fact")
    names = ws.table("names", DIRECTIONS[:4], None, NAMES, FEATURES, style="weight")
    facts = ws.table("facts", DIRECTIONS[4:], None, FACTS, style="weight")
    return has, names, facts


def first_layer(ws: Worksheet, x: dict, has: Table, names: Table) -> tuple[Table, dict[str, Table]]:
    """The rows ask, the bias wants more than one yes, the activation keeps what is left."""
    ws.heading("The vector E: the sum of its names' directions")
    ws.text("E = names^T · has   [d_model, phrases]", style="equation")
    e = ws.table("E", x["E"], lambda i, j: f"SUMPRODUCT({names.column(i)},{has.column(j)})",
                 FEATURES, WHO)  # fmt: skip
    ws.heading("First linear layer: what each row R asks for, in names")
    asks = ws.table("asks", ASKS, None, NAMES, ("R0", "R1"), style="weight")
    ws.text("R = names^T · asks   [d_model, hidden cells]: R0 = Michael + Jordan", style="equation")
    r = ws.table("rows", x["rows"], lambda i, j: f"SUMPRODUCT({names.column(i)},{asks.column(j)})",
                 FEATURES, ("R0", "R1"))  # fmt: skip
    ws.text("R·E   [hidden cells, phrases]: how many of the two names are there", style="equation")
    asked = ws.table("asked", x["asked"],
                     lambda i, j: f"SUMPRODUCT({r.column(i)},{e.column(j)})",
                     ("R0·E", "R1·E"), WHO)  # fmt: skip
    ws.heading("Bias and activation: only both names together are above zero, an AND")
    bias = ws.table("bias", BIAS[:, None], None, ("b0", "b1"), style="weight")
    tables = {"asked": asked}
    pre = ws.table("pre", x["pre"], lambda i, j: f"{asked.at(i, j)}+{bias.at(i, 0)}",
                   ("R0·E + b0", "R1·E + b1"), WHO)  # fmt: skip
    tables["relu"] = ws.table("relu", x["relu"], lambda i, j: f"MAX({pre.at(i, j)},0)",
                              ("ReLU 0", "ReLU 1"))  # fmt: skip
    tables["gelu"] = ws.table("gelu", x["gelu"], lambda i, j: bent(pre.at(i, j)),
                              ("GELU 0", "GELU 1"))  # fmt: skip
    return e, tables


def bent(x: str) -> str:
    """GELU of a cell."""
    return f"0.5*{x}*(1+TANH(SQRT(2/PI())*({x}+0.044715*{x}^3)))"


def second_layer(
    ws: Worksheet, x: dict, kind: str, e: Table, post: Table, columns: tuple[Table, Table]
) -> tuple[Table, Table]:
    """The columns write; how far the result points to each fact."""
    label = {"relu": "ReLU", "gelu": "GELU"}[kind]
    facts, writes = columns
    ws.text(f"out = E + C · {label}   [d_model, phrases]", style="equation")

    def wrote(i: int, j: int) -> str:
        column = [f"SUMPRODUCT({facts.column(i)},{writes.column(k)})" for k in range(2)]
        return f"{e.at(i, j)}+{column[0]}*{post.at(0, j)}+{column[1]}*{post.at(1, j)}"

    out = ws.table(f"out_{kind}", x[f"out_{kind}"], wrote, FEATURES, WHO)

    def points(i: int, j: int) -> str:
        return "+".join(f"{facts.at(i, k)}*{out.at(k, j)}" for k in range(len(FEATURES)))

    ws.text(f"how far out points to each fact, with {label}", style="equation")
    says = ws.table(f"says_{kind}", x[f"says_{kind}"], points, FACTS, WHO, style="readout")
    return out, says


def curves(w: Workbook) -> None:
    """Both activations over the line."""
    ws = w.sheet(
        "Activations", "what a hidden cell keeps: ReLU cuts, GELU bends and lets some through"
    )
    at = ws.table("x", CURVE[:, None], None, cols=["x"])
    cut = ws.table("curve_relu", relu(CURVE)[:, None], lambda i, j: f"MAX({at.at(i)},0)",
                   cols=["ReLU"], beside=at)  # fmt: skip
    bend = ws.table("curve_gelu", gelu(CURVE)[:, None], lambda i, j: bent(at.at(i)),
                    cols=["GELU"], beside=cut)  # fmt: skip
    series = [Series("ReLU", at.rect, cut.rect), Series("GELU", at.rect, bend.rect)]
    ws.chart(Chart(4, 9, "scatter", "ReLU and GELU", series, axes=("x", ""), joined=True,
                   number="0.0"))  # fmt: skip


def compared(ws: Worksheet, asked: Table) -> list[Comparison]:
    """The slides say 2 for the full name, and at most 1 for any other."""
    note = "printed as a bound: at most 1"
    rows = [Comparison("R0·E of Michael Jordan", 2, asked, 0, 0, "printed: about 2", 0)]
    return rows + [Comparison(f"R0·E of {WHO[k]}", 1, asked, 0, k, note, 0) for k in (1, 2, 3)]


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    x = forward()
    loose = forward(bias=np.array([-0.5, -1.0]))["says_relu"][0, 2]
    both = HAS.copy()
    both[3, 0] = 1.0
    mixed = forward(has=both)["says_relu"][1, 0]
    strict = forward(bias=np.array([-2.0, -1.0]))["says_gelu"][0, 1]
    before, leak = x["says_relu"][0, 2], x["says_gelu"][0, 1]
    return Story(
        title=TITLE,
        source="After lecture slides on transformers, MLP Layers, and 3Blue1Brown's chapter on them.",
        about=[
            "The slides imagine a hidden cell that asks for Michael and Jordan, and writes basketball.",
            "R0·E is 2 for both names and at most 1 otherwise; a bias of -1 leaves 1 or nothing.",
            "The slides leave the bias out: without it one name alone would write half a fact.",
            "ReLU makes a clean AND; GELU writes 0.84 instead of 1, and -0.16 where no name fits.",
        ],
        look=["Lookup: top to bottom, one vector per column.", "Activations: both curves."],
        tries=[
            Suggestion(f"Type -0.5: one name is enough; Alexis Jordan plays basketball with {loose:.1f} "
                f"instead of {before:.0f}.", ("bias", 0, 0), -0.5, ("says_relu", 0, 2), loose),
            Suggestion(f"Type 1, Phelps beside Jordan: two facts at once; swimming goes from 0 to "
                f"{mixed:.0f}.", ("has", 3, 0), 1.0, ("says_relu", 1, 0), mixed),
            Suggestion(f"Type -2: GELU lets below zero through; Michael Phelps points from basketball's "
                f"{leak:.2f} to {strict:.2f}, where ReLU stays at 0.",
                ("bias", 0, 0), -2.0, ("says_gelu", 0, 1), strict),
        ],
    )  # fmt: skip
