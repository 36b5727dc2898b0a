"""A model: its spec, its weights, its vocabulary, and the function that builds its graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from cellformer.engine.cells import notebook
from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.arrays import Arrays, frozen
from cellformer.engine.cells.errors import InputError, sides
from cellformer.engine.cells.stored import Stored, decimals
from cellformer.engine.cells.texts import cut
from cellformer.engine.cells.values import is_whole
from cellformer.engine.models.adapter import Adapter
from cellformer.engine.models.answering import Rules
from cellformer.engine.models.architectures import decoder
from cellformer.engine.models.forward import (
    EVERYTHING,
    Architecture,
    Forward,
    Readout,
    weight_shapes,
)
from cellformer.engine.models.spec import CLASSES, ModelSpec, TwoStackSpec
from cellformer.engine.text.tokenizer import IdsOnly, Tokenizer, mask_of, reader_of, show

SIZES = ("d_vocab", "n_ctx", "n_layers", "n_heads", "d_model", "d_head", "d_mlp")


def _held(name: str, values: Any) -> Any:
    """A weight's values as a read-only array. Raises InputError."""
    if isinstance(values, Stored):
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise InputError(
            f"{name} must be an array of numbers with the shape [rows, columns]"
        ) from None
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name} contains something that is not a number; give an array of floats")
    return frozen(array)


@explained_class
@dataclass(frozen=True)
class Model:
    """Everything that a forward pass needs except the prompt. Weights are read-only; use
    `dataclasses.replace` for a model with other weights.

    Raises InputError if a weight is missing, unused, not finite, or of a wrong shape.

    >>> model = cf.load("cat-sat")
    >>> model
    <Model decoder: 300 weights, 1 layers, 1 heads, d_model 5, 20 tokens>
    >>> graph = model.graph(model.vocabulary.encode("the cat sat"))
    """

    spec: ModelSpec
    weights: Mapping[str, Any]  # by name: an array, or a Stored one
    vocabulary: Tokenizer
    outputs: Tokenizer | None = None  # the words that get a logit; None: the vocabulary
    architecture: Architecture = field(default_factory=lambda: decoder.forward)
    config: Mapping[str, Any] = field(default_factory=dict)  # config.json, if it came with one
    averages: Mapping[str, np.ndarray] = field(default_factory=dict)  # see `ablation.averaged`
    adapter: Adapter | None = None  # read beside the weights; see `checkpoint.with_adapter`
    exact: "Model | None" = None  # this one with all digits; see `with_decimals`
    source: tuple[int, ...] = (0,)  # of two stacks: the sentence that the encoder reads,
    rules: Rules = field(default_factory=Rules)  # and what its answers may hold

    def __repr__(self) -> str:
        """Its kind and sizes."""
        spec, n_weights = self.spec, sum(prod(w.shape) for w in self.weights.values())
        return (
            f"<Model {cut(self.kind)}: {n_weights:,} weights, {spec.n_layers} layers, "
            f"{spec.n_heads} heads, d_model {spec.d_model}, {spec.d_vocab:,} tokens>"
        )

    def _repr_html_(self) -> str:
        """A card with its sizes and its first words."""
        spec = self.spec
        sizes = {"parameters": sum(prod(w.shape) for w in self.weights.values())}
        sizes |= {size: getattr(spec, size) for size in SIZES}
        words = " ".join(map(show, self.vocabulary.texts[:12]))
        facts = [(name, f"{size:,}") for name, size in sizes.items()]
        return notebook.card(
            f"Model {self.kind}", [*facts, ("gives", spec.gives), ("words", words)]
        )

    def __post_init__(self) -> None:
        weights = {name: _held(name, values) for name, values in self.weights.items()}
        averages = {name: _held(name, values) for name, values in self.averages.items()}
        object.__setattr__(self, "weights", Arrays(weights, "weight"))
        object.__setattr__(self, "averages", Arrays(averages, "average"))
        shapes = weight_shapes(self.architecture, self.spec)
        wanted = {name: (1, *shape)[-2:] for name, shape in shapes.items()}
        given = {
            name: values.shape if isinstance(values, Stored) else np.atleast_2d(values).shape
            for name, values in self.weights.items()
        }
        faults = [f"{name} is missing" for name in wanted if name not in given]
        faults += [f"{name} is not a weight of this model" for name in given if name not in wanted]
        faults += [
            f"{name} has shape {sides(given[name])}, not {sides(shape)}"
            for name, shape in wanted.items()
            if name in given and given[name] != shape
        ]
        faults += [
            f"{name} contains a value that is infinite or not a number"
            for name, values in self.weights.items()
            if not (isinstance(values, Stored) or np.isfinite(values).all())
        ]
        if faults:
            raise InputError("the weights do not match the spec: " + "; ".join(faults))

    @property
    def kind(self) -> str:
        """The name of its architecture: the config's model type, or its function's module."""
        module = self.architecture.__module__.rpartition(".")[2]
        return str(self.config.get("model_type", module))

    def graph(self, ids: str | Sequence[int], readout: Readout = EVERYTHING) -> Forward:
        """The graph of a forward pass over token ids, or over a text. An encoder-decoder reads the
        text with its encoder. Raises InputError for invalid ids."""
        if isinstance(ids, str):
            ids = self.reader.encode(ids)
            if isinstance(self.spec, TwoStackSpec):
                return self.reading(ids).graph([self.spec.start], readout)
        self.check_ids(ids)
        graph = Forward(self.spec, self.weights, readout)
        graph.source = self.source
        graph.reader = self.reader
        graph.vocabulary, graph.outputs = self.vocabulary, self.outputs or self.vocabulary
        self.architecture(graph, ids)
        if "position" in graph.blocks:
            graph.fill("position", np.array([[float(self.place_of_answer(ids))]]))
        for name, values in self.averages.items():
            graph.fill(name, values)
        return self.adapter.added(graph) if self.adapter else graph

    @property
    def read(self) -> list[int]:
        """The source sentence of an encoder-decoder; nothing for other models."""
        return list(self.source) if isinstance(self.spec, TwoStackSpec) else []

    def reading(self, ids: Sequence[int]) -> "Model":
        """This model of two stacks with another source sentence. Its graphs are over the
        decoder's tokens. Raises InputError for invalid ids."""
        if not isinstance(self.spec, TwoStackSpec):
            raise InputError(
                f"a {self.kind} model cannot read a source sentence, because it is not an "
                "encoder-decoder; give the whole text as the prompt"
            )
        self._check_tokens(ids, self.spec.n_source, self.spec.size("vocab_source"))
        return replace(self, source=tuple(ids))

    @property
    def reader(self) -> Tokenizer:
        """The tokenizer of a text that is typed: a translator's source may have its own words."""
        if isinstance(self.spec, TwoStackSpec) and isinstance(self.vocabulary, IdsOnly):
            return replace(self.vocabulary, n=self.spec.size("vocab_source"))
        return reader_of(self.vocabulary)

    def check_one_stack(self, what: str) -> None:
        """Raise InputError for an encoder-decoder; `what` needs a model that continues the
        prompt itself."""
        if self.read:
            raise InputError(
                f"a {self.kind} model has two stacks (encoder and decoder), but {what} needs a "
                "model with one stack. Choose another model, or one of the commands build, run, "
                "generate, ablate, gradient and sweep"
            )

    def merged(self) -> "Model":
        """This model with its adapter, if it has one, added into the weights."""
        if not self.adapter:
            return self
        return replace(self, weights=self.adapter.merged(self.weights), adapter=None, exact=None)

    def place_of_answer(self, ids: Sequence[int]) -> int:
        """The token whose words are ranked: an encoder's masked one, or else the last; of a
        classifier the first, which stands for the text, or the one after it. A decoder's text has
        the class of its last token that is no padding."""
        if self.spec.gives == "class" and self.spec.causal:
            padding = self.config.get("pad_token_id")
            return max((t for t, i in enumerate(ids) if i != padding), default=0)
        if self.spec.gives in CLASSES:
            return min(CLASSES.index(self.spec.gives), len(ids) - 1)
        mask = mask_of(self.vocabulary) if self.spec.gives == "masked word" else None
        return len(ids) - 1 if mask is None or mask not in ids else list(ids).index(mask)

    def with_decimals(self) -> "Model":
        """This model with each weight rounded to the shortest decimal for its float32."""
        weights = {
            name: replace(w, decimal=True)
            if isinstance(w, Stored)
            else decimals(np.asarray(w, dtype=np.float32))
            for name, w in self.weights.items()
        }
        return replace(self, weights=weights, exact=self)

    def check_ids(self, ids: Sequence[int]) -> None:
        """Raise InputError for no ids, too many, or one out of range."""
        self._check_tokens(ids, self.spec.n_ctx, self.spec.d_vocab)

    def _check_tokens(self, ids: Sequence[int], n_ctx: int, n_words: int) -> None:
        """The same for a context of `n_ctx` tokens, among `n_words`."""
        if not len(ids):
            raise InputError("the prompt is empty; give at least one token")
        if self.spec.reads == "image" and len(ids) != self.spec.n_ctx:
            raise InputError(
                f"this model needs an image of {self.spec.n_ctx:,} pixels, row by row, but you "
                f"gave {len(ids):,} pixels; give all of them"
            )
        if len(ids) > n_ctx:
            raise InputError(
                f"the prompt has {len(ids)} tokens, but the model reads at most {n_ctx}; shorten "
                "the prompt"
            )
        for i in ids:
            if not is_whole(i):
                raise InputError(f"token id {i!r} is not a whole number; ids start from 0")
        padding = self.spec.first_position - 1
        if padding > 0 and padding in ids:
            raise InputError(
                f"the prompt contains the padding token, id {padding}, and a {self.kind} model "
                "gives this token no position; leave it out"
            )
        for i in ids:
            if not 0 <= i < n_words:
                what = "token id" if self.spec.reads == "text" else "pixel"
                raise InputError(f"{what} {i} is out of range; {what}s run from 0 to {n_words - 1}")
