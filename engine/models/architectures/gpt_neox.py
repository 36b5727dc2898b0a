"""GPT-NeoX (Black et al. 2022, section 2.1; the Pythia models): attention and MLP in parallel on
the same residual, rotary positions on a part of each head's features."""

from functools import partial

from cellformer.engine.models import parts, rope
from cellformer.engine.models.architectures.llama import BEFORE, of_gpt, run
from cellformer.engine.models.foreign import (
    USUAL,
    Config,
    fused_heads,
    layout,
)
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gpt_neox",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "gelu"}

forward = partial(run, norm=parts.layer_norm)


def read_config(c: Config) -> ModelSpec:
    """GPT-NeoX's config."""
    c.assume(num_hidden_layers=44, max_position_embeddings=2048, hidden_act="gelu")
    c.refuse("rope_theta", None, "here it is rotary_emb_base: rename it, or take it out")
    d_head = c.divide("hidden_size", "num_attention_heads")
    bias = c.get("attention_bias", bool, True)
    rotary = rope.read(c, d_head, "rotary_emb_base", "rotary_pct", 0.25)
    return of_gpt(
        c,
        EPS,
        USUAL,
        tied=False,
        n_ctx=rotary.n_ctx,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        qkv_bias=bias,
        out_bias=bias,
        own_norms=True,
        d_rotary=rotary.d_rotary,
        **rotary.fields,
        parallel=c.get("use_parallel_residual", bool, True),
    )


pieces = layout(
    {"W_E": "gpt_neox.embed_in", "W_U": "embed_out", "ln_final": "gpt_neox.final_layer_norm"},
    "gpt_neox.layers.{}",
    BEFORE,
    partial(fused_heads, keys="h"),
    attn="attention",
    mlp={"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"},
)
