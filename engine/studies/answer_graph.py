"""The graph of an answer: how much of a word's logit passes from part to part of a model.

Nodes are what writes into the residual stream at a token (its embedding, a head, an MLP, an expert,
a bias), and the answer: a word's logit at a token, or its lead over a rival's. With attention
patterns, norms' divisors, gates and each activation's ratio act(x) / x held at their values, the
answer is linear in what every node wrote (Elhage et al. 2021; Ameisen et al. 2025, section 3, who
hold activations by training replacements for MLPs). So

    value of a node = what it writes · the gradient of the answer there,
    edge u -> v     = the part of v's value that passes from u to v with nothing between,

and what enters a node sums to its value. A gated MLP's gate is held, and what it gates varies.

Nothing here knows an architecture: writers are followed as `scores` follows them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, get_args

import numpy as np

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.evaluation import evaluate
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import ENCODER
from cellformer.engine.learning import objective
from cellformer.engine.models import ops
from cellformer.engine.models.spec import Activation
from cellformer.engine.studies import scores
from cellformer.engine.studies.lens import operands, scoring
from cellformer.engine.studies.part_names import said

ANSWER = objective.NAME
BENDS = (*(getattr(ops, name) for name in get_args(Activation)), ops.xielu, ops.soft_cap)
HELD = (ops.fraction, ops.deviation, ops.root_mean_square, ops.root_mean_square_of_all)
GATED = (ops.gated, ops.gated_share)


Ends = tuple[str, int, str, int]  # of an edge: source, its token, reader, its token


class Node(NamedTuple):
    """The output of a block at a token, or of one of its neurons; `objective` is the answer."""

    name: str
    token: int
    neuron: int | None = None

    @property
    def short(self) -> str:
        """Its name for people: head 1.2, MLP 0."""
        return short(self.name)


def short(name: str) -> str:
    """A node's name for people: head 1.2, MLP 0."""
    return "answer" if name == ANSWER else said(name)


class Edge(NamedTuple):
    """The part of the reader's value that comes directly from a source."""

    source: Node
    reader: Node
    value: float

    @property
    def ends(self) -> Ends:
        """The two nodes of the edge. Raises InputError for an edge of a neuron."""
        if self.source.neuron is not None or self.reader.neuron is not None:
            raise InputError(
                "edges of single neurons cannot be cut; cut the edges of their MLP instead"
            )
        return (*self.source[:2], *self.reader[:2])


@dataclass(frozen=True)
class Reader:
    """A node's way from the stream to its output."""

    wrote: Block  # [n_tokens, d_model], or the answer, [1, 1]
    inner: Block  # the same before it is stretched
    stream: Block  # what it reads, before a norm of its own: [n_tokens, d_model]
    taken: Block  # what it makes of that by linear ops: v, pre, or the vectors that are scored
    hidden: Block | None  # what it writes of: post [n_tokens, d_mlp]; z [n_tokens, d_head]
    pattern: Block | None  # of a head: [n_tokens, n_tokens]


def readers(graph: Graph) -> list[Reader]:
    """Everything that reads the stream and writes into it, in the order of the graph.

    Raises InputError for a part whose op cannot be followed, as an encoder's head, and for two
    stacks.
    """
    if any(ENCODER in block.passes for block in graph):
        raise InputError(
            "the graph of an answer needs a model with one stack, but this model has an encoder "
            "and a decoder. Use ‘cellformer run NAME --target WORD’ to see what each part adds to "
            "a word"
        )
    return [_reader(graph, wrote) for wrote in writers(graph) if not begins(wrote)]


def writers(graph: Graph) -> list[Block]:
    """Everything that writes into the stream, biases included, in the order of the graph."""
    return scores.path(graph, scoring(graph).x).writers


def begins(wrote: Block) -> bool:
    """Whether a writer reads no stream: embeddings, positions, and biases."""
    return _inner(wrote).op in (None, ops.embed)


def _inner(wrote: Block) -> Block:
    """The writer's block in other coordinates."""
    while wrote.op in scores.MAPS:
        wrote = operands(wrote)["x"]
    return wrote


def answer(graph: Graph, of: str = ANSWER) -> Reader:
    """The reader of a graph's objective, or of its logits."""
    scored = scoring(graph).x
    return Reader(graph[of], graph[of], _stream(graph, scored), scored, None, None)


def _reader(graph: Graph, wrote: Block) -> Reader:
    inner = _inner(wrote)
    hidden = operands(inner)["x"] if inner.op is ops.switched_linear else inner
    inside = operands(hidden)
    if inner is not hidden and hidden.op is ops.mix:
        taken = inside["v"]
    elif inner is not hidden and hidden.op in (*BENDS, *GATED):
        taken = inside["x"]
    else:
        taken = hidden
    if taken is hidden or taken.op is ops.bounded or "x" not in operands(taken):
        found = taken.op.name if taken.op else "an input"
        raise InputError(
            f"{taken.name} is {found}, which the graph of an answer cannot follow; the graph "
            "follows attention, MLPs and experts of a decoder"
        )
    return Reader(
        wrote, inner, _stream(graph, operands(taken)["x"]), taken, hidden, inside.get("pattern")
    )


def _stream(graph: Graph, x: Block) -> Block:
    """The stream that a reader's own norm, if there is one, begins at."""
    while not (scores.writes(x) or x.op is ops.add or _goes_on(graph, x)):
        x = operands(x)["x"]
    return x


def _goes_on(graph: Graph, x: Block) -> bool:
    """Whether a block is added to, and so the stream itself: a norm after a sum."""
    return any(reader.op is ops.add for reader, _ in graph.readers[x.name])


def slopes(graph: Graph, of: Block) -> dict[str, Block]:
    """Add the gradient of the answer, with all held that the graph of an answer holds: by every
    block from the embeddings on. They are called `slope.<name>`."""
    held = [block for block in graph if block.op in HELD]
    held += [b for block in graph if block.op in GATED for p, _, b in block.operands if p != "x"]
    first = [wrote for wrote in writers(graph) if wrote.computed and begins(wrote)]
    bends = [block for block in graph if block.op in BENDS]
    return backward(graph, of, first, held, "slope", secants=bends)


@explained_class
class AnswerGraph:
    """The nodes and edges of one answer.

    `graph` is a fresh graph of a decoder, whose logit of `target`, less that of `rival` if there is
    one, at token `row` is the answer. `instead` are other outputs of the writers, by name: then
    edges and values are of the difference to those.

    >>> graph = cf.graph("dialogue-game", "<BOS> Pietro chiama Paolo")
    >>> source, reader, value = cf.AnswerGraph(graph, 3, 7, 8).edges()[0]
    >>> reader.short
    'head 0.3'
    """

    def __init__(
        self,
        graph: Graph,
        row: int,
        target: int,
        rival: int | None = None,
        instead: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.graph, self.row, self.instead = graph, row, instead or {}
        self._slopes = slopes(graph, objective.logit(graph, row, target, rival))
        self.readers = [*readers(graph), answer(graph)]
        self.values = graph.values

    @property
    def lead(self) -> float:
        """The answer's value."""
        return float(self.values[ANSWER][0, 0])

    def value(self, name: str) -> np.ndarray:
        """The value of a writer at every token: [n_tokens]."""
        return np.asarray((self._wrote(self.graph[name]) * self.slope(name)).sum(-1))

    def slope(self, name: str) -> np.ndarray:
        """The gradient of the answer by a block, of its shape; 0 where it does not depend on it."""
        found = self._slopes.get(name)
        return np.zeros(self.graph[name].shape) if found is None else self.values[found.name]

    @cached_property
    def into(self) -> dict[str, dict[str, np.ndarray]]:
        """The edges into each reader: reader -> source -> [tokens of the reader, of the source]."""
        return {reader.wrote.name: self._into(reader) for reader in self.readers}

    def _into(self, reader: Reader) -> dict[str, np.ndarray]:
        wrote = {b.name: self._wrote(b) for b in scores.path(self.graph, reader.taken).writers}
        parts = scores.parts(self.graph, reader.taken, wrote)
        return self._edges(reader, parts) | self._own(reader)

    def _edges(self, reader: Reader, parts: scores.Parts) -> dict[str, np.ndarray]:
        """The amount that each part of a reader's input adds to its value."""
        if reader.pattern is not None and reader.hidden is not None:
            slope = self.slope(reader.hidden.name)  # [n_tokens, d_head]
            each = slope @ parts.values.swapaxes(1, 2) * self.values[reader.pattern.name]
        else:
            each = (parts.values * self.slope(reader.taken.name)).sum(-1)
            each = each[:, :, None] * np.eye(each.shape[1])
        return dict(zip(parts.writers, each, strict=True))

    def _wrote(self, block: Block) -> np.ndarray:
        """The output of a writer, or the difference to its replacement: 0 for a bias."""
        values = self.values[block.name]
        return values - self.instead.get(block.name, values) if self.instead else values

    def _own(self, reader: Reader) -> dict[str, np.ndarray]:
        """The amount that biases behind a reader's hidden layer add to its value, and the output
        of what replaces switched-off parts."""
        if self.instead:
            return {}
        if reader.hidden is None:
            return self._of_words()
        read, slope = operands(reader.inner), self.slope(reader.inner.name)
        found = {}
        for name, on in (("b", self.values[read["on"].name]), ("off", 1.0)):
            if name in read:
                own = (self.values[read[name].name] * on * slope).sum(-1)  # [n_tokens]
                found[read[name].name] = np.diag(own)
        return found

    def _of_words(self) -> dict[str, np.ndarray]:
        """The amount that a bias of the words adds to the answer."""
        bias, logits = scoring(self.graph).bias, self.graph["logits"]
        if bias is None:
            return {}
        scored = operands(logits)["x"] if logits.op is ops.soft_cap else logits
        return {bias.name: np.diag(self.slope(scored.name) @ self.values[bias.name][0])}

    # --- edges one by one, and single neurons -----------------------------------------------

    def edges(self, n_neurons: int = 0) -> list[Edge]:
        """All edges, the strongest first. The strongest neurons, if some are asked for, are nodes
        of their own, and their MLP is the rest of it."""
        neurons = self.neurons(n_neurons)
        chosen = {f"{node.name}[{node.token},{node.neuron}]": node for node in neurons}
        found = [edge for reader in self.readers for edge in self._one_by_one(reader, chosen)]
        return sorted(found, key=lambda e: (-abs(e.value), str(e.source), str(e.reader)))

    def neurons(self, n: int) -> list[Node]:
        """The n neurons of the largest values, by size."""
        found: list[tuple[float, Node]] = []
        for reader in self.readers:
            if reader.hidden is None or reader.pattern is not None:
                continue
            values = self.values[reader.hidden.name] * self.slope(reader.hidden.name)
            for k in np.argsort(-np.abs(values), axis=None, kind="stable")[:n]:
                token, neuron = divmod(int(k), values.shape[1])
                size = abs(float(values[token, neuron]))
                found.append((size, Node(reader.wrote.name, token, neuron)))
        return [node for _, node in sorted(found, key=lambda x: -x[0])[:n]]

    def _one_by_one(self, reader: Reader, chosen: Mapping[str, Node]) -> list[Edge]:
        """The edges into a reader, and into the neurons of it that are nodes of their own."""
        parts, found = self._with_neurons(reader, chosen), []
        slope = self.slope(reader.taken.name)
        for node in (node for node in chosen.values() if node.name == reader.wrote.name):
            at = ..., node.token, node.neuron
            for source, value in zip(parts.writers, parts.values[at] * slope[at[1:]], strict=True):
                found.append(Edge(chosen.get(source, Node(source, node.token)), node, float(value)))
            parts.values[at] = 0.0
        for source, each in (self._edges(reader, parts) | self._own(reader)).items():
            for token, at_token in zip(*np.nonzero(each), strict=True):
                node = chosen.get(source, Node(source, int(at_token)))
                to = Node(reader.wrote.name, int(token))
                found.append(Edge(node, to, float(each[token, at_token])))
        return [edge for edge in found if edge.value]

    def _with_neurons(self, reader: Reader, chosen: Mapping[str, Node]) -> scores.Parts:
        """The parts of a reader's input, with chosen neurons apart from the rest of their MLP."""
        alone = {label: self._alone(node) for label, node in chosen.items()}
        way = scores.path(self.graph, reader.taken)
        wrote = {block.name: self.values[block.name] for block in way.writers}
        for label, node in chosen.items():
            if node.name in wrote:
                wrote[node.name] = wrote[node.name] - alone[label]
        parts = scores.parts(self.graph, reader.taken, wrote)
        earlier = [label for label, node in chosen.items() if node.name in parts.writers]
        if not earlier:
            return parts

        def part(block: Block) -> np.ndarray:
            zero = np.zeros(block.shape)
            return np.stack([alone[x] if chosen[x].name == block.name else zero for x in earlier])

        more = scores.follow(way, self.values, part)
        return scores.Parts((*parts.writers, *earlier), np.concatenate([parts.values, more]))

    def _alone(self, node: Node) -> np.ndarray:
        """The output of a single neuron: [n_tokens, d_model]."""
        (reader,) = (reader for reader in self.readers if reader.wrote.name == node.name)
        assert reader.hidden is not None
        read = operands(reader.inner)
        size = (
            self.values[reader.hidden.name][node.token, node.neuron] * self.values[read["on"].name]
        )
        found = np.zeros(reader.inner.shape)
        found[node.token] = (size * self.values[read["w"].name])[node.neuron]
        for block in _between(reader):
            found = evaluate(block, block.whole, {**self.values, operands(block)["x"].name: found})
        return found


def _between(reader: Reader) -> list[Block]:
    """The factors that scale the output of a reader's inner block, in their order."""
    found: list[Block] = []
    block = reader.wrote
    while block is not reader.inner:
        found.insert(0, block)
        block = operands(block)["x"]
    return found
