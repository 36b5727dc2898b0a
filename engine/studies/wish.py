"""Wishes: the smallest change of some weights that makes a model predict a given word.

A word comes first if its lead over each rival's logit is at least MARGIN. Of all changes of the
chosen weights that achieve this, the one of least Euclidean norm is sought. Gradient descent in
small steps finds a first one. Then, as in sequential quadratic programming (Nocedal and Wright
2006, chapter 18), the leads are linearized around the current change, and the smallest change that
would suffice is computed; on the way to it, the change is cut to where the word just comes first.
Each is smaller than the one before. The result need not be the smallest of all: a smaller one may
exist far from where the descent ended.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError, nearest
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.graph import Graph
from cellformer.engine.learning import objective
from cellformer.engine.models.model import Model

MARGIN = 0.01  # logits by which the word leads in the end: 1 % more probable than the next
N_RIVALS = 16  # the likeliest other words, whose leads are looked at together
PARTS, MOST_BEGUN = 20, 200  # of the way that a first step goes; how many of them
MOST_STEPS = 50  # that make the change smaller
SHORTEST = 1e-4  # of such a step, below which it leads nowhere
LEAST_GAIN = 1e-4  # of the norm, below which none is taken
COARSE, FINE = 1e-3, 1e-9  # of the norm: how close to the margin a step ends, and the last one
FAINT = 1e-12  # of a weight: a change that is left out, for files hold 15 digits
SWEEPS = 1000  # over the rivals, to weigh their leads against each other


@dataclass(frozen=True)
class Wish:
    """A change of weights that makes a word come first."""

    change: dict[str, np.ndarray]  # by weight: what is added to it, [rows, columns]
    weights: dict[str, np.ndarray]  # the same weights as they were
    before: np.ndarray  # [d_vocab], the probability of each word
    after: np.ndarray

    @property
    def n(self) -> int:
        """The number of weights that may change."""
        return sum(w.size for w in self.weights.values())

    @property
    def norm(self) -> float:
        """The Euclidean norm of the change."""
        return norm(self.change)

    @property
    def share(self) -> float:
        """The norm of the change divided by the norm of the weights; infinite if these are all
        0."""
        whole = norm(self.weights)
        return self.norm / whole if whole else np.inf

    def cells(self) -> list[tuple[str, int, int, float, float]]:
        """Every changed weight with its old and new value, largest change first."""
        found = [
            (name, i, j, float(was[i, j]), float(now[i, j]))
            for name, was in self.weights.items()
            for now in [was + self.change[name]]
            for i, j in np.argwhere(now != was).tolist()
        ]
        return sorted(found, key=lambda cell: -abs(cell[4] - cell[3]))

    def made(self, model: Model) -> Model:
        """The changed model."""
        changed = {
            name: np.reshape(self.weights[name] + change, np.shape(model.weights[name]))
            for name, change in self.change.items()
        }
        return replace(model, weights={**model.weights, **changed})


def norm(weights: dict[str, np.ndarray]) -> float:
    """The Euclidean norm of several blocks together."""
    return float(np.sqrt(sum((w**2).sum() for w in weights.values())))


def chosen(graph: Graph, parts: Sequence[str]) -> list[Block]:
    """The weights under some names, `blocks.1.attn.h2` or `W_E` (default: all).

    Raises InputError for a name with no weight under it.
    """
    weights = [block for block in graph if block.kind == "weight"]
    for part in parts:
        if not any(block.under(part) for block in weights):
            names = {b.name for b in weights} | {b.path for b in weights}
            raise InputError(
                f"no weight has a name that begins with {part!r}; "
                f"{nearest(part, sorted(names - {''}))}"
            )
    return [block for block in weights if not parts or any(map(block.under, parts))]


@explained
def smallest_change(graph: Graph, row: int, target: int, parts: Sequence[str] = ()) -> Wish:
    """The smallest change found of the weights under `parts` (default: all) that makes the word
    `target` come first at a token; none if it already does. Adds the backward blocks to the graph.

    Raises InputError for a name with no weight under it, and if no such change is found.

    >>> graph = cf.graph("dialogue-game", "<BOS> Pietro chiama Paolo")
    >>> cf.smallest_change(graph, -1, 7, ["blocks.1.mlp.W_out"]).norm > 0
    True
    """
    search = Search(graph, row, target, chosen(graph, parts))
    delta = search.begun()
    if search.lead(delta) < MARGIN:
        raise InputError(
            f"no change of {', '.join(parts) or 'the weights'} was found that makes the word the "
            f"most likely. The best change misses this goal by {MARGIN - search.lead(delta):.3g} "
            "logits; let more weights change, or choose another word"
        )
    if delta.any():
        delta = search.shortened(delta)
    change = {
        name: np.where(np.abs(d) > FAINT * np.abs(search.weights[name]), d, 0.0)
        for name, d in search.split(delta).items()
    }
    probs = (graph.values["probs"], filled(search.forward, search.changed(change))["probs"])
    return Wish(change, search.weights, *(p[search.row] for p in probs))


class Search:
    """The leads of a word over all others, as a function of a change of weights, [n_weights]."""

    def __init__(self, graph: Graph, row: int, target: int, blocks: Sequence[Block]):
        self.row, self.target = row % graph["logits"].shape[0], target
        self.forward = copy(graph)
        self.forward.blocks = dict(graph.blocks)
        self.graph = graph
        self.weights = {b.name: np.asarray(graph.values[b.name]) for b in blocks}
        rival = int(target == 0)
        self.of = objective.logit(graph, self.row, target, rival)
        found = backward(graph, self.of, to=blocks)
        self.gradients = {b.name: found[b.name].name for b in blocks if b.name in found}
        self.scale = 1.0  # of the last step that made the change smaller

    def split(self, delta: np.ndarray) -> dict[str, np.ndarray]:
        """A change [n_weights] as blocks, [rows, columns] each."""
        ends = np.cumsum([w.size for w in self.weights.values()])[:-1]
        parts = zip(self.weights.items(), np.split(delta, ends), strict=True)
        return {name: part.reshape(w.shape) for (name, w), part in parts}

    def changed(self, change: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The weights after a change, as blocks."""
        return {name: self.weights[name] + part for name, part in change.items()}

    def logits(self, delta: np.ndarray) -> np.ndarray:
        """The logits at the token after a change: [d_vocab]."""
        values = filled(self.forward, self.changed(self.split(delta)))
        return np.asarray(values["logits"][self.row])

    def lead(self, delta: np.ndarray) -> float:
        """The word's lead over its best rival after a change; -inf for NaN."""
        logits = self.logits(delta)
        lead = float(logits[self.target] - np.delete(logits, self.target).max())
        return lead if np.isfinite(lead) else -np.inf

    def slopes(self, delta: np.ndarray, n: int = N_RIVALS) -> tuple[np.ndarray, np.ndarray]:
        """The leads over the most likely rivals after a change [n_rivals], and their gradients by
        the weights [n_rivals, n_weights]."""
        logits = self.logits(delta)
        rivals = np.array([v for v in ranked(logits) if v != self.target][:n])
        inputs = self.changed(self.split(delta))
        inputs["rival"] = rivals.reshape(-1, 1, 1).astype(np.float64)
        values = filled(self.graph, inputs)
        slopes = [
            np.broadcast_to(
                values[self.gradients[name]] if name in self.gradients else 0.0,
                (len(rivals), *w.shape),
            ).reshape(len(rivals), -1)
            for name, w in self.weights.items()
        ]
        return logits[self.target] - logits[rivals], np.concatenate(slopes, axis=1)

    @np.errstate(over="ignore", invalid="ignore")  # a length that overflows leads nowhere
    def begun(self) -> np.ndarray:
        """A change that makes the word first, by gradient descent on its surprise in steps of
        one length; or the last change tried."""
        delta = np.zeros(sum(w.size for w in self.weights.values()))
        length = 0.0
        for _ in range(MOST_BEGUN):
            leads, slopes = self.slopes(delta)
            if leads.min() >= MARGIN:
                break
            step = np.exp(leads.min() - leads) @ slopes
            size = np.linalg.norm(step)
            if not (size and np.isfinite(size)):
                break
            if not length:  # a part of the way to the goal if leads were linear, or of the weights
                way = float(np.linalg.norm(smallest(slopes, MARGIN - leads)))
                length = min(way, norm(self.weights) or way) / PARTS
            delta = delta + length / size * step
        return delta

    @np.errstate(over="ignore", invalid="ignore")
    def shortened(self, delta: np.ndarray) -> np.ndarray:
        """A change after which the word is just first, from one after which it is first."""
        for _ in range(MOST_STEPS):
            if (smaller := self.better(delta)) is None:
                break
            delta = smaller
        return self.cut(delta, FINE)

    def better(self, delta: np.ndarray) -> np.ndarray | None:
        """A smaller change, on the way from this one to the smallest one if leads were linear;
        None if the search finds none."""
        leads, slopes = self.slopes(delta)
        aim = smallest(slopes, MARGIN - leads + slopes @ delta)
        most = np.linalg.norm(delta) * (1 - LEAST_GAIN)
        self.scale = min(1.0, 4 * self.scale)
        while self.scale > SHORTEST:
            found = delta + self.scale * (aim - delta)
            length = np.linalg.norm(found)
            if length and self.lead(found := found * (most / length)) >= MARGIN:
                return self.cut(found, COARSE)
            self.scale /= 2
        return None

    def cut(self, delta: np.ndarray, precision: float) -> np.ndarray:
        """A change scaled down to where the word is just first."""
        low, high = 0.0, 1.0
        while high - low > precision:
            middle = (low + high) / 2
            low, high = (low, middle) if self.lead(middle * delta) >= MARGIN else (middle, high)
        return high * delta


@np.errstate(all="ignore")
def smallest(slopes: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The x of least norm with slopes·x ≥ wanted, [n_weights].

    It is a sum of slopes with nonnegative coefficients; each in turn is set to what its own
    condition requires, until none changes (Hildreth 1957).
    """
    products = slopes @ slopes.T  # [n_rivals, n_rivals]
    weights = np.zeros(len(wanted))
    for _ in range(SWEEPS):
        before = weights.copy()
        for k in np.flatnonzero(products.diagonal()):
            gap = wanted[k] - products[k] @ weights
            weights[k] = max(0.0, weights[k] + gap / products[k, k])
        if np.abs(weights - before).max() <= 1e-12 * np.abs(weights).max():
            break
    return np.asarray(weights @ slopes)
