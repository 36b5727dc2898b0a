"""GPT-NeoX (Black et al. 2022, section 2.1; the Pythia models): attention and MLP in parallel on
the same residual, rotary positions on a part of each head's features."""

from collections.abc import Sequence

from cellformer.engine.models import parts, rope
from cellformer.engine.models.architectures.llama import LlamaSpec, run
from cellformer.engine.models.foreign import Config, Piece, Pieces, fused_heads, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gpt_neox",)
EPS = "layer_norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "gelu"}


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    run(g, ids, parts.layer_norm)


def read_config(c: Config) -> ModelSpec:
    """GPT-NeoX's config."""
    c.assume(num_hidden_layers=44, max_position_embeddings=2048, hidden_act="gelu")
    c.refuse("rope_theta", None, "here it is rotary_emb_base: rename it, or take it out")
    d_head = c.divide("hidden_size", "num_attention_heads")
    bias = c.get("attention_bias", bool, True)
    rotary = rope.read(c, d_head, "rotary_emb_base", "rotary_pct", 0.25)
    return LlamaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=rotary.n_ctx,
        n_layers=c.get("num_hidden_layers", int),
        n_heads=c.get("num_attention_heads", int),
        d_head=d_head,
        d_mlp=c.get("intermediate_size", int),
        activation=c.activation("hidden_act"),
        position="rotary",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, False),
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=True,
        gated=False,
        own_norms=True,
        d_rotary=rotary.d_rotary,
        rope_theta=rotary.theta,
        rope_frequencies=rotary.frequencies,
        rope_factor=rotary.factor,
        parallel=c.get("use_parallel_residual", bool, True),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """GPT-NeoX's layout: one tensor for queries, keys and values, head by head."""
    yield "W_E", Piece("gpt_neox.embed_in.weight")
    yield "W_U", Piece("embed_out.weight", transposed=True)
    yield from norm("ln_final", "gpt_neox.final_layer_norm")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"gpt_neox.layers.{layer}"
        yield from norm(f"{b}.ln1", f"{f}.input_layernorm")
        yield from norm(f"{b}.ln2", f"{f}.post_attention_layernorm")
        yield from fused_heads(f"{b}.attn", f"{f}.attention", spec, keys="h")
        mlp = (("in", "dense_h_to_4h"), ("out", "dense_4h_to_h"))
        yield from linear(f"{b}.mlp", f"{f}.mlp", mlp)
