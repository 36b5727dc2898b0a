"""GLM-4 (Team GLM 2024, section 2): Llama's pass, where neighbouring features turn, half of each
head's; one tensor for gate and input. Its successor of 2025 (`glm4`) also has a norm after each
sublayer."""

from dataclasses import replace

from cellformer.engine.models.architectures.llama import BEFORE, EPS, around_mlp, forward, usual
from cellformer.engine.models.architectures.phi3 import joined_mlp
from cellformer.engine.models.foreign import Config, Pieces
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("glm", "glm4")
NEW = {"hidden_act": "silu"}
AFTER = {"ln1_post": "post_self_attn_layernorm", "ln2_post": "post_mlp_layernorm"}


def read_config(c: Config) -> ModelSpec:
    """The configs of both generations."""
    c.assume(num_hidden_layers=40, max_position_embeddings=131072)
    return replace(
        usual(c, d_head=128, part="partial_rotary_factor", default_part=0.5),
        norm_eps=c.get(EPS, float, 1.5625e-7),
        qkv_bias=c.get("attention_bias", bool, True),
        out_bias=False,
        rope_neighbours=True,
        norms="both" if c.values["model_type"] == "glm4" else "before",
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with the MLP's gate and input in one tensor."""
    yield from around_mlp(spec, BEFORE | AFTER)
    for layer in range(spec.n_layers):
        yield from joined_mlp(f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp", spec)
