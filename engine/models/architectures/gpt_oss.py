"""gpt-oss (OpenAI 2025, section 2): Mixtral's pass with a sink in every head, a score that belongs
to no token; a SwiGLU that stays within a limit, biases everywhere, windows in every other layer."""

from dataclasses import dataclass
from functools import partial

from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures.llama import alternating, around_mlp, run, usual
from cellformer.engine.models.architectures.mixtral import MoeSpec, shares
from cellformer.engine.models.foreign import ORIGINAL, Config, Piece, Pieces, head_of, of_stack
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.parts import Head
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gpt_oss",)
EPS = "rms_norm_eps"
NEW = {"num_local_experts": 4, "num_experts_per_tok": 2}
YARN = {  # where the config has no rotary positions; it may have their theta
    "rope_type": "yarn",
    "factor": 32.0,
    "truncate": False,
    ORIGINAL: 4096,
}


@dataclass(frozen=True, repr=False)
class GptOssSpec(MoeSpec):
    """MoeSpec with the constants of an expert's activation function."""

    alpha: float = 1.702
    limit: float = 7.0


def experts(b: Forward, x: Block) -> Block:
    """The sum of the outputs of all experts, and of their biases: [n_tokens, d_model]."""
    spec, m = b.spec_as(GptOssSpec), b.at("mlp")
    share = shares(m, x)  # [n_tokens, n_experts]
    switch = m.input("switch", 1.0)  # of all of them
    alpha, limit = m.input("alpha", spec.alpha), m.input("limit", spec.limit)
    found = []
    for n in range(spec.n_experts):
        e = m.at(f"e{n}")
        gate = parts.linear(e, "gate", x, "gate", ("d_model", "d_expert"), bias=True)
        pre = parts.linear(e, "pre", x, "in", ("d_model", "d_expert"), bias=True)
        opened = e.block("act", ops.swish_below, gate, alpha, limit)  # [n_tokens, d_expert]
        W_out = e.weight("W_out", "d_expert", "d_model")
        on = e.block("on", ops.in_effect, e.input("switch", 1.0), switch)  # [1, 1]
        quiet = None if e.readout.by_head else on
        post = e.block("post", ops.gated_share_of_next, opened, pre, share, limit, quiet, nth=n)
        result = None
        if e.readout.by_head:
            off = parts.stand_in(e, on)
            result = e.block("result", ops.switched_linear, post, W_out, on, off)
        found.append(Head(post, W_out, result))
    chosen = parts.sum_of(b, "mlp.chosen", found)  # [n_tokens, d_model]
    B_out = m.weight("B_out", "n_experts", "d_model")  # a row for each expert
    biases = m.block("biases", ops.switched_linear, share, B_out, switch)  # [n_tokens, d_model]
    return b.block("mlp_out", ops.add, [chosen, biases])


forward = partial(run, write=experts)


def read_config(c: Config) -> ModelSpec:
    c.assume(num_hidden_layers=36, max_position_embeddings=131072, attention_bias=True)
    c.ignore("router_aux_loss_coef", "experts_per_token", "initial_context_length", "hidden_act")
    inner = rope.instead(c, rope.said(c, YARN)).otherwise(hidden_act="silu")
    spec = usual(inner, d_head=64, theta=150000.0)
    window = c.optional("sliding_window", int, 128)
    return GptOssSpec.of(
        spec,
        windows=alternating(c, spec.n_layers, window, every=2),
        sinks=True,
        n_experts=c.get("num_local_experts", int, 128),
        n_chosen=c.get("num_experts_per_tok", int, 4),
        d_expert=spec.d_mlp,
        router_bias=True,
        alpha=c.get("swiglu_alpha", float, 1.702),
        limit=c.get("swiglu_limit", float, 7.0),
    )


def pieces(spec: MoeSpec) -> Pieces:
    """Experts are stacked, [in, out], with the columns of gate and input in turn."""
    yield from around_mlp(spec)
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        for n in range(spec.n_heads):
            yield f"{b}.attn.h{n}.sink", head_of(f"{f}.self_attn.sinks", n, 1, 0)
        m, f = f"{b}.mlp", f"{f}.mlp"
        yield f"{m}.W_router", Piece(f"{f}.router.weight", transposed=True)
        yield f"{m}.b_router", Piece(f"{f}.router.bias")
        yield f"{m}.B_out", Piece(f"{f}.experts.down_proj_bias")
        both, d = f"{f}.experts.gate_up_proj", spec.d_model
        for n in range(spec.n_experts):
            e = f"{m}.e{n}"
            for k, which in enumerate(("gate", "in")):
                yield f"{e}.W_{which}", of_stack(both, n, d, spec.n_experts, columns=(k, 2))
                yield f"{e}.b_{which}", Piece(f"{both}_bias", 0, n, n + 1, False, True, (k, 2))
            out = f"{f}.experts.down_proj"
            yield f"{e}.W_out", of_stack(out, n, spec.d_expert, spec.n_experts)
