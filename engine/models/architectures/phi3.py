"""Phi-3 (Microsoft 2024): Llama's forward pass with one tensor for queries, keys and values and one
for gate and input; sliding windows in every layer, if any; optionally partial rotary positions."""

from functools import partial

from cellformer.engine.models.architectures.llama import (
    BEFORE,
    EPS,
    WHOLE,
    everywhere,
    forward,
    usual,
)
from cellformer.engine.models.foreign import Config, Piece, Pieces, head_of, joined_heads, layout
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("phi3",)
NEW = {"hidden_act": "silu"}


def read_config(c: Config) -> ModelSpec:
    """Phi-3's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=4096)
    part = "partial_rotary_factor"
    return usual(c, bias="", part=part, original=4096, windows=everywhere(c))


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]: all queries, then all keys, then all values; gate, then in."""
    heads = partial(joined_heads, joined="qkv_proj", out="o_proj")
    yield from layout(WHOLE, "model.layers.{}", BEFORE, heads, "self_attn", {})(spec)
    yield from joined_mlps(spec)


def joined_mlps(spec: ModelSpec) -> Pieces:
    """Gated MLPs with one tensor for gate and input."""
    for layer in range(spec.n_layers):
        ours, theirs = f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp"
        for n, which in enumerate(("gate", "in")):
            both = f"{theirs}.gate_up_proj.weight"
            yield f"{ours}.W_{which}", head_of(both, n, spec.d_mlp, 0, turn=True)
        yield f"{ours}.W_out", Piece(f"{theirs}.down_proj.weight", transposed=True)
