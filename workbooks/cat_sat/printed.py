"""cat-sat's printed tables, each compared with its cells, and with the tables printed before it."""

from collections.abc import Mapping

from cellformer.engine import Graph
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import EXP, SQRT, added, dot
from cellformer.exporters.compose.story import Printed
from cellformer.workbooks.cat_sat.weights import HEAD, POSITED_H, PRINTED_LOGITS, W_E, WORDS

DIVISOR = "blocks.0.attn.sqrt_d_head"
Tables = Mapping[str, Area]  # the printed cells of each table, by its title


def product(g: Graph, i: int, j: int) -> Expression:
    """The dot product of query i and key j, for every pair, later keys included."""
    return dot(g[f"{HEAD}.q"][i, :], g[f"{HEAD}.k"][j, :])


QUERIES, KEYS, VALUES = (f"Step 2: {name}" for name in "QKV")
PRODUCTS, SCORES = "Step 3: Q Kᵀ", "Step 3: Q Kᵀ, divided by √5"
WEIGHTS, MIXED, LOGITS = "Step 4: attention weights", "Step 5: weighted sum of V", "Step 7: logits"
PRINTED = (
    Printed(QUERIES, [
        [0.30, -0.10, 0.05, 0.45, 0.05],
        [0.40, 0.50, -0.10, 0.35, 0.25],
        [-0.25, 0.20, 0.60, -0.50, 0.25],
    ], f"{HEAD}.q", note=
        "Q[sat][0] is printed as -0.25. The correct value is -0.40 - 0.15 = -0.55. Q[the][1] is "
        "printed as -0.10. The correct value is -0.20 + 0.075 = -0.125."),
    Printed(KEYS, [
        [0.04, -0.14, 0.04, 0.41, 0.15],
        [0.34, 0.46, -0.10, 0.17, 0.00],
        [-0.30, -0.00, 0.51, -0.21, 0.20],
    ], f"{HEAD}.k", note=
        "K[the][2], K[the][3] and K[cat][2] are printed wrong. The correct values are 0.085, "
        "0.365 and -0.070."),
    Printed(VALUES, [
        [-0.05, 0.15, 0.05, 0.40, 0.15],
        [0.40, -0.10, -0.10, 0.20, 0.00],
        [-0.15, -0.25, 0.60, -0.30, 0.20],
    ], f"{HEAD}.v"),
    Printed(PRODUCTS, [
        [0.20, 0.07, -0.21],
        [-0.01, 0.40, -0.23],
        [-0.16, 0.06, 0.59],
    ], f"{HEAD}.scores", cell=product, follows=lambda t, i, j: dot(t[QUERIES][i, :], t[KEYS][j, :]),
            note=
                "This step has its own errors. The last table shows the result of the printed Q "
                "and K. The score of sat with cat is printed as 0.06. The correct value is "
                "-0.222."),
    Printed(SCORES, [
        [0.089, 0.031, -0.094],
        [-0.004, 0.179, -0.103],
        [-0.071, 0.027, 0.264],
    ], f"{HEAD}.scores", decimals=3,
            cell=lambda g, i, j: product(g, i, j) / g[DIVISOR][0, 0],
            follows=lambda t, i, j: t[PRODUCTS][i, j] / SQRT(expression(5)),
            note=
                "The division is correct. This table repeats the errors of the table above, and "
                "adds no new error."),
    Printed(WEIGHTS, [
        [1.000, 0.000, 0.000],
        [0.454, 0.546, 0.000],
        [0.250, 0.276, 0.474],
    ], f"{HEAD}.pattern", decimals=3,
            follows=lambda t, i, j: EXP(t[SCORES][i, j]) / added(EXP(t[SCORES][i, k]) for k in range(i + 1)),
            note=
                "The softmax has its own errors. The printed scores of sat give 0.286, 0.315 and "
                "0.399. Computed from the model's weights, sat gives itself an attention weight "
                "of 0.418, not 0.474."),
    Printed(MIXED, [
        [-0.050, 0.150, 0.050, 0.400, 0.150],
        [0.196, 0.014, -0.027, 0.291, 0.068],
        [-0.022, -0.094, 0.262, -0.061, 0.132],
    ], f"{HEAD}.z", decimals=3,
            follows=lambda t, i, j: added(t[WEIGHTS][i, k] * t[VALUES][k, j] for k in range(i + 1)),
            note=
                "The sum has its own errors. The printed weights of sat and the printed V give "
                "0.027, -0.109, 0.269, 0.013, 0.132."),
    Printed("Step 7: the last row of the stream", [POSITED_H], "resid_final", rows=[2], decimals=3,
            follows=lambda t, i, j: W_E[WORDS.index("sat")][j] + t[MIXED][2, j],
            other="other settings",
            note=
                "The essay only assumes this vector (‘suppose’). Steps 1 to 6 do not give it. "
                "The printed results of these steps do not give it either."),
    Printed(LOGITS, [PRINTED_LOGITS], "logits", rows=[2], decimals=1, other="other settings",
            note=
                "The printed logits belong to the assumed vector, and W_U gives them exactly. "
                "The recomputed vector gives the recomputed logits."),
    Printed("Step 7: probabilities of on, mat, floor", [[0.16, 0.32, 0.24]], "probs", rows=[2],
            cols=[5, 6, 7],
            follows=lambda t, i, j: EXP(t[LOGITS][5 + j]) / added(EXP(logit) for logit in t[LOGITS].cells),
            note=
                "The printed logits give 0.156, 0.315 and 0.233. The printed value of floor is "
                "rounded the wrong way."),
)  # fmt: skip
