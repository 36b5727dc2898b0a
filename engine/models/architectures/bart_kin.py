"""BART's relatives, a row each: translators, and a summarizer, with sinusoidal positions and no
norm after the embedding."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.architectures import bart
from cellformer.engine.models.architectures.bart import BartSpec
from cellformer.engine.models.architectures.kin import Kin
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.tensors import TensorEntry

ROUNDING = 1e-6  # of the sines in a file of float32


def with_tables(spec: BartSpec, held: Mapping[str, TensorEntry]) -> BartSpec:
    """The spec of a checkpoint with these tensors. Files may have tables of positions. If these
    are no sines, they count as learned ones."""
    spec = bart.as_held(spec, held)
    sines = bart.clock(spec.n_ctx, spec.d_model, spec.to_slowest)
    tables = [held[name] for name in held if name.endswith(".embed_positions.weight")]
    near = (np.allclose(t.fetch(), sines, rtol=0, atol=ROUNDING) for t in tables)
    if all(t.shape == sines.shape for t in tables) and all(near):
        return spec
    return replace(spec, position="learned")


def of_marian(c: Config) -> BartSpec:
    n_read: int | None = None  # words of the source's own vocabulary
    translates = c.get("model_type", str, "marian") == "marian"
    if translates:
        c.assume(vocab_size=58101, decoder_start_token_id=58100)
        n_words = c.get("vocab_size", int)
        if c.get("share_encoder_decoder_embeddings", bool, True):
            c.refuse("decoder_vocab_size", n_words, "stacks that share a table share its words")
        else:
            n_read = n_words
    c.assume(decoder_start_token_id=0)
    before = {"normalize_before": not translates, "normalize_embedding": False}
    bart.as_computed(c, before | {"static_position_embeddings": True})
    spec = BartSpec(
        position="sinusoidal", norm_after=translates, final_norm=not translates, **bart.of_kin(c)
    )
    if n_read is None:
        return spec
    n_words = c.optional("decoder_vocab_size", int, None) or n_read
    return replace(spec, d_vocab=n_words, d_vocab_source=n_read)


def of_m2m(c: Config) -> BartSpec:
    """M2M-100's spec. Positions count from the one after the padding token's id."""
    kin, first = bart.of_kin(c), c.get("pad_token_id", int, 1) + 1
    if kin["d_model"] < 4:
        raise InputError(
            f"{c.path}: d_model is {kin['d_model']}; positions with sines and cosines need 4 or "
            "more"
        )
    places = {"first_place": first, "first_position": first, "to_slowest": True}
    return BartSpec(position="sinusoidal", final_norm=True, logits_bias=False, **places, **kin)


kin = partial(Kin, NEW=None, EPS=bart.EPS, forward=bart.forward, pieces=bart.pieces)
KIN = (  # of what a file has beside the weights, tables of sines are computed
    kin(
        ("marian", "pegasus"),
        "Marian (Junczys-Dowmunt et al. 2018) translates, and Pegasus (Zhang et al. 2020) "
        "summarizes. Both are BART with sinusoidal positions and without a norm after the "
        "embedding. Pegasus has norms before its sublayers and after the last layer",
        {},
        of_marian,
        UNREAD=(*bart.UNREAD, "*.embed_positions.weight"),
        as_held=with_tables,
    ),
    kin(
        ("m2m_100",),
        "M2M-100 (Fan et al. 2021) and NLLB (NLLB Team 2022) translate between hundreds of "
        "languages. Both are mBART with sinusoidal positions and without a norm after the "
        "embedding",
        {"activation_function": "relu", "vocab_size": 128112, "decoder_start_token_id": 2}
        | {"scale_embedding": True},
        of_m2m,
        UNREAD=(*bart.UNREAD, "*.embed_positions.weights"),
        as_held=bart.as_held,
    ),
)
