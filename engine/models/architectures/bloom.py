"""BLOOM (BigScience Workshop 2022, section 3.2.2): ALiBi instead of position embeddings, and a norm
of the embedding."""

from collections.abc import Sequence
from functools import partial

from cellformer.engine.models import alibi, parts
from cellformer.engine.models.architectures.llama import BEFORE, attention, of_gpt, run
from cellformer.engine.models.foreign import (
    Config,
    fused_heads,
    layout,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("bloom",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
WORDS = ("hidden_size", "n_head", "n_layer")
NEW = dict[str, str]()
OF_OTHER_PROGRAMS = (  # in published configs, and read by what BLOOM was trained with
    "attention_softmax_in_fp32",
    "bias_dropout_fusion",
    "masked_softmax_fusion",
    "n_inner",
    "offset_alibi",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "unk_token_id",
)


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    places = alibi.places(g, len(ids))  # [n_tokens, n_heads]
    run(g, ids, parts.layer_norm, partial(attention, places=places))


def read_config(c: Config) -> ModelSpec:
    """BLOOM's config. It has no maximum position: `seq_length` is the length of training."""
    c.rename(num_hidden_layers="n_layer", num_attention_heads="n_head", n_embed="hidden_size")
    c.assume(vocab_size=250880, hidden_size=64, n_layer=2, n_head=8, seq_length=2048)
    if c.get("pretraining_tp", int, 1) > 1:
        c.refuse("slow_but_exact", False, "its sums leave biases out; set it to false")
    c.ignore("slow_but_exact")
    c.ignore(*OF_OTHER_PROGRAMS)
    return of_gpt(
        c,
        EPS,
        WORDS,
        n_ctx=c.get("seq_length", int),
        d_mlp=4 * c.get("hidden_size", int),
        activation="gelu_tanh",
        embed_norm=True,
        qkv_bias=True,
        adds_to_normed=c.get("apply_residual_connection_post_layernorm", bool, False),
    )


pieces = layout(
    {
        "W_E": "transformer.word_embeddings",
        "W_U": "lm_head",
        "ln_embed": "transformer.word_embeddings_layernorm",
        "ln_final": "transformer.ln_f",
    },
    "transformer.h.{}",
    BEFORE,
    partial(fused_heads, keys="h"),
    attn="self_attention",
    mlp={"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"},
)
