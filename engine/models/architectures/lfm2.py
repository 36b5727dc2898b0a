"""LFM2 (Liquid AI 2025, section 2.1): Llama's parts, with a short convolution in place of attention
in most layers.

It sees a few tokens, each feature by itself. One gate says what of a token enters it, another what
of its result leaves. LFM2-MoE has GLM-4.5's experts after the first layers, without groups.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.glm4_moe import GroupedSpec, experts, grouped
from cellformer.engine.models.architectures.llama import ATTENDS, CONVOLVES, MLP, WRITES, run, usual
from cellformer.engine.models.foreign import (
    OLDER,
    Config,
    Piece,
    Pieces,
    apart,
    grouped_heads,
    layout,
    linear,
    mapped,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("lfm2", "lfm2_moe")
EPS = "norm_eps"  # the config's name for what keeps its norms' divisors above zero
NEW = {"block_auto_adjust_ff_dim": False, "full_attn_idxs": [0]}
NOT_NEW = ("lfm2_moe",)  # its config has no full_attn_idxs
CONVOLVED = "conv"  # a kind of layer in `layer_types`
IGNORED = (  # by the reference: of training, and sizes that stand elsewhere, too
    *("block_mlp_init_scale", "block_out_init_scale", "block_use_xavier_init"),
    *("conv_use_xavier_init", "block_use_swiglu", "use_pos_enc"),
    *("block_dim", "block_norm_eps", "conv_dim", "conv_dim_out", "num_heads"),
)


@dataclass(frozen=True, repr=False)
class Lfm2Spec(GroupedSpec):
    """GroupedSpec with LFM2's own fields."""

    d_conv: int = 0  # tokens that it sees
    conv_bias: bool = False  # of it, and of the linear maps around it


def convolution(b: Forward, y: Block) -> Block:
    """The output of a short convolution: [n_tokens, d_model]."""
    spec, c, square = b.spec_as(Lfm2Spec), b.at("conv"), ("d_model", "d_model")
    enters = parts.linear(c, "enters", y, "enters", square, spec.conv_bias)  # [n_tokens, d_model]
    leaves = parts.linear(c, "leaves", y, "leaves", square, spec.conv_bias)  # [n_tokens, d_model]
    x = parts.linear(c, "x", y, "x", square, spec.conv_bias)  # [n_tokens, d_model]
    u = c.block("u", ops.gated, enters, x)  # [n_tokens, d_model]
    w = c.weight("W_conv", "d_conv", "d_model")  # its last row is of the own token
    bias = c.weight("b_conv", "d_model") if spec.conv_bias else None
    z = c.block("z", ops.convolution, [u] * spec.d_conv, [w] * spec.d_conv, bias)
    gated = c.block("gated", ops.gated, leaves, z)  # [n_tokens, d_model]
    b_out = c.weight("b_out", "d_model") if spec.conv_bias else None
    on = c.input("switch", 1.0)
    off, W_out = parts.stand_in(c, on), c.weight("W_out", *square)
    return b.block("conv_out", ops.switched_linear, gated, W_out, on, off, b_out)


forward = partial(run, convolution=convolution, write=experts)


def read_config(c: Config) -> ModelSpec:
    c.rename(block_ff_dim="intermediate_size", tie_embedding="tie_word_embeddings")
    c.assume(num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8)
    c.assume(max_position_embeddings=128_000, intermediate_size=12288, tie_word_embeddings=True)
    c.ignore(*IGNORED)
    if mixture := c.values["model_type"] == "lfm2_moe":
        c.assume(num_experts=32, num_experts_per_tok=4)
    spec = usual(c, theta=1e6, bias="", eps=EPS)
    n_dense = c.get("num_dense_layers", int, 2) if mixture else spec.n_layers
    d_conv = c.get("conv_L_cache", int, 3)
    if d_conv < 1:
        raise InputError(
            f"{c.path}: conv_L_cache is {d_conv}; a convolution must see at least one token"
        )
    return Lfm2Spec.of(
        spec,
        d_mlp=spec.d_mlp if mixture else adjusted(c, spec.d_mlp),
        activation="silu",
        qk_norm=True,
        layers=layers(c, spec.n_layers, n_dense),
        d_conv=d_conv,
        conv_bias=c.get("conv_bias", bool, False),
        **(mixed(c) if mixture else {}),
    )


def mixed(c: Config) -> dict[str, Any]:
    """The fields of LFM2-MoE's experts: GLM-4.5's, in one group."""
    return grouped(c.otherwise(n_routed_experts=c.get("num_experts", int))) | {
        "d_expert": c.get("moe_intermediate_size", int, 1792),
        "choice_bias": c.get("use_expert_bias", bool, True),
        "total_eps": 1e-6,
    }


def adjusted(c: Config, d_mlp: int) -> int:
    """The size of the MLP's hidden layer: two thirds of the config's number, times a factor, in
    multiples of a number; or just the config's number."""
    by: float = c.get("block_ffn_dim_multiplier", float, 1.0)
    of: int = c.get("block_multiple_of", int, 256)
    if not c.get("block_auto_adjust_ff_dim", bool, True):
        return d_mlp
    return -(-int(by * int(2 * d_mlp / 3)) // of) * of


def layers(c: Config, n_layers: int, n_dense: int) -> tuple[tuple[str, ...], ...]:
    """The sublayers of each layer. Layers with a convolution are listed in `layer_types`, or are
    all layers without attention."""
    kinds, attending = c.windowed(n_layers, CONVOLVED), c.listed("full_attn_idxs", int)
    convolves = kinds or [bool(attending) and n not in attending for n in range(n_layers)]
    mixers = [CONVOLVES if each else ATTENDS for each in convolves]
    return tuple((mixer, MLP if n < n_dense else WRITES) for n, mixer in enumerate(mixers))


def pieces(spec: Lfm2Spec) -> Pieces:
    """Linear weights are [out, in]; one tensor holds both gates and the input of the
    convolution."""
    yield from layout(
        llama.WHOLE | {"ln_final": "model.embedding_norm"},
        "model.layers.{}",
        {"ln1": "operator_norm", "ln2": "ffn_norm"},
        partial(grouped_heads, out="out_proj"),
        "self_attn",
        {which: f"feed_forward.{name}" for which, name in OLDER},
    )(spec)
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        for which in "qk":
            yield f"{b}.attn.{which}_norm", Piece(f"{f}.self_attn.{which}_layernorm.weight")
        for n, which in enumerate(("enters", "leaves", "x")):
            yield from mapped(f"{b}.conv", which, f"{f}.conv.in_proj", n, spec.d_model)
        yield from mapped(
            f"{b}.conv", "conv", f"{f}.conv.conv", 0, spec.d_model, stack=spec.d_model
        )
        yield from linear(f"{b}.conv", f"{f}.conv", (("out", "out_proj"),))
        yield from apart(f"{b}.mlp", f"{f}.feed_forward", spec.n_experts, OLDER)
        yield f"{b}.mlp.router.b_choice", Piece(f"{f}.feed_forward.expert_bias")
