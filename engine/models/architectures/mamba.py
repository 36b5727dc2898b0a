"""Mamba (Gu & Dao 2023, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces"): no
attention and no MLP. In each block a convolution over the last tokens, then a state that every
channel carries from token to token: how fast it fades, what is added and what is read follow from
the token (section 3.2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.foreign import Config, Piece, Pieces, linear, mapped
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import Activation, ModelSpec

MODEL_TYPES = ("mamba", "falcon_mamba")
NEW = {"state_size": 8}
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
N_CTX = 2048  # tokens of its training: it has no table of positions that could end
OF_KERNELS = (  # how its reference computes the same
    *("use_mambapy", "use_falcon_mambapy", "use_associative_scan"),
)
OF_START = (  # how its reference begins with random weights
    *("time_step_scale", "time_step_min", "time_step_max", "time_step_init_scheme"),
    *("time_step_floor", "rescale_prenorm_residual"),
)


@dataclass(frozen=True, repr=False)
class MambaSpec(ModelSpec):
    """ModelSpec with Mamba's sizes; `bias` is the bias of the projections into a block."""

    d_inner: int = 0  # channels
    d_step: int = 0  # the step sizes of all channels come through so few numbers
    d_conv: int = 0  # tokens that a convolution sees
    conv_bias: bool = True
    conv_activation: Activation = "silu"
    written_bias: bool = False  # of the projection out of a block
    mixer_eps: float | None = None  # of norms without gain of B, C and steps; None: no norms


def forward(g: Forward, ids: Sequence[int]) -> None:
    run(g, ids, mixer)


def run(g: Forward, ids: Sequence[int], mix: Callable[[Forward, Block], Block]) -> None:
    """One forward pass of blocks that each add the output of `mix` to the stream, after a norm."""
    spec = g.spec
    W_E, embed = parts.embed(g, ids)  # embed: [n_tokens, d_model]
    stream = [embed]

    for layer in range(spec.n_layers):
        b = g.at(f"blocks.{layer}")
        x = b.block("resid_pre", ops.add, stream)  # [n_tokens, d_model]
        y = parts.rms_norm(b.at("ln1"), x, spec.norm_eps)  # [n_tokens, d_model]
        stream = [b.block("resid_post", ops.add, [x, mix(b, y)])]  # [n_tokens, d_model]

    x = g.block("resid_final", ops.add, stream)  # [n_tokens, d_model]
    x = parts.rms_norm(g.at("ln_final"), x, spec.norm_eps)  # [n_tokens, d_model]
    parts.unembed(g, x, W_E)


def mixer(b: Forward, y: Block) -> Block:
    """The output of a block: [n_tokens, d_model]."""
    spec, m = b.spec_as(MambaSpec), b.at("ssm")
    x = parts.linear(m, "x", y, "x", ("d_model", "d_inner"), spec.bias)  # [n_tokens, d_inner]
    gate = parts.linear(m, "gate", y, "gate", ("d_model", "d_inner"), spec.bias)  # as x
    u = convolved(m, x, out=(m, "u"))  # [n_tokens, d_inner]

    low = short(m, "low", u, "d_step")  # [n_tokens, d_step]
    step = parts.linear(m, "step_in", low, "step", ("d_step", "d_inner"), bias=True)
    step = m.block("step", ops.softplus, step)  # [n_tokens, d_inner]
    B, C = (short(m, which, u, "d_state") for which in "BC")  # each [n_tokens, d_state]
    rate = m.block("rate", ops.minus_exp, m.weight("A_log", "d_state", "d_inner"))
    states = [  # each [n_tokens, d_inner], one for each number that a channel carries
        m.at(f"n{n}").block("state", ops.selective_scan, step, rate, B, u, nth=n)
        for n in range(spec.d_state)
    ]
    D = m.weight("D", "d_inner")
    z = m.block("z", ops.read_states, states, [C] * spec.d_state, u, D)  # [n_tokens, d_inner]

    opened = m.block("opened", ops.silu, gate)  # [n_tokens, d_inner], whatever hidden_act says
    gated = m.block("gated", ops.gated, opened, z)  # [n_tokens, d_inner]
    W_out = m.weight("W_out", "d_inner", "d_model")
    b_out = m.weight("b_out", "d_model") if spec.written_bias else None
    return b.block("ssm_out", ops.linear, gated, W_out, b_out)  # [n_tokens, d_model]


def short(m: Forward, which: str, u: Block, axis: str) -> Block:
    """A linear map of the channels, divided by its root mean square in Falcon Mamba: [n_tokens,
    axis]."""
    eps = m.spec_as(MambaSpec).mixer_eps
    first = which if eps is None else f"{which}_in"
    x = parts.linear(m, first, u, which, ("d_inner", axis), bias=False)  # [n_tokens, axis]
    if eps is None:
        return x
    ln = m.at(f"{which}_norm")
    scale = ln.block("scale", ops.root_mean_square, x, ln.input("eps", eps))  # [n_tokens, 1]
    return m.block(which, ops.divide_rows, x, scale)  # [n_tokens, axis]


def convolved(m: Forward, x: Block, out: tuple[Forward, str]) -> Block:
    """Each channel by itself, over its own token and those before it, then the activation."""
    spec = m.spec_as(MambaSpec)
    w = m.weight("W_conv", "d_conv", x.axes[1])  # its last row is of the own token
    b = m.weight("b_conv", x.axes[1]) if spec.conv_bias else None
    conv = m.block("conv", ops.convolution, [x] * spec.d_conv, [w] * spec.d_conv, b)  # as x
    where, name = out
    return where.block(name, getattr(ops, spec.conv_activation), conv)  # as x


def read_config(c: Config) -> MambaSpec:
    c.assume(vocab_size=50280, hidden_size=768, state_size=16, num_hidden_layers=32)
    c.ignore(*OF_KERNELS, *OF_START, "residual_in_fp32", "time_step_rank", "layer_types")
    d_model, kind = c.get("hidden_size", int), c.values.get("model_type")
    rank = c.values.get("time_step_rank", "auto")
    sizes = {
        "expand": c.get("intermediate_size", int, c.get("expand", int, 2) * d_model),
        "time_step_rank": ceil(d_model / 16) if rank == "auto" else c.get("time_step_rank", int),
        "conv_kernel": c.get("conv_kernel", int, 4),
        "state_size": c.get("state_size", int),
    }
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{c.path}: {name} gives {size} numbers, but must give at least 1")
    biased = c.get("use_bias", bool, False)
    return MambaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=d_model,
        n_ctx=N_CTX,
        n_layers=c.get("num_hidden_layers", int),
        d_state=sizes["state_size"],
        conv_activation=c.activation("hidden_act", "silu"),
        norm="rms",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        bias=biased,
        written_bias=biased,
        d_inner=sizes["expand"],
        d_step=sizes["time_step_rank"],
        d_conv=sizes["conv_kernel"],
        conv_bias=c.get("use_conv_bias", bool, True),
        mixer_eps=c.get("mixer_rms_eps", float, 1e-6) if kind == "falcon_mamba" else None,
    )


def around(spec: ModelSpec) -> Pieces:
    """The embeddings, and the norms."""
    yield "W_E", Piece("backbone.embeddings.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield "ln_final.w", Piece("backbone.norm_f.weight")
    for layer in range(spec.n_layers):
        yield f"blocks.{layer}.ln1.w", Piece(f"backbone.layers.{layer}.norm.weight")


def pieces(spec: MambaSpec) -> Pieces:
    """Linear weights are [out, in]; `in_proj` holds x and the gate, `x_proj` the low numbers of the
    step, B and C."""
    yield from around(spec)
    inner, d_state = spec.d_inner, spec.d_state
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.ssm", f"backbone.layers.{layer}.mixer"
        for n, which in enumerate(("x", "gate")):
            yield from mapped(m, which, f"{f}.in_proj", n, inner)
        yield from mapped(m, "low", f"{f}.x_proj", 0, spec.d_step)
        for n, which in enumerate("BC"):
            yield from mapped(m, which, f"{f}.x_proj", n, d_state, spec.d_step)
        yield from mapped(m, "conv", f"{f}.conv1d", 0, inner, stack=inner)
        yield f"{m}.A_log", Piece(f"{f}.A_log", transposed=True)
        yield f"{m}.D", Piece(f"{f}.D")
        yield from linear(m, f, (("step", "dt_proj"), ("out", "out_proj")))
