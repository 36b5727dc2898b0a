"""M2M-100 (Fan et al. 2021) and NLLB (NLLB Team 2022), which translate between hundreds of
languages: mBART with sinusoidal positions, and without a norm of what is embedded."""

from cellformer.engine.cells.errors import InputError
from cellformer.engine.models.architectures import bart
from cellformer.engine.models.architectures.bart import BartSpec
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.spec import ModelSpec

MODEL_TYPES = ("m2m_100",)
EPS = bart.EPS
UNREAD = (*bart.UNREAD, "*.embed_positions.weights")  # tables of sines, which are computed

forward, as_held, pieces = bart.forward, bart.as_held, bart.pieces


def read_config(c: Config) -> ModelSpec:
    """M2M-100's config. Positions count from the one after the padding token's id."""
    c.assume(vocab_size=128112, decoder_start_token_id=2, scale_embedding=True)
    c.assume(activation_function="relu")
    kin = bart.of_kin(c)
    if kin["d_model"] < 4:
        raise InputError(f"{c.path}: d_model is {kin['d_model']}; sines and cosines need 4 or more")
    first = c.get("pad_token_id", int, 1) + 1
    return BartSpec(
        position="sinusoidal",
        first_place=first,
        first_position=first,
        to_slowest=True,
        final_norm=True,
        logits_bias=False,
        **kin,
    )
