"""OLMo (Groeneveld et al. 2024, section 2.1): Llama's pass with LayerNorm that has no weights;
queries, keys and values that stay within a bound, if the config sets one."""

from collections.abc import Sequence
from dataclasses import replace

from cellformer.engine.cells.block import Block
from cellformer.engine.models import parts
from cellformer.engine.models.architectures.llama import attention, mlp, pieces, run, usual
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("olmo",)
EPS = ""  # it is 1e-5, whatever the config says
NEW = {"hidden_act": "silu"}


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    run(g, ids, norm, attention, mlp)


def norm(ln: Forward, x: Block, eps: float) -> Block:
    """LayerNorm without weights: as x."""
    return parts.standardize(ln, "out", x, eps)


def read_config(c: Config) -> ModelSpec:
    """OLMo's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=2048)
    bound = c.optional("clip_qkv", float, None)
    return replace(usual(c, eps=EPS), norm="layer", bound=bound)
