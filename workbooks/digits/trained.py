"""The model of the drawings: the included weights, and how many held-out drawings it gets right."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cellformer.engine import Model
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.models import checkpoint
from cellformer.engine.models.classes import Labels
from cellformer.engine.text.tokenizer import IdsOnly
from cellformer.workbooks.digits import learning
from cellformer.workbooks.digits.drawings import N_DIGITS, split

FOLDER = Path(__file__).parent.parent / "models" / "digits"


def load() -> Model:
    """The included model."""
    return checkpoint.load(FOLDER)


def model(weights: Mapping[str, np.ndarray]) -> Model:
    """The model of trained weights."""
    shape = learning.decoder()
    return Model(
        shape.spec,
        weights,
        IdsOnly(shape.spec.d_vocab),
        Labels(tuple(str(digit) for digit in range(N_DIGITS))),
        architecture=shape.forward,
        config=shape.config,
    )


def right(model: Model) -> np.ndarray:
    """Whether a model gets each held-out drawing right: [N_HELD_OUT]."""
    _, held_out = split()
    found: np.ndarray = (
        learning.guesses(Decoder.of(model), model.weights, held_out.pixels) == held_out.digits
    )
    return found
