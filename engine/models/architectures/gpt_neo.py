"""GPT-Neo (Black et al. 2021; the TinyStories models): GPT-2 with alternating local (windowed) and
global attention, scores not divided by sqrt(d_head), and no biases of queries, keys and values."""

from functools import partial
from typing import Any

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import parts
from cellformer.engine.models.architectures.llama import of_gpt, run
from cellformer.engine.models.foreign import Config, grouped_heads, layout
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("gpt_neo",)
EPS = "layer_norm_epsilon"  # the config's name for what keeps its norms' divisors above zero
WORDS = ("hidden_size", "num_heads", "num_layers")
NEW = {"activation_function": "gelu_new"}
WHOLE = {
    "W_E": "transformer.wte",
    "W_pos": "transformer.wpe",
    "W_U": "lm_head",
    "ln_final": "transformer.ln_f",
}
NORMS = {"ln1": "ln_1", "ln2": "ln_2"}
MLP = {"in": "mlp.c_fc", "out": "mlp.c_proj"}

forward = partial(run, norm=parts.layer_norm)


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
    return of_gpt(
        c,
        EPS,
        WORDS,
        n_ctx=c.get("max_position_embeddings", int),
        d_mlp=c.get("intermediate_size", int, 4 * c.get("hidden_size", int)),
        activation=c.activation("activation_function"),
        position="learned",
        sqrt_d_head=1.0,
        windows=tuple(window if kind == "local" else None for kind in kinds),
    )


def pair(listed: list[Any]) -> tuple[list[str], int]:
    """A pattern of layer kinds and its number of repetitions: [["global", "local"], 12]. Anything
    else gives no layer."""
    kinds, times = listed if len(listed) == 2 else ([], 0)
    fits = isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds)
    return (kinds, times) if fits and isinstance(times, int) else ([], 0)


pieces = layout(
    WHOLE,
    "transformer.h.{}",
    NORMS,
    partial(grouped_heads, out="out_proj", keys="h"),
    "attn.attention",
    MLP,
)
