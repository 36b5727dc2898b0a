"""ModernBERT's decoder (Weller et al. 2025, "Ettin", section 2): the same layers, but a token sees
only itself and those before it. Tokens of two layers of three see a window of the last ones.
"""

from dataclasses import replace
from functools import partial

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models import classes
from cellformer.engine.models.architectures import modernbert
from cellformer.engine.models.foreign import Config, grouped_heads
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("modernbert-decoder",)
EPS = modernbert.EPS
NEW = {"local_attention": 8, "bos_token_id": 0, "pad_token_id": 0}  # which must be numbers

forward = modernbert.forward
apart = partial(grouped_heads, out="Wo", keys="h")
pieces = partial(modernbert.pieces, heads=apart, head="lm_head")


def read_config(c: Config) -> ModelSpec:
    """Its config. Raises InputError for a classifier, and for windows without a token."""
    if classes.task(c.listed("architectures", str)):
        raise InputError(f"{c.path}: this decoder gives no class; use ModernBertDecoderForCausalLM")
    spec = modernbert.usual(c)
    half = (c.optional("local_attention", int, 128) or 0) // 2
    window = c.get("sliding_window", int, half)  # which the reference saves, and reads first
    if any(spec.near) and window < 1:
        raise InputError(
            f"{c.path}: a window has {window} tokens; set local_attention to 2 or more, or "
            "sliding_window to 1 or more"
        )
    windows = tuple(window if near else None for near in spec.near)
    return replace(spec, windows=windows, tied=c.get("tie_word_embeddings", bool, True))
