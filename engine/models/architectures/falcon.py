"""Falcon (Almazrouei et al. 2023, section 4.3): attention and MLP in parallel, grouped keys and
values, rotary positions. Falcon-7B has one norm for both sublayers and one key for all heads;
larger models have two norms and more keys. Falcon-RW has sequential sublayers and ALiBi."""

from collections.abc import Sequence
from functools import partial
from math import sqrt

import ml_dtypes
import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import alibi, parts, rope
from cellformer.engine.models.architectures.llama import BEFORE, LlamaSpec, attention, of_gpt, run
from cellformer.engine.models.foreign import (
    USUAL,
    Config,
    Pieces,
    fused_heads,
    layout,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("falcon",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"activation": "gelu"}


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    places = None if g.spec.position == "rotary" else rounded_places(g, len(ids))
    run(g, ids, parts.layer_norm, partial(attention, places=places))


def rounded_places(g: Forward, n_tokens: int) -> Block:
    """ALiBi's terms, [n_tokens, n_heads]: as `alibi.places`, but rounded to the 8 bits of bfloat16,
    in which Falcon was trained, and divided by the root of d_head as scores are."""
    position = np.arange(n_tokens).astype(ml_dtypes.bfloat16)
    slope = np.array(alibi.slopes(g.spec.n_heads), np.float32).astype(ml_dtypes.bfloat16)
    place = np.outer(position, slope).astype(np.float64) / sqrt(g.spec.d_head)
    return g.at("alibi").input("place", place, ("token", "head"))


def read_config(c: Config) -> ModelSpec:
    """Falcon's config."""
    c.rename(n_embed="hidden_size")
    c.assume(vocab_size=65024, hidden_size=4544, num_hidden_layers=32, num_attention_heads=71)
    c.assume(max_position_embeddings=2048, activation="gelu")
    n_heads, new = c.get("num_attention_heads", int), c.get("new_decoder_architecture", bool, False)
    n_kv_heads, one_key = c.get("num_kv_heads", int, n_heads), c.get("multi_query", bool, True)
    parallel, n_norms = c.get("parallel_attn", bool, True), c.get("num_ln_in_parallel_attn", int, 2)
    if new and n_norms not in (1, 2):
        raise InputError(f"{c.path}: num_ln_in_parallel_attn is {n_norms}; it can be 1 or 2")
    bias = c.get("bias", bool, False)
    rotary = rope.read(c, c.divide("hidden_size", "num_attention_heads"))
    return of_gpt(
        c,
        EPS,
        USUAL,
        n_ctx=rotary.n_ctx,
        n_kv_heads=n_kv_heads if new else 1 if one_key else n_heads,
        d_mlp=c.get("ffn_hidden_size", int, 4 * c.get("hidden_size", int)),
        activation=c.activation("activation"),
        position="none" if c.get("alibi", bool, False) else "rotary",
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        **rotary.fields,
        parallel=new or parallel,
        own_norms=new and n_norms == 2,
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]; one tensor for queries, keys and values, group by group."""
    assert isinstance(spec, LlamaSpec)
    return layout(
        {"W_E": "transformer.word_embeddings", "W_U": "lm_head", "ln_final": "transformer.ln_f"},
        "transformer.h.{}",
        {"ln1": "ln_attn", "ln2": "ln_mlp"} if spec.own_norms else BEFORE,
        fused_heads,
        attn="self_attention",
        mlp={"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"},
    )(spec)
