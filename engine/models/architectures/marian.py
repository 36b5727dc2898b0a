"""Marian (Junczys-Dowmunt et al. 2018), which translates, and Pegasus (Zhang et al. 2020), which
summarizes: BART with sinusoidal positions, and without a norm of what is embedded. Pegasus has its
norms before sublayers, and after the last layer."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cellformer.engine.models.architectures import bart
from cellformer.engine.models.architectures.bart import BartSpec
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.spec import ModelSpec
from cellformer.engine.models.tensors import TensorEntry

MODEL_TYPES = ("marian", "pegasus")
EPS = bart.EPS
UNREAD = (*bart.UNREAD, "*.embed_positions.weight")  # tables of sines, which are computed
ROUNDING = 1e-6  # of the sines in a file of float32

forward, pieces = bart.forward, bart.pieces


def as_held(spec: ModelSpec, held: Mapping[str, TensorEntry]) -> ModelSpec:
    """The spec of a checkpoint with these tensors. A file may have tables of positions; those that
    are no sines are read as they are, as learned ones."""
    spec = bart.as_held(spec, held)
    assert isinstance(spec, BartSpec)
    sines = bart.clock(spec.n_ctx, spec)
    tables = [held[name] for name in held if name.endswith(".embed_positions.weight")]
    near = (np.allclose(t.fetch(), sines, rtol=0, atol=ROUNDING) for t in tables)
    if all(t.shape == sines.shape for t in tables) and all(near):
        return spec
    return replace(spec, position="learned")


def read_config(c: Config) -> ModelSpec:
    """Marian's config, or Pegasus'."""
    translates = c.get("model_type", str, "marian") == "marian"
    if translates:
        c.assume(vocab_size=58101, decoder_start_token_id=58100)
        words = c.get("vocab_size", int)
        c.refuse("share_encoder_decoder_embeddings", True, "both stacks have the same words here")
        c.refuse("decoder_vocab_size", words, "both stacks have the same words here")
    c.assume(decoder_start_token_id=0)
    before = {"normalize_before": not translates, "normalize_embedding": False}
    bart.as_computed(c, before | {"static_position_embeddings": True})
    return BartSpec(
        position="sinusoidal",
        norm_after=translates,
        final_norm=not translates,
        **bart.of_kin(c),
    )
