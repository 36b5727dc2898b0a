"""GPT-J (Wang & Komatsuzaki 2021): attention and MLP in parallel on the same norm, as in Phi, in
separate tensors; adjacent features rotate in pairs, and attention has no biases."""

from functools import partial

from cellformer.engine.models.architectures.llama import of_gpt
from cellformer.engine.models.architectures.phi import forward
from cellformer.engine.models.foreign import (
    Config,
    grouped_heads,
    layout,
)
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("gptj",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"activation_function": "gelu_new"}


def read_config(c: Config) -> ModelSpec:
    """GPT-J's config."""
    c.rename(hidden_size="n_embd", num_attention_heads="n_head", num_hidden_layers="n_layer")
    c.rename(max_position_embeddings="n_positions")
    c.assume(vocab_size=50400, n_embd=4096, n_layer=28, n_head=16, n_positions=2048)
    c.assume(activation_function="gelu_new", rotary_dim=64)
    c.ignore("n_ctx", "rotary", "scale_attn_weights")
    return of_gpt(
        c,
        EPS,
        tied=False,
        n_ctx=c.get("n_positions", int),
        n_kv_heads=c.get("n_head", int),
        d_mlp=c.get("n_inner", int, 4 * c.get("n_embd", int)),
        activation=c.activation("activation_function"),
        position="rotary",
        d_rotary=c.get("rotary_dim", int, c.divide("n_embd", "n_head")),
        rope_neighbours=True,
        parallel=True,
        out_bias=False,
        word_bias=True,
    )


pieces = layout(
    {"W_E": "transformer.wte", "W_U": "lm_head", "b_U": "lm_head", "ln_final": "transformer.ln_f"},
    "transformer.h.{}",
    {"ln1": "ln_1"},
    partial(grouped_heads, out="out_proj"),
    attn="attn",
    mlp={"in": "mlp.fc_in", "out": "mlp.fc_out"},
)
