"""Qwen3-Next and Qwen3.5 (Qwen Team 2025, 2026): most layers have linear attention by the gated
delta rule (Yang et al. 2024, "Gated Delta Networks"), the others attention whose output is gated.

Linear attention has a memory: at each token it fades, and what the token's key reads of it is
replaced, in part, by the token's value. As cells, not the memory itself, a matrix for each token,
but what each token wrote, and how much of it a later one reads: the same sums, over pairs of tokens
(section 3.3), in the order in which attention has them.
"""

from collections.abc import Container
from dataclasses import dataclass
from functools import partial
from math import sqrt

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import (
    ATTENDS,
    EPS,
    MLP,
    REMEMBERS,
    WRITES,
    Turn,
    of_heads,
    run,
    usual,
)
from cellformer.engine.models.architectures.mixtral import MoeSpec, experts
from cellformer.engine.models.architectures.moe_kin import dense, of_experts
from cellformer.engine.models.foreign import (
    GATED,
    Config,
    Piece,
    Pieces,
    head_of,
    linear,
    mapped,
    norm,
    outside,
    written,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

NEXT, DENSE, MOE = "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"
MODEL_TYPES = (NEXT, DENSE, MOE)
LINEAR = "linear_attention"  # a kind of layer in `layer_types`
LENGTH_EPS = 1e-6  # its reference's, of the lengths of queries and keys
UNREAD = ("mtp.*",)  # of a part that guesses several words at once
OF_OTHERS = (  # fields of other programs, which its reference does not read
    *("mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"),
    *("mamba_ssm_dtype", "attn_output_gate"),
)
OWN_DEFAULTS = {  # of the reference's classes, where a config says nothing
    NEXT: {
        "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 2,
        "intermediate_size": 5632, "num_experts": 512, "num_experts_per_tok": 10,
        "linear_num_value_heads": 32,
    },
    DENSE: {
        "num_hidden_layers": 32, "num_attention_heads": 16, "num_key_value_heads": 4,
        "linear_num_value_heads": 32,
    },
    MOE: {
        "num_hidden_layers": 40, "num_attention_heads": 16, "num_key_value_heads": 2,
        "num_experts": 256, "num_experts_per_tok": 8, "linear_num_value_heads": 32,
    },
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class DeltaSpec(MoeSpec):
    """MoeSpec with the sizes of linear attention."""

    n_key_heads: int = 1  # of queries and keys; each serves some heads
    n_value_heads: int = 1
    d_key: int = 1  # of a head's query and key
    d_value: int = 1  # of a head's value
    d_conv: int = 1  # tokens that a convolution sees
    fused: bool = False  # its file holds the maps of a head of keys, and of those it serves, as one

    def __post_init__(self) -> None:
        super().__post_init__()
        for size in ("n_key_heads", "n_value_heads", "d_key", "d_value", "d_conv"):
            if getattr(self, size) < 1:
                raise InputError(f"{size} is {getattr(self, size)}; it must be at least 1")
        if self.n_value_heads % self.n_key_heads:
            raise InputError(
                f"{self.n_value_heads} value heads cannot share {self.n_key_heads} key heads; "
                "linear_num_key_heads must divide linear_num_value_heads"
            )


def attention(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """Attention by scores, with normed queries and keys; a gate for each number of a head's
    output."""
    spec, attn = b.spec, b.at("attn")
    assert turn
    gains = {which: attn.weight(f"{which}_norm", "d_head") for which in "qk"}

    def ready(h: Forward, which: str, y: Block) -> Block:
        eps, gain = spec.norm_eps, gains[which]
        y = parts.rms_norm_above_one(h.at(f"{which}_norm"), y, eps, gain)  # [n_tokens, d_head]
        return parts.rotate(h, f"rot_{which}", y, turn)  # [n_tokens, d_head]

    def opened(h: Forward) -> Block:
        axes = ("d_model", "d_head")
        gate = parts.linear(h, "opens", x, "opens", axes, spec.qkv_bias)  # [n_tokens, d_head]
        return h.block("opening", ops.logistic, gate)  # [n_tokens, d_head]

    of_all = parts.of_all_heads(attn)
    return of_heads(b, x, of_all, Mask(), ready, opened=opened)


def linear_attention(b: Forward, x: Block) -> Block:
    """Attention by the gated delta rule (section 3.1): [n_tokens, d_model]."""
    spec, attn = b.spec_as(DeltaSpec), b.at("attn")
    switch = attn.input("switch", 1.0)
    length = attn.input("sqrt_d_key", sqrt(spec.d_key))
    scale = attn.block("scale", ops.reciprocal, length)  # [1, 1]
    asks: list[Block] = []
    keys: list[Block] = []
    for n in range(spec.n_key_heads):
        qk = attn.at(f"qk{n}")
        unit = of_length_one(qk, "q", x)  # [n_tokens, d_key]
        asks.append(qk.block("q", ops.stretch, unit, scale))  # [n_tokens, d_key]
        keys.append(of_length_one(qk, "k", x))  # [n_tokens, d_key]
    gain = attn.weight("z_norm", "d_value")
    heads = []
    for n in range(spec.n_value_heads):
        h, shared = attn.at(f"h{n}"), n * spec.n_key_heads // spec.n_value_heads
        read = recalled(h, x, asks[shared], keys[shared])  # [n_tokens, d_value]
        z = parts.rms_norm(h.at("z_norm"), read, spec.norm_eps, gain)  # [n_tokens, d_value]
        gate = parts.linear(h, "opens", x, "opens", ("d_model", "d_value"), bias=False)
        opening = h.block("opening", ops.silu, gate)  # [n_tokens, d_value]; not by hidden_act
        on = None
        if not b.readout.by_head:
            on = h.block("on", ops.in_effect, h.input("switch", 1.0), switch)  # [1, 1]
            opening = h.block("opening_on", ops.stretch, opening, on)  # [n_tokens, d_value]
        z = h.block("z", ops.gated, opening, z)  # [n_tokens, d_value]
        heads.append(parts.write_head(h, z, switch, on))
    return parts.write_heads(b, heads, bias=False)


forward = partial(
    run, norm=parts.rms_norm_above_one, attend=attention, memory=linear_attention, write=experts
)


def of_length_one(qk: Forward, which: str, x: Block) -> Block:
    """Queries ("q") or keys ("k") of linear attention, convolved, as long as 1: [n_tokens,
    d_key]."""
    u = convolved(qk, which, x, "d_key")  # [n_tokens, d_key]
    eps = qk.input(f"{which}_eps", LENGTH_EPS)
    length = qk.block(f"{which}_length", ops.length_above, u, eps)  # [n_tokens, 1]
    return qk.block("unit_q" if which == "q" else "k", ops.divide_rows, u, length)  # as u


def convolved(h: Forward, which: str, x: Block, size: str) -> Block:
    """A linear map of the stream, each feature over its own token and those before it, then the
    activation function: [n_tokens, size]."""
    spec, out = h.spec_as(DeltaSpec), "v" if which == "v" else f"long_{which}"
    line = parts.linear(h, f"new_{which}", x, which.upper(), ("d_model", size), bias=False)
    w = h.weight(f"W_conv_{which}", "d_conv", size)  # its last row is of the own token
    conv = h.block(f"conv_{which}", ops.convolution, [line] * spec.d_conv, [w] * spec.d_conv)
    return h.block(out, getattr(ops, spec.activation), conv)


def recalled(h: Forward, x: Block, q: Block, k: Block) -> Block:
    """The values that a head's queries recall from its memory: [n_tokens, d_value]."""
    v = convolved(h, "v", x, "d_value")  # [n_tokens, d_value]
    alone = ("d_model", "")
    asked = parts.linear(h, "to_replace", x, "replaced", alone, bias=False)  # [n_tokens, 1]
    replaced = h.block("replaced", ops.logistic, asked)  # [n_tokens, 1]
    pace = parts.linear(h, "pace_in", x, "pace", alone, bias=True)  # [n_tokens, 1]
    pace = h.block("pace", ops.softplus, pace)  # [n_tokens, 1]
    rate = h.block("rate", ops.minus_exp, h.weight("A_log", ""))  # [1, 1]
    fades = h.block("fades", ops.stretch, pace, rate)  # [n_tokens, 1]
    kept = h.block("faded", ops.sum_so_far, fades)  # [n_tokens, 1]
    earlier = Mask(before=True)
    overlap = h.block("overlap", ops.kept_product, k, k, kept, kept, replaced, mask=earlier)
    new = h.block("offered", ops.times_rows, v, replaced)  # [n_tokens, d_value]
    written = h.block("written", ops.corrected, new, overlap)  # [n_tokens, d_value]
    reads = h.block("reads", ops.kept_product, q, k, kept, kept, mask=Mask())  # [queries, keys]
    return h.block("recalled", ops.mix, reads, written)  # [n_tokens, d_value]


def read_config(c: Config) -> ModelSpec:
    """The config of Qwen3-Next, and of Qwen3.5's decoders."""
    kind = c.values["model_type"]
    c.assume(max_position_embeddings=32768, hidden_act="silu", **OWN_DEFAULTS[kind])
    c.ignore(*OF_OTHERS, "router_aux_loss_coef")
    c = c.otherwise(rope_parameters=rope.of_text(c.look("rope_parameters")))
    if kind == MOE:  # all its layers have experts
        c = c.otherwise(intermediate_size=c.get("moe_intermediate_size", int, 512))
    spec = usual(c, 256, part="partial_rotary_factor", default_part=0.25)
    n_experts = 0 if kind == DENSE else c.get("num_experts", int)
    plain_mlps = dense(c, n_experts, spec.n_layers) if kind == NEXT else ()
    return DeltaSpec.of(
        spec,
        norm_eps=c.get(EPS, float, 1e-6),
        qk_norm=True,
        layers=layers(c, range(spec.n_layers) if kind == DENSE else plain_mlps, spec.n_layers),
        n_key_heads=c.get("linear_num_key_heads", int, 16),
        n_value_heads=c.get("linear_num_value_heads", int),
        d_key=c.get("linear_key_head_dim", int, 128),
        d_value=c.get("linear_value_head_dim", int, 128),
        d_conv=c.get("linear_conv_kernel_dim", int, 4),
        fused=kind == NEXT,
        **({} if kind == DENSE else sizes_of_experts(c, kind, n_experts)),
    )


def sizes_of_experts(c: Config, kind: str, n_experts: int) -> dict[str, int | bool]:
    """The sizes of a mixture of experts, and whether the chosen ones' shares sum to 1."""
    return {
        "n_experts": n_experts,
        "n_chosen": c.get("num_experts_per_tok", int),
        "d_expert": c.get("moe_intermediate_size", int, 512),
        "d_shared": c.get("shared_expert_intermediate_size", int, 512),
        "shares_of_chosen": kind == MOE or c.get("norm_topk_prob", bool, True),
    }


def layers(c: Config, plain: Container[int], n_layers: int) -> tuple[tuple[str, ...], ...]:
    """The sublayers of each layer, some with plain MLPs. Layers with linear attention are listed
    in `layer_types`, or are all except every n-th."""
    kinds, every = c.windowed(n_layers, LINEAR), c.get("full_attention_interval", int, 4)
    if every < 1:
        raise InputError(f"{c.path}: full_attention_interval is {every}; it must be at least 1")
    linear = kinds or [(n + 1) % every > 0 for n in range(n_layers)]
    return tuple(
        (REMEMBERS if linear[n] else ATTENDS, MLP if n in plain else WRITES)
        for n in range(n_layers)
    )


def pieces(spec: DeltaSpec) -> Pieces:
    """Linear weights are [out, in]."""
    yield from outside(llama.WHOLE)
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        for ours, theirs in llama.BEFORE.items():
            yield from norm(f"{b}.{ours}", f"{f}.{theirs}")
        if REMEMBERS in spec.sublayers(layer):
            yield from of_linear_attention(f"{b}.attn", f"{f}.linear_attn", spec)
        else:
            yield from of_attention(f"{b}.attn", f"{f}.self_attn", spec)
        yield from linear(f"{b}.mlp", f"{f}.mlp", GATED)
        yield from of_experts(f"{b}.mlp", f"{f}.mlp", spec)


def of_attention(ours: str, theirs: str, spec: DeltaSpec) -> Pieces:
    """q_proj holds each head's query, then its gate."""
    for n in range(spec.n_heads):
        for k, which in enumerate(("Q", "opens")):
            yield from mapped(f"{ours}.h{n}", which, f"{theirs}.q_proj", 2 * n + k, spec.d_head)
    for n in range(spec.kv_heads):
        for which in "KV":
            name = f"{theirs}.{which.lower()}_proj"
            yield from mapped(f"{ours}.kv{n}", which, name, n, spec.d_head)
    yield from written(ours, f"{theirs}.o_proj", spec)
    for which in "qk":
        yield f"{ours}.{which}_norm", Piece(f"{theirs}.{which}_norm.weight")


def of_linear_attention(ours: str, theirs: str, spec: DeltaSpec) -> Pieces:
    """One convolution has the features of all queries, then keys, then values."""
    d_key, d_value = spec.d_key, spec.d_value
    all_keys = spec.n_key_heads * d_key
    conv, n = f"{theirs}.conv1d", 2 * all_keys + spec.n_value_heads * d_value
    for head in range(spec.n_key_heads):
        for k, which in enumerate("qk"):
            place = (head, d_key, k * all_keys)
            yield from mapped(f"{ours}.qk{head}", f"conv_{which}", conv, *place, stack=n)
    for head in range(spec.n_value_heads):
        h = f"{ours}.h{head}"
        yield from mapped(h, "conv_v", conv, head, d_value, 2 * all_keys, stack=n)
        yield f"{h}.b_pace", head_of(f"{theirs}.dt_bias", head, 1, 0)
        yield f"{h}.A_log", head_of(f"{theirs}.A_log", head, 1, 0)
        yield f"{h}.W_O", head_of(f"{theirs}.out_proj.weight", head, d_value, 1, turn=True)
    yield f"{ours}.z_norm", Piece(f"{theirs}.norm.weight")
    # after `dt_bias`, since the first place of a weight is where it is saved
    yield from by_head_of_keys(ours, theirs, spec) if spec.fused else by_kind(ours, theirs, spec)


def by_head_of_keys(ours: str, theirs: str, spec: DeltaSpec) -> Pieces:
    """Qwen3-Next's linear maps: two tensors hold the weights of a head of keys and of its heads
    of values, one such group after another."""
    d_key, d_value, group = spec.d_key, spec.d_value, spec.n_value_heads // spec.n_key_heads
    large, small = f"{theirs}.in_proj_qkvz", f"{theirs}.in_proj_ba"
    for key in range(spec.n_key_heads):
        start = key * 2 * (d_key + group * d_value)
        for which in "QK":
            yield from mapped(f"{ours}.qk{key}", which, large, 0, d_key, start)
            start += d_key
        for k, (which, alone) in enumerate((("V", "replaced"), ("opens", "pace"))):
            for n in range(group):
                h = f"{ours}.h{key * group + n}"
                yield from mapped(h, which, large, 0, d_value, start)
                yield from mapped(h, alone, small, (2 * key + k) * group + n, 1)
                start += d_value


def by_kind(ours: str, theirs: str, spec: DeltaSpec) -> Pieces:
    """Qwen3.5's linear maps: a tensor for each kind; queries, keys and values are in one."""
    d_key, d_value = spec.d_key, spec.d_value
    all_keys, joined = spec.n_key_heads * d_key, f"{theirs}.in_proj_qkv"
    for n in range(spec.n_key_heads):
        for k, which in enumerate("QK"):
            yield from mapped(f"{ours}.qk{n}", which, joined, n, d_key, k * all_keys)
    for n in range(spec.n_value_heads):
        h = f"{ours}.h{n}"
        yield from mapped(h, "V", joined, n, d_value, 2 * all_keys)
        for which, name, size in (("opens", "z", d_value), ("replaced", "b", 1), ("pace", "a", 1)):
            yield from mapped(h, which, f"{theirs}.in_proj_{name}", n, size)
