"""Sensitivity: which weights, heads and MLPs move a word's logit most, and how good the estimates
are.

A gradient describes a small change. For setting a weight or a part to 0 it gives only an estimate,
so each estimate is shown beside the real effect:

- weight × gradient, for single weights (first order);
- attribution patching, for heads and MLPs: the gradient by their switch (Nanda 2023; Syed et al.
  2023, section 3);
- integrated gradients, the mean of that gradient as the switch goes from 1 to 0 (Sundararajan et
  al. 2017, section 3).
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.batch import Change, filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import Name
from cellformer.engine.learning import objective
from cellformer.engine.models.encoding import TOKENS
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.engine.studies import ablation
from cellformer.engine.studies.addition import LEAD, LOSS, Addition, Option
from cellformer.engine.studies.part_names import said
from cellformer.engine.studies.study import Asked, Study

STEPS = 16  # of integrated gradients, each at the middle of its part of the way


class Weight(NamedTuple):
    """One weight, and the effect on the objective of setting it to 0."""

    cell: Annotated[str, "its name"]
    value: Annotated[float, "its value", "+.4f"]
    gradient: Annotated[float, "gradient of the objective by this weight", "+.4f"]
    estimate: Annotated[float, "estimated change of the objective if this weight were 0", "+.4f"]
    effect: Annotated[float, "real change of the objective", "+.4f"]


class Slope(NamedTuple):
    """A cell that somebody typed, and how the objective changes with it."""

    cell: Annotated[str, "its name"]
    value: Annotated[float, "its value", "+.6g"]
    gradient: Annotated[float, "gradient of the objective by this weight", "+.6g"]
    product: Annotated[float, "weight times gradient", "+.6g"]


class Group(NamedTuple):
    """The weights of a block, or of all blocks of a head."""

    name: Annotated[str, "its name", said]
    n: Annotated[int, "number of weights", ","]
    size: Annotated[float, "sum of the absolute values of the gradients", ".4f"]
    product: Annotated[float, "sum of weight × gradient", "+.4f"]


class Part(NamedTuple):
    """A head, an MLP or an expert, and the effect on the objective of switching it off."""

    name: Annotated[str, "a head, an MLP or an expert", said]
    patching: Annotated[float, "attribution patching", "+.4f"]
    integrated: Annotated[float, "integrated gradients", "+.4f"]
    effect: Annotated[float, "the real effect", "+.4f"]


@dataclass(frozen=True)
class Sensitivity:
    """The gradient of a single cell, the objective `of`, by all weights and parts."""

    graph: Graph
    forward: Graph  # the same without the backward pass: what edits are tried in
    of: Block
    gradients: dict[str, np.ndarray]  # by weight: [rows, columns], 0 where it does not matter
    switches: dict[str, Block]  # by the part that they switch: their gradients

    @property
    def value(self) -> float:
        """The objective's value."""
        return float(self.graph.values[self.of.name][0, 0])

    def largest(self, n: int, times_weight: bool = False) -> list[Weight]:
        """The n weights with the largest |gradient|, or with the largest |weight × gradient|."""
        size = {
            name: np.abs(g * self._weights(name) if times_weight else g)
            for name, g in self.gradients.items()
        }
        names, sizes = list(size), [x.ravel() for x in size.values()]
        starts = np.cumsum([0, *map(len, sizes)])
        cells = []
        for k in ranked(np.concatenate(sizes), n):
            b = int(np.searchsorted(starts, k, side="right")) - 1
            i, j = divmod(k - int(starts[b]), self.gradients[names[b]].shape[1])
            cells.append((names[b], i, j))
        return [self._weight(cell, self._effect({cell: 0.0})) for cell in cells]

    def _weight(self, cell: tuple[str, int, int], effect: float) -> Weight:
        name, i, j = cell
        value = float(self._weights(name)[i, j])
        gradient = float(self.gradients[name][i, j])
        return Weight(f"{name}[{i},{j}]", value, gradient, -value * gradient, effect)

    def _weights(self, name: str) -> np.ndarray:
        """A weight's values, read from its file if they are there."""
        return np.asarray(self.graph.values[name])

    def _effect(self, change: Change) -> float:
        """The change of the objective under a change of cells."""
        live = Evaluator(self.forward)
        for (name, i, j), value in change.items():
            live.set(name, i, j, value)
        return float(live[self.of.name][0, 0]) - self.value

    def groups(self, heads: bool = False) -> list[Group]:
        """Sums over each weight block; or over all blocks of a head, an MLP or a norm together."""
        sums: dict[str, list[tuple[int, float, float]]] = {}
        for name, g in self.gradients.items():
            path = (heads and Name(name).path) or name
            product = float((g * self._weights(name)).sum())
            sums.setdefault(path, []).append((g.size, float(np.abs(g).sum()), product))
        return [
            Group(name, *(sum(column) for column in zip(*found, strict=True)))
            for name, found in sums.items()
        ]

    def parts(self) -> list[Part]:
        """Every head, MLP and expert switched off: two estimates and the real effect."""
        return [
            Part(
                name,
                -self._slopes(name, [1.0]),
                -self._slopes(name, MIDDLES),
                self._effect(ablation.off(self.forward, name)),
            )
            for name in self.switches
        ]

    def _slopes(self, part: str, places: Sequence[float]) -> float:
        """The mean gradient by a part's switch over some values of the switch."""
        found = filled(self.graph, {f"{part}.{ablation.SWITCH}": np.reshape(places, (-1, 1, 1))})
        return float(np.mean(found[self.switches[part].name]))


MIDDLES = tuple((np.arange(STEPS) + 0.5) / STEPS)


def of_logit(graph: Graph, row: int, target: int, rival: int | None = None) -> Sensitivity:
    """The sensitivity of a word's logit at a token, or of its lead over a rival. Adds the backward
    blocks to the graph. Raises InputError for a token or a word out of range."""
    row = row % graph["logits"].shape[0]
    of = objective.logit(graph, row, target, rival)
    forward = copy(graph)
    forward.blocks = dict(graph.blocks)
    forward.readers = {name: list(readers) for name, readers in graph.readers.items()}
    weights = [block for block in graph if block.kind == "weight"]
    switches = {name: graph[f"{name}.{ablation.SWITCH}"] for name in ablation.parts(graph)}
    found = backward(graph, of, to=[*weights, *switches.values()])
    gradients = {
        w.name: graph.values[found[w.name].name] if w.name in found else np.zeros(w.shape)
        for w in weights
    }
    reached = {name: found[b.name] for name, b in switches.items() if b.name in found}
    return Sensitivity(graph, forward, of, gradients, reached)


def errors(parts: Sequence[Part]) -> Iterator[tuple[str, float]]:
    """The mean absolute error of each estimate over all parts."""
    for name in ("patching", "integrated"):
        gaps = [abs(getattr(part, name) - part.effect) for part in parts]
        yield name, sum(gaps) / max(len(gaps), 1)


# --- as rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A weight, or a part: the effect that its gradient predicts, and the real one."""

    rival: Annotated[str, "word whose logit is subtracted; empty: none"]
    kind: Annotated[str, "weight or part"]
    name: Annotated[str, "name of the cell or the part"]
    value: Annotated[float, "as it is", ".4f"]
    gradient: Annotated[float | None, "gradient of the objective by the weight", "+.4f"]
    estimate: Annotated[float, "estimated change of the objective if this weight were 0", "+.4f"]
    integrated: Annotated[float | None, "of a part, integrated gradients", "+.4f"]
    effect: Annotated[float, "real change of the objective", "+.4f"]


@dataclass(frozen=True)
class Options:
    """The length of the lists."""

    top: Annotated[int, "Number of rows in each list."] = 20

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError(f"top is {self.top}, but it must be at least 1")


def measured(asked: Asked) -> Sensitivity:
    """The gradient of a logit, or of its lead over another. Raises InputError."""
    rival = asked.word(asked.rival, "--rival") if asked.rival else None
    return of_logit(asked.graph, asked.row, asked.word(asked.target), rival)


def _rows(asked: Asked) -> tuple[str, list[Row]]:
    asked.allow(STEPS)
    found, words = measured(asked), asked.words
    rival = words[asked.word(asked.rival, "--rival")] if asked.rival else ""
    largest = [w for times in (False, True) for w in found.largest(asked.options.top, times)]
    return words[asked.word(asked.target)], [
        *(
            Row(rival, "weight", w.cell, w.value, w.gradient, w.estimate, None, w.effect)
            for w in dict.fromkeys(largest)
        ),
        *(
            Row(rival, "part", p.name, 1.0, None, p.patching, p.integrated, p.effect)
            for p in found.parts()
        ),
    ]


STUDY = Study(
    "gradient",
    "Rank the weights, heads and MLPs by their effect on the target word's logit.",
    Row,
    _rows,
    Options,
)


# --- in a workbook ------------------------------------------------------------------------------


def _go_back(graph: Graph, passage: Passage) -> None:
    """Add the backward pass of the target's lead over its rival, at the position."""
    words = (int(graph.inputs[word][0, 0]) for word in ("position", "target", "rival"))
    backward(graph, objective.logit(graph, *words), tokens=TOKENS)


def _read(facts: Mapping[str, Any], model: Model, passage: Passage) -> bool | None:
    if facts.get("gradient_of", LEAD) not in (LEAD, LOSS):
        raise ValueError("no such gradient")
    return True if facts.get("gradient_of") == LEAD else None


ADDITION = Addition(
    "gradient",
    (Option("gradient", bool, "Include the gradient of every cell."),),
    instead="‘cellformer gradient’ works with any model",
    ends=_go_back,
    gradient_of=LEAD,
    look=(
        "The sheet Gradient shows how every weight changes the lead of the target over the "
        "rival. The sheet Backward shows how every other cell changes this lead. The sheet Play "
        "shows the target and the rival.",
    ),
    facts=lambda _: {"gradient_of": LEAD},
    read=_read,
)
