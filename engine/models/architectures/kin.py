"""Llama's kin: architectures that are Llama's pass with other values of its spec, a row each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import ops, parts, rope
from cellformer.engine.models.architectures import llama, olmo2
from cellformer.engine.models.architectures.llama import (
    AFTER,
    EPS,
    LlamaSpec,
    Ready,
    alternating,
    usual,
)
from cellformer.engine.models.foreign import (
    LLAMA3,
    WINDOWED,
    Config,
    Piece,
    Pieces,
    fused_heads,
    gains_by_head,
    grouped_heads,
    joined_heads,
    joined_mlps,
    layout,
)
from cellformer.engine.models.forward import Architecture, Forward
from cellformer.engine.models.spec import ModelSpec

SILU = {"hidden_act": "silu"}


@dataclass
class Kin:
    """An architecture, declared as a module is (see `architectures`)."""

    MODEL_TYPES: tuple[str, ...]
    doc: str
    assumes: Mapping[str, Any]  # the reference's defaults, of what a config leaves out
    read: Callable[[Config], ModelSpec]
    renames: Mapping[str, str] = field(default_factory=dict)  # other names of fields -> theirs
    ignores: tuple[str, ...] = ()  # fields that the reference does not read
    NEW: Mapping[str, Any] | None = field(default_factory=lambda: SILU)  # None: of no decoder
    EPS: str = EPS
    UNREAD: tuple[str, ...] = ()
    forward: Architecture = llama.forward
    pieces: Callable[[Any], Pieces] = llama.pieces
    as_held: Callable[[Any, Any], ModelSpec] | None = None

    def read_config(self, c: Config) -> ModelSpec:
        c.rename(**self.renames)
        c.assume(**self.assumes)
        c.ignore(*self.ignores)
        return self.read(c)


def of(layers: int, context: int, **more: Any) -> dict[str, Any]:
    """Defaults of the number of layers and of the context."""
    return {"num_hidden_layers": layers, "max_position_embeddings": context, **more}


def of_stablelm(c: Config) -> LlamaSpec:
    """StableLM's sizes. Raises InputError for a head_dim that its attention does not take."""
    d_head = c.divide("hidden_size", "num_attention_heads")
    c.refuse("head_dim", d_head, "each head must have hidden_size / num_attention_heads features")
    return usual(
        c,
        part="partial_rotary_factor",
        default_part=0.25,
        bias="",
        eps="layer_norm_eps",
        norm="layer",
        qkv_bias=c.get("use_qkv_bias", bool, False),
        qk_norm=c.get("qk_layernorm", bool, False),
        parallel=c.get("use_parallel_residual", bool, False),
    )


def stablelm_pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with a norm for each head."""
    yield from llama.pieces(spec)
    yield from gains_by_head(
        spec, lambda f, which, n: Piece(f"{f}.{which}_layernorm.norms.{n}.weight")
    )


def of_cohere(c: Config) -> LlamaSpec:
    """The spec of both generations of Command R."""
    first = c.values["model_type"] == "cohere"
    spec = usual(
        c,
        theta=5e5 if first else 1e4,
        eps="layer_norm_eps",
        norm="layer",
        tied=c.get("tie_word_embeddings", bool, True),
        parallel=True,
        rope_neighbours=True,
        logit_scale=c.get("logit_scale", float, 0.0625),
    )
    if first:
        return replace(spec, qk_norm=c.get("use_qk_norm", bool, False))
    window = c.optional("sliding_window", int, 4096)
    windows = alternating(c, spec.n_layers, window, every=c.get("sliding_window_pattern", int, 4))
    return replace(spec, windows=windows, still=llama.without_window(windows))


def cohere_pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with one norm in each layer; gains of queries and keys are rows of a matrix."""
    yield from llama.pieces(spec, {"ln1": "input_layernorm"})
    yield from gains_by_head(
        spec, lambda f, which, n: Piece(f"{f}.{which}_norm.weight", 0, n, n + 1, row=True)
    )


def of_hunyuan(c: Config) -> LlamaSpec:
    """Hunyuan's spec. Its dynamic scaling only raises the base, by `alpha`."""
    turns = Config(c.path, rope.said(c))
    if alpha := turns.get("alpha", float, 0.0):
        d_head = c.get("head_dim", int, 0) or c.divide("hidden_size", "num_attention_heads")
        theta = turns.get("rope_theta", float, c.get("rope_theta", float, 1e4))
        c = rope.instead(c, {"rope_theta": theta * alpha ** (d_head / (d_head - 2))})
    return usual(c, qk_norm=True)


def hunyuan_pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with other names of the norms of queries and keys."""
    for layer in range(spec.n_layers):
        for ours, theirs in (("q_norm", "query_layernorm"), ("k_norm", "key_layernorm")):
            f = f"model.layers.{layer}.self_attn.{theirs}.weight"
            yield f"blocks.{layer}.attn.{ours}", Piece(f)
    yield from llama.pieces(spec)


def normed_with_bias(attn: Forward) -> Ready:
    """Phi's LayerNorm of queries and keys; all heads share one for queries, and one for keys."""
    shared = {w: [attn.at(f"{w}_norm").weight(leaf, "d_head") for leaf in "wb"] for w in "qk"}

    def normed(h: Forward, which: str, x: Block) -> Block:
        own = h.at(f"{which}_norm")
        x = parts.standardize(own, "normalized", x, h.spec.norm_eps)  # [n_tokens, d_head]
        return own.block("out", ops.affine, x, *shared[which])

    return normed


def phi3_pieces(spec: ModelSpec) -> Pieces:
    """All queries, then all keys, then all values in one tensor; gate, then in, in another."""
    heads = partial(joined_heads, joined="qkv_proj", out="o_proj")
    yield from layout(llama.WHOLE, LAYERS, llama.BEFORE, heads, "self_attn", {})(spec)
    yield from joined_mlps(spec)


def of_starcoder(c: Config) -> LlamaSpec:
    for name, only in (("norm_type", "layer_norm"), ("mlp_type", "default")):  # of its first files
        c.refuse(name, only, f"only {only!r} is known")
    bias, windows = c.get("use_bias", bool, True), llama.everywhere(c)
    layer = partial(usual, eps="norm_epsilon", norm="layer", gated=False)
    return layer(c, bias="use_bias", mlp_bias=bias, windows=windows)


def of_olmo3(c: Config) -> LlamaSpec:
    spec = usual(c, theta=5e5, by_kind=True, norms="after")
    windows = alternating(c, spec.n_layers, c.get("sliding_window", int, 4096), every=4)
    return replace(spec, windows=windows, local=rope.of_kind(c, spec.d_head, WINDOWED, 5e5))


def of_exaone(c: Config) -> LlamaSpec:
    spec, window = usual(c, bias=""), c.optional("sliding_window", int, 4096)
    windows = alternating(c, spec.n_layers, window, c.get("sliding_window_pattern", int, 4))
    still = llama.without_window(windows) if window else ()
    return replace(spec, norms="after", qk_norm=True, windows=windows, still=still)


def of_glm(c: Config) -> LlamaSpec:
    return replace(
        usual(c, d_head=128, part="partial_rotary_factor", default_part=0.5, eps_default=1.5625e-7),
        qkv_bias=c.get("attention_bias", bool, True),
        out_bias=False,
        rope_neighbours=True,
        norms="both" if c.values["model_type"] == "glm4" else "before",
    )


def glm_pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with the MLP's gate and input in one tensor."""
    after = {"ln1_post": "post_self_attn_layernorm", "ln2_post": "post_mlp_layernorm"}
    yield from llama.around_mlp(spec, llama.BEFORE | after)
    yield from joined_mlps(spec)


def of_ernie(c: Config) -> LlamaSpec:
    spec = usual(c, d_head=128, theta=5e5, bias="use_bias", rope_neighbours=True)
    return replace(spec, mlp_bias=spec.qkv_bias, tied=c.get("tie_word_embeddings", bool, True))


def of_internlm(c: Config) -> LlamaSpec:
    """InternLM3's spec. Raises InputError for biases in some maps alone, as its reference does."""
    spec, biased = usual(c, d_head=128), c.get("mlp_bias", bool, False)
    if spec.qkv_bias != biased:
        raise InputError(f"{c.path}: attention_bias and mlp_bias must be equal, as in InternLM3")
    return replace(spec, mlp_bias=biased)


def of_cwm(c: Config) -> LlamaSpec:
    if rope.said(c) == {}:
        c = rope.instead(c, {"rope_type": "llama3", "factor": 16.0, **LLAMA3})
    spec = usual(c, d_head=128, theta=1e6, bias="", mlp_bias=c.get("mlp_bias", bool, False))
    window = c.optional("sliding_window", int, 8192) or None
    near = c.windowed(spec.n_layers) or [n % 4 > 0 for n in range(spec.n_layers)]
    return replace(spec, windows=tuple(window if is_near else None for is_near in near))


LAYERS = "model.layers.{}"
by_head = partial(llama.attention, norm=llama.normed_by_head)

KIN = (
    Kin(
        ("arcee",),
        "Arcee's AFM (Arcee AI 2025): Llama with an MLP that has no gate and uses the square of "
        "ReLU",
        of(32, 4096, hidden_act="relu2"),
        lambda c: usual(c, mlp_bias=c.get("mlp_bias", bool, False), gated=False),
        NEW={"hidden_act": "relu2"},
    ),
    Kin(
        ("cohere", "cohere2"),
        "Command R (Cohere 2024): parallel attention and MLP with the same LayerNorm, which has "
        "only a gain. Adjacent features rotate in pairs, and logits are multiplied by a number. "
        "Command R+ also normalizes each head's queries and keys. Command R7B (2025, section 2) "
        "has sliding windows in three of four layers, and no rotation in the fourth",
        of(40, 8192),
        of_cohere,
        NEW=SILU | {"logit_scale": 1.0},
        EPS="layer_norm_eps",
        forward=partial(llama.run, norm=parts.layer_norm_without_bias, attend=by_head),
        pieces=cohere_pieces,
    ),
    Kin(
        ("ernie4_5",),
        "ERNIE 4.5 (Baidu 2025, section 2): Llama, but adjacent features rotate in pairs. All "
        "linear maps have biases, if the config says so",
        of(18, 131072),
        of_ernie,
    ),
    Kin(
        ("exaone4",),
        "EXAONE 4.0 (LG AI Research 2025, section 2): Llama with norms after each sublayer and "
        "norms of queries and keys. The large model has sliding windows in three of four layers, "
        "and no rotation in the fourth",
        of(32, 2048),
        of_exaone,
        pieces=partial(llama.pieces, norms=AFTER),
    ),
    Kin(
        ("glm", "glm4"),
        "GLM-4 (Team GLM 2024, section 2): Llama's forward pass. Adjacent features rotate in "
        "pairs, but only half of each head's features. One tensor holds gate and input. The "
        "version of 2025 (`glm4`) also has a norm after each sublayer",
        of(40, 131072),
        of_glm,
        pieces=glm_pieces,
    ),
    Kin(
        ("helium",),
        "Helium (Kyutai 2025): Llama, but adjacent features rotate in pairs",
        of(24, 4096),
        lambda c: usual(
            c,
            128,
            theta=1e5,
            eps_default=1e-8,
            out_bias=False,
            mlp_bias=c.get("mlp_bias", bool, False),
            rope_neighbours=True,
        ),
    ),
    Kin(
        ("hunyuan_v1_dense",),
        "Hunyuan's dense models (Tencent 2025): Llama with a norm of queries and keys after "
        "their rotation",
        of(32, 2048),
        of_hunyuan,
        forward=partial(llama.run, attend=partial(llama.attention, norm_last=True)),
        pieces=hunyuan_pieces,
    ),
    Kin(
        ("internlm3",),
        "InternLM3 (Shanghai AI Laboratory 2025): Llama. All linear maps have biases, if the "
        "config says so",
        of(48, 32768, num_key_value_heads=2),
        of_internlm,
        renames={"qkv_bias": "attention_bias", "bias": "mlp_bias"},
    ),
    Kin(
        ("cwm",),
        "CWM (Meta 2025, section 2): Llama with sliding windows in all layers except the first of "
        "each four",
        of(64, 131072, num_key_value_heads=8),
        of_cwm,
        ignores=("attention_bias",),
        NEW=None,
    ),
    Kin(
        ("persimmon",),
        "Persimmon (Adept 2023): Llama's forward pass with LayerNorm, an MLP without a gate that "
        "uses the square of ReLU, and a norm of queries and keys. Half of each head's features "
        "rotate",
        of(36, 16384, hidden_act="relu2"),
        lambda c: usual(
            c,
            part="partial_rotary_factor",
            default_part=0.5,
            bias="",
            eps="layer_norm_eps",
            norm="layer",
            gated=False,
            qk_norm=c.get("qk_layernorm", bool, True),
            qkv_bias=True,
            out_bias=True,
            mlp_bias=True,
        ),
        NEW={"hidden_act": "relu2"},
        EPS="layer_norm_eps",
        forward=partial(
            llama.run, norm=parts.layer_norm, attend=partial(llama.attention, norm=normed_with_bias)
        ),
        pieces=layout(
            llama.WHOLE | {"ln_final": "model.final_layernorm"},
            LAYERS,
            llama.BEFORE | {f"attn.{w}_norm": f"self_attn.{w}_layernorm" for w in "qk"},
            fused_heads,
            "self_attn",
            {"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"},
        ),
    ),
    Kin(
        ("nemotron",),
        "Nemotron (Parmar et al. 2024, section 2.1): Llama's forward pass with a LayerNorm gain "
        "of 1 + w. The MLP has no gate and uses the square of ReLU. Half of each head's features "
        "rotate",
        of(32, 4096, hidden_act="relu2"),
        lambda c: usual(
            c,
            part="partial_rotary_factor",
            default_part=0.5,
            eps="norm_eps",
            norm="layer",
            mlp_bias=c.get("mlp_bias", bool, False),
            gated=False,
        ),
        NEW={"hidden_act": "relu2"},
        EPS="norm_eps",
        forward=partial(llama.run, norm=parts.layer_norm_above_one),
    ),
    Kin(
        ("olmo",),
        "OLMo (Groeneveld et al. 2024, section 2.1): Llama's forward pass with a LayerNorm "
        "without weights. Queries, keys and values stay within a bound, if the config sets a "
        "bound",
        of(32, 2048),
        lambda c: usual(c, eps="", norm="layer", bound=c.optional("clip_qkv", float, None)),
        EPS="",  # always 1e-5
        forward=partial(llama.run, norm=lambda ln, x, eps: parts.standardize(ln, "out", x, eps)),
    ),
    Kin(
        ("olmo3",),
        "OLMo 3 (OLMo Team 2025, section 3.2): OLMo 2 with sliding windows in three of four "
        "layers. Rotations in these layers are never scaled, even if the other layers use "
        "scaling for longer texts",
        of(32, 2048),
        of_olmo3,
        forward=olmo2.forward,
        pieces=olmo2.pieces,
    ),
    Kin(
        ("phi",),
        "Phi (Li et al. 2023: phi-1, phi-1.5, phi-2): parallel attention and MLP with the same "
        "norm of the residual stream. Rotary positions change only a part of each head's "
        "features. All linear maps have biases",
        {"num_hidden_layers": 24, "num_attention_heads": 32}
        | {"max_position_embeddings": 2048, "vocab_size": 51200, "hidden_size": 2048}
        | {"intermediate_size": 8192, "hidden_act": "gelu_new"},
        lambda c: usual(
            c,
            part="partial_rotary_factor",
            default_part=0.5,
            bias="",
            eps="layer_norm_eps",
            norm="layer",
            qkv_bias=True,
            out_bias=True,
            mlp_bias=True,
            word_bias=True,
            gated=False,
            parallel=True,
            qk_norm=c.get("qk_layernorm", bool, False),
        ),
        NEW={"hidden_act": "gelu_new"},
        EPS="layer_norm_eps",
        forward=partial(
            llama.run, norm=parts.layer_norm, attend=partial(llama.attention, norm=normed_with_bias)
        ),
        pieces=layout(
            llama.WHOLE | {"b_U": "lm_head", "ln_final": "model.final_layernorm"},
            LAYERS,
            {"ln1": "input_layernorm"}
            | {f"attn.{w}_norm": f"self_attn.{w}_layernorm" for w in "qk"},
            partial(grouped_heads, out="dense"),
            "self_attn",
            {"in": "mlp.fc1", "out": "mlp.fc2"},
        ),
    ),
    Kin(
        ("phi3",),
        "Phi-3 (Microsoft 2024): Llama's forward pass. One tensor holds queries, keys and "
        "values, and another tensor holds gate and input. Sliding windows, if any, are in every "
        "layer. Rotary positions may be partial",
        of(32, 4096),
        lambda c: usual(
            c, bias="", part="partial_rotary_factor", original=4096, windows=llama.everywhere(c)
        ),
        pieces=phi3_pieces,
    ),
    Kin(
        ("seed_oss",),
        "Seed-OSS (ByteDance 2025): Llama with biases of queries, keys and values",
        of(64, 524288),
        lambda c: usual(
            c,
            128,
            eps_default=1e-6,
            out_bias=c.get("attention_out_bias", bool, False),
            mlp_bias=c.get("mlp_bias", bool, False),
            qkv_bias=c.get("attention_bias", bool, True),
        ),
    ),
    Kin(
        ("stablelm",),
        "StableLM (Bellagente et al. 2024, section 2): Llama with LayerNorm and partial rotary "
        "positions. The model with 12 billion parameters has parallel attention and MLP with the "
        "same norm, and norms of each head's queries and keys",
        of(32, 4096, vocab_size=50304, hidden_size=2560, intermediate_size=6912)
        | {"num_attention_heads": 32, "num_key_value_heads": 32},
        of_stablelm,
        EPS="layer_norm_eps",
        forward=partial(llama.run, norm=parts.layer_norm, attend=by_head),
        pieces=stablelm_pieces,
    ),
    Kin(
        ("starcoder2",),
        "StarCoder2 (Lozhkov et al. 2024, section 6.1): LayerNorm, rotary positions, grouped "
        "keys and values, and biases. Sliding windows are in every layer, and the MLP has no gate",
        of(30, 4096, hidden_act="gelu_pytorch_tanh", num_key_value_heads=2)
        | {"tie_word_embeddings": True, "use_bias": True},
        of_starcoder,
        ignores=(
            *("activation_function", "layer_norm_epsilon", "scale_attn_weights"),
            *("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"),
        ),
        NEW={"hidden_act": "gelu_pytorch_tanh", "sliding_window": None},
        EPS="norm_epsilon",
        forward=partial(llama.run, norm=parts.layer_norm),
        pieces=layout(
            llama.WHOLE,
            LAYERS,
            llama.BEFORE,
            grouped_heads,
            attn="self_attn",
            mlp={"in": "mlp.c_fc", "out": "mlp.c_proj"},
        ),
    ),
)
