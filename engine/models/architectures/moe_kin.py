"""Mixtral's kin: Llama's attention, and a mixture of experts, a row each."""

from collections.abc import Mapping
from functools import partial

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.architectures import llama, olmo2
from cellformer.engine.models.architectures.kin import SILU, Kin, of
from cellformer.engine.models.architectures.llama import EPS, around_mlp, usual, with_mlps
from cellformer.engine.models.architectures.mixtral import NEW, MoeSpec, experts, forward, newer
from cellformer.engine.models.foreign import (
    GATED,
    OLDER,
    Config,
    Piece,
    Pieces,
    apart,
    linear,
    mapped,
    stacked,
)


def of_qwen(c: Config) -> MoeSpec:
    """The spec of Qwen's second and third generation."""
    third = c.values["model_type"] == "qwen3_moe"
    spec = usual(c, bias="attention_bias" if third else "qkv_bias")
    name = "num_local_experts" if "num_local_experts" in c.values else "num_experts"
    n_experts = c.get(name, int, 128 if third else 60)  # the newer name wins
    bias = spec.qkv_bias if third else c.get("qkv_bias", bool, True)
    return MoeSpec.of(
        spec,
        norm_eps=c.get(EPS, float, 1e-6),
        qkv_bias=bias,
        out_bias=third and bias,
        qk_norm=third,
        windows=windows(c, third, spec.n_layers),
        n_experts=n_experts,
        n_chosen=c.get("num_experts_per_tok", int, 8 if third else 4),
        d_expert=c.get("moe_intermediate_size", int, 768 if third else 1408),
        shares_of_chosen=c.get("norm_topk_prob", bool, False),
        layers=with_mlps(dense(c, n_experts, spec.n_layers), spec.n_layers),
        d_shared=0 if third else c.get("shared_expert_intermediate_size", int, 5632),
    )


def windows(c: Config, third: bool, n_layers: int) -> tuple[int | None, ...]:
    """The sliding window of each layer, if the config has any: every layer in the third generation;
    in the second, the layers listed, or every other one of the first."""
    used, size = c.get("use_sliding_window", bool, False), c.get("sliding_window", int, 4096)
    listed, first = c.windowed(n_layers), c.get("max_window_layers", int, 28)
    if third:
        return (size,) * n_layers if used else ()
    near = listed or [n % 2 == 0 and n < first and used for n in range(n_layers)]
    return tuple((size if used else 0) if is_near else None for is_near in near)


def dense(c: Config, n_experts: int, n_layers: int) -> tuple[int, ...]:
    """The layers without experts: listed in the config, and all except every n-th."""
    listed, step = c.listed("mlp_only_layers", int), c.get("decoder_sparse_step", int, 1)
    if step < 1:
        raise InputError(f"{c.path}: decoder_sparse_step is {step}; it must be at least 1")
    return tuple(n for n in range(n_layers) if n in listed or not n_experts or (n + 1) % step)


def qwen_pieces(
    spec: MoeSpec, shared: str = "shared_expert", norms: Mapping[str, str] = llama.BEFORE
) -> Pieces:
    """Linear weights are [out, in]; experts have separate tensors, or stacked ones. `shared` is the
    name of the one that is used at every token."""
    yield from around_mlp(spec, norms)
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp"
        yield from linear(m, f, GATED)
        yield from of_experts(m, f, spec, shared)


def of_experts(m: str, f: str, spec: MoeSpec, shared: str = "shared_expert") -> Pieces:
    """The matrices of experts, apart or stacked, and of the expert that every token uses."""
    yield from apart(m, f, spec.n_experts, GATED)
    yield from stacked(m, *newer(f), *spec.sizes_of_experts)
    yield from linear(f"{m}.shared", f"{f}.{shared}", GATED)
    yield f"{m}.shared.W_share", Piece(f"{f}.{shared}_gate.weight", transposed=True)


def granitemoe_pieces(spec: MoeSpec) -> Pieces:
    """All experts' matrices are stacked, the gate's before the input's, or stand alone, as in GGUF
    files."""
    yield from around_mlp(spec)
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}.block_sparse_moe"
        yield f"{m}.W_router", Piece(f"{f}.router.layer.weight", transposed=True)
        both, out = f"{f}.input_linear.weight", f"{f}.output_linear.weight"
        yield from stacked(m, both, out, *spec.sizes_of_experts, stack=spec.n_experts)
        yield from apart(m, f, spec.n_experts, OLDER)
        yield from of_shared(f"{m}.shared", f"model.layers.{layer}.shared_mlp", spec)


def of_shared(ours: str, theirs: str, spec: MoeSpec) -> Pieces:
    """Granite's expert for every token: one tensor holds its gate and its input."""
    for n, which in enumerate(("gate", "in")):
        yield from mapped(ours, which, f"{theirs}.input_linear", n, spec.d_shared)
    yield f"{ours}.W_out", Piece(f"{theirs}.output_linear.weight", transposed=True)


def of_olmoe(c: Config) -> MoeSpec:
    flexible = c.values["model_type"] == "flex_olmo"
    own = {"norms": "after"} if flexible else {"bound": c.optional("clip_qkv", float, None)}
    return MoeSpec.of(
        usual(c, theta=5e5 if flexible else 1e4, eps_default=1e-6 if flexible else 1e-5, **own),
        n_experts=c.get("num_experts", int, c.get("num_local_experts", int, 64)),
        n_chosen=c.get("num_experts_per_tok", int, 8),
        d_expert=c.get("intermediate_size", int),
        shares_of_chosen=c.get("norm_topk_prob", bool, False),
    )


def olmoe_pieces(spec: MoeSpec) -> Pieces:
    """Qwen's, with OLMo 2's norms of queries and keys."""
    yield from olmo2.gains_of_all(spec)
    yield from qwen_pieces(spec, norms=llama.AFTER if spec.norms == "after" else llama.BEFORE)


OF_TRAINING = ("router_aux_loss_coef",)
NUM_EXPERTS = SILU | {"num_experts": 4, "num_experts_per_tok": 2}

KIN = (
    Kin(
        ("qwen2_moe", "qwen3_moe"),
        "Qwen's mixtures of experts (Qwen Team 2024, 2025): Mixtral's forward pass. Some layers "
        "may have plain MLPs. The second generation may have a shared expert for every token",
        of(24, 32768, hidden_act="silu"),
        of_qwen,
        ignores=(*OF_TRAINING, "num_experts", "num_local_experts"),
        NEW=NUM_EXPERTS,
        forward=forward,
        pieces=qwen_pieces,
    ),
    Kin(
        ("granitemoe", "granitemoeshared"),
        "Granite's mixtures of experts (IBM 2024): Mixtral's forward pass, with Granite's "
        "multipliers for embedding, residual stream, scores and logits. The latter may also have "
        "an expert for every token",
        of(32, 2048),
        lambda c: MoeSpec.of(
            llama.granite(c, usual(c, eps_default=1e-6)),
            n_experts=c.get("num_local_experts", int, 8),
            n_chosen=c.get("num_experts_per_tok", int, 2),
            d_expert=c.get("intermediate_size", int),
            d_shared=c.get("shared_intermediate_size", int, 0),
        ),
        ignores=OF_TRAINING,
        NEW=NEW | {"shared_intermediate_size": 0},
        forward=partial(llama.run, write=partial(experts, always=True)),
        pieces=granitemoe_pieces,
    ),
    Kin(
        ("olmoe",),
        "OLMoE (Muennighoff et al. 2024, section 2): a mixture of experts in every layer. Norms "
        "of queries and keys are from OLMo 2, and norms before each sublayer are from Llama",
        of(16, 4096),
        of_olmoe,
        ignores=OF_TRAINING,
        NEW=NUM_EXPERTS,
        forward=partial(llama.run, attend=olmo2.attention, write=experts),
        pieces=olmoe_pieces,
    ),
    Kin(
        ("flex_olmo",),
        "FlexOlmo (Shi et al. 2025, section 2): OLMo 2 with a mixture of experts in every layer. "
        "Each expert can be trained on other data",
        of(32, 4096, num_experts=7, num_experts_per_tok=5),
        of_olmoe,
        ignores=OF_TRAINING,
        NEW=NUM_EXPERTS,
        forward=partial(llama.run, attend=olmo2.attention, write=experts),
        pieces=olmoe_pieces,
    ),
)
