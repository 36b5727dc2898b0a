"""Phi-3 (Microsoft 2024): Llama's forward pass with one tensor for queries, keys and values and one
for gate and input; sliding windows in every layer, if any; optionally partial rotary positions."""

from engine.models import rope
from engine.models.architectures.llama import EPS, LlamaSpec, forward
from engine.models.foreign import Config, Piece, Pieces, head_of
from engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("phi3",)
NEW = {"hidden_act": "silu"}


def read_config(c: Config) -> ModelSpec:
    """Phi-3's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=4096, hidden_act="silu")
    n_layers, n_heads = c.get("num_hidden_layers", int), c.get("num_attention_heads", int)
    d_head = c.get("head_dim", int, 0) or c.divide("hidden_size", "num_attention_heads")
    rotary = rope.read(c, d_head, part="partial_rotary_factor", default_original=4096)
    window = c.optional("sliding_window", int, None)
    return LlamaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=rotary.n_ctx,
        n_layers=n_layers,
        n_heads=n_heads,
        n_kv_heads=c.optional("num_key_value_heads", int, None) or n_heads,
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        norm="rms",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, False),
        windows=() if window is None else (window,) * n_layers,
        d_rotary=rotary.d_rotary,
        rope_theta=rotary.theta,
        rope_frequencies=rotary.frequencies,
        rope_factor=rotary.factor,
    )


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
        for n, which in enumerate(("gate", "in")):
            both = f"{f}.mlp.gate_up_proj.weight"
            yield f"{b}.mlp.W_{which}", head_of(both, n, spec.d_mlp, 0, turn=True)
        yield f"{b}.mlp.W_out", Piece(f"{f}.mlp.down_proj.weight", transposed=True)
