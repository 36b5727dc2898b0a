"""Llama 4 (Meta 2025): Llama with experts. A layer either turns queries and keys by position, and
then each token sees its own chunk of the text, or it does neither.

The layers that turn norm queries and keys after that; in the others, queries grow with position.
The share of an expert multiplies what the expert reads, and one more expert works at every token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures import ministral, mixtral
from cellformer.engine.models.architectures.llama import (
    Turn,
    around_mlp,
    layers_that_stand_still,
    of_heads,
    run,
    usual,
    with_mlps,
)
from cellformer.engine.models.architectures.mixtral import MoeSpec
from cellformer.engine.models.foreign import GATED, Config, Piece, Pieces, linear, of_stack
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("llama4_text",)
EPS = "rms_norm_eps"
NEW = {"hidden_act": "silu", "num_local_experts": 4, "num_experts_per_tok": 1}
CHUNKED = "chunked_attention"
SIZES = {  # the reference's defaults
    "vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192, "num_hidden_layers": 48,
    "num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
    "max_position_embeddings": 131072,
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Llama4Spec(MoeSpec):
    """MoeSpec whose windows are chunks: a token sees only those before it in its own chunk."""

    beta: float = 0.0  # how queries grow in layers that stand still (see `ops.growth`); 0: not
    trained: int = 0  # tokens before they grow


def forward(g: Forward, ids: Sequence[int]) -> None:
    spec = g.spec_as(Llama4Spec)
    if spec.beta and spec.still:
        ministral.grow(g, len(ids), spec.beta, spec.trained, first=1)
    run(g, ids, attend=attention, write=experts)


def attention(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """The sum of the outputs of all heads, [n_tokens, d_model]."""

    def ready(h: Forward, which: str, x: Block) -> Block:
        if turn:
            x = parts.rotate(h, f"rot_{which}", x, turn)  # [n_tokens, d_head]
            ln = h.at(f"{which}_norm")
            return parts.plain_rms_norm(ln, x, h.spec.norm_eps) if h.spec.qk_norm else x
        grows = which == "q" and h.spec_as(Llama4Spec).beta
        return h.block("grown_q", ops.times_rows, x, b["query.growth"]) if grows else x

    return of_heads(b, x, parts.of_all_heads(b.at("attn")), Mask(sentence=window), ready)


def shares(m: Forward, x: Block) -> Block:
    """The share of each expert at each token, 0 for experts that are not chosen: [n_tokens,
    n_experts]."""
    spec, r = m.spec_as(Llama4Spec), m.at("router")
    scores = parts.linear(m, "router", x, "router", ("d_model", "n_experts"), bias=False)
    numbers = r.input("number", np.arange(spec.n_experts)[None], ("", "n_experts"))
    rank = r.block("rank", ops.rank, scores, scores, numbers, numbers)  # [n_tokens, n_experts]
    suits = r.block("suits", ops.logistic, scores)  # [n_tokens, n_experts]
    return r.block("share", ops.first_k, suits, rank, r.input("n_chosen", spec.n_chosen))


experts = partial(mixtral.experts, shares=shares, always=True)


def read_config(c: Config) -> ModelSpec:
    c.assume(**SIZES)
    c.ignore("router_aux_loss_coef", "router_jitter_noise", "for_llm_compressor")
    for name in ("interleave_moe_layer_step", "no_rope_layer_interval", "floor_scale"):
        if c.get(name, int, 1) < 1:
            raise InputError(f"{c.path}: {name} is {c.look(name)}; it must be at least 1")
    spec, d_expert = usual(c, theta=5e5), c.get("intermediate_size", int)
    n_layers, still = spec.n_layers, layers_that_stand_still(c, spec.n_layers)
    near = c.windowed(n_layers, CHUNKED)
    chunk = c.optional("attention_chunk_size", int, 8192)
    if any(near) and chunk is None:
        raise InputError(f"{c.path}: layer_types has {CHUNKED}; set attention_chunk_size")
    near = near or [n not in still for n in range(n_layers)]
    step, sparse = c.get("interleave_moe_layer_step", int, 1), c.listed("moe_layers", int)
    if c.look("moe_layers") is None:
        sparse = [*range(step - 1, n_layers, step)]
    beta, tuned = c.get("attn_scale", float, 0.1), c.get("attn_temperature_tuning", bool, True)
    return Llama4Spec.of(
        replace(spec, d_mlp=c.get("intermediate_size_mlp", int, 16384)),
        rope_neighbours=True,
        qk_norm=c.get("use_qk_norm", bool, True),
        still=still,
        windows=tuple(chunk if is_near else None for is_near in near),
        layers=with_mlps({*range(n_layers)} - {*sparse}, n_layers),
        n_experts=c.get("num_local_experts", int, 16),
        n_chosen=c.get("num_experts_per_tok", int, 1),
        d_expert=d_expert,
        d_shared=d_expert,
        share_before=True,
        beta=beta if tuned else 0.0,
        trained=c.get("floor_scale", int, 8192),
    )


def pieces(spec: MoeSpec) -> Pieces:
    """Experts are stacked, [in, out], with the columns of all gates before those of inputs."""
    yield from around_mlp(spec)
    d, n_experts = spec.d_expert, spec.n_experts
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}.feed_forward"
        yield from linear(m, f, GATED)
        yield from linear(f"{m}.shared", f"{f}.shared_expert", GATED)
        yield f"{m}.W_router", Piece(f"{f}.router.weight", transposed=True)
        for n in range(n_experts):
            both = of_stack(f"{f}.experts.gate_up_proj", n, spec.d_model, n_experts)
            for k, which in enumerate(("gate", "in")):
                yield f"{m}.e{n}.W_{which}", replace(both, columns=(k * d, 2), width=d)
            yield f"{m}.e{n}.W_out", of_stack(f"{f}.experts.down_proj", n, d, n_experts)
