"""StarCoder2 (Lozhkov et al. 2024, section 6.1): LayerNorm, rotary positions, grouped keys and
values, sliding windows in every layer, an MLP without a gate, and biases."""

from dataclasses import replace
from functools import partial

from cellformer.engine.models import parts
from cellformer.engine.models.architectures.llama import around_mlp, run, usual
from cellformer.engine.models.foreign import Config, Pieces, linear
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("starcoder2",)
EPS = "norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"hidden_act": "gelu_pytorch_tanh", "sliding_window": None}

forward = partial(run, norm=parts.layer_norm)


def read_config(c: Config) -> ModelSpec:
    """StarCoder2's config."""
    c.assume(num_hidden_layers=30, max_position_embeddings=4096, num_key_value_heads=2)
    c.assume(hidden_act="gelu_pytorch_tanh", tie_word_embeddings=True, use_bias=True)
    for name, only in (("norm_type", "layer_norm"), ("mlp_type", "default")):  # of its first files
        c.refuse(name, only, f"only {only!r} is known")
    c.ignore("activation_function", "layer_norm_epsilon", "scale_attn_weights")
    c.ignore("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32")
    spec = usual(
        c,
        bias="use_bias",
        eps=EPS,
        norm="layer",
        gated=False,
        mlp_bias=c.get("use_bias", bool, True),
    )
    window = c.optional("sliding_window", int, None)
    return replace(spec, windows=() if window is None else (window,) * spec.n_layers)


def pieces(spec: ModelSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield from around_mlp(spec)
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp"
        yield from linear(b, f, (("in", "c_fc"), ("out", "c_proj")))
