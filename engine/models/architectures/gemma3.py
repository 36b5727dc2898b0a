"""Gemma 3 (Gemma Team 2025, section 2): Gemma 2 with norms of queries and keys instead of soft
caps, five sliding-window layers for each full one, and another base of rotary positions within
windows."""

from math import sqrt

from cellformer.engine.models import rope
from cellformer.engine.models.architectures import gemma
from cellformer.engine.models.architectures.gemma import EPS, GemmaSpec, forward
from cellformer.engine.models.foreign import FULL, WINDOWED, Config, Piece, Pieces
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("gemma3_text",)
NEW = {"hidden_activation": "gelu_pytorch_tanh"}


def read_config(c: Config) -> ModelSpec:
    """Gemma 3's config; missing fields have the values of the 2-billion model."""
    c.refuse("use_bidirectional_attention", False, "each token sees those before it")
    c.ignore("hidden_act")  # `hidden_activation` is what counts
    c.ignore("attn_logit_softcapping")  # its reference does not cap scores, whatever is said
    c.assume(max_position_embeddings=131_072)
    d_head = c.get("head_dim", int, 256)
    rotary = rope.of_kind(c, d_head, FULL, 1e6)
    bias = c.get("attention_bias", bool, False)
    near = near_layers(c)
    window = c.get("sliding_window", int, 4096)
    return GemmaSpec(
        d_vocab=c.get("vocab_size", int, 262_208),
        d_model=c.get("hidden_size", int, 2304),
        n_ctx=rotary.n_ctx,
        n_layers=len(near),
        n_heads=c.get("num_attention_heads", int, 8),
        n_kv_heads=c.get("num_key_value_heads", int, 4),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int, 9216),
        activation=c.activation("hidden_activation", "gelu_pytorch_tanh"),
        position="rotary",
        norm="rms",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-6),
        tied=c.get("tie_word_embeddings", bool, True),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm=True,
        windows=tuple(window if is_near else None for is_near in near),
        sqrt_d_head=sqrt(c.get("query_pre_attn_scalar", float, 256.0)),
        rope_theta=rotary.theta,
        rope_frequencies=rotary.frequencies,
        rope_factor=rotary.factor,
        norms="both",
        logit_cap=c.optional("final_logit_softcapping", float, None),
        local=rope.of_kind(c, d_head, WINDOWED, 1e4, "rope_local_base_freq"),
    )


def near_layers(c: Config) -> list[bool]:
    """The sliding-window layers: all but every sixth, or as the config says."""
    n_layers, every = c.get("num_hidden_layers", int, 26), c.get("sliding_window_pattern", int, 6)
    return c.windowed(n_layers) or [(n + 1) % every > 0 for n in range(n_layers)]


def pieces(spec: ModelSpec) -> Pieces:
    """Gemma 2's weights, and the gains of the norms of queries and keys."""
    yield from gemma.pieces(spec)
    for layer in range(spec.n_layers):
        for which in ("q_norm", "k_norm"):
            theirs = f"model.layers.{layer}.self_attn.{which}.weight"
            yield f"blocks.{layer}.attn.{which}", Piece(theirs)
