"""The random draws of the program before its first step, and its sizes: from the same generator, in
the same order.

The program is A. Karpathy's microgpt of February 2026. It shuffles 32,033 names, draws every weight,
trains for 1,000 steps, one name each, and writes 20 names. `names.txt` has the first 1,000 names as
it shuffles them: no step sees another one (they are US first names of 2018, from makemore, MIT).
"""

import random
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cellformer.engine import ModelSpec
from cellformer.engine.learning.adam import Settings

LETTERS = "abcdefghijklmnopqrstuvwxyz"
BOS = len(LETTERS)  # the id of what begins and ends a name
WORDS = (*LETTERS, "<BOS>")
PLACES = 16  # block_size: the letters that it sees at once, and the longest name that it writes
STEPS, SEED = 1000, 42
DEVIATION = 0.08  # of the weights that it draws
ADAM = Settings(rate=0.01, beta1=0.85, beta2=0.99, epsilon=1e-8, num_steps=STEPS)
TEMPERATURE, N_NAMES = 0.5, 20
N_SHUFFLED = 32_033
SPEC = ModelSpec(
    d_vocab=len(WORDS), d_model=16, n_ctx=PLACES, n_layers=1, n_heads=4, d_head=4, d_mlp=64,
    activation="relu", position="learned", norm="rms", norm_gain=False, embed_norm=True,
)  # fmt: skip
THEIRS = {  # the program's name of each matrix -> its rows and columns, in the order of drawing
    "wte": (SPEC.d_vocab, SPEC.d_model),
    "wpe": (PLACES, SPEC.d_model),
    "lm_head": (SPEC.d_vocab, SPEC.d_model),
    "attn_wq": (SPEC.d_model, SPEC.d_model),
    "attn_wk": (SPEC.d_model, SPEC.d_model),
    "attn_wv": (SPEC.d_model, SPEC.d_model),
    "attn_wo": (SPEC.d_model, SPEC.d_model),
    "mlp_fc1": (SPEC.d_mlp, SPEC.d_model),
    "mlp_fc2": (SPEC.d_model, SPEC.d_mlp),
}
TOLD = {  # our name -> the program's: how ours is cut out of it
    "W_E": "wte",
    "W_pos": "wpe",
    "W_Q": "four rows of attn_wq, transposed",
    "W_K": "four rows of attn_wk, transposed",
    "W_V": "four rows of attn_wv, transposed",
    "W_O": "four columns of attn_wo, transposed",
    "W_in": "mlp_fc1, transposed",
    "W_out": "mlp_fc2, transposed",
    "W_U": "lm_head, transposed",
}

Weights = dict[str, np.ndarray]


class Drawn(NamedTuple):
    """The draws of the generator: the weights by our names, and the random numbers that follow
    them, as many as its names can take."""

    weights: Weights
    numbers: list[float]


def names() -> list[str]:
    """The names of its steps, one each."""
    return (Path(__file__).parent / "names.txt").read_text(encoding="utf-8").split()


def drawn(seed: int = SEED) -> Drawn:
    """The draws of the program with this seed."""
    rng = random.Random(seed)
    rng.shuffle([0] * N_SHUFFLED)
    found: Weights = {
        name: np.reshape([rng.gauss(0, DEVIATION) for _ in range(rows * columns)], (rows, columns))
        for name, (rows, columns) in THEIRS.items()
    }
    return Drawn(ours(found), [rng.random() for _ in range(N_NAMES * PLACES)])


def ours(w: Weights) -> Weights:
    """The program's matrices, by our names and as we multiply by them."""
    found = {"W_E": w["wte"], "W_pos": w["wpe"]}
    for head in range(SPEC.n_heads):
        own, its = f"blocks.0.attn.h{head}", slice(head * SPEC.d_head, (head + 1) * SPEC.d_head)
        found |= {f"{own}.W_{which.upper()}": w[f"attn_w{which}"][its].T for which in "qkv"}
        found[f"{own}.W_O"] = w["attn_wo"][:, its].T
    found |= {"blocks.0.mlp.W_in": w["mlp_fc1"].T, "blocks.0.mlp.W_out": w["mlp_fc2"].T}
    return found | {"W_U": w["lm_head"].T}
