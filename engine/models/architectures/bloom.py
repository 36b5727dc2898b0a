"""BLOOM (BigScience Workshop 2022, section 3.2.2): ALiBi instead of position embeddings, and a norm
of the embedding."""

from collections.abc import Sequence
from functools import partial

from cellformer.engine.models import alibi, parts
from cellformer.engine.models.architectures.llama import LlamaSpec, attention, run
from cellformer.engine.models.foreign import Config, Piece, Pieces, fused_heads, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("bloom",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = dict[str, str]()
OF_OTHER_PROGRAMS = (  # in published configs, and read by what BLOOM was trained with
    "attention_softmax_in_fp32",
    "bias_dropout_fusion",
    "masked_softmax_fusion",
    "n_inner",
    "offset_alibi",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "unk_token_id",
)


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    places = alibi.places(g, len(ids))  # [n_tokens, n_heads]
    run(g, ids, parts.layer_norm, partial(attention, places=places))


def read_config(c: Config) -> ModelSpec:
    """BLOOM's config. It has no maximum position: `seq_length` is the length of training."""
    c.rename(num_hidden_layers="n_layer", num_attention_heads="n_head", n_embed="hidden_size")
    c.assume(vocab_size=250880, hidden_size=64, n_layer=2, n_head=8, seq_length=2048)
    if c.get("pretraining_tp", int, 1) > 1:
        c.refuse("slow_but_exact", False, "its sums leave biases out; set it to false")
    c.ignore("slow_but_exact")
    c.ignore(*OF_OTHER_PROGRAMS)
    d_model = c.get("hidden_size", int)
    return LlamaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=d_model,
        n_ctx=c.get("seq_length", int),
        n_layers=c.get("n_layer", int),
        n_heads=c.get("n_head", int),
        d_head=c.divide("hidden_size", "n_head"),
        d_mlp=4 * d_model,
        activation="gelu_tanh",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        embed_norm=True,
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        gated=False,
        adds_to_normed=c.get("apply_residual_connection_post_layernorm", bool, False),
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]; one tensor for queries, keys and values, head by head."""
    yield "W_E", Piece("transformer.word_embeddings.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield from norm("ln_embed", "transformer.word_embeddings_layernorm")
    yield from norm("ln_final", "transformer.ln_f")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"transformer.h.{layer}"
        yield from norm(f"{b}.ln1", f"{f}.input_layernorm")
        yield from norm(f"{b}.ln2", f"{f}.post_attention_layernorm")
        yield from fused_heads(f"{b}.attn", f"{f}.self_attention", spec, keys="h")
        mlp = (("in", "dense_h_to_4h"), ("out", "dense_4h_to_h"))
        yield from linear(f"{b}.mlp", f"{f}.mlp", mlp)
