"""Training by cells, in numpy alone: a model's weights, and one step after another.

The forward pass, its loss and every gradient are one graph, whose blocks hold a whole batch at
once. The step is a graph too (`optimizers`): of all matrices as one row of numbers, with weight
decay, and of all gains and biases as another, without. Everything is float64.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.graph import Graph
from cellformer.engine.learning import objective, optimizers
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.recipe import IGNORED, Recipe
from cellformer.engine.models.forward import Forward, Readout

ALL_TOKENS = Readout(by_head=False)
DECAYS = "matrices"
WAS = "was."  # before the names of what a step starts from


class Learner:
    """A model in training: it begins with given weights, and every step changes them in place."""

    def __init__(self, decoder: Decoder, recipe: Recipe, weights: Mapping[str, np.ndarray]) -> None:
        matrices = {name: w for name, w in weights.items() if w.ndim > 1}
        vectors = {name: w for name, w in weights.items() if w.ndim == 1}
        kinds = {DECAYS: matrices, "vectors": vectors}
        self._rows = [_Row(name, kind) for name, kind in kinds.items() if kind]
        self._decoder, self._recipe = decoder, recipe
        self._update = _update(self._rows, recipe)
        self._passes: dict[int, tuple[Graph, dict[str, Block]]] = {}  # by how many tokens

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The weights by name: views, which the next step changes."""
        return {name: w for row in self._rows for name, w in row.weights.items()}

    def step(self, n: int, ids: np.ndarray) -> float:
        """Make step n, counted from 0, on ids [batch, length]; returns the mean loss before it, in
        nats."""
        weights = {name: np.atleast_2d(w) for name, w in self.weights.items()}
        known = self.counted(ids)  # [batch, n_tokens]
        graph, gradients = self._pass(known.shape[1], weights)
        batch = {
            "tokens": np.maximum(ids[:, :-1], 0),
            "loss.targets": np.maximum(ids[:, 1:], 0),
            "loss.share": known / known.sum(),
        }
        columns = {name: x[..., None].astype(np.float64) for name, x in batch.items()}
        values = filled(graph, weights | columns)
        self._move(n, {name: summed(values[block.name]) for name, block in gradients.items()})
        return float(values["loss"].sum())

    def counted(self, ids: np.ndarray) -> np.ndarray:
        """Whether each next word counts in the loss: [batch, n_tokens]."""
        return np.asarray(ids[:, 1:] != IGNORED)

    def _pass(
        self, n_tokens: int, weights: Mapping[str, np.ndarray]
    ) -> tuple[Graph, dict[str, Block]]:
        """The forward pass over so many tokens with its loss, and the gradient of each weight."""
        if n_tokens not in self._passes:
            graph = blank_pass(self._decoder, weights, n_tokens)
            gradients = backward(graph, objective.loss(graph, [0] * n_tokens))
            self._passes[n_tokens] = graph, {k: x for k, x in gradients.items() if k in weights}
        return self._passes[n_tokens]

    def _move(self, n: int, gradients: Mapping[str, np.ndarray]) -> None:
        """Update every weight, given its gradient [rows, columns]."""
        inputs = {"step": np.array([[n + 1.0]]), "rate": np.array([[self._recipe.rate(n)]])}
        for row in self._rows:
            inputs |= row.inputs(gradients)
        values = filled(self._update, inputs)
        for row in self._rows:
            row.take(values)


class _Row:
    """Weights as one row of numbers, with their optimizer state: float64 [1, n] each."""

    def __init__(self, name: str, weights: Mapping[str, np.ndarray]) -> None:
        self.name = name
        self.values = np.concatenate([w.ravel() for w in weights.values()], dtype=np.float64)[None]
        self.velocity, self.second = np.zeros_like(self.values), np.zeros_like(self.values)
        parts = np.split(self.values[0], np.cumsum([w.size for w in weights.values()])[:-1])
        shapes = {name: w.shape for name, w in weights.items()}
        self.weights = {k: x.reshape(s) for (k, s), x in zip(shapes.items(), parts, strict=True)}

    def inputs(self, gradients: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The inputs of the update. Weights without a gradient do not affect the loss: their
        gradient is 0."""
        found = [gradients.get(name, np.zeros(w.shape)) for name, w in self.weights.items()]
        return {
            self.name: self.values,
            f"gradient.{self.name}": np.concatenate([x.ravel() for x in found])[None],
            f"{WAS}velocity.{self.name}": self.velocity,
            f"{WAS}second.{self.name}": self.second,
        }

    def take(self, values: Mapping[str, np.ndarray]) -> None:
        """Update the weights in place, since the weights by name are views."""
        self.values[...] = values[f"next.{self.name}"]
        self.velocity, self.second = values[f"velocity.{self.name}"], values[f"second.{self.name}"]


def _update(rows: Sequence[_Row], recipe: Recipe) -> Graph:
    """The optimizer's step for every row of weights, as a graph."""
    g = Graph()
    blocks = [
        [g.input(name, x, ("", row.name)) for name, x in row.inputs({}).items()] for row in rows
    ]
    gradients = [gradient for _, gradient, *_ in blocks]
    clipping = optimizers.clip(g, gradients, g.input("most", recipe.clip))
    (beta1, beta2), decay = recipe.betas, recipe.weight_decay
    shared = optimizers.settings(
        g, recipe.method, beta1=beta1, beta2=beta2, decay=decay, clipping=clipping
    )
    for weight, gradient, velocity, second in blocks:
        optimizers.updated(g, weight, gradient, velocity, second, shared, weight.name == DECAYS)
    return g


def blank_pass(decoder: Decoder, weights: Mapping[str, np.ndarray], n_tokens: int) -> Forward:
    """The forward pass over so many tokens, all 0, to be filled with others."""
    graph = Forward(decoder.spec, weights, ALL_TOKENS)
    decoder.forward(graph, [0] * n_tokens)
    return graph


def summed(gradient: np.ndarray) -> np.ndarray:
    """The sum over the batch axis, if there is one: [rows, columns]."""
    return gradient.sum(axis=0) if gradient.ndim > 2 else gradient


def reader(
    decoder: Decoder, weights: Mapping[str, np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """A function from ids [batch, n_tokens] to logits [batch, n_tokens, d_vocab]."""
    passes: dict[int, Graph] = {}  # by how many tokens

    def logits(ids: np.ndarray) -> np.ndarray:
        n = ids.shape[1]
        if n not in passes:
            passes[n] = blank_pass(decoder, weights, n)
        return filled(passes[n], {"tokens": ids[..., None].astype(np.float64)})["logits"]

    return logits
