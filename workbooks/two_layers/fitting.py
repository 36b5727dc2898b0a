"""Weights for a model with printed intermediate results alone, to two decimals.

Every step multiplies a known table by an unknown matrix. With three words and six columns there are
many solutions; the one of least norm is taken, from the embedding to the logits.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

WORDS = ("the", "cat", "dog", "sat", "ran", "on", "mat", "floor", "big", "small")
PROMPT = ("the", "cat", "sat")
N_HEADS, D_HEAD = 2, 3
D_MODEL, D_MLP = 6, 8
HEADS = [slice(h * D_HEAD, (h + 1) * D_HEAD) for h in range(N_HEADS)]  # lanes of the columns

# --- what the source prints, layer 1 and then layer 2 ------------------------------------------

H0 = np.array([
    [0.10, -0.10, 0.05, 0.30, 0.15, -0.05],
    [0.40, 0.50, -0.20, 0.20, 0.10, 0.25],
    [-0.50, 0.15, 0.65, -0.20, 0.15, 0.05],
])  # fmt: skip
Q = np.array([
    [-0.24, -0.27, -0.43, -0.05, -0.30, -0.01],
    [-0.37, 0.29, -0.61, -0.56, 0.17, -0.13],
    [0.20, -0.18, -0.00, 0.37, -0.14, 0.09],
])  # fmt: skip
SCORES_1 = np.array([[-0.01, 0, 0], [0.04, 0.07, 0], [-0.01, -0.04, -0.07]])
PATTERN_1 = np.array([[1, 0, 0], [0.49, 0.51, 0], [0.34, 0.33, 0.32]])
PATTERN_2 = np.array([[1, 0, 0], [0.45, 0.55, 0], [0.36, 0.32, 0.32]])
CONCAT = np.array([
    [-0.12, -0.04, -0.07, 0.06, -0.03, 0.01],
    [-0.15, 0.40, -0.07, 0.04, -0.06, -0.05],
    [-0.12, 0.20, -0.20, -0.16, 0.11, 0.03],
])  # fmt: skip
PRE = np.array([
    [0.16, -0.07, -0.14, 0.10, -0.12, -0.05, -0.06, -0.29],
    [0.17, -0.38, 0.18, 0.24, -0.11, -0.26, 0.35, -0.24],
    [-0.02, 0.22, 0.51, -0.66, -0.29, -0.36, -0.45, 0.36],
])  # fmt: skip
ATTN = np.array([
    [[-0.06, 0.10, -0.11, 0.05, 0.06, 0.01],
     [-0.03, -0.09, -0.10, -0.15, 0.30, 0.08],
     [0.19, -0.20, 0.23, 0.09, 0.34, -0.10]],
    [[-0.09, -0.27, 0.01, -0.10, -0.02, -0.08],
     [-0.20, -0.48, 0.08, 0.12, -0.06, -0.39],
     [-0.46, -0.16, 0.31, 0.21, -0.28, -0.47]],
])  # fmt: skip
MID = np.array([
    [[0.04, -0.00, -0.06, 0.35, 0.21, -0.04],
     [0.37, 0.41, -0.30, 0.05, 0.40, 0.33],
     [-0.31, -0.05, 0.88, -0.11, 0.49, -0.05]],
    [[0.02, -0.24, -0.09, 0.21, 0.27, -0.05],
     [0.25, 0.01, -0.44, -0.31, 0.58, -0.02],
     [0.02, 0.08, 0.92, -0.24, 0.47, -0.94]],
])  # fmt: skip
MLP = np.array([
    [[0.07, 0.03, -0.04, -0.05, 0.08, 0.07],
     [0.08, 0.07, -0.22, -0.48, 0.24, 0.05],
     [0.79, 0.29, -0.27, -0.34, 0.26, -0.42]],
    [[-0.04, -0.27, -0.37, -0.66, 0.06, 0.18],
     [-0.17, -0.40, -0.58, -0.93, 0.17, 0.33],
     [-0.22, -0.53, -1.20, -2.21, 0.90, 0.26]],
])  # fmt: skip
POST = np.array([
    [[0.12, 0.03, -0.10, 0.31, 0.29, 0.04],
     [0.45, 0.48, -0.52, -0.43, 0.64, 0.38],
     [0.47, 0.24, 0.61, -0.45, 0.75, -0.47]],
    [[-0.02, -0.51, -0.46, -0.46, 0.33, 0.14],
     [0.08, -0.39, -1.01, -1.24, 0.75, 0.32],
     [-0.21, -0.45, -0.28, -2.45, 1.37, -0.67]],
])  # fmt: skip
LOGITS = np.array([-0.48, 0.27, 2.01, -0.91, 0.35, -1.04, -1.80, 1.03, 0.60, 0.36])
PROBS = np.array([0.04, 0.07, 0.42, 0.02, 0.08, 0.02, 0.01, 0.16, 0.10, 0.08])

# --- what it does not print, chosen ------------------------------------------------------------

# Layer 2: head 1 stares at the word before, and writes little; head 2 spreads, and writes the rest.
PATTERNS = (
    np.array([[1, 0, 0], [0.9, 0.1, 0], [0.05, 0.9, 0.05]]),
    np.array([[1, 0, 0], [0.5, 0.5, 0], [0.3, 0.3, 0.4]]),
)
SHARES = (0.3, 1.0)
W_1 = np.hstack([np.eye(6), -np.eye(6)[:, [2, 5]]])  # a hidden cell for each feature, two turned
OTHERS = {  # word vectors near those of their kind: dog by cat, ran by sat, floor by mat
    "dog": [0.42, 0.44, -0.24, 0.08, -0.02, 0.18],
    "ran": [-0.52, 0.10, 0.58, -0.22, 0.12, 0.00],
    "on": [-0.10, -0.35, 0.30, 0.10, 0.40, -0.20],
    "mat": [0.20, 0.25, 0.15, -0.35, 0.30, 0.40],
    "floor": [0.25, 0.20, 0.20, -0.40, 0.25, 0.35],
    "big": [0.05, 0.15, -0.45, -0.20, 0.25, -0.30],
    "small": [0.00, 0.20, -0.50, -0.15, 0.20, -0.35],
}


Matrix = NDArray[np.float64]


class Layer(NamedTuple):
    """The weights of a block; each head has its own columns of Q, K and V, and rows of O."""

    W_Q: Matrix  # [d_model, n_heads * d_head]
    W_K: Matrix
    W_V: Matrix
    W_O: Matrix  # [n_heads * d_head, d_model]
    W_1: Matrix  # [d_model, d_mlp]
    W_2: Matrix  # [d_mlp, d_model]


def fit(x: Matrix, y: Matrix) -> Matrix:
    """The matrix of least norm with x @ matrix = y, exactly or in least squares."""
    return np.linalg.lstsq(x, y, rcond=None)[0].astype(np.float64)


def between(x: Matrix, write: Matrix, total: Matrix) -> Matrix:
    """The output added to x [n_tokens, d_model]: halfway from the printed write-back to the one
    that the printed total requires. Rounded tables disagree by 0.01 at most, so half of that stays
    within rounding."""
    return (write + total - x) / 2


def keys(q: Matrix, scores: Matrix) -> Matrix:
    """The smallest keys [n_tokens, d_head] that give these scores for queries q, where the causal
    mask shows them."""
    return np.array([fit(q[j:], scores[j:, j] * np.sqrt(D_HEAD)) for j in range(len(q))])


def keys_of_pattern(q: Matrix, pattern: Matrix) -> Matrix:
    """The smallest keys [n_tokens, d_head] that give this pattern for queries q. Only differences
    of a query's scores are determined."""
    unit = np.eye(len(q))
    seen = [(i, j) for i in range(len(q)) for j in range(1, i + 1)]
    differences = np.array([np.kron(unit[j] - unit[0], q[i]) for i, j in seen])
    logs = np.array([np.log(pattern[i, j] / pattern[i, 0]) for i, j in seen])
    return fit(differences, logs * np.sqrt(D_HEAD)).reshape(q.shape)


def softmax(scores: Matrix) -> Matrix:
    """The causal softmax of each row: [queries, keys]."""
    exps: Matrix = np.where(np.tri(len(scores)), np.exp(scores), 0)
    return np.asarray(exps / exps.sum(axis=1, keepdims=True))


@cache
def layers() -> tuple[tuple[Layer, Layer], Matrix]:
    """Both blocks' weights, and the stream after them [n_tokens, d_model]."""
    first, stream = first_layer()
    second, stream = second_layer(stream)
    return (first, second), stream


def first_layer() -> tuple[Layer, Matrix]:
    """Layer 1, which the source prints nearly completely, and the stream after it."""
    one, two = HEADS
    k = np.hstack([keys(Q[:, one], SCORES_1), keys_of_pattern(Q[:, two], PATTERN_2)])
    v = np.hstack([fit(softmax(SCORES_1), CONCAT[:, one]), fit(PATTERN_2, CONCAT[:, two])])
    attn = between(H0, ATTN[0], MID[0])
    mid = H0 + attn
    mlp = between(mid, MLP[0], POST[0])
    layer = Layer(
        W_Q=fit(H0, Q),
        W_K=fit(H0, k),
        W_V=fit(H0, v),
        W_O=fit(CONCAT, attn),
        W_1=fit(mid, PRE),
        W_2=fit(np.maximum(PRE, 0), mlp),
    )
    return layer, mid + mlp


def second_layer(x: Matrix) -> tuple[Layer, Matrix]:
    """Layer 2 on the stream x [n_tokens, d_model], and the stream after it.

    Query and value of word t are unit vector t, in both heads: keys and W_O determine the rest.
    """
    unit = np.eye(D_HEAD)
    units = np.hstack([unit] * N_HEADS)
    k = np.hstack([keys_of_pattern(unit, pattern) for pattern in PATTERNS])
    attn = between(x, ATTN[1], MID[1])
    weighted = np.hstack([share * p for share, p in zip(SHARES, PATTERNS, strict=True)])
    mid = x + attn
    mlp = between(mid, MLP[1], POST[1])
    layer = Layer(
        W_Q=fit(x, units),
        W_K=fit(x, k),
        W_V=fit(x, units),
        W_O=np.repeat(SHARES, D_HEAD)[:, None] * fit(weighted, attn),
        W_1=W_1,
        W_2=fit(np.maximum(mid @ W_1, 0), mlp),
    )
    return layer, mid + mlp


def embeddings(n_ctx: int) -> tuple[Matrix, Matrix]:
    """W_E [d_vocab, d_model] and W_pos [n_ctx, d_model], whose sum is H0 on the prompt."""
    angles = np.arange(n_ctx)[:, None] / 8 ** (np.arange(3) / 3)
    W_pos: Matrix = np.round(0.1 * np.hstack([np.sin(angles), np.cos(angles)]), 2)
    rows = OTHERS | dict(zip(PROMPT, H0 - W_pos[: len(PROMPT)], strict=True))
    return np.array([rows[word] for word in WORDS]), W_pos


def unembedding(W_E: Matrix) -> Matrix:
    """W_U [d_model, d_vocab]: the transposed embedding with the smallest change that gives the last
    word the printed logits."""
    last = layers()[1][-1:]
    return W_E.T + fit(last, LOGITS - last @ W_E.T)
