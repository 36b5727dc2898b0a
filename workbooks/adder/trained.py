"""The adder's model: its shape, the included weights, and how it writes a sum."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from cellformer.engine import Model
from cellformer.engine.learning import training
from cellformer.engine.learning.decoders import NO_SPECIAL, Decoder
from cellformer.engine.models import checkpoint
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.foreign import Config
from cellformer.engine.text.tokenizer import Characters
from cellformer.workbooks.adder import learning, sums
from cellformer.workbooks.adder.sums import FIRST, LENGTH

FOLDER = Path(__file__).parent.parent / "models" / "adder"
ROOM = LENGTH + 3  # positions: sums of eleven digits fit, which it was never trained on
CONFIG = {
    "model_type": "qwen3",
    "vocab_size": len(sums.DIGITS),
    "hidden_size": learning.D_MODEL,
    "num_hidden_layers": 1,
    "num_attention_heads": learning.N_HEADS,
    "num_key_value_heads": 1,
    "head_dim": learning.D_HEAD,
    "intermediate_size": learning.D_MLP,
    "hidden_act": "silu",
    "max_position_embeddings": ROOM,
    "rope_theta": learning.THETA,
    "rms_norm_eps": learning.EPS,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "use_sliding_window": False,
    "sliding_window": None,
    **NO_SPECIAL,
}
BLOCK = "blocks.0"
HEADS = [f"{BLOCK}.attn.h{n}" for n in range(learning.N_HEADS)]
KEYS = f"{BLOCK}.attn.kv0"  # the heads share keys and values


def decoder() -> Decoder:
    """The transformer, without weights."""
    return Decoder(
        llama.forward, llama.read_config(Config(Path("config.json"), dict(CONFIG))), CONFIG
    )


def load() -> Model:
    """The included model."""
    return checkpoint.load(FOLDER)


def model(vector: np.ndarray) -> Model:
    """The model of trained weights, given as one vector. Each weight is the double nearest to its
    decimals, so a cell holds 2.27 and not the nearest float32."""
    rounded = training.trained(decoder(), by_block(vector), Characters(tuple(sums.DIGITS)))
    weights = {name: w.round(learning.DECIMALS) for name, w in rounded.weights.items()}
    return replace(rounded, weights=weights, config={**rounded.config, "dtype": "float64"})


def by_block(vector: np.ndarray) -> dict[str, np.ndarray]:
    """The weights of one vector by the names of the model's blocks."""
    w = learning.parts(vector)
    own = {"W_E": w["W_E"], "ln_final.w": w["ln_final"]}
    own |= {f"{BLOCK}.{norm}.w": w[norm] for norm in ("ln1", "ln2")}
    own |= {f"{BLOCK}.attn.{norm}": w[norm] for norm in ("q_norm", "k_norm")}
    own |= {f"{KEYS}.{name}": w[name] for name in ("W_K", "W_V")}
    own |= {f"{BLOCK}.mlp.{name}": w[name] for name in ("W_gate", "W_in", "W_out")}
    queries, outputs = np.split(w["W_Q"], len(HEADS), 1), np.split(w["W_O"], len(HEADS))
    for head, W_Q, W_O in zip(HEADS, queries, outputs, strict=True):
        own |= {f"{head}.W_Q": W_Q, f"{head}.W_O": W_O}
    return own


def right(model: Model, ids: np.ndarray, at_once: int = 500) -> np.ndarray:
    """Whether a model writes each of the sums [n, LENGTH] rightly: [n].

    One pass over the whole sum tells: if every digit is right after right ones, what it writes by
    itself is the same.
    """
    read = training.reader(Decoder.of(model), model.weights)
    found = [
        read(some[:, :-1])[:, FIRST:].argmax(-1) == some[:, FIRST + 1 :]
        for some in np.split(ids, range(at_once, len(ids), at_once))
    ]
    return np.asarray(np.all(np.concatenate(found), axis=1))
