"""Training: a GPT-2 style decoder fitted to sequences of ids.

Two learners make the same steps: `torch_learning` where torch is installed (extra `train`), and
`learning`, by the graph's own cells, where it is not: no slower for a thousand weights, four times
slower for a hundred thousand (benchmarks/training.py).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from engine.cells.errors import InputError
from engine.cells.name import Name
from engine.learning import in_cells
from engine.learning.recipe import Recipe
from engine.models.architectures import gpt2
from engine.models.forward import weight_shapes
from engine.models.model import Model
from engine.models.spec import ModelSpec
from engine.text.tokenizer import Tokenizer

Weights = Mapping[str, np.ndarray]  # by name
Reader = Callable[[np.ndarray], np.ndarray]  # ids [batch, n_tokens] -> logits [..., d_vocab]
Batches = Callable[[np.random.Generator, int], np.ndarray]  # how many -> ids [batch, length]


class Learner(Protocol):
    """What learns, step by step."""

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The weights by name: views, which the next step changes."""

    def step(self, n: int, ids: np.ndarray) -> float:
        """Make step n, counted from 0, on ids [batch, length]: the mean loss before it, in nats."""


@dataclass(frozen=True)
class Progress:
    """One step of a training run: its mean loss in nats per token, and the ids it was made on."""

    step: int
    steps: int
    loss: float
    ids: np.ndarray  # [batch, length]
    weights: Weights  # views, which the next step changes


def train(
    spec: ModelSpec, recipe: Recipe, batches: Batches, seed: int
) -> Iterator[Progress | dict[str, np.ndarray]]:
    """Yield each step's progress and, last, the trained weights by name, float32."""
    rng = np.random.default_rng(seed)
    learner = _learner(spec, recipe, initial(spec, recipe, rng))
    for step in range(recipe.steps):
        ids = batches(rng, recipe.batch)  # [batch, length]
        loss = learner.step(step, ids)
        yield Progress(step, recipe.steps, loss, ids, learner.weights)
    yield _rounded(learner.weights, np.dtype(np.float32))


@np.errstate(over="ignore")  # what is beyond them is infinite, which `trained` tells
def _rounded(weights: Weights, dtype: np.dtype[Any]) -> dict[str, np.ndarray]:
    return {name: w.astype(dtype) for name, w in weights.items()}


def has_torch() -> bool:
    """Whether torch is there to make the steps."""
    return find_spec("torch") is not None


def _learner(spec: ModelSpec, recipe: Recipe, weights: Weights) -> Learner:
    if not has_torch():
        return in_cells.Learner(gpt2.forward, spec, recipe, weights)
    from engine.learning import in_torch

    return in_torch.Learner(spec, recipe, weights)


def reader(spec: ModelSpec, weights: Weights) -> Reader:
    """What gives the logits of a decoder with these weights."""
    if not has_torch():
        return in_cells.reader(gpt2.forward, spec, weights)
    from engine.learning import in_torch

    return in_torch.reader(spec, weights)


def initial(spec: ModelSpec, recipe: Recipe, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Initial weights by name: gains 1, biases 0, matrices normal."""
    weights: dict[str, np.ndarray] = {}
    for name, shape in weight_shapes(gpt2.forward, spec).items():
        leaf = Name(name).leaf
        if len(shape) == 1:
            weights[name] = np.full(shape, float(leaf == "w"))
        else:
            writes = leaf in ("W_O", "W_out")
            scale = recipe.residual_scale if writes else recipe.scale
            scale = recipe.embed_scale if leaf == "W_E" else scale
            weights[name] = rng.normal(0, scale, shape)
    return weights


def trained(spec: ModelSpec, weights: Weights, words: Tokenizer, half: bool = False) -> Model:
    """The model of trained weights, with the config that it is saved with as GPT-2 is.

    `half` rounds the weights to float16, which they are then saved as. Raises InputError for one
    that is beyond what these numbers hold.
    """
    dtype = np.dtype(np.float16 if half else np.float32)
    rounded = {name: w.astype(np.float64) for name, w in _rounded(weights, dtype).items()}
    if not all(np.isfinite(w).all() for w in rounded.values()):
        raise InputError(f"weights grew beyond {dtype.name}; try a lower --learning-rate")
    no_marks = {"bos_token_id": None, "eos_token_id": None}  # GPT-2's own are beyond the words
    config = {**gpt2.config(spec), **no_marks, "dtype": dtype.name}
    return Model(spec, rounded, words, architecture=gpt2.forward, config=config)
