"""low-rank's sheet Heads: two heads, each by its thin matrices and by its two large ones.

A word is a row vector: x W.
"""

import numpy as np

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import EXP, MAX, SQRT
from cellformer.exporters.assemble.matrices import (
    Cells,
    Matrix,
    MatrixSheet,
    hstack,
    numbered,
    shares_of_rows,
    vstack,
)
from cellformer.exporters.compose.composer import Texts

D_MODEL, D_HEAD, HEADS = 4, 2, (1, 2)
WORDS = ("the", "cat", "sat")
TYPED = {  # three words, two heads; in halves, so that sums are exact
    "x": [[1, 0, 0.5, -1], [0, 1, -0.5, 1], [1, -1, 1, 0.5]],
    "W_Q_h1": [[1, 0], [0.5, -1], [0, 1], [1, 0.5]],
    "W_K_h1": [[0.5, 1], [-1, 0], [1, -0.5], [0, 1]],
    "W_V_h1": [[1, -2], [0.5, -1], [0, 1], [-1, 2]],
    "W_O_h1": [[1, 0, -0.5, 1], [0.5, 1, 0, -1]],
    "W_Q_h2": [[0, 1], [1, 0.5], [-1, 0], [0.5, 1]],
    "W_K_h2": [[1, -1], [0.5, 1], [0, 0.5], [-1, 1]],
    "W_V_h2": [[0.5, 1], [1, 0], [-1, 1], [0, -0.5]],
    "W_O_h2": [[0, 1, 1, -0.5], [-1, 0.5, 0, 1]],
}


def typed() -> dict[str, np.ndarray]:
    """The typed inputs by name: arrays [rows, columns]."""
    return {name: np.array(rows, float) for name, rows in TYPED.items()}


def labels(name: str, shape: Span) -> tuple[Texts, Texts]:
    """Rows and columns: the words where there are three, or else numbers."""
    rows, cols = numbered(name, shape)
    return WORDS if shape[0] == len(WORDS) else rows, WORDS if shape[1] == len(WORDS) else cols


def match(page: MatrixSheet, h: int) -> None:
    """The scores of a head, through queries and keys and through QK; then its pattern."""
    page.section(
        f"Head 0.{h - 1}: attention weights",
        "Q = x W_Q,  K = x W_K    [n × d_head]",
        "S = Q Kᵀ / √d_head    [n × n],  A = softmax of each row up to its own word",
        "QK = W_Q W_Kᵀ    [d_model × d_model];  S = x QK xᵀ / √d_head",
    )
    x, root = page["x"], SQRT(D_HEAD)
    W_Q = page.given(f"W_Q_h{h}")
    W_K = page.given(f"W_K_h{h}", W_Q)
    QK = page.computed(f"QK_h{h}", W_Q @ W_K.T, W_K)
    Q = page.computed(f"Q_h{h}", x @ W_Q)
    K = page.computed(f"K_h{h}", x @ W_K, Q)
    S = page.computed(f"S_h{h}", (Q @ K.T) / root, K)
    x_QK = page.computed(f"x_QK_h{h}", x @ QK, S)
    S_circuit = page.computed(f"S_circuit_h{h}", (x_QK @ x.T) / root, x_QK)
    e = page.computed(
        f"exp_S_h{h}", causal_exponentials(S), page.computed(f"S_difference_h{h}", S - S_circuit)
    )
    page.ws.dress(page.computed(f"A_h{h}", shares_of_rows(e), e, "attention").area, "scale")


def causal_exponentials(S: Cells) -> Matrix:
    """The exponentials of the scores up to the diagonal, minus the largest in their row."""

    def exponential(i: int, j: int) -> Expression | int:
        return EXP(S[i, j] - MAX(*[S[i, k] for k in range(i + 1)])) if j <= i else 0

    return Matrix(S.shape, exponential)


def write(page: MatrixSheet, h: int) -> None:
    """Add the output of a head, through values and W_O and through OV."""
    page.section(
        f"Head 0.{h - 1}: output",
        "V = x W_V,  z = A V    [n × d_head]",
        "out = z W_O    [n × d_model]",
        "OV = W_V W_O    [d_model × d_model];  out = A x OV, the same numbers",
    )
    page.ws.text(
        "W_V is also called value-down, because W_V reduces a vector to d_head numbers. W_O is "
        "also called value-up."
    )
    x, A = page["x"], page[f"A_h{h}"]
    W_V = page.given(f"W_V_h{h}")
    W_O = page.given(f"W_O_h{h}", W_V)
    OV = page.computed(f"OV_h{h}", W_V @ W_O, W_O)
    V = page.computed(f"V_h{h}", x @ W_V)
    z = page.computed(f"z_h{h}", A @ V, V)
    out = page.computed(f"out_h{h}", z @ W_O, z)
    A_x = page.computed(f"A_x_h{h}", A @ x, out)
    out_circuit = page.computed(f"out_circuit_h{h}", A_x @ OV, A_x)
    page.computed(f"out_difference_h{h}", out - out_circuit)


def add_heads(page: MatrixSheet) -> None:
    """Add the sum of the heads, and the same as one product with the stacked W_O."""
    page.section(
        "All heads together, in two ways",
        "out_sum = Σ z_h W_O_h    [n × d_model]",
        "out_all = z_all W_O_all,  z_all = [z_h1 | z_h2]    [n × heads · d_head]",
        "OV_all = W_V_all W_O_all = Σ OV_h    [d_model × d_model]",
    )
    out_1, out_2 = (page[f"out_h{h}"] for h in HEADS)
    z = page.computed("z_all", hstack([page[f"z_h{h}"] for h in HEADS]))
    W_O = page.computed("W_O_all", vstack([page[f"W_O_h{h}"] for h in HEADS]), z)
    at_once = page.computed("out_all", z @ W_O, W_O)
    added = page.computed("out_sum", out_1 + out_2, at_once)
    difference = page.computed("out_difference", added - at_once)
    W_V = page.computed("W_V_all", hstack([page[f"W_V_h{h}"] for h in HEADS]), difference)
    page.computed("OV_all", W_V @ W_O, W_V)
