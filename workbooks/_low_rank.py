"""low-rank in numpy: the weights, both ways through a head, minors, and counts. A word is a row."""

from itertools import combinations

import numpy as np

D_MODEL, D_HEAD, HEADS = 4, 2, (1, 2)
RANKED = ("QK_h1", "OV_h1", "OV_all")  # the matrices whose ranks are shown
Arrays = dict[str, np.ndarray]


def inputs() -> Arrays:
    """What is typed: three words, two heads; in halves, so that sums are exact."""
    given = {
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
    return {name: np.array(rows, float) for name, rows in given.items()}


def edited(*changes: tuple[tuple[str, int, int], float]) -> Arrays:
    """Both ways through the heads, after some cells were typed over."""
    a = inputs()
    for (name, i, j), value in changes:
        a[name][i, j] = value
    for h in HEADS:
        a |= head(a, f"_h{h}")
    a["z_all"] = np.hstack([a[f"z_h{h}"] for h in HEADS])
    a["W_V_all"] = np.hstack([a[f"W_V_h{h}"] for h in HEADS])
    a["W_O_all"] = np.vstack([a[f"W_O_h{h}"] for h in HEADS])
    a["out_all"] = a["z_all"] @ a["W_O_all"]
    a["out_sum"] = np.sum([a[f"out_h{h}"] for h in HEADS], axis=0)
    a["out_difference"] = a["out_sum"] - a["out_all"]
    a["OV_all"] = a["W_V_all"] @ a["W_O_all"]
    for k in range(D_HEAD):
        a[f"outer_{k + 1}"] = np.outer(a["W_V_h1"][:, k], a["W_O_h1"][k])
    a["outer_sum"] = a["OV_h1"]
    for name in RANKED:
        a |= ranked(a[name], name)
    return a


def head(a: Arrays, h: str) -> Arrays:
    """One head: scores [n, n] and what it writes [n, d_model], by thin and by large matrices."""
    x, W_Q, W_K, W_V, W_O = a["x"], *(a[f"{name}{h}"] for name in ("W_Q", "W_K", "W_V", "W_O"))
    QK, OV = W_Q @ W_K.T, W_V @ W_O
    Q, K, V = x @ W_Q, x @ W_K, x @ W_V
    S, other = Q @ K.T / np.sqrt(D_HEAD), x @ QK @ x.T / np.sqrt(D_HEAD)
    seen = np.where(np.tri(len(x)), S, -np.inf)
    e = np.exp(seen - seen.max(axis=1, keepdims=True))
    A = e / e.sum(axis=1, keepdims=True)
    z = A @ V
    found = {
        "QK": QK, "Q": Q, "K": K, "S": S, "x_QK": x @ QK, "S_circuit": other,
        "S_difference": S - other, "exp_S": e, "A": A, "OV": OV, "V": V, "z": z, "out": z @ W_O,
        "A_x": A @ x, "out_circuit": A @ x @ OV, "out_difference": z @ W_O - A @ x @ OV,
    }  # fmt: skip
    return {f"{name}{h}": values for name, values in found.items()}


def ranked(M: np.ndarray, name: str) -> Arrays:
    """The minors of M [4, 4] of each size, the largest of each, and its rank."""
    found = {}
    for k in range(1, D_MODEL + 1):
        chosen = list(combinations(range(D_MODEL), k))
        minors = [[np.linalg.det(M[np.ix_(rows, cols)]) for cols in chosen] for rows in chosen]
        found[f"minors{k}"] = np.array(minors)
    largest = [np.abs(minors).max() for minors in found.values()]
    found["largest"] = np.array(largest)[:, None]
    found["rank"] = np.array([[np.linalg.matrix_rank(M)]], float)
    return {f"{kind}_{name}": values for kind, values in found.items()}
