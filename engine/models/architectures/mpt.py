"""MPT (MosaicML 2023): ALiBi instead of position embeddings, LayerNorm with a gain alone, no
biases; queries, keys and values that stay within a bound, if the config sets one."""

from collections.abc import Sequence
from functools import partial

from cellformer.engine.models import alibi, parts
from cellformer.engine.models.architectures.llama import LlamaSpec, attention, run
from cellformer.engine.models.foreign import Config, Piece, Pieces, head_of, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("mpt",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = dict[str, str]()
NO_MATTER = (  # what its reference does not read
    "expansion_ratio",
    "learned_pos_emb",
    "init_device",
    "embedding_fraction",
    "norm_type",
    "no_bias",
    "verbose",
    "init_config",
)
OF_ATTENTION = {  # what is supported, and why no more
    "attn_type": ("multihead_attention", "every head has its own keys"),
    "prefix_lm": (False, "each token sees those before it"),
    "qk_ln": (False, "its reference has no norm of queries and keys"),
    "alibi": (True, "its reference has no other positions"),
    "alibi_bias_max": (8, "its reference has no other slopes"),
}


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    places = alibi.places(g, len(ids))  # [n_tokens, n_heads]
    run(g, ids, parts.layer_norm_without_bias, partial(attention, places=places))


def read_config(c: Config) -> ModelSpec:
    """MPT's config. `attn_config` has fields of its own."""
    c.rename(hidden_size="d_model", num_attention_heads="n_heads", num_hidden_layers="n_layers")
    c.assume(vocab_size=50368, d_model=2048, n_heads=16, n_layers=24, max_seq_len=2048)
    c.refuse("logit_scale", None, "its reference does not scale logits")
    c.ignore("attn_config", *NO_MATTER)
    inner = Config(c.path, c.get("attn_config", dict, {}))
    for name, (allowed, why) in OF_ATTENTION.items():
        inner.refuse(name, allowed, why)
    scale, d_model = inner.optional("softmax_scale", float, None), c.get("d_model", int)
    return LlamaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=d_model,
        n_ctx=c.get("max_seq_len", int),
        n_layers=c.get("n_layers", int),
        n_heads=c.get("n_heads", int),
        n_kv_heads=c.get("n_heads", int),
        d_head=c.divide("d_model", "n_heads"),
        d_mlp=4 * d_model,
        activation="gelu",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        sqrt_d_head=None if scale is None else 1 / scale,
        bound=inner.optional("clip_qkv", float, None) or None,
        gated=False,
    )


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]; one tensor has all queries, then all keys, then all values."""
    yield "W_E", Piece("transformer.wte.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield from norm("ln_final", "transformer.norm_f")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"transformer.blocks.{layer}"
        yield from norm(f"{b}.ln1", f"{f}.norm_1")
        yield from norm(f"{b}.ln2", f"{f}.norm_2")
        for n in range(spec.n_heads):
            for k, ours in enumerate((f"h{n}.W_Q", f"kv{n}.W_K", f"kv{n}.W_V")):
                place = k * spec.n_heads + n
                all_of = f"{f}.attn.Wqkv.weight"
                yield f"{b}.attn.{ours}", head_of(all_of, place, spec.d_head, 0, turn=True)
            out = head_of(f"{f}.attn.out_proj.weight", n, spec.d_head, 1, turn=True)
            yield f"{b}.attn.h{n}.W_O", out
        yield from linear(f"{b}.mlp", f"{f}.ffn", (("in", "up_proj"), ("out", "down_proj")))
