"""Forward: the graph of one forward pass, which an architecture's function fills with blocks.

How much of the pass a graph shows is a `Readout`: no property of a model, but of what is asked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from engine.cells.graph import Graph
from engine.models.spec import ModelSpec


@dataclass(frozen=True)
class Readout:
    """What a graph shows of a forward pass.

    Each head's own share of the residual stream, and the average that can stand in for it, would be
    a third of the cells of a model with many words, as the logits of every token would.
    """

    one_token: bool = False  # the logits of the token that the block `position` names; else of all
    by_head: bool = True  # each head's own share, `result`, and what mean ablation writes instead
    sentence: int | None = None  # tokens of each of several sentences, one after another; None: one


EVERYTHING = Readout()
ONE_TOKEN = Readout(one_token=True, by_head=False)


class Forward(Graph):
    """The graph of one forward pass, with what its architecture's function has to know."""

    def __init__(
        self,
        spec: ModelSpec,
        weights: Mapping[str, Any] | None = None,
        readout: Readout = EVERYTHING,
    ) -> None:
        super().__init__(spec, weights)
        self.spec = spec
        self.readout = readout


Architecture = Callable[[Forward, Sequence[int]], None]  # adds the blocks of a pass over the ids


@lru_cache(maxsize=64)  # a model is checked again when it is saved, and when it gets averages
def weight_shapes(architecture: Architecture, spec: ModelSpec) -> Mapping[str, tuple[int, ...]]:
    """The weights that an architecture asks for: name -> shape, vectors with one axis."""
    blank = Forward(spec)
    architecture(blank, [0])
    return {b.name: b.shape if b.axes[0] else b.shape[1:] for b in blank if b.kind == "weight"}
