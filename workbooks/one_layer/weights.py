"""one-layer's sizes and typed inputs: words, switches, weights of one decimal.

As in the document, a word is a column vector: W x, with x [d_model, n].
"""

import numpy as np

TOKENS = ("The", "state", "of", "New")
VOCABULARY = ("The", "state", "of", "New", "York")
N, N_VOCAB = len(TOKENS), len(VOCABULARY)
D_MODEL, D_HEAD, D_MLP, HEADS = 4, 2, 6, (1, 2)
SWITCHES = ("LayerNorm", "MLP", "mask")
SEED = 1022  # of those tried, one whose full model ends "The state of New" with York


def typed() -> dict[str, np.ndarray]:
    """The typed inputs [rows, columns], by name. The switches give the attention-only model."""
    rng = np.random.default_rng(SEED)

    def weight(rows: int, cols: int) -> np.ndarray:
        return rng.integers(-10, 11, (rows, cols)) / 10

    given = {
        "tokens": np.array([TOKENS], object),
        "vocabulary": np.array(VOCABULARY, object)[:, None],
        "switches": np.array([[0.0], [0.0], [1.0]]),
        "W_E": weight(D_MODEL, N_VOCAB),
        "W_pos": weight(D_MODEL, N) / 2,
    }
    for h in HEADS:
        for name in ("W_Q", "W_K", "W_V"):
            given[f"{name}_h{h}"] = weight(D_HEAD, D_MODEL)
        given[f"W_O_h{h}"] = weight(D_MODEL, D_HEAD)
    for k in (0, 1):
        given[f"gamma_{k}"] = np.ones((D_MODEL, 1))
        given[f"beta_{k}"] = np.zeros((D_MODEL, 1))
    given["W_1"] = weight(D_MLP, D_MODEL)
    given["b_1"] = weight(D_MLP, 1)
    given["W_2"] = weight(D_MODEL, D_MLP)
    given["b_2"] = weight(D_MODEL, 1)
    given["W_U"] = weight(N_VOCAB, D_MODEL)
    return given
