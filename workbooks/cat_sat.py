"""cat-sat: attention by hand on `the cat sat`; one head, one layer, every step as in the essay.

Look at the pattern: each column says how one word spreads its attention over the words before it
and sums to 1. Try another word in the prompt, the divisor of the scores, or one weight of W_V.
"""

import numpy as np

from engine import Model, ModelSpec, WordList
from engine.models.generate import Passage
from exporters.book import Book
from exporters.story import Printed, Story, Suggestion
from exporters.transformer import assemble

TOPIC = "A whole model"
PROMPT = "the cat sat"
WORDS = [
    "the",
    "cat",
    "dog",
    "sat",
    "ran",
    "on",
    "mat",
    "floor",
    "big",
    "small",
    "red",
    "blue",
    "fast",
    "slow",
    "a",
    "and",
    ".",
    "is",
    "was",
    ".EOS",
]

# The essay prints the rows of the, cat and sat; the others are chosen so that words of a kind
# (cat and dog, sat and ran, mat and floor) point nearly the same way.
W_E = [
    [0.10, -0.20, 0.05, 0.40, 0.15],  # the
    [0.30, 0.50, -0.10, 0.20, 0.00],  # cat
    [0.35, 0.45, -0.15, 0.25, 0.05],  # dog
    [-0.40, 0.10, 0.60, -0.30, 0.20],  # sat
    [-0.45, 0.15, 0.55, -0.25, 0.15],  # ran
    [-0.10, -0.35, 0.30, 0.10, 0.45],  # on
    [0.20, 0.30, 0.15, -0.35, 0.40],  # mat
    [0.25, 0.25, 0.20, -0.40, 0.35],  # floor
    [0.05, 0.15, -0.45, -0.20, 0.25],  # big
    [0.00, 0.20, -0.50, -0.15, 0.20],  # small
    [0.15, -0.05, -0.40, -0.30, -0.10],  # red
    [0.10, 0.00, -0.45, -0.25, -0.15],  # blue
    [-0.25, 0.05, -0.30, 0.05, -0.35],  # fast
    [-0.20, 0.10, -0.35, 0.00, -0.40],  # slow
    [0.15, -0.25, 0.05, 0.35, 0.10],  # a
    [-0.05, -0.30, 0.10, 0.25, -0.20],  # and
    [-0.15, -0.10, -0.05, 0.15, -0.45],  # .
    [-0.30, -0.20, 0.35, 0.30, 0.05],  # is
    [-0.35, -0.15, 0.40, 0.25, 0.00],  # was
    [-0.10, -0.15, -0.10, 0.05, -0.50],  # .EOS
]
W_Q = [
    [1.0, 0.0, 0.0, 0.5, 0.0],
    [0.0, 1.0, 0.0, 0.0, 0.5],
    [0.0, 0.0, 1.0, 0.0, 0.0],
    [0.5, 0.0, 0.0, 1.0, 0.0],
    [0.0, 0.5, 0.0, 0.0, 1.0],
]
W_K = [
    [0.8, 0.2, 0.0, 0.0, 0.0],
    [0.2, 0.8, 0.0, 0.0, 0.0],
    [0.0, 0.0, 0.9, 0.1, 0.0],
    [0.0, 0.0, 0.1, 0.9, 0.0],
    [0.0, 0.0, 0.0, 0.0, 1.0],
]
W_V = [
    [0.5, 0.5, 0.0, 0.0, 0.0],
    [0.5, -0.5, 0.0, 0.0, 0.0],
    [0.0, 0.0, 1.0, 0.0, 0.0],
    [0.0, 0.0, 0.0, 1.0, 0.0],
    [0.0, 0.0, 0.0, 0.0, 1.0],
]
POSITED_H = [-0.351, 0.030, 0.802, -0.398, 0.247]  # "suppose it's": step 7
PRINTED_LOGITS = [
    -0.8, -0.2, 0.1, 0.5, 1.2, 2.4, 3.1, 2.8, 0.4, -0.1,
    -0.3, 0.0, -0.5, -0.4, 0.6, 0.2, 1.0, -0.2, 0.3, -1.5,
]  # fmt: skip

HEAD = "blocks.0.attn.h0"
STORY = Story(
    title="cat-sat: one attention step, every number in view",
    source="After L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), section 5.",
    about=[
        "A language model with 20 words, vectors of 5 numbers, one attention head and no MLP.",
        "It reads `the cat sat` and ranks the next word. Every cell is a formula down to the weights.",
        "The essay did this by hand, and rounded, and slipped: sheet Printed holds its tables against the formulas.",
        "It prints three rows of the embedding and no unembedding. The other rows are chosen here; the",
        "unembedding is the smallest one that turns the essay's posited final vector into its printed logits.",
    ],
    look=[
        "Embedding: a token's id picks its row of W_E (step 1).",
        "Block 0: Q, K, V (step 2), scores (3), pattern (4), mixed values (5), back into the stream (6).",
        "The pattern has keys down and queries across: each column says where one word looks, and sums to 1.",
        "Readout: one dot product per word, then softmax (step 7). Play: the ranked words.",
    ],
    tries=[
        Suggestion("Choose `dog` for `cat`: a near synonym, and the probabilities hardly move.", 1),
        Suggestion(
            "Type 0.2, what scores are divided by: `sat` looks at itself with 0.97 instead of 0.42.",
            ("blocks.0.attn.sqrt_d_head", 0, 0),
        ),
        Suggestion(
            "Type -1, turning a value's third number over: `mat` falls from 31 % to 19 %.",
            (f"{HEAD}.W_V", 2, 2),
        ),
    ],
)


def model() -> Model:
    """The essay's weights; W_U is the minimum-norm matrix with POSITED_H @ W_U = PRINTED_LOGITS."""
    h = np.array(POSITED_H)
    spec = ModelSpec(d_vocab=20, d_model=5, n_ctx=8, n_layers=1, n_heads=1, d_head=5)
    weights = {
        "W_E": W_E,
        f"{HEAD}.W_Q": W_Q,
        f"{HEAD}.W_K": W_K,
        f"{HEAD}.W_V": W_V,
        f"{HEAD}.W_O": np.eye(5),
        "W_U": np.outer(h, PRINTED_LOGITS) / (h @ h),
    }
    arrays = {name: np.array(values, dtype=np.float64) for name, values in weights.items()}
    return Model(spec, arrays, WordList(tuple(WORDS)))


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a forward pass; the printed tables only for the essay's own prompt."""
    same = passage.ids == [0, 1, 3]
    printed = PRINTED if same else ()
    return assemble("cat-sat", model, passage, STORY, printed, HEADINGS)


HEADINGS = {
    "embed": "Step 1: token embedding",
    f"{HEAD}.q": "Step 2: compute Q, K, V",
    f"{HEAD}.scores": "Steps 3 and 4: scores, causal mask, softmax",
    f"{HEAD}.z": "Steps 5 and 6: weighted sum of V, through W_O, back into the residual stream",
    "logits": "Step 7: final hidden state, logits, next-token distribution",
}

PRINTED = (
    Printed("Step 2: Q", [
        [0.30, -0.10, 0.05, 0.45, 0.05],
        [0.40, 0.50, -0.10, 0.35, 0.25],
        [-0.25, 0.20, 0.60, -0.50, 0.25],
    ], f"{HEAD}.q", note="Q[sat][0] is printed -0.25: the sum is -0.40 - 0.15 = -0.55."),
    Printed("Step 2: K", [
        [0.04, -0.14, 0.04, 0.41, 0.15],
        [0.34, 0.46, -0.10, 0.17, 0.00],
        [-0.30, -0.00, 0.51, -0.21, 0.20],
    ], f"{HEAD}.k", note="Several entries of K are slips of the hand calculation."),
    Printed("Step 2: V", [
        [-0.05, 0.15, 0.05, 0.40, 0.15],
        [0.40, -0.10, -0.10, 0.20, 0.00],
        [-0.15, -0.25, 0.60, -0.30, 0.20],
    ], f"{HEAD}.v"),
    Printed("Step 3: scores, divided by sqrt 5", [
        [0.089, 0.0, 0.0],
        [-0.004, 0.179, 0.0],
        [-0.071, 0.027, 0.264],
    ], f"{HEAD}.scores", decimals=3, note="They inherit the slips in Q and K."),
    Printed("Step 4: attention weights", [
        [1.000, 0.000, 0.000],
        [0.454, 0.546, 0.000],
        [0.250, 0.276, 0.474],
    ], f"{HEAD}.pattern", decimals=3, note="So do the weights: sat looks at itself with 0.418, not 0.474."),
    Printed("Step 5: weighted sum of V", [
        [-0.050, 0.150, 0.050, 0.400, 0.150],
        [0.196, 0.014, -0.027, 0.291, 0.068],
        [-0.022, -0.094, 0.262, -0.061, 0.132],
    ], f"{HEAD}.z", decimals=3),
    Printed("Step 7: the last row of the stream", [POSITED_H], "resid_final", rows=[2], decimals=3,
            note="The essay posits it (`suppose`); steps 1 to 6 give another vector."),
    Printed("Step 7: logits", [PRINTED_LOGITS], "logits", rows=[2], decimals=1,
            note="Printed for the posited vector, which W_U reproduces exactly; the recomputed vector gives these."),
    Printed("Step 7: probabilities of on, mat, floor", [[0.16, 0.32, 0.24]], "probs", rows=[2],
            cols=[5, 6, 7], note="The printed logits themselves give 0.156, 0.315 and 0.233."),
)  # fmt: skip
