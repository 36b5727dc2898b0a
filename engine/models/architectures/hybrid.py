"""Hybrids of states and attention: layers of either kind, in the order that the config lists.
States are Mamba-2's, attention is Llama's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from math import inf, sqrt
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts
from cellformer.engine.models.architectures import llama, mamba2
from cellformer.engine.models.architectures.glm4_moe import GroupedSpec, grouped
from cellformer.engine.models.architectures.glm4_moe import experts as grouped_experts
from cellformer.engine.models.architectures.kin import Kin, of
from cellformer.engine.models.architectures.llama import (
    ATTENDS,
    MLP,
    STATES,
    WRITES,
    LlamaSpec,
    Turn,
    usual,
)
from cellformer.engine.models.architectures.mamba2 import Mamba2Spec
from cellformer.engine.models.architectures.mixtral import experts
from cellformer.engine.models.architectures.moe_kin import OF_TRAINING, granitemoe_pieces, of_shared
from cellformer.engine.models.foreign import (
    GATED,
    Config,
    Piece,
    Pieces,
    apart,
    grouped_heads,
    layout,
    linear,
    norm,
    outside,
)
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

KINDS = {  # of layers, in configs: newer and older names, and letters
    **dict.fromkeys(("linear_attention", "mamba", "M"), STATES),
    **dict.fromkeys(("full_attention", "attention", "*"), ATTENDS),
    **dict.fromkeys(("moe", "E"), WRITES),
    **dict.fromkeys(("mlp", "-"), MLP),
}
STATE_NAMES = {  # mamba2's names of fields -> theirs
    "num_heads": "mamba_n_heads",
    "head_dim": "mamba_d_head",
    "n_groups": "mamba_n_groups",
    "state_size": "mamba_d_state",
    "conv_kernel": "mamba_d_conv",
    "expand": "mamba_expand",
    "use_conv_bias": "mamba_conv_bias",
    "use_bias": "mamba_proj_bias",
    "layer_norm_epsilon": "rms_norm_eps",
}
BACKBONE = {"W_E": "backbone.embeddings", "W_U": "lm_head", "ln_final": "backbone.norm_f"}
NEMOTRON_NAMES = {
    "num_heads": "mamba_num_heads",
    "head_dim": "mamba_head_dim",
    "state_size": "ssm_state_size",
    "hidden_act": "mamba_hidden_act",
    **{same: same for same in ("n_groups", "conv_kernel", "use_bias", "use_conv_bias")},
}
NEMOTRON_OLDER = {  # names of fields -> newer ones
    "layer_types": "layers_block_type",
    "num_local_experts": "n_routed_experts",
    "mamba_n_groups": "n_groups",
    "mamba_d_conv": "conv_kernel",
    "mamba_dt_min": "time_step_min",
    "mamba_conv_bias": "use_conv_bias",
}
NEMOTRON_IGNORED = (
    *("expand", "chunk_size", "time_step_limit", "time_step_max", "time_step_floor"),
    *(
        "residual_in_fp32",
        "rescale_prenorm_residual",
        "attention_bias",
        "sliding_window",
        "use_mamba_kernels",
        "mamba_ssm_cache_dtype",
    ),
    *("mamba_proj_bias", "mamba_chunk_size", "mamba_expand", "mamba_dt_max", "mamba_dt_limit"),
    *("mamba_dt_init_floor", "moe_shared_expert_overlap", "n_shared_experts"),
    *("num_nextn_predict_layers", "mtp_layers_block_type", "mtp_hybrid_override_pattern"),
    *("num_logits_to_keep", "num_hidden_layers"),
)
STATE_DEFAULTS = {"mamba_n_heads": 128, "mamba_n_groups": 1, "mamba_d_state": 256}


@dataclass(frozen=True, repr=False)
class HybridSpec(GroupedSpec, Mamba2Spec):
    """The fields of attention and experts, those of states, and Falcon-H1's multipliers."""

    read_by_attention: float = 1.0  # of what attention reads
    attention_scale: float = 1.0  # of what attention writes,
    states_scale: float = 1.0  # and states
    gate_scale: float = 1.0  # of an MLP's gate
    mlp_scale: float = 1.0  # of what an MLP writes


def with_states(
    c: Config,
    spec: LlamaSpec,
    names: Mapping[str, str] = STATE_NAMES,
    d_inner: int | None = None,
    **own: Any,
) -> HybridSpec:
    """A spec with the fields of states, and others of its `own`."""
    states, known = mamba2.of_heads(c, names, d_inner), ModelSpec.__dataclass_fields__
    found = {f.name: getattr(states, f.name) for f in fields(states) if f.name not in known}
    return HybridSpec.of(spec, d_state=states.d_state, bias=states.bias, **found | own)


def kinds_of(
    c: Config, field: str, kinds: Sequence[str], default: str, n_layers: int | None = None
) -> list[str]:
    """The kind of each layer, as the config lists them, or the letters of the default. Raises
    InputError for other kinds than these, and for another number of layers than there must be."""
    listed = c.listed(field, str) or [*default]
    found = [KINDS.get(name, "") for name in listed]
    for name, kind in zip(listed, found, strict=True):
        if kind not in kinds:
            known = ", ".join(name for name, kind in KINDS.items() if kind in kinds)
            raise InputError(f"{c.path}: {field} has {name!r}; write one of {known} for each layer")
    if n_layers not in (None, len(found)):
        raise InputError(
            f"{c.path}: {field} lists {len(found)} layers, but the model has {n_layers}"
        )
    return found


def of_granite(c: Config) -> HybridSpec:
    """Granite 4's spec: without experts, its expert for every token is an MLP."""
    spec = llama.granite(c, usual(c, eps_default=1e-6))
    n_experts, d_shared = c.get("num_local_experts", int, 8), c.get(SHARED, int, 1024)
    kinds = kinds_of(c, "layer_types", (STATES, ATTENDS), "M" * spec.n_layers, spec.n_layers)
    turns = c.look("position_embedding_type") == "rope"
    return with_states(
        c,
        replace(spec, position="rotary" if turns else "none", d_mlp=d_shared),
        layers=tuple((kind, WRITES if n_experts else MLP) for kind in kinds),
        n_experts=n_experts,
        n_chosen=c.get("num_experts_per_tok", int, 2),
        d_expert=spec.d_mlp,
        d_shared=d_shared,
    )


def of_bamba(c: Config) -> HybridSpec:
    """Bamba's spec. Half of each head's features rotate: the reference ignores other shares."""
    c = c.otherwise(partial_rotary_factor=0.5)
    spec = usual(c, part="partial_rotary_factor", mlp_bias=c.get("mlp_bias", bool, False))
    attends = c.listed("attn_layer_indices", int)
    kinds = [ATTENDS if n in attends else STATES for n in range(spec.n_layers)]
    return with_states(c, spec, layers=tuple((kind, MLP) for kind in kinds))


def of_falcon(c: Config) -> HybridSpec:
    """Falcon-H1's spec, with a multiplier for each part."""
    by = c.get("key_multiplier", float, 1.0)
    if not by:
        raise InputError(
            f"{c.path}: key_multiplier is 0, so all attention scores would be 0; write another "
            "number"
        )
    spec = usual(c, mlp_bias=c.get("mlp_bias", bool, False))
    gate_scale, mlp_scale = numbers(c, "mlp_multipliers", 2)
    gated = "after norm" if c.get("mamba_norm_before_gate", bool, True) else "before norm"
    return with_states(
        c,
        spec,
        d_inner=c.optional("mamba_d_ssm", int, 1024),
        layers=((ATTENDS, MLP),) * spec.n_layers,
        sqrt_d_head=sqrt(spec.d_head) / by,
        embed_scale=c.get("embedding_multiplier", float, 1.0),
        logit_scale=c.get("lm_head_multiplier", float, 1.0),
        written_bias=c.get("projectors_bias", bool, False),
        gating=gated if c.get("mamba_rms_norm", bool, False) else "alone",
        read_scale=c.get("ssm_in_multiplier", float, 1.0),
        projected_scales=numbers(c, "ssm_multipliers", len(mamba2.SCALED)),
        read_by_attention=c.get("attention_in_multiplier", float, 1.0),
        attention_scale=c.get("attention_out_multiplier", float, 1.0),
        states_scale=c.get("ssm_out_multiplier", float, 1.0),
        gate_scale=gate_scale,
        mlp_scale=mlp_scale,
    )


def numbers(c: Config, name: str, n: int) -> tuple[float, ...]:
    """A list of n numbers in a config; ones if it is missing."""
    found = c.get(name, list, [1.0] * n)
    if len(found) != n or not all(type(x) in (int, float) for x in found):
        raise InputError(f"{c.path}: {name} is {found!r}; it must be a list of {n} numbers")
    return tuple(map(float, found))


def side_by_side(b: Forward, x: Block, turn: Turn | None, window: int | None) -> Block:
    """The sum of attention and states, which read the same: [n_tokens, d_model]."""
    spec = b.spec_as(HybridSpec)
    states = parts.times(b, "ssm.added", mamba2.mixer(b, x), "ssm", spec.states_scale)
    read = parts.times(b, "attn.scaled", x, "attn.scaled", spec.read_by_attention)
    wrote = llama.attention(b, read, turn, window)  # [n_tokens, d_model]
    wrote = parts.times(b, "attn.added", wrote, "attn", spec.attention_scale)
    return b.block("mixed_out", ops.add, [states, wrote])


def scaled_mlp(b: Forward, x: Block) -> Block:
    """A gated MLP with multipliers of its gate and of what it writes: [n_tokens, d_model]."""
    spec = b.spec_as(HybridSpec)
    wrote = parts.mlp(b, x, spec.mlp_bias, gated=True, by=spec.gate_scale)
    return parts.times(b, "mlp.added", wrote, "mlp", spec.mlp_scale)


def of_nemotron(c: Config) -> HybridSpec:
    """Nemotron-H's spec: one sublayer in each layer, and attention without positions."""
    c.refuse("moe_latent_size", None, "experts must read the stream itself")
    field, letters = "layers_block_type", c.get("hybrid_override_pattern", str, "ME*-")
    kinds = kinds_of(c, field, (STATES, ATTENDS, WRITES, MLP), letters)
    c = c.otherwise(num_hidden_layers=len(kinds))
    width = c.get("mamba_num_heads", int, 128) * c.get("mamba_head_dim", int, 64)
    least = c.get("time_step_min", float, 0.001)
    spec = usual(c, 128, bias="", eps="layer_norm_epsilon", act="mlp_hidden_act")
    return with_states(
        c.otherwise(time_step_limit=[least, inf]),
        replace(spec, position="none", tied=False, gated=False),
        NEMOTRON_NAMES,
        width,
        layers=tuple((kind,) for kind in kinds),
        mlp_bias=c.get("mlp_bias", bool, False),
        shared_bias=c.get("mlp_bias", bool, False),
        d_expert=c.get("moe_intermediate_size", int, 7688),
        d_shared=c.get("moe_shared_expert_intermediate_size", int, 7688),
        **grouped(c),
    )


def nemotron_pieces(spec: HybridSpec) -> Pieces:
    """Each layer has one norm and one part, under the same name whatever its kind."""
    yield from outside(BACKBONE)
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"backbone.layers.{layer}"
        m, mixer = f"{b}.mlp", f"{f}.mixer"
        yield from norm(f"{b}.ln1", f"{f}.norm")
        yield from mamba2.of_layer(f"{b}.ssm", mixer, spec)
        yield from grouped_heads(f"{b}.attn", mixer, spec)
        yield from linear(m, mixer, GATED)
        yield from apart(m, mixer, spec.n_experts, GATED)
        yield f"{m}.router.b_choice", Piece(f"{mixer}.gate.e_score_correction_bias")
        yield from linear(f"{m}.shared", f"{mixer}.shared_experts", GATED)


def bamba_pieces(spec: HybridSpec) -> Pieces:
    """Llama's, with other names, and those of states."""
    yield from layout(
        llama.WHOLE | {"ln_final": "model.final_layernorm"},
        "model.layers.{}",
        {"ln1": "input_layernorm", "ln2": "pre_ff_layernorm"},
        grouped_heads,
        "self_attn",
        {which: f"feed_forward.{name}" for which, name in GATED},
    )(spec)
    for layer in range(spec.n_layers):
        yield from mamba2.of_layer(f"blocks.{layer}.ssm", f"model.layers.{layer}.mamba", spec)


def granite_pieces(spec: HybridSpec) -> Pieces:
    """Those of Granite's mixtures of experts, and of states."""
    yield from granitemoe_pieces(spec)
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"model.layers.{layer}"
        yield from mamba2.of_layer(f"{b}.ssm", f"{f}.mamba", spec)
        yield from of_shared(f"{b}.mlp", f"{f}.shared_mlp", spec)  # where there are no experts


SHARED = "shared_intermediate_size"

KIN = (
    Kin(
        ("granitemoehybrid",),
        "Granite 4 (IBM 2025): Mamba-2's states in most layers, attention in the others, and in "
        "each a mixture of experts, or one expert for every token. Granite's multipliers scale "
        "embedding, residual stream, scores and logits. Positions rotate only if the config says "
        "so",
        of(32, 2048, **STATE_DEFAULTS),
        of_granite,
        renames={"layers_block_type": "layer_types"},
        ignores=(*OF_TRAINING, "mamba_chunk_size"),
        NEW=None,
        forward=partial(llama.run, write=partial(experts, always=True), states=mamba2.mixer),
        pieces=granite_pieces,
    ),
    Kin(
        ("bamba",),
        "Bamba (Ganti et al. 2024): Mamba-2's states in most layers and Llama's attention in the "
        "others, with half of each head's features rotated; each has a gated MLP",
        of(32, 262144, **STATE_DEFAULTS),
        of_bamba,
        ignores=("mamba_chunk_size", "num_logits_to_keep", "z_loss_coefficient", "layer_types"),
        NEW=None,
        forward=partial(llama.run, states=mamba2.mixer),
        pieces=bamba_pieces,
    ),
    Kin(
        ("falcon_h1",),
        "Falcon-H1 (TII 2025, section 2.1): in each layer attention and Mamba-2's states side by "
        "side, then a gated MLP. Multipliers scale the inputs and outputs of all parts",
        of(32, 8192, **STATE_DEFAULTS),
        of_falcon,
        ignores=("mamba_chunk_size", "num_logits_to_keep", "layer_types"),
        NEW=None,
        forward=partial(llama.run, attend=side_by_side, mlp=scaled_mlp),
        pieces=bamba_pieces,
    ),
    Kin(
        ("nemotron_h",),
        "Nemotron-H and Nemotron 3 (NVIDIA 2025, section 2.1): each layer is one part, of any "
        "kind: Mamba-2's states, attention without positions, an MLP, or GLM-4.5's experts. MLPs "
        "and experts have no gate and use the square of ReLU",
        of(4, 4096, mlp_hidden_act="relu2", ssm_state_size=128),
        of_nemotron,
        renames=NEMOTRON_OLDER,
        ignores=NEMOTRON_IGNORED,
        NEW=None,
        EPS="layer_norm_epsilon",
        UNREAD=("mtp.*",),
        forward=partial(llama.run, write=grouped_experts, states=mamba2.mixer),
        pieces=nemotron_pieces,
    ),
)
