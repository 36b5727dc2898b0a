"""Phi-3.5-MoE (Abdin et al. 2024; Liu et al. 2024, "GRIN", section 2.2): Mixtral's pass with
LayerNorm, biases, and two experts at each token, chosen one after the other.

The share of each is its softmax among the experts that are left and near it: those whose scores are
hardly below its own. So the two shares do not sum to 1, and a clear choice has the share 1.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures.llama import around_mlp, everywhere, run, usual
from cellformer.engine.models.architectures.mixtral import MoeSpec, experts, newer
from cellformer.engine.models.foreign import OLDER, Config, Piece, Pieces, apart, stacked
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("phimoe",)
EPS = "rms_norm_eps"
NEW = {"hidden_act": "silu", "num_local_experts": 4, "num_experts_per_tok": 2}
TWO = ("first", "second")  # experts at each token
SCALES = ("short_mscale", "long_mscale")  # of cosines and sines


@dataclass(frozen=True, repr=False)
class PhimoeSpec(MoeSpec):
    """MoeSpec with Phi-3.5-MoE's own field."""

    reach: float = 0.02  # how far below the best, in parts of the larger score, is near it


def shares(m: Forward, x: Block) -> Block:
    """The share of each expert at each token, 0 for all but two: [n_tokens, n_experts]."""
    spec, r = m.spec_as(PhimoeSpec), m.at("router")
    scores = parts.linear(m, "router", x, "router", ("d_model", "n_experts"), bias=False)
    numbers = r.input("number", np.arange(spec.n_experts)[None], ("", "n_experts"))
    rank = r.block("rank", ops.rank, scores, scores, numbers, numbers)  # [n_tokens, n_experts]
    reach, found = r.input("reach", spec.reach), []
    for place, name in enumerate(TWO):
        one, chosen = r.at(name), r.input(f"{name}.place", place)
        left = one.block("left", ops.not_before, scores, rank, chosen)  # [n_tokens, n_experts]
        best = one.block("best", ops.row_max, left)  # [n_tokens, 1]
        near = one.block("near", ops.near, left, best, reach)  # [n_tokens, n_experts]
        near = one.block("scores", ops.open_alone, left, near)  # [n_tokens, n_experts]
        shared = parts.softmax(one, near, out=(one, "share_of_near"))
        found.append(one.block("share", ops.at_place, shared, rank, chosen))
    return r.block("share", ops.add, found)  # [n_tokens, n_experts]


forward = partial(run, norm=parts.layer_norm, write=partial(experts, shares=shares))


def read_config(c: Config) -> ModelSpec:
    c.assume(num_hidden_layers=32, max_position_embeddings=131072, hidden_act="silu")
    c.refuse("num_experts_per_tok", 2, "the model must choose two experts, one after the other")
    c.ignore("router_aux_loss_coef", "input_jitter_noise")  # of training
    plain, scale = without_scales(c)
    spec = usual(plain, theta=1e6, windows=everywhere(c))
    return PhimoeSpec.of(
        spec,
        norm="layer",
        rope_factor=spec.rope_factor if scale is None else scale,
        word_bias=c.get("lm_head_bias", bool, False),
        n_experts=c.get("num_local_experts", int, 16),
        n_chosen=2,
        d_expert=spec.d_mlp,
        reach=2 * c.get("router_jitter_noise", float, 0.01),
    )


def without_scales(c: Config) -> tuple[Config, float | None]:
    """The config without the factors of cosines and sines that only this architecture states, and
    the one within the original length, if it has them."""
    field = "rope_scaling" if c.look("rope_scaling") else "rope_parameters"
    given: Any = c.look(field)
    if not isinstance(given, dict) or not {*SCALES} & {*given}:
        return c, None
    scale = Config(c.path, given).get(SCALES[0], float)
    return c.otherwise(**{field: {k: v for k, v in given.items() if k not in SCALES}}), scale


def pieces(spec: MoeSpec) -> Pieces:
    """Mixtral's layout, with biases of norms and words."""
    yield from around_mlp(spec)
    yield "b_U", Piece("lm_head.bias")
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}"
        yield from apart(m, f"{f}.block_sparse_moe", spec.n_experts, OLDER)
        yield f"{m}.W_router", Piece(f"{f}.mlp.router.weight", transposed=True)
        yield from stacked(m, *newer(f"{f}.mlp"), *spec.sizes_of_experts)
