"""A model: its spec, its weights, its vocabulary, and the function that builds its graph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from engine.cells.errors import InputError
from engine.cells.graph import Graph
from engine.cells.stored import Stored
from engine.models.architectures.decoder import decoder
from engine.models.spec import ModelSpec
from engine.models.tokenizer import Tokenizer

Architecture = Callable[[ModelSpec, Mapping[str, np.ndarray] | None, Sequence[int]], Graph]


@dataclass(frozen=True)
class Model:
    """Everything that a forward pass needs but the prompt.

    Raises InputError when a weight is missing, has a wrong shape, is not finite, or is not used.
    """

    spec: ModelSpec
    weights: Mapping[str, Any]  # by name: an array, or a Stored one
    vocabulary: Tokenizer
    outputs: Tokenizer | None = None  # the words that get a logit; None: the vocabulary
    architecture: Architecture = decoder
    config: Mapping[str, Any] = field(default_factory=dict)  # config.json, if it came with one
    averages: Mapping[str, np.ndarray] = field(default_factory=dict)  # see `ablation.averaged`
    exact: "Model | None" = None  # this one with all digits; see `checkpoint.with_decimals`

    def __post_init__(self) -> None:
        blank = self.architecture(self.spec, None, [0])
        wanted = {b.name: b.shape for b in blank if b.kind == "weight"}
        given = {
            name: values.shape if isinstance(values, Stored) else np.atleast_2d(values).shape
            for name, values in self.weights.items()
        }
        faults = [f"{name} is missing" for name in wanted if name not in given]
        faults += [f"{name} is not a weight of this model" for name in given if name not in wanted]
        faults += [
            f"{name} has shape {_by(given[name])}, not {_by(shape)}"
            for name, shape in wanted.items()
            if name in given and given[name] != shape
        ]
        faults += [
            f"{name} holds a value that is not finite"
            for name, values in self.weights.items()
            if not (isinstance(values, Stored) or np.isfinite(values).all())
        ]
        if faults:
            raise InputError("weights do not fit the spec: " + "; ".join(faults))

    def graph(self, ids: Sequence[int]) -> Graph:
        """The graph of a forward pass over the ids. Raises InputError for ids it cannot take."""
        self.check_ids(ids)
        graph = self.architecture(self.spec, self.weights, ids)
        for name, values in self.averages.items():
            graph.fill(name, values)
        return graph

    def check_ids(self, ids: Sequence[int]) -> None:
        """Raise InputError for no ids, too many, or one that is out of range."""
        if not len(ids):
            raise InputError("the prompt is empty; give at least one token")
        if len(ids) > self.spec.n_ctx:
            raise InputError(
                f"the prompt has {len(ids)} tokens, and the context holds {self.spec.n_ctx}; "
                "shorten the prompt"
            )
        for i in ids:
            if not 0 <= i < self.spec.d_vocab:
                raise InputError(
                    f"token id {i} is out of range; ids run from 0 to {self.spec.d_vocab - 1}"
                )

    def save(self, folder: str | Path) -> None:
        """Write config.json and model.safetensors, in the layout that the model came from."""
        from engine.models import checkpoint  # it makes models, so it imports this module

        checkpoint.save(self, folder)


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
