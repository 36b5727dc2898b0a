"""MPT (MosaicML 2023): ALiBi instead of position embeddings, LayerNorm with a gain alone, no
biases; queries, keys and values that stay within a bound, if the config sets one."""

from collections.abc import Sequence
from functools import partial

from cellformer.engine.models import alibi, parts
from cellformer.engine.models.architectures.llama import attention, of_gpt, run
from cellformer.engine.models.foreign import Config, joined_heads, layout
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("mpt",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
WORDS = ("d_model", "n_heads", "n_layers")
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
    scale = inner.optional("softmax_scale", float, None)
    return of_gpt(
        c,
        EPS,
        WORDS,
        n_ctx=c.get("max_seq_len", int),
        n_kv_heads=c.get("n_heads", int),
        d_mlp=4 * c.get("d_model", int),
        activation="gelu",
        out_bias=False,
        mlp_bias=False,
        sqrt_d_head=None if scale is None else 1 / scale,
        bound=inner.optional("clip_qkv", float, None) or None,
    )


pieces = layout(
    {"W_E": "transformer.wte", "W_U": "lm_head", "ln_final": "transformer.norm_f"},
    "transformer.blocks.{}",
    {"ln1": "norm_1", "ln2": "norm_2"},
    partial(joined_heads, joined="Wqkv", out="out_proj"),
    attn="attn",
    mlp={"in": "ffn.up_proj", "out": "ffn.down_proj"},
)
