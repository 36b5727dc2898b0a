"""fluffy-creature: a whole block, attention and MLP, in two dimensions, on four words.

Look at what each step adds to the four vectors. Try the divisor of the scores: the notes leave the
division by sqrt 2 out (a 1 in its cell), and say that it does not change the pattern much.
"""

import numpy as np

from engine import Model, ModelSpec, WordList
from engine.models.generate import Passage
from exporters.book import Book
from exporters.story import Printed, Story, Suggestion
from exporters.transformer import assemble

TOPIC = "A whole model"
PROMPT = "fluffy blue creature forest"
WORDS = ("fluffy", "blue", "creature", "forest")
BLOCK, HEAD = "blocks.0", "blocks.0.attn.h0"

STORY = Story(
    title="fluffy-creature: one transformer block in two dimensions",
    source="After lecture notes on transformers, section 8, Transformer Numerical Example.",
    about=[
        "Four words, vectors of two numbers, one head, a ReLU MLP with four hidden cells, tied embeddings.",
        "It is the smallest machine with every part of a block: you can draw all of it on paper.",
        "The notes skip the division of the scores by sqrt 2, and their tables hold slips:",
        "sheet Printed holds each against its formula.",
    ],
    look=[
        "Block 0: the scores, then the pattern. Keys down, queries across: each column sums to 1.",
        "Block 0: resid_pre, attn_out, resid_mid, mlp_out, resid_post: what each part adds to the words.",
        "Readout: the same table of word vectors serves at both ends (tied): logits are dot products with it.",
    ],
    tries=[
        Suggestion(
            "Type =SQRT(2), as the formula of attention has it: the pattern does change, forest on "
            "blue from 0.81 to 0.69.",
            (f"{BLOCK}.attn.sqrt_d_head", 0, 0),
        ),
        Suggestion("Choose `creature`: now it leads, and `forest` falls from 0.80 to 0.25.", 3),
        Suggestion(
            "Type -1: ReLU cuts the third hidden cell to 0 for every word; `forest` falls from 0.80 "
            "to 0.38.",
            (f"{BLOCK}.mlp.W_in", 1, 2),
        ),
    ],
)


def model() -> Model:
    """The weights of the notes; scores are divided by 1, as the notes do."""
    spec = ModelSpec(
        d_vocab=4, d_model=2, n_ctx=8, n_layers=1, n_heads=1, d_head=2, d_mlp=4,
        activation="relu", tied=True, sqrt_d_head=1.0,
    )  # fmt: skip
    weights = {
        "W_E": [[1.0, 2.0], [2.0, 0.5], [1.5, 1.5], [0.5, 2.5]],
        f"{HEAD}.W_Q": [[1, 0], [0, 1]],
        f"{HEAD}.W_K": [[0.5, 0.5], [0.5, -0.5]],
        f"{HEAD}.W_V": [[1, 1], [1, 0]],
        f"{HEAD}.W_O": [[0.8, 0.2], [0.1, 0.9]],
        f"{BLOCK}.mlp.W_in": [[1, 0, 0, 1], [0, 1, 1, 0]],
        f"{BLOCK}.mlp.W_out": [[0.5, 0.5], [0.5, 0.5], [0.2, 0.8], [0.8, 0.2]],
    }
    arrays = {name: np.array(values, dtype=np.float64) for name, values in weights.items()}
    return Model(spec, arrays, WordList(WORDS))


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a forward pass; the printed tables only for the notes' own prompt."""
    same = passage.ids == [0, 1, 2, 3]
    printed = PRINTED if same else ()
    return assemble("fluffy-creature", model, passage, STORY, printed, HEADINGS)


HEADINGS = {
    "embed": "2. Embeddings",
    f"{HEAD}.q": "4. Compute Q, K, V",
    f"{HEAD}.scores": "5 to 7. Scores, causal mask, softmax",
    f"{HEAD}.z": "9. Attention times V, the output projection, the residual",
    f"{BLOCK}.mlp.pre": "The feed-forward sublayer, and its residual",
    "logits": "Unembedding and softmax",
}

PRINTED = (
    Printed("4. K", [[1.5, -0.5], [1.25, 0.75], [1.5, 0.0], [1.5, -1.0]], f"{HEAD}.k"),
    Printed("4. V", [[3.0, 1.0], [2.5, 2.0], [3.0, 1.5], [3.0, 0.5]], f"{HEAD}.v"),
    Printed("5. Scores, not divided by sqrt 2", [
        [0.5, 0, 0, 0], [2.75, 2.88, 0, 0], [1.5, 3.0, 2.25, 0], [-0.5, 2.25, 0.75, -1.25],
    ], f"{HEAD}.scores", note="forest on blue is printed 2.25: 0.5 * 1.25 + 2.5 * 0.75 = 2.5; "
            "forest on itself -1.25: 0.5 * 1.5 - 2.5 = -1.75."),
    Printed("7. Attention weights", [
        [1.00, 0, 0, 0], [0.47, 0.53, 0, 0], [0.13, 0.59, 0.28, 0], [0.05, 0.76, 0.17, 0.02],
    ], f"{HEAD}.pattern", note="The last row inherits the two slips."),
    Printed("9. Attention times V", [[3.00, 1.00], [2.74, 1.53], [2.71, 1.73], [2.62, 1.84]],
            f"{HEAD}.z"),
    Printed("What attention writes", [[2.5, 1.5], [2.35, 1.93], [2.34, 2.10], [2.28, 2.18]],
            f"{BLOCK}.attn_out"),
    Printed("After attention", [[3.5, 3.5], [4.35, 2.43], [3.84, 3.60], [2.78, 4.68]],
            f"{BLOCK}.resid_mid"),
    Printed("What the MLP writes", [[7.0, 7.0], [7.36, 6.20], [6.8, 6.5], [7.2, 6.9]],
            f"{BLOCK}.mlp_out", note="creature and forest were summarised, not computed."),
    Printed("After the block", [[10.5, 10.5], [11.71, 8.63], [10.64, 10.10], [9.98, 11.58]],
            f"{BLOCK}.resid_post"),
    Printed("Logits, as multiplied out", [
        [31.5, 26.25, 31.5, 31.5], [28.97, 27.755, 30.51, 27.28],
        [30.84, 26.33, 31.11, 30.595], [33.14, 25.75, 32.34, 33.94],
    ], "logits", note="From the printed vectors. The notes' tables give other figures for the same "
            "cells: blue 28.64 and 28.49, creature 26.80 and 31.16, forest 24.65, 31.74 and 33.21."),
    Printed("Probabilities, from the notes' code", [
        [0.3328, 0.0017, 0.3328, 0.3328], [0.1621, 0.0471, 0.7560, 0.0347],
        [0.3242, 0.0036, 0.4247, 0.2475], [0.2721, 0.0002, 0.1222, 0.6055],
    ], "probs", decimals=4, note="They follow from the rounded vectors. By hand the notes give "
            "0.14, 0.10, 0.67, 0.09 for blue."),
)  # fmt: skip
