"""Qwen's mixtures of experts (Qwen Team 2024, 2025): Mixtral's forward pass, optionally with plain
MLPs in some layers and, in the second generation, a shared expert that is used at every token."""

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.architectures.llama import EPS, around_mlp, usual
from cellformer.engine.models.architectures.mixtral import MoeSpec, apart, forward, stacked
from cellformer.engine.models.foreign import GATED, Config, Piece, Pieces, linear
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("qwen2_moe", "qwen3_moe")
NEW = {"hidden_act": "silu", "num_experts": 4, "num_experts_per_tok": 2}


def read_config(c: Config) -> ModelSpec:
    """The configs of the second and the third generation."""
    c.assume(num_hidden_layers=24, max_position_embeddings=32768, hidden_act="silu")
    c.ignore("router_aux_loss_coef")  # of training
    third = c.values["model_type"] == "qwen3_moe"
    spec = usual(c, bias="attention_bias" if third else "qkv_bias")
    c.ignore("num_experts", "num_local_experts")  # the newer name wins
    name = "num_local_experts" if "num_local_experts" in c.values else "num_experts"
    n_experts = c.get(name, int, 128 if third else 60)
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
        dense=dense(c, n_experts, spec.n_layers),
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
    """The layers without experts: those that the config lists, and all but every n-th."""
    listed, step = c.listed("mlp_only_layers", int), c.get("decoder_sparse_step", int, 1)
    if step < 1:
        raise InputError(f"{c.path}: decoder_sparse_step is {step}; it must be at least 1")
    return tuple(n for n in range(n_layers) if n in listed or not n_experts or (n + 1) % step)


def pieces(spec: ModelSpec, shared: str = "shared_expert") -> Pieces:
    """Linear weights are [out, in]; experts have separate tensors, or stacked ones. `shared` is the
    name of the one that is used at every token."""
    assert isinstance(spec, MoeSpec)
    yield from around_mlp(spec)
    for layer in range(spec.n_layers):
        m, f = f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp"
        yield from linear(m, f, GATED)
        yield from of_experts(m, f, spec, shared)


def of_experts(m: str, f: str, spec: MoeSpec, shared: str = "shared_expert") -> Pieces:
    """Experts' matrices, apart or stacked; those of the one that is used at every token."""
    yield from apart(m, f, spec, GATED)
    yield from stacked(m, f, spec)
    yield from linear(f"{m}.shared", f"{f}.{shared}", GATED)
    yield f"{m}.shared.W_share", Piece(f"{f}.{shared}_gate.weight", transposed=True)
