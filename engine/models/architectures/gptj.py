"""GPT-J (Wang & Komatsuzaki 2021): attention and MLP in parallel on the same norm, as in Phi, in
separate tensors; adjacent features rotate in pairs, and attention has no biases."""

from cellformer.engine.models.architectures.llama import LlamaSpec
from cellformer.engine.models.architectures.phi import forward
from cellformer.engine.models.foreign import Config, Piece, Pieces, grouped_heads, linear, norm
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("gptj",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"activation_function": "gelu_new"}


def read_config(c: Config) -> ModelSpec:
    """GPT-J's config."""
    c.rename(hidden_size="n_embd", num_attention_heads="n_head", num_hidden_layers="n_layer")
    c.rename(max_position_embeddings="n_positions")
    c.assume(vocab_size=50400, n_embd=4096, n_layer=28, n_head=16, n_positions=2048)
    c.assume(activation_function="gelu_new", rotary_dim=64)
    c.ignore("n_ctx", "rotary", "scale_attn_weights")
    d_head = c.divide("n_embd", "n_head")
    return LlamaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("n_embd", int),
        n_ctx=c.get("n_positions", int),
        n_layers=c.get("n_layer", int),
        n_heads=c.get("n_head", int),
        n_kv_heads=c.get("n_head", int),
        d_head=d_head,
        d_mlp=c.get("n_inner", int, 4 * c.get("n_embd", int)),
        activation=c.activation("activation_function"),
        position="rotary",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, False),
        d_rotary=c.get("rotary_dim", int, d_head),
        rope_neighbours=True,
        parallel=True,
        mlp_bias=True,
        word_bias=True,
        gated=False,
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield "W_E", Piece("transformer.wte.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield "b_U", Piece("lm_head.bias")
    yield from norm("ln_final", "transformer.ln_f")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"transformer.h.{layer}"
        yield from norm(f"{b}.ln1", f"{f}.ln_1")
        yield from grouped_heads(f"{b}.attn", f"{f}.attn", spec, out="out_proj")
        yield from linear(f"{b}.mlp", f"{f}.mlp", (("in", "fc_in"), ("out", "fc_out")))
