"""Mamba-2 (Dao & Gu 2024, "Transformers are SSMs"): Mamba's states in heads. All of a head's states
fade alike, what is added and what is read is shared by a group of heads, and a gated norm of the
group's channels comes before the map back into the stream (section 7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures import mamba
from cellformer.engine.models.architectures.mamba import MambaSpec
from cellformer.engine.models.foreign import Config, Piece, Pieces, head_of, mapped
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("mamba2",)
EPS = "layer_norm_epsilon"
INFINITY = {"__float__": "Infinity"}  # as transformers writes it in JSON


@dataclass(frozen=True, repr=False)
class Mamba2Spec(MambaSpec):
    """MambaSpec with heads of `d_head` channels each, in groups of equal size."""

    n_state_heads: int = 0
    n_groups: int = 1
    least_step: float = 0.0
    most_step: float | None = None  # None: any


def forward(g: Forward, ids: Sequence[int]) -> None:
    mamba.run(g, ids, mixer)


def mixer(b: Forward, y: Block) -> Block:
    """The output of a block: [n_tokens, d_model]."""
    spec, m = b.spec_as(Mamba2Spec), b.at("ssm")
    limits = None
    if spec.least_step > 0 or spec.most_step is not None:
        most = None if spec.most_step is None else m.input("most_step", spec.most_step)
        limits = m.input("least_step", spec.least_step), most
    size = spec.n_state_heads // spec.n_groups
    zs, weights = [], []
    for n in range(spec.n_groups):
        group = m.at(f"g{n}")
        B, C = (of_group(group, which, y) for which in "BC")  # each [n_tokens, d_state]
        heads = [m.at(f"h{k}") for k in range(n * size, (n + 1) * size)]
        gated = [head(h, y, B, C, limits) for h in heads]  # each [n_tokens, d_head]
        zs += parts.norm_together(group.at("norm"), heads, gated, "norm", "norm.w")
        weights += [h.weight("W_out", "d_head", "d_model") for h in heads]
    b_out = m.weight("b_out", "d_model") if spec.bias else None
    return b.block("ssm_out", ops.sum_of_heads, zs, weights, b_out)  # [n_tokens, d_model]


def of_group(group: Forward, which: str, y: Block) -> Block:
    """The weight with which a group's heads write (B), or read (C), each number of a state:
    [n_tokens, d_state]."""
    axes, bias = ("d_model", "d_state"), group.spec.bias
    x = parts.linear(group, f"{which}_in", y, which, axes, bias)  # [n_tokens, d_state]
    return mamba.convolved(group.at(f"conv_{which}"), x, out=(group, which))


def head(
    h: Forward, y: Block, B: Block, C: Block, limits: tuple[Block, Block | None] | None
) -> Block:
    """The gated output of a head, from its states: [n_tokens, d_head]."""
    spec = h.spec
    x = parts.linear(h, "x", y, "x", ("d_model", "d_head"), spec.bias)  # [n_tokens, d_head]
    gate = parts.linear(h, "gate", y, "gate", ("d_model", "d_head"), spec.bias)  # as x
    u = mamba.convolved(h, x, out=(h, "u"))  # as x

    raw = parts.linear(h, "step_of_token", y, "step", ("d_model", ""), spec.bias)  # [n_tokens, 1]
    step_in = h.block("step_in", ops.add, [raw], h.weight("b_shift", ""))  # [n_tokens, 1]
    name = "step" if limits is None else "unlimited"
    step = h.block(name, ops.softplus, step_in)  # [n_tokens, 1]
    if limits:
        step = h.block("step", ops.limited, step, *limits)  # [n_tokens, 1]
    rate = h.block("rate", ops.minus_exp, h.weight("A_log", ""))  # [1, 1]
    left = h.block("left", ops.left, step, rate)  # [n_tokens, 1]
    added = h.block("added", ops.times_rows, u, step)  # [n_tokens, d_head]
    states = [  # each [n_tokens, d_head], one for each number that a channel carries
        h.at(f"n{n}").block("state", ops.scan_of_head, left, B, added, nth=n)
        for n in range(spec.d_state)
    ]
    D = h.weight("D", "")
    z = h.block("z", ops.read_states_of_head, states, [C] * spec.d_state, u, D)

    opened = h.block("opened", ops.silu, gate)  # [n_tokens, d_head], whatever hidden_act says
    return h.block("gated", ops.gated, opened, z)  # [n_tokens, d_head]


def read_config(c: Config) -> ModelSpec:
    c.assume(vocab_size=32768, hidden_size=4096, state_size=128, num_hidden_layers=64)
    c.assume(tie_word_embeddings=False)
    # How its reference computes, and what it does not read.
    c.ignore("chunk_size", "time_step_rank", "intermediate_size")
    spec = mamba.read_config(c.otherwise(intermediate_size=None))
    low, high = limits_of_step(c)
    heads, groups = c.get("num_heads", int, 128), c.get("n_groups", int, 8)
    d_head = c.get("head_dim", int, 64)
    if heads * d_head != spec.d_inner:
        raise InputError(
            f"{c.path}: num_heads = {heads} times head_dim = {d_head} must equal expand times "
            f"hidden_size = {spec.d_inner}"
        )
    if groups < 1 or heads % groups:
        raise InputError(f"{c.path}: n_groups = {groups} must divide num_heads = {heads}")
    return Mamba2Spec.of(
        spec,
        d_step=1,
        d_head=d_head,
        n_state_heads=heads,
        n_groups=groups,
        least_step=low,
        most_step=high,
    )


def limits_of_step(c: Config) -> tuple[float, float | None]:
    """The least and the most that a step can be. Raises InputError for what is no pair of
    numbers."""
    found = c.get("time_step_limit", list, [0.0, inf])
    numbers = [inf if x == INFINITY else x for x in found]
    if len(found) != 2 or not all(type(x) in (int, float) for x in numbers) or inf == numbers[0]:
        raise InputError(
            f"{c.path}: time_step_limit = {found!r}; give the lowest and the highest number"
        )
    low, high = map(float, numbers)
    return low, None if high == inf else high


def pieces(spec: Mamba2Spec) -> Pieces:
    """Linear weights are [out, in]. `in_proj` holds, one below the other, all heads' gates, their
    inputs, B and C of all groups, and a step for each head; `conv1d` the inputs, B and C."""
    yield from mamba.around(spec)
    inner, d_state, d_head = spec.d_inner, spec.d_state, spec.d_head
    wide = spec.n_groups * d_state
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.ssm", f"backbone.layers.{layer}.mixer"
        for n in range(spec.n_state_heads):
            h = f"{m}.h{n}"
            yield from mapped(h, "gate", f"{f}.in_proj", n, d_head)
            yield from mapped(h, "x", f"{f}.in_proj", n, d_head, inner)
            yield from mapped(h, "conv", f"{f}.conv1d", n, d_head, stack=inner + 2 * wide)
            yield from mapped(h, "step", f"{f}.in_proj", n, 1, 2 * inner + 2 * wide)
            yield f"{h}.b_shift", head_of(f"{f}.dt_bias", n, 1, 0)
            yield f"{h}.A_log", head_of(f"{f}.A_log", n, 1, 0)
            yield f"{h}.D", head_of(f"{f}.D", n, 1, 0)
            yield f"{h}.norm.w", head_of(f"{f}.norm.weight", n, d_head, 0)
            yield f"{h}.W_out", head_of(f"{f}.out_proj.weight", n, d_head, 1, turn=True)
        for n in range(spec.n_groups):
            for which, before in (("B", inner), ("C", inner + wide)):
                group, place = f"{m}.g{n}", (n, d_state, before)
                yield from mapped(group, which, f"{f}.in_proj", n, d_state, inner + before)
                yield from mapped(
                    f"{group}.conv_{which}", "conv", f"{f}.conv1d", *place, inner + 2 * wide
                )
        yield f"{m}.b_out", Piece(f"{f}.out_proj.bias")
