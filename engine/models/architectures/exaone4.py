"""EXAONE 4.0 (LG AI Research 2025, section 2): Llama's parts with norms after each sublayer and
norms of queries and keys. The large model has sliding windows in three layers of four, and the
fourth does not turn."""

from dataclasses import replace

from cellformer.engine.models.architectures import llama
from cellformer.engine.models.architectures.llama import AFTER, EPS, alternating, forward, usual
from cellformer.engine.models.foreign import Config, Pieces
from cellformer.engine.models.spec import ModelSpec

__all__ = ["EPS", "MODEL_TYPES", "NEW", "forward", "pieces", "read_config"]

MODEL_TYPES = ("exaone4",)
NEW = {"hidden_act": "silu"}


def read_config(c: Config) -> ModelSpec:
    """EXAONE 4.0's config."""
    c.assume(num_hidden_layers=32, max_position_embeddings=2048)
    spec = replace(usual(c, bias=""), norms="after", qk_norm=True)
    window = c.optional("sliding_window", int, 4096)
    every = c.get("sliding_window_pattern", int, 4)
    windows = alternating(c, spec.n_layers, window, every)
    return replace(spec, windows=windows, still=llama.without_window(windows) if window else ())


def pieces(spec: ModelSpec) -> Pieces:
    """Llama's, with other norms."""
    yield from llama.pieces(spec, AFTER)
