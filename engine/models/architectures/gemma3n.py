"""Gemma 3n (Google 2025): Gemma 4's layers with their own embeddings, in a residual stream of
several parts (AltUp, Baykal et al. 2023), of which each layer reads one.

A layer predicts all parts from all, computes one of them anew, and moves the others as far as that
one differs from its prediction. Beside attention stands a map of low rank (LAuReL, Menghani et al.
2024). In the first layers only the largest cells of the MLP's gate are not 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import sqrt
from statistics import NormalDist

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures import gemma4
from cellformer.engine.models.architectures.gemma4 import (
    EPS,
    HEAD,
    SHARED,
    KeysAndValues,
    LayeredSpec,
)
from cellformer.engine.models.foreign import WINDOWED, Config, Piece, Pieces, linear, mapped, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS"]
MODEL_TYPES = ("gemma3n_text",)
UNREAD = (*gemma4.UNREAD, "*.altup.correct_output_scale")  # the latter if no gain is used
LEAST = sqrt(1e-5)  # what a part of the stream is divided by


@dataclass(frozen=True, repr=False)
class StreamsSpec(LayeredSpec):
    """LayeredSpec with a stream of several parts."""

    d_streams: int = 1  # how many parts
    active: int = 0  # the one that layers read
    gained: bool = True  # a gain multiplies that part before the layer's own embedding
    d_laurel: int = 1  # rank of the map beside attention
    largest: tuple[float, ...] = ()  # per layer: the share of the gate's cells that are 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.active < self.d_streams or self.d_laurel < 1 or self.d_layer < 1:
            raise InputError(
                f"altup_active_idx = {self.active} must be below altup_num_inputs = "
                f"{self.d_streams}. laurel_rank and hidden_size_per_layer_input must be at least 1"
            )


def forward(g: Forward, ids: Sequence[int]) -> None:
    spec = g.spec_as(StreamsSpec)
    W_E, embed = gemma4.embedded(g, ids)  # embed: [n_tokens, d_model]
    own = gemma4.of_layers(g, embed)  # each [n_tokens, d_layer]
    streams = [embed, *alike(g.at("spread"), [embed] * (spec.d_streams - 1), embed)]
    turns, kept = gemma4.rotations(g, len(ids)), dict[int, KeysAndValues]()
    for layer in range(spec.n_layers):
        b = gemma4.of_layer(g, layer)
        first = b.block("resid_pre", ops.add, [streams[0]])  # [n_tokens, d_model]
        streams = predicted(b, [first, *streams[1:]])  # each [n_tokens, d_model]
        active = streams[spec.active]
        read = parts.rms_norm(b.at("ln1"), active, spec.norm_eps)  # [n_tokens, d_model]
        wrote = gemma4.attention(b, read, turns, layer, kept)  # [n_tokens, d_model]
        wrote = parts.rms_norm(b.at("ln1_post"), wrote, spec.norm_eps)
        both = b.block("resid_both", ops.add, [active, wrote, read, of_low_rank(b, read)])
        x = parts.times(b, "resid_mid", both, "both", 2**-0.5)  # [n_tokens, d_model]
        read = parts.rms_norm(b.at("ln2"), x, spec.norm_eps)  # [n_tokens, d_model]
        cut = partial(largest_alone, share=spec.largest[layer]) if spec.largest[layer] else None
        wrote = parts.mlp(b, read, bias=False, gated=True, cut=cut)  # [n_tokens, d_model]
        wrote = parts.rms_norm(b.at("ln2_post"), wrote, spec.norm_eps)
        x = b.block("resid_computed", ops.add, [x, wrote])  # [n_tokens, d_model]
        streams = corrected(b, streams, x)
        x = streams[spec.active]
        if spec.gained:
            x = b.block("resid_gained", ops.affine, x, b.weight("altup.part_gain", "d_model"))
        wrote = gemma4.of_own(b, x, own[layer])  # [n_tokens, d_model]
        streams = [b.block("resid_post", ops.add, streams[:1]), *streams[1:]]
        for n in range(1, spec.d_streams):
            streams[n] = b.block(f"stream{n}.resid_post", ops.add, [streams[n], wrote])
    first = streams[0]
    all_parts = [first, *alike(g.at("joined"), streams[1:], first)]  # each [n_tokens, d_model]
    x = g.block("resid_sum", ops.add, all_parts)  # [n_tokens, d_model]
    x = parts.times(g, "resid_final", x, "resid_sum", 1 / spec.d_streams)
    x = parts.rms_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E, spec.logit_cap)


def alike(g: Forward, xs: Sequence[Block], like: Block) -> list[Block]:
    """A linear map of each x, as large as `like`: each [n_tokens, d_model]."""
    zero, least, found = g.input("zero", 0.0), g.input("least", LEAST), []
    size = g.block("part_size", ops.root_mean_square, like, zero)  # [n_tokens, 1]
    for n, x in enumerate(xs, 1):
        s = g.at(f"stream{n}")
        line = parts.linear(s, "line", x, "line", ("d_model", "d_model"), bias=False)
        own = s.block("part_size", ops.root_mean_square, line, zero)  # [n_tokens, 1]
        own = s.block("divisor", ops.limited, own, least)  # [n_tokens, 1]
        ratio = s.block("ratio", ops.quotient, size, own)  # [n_tokens, 1]
        found.append(s.block("out", ops.times_rows, line, ratio))  # [n_tokens, d_model]
    return found


def routed(b: Forward, name: str, x: Block) -> Block:
    """The mix of a part of the stream, from -1 to 1: [n_tokens, d_streams]. Both of a layer's have
    the same weights."""
    a, r = b.at("altup"), b.at(f"altup.{name}")
    gain, W = (a.blocks.get(a.prefix + one) for one in ("ln.w", "W_parts"))
    gain = gain or a.weight("ln.w", "d_model")
    W = W or a.weight("W_parts", "d_model", "streams")
    x = parts.rms_norm(r.at("ln"), x, b.spec.norm_eps, gain)  # [n_tokens, d_model]
    x = parts.times(r, "shrunk", x, "shrunk", 1 / b.spec.d_model)  # [n_tokens, d_model]
    return r.block("parts", ops.tanh, r.block("parts_in", ops.linear, x, W))


def predicted(b: Forward, streams: Sequence[Block]) -> list[Block]:
    """Each part of the stream, plus a mix of all: each [n_tokens, d_model]."""
    spec, a = b.spec_as(StreamsSpec), b.at("altup")
    mix, found = routed(b, "before", streams[spec.active]), []
    for n, x in enumerate(streams):
        s, axes = a.at(f"stream{n}"), ("streams", "streams")
        share = parts.linear(s, "part_shares", mix, "part_shares", axes, bias=False)
        shares = [share] * len(streams)  # [n_tokens, d_streams] each
        found.append(s.block("predicted", ops.plus_shares, streams, shares, x))
    return found


def corrected(b: Forward, streams: Sequence[Block], x: Block) -> list[Block]:
    """Each part of the stream, moved as x differs from the active one: each [n_tokens, d_model]."""
    spec, a = b.spec_as(StreamsSpec), b.at("altup")
    mix = routed(b, "after", x)  # [n_tokens, d_streams]
    share = parts.linear(a, "move", mix, "move", ("streams", "streams"), bias=False)
    active = streams[spec.active]
    return [
        a.at(f"stream{n}").block("corrected", ops.moved, one, x, active, share, nth=n)
        for n, one in enumerate(streams)
    ]


def of_low_rank(b: Forward, x: Block) -> Block:
    """The map of low rank beside attention, normed: [n_tokens, d_model]."""
    m = b.at("laurel")
    x = parts.linear(m, "narrow", x, "narrow", ("d_model", "d_laurel"), bias=False)
    x = parts.linear(m, "wide", x, "wide", ("d_laurel", "d_model"), bias=False)
    return parts.rms_norm(m.at("ln"), x, b.spec.norm_eps)


def largest_alone(m: Forward, gate: Block, share: float) -> Block:
    """The gate's cells above a bound, as far as they are above it, and 0 for the others. The bound
    leaves so large a `share` of normal numbers below it: [n_tokens, d_mlp]."""
    c = m.at("gate")
    mean = c.block("mean", ops.mean, gate)  # [n_tokens, 1]
    size = c.block("deviation", ops.deviation, gate, c.input("zero", 0.0))  # [n_tokens, 1]
    far = c.input("deviations", NormalDist().inv_cdf(share))
    return m.block("gate.largest", ops.above, gate, mean, size, far)


def read_config(c: Config) -> ModelSpec:
    c.assume(num_hidden_layers=35, num_attention_heads=8, num_key_value_heads=2)
    c.assume(vocab_size=262_400, hidden_size=2048, intermediate_size=16_384)
    c.assume(max_position_embeddings=32_768)
    c.ignore("altup_coef_clip", "altup_lr_multiplier", "query_pre_attn_scalar")  # of training
    given = c.look("intermediate_size")
    n_layers = c.get("num_hidden_layers", int)
    d_mlps = c.listed("intermediate_size", int) if isinstance(given, list) else [given] * n_layers
    c = c.otherwise(intermediate_size=max(d_mlps, default=0))
    spec, near = gemma4.layered(c, every=5)
    usual = [0.95] * 10 + [0.0] * (n_layers - 10) if n_layers > 10 else [0.0] * n_layers
    largest = c.listed("activation_sparsity_pattern", float) or usual
    if {len(d_mlps), len(largest)} != {n_layers} or not all(0 <= one < 1 for one in largest):
        raise InputError(
            f"{c.path}: intermediate_size and activation_sparsity_pattern must each list "
            f"{n_layers} numbers, and activation_sparsity_pattern only numbers from 0 to below 1"
        )
    return StreamsSpec.of(
        spec,
        local=rope.of_kind(c, spec.d_head, WINDOWED, 1e4, "rope_local_base_freq"),
        windows=gemma4.windows(c, near),
        sources=gemma4.sources_of(c, near, 15),
        d_heads=(c.get(HEAD, int, 256),) * n_layers,
        n_shared=(c.get(SHARED, int),) * n_layers,
        d_mlps=tuple(d_mlps),
        keys_only=(False,) * n_layers,
        logit_cap=c.optional("final_logit_softcapping", float, 30.0),
        d_streams=c.get("altup_num_inputs", int, 4),
        active=c.get("altup_active_idx", int, 0),
        gained=c.get("altup_correct_scale", bool, True),
        d_laurel=c.get("laurel_rank", int, 64),
        largest=tuple(map(float, largest)),
    )


def pieces(spec: StreamsSpec) -> Pieces:
    """Gemma 4's layout, and the parts of the stream."""
    for place, theirs in (("spread", "projections"), ("joined", "unembed_projections")):
        for n in range(1, spec.d_streams):
            name = f"model.altup_{theirs}.{n - 1}.weight"
            yield f"{place}.stream{n}.W_line", Piece(name, transposed=True)
    yield from gemma4.pieces(spec, partial(of_streams, n_streams=spec.d_streams))


def of_streams(b: str, f: str, n_streams: int) -> Pieces:
    """The pieces of a layer's own maps."""
    yield f"{b}.altup.part_gain", Piece(f"{f}.altup.correct_output_scale")
    yield f"{b}.altup.ln.w", Piece(f"{f}.altup.router_norm.weight")
    named = (("parts", "modality_router"), ("move", "correction_coefs"))
    yield from linear(f"{b}.altup", f"{f}.altup", named)
    for n in range(n_streams):
        coefs = f"{f}.altup.prediction_coefs"
        yield from mapped(f"{b}.altup.stream{n}", "part_shares", coefs, n, n_streams)
    named = (("narrow", "linear_left"), ("wide", "linear_right"))
    yield from linear(f"{b}.laurel", f"{f}.laurel", named)
    yield from norm(f"{b}.laurel.ln", f"{f}.laurel.post_laurel_norm")
