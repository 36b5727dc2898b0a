"""Training: a decoder fitted to sequences of ids.

Two learners make the same steps: `in_torch` if torch is installed (extra `train`), or else
`in_cells`, by the graph's own backward pass, which is no slower for a thousand weights, and four
times slower for a hundred thousand (benchmarks/training.py).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.models.model import Model
from cellformer.engine.text.tokenizer import Tokenizer

Weights = Mapping[str, np.ndarray]  # by name
Reader = Callable[[np.ndarray], np.ndarray]  # ids [batch, n_tokens] -> logits [..., d_vocab]
Batches = Callable[[np.random.Generator, int], np.ndarray]  # how many -> ids [batch, length]


class Learner(Protocol):
    """A model in training, with torch or in cells."""

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The weights by name: views, which the next step changes."""

    def step(self, n: int, ids: np.ndarray) -> float:
        """Make step n, counted from 0, on ids [batch, length]; returns the mean loss before it, in
        nats."""


@dataclass(frozen=True)
class Progress:
    """One step of a training run: its mean loss in nats per token, and the ids it was made on."""

    step: int
    steps: int
    loss: float
    ids: np.ndarray  # [batch, length]
    weights: Weights  # views, which the next step changes


def train(
    decoder: Decoder, recipe: Recipe, batches: Batches, seed: int
) -> Iterator[Progress | dict[str, np.ndarray]]:
    """Yield each step's progress and, last, the trained weights by name, float32."""
    rng = np.random.default_rng(seed)
    learner: Learner = _learning().Learner(decoder, recipe, decoder.initial(recipe, rng))
    for step in range(recipe.steps):
        ids = batches(rng, recipe.batch)  # [batch, length]
        yield Progress(step, recipe.steps, learner.step(step, ids), ids, learner.weights)
    yield _rounded(learner.weights, np.dtype(np.float32))


def of_words(
    decoder: Decoder,
    recipe: Recipe,
    batches: Batches,
    words: Tokenizer,
    seed: int,
    embed_scale: float | None = None,
    steps: int | None = None,
) -> Iterator[Progress | Model]:
    """Yield each step's progress and, last, the trained model, with another scale of the embedding
    or number of steps than the recipe's if they are given."""
    recipe = replace(
        recipe,
        embed_scale=recipe.embed_scale if embed_scale is None else embed_scale,
        steps=steps or recipe.steps,
    )
    yield from (
        step if isinstance(step, Progress) else trained(decoder, step, words)
        for step in train(decoder, recipe, batches, seed)
    )


@np.errstate(over="ignore")  # what is beyond them is infinite, which `trained` tells
def _rounded(weights: Weights, dtype: np.dtype[Any]) -> dict[str, np.ndarray]:
    return {name: w.astype(dtype) for name, w in weights.items()}


def has_torch() -> bool:
    """Whether torch is installed."""
    return find_spec("torch") is not None


def _learning() -> ModuleType:
    """The module that makes steps and reads logits: with torch, or in cells."""
    return import_module(f"cellformer.engine.learning.{'in_torch' if has_torch() else 'in_cells'}")


def reader(decoder: Decoder, weights: Weights) -> Reader:
    """A function from ids to the logits of a decoder with these weights."""
    found: Reader = _learning().reader(decoder, weights)
    return found


def trained(decoder: Decoder, weights: Weights, words: Tokenizer, half: bool = False) -> Model:
    """The model of trained weights. `half` rounds them to float16, for saving as such. Raises
    InputError for a weight outside that type's range."""
    dtype = np.dtype(np.float16 if half else np.float32)
    rounded = {name: w.astype(np.float64) for name, w in _rounded(weights, dtype).items()}
    if not all(np.isfinite(w).all() for w in rounded.values()):
        raise InputError(f"weights became too large for {dtype.name}; try a lower --learning-rate")
    config = {**decoder.config, "dtype": dtype.name}
    return Model(decoder.spec, rounded, words, architecture=decoder.forward, config=config)
