"""Nemotron (Parmar et al. 2024, section 2.1): Llama's pass with LayerNorm whose gain is 1 + w, an
MLP without a gate, the square of ReLU; half of each head's features turn."""

from collections.abc import Sequence
from dataclasses import replace

from cellformer.engine.models import parts
from cellformer.engine.models.architectures.llama import attention, mlp, pieces, run, usual
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("nemotron",)
EPS = "norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "relu2"}


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    run(g, ids, parts.layer_norm_above_one, attention, mlp)


def read_config(c: Config) -> ModelSpec:
    """Nemotron's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=4096, hidden_act="relu2")
    return replace(
        usual(c, part="partial_rotary_factor", default_part=0.5, eps=EPS),
        norm="layer",
        mlp_bias=c.get("mlp_bias", bool, False),
        gated=False,
    )
