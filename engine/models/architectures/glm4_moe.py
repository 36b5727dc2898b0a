"""GLM-4.5 (GLM-4.5 Team 2025, section 2.1): Llama's attention, and many small experts beside one
that works at every token. Each expert's share is a logistic function of its score (DeepSeek-AI
2024, section 2.1.2); a bias that only counts in choosing spreads the work, and groups of experts
are chosen first."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures import mixtral, moe_kin
from cellformer.engine.models.architectures.llama import run, usual, with_mlps
from cellformer.engine.models.architectures.mixtral import MoeSpec
from cellformer.engine.models.foreign import Config, Piece, Pieces
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("glm4_moe",)
EPS = "rms_norm_eps"
NEW = {"hidden_act": "silu", "n_routed_experts": 4, "num_experts_per_tok": 2}
NEW |= {"first_k_dense_replace": 0}
# of further tokens, in the models of its makers
UNREAD = ("model.layers.46.*", "model.layers.92.*")
OF_GGUF = "gate.e_score_correction.bias"
FAR = 1000.0  # apart are the scores of groups, so that ranks within a group are told


@dataclass(frozen=True, repr=False)
class GroupedSpec(MoeSpec):
    """MoeSpec with groups of experts; the router first chooses some of the groups."""

    n_groups: int = 1
    n_open: int = 1  # groups that are chosen
    n_counted: int = 2  # experts in a group's score
    softmax: bool = False  # shares are those of all experts (DeepSeek-V2); else logistic functions
    share_scale: float = 1.0  # what the chosen experts' shares sum to
    choice_bias: bool = True  # that only counts in choosing
    total_eps: float = 0.0  # added to the sum of the chosen experts' shares (LFM2-MoE)


def shares(m: Forward, x: Block) -> Block:
    """The share of each expert at each token, 0 for experts that are not chosen: [n_tokens,
    n_experts]."""
    spec, r = m.spec_as(GroupedSpec), m.at("router")
    scores = parts.linear(m, "router", x, "router", ("d_model", "n_experts"), bias=False)
    if spec.softmax:
        ranked = suits = parts.softmax(r, scores, out=(r, "share_of_all"))
    else:
        ranked = suits = r.block("suits", ops.logistic, scores)  # [n_tokens, n_experts]
    if spec.choice_bias:
        ranked = r.block("ranked", ops.add, [suits], r.weight("b_choice", "n_experts"))
    numbers = r.input("number", np.arange(spec.n_experts)[None], ("", "n_experts"))
    if spec.n_open < spec.n_groups:
        ranked = r.block("in_open", ops.open_alone, ranked, in_open_groups(r, ranked, numbers))
    rank = r.block("rank", ops.rank, ranked, ranked, numbers, numbers)  # [n_tokens, n_experts]
    found = r.block("chosen", ops.first_k, suits, rank, r.input("n_chosen", spec.n_chosen))
    if spec.shares_of_chosen:
        total = r.block("total", ops.row_sum, found)  # [n_tokens, 1]
        if spec.total_eps:
            eps = r.input("eps", spec.total_eps)
            total = r.block("total_above_0", ops.add, [total], eps)  # [n_tokens, 1]
        found = r.block("share_of_chosen", ops.divide_rows, found, total)
    return r.block("share", ops.stretch, found, r.input("multiplier", spec.share_scale))


def in_open_groups(r: Forward, ranked: Block, numbers: Block) -> Block:
    """1 for experts of the chosen groups, 0 for others: [n_tokens, n_experts]. A group's score is
    the sum of its two largest, or its largest."""
    spec, o = r.spec_as(GroupedSpec), r.at("groups")
    size = spec.n_experts // spec.n_groups
    group = np.arange(spec.n_experts) // size
    before = (spec.n_groups - 1 - group) * size  # how many come before, in the groups above
    above = o.input("above", (FAR * group)[None], ("", "n_experts"))
    apart = o.block("apart", ops.add, [ranked], above)  # [n_tokens, n_experts]
    place = o.block("rank_in_all", ops.rank, apart, apart, numbers, numbers)  # in all of them
    others = o.input("others", -before[None], ("", "n_experts"))
    within = o.block("within", ops.add, [place], others)  # the rank in the expert's own group
    two = o.block("two", ops.first_k, ranked, within, o.input("n_counted", spec.n_counted))
    member = o.input("member", np.eye(spec.n_groups)[group], ("n_experts", "n_groups"))
    score = o.block("score", ops.linear, two, member)  # [n_tokens, n_groups]
    number = o.input("number", np.arange(spec.n_groups)[None], ("", "n_groups"))
    rank = o.block("rank", ops.rank, score, score, number, number)  # [n_tokens, n_groups]
    chosen = o.block("open", ops.is_first, rank, o.input("n_open", spec.n_open))
    members = o.input("members", np.eye(spec.n_groups)[:, group], ("n_groups", "n_experts"))
    return o.block("open_to", ops.linear, chosen, members)  # [n_tokens, n_experts]


experts = partial(mixtral.experts, shares=shares, always=True)
forward = partial(run, write=experts)


def read_config(c: Config) -> ModelSpec:
    """GLM-4.5's config. The layers that predict further tokens are not read."""
    c.assume(num_hidden_layers=46, max_position_embeddings=131072)
    c.ignore("router_aux_loss_coef", "num_mtp_layers", "num_nextn_predict_layers")
    spec = usual(c, part="partial_rotary_factor", default_part=0.5)
    d_expert = c.get("moe_intermediate_size", int, 1408)
    return GroupedSpec.of(
        spec,
        out_bias=False,
        qk_norm=c.get("use_qk_norm", bool, False),
        layers=with_mlps(range(c.get("first_k_dense_replace", int, 1)), spec.n_layers),
        d_expert=d_expert,
        d_shared=d_expert * c.get("n_shared_experts", int, 1),
        **grouped(c),
    )


def grouped(c: Config) -> dict[str, Any]:
    """The fields of a mixture of experts in groups. Raises InputError for unequal groups."""
    n_experts = c.get("n_routed_experts", int, c.get("num_local_experts", int, 128))
    n_groups, n_open = c.get("n_group", int, 1), c.get("topk_group", int, 1)
    if n_groups < 1 or n_experts % n_groups or not 1 <= n_open <= n_groups:
        raise InputError(
            f"{c.path}: {n_experts} experts, {n_groups} groups and {n_open} chosen groups do not "
            "fit together. All groups must have the same size; check n_group and topk_group"
        )
    return {
        "n_experts": n_experts,
        "n_chosen": c.get("num_experts_per_tok", int, 8),
        "shares_of_chosen": c.get("norm_topk_prob", bool, True),
        "n_groups": n_groups,
        "n_open": n_open,
        "share_scale": c.get("routed_scaling_factor", float, 1.0),
    }


def mlp_layers(c: Config, n_layers: int, first: int = 1) -> tuple[tuple[str, ...], ...]:
    """Layers of attention and experts, or MLPs: as `mlp_layer_types` lists them, or the first
    with MLPs. Raises InputError for other kinds, and for another number of layers."""
    kinds = c.listed("mlp_layer_types", str) or ["dense"] * min(first, n_layers)
    kinds += ["sparse"] * (n_layers - len(kinds)) if not c.look("mlp_layer_types") else []
    if {*kinds} - {"dense", "sparse"} or len(kinds) != n_layers:
        raise InputError(
            f"{c.path}: mlp_layer_types is {kinds}; write dense or sparse for each of {n_layers} "
            "layers"
        )
    return with_mlps((n for n, kind in enumerate(kinds) if kind == "dense"), n_layers)


def pieces(
    spec: MoeSpec, choices: Sequence[str] = ("gate.e_score_correction_bias", OF_GGUF)
) -> Pieces:
    """Qwen's, with the bias that counts in choosing."""
    for layer in range(spec.n_layers):
        for name in choices:
            choice = f"blocks.{layer}.mlp.router.b_choice"
            yield choice, Piece(f"model.layers.{layer}.mlp.{name}")
    yield from moe_kin.qwen_pieces(spec, "shared_experts")
