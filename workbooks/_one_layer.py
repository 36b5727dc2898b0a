"""one-layer in numpy: its weights and the forward pass of whole arrays.

As in the document a word is a column: W x, with x [d_model, n].
"""

import numpy as np

TOKENS = ("The", "state", "of", "New")
VOCABULARY = ("The", "state", "of", "New", "York")
D_MODEL, D_HEAD, D_MLP, HEADS = 4, 2, 6, (1, 2)
SWITCHES = ("LayerNorm", "MLP", "mask")
SEED = 1022  # of those tried, one whose full model ends "The state of New" with York
Arrays = dict[str, np.ndarray]


def inputs() -> Arrays:
    """What is typed: the words, the switches (attention-only), and weights of one decimal."""
    rng = np.random.default_rng(SEED)

    def weight(rows: int, cols: int) -> np.ndarray:
        return rng.integers(-10, 11, (rows, cols)) / 10

    n_vocab, n = len(VOCABULARY), len(TOKENS)
    given = {
        "tokens": np.array([TOKENS], object),
        "vocabulary": np.array(VOCABULARY, object)[:, None],
        "switches": np.array([[0.0], [0.0], [1.0]]),
        "W_E": weight(D_MODEL, n_vocab),
        "W_pos": weight(D_MODEL, n) / 2,
    }
    for h in HEADS:
        for name in ("W_Q", "W_K", "W_V"):
            given[f"{name}_h{h}"] = weight(D_HEAD, D_MODEL)
        given[f"W_O_h{h}"] = weight(D_MODEL, D_HEAD)
    for k in (0, 1):
        given[f"gamma_{k}"], given[f"beta_{k}"] = np.ones((D_MODEL, 1)), np.zeros((D_MODEL, 1))
    given |= {"W_1": weight(D_MLP, D_MODEL), "b_1": weight(D_MLP, 1)}
    given |= {"W_2": weight(D_MODEL, D_MLP), "b_2": weight(D_MODEL, 1)}
    return given | {"W_U": weight(n_vocab, D_MODEL)}


def edited(*changes: tuple[tuple[str, int, int], float]) -> Arrays:
    """The forward pass after some cells were typed over."""
    given = inputs()
    for (name, i, j), value in changes:
        given[name][i, j] = value
    return forward(given)


def forward(given: Arrays) -> Arrays:
    """Every activation of the document's table, by name, beside what is given."""
    a = dict(given)
    with_norm, with_mlp, with_mask = a["switches"][:, 0] == 1
    a["t"] = (a["vocabulary"] == a["tokens"]).astype(float)
    a["x_0"] = a["W_E"] @ a["t"] + a["W_pos"]
    a |= normed(a, 0, with_norm)
    for h in HEADS:
        a |= attended(a, f"_h{h}", with_mask)
    a["W_O"] = np.hstack([a[f"W_O_h{h}"] for h in HEADS])
    a["R_all"] = np.vstack([a[f"r_h{h}"] for h in HEADS])
    a["o_sum"] = np.sum([a[f"o_h{h}"] for h in HEADS], axis=0)
    a["o_concat"] = a["W_O"] @ a["R_all"]
    a["o_difference"] = a["o_sum"] - a["o_concat"]
    a["x_1"] = a["x_0"] + a["o_sum"]
    a |= normed(a, 1, with_norm)
    a["z"] = np.maximum(a["W_1"] @ a["x_1_LN"] + a["b_1"], 0)
    a["m"] = a["W_2"] @ a["z"] + a["b_2"]
    a["x_2"] = a["x_1"] + with_mlp * a["m"]
    a["logits"] = a["W_U"] @ a["x_2"]
    a["exp_logits"] = np.exp(a["logits"] - a["logits"].max(axis=0))
    a["p"] = a["exp_logits"] / a["exp_logits"].sum(axis=0)
    a["p_sums"] = a["p"].sum(axis=0, keepdims=True)
    return a | {"next": a["p"][:, -1:]}


def normed(a: Arrays, k: int, switched_on: bool) -> Arrays:
    """LayerNorm of x_k [d_model, n], word by word; switched off it hands x_k on."""
    x = a[f"x_{k}"]
    mu, sigma = x.mean(axis=0, keepdims=True), x.std(axis=0, keepdims=True)
    unit = (x - mu) / sigma
    out = unit * a[f"gamma_{k}"] + a[f"beta_{k}"] if switched_on else x
    return {f"mu_{k}": mu, f"sigma_{k}": sigma, f"unit_{k}": unit, f"x_{k}_LN": out}


def attended(a: Arrays, h: str, masked: bool) -> Arrays:
    """One head: from x_0_LN [d_model, n] to what it writes, o [d_model, n]."""
    q, k, v = (a[f"{name}{h}"] @ a["x_0_LN"] for name in ("W_Q", "W_K", "W_V"))
    S = q.T @ k / np.sqrt(D_HEAD)
    seen = np.where(np.tri(len(S)), S, -np.inf) if masked else S
    e = np.exp(seen - seen.max(axis=1, keepdims=True))
    sums = e.sum(axis=1, keepdims=True)
    A = e / sums
    r = v @ A.T
    found = {"q": q, "k": k, "v": v, "S": S, "exp_S": e, "A": A, "r": r}
    found |= {"A_sums": A.sum(axis=1, keepdims=True), "o": a[f"W_O{h}"] @ r}
    return {f"{name}{h}": values for name, values in found.items()}
