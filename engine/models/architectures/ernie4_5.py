"""ERNIE 4.5 (Baidu 2025, section 2): Llama, where neighbouring features turn; biases everywhere, if
the config has them."""

from dataclasses import replace

from cellformer.engine.models.architectures.llama import EPS, forward, pieces, usual
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("ernie4_5",)
NEW = {"hidden_act": "silu"}


def read_config(c: Config) -> ModelSpec:
    """ERNIE 4.5's config."""
    c.assume(num_hidden_layers=18, max_position_embeddings=131072)
    spec = usual(c, d_head=128, theta=5e5, bias="use_bias")
    return replace(
        spec,
        tied=c.get("tie_word_embeddings", bool, True),
        mlp_bias=spec.qkv_bias,
        rope_neighbours=True,
    )
