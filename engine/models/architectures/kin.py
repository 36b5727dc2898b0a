"""Llama's kin: architectures that are Llama's pass with other values of its spec, a row each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cellformer.engine.models import parts, rope
from cellformer.engine.models.architectures import llama, olmo2
from cellformer.engine.models.architectures.llama import AFTER, EPS, LlamaSpec, alternating, usual
from cellformer.engine.models.architectures.phi3 import joined_mlps
from cellformer.engine.models.foreign import WINDOWED, Config, Piece, Pieces, grouped_heads, layout
from cellformer.engine.models.forward import Architecture
from cellformer.engine.models.spec import ModelSpec

SILU = {"hidden_act": "silu"}


@dataclass
class Kin:
    """An architecture, declared as a module is (see `architectures`)."""

    MODEL_TYPES: tuple[str, ...]
    doc: str
    assumes: Mapping[str, Any]  # the reference's defaults, of what a config leaves out
    read: Callable[[Config], LlamaSpec]
    NEW: Mapping[str, Any] = field(default_factory=lambda: SILU)
    EPS: str = EPS
    forward: Architecture = llama.forward
    pieces: Callable[[ModelSpec], Pieces] = llama.pieces

    def read_config(self, c: Config) -> ModelSpec:
        """The spec of a config."""
        c.assume(**self.assumes)
        return self.read(c)


def of(layers: int, context: int, **more: Any) -> dict[str, Any]:
    """Defaults of the number of layers and of the context."""
    return {"num_hidden_layers": layers, "max_position_embeddings": context, **more}


def of_stablelm(c: Config) -> LlamaSpec:
    """StableLM's sizes. Raises InputError for a head_dim that its attention does not take."""
    d_head = c.divide("hidden_size", "num_attention_heads")
    c.refuse("head_dim", d_head, "heads have hidden_size / num_attention_heads features")
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
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}.attn", f"model.layers.{layer}.self_attn"
        for kind, count, which in (("h", spec.n_heads, "q"), ("kv", spec.kv_heads, "k")):
            for n in range(count):
                gain = Piece(f"{f}.{which}_layernorm.norms.{n}.weight")
                yield f"{b}.{kind}{n}.{which}_norm.w", gain


def of_starcoder(c: Config) -> LlamaSpec:
    """StarCoder2's spec."""
    for name, only in (("norm_type", "layer_norm"), ("mlp_type", "default")):  # of its first files
        c.refuse(name, only, f"only {only!r} is known")
    c.ignore("activation_function", "layer_norm_epsilon", "scale_attn_weights")
    c.ignore("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32")
    bias, windows = c.get("use_bias", bool, True), llama.everywhere(c)
    layer = partial(usual, eps="norm_epsilon", norm="layer", gated=False)
    return layer(c, bias="use_bias", mlp_bias=bias, windows=windows)


def of_olmo3(c: Config) -> LlamaSpec:
    """OLMo 3's spec."""
    spec = usual(c, theta=5e5, by_kind=True, norms="after")
    windows = alternating(c, spec.n_layers, c.get("sliding_window", int, 4096), every=4)
    return replace(spec, windows=windows, local=rope.of_kind(c, spec.d_head, WINDOWED, 5e5))


def of_exaone(c: Config) -> LlamaSpec:
    """EXAONE 4.0's spec."""
    spec, window = usual(c, bias=""), c.optional("sliding_window", int, 4096)
    windows = alternating(c, spec.n_layers, window, c.get("sliding_window_pattern", int, 4))
    still = llama.without_window(windows) if window else ()
    return replace(spec, norms="after", qk_norm=True, windows=windows, still=still)


def of_glm(c: Config) -> LlamaSpec:
    """GLM-4's spec."""
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
    """ERNIE 4.5's spec."""
    spec = usual(c, d_head=128, theta=5e5, bias="use_bias", rope_neighbours=True)
    return replace(spec, mlp_bias=spec.qkv_bias, tied=c.get("tie_word_embeddings", bool, True))


KIN = (
    Kin(
        ("arcee",),
        "Arcee's AFM (Arcee AI 2025): Llama with an MLP that has no gate, and the square of ReLU",
        of(32, 4096, hidden_act="relu2"),
        lambda c: usual(c, mlp_bias=c.get("mlp_bias", bool, False), gated=False),
        NEW={"hidden_act": "relu2"},
    ),
    Kin(
        ("ernie4_5",),
        "ERNIE 4.5 (Baidu 2025, section 2): Llama, where neighbouring features turn; biases "
        "everywhere, if the config has them",
        of(18, 131072),
        of_ernie,
    ),
    Kin(
        ("exaone4",),
        "EXAONE 4.0 (LG AI Research 2025, section 2): Llama's parts with norms after each sublayer "
        "and norms of queries and keys. The large model has sliding windows in three layers of "
        "four, and the fourth does not turn",
        of(32, 2048),
        of_exaone,
        pieces=partial(llama.pieces, norms=AFTER),
    ),
    Kin(
        ("glm", "glm4"),
        "GLM-4 (Team GLM 2024, section 2): Llama's pass, where neighbouring features turn, half of "
        "each head's; one tensor for gate and input. Its successor of 2025 (`glm4`) also has a "
        "norm after each sublayer",
        of(40, 131072),
        of_glm,
        pieces=glm_pieces,
    ),
    Kin(
        ("helium",),
        "Helium (Kyutai 2025): Llama, where neighbouring features turn",
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
        ("nemotron",),
        "Nemotron (Parmar et al. 2024, section 2.1): Llama's pass with LayerNorm whose gain is 1 + "
        "w, an MLP without a gate, the square of ReLU; half of each head's features turn",
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
        "OLMo (Groeneveld et al. 2024, section 2.1): Llama's pass with LayerNorm that has no "
        "weights; queries, keys and values that stay within a bound, if the config sets one",
        of(32, 2048),
        lambda c: usual(c, eps="", norm="layer", bound=c.optional("clip_qkv", float, None)),
        EPS="",  # always 1e-5
        forward=partial(llama.run, norm=lambda ln, x, eps: parts.standardize(ln, "out", x, eps)),
    ),
    Kin(
        ("olmo3",),
        "OLMo 3 (OLMo Team 2025, section 3.2): OLMo 2 with sliding windows in three layers of "
        "four, which turn without scaling, whatever extends the others",
        of(32, 2048),
        of_olmo3,
        forward=olmo2.forward,
        pieces=olmo2.pieces,
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
        "StableLM (Bellagente et al. 2024, section 2): Llama's parts with LayerNorm and partial "
        "rotary positions; the model of 12 billion parameters has attention and MLP in parallel on "
        "the same norm, and norms of each head's queries and keys",
        of(32, 4096, vocab_size=50304, hidden_size=2560, intermediate_size=6912)
        | {"num_attention_heads": 32, "num_key_value_heads": 32},
        of_stablelm,
        EPS="layer_norm_eps",
        forward=partial(llama.run, norm=parts.layer_norm, attend=llama.attention_normed_by_head),
        pieces=stablelm_pieces,
    ),
    Kin(
        ("starcoder2",),
        "StarCoder2 (Lozhkov et al. 2024, section 6.1): LayerNorm, rotary positions, grouped keys "
        "and values, sliding windows in every layer, an MLP without a gate, and biases",
        of(30, 4096, hidden_act="gelu_pytorch_tanh", num_key_value_heads=2)
        | {"tie_word_embeddings": True, "use_bias": True},
        of_starcoder,
        NEW={"hidden_act": "gelu_pytorch_tanh", "sliding_window": None},
        EPS="norm_epsilon",
        forward=partial(llama.run, norm=parts.layer_norm),
        pieces=layout(
            llama.WHOLE,
            "model.layers.{}",
            llama.BEFORE,
            grouped_heads,
            attn="self_attn",
            mlp={"in": "mlp.c_fc", "out": "mlp.c_proj"},
        ),
    ),
)
