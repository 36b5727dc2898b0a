"""fact-lookup: an MLP that knows one fact: Michael Jordan plays basketball.

A row asks whether both names are there, the bias makes the sum of two into an AND, a column writes
the sport. Look at the hidden cells, ReLU beside GELU. Try another bias, and other names.
"""

from collections.abc import Sequence

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import MAX, MIN, PI, SQRT, SUM, SUMPRODUCT, TANH, added, dot
from cellformer.exporters.assemble.worksheets import Comparison, Workbook, near
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story

TOPIC, AFTER, LEVEL = "Inside a block", "", 2
TITLE = "fact-lookup: an MLP that knows who plays basketball"
NAMES = ("F.N. Michael", "F.N. Alexis", "L.N. Jordan", "L.N. Phelps")
FACTS = ("basketball", "swimming")
WHO = ("Michael Jordan", "Michael Phelps", "Alexis Jordan", "Michael", "nobody")
HAS = ((1, 1, 0, 1, 0), (0, 0, 1, 0, 0), (1, 0, 1, 0, 0), (0, 1, 0, 0, 0))  # [names, phrases]
ASKS = ((1, 1), (0, 0), (1, 0), (0, 1))  # [names, hidden cells]
BIAS = ((-1,), (-1,))
HIDDEN = 2  # cells
WRITES = np.eye(len(FACTS), HIDDEN)
D_MODEL = len(NAMES) + len(FACTS)
FEATURES = tuple(f"x{k}" for k in range(D_MODEL))
DIRECTIONS = np.eye(D_MODEL)  # [directions, d_model]: four names, two facts, at right angles
CURVE = np.linspace(-3, 3, 25)[:, None]


def book() -> Book:
    """The workbook."""
    w = Workbook("fact-lookup")
    ws = w.sheet(
        "Lookup",
        "from the names, combined by attention, to the sport",
        widths={0: 22} | dict.fromkeys(range(1, 20), 14),
    )
    inputs(ws)
    first_layer(ws)
    activations(ws)
    ws.heading("Second linear layer: the fact that each column C writes")
    ws.typed("writes", WRITES, FACTS, ("C0", "C1"), style="weight")
    for label in ("ReLU", "GELU"):
        second_layer(ws, label)
    curves(w)
    w.compare(compared(w["asked"]), "Slides, MLP Layers")
    before, after, fact = (SUM(w[name].fixed) for name in ("E", "out_relu", "says_relu"))
    stays = near(before - after + fact, 0)
    claim = "directions at right angles: the MLP does not change the names"
    w.checks([("no ReLU cell is below zero", MIN(w["relu"].fixed) >= 0), (claim, stays)])
    return w.done(story(w))


def relu(x: Expression) -> Expression:
    """ReLU: max(x, 0)."""
    return MAX(x, 0)


def gelu(x: Expression) -> Expression:
    """GELU, tanh form (Hendrycks & Gimpel 2016, section 2)."""
    return 0.5 * x * (1 + TANH(SQRT(2 / PI()) * (x + 0.044715 * x**3)))


def product(
    ws: Composer, name: str, left: Area, right: Area, rows: Sequence[str], cols: Sequence[str]
) -> Area:
    """The table of a matrix product left^T · right: columns with columns."""
    return ws.computed(
        name,
        (left.shape[1], right.shape[1]),
        lambda i, j: SUMPRODUCT(left[:, i], right[:, j]),
        rows,
        cols,
    )


def inputs(ws: Composer) -> None:
    """Add the inputs: the phrases, and the directions of each name and each fact."""
    ws.heading("The person: attention has added these names in one vector E")
    ws.typed("has", HAS, NAMES, WHO)
    ws.heading("Directions: one for each name and each fact, all at right angles")
    by_name, by_fact = np.split(DIRECTIONS, [len(NAMES)])
    ws.typed("names", by_name, NAMES, FEATURES, style="weight")
    ws.typed("facts", by_fact, FACTS, style="weight")


def first_layer(ws: Composer) -> None:
    """Add the vectors E [d_model, phrases], and their products with the rows R [hidden cells,
    phrases]."""
    ws.heading(
        "The vector E: the sum of its names' directions",
        "E = names^T · has   [d_model, phrases]",
        style="equation",
    )
    names = ws["names"]
    embedded = product(ws, "E", names, ws["has"], FEATURES, WHO)
    ws.heading("First linear layer: the names that each row R asks for")
    asks = ws.typed("asks", ASKS, NAMES, ("R0", "R1"), style="weight")
    ws.text("R = names^T · asks   [d_model, hidden cells]: R0 = Michael + Jordan", style="equation")
    rows = product(ws, "rows", names, asks, FEATURES, ("R0", "R1"))
    ws.text(
        "R·E   [hidden cells, phrases]: how many of the row's two names E contains",
        style="equation",
    )
    product(ws, "asked", rows, embedded, ("R0·E", "R1·E"), WHO)


def activations(ws: Composer) -> None:
    """Add the hidden cells [hidden cells, phrases]: a bias that requires more than one yes, then
    ReLU and GELU."""
    ws.heading("Bias and activation: the result is above zero only if both names are there (AND)")
    asked, bias = ws["asked"], ws.typed("bias", BIAS, ("b0", "b1"), style="weight")
    pre = ws.computed(
        "pre", asked.shape, lambda i, j: asked[i, j] + bias[i, 0], ("R0·E + b0", "R1·E + b1"), WHO
    )
    ws.computed("relu", pre.shape, lambda i, j: relu(pre[i, j]), ("ReLU 0", "ReLU 1"))
    ws.computed("gelu", pre.shape, lambda i, j: gelu(pre[i, j]), ("GELU 0", "GELU 1"))


def second_layer(ws: Composer, label: str) -> None:
    """Add the vectors after the columns have written, E + C · hidden [d_model, phrases], and their
    coordinates along each fact. Column k of C is the fact that hidden cell k writes."""
    kind, phrases = label.lower(), len(WHO)
    embedded, facts, writes, hidden = ws["E"], ws["facts"], ws["writes"], ws[kind]

    def wrote(i: int, j: int) -> Expression:
        columns = (SUMPRODUCT(facts[:, i], writes[:, k]) for k in range(HIDDEN))
        return added([embedded[i, j], *[column * hidden[k, j] for k, column in enumerate(columns)]])

    ws.text(f"out = E + C · {label}   [d_model, phrases]", style="equation")
    out = ws.computed(f"out_{kind}", (D_MODEL, phrases), wrote, FEATURES, WHO)
    ws.text(f"how far the vector ‘out’ points to each fact, with {label}", style="equation")
    ws.computed(
        f"says_{kind}",
        (len(FACTS), phrases),
        lambda i, j: dot(facts[i, :], out[:, j]),
        FACTS,
        WHO,
        style="readout",
    )


def curves(w: Workbook) -> None:
    """Add a chart of both activation functions."""
    ws = w.sheet(
        "Activations",
        "the output of a hidden cell: ReLU is never below 0, GELU can be slightly negative",
    )
    x = ws.typed("x", CURVE, cols=["x"])
    cut = ws.computed("curve_relu", x.shape, lambda i, j: relu(x[i]), cols=["ReLU"], beside=x)
    bent = ws.computed("curve_gelu", x.shape, lambda i, j: gelu(x[i]), cols=["GELU"], beside=cut)
    ws.chart(
        Chart(
            4,
            9,
            "scatter",
            "ReLU and GELU",
            [Series("ReLU", x, cut), Series("GELU", x, bent)],
            axes=("x", ""),
            joined=True,
            number="0.0",
        )
    )


def compared(asked: Area) -> list[Comparison]:
    """The slides' numbers: 2 for the full name, and at most 1 for any other."""
    both = Comparison(f"R0·E of {WHO[0]}", 2, asked[0, 0], "printed: about 2", 0)
    bound = "the slides print an upper limit: 1"
    return [both] + [Comparison(f"R0·E of {WHO[k]}", 1, asked[0, k], bound, 0) for k in (1, 2, 3)]


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    has, bias, says, says_gelu = w["has"], w["bias"], w["says_relu"], w["says_gelu"]
    basketball, swimming = range(2)
    jordan, phelps, alexis = range(3)
    return Story(
        title=TITLE,
        source="Based on M. Sinclair, Transformers (lecture slides), MLP Layers, and on "
        "3Blue1Brown's chapter on MLPs.",
        about=[
            "Where does a model keep a fact? One possible place is a hidden cell that asks for "
            "‘Michael’ and ‘Jordan’.",
            "If the vector has both names, the cell writes ‘basketball’ into it. An MLP has "
            "many such cells side by side. In this workbook, the MLP's weights are set by hand.",
            "The MLP multiplies a row of the first table with the vector. The product is 2 if "
            "both names are there, and at most 1 for other names.",
            "The MLP adds a bias of -1, and ReLU replaces negative sums by 0. So both names "
            "give 1, and others give 0. A column of the second table then writes the fact.",
            "Why it matters: MLPs hold two thirds of the weights of GPT-3. An MLP can detect "
            "that two things occur together.",
            "Without the bias, a single name would already write half a fact.",
            "GPT models use GELU, which bends smoothly. With GELU, the cell writes the fact "
            "with 0.84, not 1. If no name fits, the cell writes -0.16.",
        ],
        errata=["The slides describe such a hidden cell, but without a bias."],
        look=[
            "Read the sheet Lookup from top to bottom. Each column is one vector.",
            "The sheet Activations shows ReLU and GELU as curves.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘-0.5’: one name is now enough. Alexis Jordan scores {then:.1f} for "
                "basketball, not {now:.0f}.",
                {bias[0, 0]: -0.5},
                says[basketball, alexis],
            ),
            w.suggestion(
                "Type ‘1’ to add Phelps to Michael Jordan: the MLP now writes two facts. "
                "Swimming goes from {now:.0f} to {then:.0f}.",
                {has[3, jordan]: 1.0},
                says[swimming, jordan],
            ),
            w.suggestion(
                "Type ‘-2’: GELU gives small negative numbers. Michael Phelps scores {then:.2f} "
                "for basketball, not {now:.2f}. With ReLU, this score stays 0.",
                {bias[0, 0]: -2.0},
                says_gelu[basketball, phelps],
            ),
        ],
    )
