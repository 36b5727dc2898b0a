"""GLM-4.5's kin: mixtures of experts that choose by a biased score, and others with an expert for
every token, a row each."""

from dataclasses import replace
from functools import partial

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.architectures import glm4_moe, kin, llama, mixtral, olmo2
from cellformer.engine.models.architectures.glm4_moe import (
    GroupedSpec,
    experts,
    grouped,
    mlp_layers,
)
from cellformer.engine.models.architectures.kin import Kin, of
from cellformer.engine.models.architectures.llama import around_mlp, usual, with_mlps
from cellformer.engine.models.architectures.mixtral import MoeSpec
from cellformer.engine.models.architectures.moe_kin import OF_TRAINING
from cellformer.engine.models.foreign import GATED, OLDER, Config, Piece, Pieces, apart, linear

NEW = {"hidden_act": "silu", "num_experts": 4, "num_experts_per_tok": 2}


def of_minimax(c: Config) -> GroupedSpec:
    """MiniMax-M2's spec; older configs say how many of a head's features rotate."""
    turned = c.get("rotary_dim", int, 0)
    if turned and "partial_rotary_factor" not in c.values:
        c = c.otherwise(partial_rotary_factor=turned / c.get("head_dim", int, 128))
    spec = usual(c, 128, "partial_rotary_factor", theta=5e6, bias="", eps_default=1e-6)
    inner = c.otherwise(n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.0)
    return GroupedSpec.of(spec, d_expert=spec.d_mlp, **grouped(inner))


def minimax_pieces(spec: MoeSpec) -> Pieces:
    """Mixtral's older names, with OLMo 2's norms and a bias that counts in choosing."""
    yield from around_mlp(spec)
    yield from olmo2.gains_of_all(spec)
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}.block_sparse_moe"
        yield from apart(m, f, spec.n_experts, OLDER)
        yield f"{m}.router.b_choice", Piece(f"{f}.e_score_correction_bias")


def of_exaone(c: Config) -> GroupedSpec:
    """EXAONE 4's attention, with norms before sublayers, and GLM-4.5's experts."""
    spec, d_expert = kin.of_exaone(c), c.get("moe_intermediate_size", int, 1024)
    first = c.get("first_k_dense_replace", int, 1)
    return GroupedSpec.of(
        replace(spec, norms="before"),
        layers=mlp_layers(c, spec.n_layers, first),
        d_expert=d_expert,
        d_shared=d_expert * c.get("num_shared_experts", int, 1),
        **grouped(c.otherwise(n_routed_experts=c.get("num_experts", int, 64))),
    )


def of_ernie(c: Config) -> GroupedSpec:
    """ERNIE 4.5's mixture: softmax shares, and a bias that counts in choosing."""
    c.refuse("moe_norm_min", 1e-12, "the least sum of shares must be tiny")
    spec = kin.of_ernie(c)
    every = c.get("moe_layer_interval", int, 1)
    if every < 1:
        raise InputError(f"{c.path}: moe_layer_interval is {every}; it must be at least 1")
    first, last = c.get("moe_layer_start_index", int, 1), c.get("moe_layer_end_index", int, -1)
    last = spec.n_layers - 1 if last == -1 else last
    mixed = {n for n in range(first, last + 1) if (n + 1) % every == 0}
    d_expert = c.get("moe_intermediate_size", int, 1536)
    return GroupedSpec.of(
        spec,
        layers=with_mlps({*range(spec.n_layers)} - mixed, spec.n_layers),
        word_bias=spec.mlp_bias,
        softmax=True,
        n_experts=c.get("moe_num_experts", int, 64),
        n_chosen=c.get("moe_k", int, 6),
        d_expert=d_expert,
        d_shared=d_expert * c.get("moe_num_shared_experts", int, 2),
        shared_bias=spec.mlp_bias,
    )


def ernie_pieces(spec: MoeSpec) -> Pieces:
    """GLM-4.5's; the bias that counts in choosing is a row of a matrix."""
    yield "b_U", Piece("lm_head.bias")
    for layer in range(spec.n_layers):
        f = f"model.layers.{layer}.mlp"
        bias = f"{f}.moe_statics.e_score_correction_bias"
        yield f"blocks.{layer}.mlp.router.b_choice", Piece(bias, 0, 0, 1, row=True)
        yield from linear(f"blocks.{layer}.mlp.shared", f"{f}.shared_experts", GATED)
    yield from glm4_moe.pieces(spec)


def of_hunyuan(c: Config) -> MoeSpec:
    spec = kin.of_hunyuan(c)
    return MoeSpec.of(
        spec,
        n_experts=c.get("num_experts", int, 1),
        n_chosen=c.get("moe_topk", int, 1),
        d_expert=spec.d_mlp,
        d_shared=spec.d_mlp,
    )


def hunyuan_pieces(spec: MoeSpec) -> Pieces:
    """Those of the dense models, with experts in place of MLPs."""
    yield from kin.hunyuan_pieces(spec)
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp"
        yield f"{m}.W_router", Piece(f"{f}.gate.wg.weight", transposed=True)
        yield from apart(m, f, spec.n_experts, GATED)
        yield from linear(f"{m}.shared", f"{f}.shared_mlp", GATED)


KIN = (
    Kin(
        ("minimax_m2",),
        "MiniMax-M2 (MiniMax 2025): Mixtral with OLMo 2's norms of queries and keys. Each "
        "expert's share is a logistic function of its score; a bias counts in choosing. Rotary "
        "positions may be partial",
        of(62, 196608, num_local_experts=256, num_key_value_heads=8),
        of_minimax,
        ignores=(*OF_TRAINING, "router_jitter_noise"),
        NEW={"hidden_act": "silu", "num_local_experts": 4, "num_experts_per_tok": 2},
        forward=partial(llama.run, attend=olmo2.attention, write=experts),
        pieces=minimax_pieces,
    ),
    Kin(
        ("exaone_moe",),
        "K-EXAONE (LG AI Research 2026): EXAONE 4's attention, with norms before sublayers, and "
        "GLM-4.5's experts",
        of(32, 2048),
        of_exaone,
        NEW=None,
        UNREAD=("mtp.*",),
        forward=partial(llama.run, write=experts),
        pieces=partial(
            glm4_moe.pieces, choices=("e_score_correction_bias", "gate.e_score_correction_bias")
        ),
    ),
    Kin(
        ("ernie4_5_moe",),
        "ERNIE 4.5's mixtures of experts (Baidu 2025, section 2): shares are softmax of scores, a "
        "bias counts in choosing, and an expert works at every token. Some layers have MLPs",
        of(28, 131072, num_key_value_heads=4),
        of_ernie,
        renames={"num_experts": "moe_num_experts", "num_experts_per_tok": "moe_k"},
        ignores=OF_TRAINING,
        NEW={"hidden_act": "silu", "moe_num_experts": 4, "moe_k": 2},
        UNREAD=("mtp*",),
        forward=partial(llama.run, write=experts),
        pieces=ernie_pieces,
    ),
    Kin(
        ("hunyuan_v1_moe",),
        "Hunyuan's mixtures of experts (Tencent 2024): the attention of its dense models, "
        "Mixtral's experts, and an expert for every token",
        of(32, 2048),
        of_hunyuan,
        renames={"num_local_experts": "num_experts"},
        NEW={"hidden_act": "silu", "num_experts": 4, "moe_topk": 2},
        forward=partial(
            llama.run,
            attend=partial(llama.attention, norm_last=True),
            write=partial(mixtral.experts, always=True),
        ),
        pieces=hunyuan_pieces,
    ),
)
