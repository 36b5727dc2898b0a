"""Apertus (Apertus Project 2025, section 2.1): Llama with norms of queries and keys, and an MLP
without a gate, whose activation function xIELU (Huang & Schlag 2024) has two weights in each
layer."""

from functools import partial
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import run, usual
from cellformer.engine.models.foreign import LLAMA3, Config, Piece, Pieces, linear
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("apertus",)
EPS = "rms_norm_eps"
NEW = {"hidden_act": "xielu"}
CONSTANTS = {"beta": 0.5, "eps": -1e-6}  # of the activation function
UNREAD = tuple(f"*.act_fn.{name}" for name in CONSTANTS)
NORMS = {"ln1": "attention_layernorm", "ln2": "feedforward_layernorm"}  # our name -> theirs
# where the config has no rotary positions
TURNS = {"rope_type": "llama3", "rope_theta": 12e6, "factor": 8.0, **LLAMA3}


def mlp(b: Forward, x: Block) -> Block:
    """The MLP: expand, xIELU, contract: [n_tokens, d_model]."""
    m = b.at("mlp")
    pre = parts.linear(m, "pre", x, "in", ("d_model", "d_mlp"), bias=False)
    rise = m.block("rise", ops.softplus, m.weight("alpha_p", ""))  # [1, 1]
    fall = m.block("fall", ops.softplus, m.weight("alpha_n", ""))  # [1, 1]
    post = m.block("post", ops.xielu, pre, rise, fall)  # [n_tokens, d_mlp]
    return parts.contract(b, post, bias=False)


forward = partial(run, write=mlp)


def read_config(c: Config) -> ModelSpec:
    c.assume(num_hidden_layers=32, max_position_embeddings=65536, hidden_act="xielu")
    c.refuse("hidden_act", "xielu", "it is Apertus' own")
    plain = rope.instead(c, rope.said(c, TURNS)).otherwise(hidden_act="silu")
    return usual(plain, theta=12e6, qk_norm=True, gated=False)


def constants(spec: ModelSpec, dtype: np.dtype[Any]) -> dict[str, np.ndarray]:
    """The tensors of xIELU's constants, without which its reference does not load a model."""
    places = [f"model.layers.{layer}.mlp.act_fn" for layer in range(spec.n_layers)]
    return {f"{f}.{name}": np.array(v, dtype) for f in places for name, v in CONSTANTS.items()}


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield from llama.around_mlp(spec, NORMS)
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp"
        yield from linear(m, f, (("in", "up_proj"), ("out", "down_proj")))
        for name in ("alpha_p", "alpha_n"):
            yield f"{m}.{name}", Piece(f"{f}.act_fn.{name}")
