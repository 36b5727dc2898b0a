"""One training step as blocks: forward over a batch, its loss, backward, the next weights.

The sentences of a batch stand one after another along one token axis; a token attends to those of
its own sentence up to itself. So each weight's gradient is one product over the whole batch.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cellformer.engine import Model, ModelSpec, WordList
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning import objective, optimizers
from cellformer.engine.learning.optimizers import Settings, Updated
from cellformer.engine.models.architectures import decoder
from cellformer.engine.models.encoding import TOKENS
from cellformer.engine.models.forward import Forward, Readout, weight_shapes

Values = dict[str, np.ndarray]
RATE, BETA1, BETA2 = 0.02, 0.9, 0.99
DEVIATION = 0.3  # of the weights that learning starts from
DECIMALS = 3  # that these have


@dataclass(frozen=True)
class Step:
    """A training step as blocks of a graph."""

    graph: Forward
    loss: Block  # [1, 1]
    updated: Mapping[str, Updated]  # by the name of the weight
    gradients: Mapping[str, Block]  # by the name of the block

    @property
    def states(self) -> dict[str, Block]:
        """The state that a step passes to the next: the name of a block -> its next value."""
        found: dict[str, Block] = {}
        for name, after in self.updated.items():
            found |= {name: after.weight}
            found |= {f"speed.{name}": after.velocity, f"size.{name}": after.second}
        return found


def graph(spec: ModelSpec, weights: Values, sentence: int) -> Forward:
    """The graph that a step is added to, for sentences of so many tokens."""
    return Forward(spec, weights, Readout(by_head=False, sentence=sentence))


def add(g: Forward, batch: int, rate: float = RATE, step: Block | None = None) -> Step:
    """Add one step on a batch of so many sentences. `step` counts the steps from 1."""
    assert g.readout.sentence is not None
    n_tokens = batch * g.readout.sentence
    decoder.forward(g, [0] * n_tokens)
    loss = objective.loss(g, [0] * n_tokens)
    weights = [block for block in g if block.kind == "weight"]
    gradients = backward(g, loss, tokens=TOKENS)
    shared = optimizers.settings(g, rate=rate, beta1=BETA1, beta2=BETA2, step=step)
    return Step(g, loss, updated(g, weights, gradients, shared), gradients)


def updated(
    g: Forward,
    weights: Iterable[Block],
    gradients: Mapping[str, Block],
    shared: Settings,
    decays: bool = True,
) -> dict[str, Updated]:
    """Add the next value of each weight, and of the optimizer's two states of it, by its name."""
    found = {}
    for w in weights:
        begins = np.zeros(w.shape)
        speed, size = (g.input(f"{what}.{w.name}", begins, w.axes) for what in ("speed", "size"))
        found[w.name] = optimizers.updated(g, w, gradients[w.name], speed, size, shared, decays)
    return found


def start(spec: ModelSpec, seed: int) -> Values:
    """Random initial weights, rounded to a few decimals."""
    rng = np.random.default_rng(seed)
    shapes = weight_shapes(decoder.forward, spec)
    return {n: np.round(rng.normal(0, DEVIATION, s), DECIMALS) for n, s in shapes.items()}


def batches(ids: np.ndarray, batch: int) -> Iterator[np.ndarray]:
    """The sentences of one step after another, endlessly: ids [batch, words]."""
    first = 0
    while True:
        yield ids[(first + np.arange(batch)) % len(ids)]
        first += batch


def inputs(rows: np.ndarray) -> Values:
    """The inputs of a batch: the tokens, and the words that follow them."""
    column = rows.astype(float)
    return {"tokens": column[:, :-1].reshape(-1, 1), "loss.targets": column[:, 1:].reshape(-1, 1)}


def learn(step: Step, ids: np.ndarray, batch: int) -> Iterator[tuple[float, Values]]:
    """Endless steps: the loss of each batch, before the step, and the weights after it."""
    g, counter = step.graph, "step"
    state = {name: g.inputs[name] for name in step.states}
    for n, rows in enumerate(batches(ids, batch), 1):
        values = filled(g, state | inputs(rows) | {counter: np.array([[float(n)]])})
        state = {name: values[after.name] for name, after in step.states.items()}
        yield float(values[step.loss.name][0, 0]), {name: state[name] for name in step.updated}


def learnt(spec: ModelSpec, words: tuple[str, ...], held: Callable[[str], np.ndarray]) -> Model:
    """The model in a saved workbook; `held` gives the values of a block's cells.

    Raises InputError for a value that is not a number.
    """
    shapes = weight_shapes(decoder.forward, spec)
    weights = {name: held(name).reshape(shape) for name, shape in shapes.items()}
    return Model(spec, weights, WordList(words))


def ids_of(sentences: Sequence[Sequence[str]], words: Sequence[str]) -> np.ndarray:
    """Sentences as ids: int64 [sentences, words]."""
    return np.array([[words.index(word) for word in s] for s in sentences])
