"""Quantization: weights rounded to a few bits, and the effect on a model's answer.

A line of weights, all that one dot product runs over, shares a scale: its largest weight becomes
the largest integer of so many bits, every other weight the nearest integer times the scale (absmax;
Dettmers et al. 2022, section 2). Lines may be cut into groups with a scale each (Dettmers &
Zettlemoyer 2023), and an asymmetric grid has a zero point, too (Jacob et al. 2018, section 2.1).
Matrices are rounded; vectors, the gains and biases, stay as they are.

`quantized` puts the rounding into a graph, with a cell of bits for all parts and one for each.
`effects` measures what rounding each part alone does, and all together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated

import numpy as np

from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.functions import IF, OR, rounded
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.groups import batches, grouped
from cellformer.engine.cells.interventions import AnyGraph, intervened
from cellformer.engine.learning import objective
from cellformer.engine.models import checkpoint, ops
from cellformer.engine.models.generate import Passage
from cellformer.engine.models.model import Model
from cellformer.engine.studies.addition import Addition, Option
from cellformer.engine.studies.nudge import COSTS, part
from cellformer.engine.studies.part_names import said
from cellformer.engine.studies.price import BATCH, log_probabilities, padded
from cellformer.engine.text.tokenizer import shown

WIDTHS = (8, 4, 3, 2)  # bits that weights can be rounded to
GROUP = 32  # weights that share a scale in GGUF
ALL, QUANTIZE, SCALE = "all", "quantize", "quant_scale"
BITS, INSTEAD, MOST = "bits", "instead", "most"  # of a part
ALL_BITS = f"{QUANTIZE}.{BITS}"  # what a part is rounded to that has nothing typed


def check(bits: object) -> None:
    """Raise InputError for anything but a list of numbers of bits."""
    listed = bits if isinstance(bits, list | tuple) and bits else [bits]
    unknown = [n for n in listed if not (isinstance(n, Real) and n in WIDTHS)]
    if unknown or listed is not bits:
        known = ", ".join(map(str, WIDTHS))
        raise InputError(
            f"weights cannot be rounded to {(unknown or listed)[0]!r} bits; give a list with "
            f"only {known}"
        )


# --- the numbers that weights are rounded to ----------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """Integers times a scale: how many bits an integer has, and which weights share a scale."""

    bits: int
    group: int = 0  # weights of a line that share a scale, where it divides the line; 0: all
    asymmetric: bool = False  # from the lowest weight to the highest, with a zero point

    def __post_init__(self) -> None:
        check([self.bits])
        if not isinstance(self.group, Integral) or self.group < 0:
            raise InputError(
                f"groups of {self.group!r} weights cannot share a scale; give 32, or 0 for a "
                "whole row"
            )

    def rounded(self, w: np.ndarray, axis: int) -> np.ndarray:
        """The weights on the grid, of the same shape; dot products run along `axis`."""
        lines = np.moveaxis(w, axis, -1)
        n = self.group if self.group and lines.shape[-1] % self.group == 0 else lines.shape[-1]
        groups = lines.reshape(-1, n)  # [n_groups, n]
        found = (self._asymmetric if self.asymmetric else self._symmetric)(groups)
        return np.moveaxis(found.reshape(lines.shape), -1, axis)

    @np.errstate(divide="ignore", invalid="ignore")
    def _symmetric(self, groups: np.ndarray) -> np.ndarray:
        """Symmetric rounding, in the layout of the ops: [n_groups, n]."""
        most = 2 ** (self.bits - 1) - 1
        scale = np.abs(groups).max(axis=1, keepdims=True) / most
        return np.where(scale == 0, groups, rounded(groups / scale) * scale)

    @np.errstate(divide="ignore", invalid="ignore")
    def _asymmetric(self, groups: np.ndarray) -> np.ndarray:
        """The grid reaches 0, which stays 0: [n_groups, n]."""
        low = np.minimum(groups.min(axis=1, keepdims=True), 0)
        high = np.maximum(groups.max(axis=1, keepdims=True), 0)
        most = 2**self.bits - 1
        scale = (high - low) / most
        zero = rounded(-low / scale)
        integers = np.clip(rounded(groups / scale) + zero, 0, most)
        return np.where(scale == 0, groups, (integers - zero) * scale)


# --- in a graph ---------------------------------------------------------------------------------


def matrices(graph: Graph) -> list[Block]:
    """The weights to round: those with more than one row."""
    return [block for block in graph if block.kind == "weight" and block.shape[0] > 1]


def axis_of(graph: Graph, weight: Block) -> int:
    """The axis of a weight's dot products: in a table of vectors, a row; in any other matrix
    [in, out], a column."""
    return int(any("?" in subscript for _, subscript in graph.readers[weight.name]))


def parts(graph: Graph) -> dict[str, list[Block]]:
    """The matrices of each part that is rounded: a head, an MLP, an embedding."""
    return grouped(matrices(graph), part)


def quantized(graph: AnyGraph) -> AnyGraph:
    """The graph with every matrix rounded on its way to its readers.

    The bits of a part are `quantize.<part>.bits`: what is typed into `quantize.<part>.instead` or
    else, if that is blank, into `quantize.bits`; anything but 8, 4, 3 and 2 counts as 0, and then
    weights are read as they are.
    """

    def formula(axis: int) -> Callable[[Graph, str, Block], Block]:
        scaled = (ops.scale_of_column, ops.scale_of_row)[axis]
        used = (ops.rounded_in_column, ops.rounded_in_row)[axis]

        def rounding(g: Graph, name: str, weight: Block) -> Block:
            most = _largest(g, part(weight))
            scale = g.block(f"{weight.name}.{SCALE}", scaled, weight, most)  # [1, out] or [in, 1]
            return g.block(name, used, weight, scale)  # as the weight

        return rounding

    return intervened(graph, {w.name: formula(axis_of(graph, w)) for w in matrices(graph)})


def _largest(g: Graph, name: str) -> Block:
    """The largest integer of a part's bits, [1, 1]; 0: its weights are not rounded."""
    at = g.at(f"{QUANTIZE}.{name}")
    if f"{at.prefix}{MOST}" in g.blocks:
        return g[f"{at.prefix}{MOST}"]
    everywhere = g.blocks.get(ALL_BITS) or g.input(ALL_BITS, 0.0)
    instead = at.input(INSTEAD, np.array([[""]], dtype=object), kind="table")
    chosen = IF(instead[0, 0] == "", everywhere[0, 0], instead[0, 0])
    known = OR(*(chosen == n for n in WIDTHS))
    bits = at.table(BITS, (1, 1), lambda *_: IF(known, chosen, 0))
    return at.block(MOST, ops.largest_integer, bits)


# --- what it does to the answer -----------------------------------------------------------------


@dataclass(frozen=True)
class Rounded:
    """The answer of a model with one part rounded, or all."""

    part: Annotated[str, "its name, or all", said]
    bits: Annotated[int, "0: nothing is rounded"]
    first: Annotated[str, "the likeliest next word"]
    probability: Annotated[float, "its own", ".4f"]
    lead: Annotated[float, "the target's logit minus the rival's", ".4f"]
    loss: Annotated[
        float | None, "mean cross-entropy of the next words; null: no next words", ".4f"
    ]


class Measure:
    """The question to a model with rounded weights: the word after a prompt at the token `row`, and
    the next words within some texts (default: the prompt).

    `target` and `rival` are the words of the lead (default: the two most likely). Raises InputError
    for ids that the model cannot take.
    """

    def __init__(
        self,
        model: Model,
        ids: Sequence[int],
        target: int | None = None,
        texts: Sequence[Sequence[int]] = (),
        row: int = -1,
    ) -> None:
        self.model, self.graph, self.row = model, model.graph(ids), row
        likeliest = ranked(self.graph.values["logits"][row])
        self.target = likeliest[0] if target is None else target
        self.rival = next((v for v in likeliest if v != self.target), self.target)
        follows = model.outputs is None and model.spec.gives == "next word"
        self.texts = [text for text in texts or [ids] if len(text) > 1] if follows else []
        self.ids = padded(model, self.texts) if self.texts else []
        self.of_text = model.graph(self.ids[0]) if self.texts else self.graph
        self.words = list(shown((model.outputs or model.vocabulary).texts))

    def effects(self, grids: Sequence[Grid]) -> Iterator[Rounded]:
        """The effect of no rounding, of every part on each grid, and of each part alone. Raises
        InputError for groups that divide no matrix's lines."""
        found = parts(self.graph)
        everything = [weight for weights in found.values() for weight in weights]
        lengths = sorted({w.shape[axis_of(self.graph, w)] for w in everything})
        for n in {grid.group for grid in grids if grid.group}:
            if all(length % n for length in lengths):
                raise InputError(
                    f"no row of weights can be divided into groups of {n}; rows have "
                    f"{', '.join(map(str, lengths))} weights, so choose a number that divides one "
                    "of these"
                )
        yield self.effect(ALL, 0, {})
        for name, weights in {ALL: everything, **found}.items():
            yield from (self.effect(name, g.bits, self.rounded(weights, g)) for g in grids)

    def rounded(self, weights: Sequence[Block], grid: Grid) -> dict[str, np.ndarray]:
        """Weights on a grid, by name."""
        own = self.graph.inputs
        return {
            w.name: grid.rounded(np.asarray(own[w.name]), axis_of(self.graph, w)) for w in weights
        }

    def effect(self, part: str, bits: int, weights: Mapping[str, np.ndarray]) -> Rounded:
        """The answer with some weights, by name, in place of the model's."""
        values = filled(self.graph, weights)
        logits, probs = values["logits"][self.row], values["probs"][self.row]
        top = int(np.argmax(logits))
        lead = float(logits[self.target] - logits[self.rival])
        return Rounded(part, bits, self.words[top], float(probs[top]), lead, self.loss(weights))

    def loss(self, weights: Mapping[str, np.ndarray]) -> float | None:
        """The mean cross-entropy of the texts' next words, in nats; None if they have none."""
        surprises: list[np.ndarray] = []
        for some in batches([*zip(self.texts, self.ids, strict=True)], BATCH):
            logs = log_probabilities(self.of_text, [ids for _, ids in some], weights)
            surprises += [
                -log[np.arange(len(text) - 1), list(text[1:])]
                for (text, _), log in zip(some, logs, strict=True)
            ]
        return float(np.concatenate(surprises).mean()) if surprises else None


# --- in a workbook ------------------------------------------------------------------------------


def _check(model: Model, asked: Mapping[str, checkpoint.Packed], most: int) -> None:
    n_weights = sum(int(np.prod(np.shape(w))) for w in model.weights.values())
    if n_weights > most:
        raise InputError(
            f"--quantize adds a formula for each of {n_weights:,} weights, above the limit of "
            f"{most:,}; ‘cellformer quantize’ works with any model"
        )


def _add_loss(graph: Graph, passage: Passage) -> None:
    """Add the loss of the prompt, if the prompt has next words."""
    if passage.n_prompt > 1 and graph["logits"].axes[1] == "vocab":
        objective.loss(graph, *objective.next_words(graph, passage.n_prompt))


ADDITION = Addition(
    "quantize",
    (Option("quantize", bool, "Include cells that round weights to 8, 4, 3 or 2 bits."),),
    lambda given: checkpoint.packed(given.name, given.model),  # the weights as a GGUF file has them
    instead="‘cellformer quantize’ works with any model",
    apart=("gradient", "nudge", "against", "steer"),
    check=_check,
    adds=lambda graph, passage, asked: quantized(graph),
    ends=_add_loss,
    sheet="Quantization",
    part=QUANTIZE,
    holds=lambda block, graph: block.name in COSTS,
    look=(
        "On the sheet Quantization, type the number of bits of the weights. Then read the new "
        "answer of the model.",
    ),
    facts=lambda packed: {} if packed else {"quantize": True},
    read=lambda facts, *_: {} if facts.get("quantize") is True else None,
)
