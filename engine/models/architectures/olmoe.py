"""OLMoE (Muennighoff et al. 2024, section 2): a mixture of experts in every layer, with OLMo 2's
norms of queries and keys, and Llama's before each sublayer."""

from functools import partial

from cellformer.engine.models.architectures import qwen_moe
from cellformer.engine.models.architectures.llama import EPS, run, usual
from cellformer.engine.models.architectures.mixtral import MoeSpec, experts
from cellformer.engine.models.architectures.olmo2 import attention, gains_of_all
from cellformer.engine.models.foreign import Config, Pieces
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("olmoe",)
NEW = {"hidden_act": "silu", "num_experts": 4, "num_experts_per_tok": 2}

forward = partial(run, attend=attention, write=experts)


def read_config(c: Config) -> ModelSpec:
    """OLMoE's config."""
    c.assume(num_hidden_layers=16, max_position_embeddings=4096)
    c.ignore("router_aux_loss_coef")  # of training
    c.refuse("clip_qkv", None, "queries, keys and values are not cut off here")
    spec = usual(c)
    return MoeSpec.of(
        spec,
        n_experts=c.get("num_experts", int, c.get("num_local_experts", int, 64)),
        n_chosen=c.get("num_experts_per_tok", int, 8),
        d_expert=spec.d_mlp,
        shares_of_chosen=c.get("norm_topk_prob", bool, False),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Qwen's, with OLMo 2's norms of queries and keys."""
    yield from gains_of_all(spec)
    yield from qwen_moe.pieces(spec)
