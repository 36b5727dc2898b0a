"""Phi-3 (Microsoft 2024): Llama's forward pass with one tensor for queries, keys and values and one
for gate and input; sliding windows in every layer, if any; optionally partial rotary positions."""

from dataclasses import replace

from cellformer.engine.models.architectures.llama import EPS, forward, usual
from cellformer.engine.models.foreign import Config, Piece, Pieces, head_of
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("phi3",)
NEW = {"hidden_act": "silu"}


def read_config(c: Config) -> ModelSpec:
    """Phi-3's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=4096)
    spec = usual(c, bias="", part="partial_rotary_factor", original=4096)
    window = c.optional("sliding_window", int, None)
    return replace(spec, windows=() if window is None else (window,) * spec.n_layers)


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]: all queries, then all keys, then all values; gate, then in."""
    d_head = spec.d_head
    keys = spec.n_heads * d_head  # where they begin
    values = keys + spec.kv_heads * d_head
    yield "W_E", Piece("model.embed_tokens.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield "ln_final.w", Piece("model.norm.weight")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        yield f"{b}.ln1.w", Piece(f"{f}.input_layernorm.weight")
        yield f"{b}.ln2.w", Piece(f"{f}.post_attention_layernorm.weight")
        heads = f"{f}.self_attn.qkv_proj.weight"
        for n in range(spec.n_heads):
            h = f"{b}.attn.h{n}"
            yield f"{h}.W_Q", head_of(heads, n, d_head, 0, turn=True)
            yield f"{h}.W_O", head_of(f"{f}.self_attn.o_proj.weight", n, d_head, 1, turn=True)
        for n in range(spec.kv_heads):
            kv = f"{b}.attn.kv{n}"
            yield f"{kv}.W_K", head_of(heads, n, d_head, 0, keys, turn=True)
            yield f"{kv}.W_V", head_of(heads, n, d_head, 0, values, turn=True)
        yield from joined_mlp(f"{b}.mlp", f"{f}.mlp", spec)


def joined_mlp(ours: str, theirs: str, spec: ModelSpec) -> Pieces:
    """A gated MLP with one tensor for gate and input."""
    for n, which in enumerate(("gate", "in")):
        both = f"{theirs}.gate_up_proj.weight"
        yield f"{ours}.W_{which}", head_of(both, n, spec.d_mlp, 0, turn=True)
    yield f"{ours}.W_out", Piece(f"{theirs}.down_proj.weight", transposed=True)
