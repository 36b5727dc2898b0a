"""GPT-Neo (Black et al. 2021; the TinyStories models): GPT-2 with alternating local (windowed) and
global attention, scores not divided by sqrt(d_head), and no biases of queries, keys and values."""

from collections.abc import Sequence
from typing import Any

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import parts
from cellformer.engine.models.architectures.llama import LlamaSpec, run
from cellformer.engine.models.foreign import Config, Piece, Pieces, head_of, linear, norm
from cellformer.engine.models.forward import Forward
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gpt_neo",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
NEW = {"activation_function": "gelu_new"}


def forward(g: Forward, ids: Sequence[int]) -> None:
    """One forward pass over the token ids."""
    run(g, ids, parts.layer_norm)


def read_config(c: Config) -> ModelSpec:
    """GPT-Neo's config."""
    c.assume(num_layers=24, max_position_embeddings=2048, activation_function="gelu_new")
    c.assume(attention_types=[[["global", "local"], 12]])
    c.ignore("attention_layers")  # attention_types, spelt out
    n_layers, window = c.get("num_layers", int), c.get("window_size", int, 256)
    kinds: list[str] = []
    for pattern, n in map(pair, c.listed("attention_types", list)):
        kinds += pattern * min(n, n_layers + 1)
    if len(kinds) != n_layers or not set(kinds) <= {"global", "local"}:
        raise InputError(f"{c.path}: attention_types must say global or local for each layer")
    return LlamaSpec(
        d_vocab=c.get("vocab_size", int),
        d_model=c.get("hidden_size", int),
        n_ctx=c.get("max_position_embeddings", int),
        n_layers=n_layers,
        n_heads=c.get("num_heads", int),
        d_head=c.divide("hidden_size", "num_heads"),
        d_mlp=c.get("intermediate_size", int, 4 * c.get("hidden_size", int)),
        activation=c.activation("activation_function"),
        position="learned",
        norm="layer",
        final_norm=True,
        norm_eps=c.get(EPS, float, 1e-5),
        tied=c.get("tie_word_embeddings", bool, True),
        sqrt_d_head=1.0,
        out_bias=True,
        mlp_bias=True,
        gated=False,
        windows=tuple(window if kind == "local" else None for kind in kinds),
    )


def pair(listed: list[Any]) -> tuple[list[str], int]:
    """A pattern of layer kinds and its number of repetitions: [["global", "local"], 12]. Anything
    else gives no layer."""
    kinds, times = listed if len(listed) == 2 else ([], 0)
    fits = isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds)
    return (kinds, times) if fits and isinstance(times, int) else ([], 0)


def pieces(spec: ModelSpec) -> Pieces:
    """GPT-Neo's layout: Linear weights are [out, in]."""
    yield "W_E", Piece("transformer.wte.weight")
    yield "W_pos", Piece("transformer.wpe.weight")
    yield "W_U", Piece("lm_head.weight", transposed=True)
    yield from norm("ln_final", "transformer.ln_f")
    for layer in range(spec.n_layers):
        b, f = f"blocks.{layer}", f"transformer.h.{layer}"
        yield from norm(f"{b}.ln1", f"{f}.ln_1")
        yield from norm(f"{b}.ln2", f"{f}.ln_2")
        for n in range(spec.n_heads):
            a, h = f"{f}.attn.attention", f"{b}.attn.h{n}"
            for which in "QKV":
                name = f"{a}.{which.lower()}_proj.weight"
                yield f"{h}.W_{which}", head_of(name, n, spec.d_head, 0, turn=True)
            yield f"{h}.W_O", head_of(f"{a}.out_proj.weight", n, spec.d_head, 1, turn=True)
        yield f"{b}.attn.b_O", Piece(f"{f}.attn.attention.out_proj.bias")
        yield from linear(f"{b}.mlp", f"{f}.mlp", (("in", "c_fc"), ("out", "c_proj")))
