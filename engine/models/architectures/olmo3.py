"""OLMo 3 (OLMo Team 2025, section 3.2): OLMo 2 with sliding windows in three layers of four, which
turn without scaling, whatever extends the others."""

from dataclasses import replace

from cellformer.engine.models import rope
from cellformer.engine.models.architectures.llama import EPS, alternating, usual
from cellformer.engine.models.architectures.olmo2 import forward, pieces
from cellformer.engine.models.foreign import WINDOWED, Config
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("olmo3",)
NEW = {"hidden_act": "silu"}
THETA = 5e5  # the default


def read_config(c: Config) -> ModelSpec:
    """OLMo 3's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=2048)
    spec = usual(c, theta=THETA, by_kind=True)
    windows = alternating(c, spec.n_layers, c.get("sliding_window", int, 4096), every=4)
    local = rope.of_kind(c, spec.d_head, WINDOWED, THETA)
    return replace(spec, norms="after", windows=windows, local=local)
