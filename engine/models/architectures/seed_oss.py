"""Seed-OSS (ByteDance 2025): Llama with biases of queries, keys and values."""

from dataclasses import replace

from cellformer.engine.models.architectures.llama import EPS, forward, pieces, usual
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("seed_oss",)
NEW = {"hidden_act": "silu"}


def read_config(c: Config) -> ModelSpec:
    """Seed-OSS's config."""
    c.assume(num_hidden_layers=64, max_position_embeddings=524288)
    return replace(
        usual(c, d_head=128),
        norm_eps=c.get(EPS, float, 1e-6),
        qkv_bias=c.get("attention_bias", bool, True),
        out_bias=c.get("attention_out_bias", bool, False),
        mlp_bias=c.get("mlp_bias", bool, False),
    )
