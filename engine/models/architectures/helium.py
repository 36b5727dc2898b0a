"""Helium (Kyutai 2025): Llama, where neighbouring features turn."""

from dataclasses import replace

from cellformer.engine.models.architectures.llama import EPS, forward, pieces, usual
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("helium",)
NEW = {"hidden_act": "silu"}


def read_config(c: Config) -> ModelSpec:
    """Helium's config."""
    c.assume(num_hidden_layers=24, max_position_embeddings=4096)
    return replace(
        usual(c, d_head=128, theta=1e5),
        norm_eps=c.get(EPS, float, 1e-8),
        out_bias=False,
        mlp_bias=c.get("mlp_bias", bool, False),
        rope_neighbours=True,
    )
