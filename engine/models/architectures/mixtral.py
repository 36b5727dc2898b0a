"""Mixtral (Jiang et al. 2024, section 2.1): Llama's attention, and a sparse mixture of experts.

A router scores the experts at each token. The highest-scoring ones are used there, each with its
share; the hidden cells of the others are 0 (Shazeer et al. 2017, section 2).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures.llama import (
    WRITES,
    LlamaSpec,
    around_mlp,
    everywhere,
    run,
    usual,
)
from cellformer.engine.models.foreign import OLDER, Config, Piece, Pieces, apart, stacked
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.parts import Head
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("mixtral",)
EPS = "rms_norm_eps"
NEW = {"hidden_act": "silu", "num_local_experts": 4, "num_experts_per_tok": 2}
MAX_EXPERTS = 50_000  # in all layers; DeepSeek-V3 has 14,848, Kimi K2 23,040


@dataclass(frozen=True, repr=False)
class MoeSpec(LlamaSpec):
    """ModelSpec with the fields of a mixture of experts."""

    n_experts: int = 0
    n_chosen: int = 0  # that work at each token
    d_expert: int = 0  # cells of an expert's hidden layer
    shares_of_chosen: bool = True  # the chosen experts' shares sum to 1; else those of all do
    router_bias: bool = False
    share_before: bool = False  # an expert's share multiplies what it reads, and so its gate, too
    d_shared: int = 0  # of an expert that works at every token, beside the others; 0: none
    shared_bias: bool = False  # of that expert

    @property
    def writes(self) -> bool:
        """Whether a layer has experts."""
        return any(WRITES in self.sublayers(n) for n in range(self.n_layers))

    @property
    def sizes_of_experts(self) -> tuple[int, int, int]:
        """The numbers of experts, of an expert's hidden cells, and of features."""
        return self.n_experts, self.d_expert, self.d_model

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_layers * self.n_experts > MAX_EXPERTS:
            raise InputError(
                f"{self.n_layers} layers of {self.n_experts} experts are more than "
                f"{MAX_EXPERTS:,} experts, the limit for a model; check both numbers"
            )
        if self.writes and not 1 <= self.n_chosen <= self.n_experts:
            raise InputError(
                f"the model cannot choose {self.n_chosen} of {self.n_experts} experts for a "
                "token; check num_experts_per_tok"
            )


def shares(m: Forward, x: Block) -> Block:
    """The share of each expert at each token, 0 for experts that are not chosen: [n_tokens,
    n_experts]. Of equal scores the first is chosen."""
    spec = m.spec_as(MoeSpec)
    scores = parts.linear(m, "router", x, "router", ("d_model", "n_experts"), spec.router_bias)
    r = m.at("router")
    of_all = parts.softmax(r, scores, out=(r, "share_of_all"))  # [n_tokens, n_experts]
    numbers = r.input("number", np.arange(spec.n_experts)[None], ("", "n_experts"))
    rank = r.block("rank", ops.rank, of_all, of_all, numbers, numbers)  # [n_tokens, n_experts]
    k = r.input("n_chosen", spec.n_chosen)
    if not spec.shares_of_chosen:
        return r.block("share", ops.first_k, of_all, rank, k)
    chosen = r.block("chosen", ops.first_k, of_all, rank, k)  # [n_tokens, n_experts]
    total = r.block("total", ops.row_sum, chosen)  # [n_tokens, 1]
    return r.block("share", ops.divide_rows, chosen, total)


def experts(
    b: Forward, x: Block, shares: Callable[[Forward, Block], Block] = shares, always: bool = False
) -> Block:
    """The sum of the outputs of all experts: [n_tokens, d_model], by the share [n_tokens,
    n_experts] of each at each token. An expert beside them has its own share or, if it works
    `always`, 1."""
    spec, m = b.spec_as(MoeSpec), b.at("mlp")
    share = shares(m, x)  # [n_tokens, n_experts]
    switch = m.input("switch", 1.0)  # of all of them
    found = [expert(m.at(f"e{n}"), x, "d_expert", share, n, switch) for n in range(spec.n_experts)]
    if not spec.d_shared:
        return parts.sum_of(b, "mlp_out", found)
    chosen, s = parts.sum_of(b, "mlp.chosen", found), m.at("shared")  # [n_tokens, d_model]
    if always:
        own = s.input("share", np.ones((x.shape[0], 1)), ("token", ""))
    else:
        score = parts.linear(s, "score", x, "share", ("d_model", ""), bias=False)  # [n_tokens, 1]
        own = s.block("share", ops.logistic, score)  # [n_tokens, 1]
    post, W_out, result = expert(s, x, "d_shared", own, 0, switch, spec.shared_bias)
    b_out = s.weight("b_out", "d_model") if spec.shared_bias and not result else None
    result = result or s.block("result", ops.linear, post, W_out, b_out)  # [n_tokens, d_model]
    return b.block("mlp_out", ops.add, [chosen, result])


def expert(
    e: Forward, x: Block, d: str, share: Block, n: int, of_all: Block, bias: bool = False
) -> Head:
    """An MLP of `d` hidden cells, gated if the spec says so, times column n of the shares."""
    spec, axes = e.spec_as(MoeSpec), ("d_model", d)
    gated, before = spec.gated, spec.share_before and d == "d_expert"
    name = "unscaled.gate" if before else "gate"
    gate = parts.linear(e, name, x, "gate", axes, bias) if gated else None  # [n_tokens, d]
    if before:
        gate = e.block("gate", ops.times_share, gate, share, nth=n)  # [n_tokens, d]
    pre = parts.linear(e, "pre", x, "in", axes, bias)  # [n_tokens, d]
    opened = e.block("act", getattr(ops, e.spec.activation), gate or pre)  # [n_tokens, d]
    values = pre if gated else None
    W_out = e.weight("W_out", d, "d_model")
    on = e.block("on", ops.in_effect, e.input("switch", 1.0), of_all)  # [1, 1]
    if not e.readout.by_head:
        post = e.block("post", ops.gated_share, opened, share, values, on, nth=n)
        return Head(post, W_out, None)
    post = e.block("post", ops.gated_share, opened, share, values, nth=n)  # [n_tokens, d]
    off, b_out = parts.stand_in(e, on), e.weight("b_out", "d_model") if bias else None
    return Head(post, W_out, e.block("result", ops.switched_linear, post, W_out, on, off, b_out))


forward = partial(run, write=experts)


def read_config(c: Config) -> ModelSpec:
    c.assume(num_hidden_layers=32, max_position_embeddings=131072, hidden_act="silu")
    c.ignore("router_aux_loss_coef", "router_jitter_noise")  # of training
    spec = usual(c, theta=1e6, bias="", windows=everywhere(c))
    return MoeSpec.of(
        spec,
        n_experts=c.get("num_local_experts", int, 8),
        n_chosen=c.get("num_experts_per_tok", int, 2),
        d_expert=spec.d_mlp,
    )


def pieces(spec: MoeSpec) -> Pieces:
    """Linear weights are [out, in]; experts have separate tensors, or stacked ones."""
    yield from around_mlp(spec)
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}"
        yield from apart(m, f"{f}.block_sparse_moe", spec.n_experts, OLDER)
        yield f"{m}.W_router", Piece(f"{f}.mlp.gate.weight", transposed=True)
        yield from stacked(m, *newer(f"{f}.mlp"), *spec.sizes_of_experts)


def newer(mlp: str) -> tuple[str, str]:
    """The names of the two tensors with all experts."""
    return f"{mlp}.experts.gate_up_proj", f"{mlp}.experts.down_proj"
