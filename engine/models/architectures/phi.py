"""Phi (Li et al. 2023: phi-1, phi-1.5, phi-2): attention and MLP in parallel on the same norm of
the stream, rotary positions on a part of each head's features, biases everywhere."""

from functools import partial

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures.llama import Turn, of_heads, run, usual
from cellformer.engine.models.foreign import (
    Config,
    grouped_heads,
    layout,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("phi",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "gelu_new"}


def attention(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """The sum of what all heads write; the norm of all queries has one gain and bias, and that of
    all keys."""
    attn, given = b.at("attn"), b.spec.qk_norm
    ln = {w: attn.at(f"{w}_norm") for w in "qk"}
    of = {w: [ln[w].weight(leaf, "d_head") for leaf in "wb"] if given else [] for w in "qk"}

    def ready(h: Forward, which: str, x: Block) -> Block:
        if given:
            own = h.at(f"{which}_norm")
            x = parts.standardize(own, "normalized", x, h.spec.norm_eps)
            x = own.block("out", ops.affine, x, *of[which])
        return parts.rotate(h, f"rot_{which}", x, turn) if turn else x  # [n_tokens, d_head]

    return of_heads(b, x, parts.of_all_heads(attn), Mask(), ready)


forward = partial(run, norm=parts.layer_norm, attend=attention)


def read_config(c: Config) -> ModelSpec:
    """Phi's config."""
    c.assume(vocab_size=51200, hidden_size=2048, intermediate_size=8192, hidden_act="gelu_new")
    c.assume(num_hidden_layers=24, num_attention_heads=32, max_position_embeddings=2048)
    return usual(
        c,
        part="partial_rotary_factor",
        default_part=0.5,
        bias="",
        eps=EPS,
        norm="layer",
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        word_bias=True,
        gated=False,
        parallel=True,
        qk_norm=c.get("qk_layernorm", bool, False),
    )


pieces = layout(
    {
        "W_E": "model.embed_tokens",
        "W_U": "lm_head",
        "b_U": "lm_head",
        "ln_final": "model.final_layernorm",
    },
    "model.layers.{}",
    {
        "ln1": "input_layernorm",
        "attn.q_norm": "self_attn.q_layernorm",
        "attn.k_norm": "self_attn.k_layernorm",
    },
    partial(grouped_heads, out="dense"),
    attn="self_attn",
    mlp={"in": "mlp.fc1", "out": "mlp.fc2"},
)
