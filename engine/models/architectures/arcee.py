"""Arcee's AFM (Arcee AI 2025): Llama with an MLP that has no gate, and the square of ReLU."""

from dataclasses import replace

from cellformer.engine.models.architectures.llama import EPS, forward, pieces, usual
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("arcee",)
NEW = {"hidden_act": "relu2"}


def read_config(c: Config) -> ModelSpec:
    """AFM's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=4096, hidden_act="relu2")
    return replace(
        usual(c),
        mlp_bias=c.get("mlp_bias", bool, False),
        gated=False,
    )
