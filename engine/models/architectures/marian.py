"""Marian (Junczys-Dowmunt et al. 2018), which translates, and Pegasus (Zhang et al. 2020), which
summarizes: BART with sinusoidal positions, and without a norm of what is embedded. Pegasus has its
norms before sublayers, and after the last layer."""

from engine.models.architectures import bart
from engine.models.architectures.bart import BartSpec
from engine.models.foreign import Config
from engine.models.spec import ModelSpec

MODEL_TYPES = ("marian", "pegasus")
EPS = bart.EPS
UNREAD = (*bart.UNREAD, "*.embed_positions.weight")  # tables of sines, which are computed

forward, as_held, pieces = bart.forward, bart.as_held, bart.pieces


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
