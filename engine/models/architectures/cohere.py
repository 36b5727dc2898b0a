"""Command R (Cohere 2024): attention and MLP in parallel on the same LayerNorm, which has a gain
alone; neighbouring features turn, and logits are multiplied by a number. Command R+ also normalizes
each head's queries and keys; Command R7B (2025, section 2) has sliding windows in three layers of
four, and the fourth does not turn."""

from dataclasses import replace
from functools import partial

from cellformer.engine.models import parts
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import (
    alternating,
    attention_normed_by_head,
    run,
    usual,
)
from cellformer.engine.models.foreign import Config, Piece, Pieces
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("cohere", "cohere2")
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "silu", "logit_scale": 1.0}

forward = partial(run, norm=parts.layer_norm_without_bias, attend=attention_normed_by_head)


def read_config(c: Config) -> ModelSpec:
    """The configs of both generations."""
    c.assume(num_hidden_layers=40, max_position_embeddings=8192)
    first = c.values["model_type"] == "cohere"
    spec = replace(
        usual(c, theta=5e5 if first else 1e4, eps=EPS),
        norm="layer",
        tied=c.get("tie_word_embeddings", bool, True),
        parallel=True,
        rope_neighbours=True,
        logit_scale=c.get("logit_scale", float, 0.0625),
    )
    if first:
        return replace(spec, qk_norm=c.get("use_qk_norm", bool, False))
    window = c.optional("sliding_window", int, 4096)
    windows = alternating(c, spec.n_layers, window, every=c.get("sliding_window_pattern", int, 4))
    return replace(spec, windows=windows, still=llama.without_window(windows))


def pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with one norm in each layer; gains of queries and keys are rows of a matrix."""
    yield from llama.pieces(spec, {"ln1": "input_layernorm"})
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}.attn", f"model.layers.{layer}.self_attn"
        for kind, count, name in (("h", spec.n_heads, "q_norm"), ("kv", spec.kv_heads, "k_norm")):
            for n in range(count):
                gain = Piece(f"{f}.{name}.weight", 0, n, n + 1, row=True)
                yield f"{b}.{kind}{n}.{name}.w", gain
