"""one-layer's sizes and typed inputs: words, switches, and weights that are wired by hand.

The stream has a number for each of six features. Head 0.0 of ‘New’ looks for the kind of place that
is meant, a state or a city; head 0.1 looks for ‘of’, after which a name must follow. The MLP has a
cell for each rule: New and state, New and city. As in the document, a word is a column vector: W x,
with x [d_model, n].
"""

import numpy as np

TOKENS = ("The", "state", "of", "New")
VOCABULARY = ("The", "state", "city", "of", "New", "Jersey", "Orleans")
FEATURES = ("article", "state", "city", "of", "New", "name")
RULES = ("state?", "city?")  # what the MLP's cells ask of ‘New’
N, N_VOCAB = len(TOKENS), len(VOCABULARY)
D_MODEL, D_HEAD, D_MLP, HEADS = len(FEATURES), 2, len(RULES), (1, 2)
SWITCHES = ("LayerNorm", "MLP", "mask")
Wired = dict[tuple[int | str, int | str], int]  # cells by row and column, or by feature
FIRST: dict[str, Wired] = {  # what each head reads and writes
    "W_Q_h1": {(0, "New"): 3},
    "W_K_h1": {(0, "state"): 2, (0, "city"): 2},
    "W_V_h1": {(0, "state"): 1, (1, "city"): 1},
    "W_O_h1": {("state", 0): 1, ("city", 1): 1},
    "W_Q_h2": {(0, "New"): 3},
    "W_K_h2": {(0, "of"): 2},
    "W_V_h2": {(0, "of"): 1},
    "W_O_h2": {("name", 0): 2},
    "W_1": {(0, "New"): 1, (0, "state"): 1, (1, "New"): 1, (1, "city"): 1},
    "W_2": {("state", 0): 1, ("city", 1): 1},
}
SAYS: dict[str, dict[str, int]] = {  # what each word is said for: the unembedding
    "The": {},
    "state": {"article": 3},
    "city": {"article": 3},
    "of": {"state": 4, "city": 4, "name": -4},
    "New": {"of": 4},
    "Jersey": {"state": 2, "name": 1},
    "Orleans": {"city": 2, "name": 1},
}
MEANS = ("article", "state", "city", "of", "New", "name", "name")  # the feature of each word


def typed() -> dict[str, np.ndarray]:
    """The typed inputs [rows, columns], by name. The switches give the attention-only model."""
    given = {
        "tokens": np.array([TOKENS], object),
        "vocabulary": np.array(VOCABULARY, object)[:, None],
        "switches": np.array([[0.0], [0.0], [1.0]]),
        "W_E": np.array([[float(feature == own) for own in MEANS] for feature in FEATURES]),
        "W_pos": np.zeros((D_MODEL, N)),
    }
    for name, cells in FIRST.items():
        inner = D_MLP if name in ("W_1", "W_2") else D_HEAD
        given[name] = np.zeros((D_MODEL, inner) if name[:3] in ("W_O", "W_2") else (inner, D_MODEL))
        for at, weight in cells.items():
            i, j = (FEATURES.index(k) if isinstance(k, str) else k for k in at)
            given[name][i, j] = weight
    for k in (0, 1):
        given[f"gamma_{k}"] = np.ones((D_MODEL, 1))
        given[f"beta_{k}"] = np.zeros((D_MODEL, 1))
    given["b_1"] = -np.ones((D_MLP, 1))  # so that a cell opens only where both are there
    given["b_2"] = np.zeros((D_MODEL, 1))
    given["W_U"] = np.array(
        [[float(words.get(feature, 0)) for feature in FEATURES] for words in SAYS.values()]
    )
    return given
