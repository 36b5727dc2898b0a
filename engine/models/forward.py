"""Forward: the graph of one forward pass, which an architecture's function fills with blocks.

How much of the pass a graph shows is a `Readout`, which belongs to the question and not to the
model.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, TypeVar

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.graph import Graph, Readable
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.cells.texts import readable
from cellformer.engine.models import ops
from cellformer.engine.models.spec import ModelSpec
from cellformer.engine.text.tokenizer import Tokenizer, shown

SOURCE = "source"  # the axis of the tokens that the encoder of two stacks reads


@dataclass(frozen=True)
class Readout:
    """The part of a forward pass that a graph shows.

    For a large vocabulary some blocks are left out: each head's own output, with its average for
    mean ablation, would be a third of all cells, and so would the logits of every token.
    """

    one_token: bool = False  # the logits of the token that the block `position` names; else of all
    by_head: bool = True  # each head's own share, `result`, and what mean ablation writes instead
    sentence: int | None = None  # tokens of each of several sentences, one after another; None: one


EVERYTHING = Readout()
ONE_TOKEN = Readout(one_token=True, by_head=False)


S = TypeVar("S", bound=ModelSpec)


@explained_class
class Forward(Graph):
    """The graph of one forward pass, with the inputs of an architecture's function that fills
    it."""

    def __init__(
        self,
        spec: ModelSpec,
        weights: Mapping[str, Any] | None = None,
        readout: Readout = EVERYTHING,
    ) -> None:
        super().__init__(spec, weights)
        self.spec = spec
        self.readout = readout
        self.source: Sequence[int] = (0,)  # the ids that the encoder of two stacks reads
        self.vocabulary: Tokenizer | None = None  # of what it reads,
        self.reader: Tokenizer | None = None  # of a source sentence,
        self.outputs: Tokenizer | None = None  # and of the words that get a logit
        self._owner = ("", "")  # a prefix, and that of the weights which stand for its own

    def spec_as(self, kind: type[S]) -> S:
        """The spec, of the kind that an architecture makes of its configs."""
        assert isinstance(self.spec, kind)
        return self.spec

    def with_weights_of(self, owner: str) -> Self:
        """This part without weights of its own: it uses another part's weights, under that
        part's whole name."""
        scoped = copy(self)
        scoped._owner = (self.prefix, f"{owner}.")
        return scoped

    def weight(self, name: str, *axes: str) -> Block:
        """The weight of that name, or the one that stands for it; a vector in a block of its own,
        so that what it adds to the stream here has a name."""
        own, owner = self._owner
        shared = self.blocks.get(owner + (self.prefix + name).removeprefix(own)) if owner else None
        if shared is None:
            return super().weight(name, *axes)
        return shared if len(axes) == 2 else self.block(name, ops.same, shared)

    def labels(self, axis: str, side: int, values: Readable) -> Sequence[str]:
        """The tokens, numbered, or the words of the vocabulary."""
        if self.vocabulary is None or self.outputs is None:
            return ()
        if axis == "vocab_out":
            return [readable(text) for text in self.outputs.texts]
        if axis == "vocab":
            return shown((self.outputs if side else self.vocabulary).texts)
        reader = (axis in (SOURCE, "vocab_source") and self.reader) or self.vocabulary
        if axis == "vocab_source":
            return shown(reader.texts)
        tokens = {"token": "tokens", SOURCE: f"{ENCODER}.tokens"}.get(axis, "")
        if tokens not in self.blocks:
            return ()
        texts = shown(reader.texts)
        return [f"{t} {texts[int(i)]}" for t, i in enumerate(values[tokens][:, 0])]


Architecture = Callable[[Forward, Sequence[int]], None]  # adds the blocks of a pass over the ids


@lru_cache(maxsize=64)  # a model is checked again when it is saved, and when it gets averages
def weight_shapes(architecture: Architecture, spec: ModelSpec) -> Mapping[str, tuple[int, ...]]:
    """The weights that an architecture uses: name -> shape; vectors have one axis."""
    blank = Forward(spec)
    architecture(blank, [0])
    return {b.name: b.shape if b.axes[0] else b.shape[1:] for b in blank if b.kind == "weight"}
