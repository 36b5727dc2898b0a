"""Mamba-2 (Dao & Gu 2024, "Transformers are SSMs"): Mamba's states in heads. All of a head's states
fade alike, what is added and what is read is shared by a group of heads, and a gated norm of the
group's channels comes before the map back into the stream (section 7)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures import mamba
from cellformer.engine.models.architectures.mamba import MambaSpec
from cellformer.engine.models.foreign import Config, Piece, Pieces, head_of, mapped
from cellformer.engine.models.forward import Forward

MODEL_TYPES = ("mamba2",)
EPS = "layer_norm_epsilon"
SCALED = ("gate", "x", "B", "C", "step")
Gating = Literal["before norm", "after norm", "alone"]
INFINITY = {"__float__": "Infinity"}  # as transformers writes it in JSON


@dataclass(frozen=True, repr=False)
class Mamba2Spec(MambaSpec):
    """MambaSpec with heads of `d_channels` channels each, in groups of equal size."""

    n_state_heads: int = 0
    n_state_groups: int = 1
    d_channels: int = 0
    least_step: float = 0.0
    most_step: float | None = None  # None: any
    gating: Gating = "before norm"  # of what heads read; alone: they have no norm
    read_scale: float = 1.0  # Falcon-H1 multiplies the input,
    projected_scales: tuple[float, ...] = ()  # and the linear maps of it, as in `SCALED`


def forward(g: Forward, ids: Sequence[int]) -> None:
    mamba.run(g, ids, mixer)


def mixer(b: Forward, y: Block) -> Block:
    """The output of a block: [n_tokens, d_model]."""
    spec, m = b.spec_as(Mamba2Spec), b.at("ssm")
    limits = None
    if spec.least_step > 0 or spec.most_step is not None:
        most = None if spec.most_step is None else m.input("most_step", spec.most_step)
        limits = m.input("least_step", spec.least_step), most
    y = parts.times(b, "ssm.scaled", y, "ssm.scaled", spec.read_scale)  # [n_tokens, d_model]
    size = spec.n_state_heads // spec.n_state_groups
    zs, weights = [], []
    for n in range(spec.n_state_groups):
        group = m.at(f"g{n}")
        B, C = (of_group(group, which, y) for which in "BC")  # each [n_tokens, d_state]
        heads = [m.at(f"h{k}") for k in range(n * size, (n + 1) * size)]
        read = [head(h, y, B, C, limits) for h in heads]
        found = [z for z, _ in read]  # each [n_tokens, d_channels]
        if spec.gating != "alone":
            found = parts.norm_together(group.at("norm"), heads, found, "norm", "norm.w")
        if spec.gating == "after norm":
            found = [gated(h, g, z) for h, (_, g), z in zip(heads, read, found, strict=True)]
        zs += found
        weights += [h.weight("W_out", "d_channels", "d_model") for h in heads]
    b_out = m.weight("b_out", "d_model") if spec.written_bias else None
    return b.block("ssm_out", ops.sum_of_heads, zs, weights, b_out)  # [n_tokens, d_model]


def of_group(group: Forward, which: str, y: Block) -> Block:
    """The weight with which a group's heads write (B), or read (C), each number of a state:
    [n_tokens, d_state]."""
    x = projected(group, f"{which}_in", y, which, "d_state")  # [n_tokens, d_state]
    return mamba.convolved(group.at(f"conv_{which}"), x, out=(group, which))


def projected(g: Forward, name: str, y: Block, which: str, axis: str) -> Block:
    """A linear map of the stream, times its multiplier: [n_tokens, axis]."""
    spec = g.spec_as(Mamba2Spec)
    by = dict(zip(SCALED, spec.projected_scales, strict=False)).get(which, 1.0)
    first = name if by == 1 else f"unscaled.{name}"
    x = parts.linear(g, first, y, which, ("d_model", axis), spec.bias)  # [n_tokens, axis]
    return parts.times(g, name, x, which, by)


def gated(h: Forward, gate: Block, z: Block) -> Block:
    """The output of a head, z, times its gate: as z."""
    opened = h.block("opened", ops.silu, gate)  # as z, whatever hidden_act says
    return h.block("gated", ops.gated, opened, z)


def head(
    h: Forward, y: Block, B: Block, C: Block, limits: tuple[Block, Block | None] | None
) -> tuple[Block, Block]:
    """The output of a head, from its states, and its gate: each [n_tokens, d_channels]. The output
    is gated already, unless a norm comes first."""
    spec = h.spec_as(Mamba2Spec)
    x = projected(h, "x", y, "x", "d_channels")  # [n_tokens, d_channels]
    gate = projected(h, "gate", y, "gate", "d_channels")  # as x
    u = mamba.convolved(h, x, out=(h, "u"))  # as x

    raw = projected(h, "step_of_token", y, "step", "")  # [n_tokens, 1]
    step_in = h.block("step_in", ops.add, [raw], h.weight("b_shift", ""))  # [n_tokens, 1]
    name = "step" if limits is None else "unlimited"
    step = h.block(name, ops.softplus, step_in)  # [n_tokens, 1]
    if limits:
        step = h.block("step", ops.limited, step, *limits)  # [n_tokens, 1]
    rate = h.block("rate", ops.minus_exp, h.weight("A_log", ""))  # [1, 1]
    left = h.block("left", ops.left, step, rate)  # [n_tokens, 1]
    added = h.block("added", ops.times_rows, u, step)  # [n_tokens, d_channels]
    states = [  # each [n_tokens, d_channels], one for each number that a channel carries
        h.at(f"n{n}").block("state", ops.scan_of_head, left, B, added, nth=n)
        for n in range(spec.d_state)
    ]
    D = h.weight("D", "")
    z = h.block("z", ops.read_states_of_head, states, [C] * spec.d_state, u, D)
    return (z if spec.gating == "after norm" else gated(h, gate, z)), gate


def read_config(c: Config) -> Mamba2Spec:
    c.assume(vocab_size=32768, hidden_size=4096, state_size=128, num_hidden_layers=64)
    c.assume(tie_word_embeddings=False)
    return of_heads(c, {}, None)


def of_heads(c: Config, names: Mapping[str, str], d_inner: int | None) -> Mamba2Spec:
    """The sizes of states in heads. `names` has a config's own names of fields, and `d_inner` is
    the number of all channels; None: `expand` times the stream's."""
    c.ignore("chunk_size", "time_step_rank", "intermediate_size", "time_step_limit")
    own = {ours: c.look(theirs) for ours, theirs in names.items()}
    own |= {"head_dim": None} if own.get("head_dim") == "auto" else {}
    here = c.otherwise(**own, intermediate_size=d_inner)
    if names:  # what this reads by other names, the reference does not read
        here.asked = {*names}
    spec, (low, high) = mamba.read_config(here), limits_of_step(here)
    heads, groups = here.get("num_heads", int, 128), here.get("n_groups", int, 8)
    d_head = here.get("head_dim", int, spec.d_inner // max(heads, 1) if names else 64)
    said = {name: names.get(name, name) for name in ("num_heads", "head_dim", "n_groups")}
    if heads * d_head != spec.d_inner:
        raise InputError(
            f"{c.path}: {said['num_heads']} = {heads} times {said['head_dim']} = {d_head} must "
            f"equal expand times hidden_size = {spec.d_inner}"
        )
    if groups < 1 or heads % groups:
        raise InputError(
            f"{c.path}: {said['n_groups']} = {groups} must divide {said['num_heads']} = {heads}"
        )
    return Mamba2Spec.of(
        spec,
        d_step=1,
        d_channels=d_head,
        n_state_heads=heads,
        n_state_groups=groups,
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
            f"{c.path}: time_step_limit is {found!r}; write two numbers, the lowest step and the "
            "highest step"
        )
    low, high = map(float, numbers)
    return low, None if high == inf else high


def pieces(spec: Mamba2Spec) -> Pieces:
    """Linear weights are [out, in]."""
    yield from mamba.around(spec)
    for layer in range(spec.n_layers):
        yield from of_layer(f"blocks.{layer}.ssm", f"backbone.layers.{layer}.mixer", spec)


def of_layer(m: str, f: str, spec: Mamba2Spec) -> Pieces:
    """The weights of a layer's states. `in_proj` holds, one below the other, all heads' gates,
    their inputs, B and C of all groups, and a step for each head; `conv1d` the inputs, B and C."""
    inner, d_state, d_head = spec.d_inner, spec.d_state, spec.d_channels
    wide = spec.n_state_groups * d_state
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
    for n in range(spec.n_state_groups):
        for which, before in (("B", inner), ("C", inner + wide)):
            group, place = f"{m}.g{n}", (n, d_state, before)
            yield from mapped(group, which, f"{f}.in_proj", n, d_state, inner + before)
            yield from mapped(
                f"{group}.conv_{which}", "conv", f"{f}.conv1d", *place, inner + 2 * wide
            )
    yield f"{m}.b_out", Piece(f"{f}.out_proj.bias")
