"""Llama's kin: architectures that are Llama's pass with other values of its spec, a row each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cellformer.engine.models import parts, rope
from cellformer.engine.models.architectures import llama, olmo2
from cellformer.engine.models.architectures.llama import AFTER, EPS, LlamaSpec, alternating, usual
from cellformer.engine.models.architectures.phi3 import joined_mlp
from cellformer.engine.models.foreign import WINDOWED, Config, Pieces
from cellformer.engine.models.forward import Architecture, Forward
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


def olmo(g: Forward, ids: Sequence[int]) -> None:
    """OLMo's forward pass: LayerNorm without weights."""
    llama.run(g, ids, lambda ln, x, eps: parts.standardize(ln, "out", x, eps))


def nemotron(g: Forward, ids: Sequence[int]) -> None:
    """Nemotron's forward pass: LayerNorm whose gain is 1 + w."""
    llama.run(g, ids, parts.layer_norm_above_one)


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
    for layer in range(spec.n_layers):
        yield from joined_mlp(f"blocks.{layer}.mlp", f"model.layers.{layer}.mlp", spec)


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
        forward=nemotron,
    ),
    Kin(
        ("olmo",),
        "OLMo (Groeneveld et al. 2024, section 2.1): Llama's pass with LayerNorm that has no "
        "weights; queries, keys and values that stay within a bound, if the config sets one",
        of(32, 2048),
        lambda c: usual(c, eps="", norm="layer", bound=c.optional("clip_qkv", float, None)),
        EPS="",  # it is 1e-5, whatever the config says
        forward=olmo,
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
)
