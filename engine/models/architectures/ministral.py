"""Ministral (Mistral AI 2024): Mistral with windows in the layers that the config lists. Ministral
3 (2025) has none, and queries that grow with position beyond the length of training."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import (
    EPS,
    LlamaSpec,
    Turn,
    of_heads,
    run,
    usual,
)
from cellformer.engine.models.foreign import ORIGINAL, Config
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("ministral", "ministral3")
NEW = {"hidden_act": "silu"}
pieces = llama.pieces
BETA = "llama_4_scaling_beta"
YARN = {  # of Ministral 3, where the config has no rotary positions
    "rope_type": "yarn",
    "rope_theta": 1e6,
    "factor": 16.0,
    ORIGINAL: 16384,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    BETA: 0.1,
}


@dataclass(frozen=True, repr=False)
class MinistralSpec(LlamaSpec):
    """LlamaSpec with how queries grow beyond the length of training (see `ops.growth`)."""

    beta: float = 0.0  # 0: they do not
    trained: int = 0  # tokens


def forward(g: Forward, ids: Sequence[int]) -> None:
    spec = g.spec_as(MinistralSpec)
    if spec.beta:
        grow(g, len(ids), spec.beta, spec.trained)
    run(g, ids, attend=attention)


def grow(g: Forward, n_tokens: int, beta: float, trained: int, first: int = 0) -> None:
    """Add the factor of each token's query, [n_tokens, 1]; positions count from `first`."""
    q, places = g.at("query"), first + np.arange(n_tokens)
    position = q.input("positions", places.reshape(-1, 1), ("token", ""))
    length = q.input("trained", trained)
    q.block("growth", ops.growth, position, q.input("beta", beta), length)  # [n_tokens, 1]


def attention(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """The sum of the outputs of all heads, [n_tokens, d_model]."""

    def ready(h: Forward, which: str, x: Block) -> Block:
        assert turn and isinstance(h.spec, MinistralSpec)
        x = parts.rotate(h, f"rot_{which}", x, turn)  # [n_tokens, d_head]
        grows = which == "q" and h.spec.beta
        return h.block("grown_q", ops.times_rows, x, b["query.growth"]) if grows else x

    return of_heads(b, x, parts.of_all_heads(b.at("attn")), Mask(window=window), ready)


def read_config(c: Config) -> ModelSpec:
    """The configs of both generations."""
    c.assume(num_hidden_layers=32, max_position_embeddings=131072)
    third = c.values["model_type"] == "ministral3"
    turns = Config(c.path, rope.said(c, YARN if third else None))
    plain = {k: v for k, v in turns.values.items() if k not in (BETA, rope.LONGEST)}
    spec = usual(rope.instead(c, plain), d_head=128 if third else 0, bias="")
    window = c.optional("sliding_window", int, None if third else 4096)
    near = [] if third else c.windowed(spec.n_layers)
    near = near or [window is not None] * spec.n_layers
    return MinistralSpec.of(
        spec,
        norm_eps=c.get(EPS, float, 1e-5 if third else 1e-6),
        windows=tuple(window if is_near else None for is_near in near),
        beta=turns.get(BETA, float, 0.0),
        trained=turns.get(ORIGINAL, int, spec.n_ctx),
    )
