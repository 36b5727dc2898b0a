"""Gemma (Gemma Team 2024a): Llama's parts, with embeddings times the root of d_model and gains of 1
+ w. Gemma 2 (2024b, section 2) adds norms after each sublayer, soft caps on scores and logits, and
sliding windows in every other layer. Gemma 3 (2025, section 2) has norms of queries and keys
instead of caps, five sliding-window layers for each full one, and another base of rotary positions
within windows. EmbeddingGemma (2025) is a sentence encoder: a Gemma 3 whose tokens see all
others."""

from dataclasses import replace
from functools import partial
from math import sqrt
from typing import TypeVar

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import parts, rope, sentence_modules
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import LlamaSpec, run, usual
from cellformer.engine.models.foreign import WINDOWED, Config, Pieces
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gemma", "gemma2", "gemma3_text")
EPS = "rms_norm_eps"
BOTH_WAYS = "use_bidirectional_attention"
NEW = {"hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh"}
BOTH = {  # norms around each sublayer: our name -> theirs
    "ln1": "input_layernorm",
    "ln1_post": "post_attention_layernorm",
    "ln2": "pre_feedforward_layernorm",
    "ln2_post": "post_feedforward_layernorm",
}
S = TypeVar("S", bound=LlamaSpec)
attention = partial(
    llama.attention, norm=partial(llama.normed_alike, norm=parts.rms_norm_above_one)
)
forward = partial(run, norm=parts.rms_norm_above_one, attend=attention)


def read_config(c: Config) -> ModelSpec:
    """The configs of the three generations."""
    kind = c.values["model_type"]
    if kind != "gemma3_text":
        c.refuse(BOTH_WAYS, False, "each token attends only to earlier tokens and itself")
    if kind == "gemma":  # its first configs say `gelu`, but it was trained with the tanh form
        c.ignore("hidden_activation")
        exact = c.look("hidden_act") in (None, "gelu")
        c = c.otherwise(hidden_act="gelu_new" if exact else c.look("hidden_act"))
        c.assume(num_hidden_layers=28, num_key_value_heads=16, max_position_embeddings=8192)
        return scaled(usual(c, d_head=256, eps_default=1e-6), c)
    c.ignore("hidden_act")  # `hidden_activation` is what counts
    c = c.otherwise(hidden_activation=c.look("hidden_activation") or "gelu_pytorch_tanh")
    third = kind == "gemma3_text"
    c.assume(max_position_embeddings=131_072 if third else 8192)
    if third:
        c.ignore("attn_logit_softcapping")  # its reference does not cap scores, whatever is said
        c.assume(vocab_size=262_208, hidden_size=2304, intermediate_size=9216)
        c.assume(num_attention_heads=8)
    c.assume(num_hidden_layers=26, num_key_value_heads=4)
    theta, act = 1e6 if third else 1e4, "hidden_activation"
    spec = usual(c, 256, theta=theta, by_kind=third, eps_default=1e-6, act=act)
    every = c.get("sliding_window_pattern", int, 6) if third else 2
    window = c.get("sliding_window", int, 4096)
    if third:
        spec = of_sentences(c, spec, window, c.get(BOTH_WAYS, bool, False))
    return replace(
        scaled(spec, c),
        norms="both",
        windows=llama.alternating(c, spec.n_layers, window, every),
        sqrt_d_head=sqrt(c.get("query_pre_attn_scalar", float, 256.0)),
        qk_norm=third,
        score_cap=None if third else c.optional("attn_logit_softcapping", float, 50.0),
        logit_cap=c.optional("final_logit_softcapping", float, None if third else 30.0),
        local=rope.of_kind(c, spec.d_head, WINDOWED, 1e4, "rope_local_base_freq")
        if third
        else None,
    )


def of_sentences(c: Config, spec: S, window: int, both: bool) -> S:
    """The spec of EmbeddingGemma (Google 2025), if the config is of one: tokens may attend to
    `both` sides, and its texts are then no longer than a window. Of other models, the spec as it
    is."""
    if not (both or c.look(sentence_modules.KEY)):
        return spec
    given = sentence_modules.readout(c)
    if given["gives"] != "sentence":
        raise InputError(
            f"{c.path}: {BOTH_WAYS} is supported only for sentence encoders; choose another model"
        )
    n_ctx = min(spec.n_ctx, window // 2 + 1) if both else spec.n_ctx
    return replace(spec, causal=not both, n_ctx=n_ctx, **given)


def scaled(spec: LlamaSpec, c: Config) -> LlamaSpec:
    """A spec whose embeddings are multiplied, and are the unembedding."""
    tied = c.get("tie_word_embeddings", bool, True)
    return replace(spec, embed_scale=sqrt(spec.d_model), tied=tied)


def pieces(spec: LlamaSpec) -> Pieces:
    """Llama's, with norms around each sublayer from the second generation on."""
    yield from llama.pieces(spec, BOTH if spec.norms == "both" else llama.BEFORE)
