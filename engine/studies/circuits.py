"""Heads as maps between words, and between each other: QK and OV circuits, and composition.

What a head can do is in its weights alone (Elhage et al. 2021, "A mathematical framework for
transformer circuits"). The QK circuit says which word looks at which, the OV circuit which word
raises which, both as if the word stood alone in the residual stream. Composition says how much of
what one head writes a later head's queries, keys or values read. Gains of norms count; their
divisors, which depend on the text, are 1 in all but the QK circuit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Annotated, NamedTuple

import numpy as np

from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models import ops
from cellformer.engine.models.model import Model
from cellformer.engine.studies import scores
from cellformer.engine.studies.lens import operands, scoring
from cellformer.engine.studies.part_names import said

OF_WORDS = ("embed", "ln_embed.b")  # what writes a word into the stream
MOST_WORDS = 3_000  # of a vocabulary: its pairs are held in memory
WIDEST = 1_024  # residual stream, for compositions: maps from it to itself are held in memory
TINY = 1e-300  # instead of the norm of a circuit that is 0
DIVISORS = {ops.normalize.name: "scale", ops.divide_rows.name: "by"}


class Pair(NamedTuple):
    """Two words of a circuit: the first looks at, or raises, the second."""

    first: int
    second: int
    value: float


def qk(model: Model, head: str) -> np.ndarray:
    """The score of a query word (row) with a key word, as a head gives it: [n_words, n_words].
    Raises InputError for a large vocabulary."""
    graph = _small(model)
    read = operands(scores.Head(graph, head).product)
    q, k = (_of_words(graph, head, read[name]) for name in "qk")
    return np.asarray(q @ k.T * graph.values[read["scale"].name][0, 0])


def ov(model: Model, head: str) -> np.ndarray:
    """The amount that a head adds to the logit of a word (column) if it looks only at a word
    (row), up to the final norm's divisor: [n_words, n_words]. Raises InputError for a large
    vocabulary, and for logits that are not linear in the residual stream."""
    graph = _small(model)
    writes = output_weights(graph, head) @ _to_logits(graph, head)  # [d_head, n_words]
    return np.asarray(_of_words(graph, head, _v(graph, head)) @ writes)


def strongest(circuit: np.ndarray, n: int) -> list[Pair]:
    """The pairs of the largest values."""
    order = np.argsort(-circuit, axis=None, kind="stable")[:n]
    rows, cols = np.unravel_index(order, circuit.shape)
    return [Pair(int(i), int(j), float(circuit[i, j])) for i, j in zip(rows, cols, strict=True)]


def _small(model: Model) -> Graph:
    """The graph of a token, if the vocabulary's pairs can be held."""
    if model.spec.d_vocab > MOST_WORDS:
        raise InputError(
            f"circuits through {model.spec.d_vocab:,} words are too large; choose a model of at "
            f"most {MOST_WORDS:,} words"
        )
    return one_token(model)


def one_token(model: Model) -> Graph:
    """The graph of a token at the first position, where nothing is rotated."""
    return model.graph([max(model.spec.first_position, 0) % model.spec.d_vocab])


def _of_words(graph: Graph, head: str, block: Block) -> np.ndarray:
    """A head's queries, keys or values if each word stands alone in the stream that it reads, where
    no other part and no position has written: [n_words, d_head]."""
    embed = next(reader for reader, _ in graph.readers["tokens"] if reader.op is ops.embed)
    table = operands(embed)["table"]
    ids = np.arange(table.shape[0], dtype=np.float64)[:, None, None]  # [n_words, 1, 1]
    others = [
        b
        for b in scores.path(graph, block).writers
        if b.name not in OF_WORDS and b.layer != graph[f"{head}.pattern"].layer
    ]
    values = filled(graph, {"tokens": ids, **{b.name: np.zeros(b.shape) for b in others}})
    return np.broadcast_to(values[block.name], (len(ids), *block.shape))[:, 0]


def _v(graph: Graph, head: str) -> Block:
    """A head's values. Raises InputError if their output is gated."""
    z = graph[f"{head}.z"]
    if z.op is not ops.mix:
        raise InputError(
            f"the output of {said(head)} is multiplied by a gate that depends on the query token, "
            "so the weights alone do not give an OV circuit"
        )
    return operands(z)["v"]


def output_weights(graph: Graph, head: str) -> np.ndarray:
    """A head's W_O: [d_head, d_model]."""
    return np.asarray(graph.values[operands(graph[f"{head}.result"])["w"].name])


def through(graph: Graph, begin: Block, end: Block) -> np.ndarray:
    """The linear map from one block to another, with norms' divisors 1: [columns of
    `begin`, columns of `end`]."""
    way = scores.path(graph, end, begin)
    every = np.eye(begin.shape[1])[:, None, :]  # [columns, 1, columns]
    found = scores.follow(
        way,
        _without_divisors(graph, way),
        lambda block: every if block is begin else np.zeros((1, *block.shape)),
    )
    return np.asarray(np.broadcast_to(found, (len(every), *found.shape[1:]))[:, 0])


def _without_divisors(graph: Graph, way: scores.Path) -> Mapping[str, np.ndarray]:
    values = dict(graph.computed)
    for block in way.carriers:
        if block.op is not None and block.op.name in DIVISORS:
            divisor = operands(block)[DIVISORS[block.op.name]]
            values[divisor.name] = np.ones(divisor.shape)
    return values


def _to_logits(graph: Graph, head: str) -> np.ndarray:
    """The map from a head's output to the logits: [d_model, n_words]."""
    if "logits" not in graph.blocks:
        raise InputError(
            "the model does not predict words, so its heads have no OV circuit; choose a model "
            "that predicts words"
        )
    begin, end = graph[f"{head}.result"], scoring(graph)
    if begin not in scores.path(graph, end.x).writers:
        raise InputError(
            "the model's logits are not linear in the output of the heads, so there are no OV "
            "circuits"
        )
    words = np.asarray(graph.values[end.words.name])
    return np.asarray(through(graph, begin, end.x) @ (words.T if end.by_rows else words))


# --- composition ----------------------------------------------------------------------------


class Composition(NamedTuple):
    """The share of one head's output that a later head reads: 0 to 1, for queries, keys, values."""

    earlier: Annotated[str, "the head that writes", said]
    later: Annotated[str, "the head that reads", said]
    q: Annotated[float, "by its queries", ".3f"]
    k: Annotated[float, "by its keys", ".3f"]
    v: Annotated[float, "by its values", ".3f"]


@dataclass(frozen=True)
class Maps:
    """A head's weights from the residual stream, gains included: [d_model, d_head] each; W_O is
    [d_head, d_model]."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    o: np.ndarray

    @cached_property
    def squares(self) -> "Maps":
        """The products of each with itself, [d_head, d_head]: norms of products need no more."""
        q, k, v = (x.T @ x for x in (self.q, self.k, self.v))
        return Maps(q, k, v, self.o @ self.o.T)


def compositions(model: Model) -> list[Composition]:
    """The composition of every two heads of different layers: the Frobenius norm of the product
    of their circuits over the norms of each (Elhage et al. 2021, "Composition"). Raises
    InputError for a wide stream."""
    if model.spec.d_model > WIDEST:
        raise InputError(
            f"the residual stream has {model.spec.d_model:,} numbers, but cellformer computes the "
            f"composition of heads only up to {WIDEST:,}; choose a smaller model"
        )
    graph = one_token(model)
    of = {head: _maps(graph, head) for head in scores.heads(graph)}
    layer = {head: graph[f"{head}.pattern"].layer or 0 for head in of}
    wrote: dict[tuple[str, int], np.ndarray] = {}  # what a head writes, as a layer reads it
    for last in set(layer.values()):
        stream = graph[f"blocks.{last}.resid_pre"]
        for first in {n for n in layer.values() if n < last}:
            inside = [head for head in of if layer[head] == first]
            between = through(graph, graph[f"{inside[0]}.result"], stream)
            wrote |= {(head, last): of[head].o @ between for head in inside}
    return [
        _composed(earlier, later, of, wrote[earlier, layer[later]])
        for later in of
        for earlier in of
        if layer[earlier] < layer[later]
    ]


def _maps(graph: Graph, head: str) -> Maps:
    product = operands(scores.Head(graph, head).product)
    stream = graph[f"blocks.{graph[f'{head}.pattern'].layer}.resid_pre"]
    q, k, v = (through(graph, stream, b) for b in (product["q"], product["k"], _v(graph, head)))
    return Maps(q, k, v, output_weights(graph, head))


def _composed(earlier: str, later: str, of: Mapping[str, Maps], wrote: np.ndarray) -> Composition:
    """`wrote` [d_head, d_model] is the output of the earlier head, as the later one reads it."""
    one, two, its = of[earlier].squares, of[later], of[later].squares
    own = norm(one.v, wrote @ wrote.T)
    found = []
    for read, square, other in (
        (two.q, its.q, its.k),
        (two.k, its.k, its.q),
        (two.v, its.v, its.o),
    ):
        m = wrote @ read  # [d_head, d_head]
        found.append(norm(one.v, m @ other @ m.T) / max(own * norm(square, other), TINY))
    return Composition(earlier, later, *found)


def norm(left: np.ndarray, right: np.ndarray) -> float:
    """The Frobenius norm of a product L @ R, given L.T @ L and R @ R.T: [d_head, d_head] each."""
    return sqrt(max(float(np.sum(left * right)), 0.0))
