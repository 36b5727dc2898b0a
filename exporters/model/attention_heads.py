"""The heads that the sheet Attention chooses among, and formulas that read a block of the chosen
one.

They are alike in all that the sheet shows, so that one formula reads the same cell of any of them:
`INDEX(CHOOSE(head,range,range,...),row,column)`. A head that is made otherwise, such as one of a
layer with linear attention, is no choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import INDEX, INT
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models import ops
from cellformer.engine.studies.lens import operands
from cellformer.exporters.compose.lookups import one_of
from cellformer.exporters.model.model_book import ModelBook

PATCHES = (ops.patched, ops.patched_seen)
AFTER_PRODUCT = (ops.soft_cap, ops.farther, ops.biased)  # what turns a product into a score
MOST = 200  # ranges in a formula, which has at most 8,192 characters


class Step(NamedTuple):
    """The blocks of a head, from its queries, keys and values to its output."""

    path: str
    layer: int
    number: int  # of the head in its layer
    q: Block
    k: Block
    v: Block
    product: Block  # of queries and keys, scaled
    after: tuple[Block, ...]  # the last one has the scores
    scores: Block
    total: Block  # of exponentials
    pattern: Block
    mix: Block  # values, weighted by the pattern
    result: Block | None  # what is written into the stream, where the model's blocks show it

    @property
    def sink(self) -> Block | None:
        """A score that belongs to no word."""
        return operands(self.total).get("sink")

    @property
    def present(self) -> Block | None:
        """1 for each word that is there, 0 for each that pads the sentence."""
        return operands(self.product).get("present")


def steps(graph: Graph) -> list[Step]:
    """The heads of a model's own pass, from words to words of the same sentence."""
    found = (
        _step(graph, block)
        for block in graph
        if block.leaf == "pattern" and block.kind == "computed" and not block.passes
        if block.layer is not None and block.axes == ("token", "token")
    )
    return [step for step in found if step]


def keys_seen(mask: Mask, query: Expression, n_keys: int) -> Expression:
    """The number of keys that a query sees at most, itself included: back to the beginning of its
    chunk or window."""
    if mask.sentence:
        return query + 1 - INT(query / mask.sentence) * mask.sentence
    return expression(mask.window or n_keys)


def _step(graph: Graph, pattern: Block) -> Step | None:
    """The blocks of a head by its pattern; None where they are made otherwise than here."""
    own = unpatched(pattern)
    mixes = [reader for reader, _ in graph.readers[pattern.name] if reader.op is ops.mix]
    if own.op is not ops.fraction or not mixes:
        return None
    exps = unpatched(operands(own)["x"])
    if exps.op is not ops.exp:
        return None
    scores = product = unpatched(operands(exps)["x"])
    after: list[Block] = []
    while product.op in AFTER_PRODUCT:
        after.insert(0, product)
        product = unpatched(operands(product)["x"])
    if product.op is not ops.scores:
        return None
    read, (mix,) = operands(product), mixes
    return Step(
        path=pattern.path,
        layer=pattern.layer or 0,
        number=int((pattern.head or "h0")[1:]),
        q=read["q"],
        k=read["k"],
        v=operands(mix)["v"],
        product=product,
        after=tuple(after),
        scores=scores,
        total=unpatched(operands(own)["total"]),
        pattern=pattern,
        mix=mix,
        result=_result(graph, pattern.path),
    )


def _result(graph: Graph, path: str) -> Block | None:
    """The head's output, which is added to the residual stream."""
    name = f"{path}.result"
    found = unpatched(graph[name]) if name in graph.blocks else None
    return found if found and found.op is ops.switched_linear else None


def unpatched(block: Block) -> Block:
    """The block behind a patch, without the patch."""
    while block.op in PATCHES:
        block = operands(block)["x"]
    return block


def alike(book: ModelBook, most: int = MOST) -> list[Step]:
    """The heads that are made like the first one, from layers with as many of them, layer by
    layer. If there are very many, only the heads of the first layers."""
    every = steps(book.graph)
    kinds = [_kind(book, step) for step in every]
    like = [step for step, kind in zip(every, kinds, strict=True) if kind == kinds[0]]
    layers = [[*found] for _, found in groupby(like, lambda step: step.layer)]
    layers = [found for found in layers if len(found) == len(layers[0])]
    n_layers = max(1, most // len(layers[0]))
    return [step for found in layers[:n_layers] for step in found[:most]]


def _kind(book: ModelBook, step: Step) -> tuple[object, ...]:
    """All that two heads share if one formula reads both."""
    read = (step.q, step.k, step.v, step.scores, step.pattern, step.mix)
    return (
        *((block.shape, book.places[block.name].turned) for block in read),
        *(block.op for block in step.after),
        step.mix.leaf,
        step.product.mask.causal,
        *(block is None for block in (step.sink, step.present, step.result)),
    )


@dataclass(frozen=True)
class Chosen:
    """Formulas over the blocks of the head whose place in the list, from 1, is in a cell."""

    book: ModelBook
    steps: Sequence[Step]
    place: Area

    def cell(self, of: Callable[[Step], Expression]) -> Expression:
        """A cell, or a formula, that each head has."""
        each = [of(step) for step in self.steps]
        return each[0] if len(each) == 1 else one_of(each, self.place)

    def at(self, column: Callable[[Step], tuple[Block, int]], row: Expression) -> Expression:
        """The entry of a column of a block at a row, counted from 0: of a word, as a rule."""
        blocks = [column(step) for step in self.steps]
        lines = self.cell(lambda step: _line(*column(step)))
        if blocks[0][0].shape[0] == 1:
            return lines
        turned = self.book.places[blocks[0][0].name].turned
        return INDEX(lines, 1, row + 1) if turned else INDEX(lines, row + 1, 1)

    def entry(self, of: Callable[[Step], Block], row: Expression, col: Expression) -> Expression:
        """The entry of a block at a row and a column, counted from 0."""
        first = of(self.steps[0])
        areas = self.cell(lambda step: of(step).area)
        if first.shape == (1, 1):
            return areas
        at = (col, row) if self.book.places[first.name].turned else (row, col)
        return INDEX(areas, *(k + 1 for k in at))


def _line(block: Block, column: int) -> Area:
    return block.area[:, column]
