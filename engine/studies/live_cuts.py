"""Cutting edges of the graph of an answer in cells: a second forward pass, in which some edges can
be cut.

It is `edge_cuts` as blocks of a graph, for edges that are named beforehand: each has a cell, 1
keeps the edge and 0 cuts it, and what lies between weakens it. `cut.<name>` is a block of this
pass. What a reader with such edges sees at a token is a stream of its own; `cut.seen<k>.<name>` are
the blocks from there to what it makes of it, of the k-th of these streams. Nothing is computed of
tokens after the answer's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import IFERROR, MAX, N
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import CUT, OWN, SEEN
from cellformer.engine.models import ops
from cellformer.engine.studies.answer_graph import ANSWER, Ends, answer, readers
from cellformer.engine.studies.edge_cuts import Way, way_of

KEPT = f"{CUT}.kept"


def add(graph: Graph, row: int, edges: Sequence[Ends], cuts: Area) -> None:
    """Add the pass of a decoder in which each edge is kept or cut as the cell of `cuts` [n_edges,
    1] says; a text counts as 0, an error as 1.

    Raises InputError for a model whose stream is no sum of what was written into it.
    """
    graph.table(KEPT, cuts.shape, lambda k, _: MAX(IFERROR(N(cuts[k, 0]), 1), 0))
    _Pass(graph, row, edges).add()


def logits(graph: Graph) -> Block:
    """The logits of that pass after its last token: [1, d_vocab]."""
    return next(block for block in graph if block.own == "logits" and CUT in block.passes)


@dataclass
class _Pass:
    """The pass up to token `row`, while it is added."""

    graph: Graph
    row: int
    edges: Sequence[Ends]
    ways: dict[str, Way] = field(default_factory=dict)  # of readers with edges, by what they make
    into: dict[str, dict[int, list[int]]] = field(default_factory=dict)  # their edges, by token
    copies: dict[str, Block] = field(default_factory=dict)  # block name -> the same in this pass
    n_streams: int = 0

    def __post_init__(self) -> None:
        for reader in [*readers(self.graph), answer(self.graph, "logits")]:
            name = reader.wrote.name
            if reader.pattern is not None and reader.hidden is not None:
                reader = replace(reader, wrote=reader.hidden)  # a head's z: the smallest
            self._add_way(ANSWER if name == "logits" else name, way_of(self.graph, reader))
        self.into.setdefault("logits", {}).setdefault(self.row, [])

    def _add_way(self, name: str, found: Way) -> None:
        if any(block.op is not ops.add for block in found.path.carriers):
            raise InputError(
                f"{found.reader.stream.name} is not a plain sum of the outputs of heads and MLPs, "
                "so the workbook cannot cut its edges; use ‘cellformer why’ instead"
            )
        made = found.reader.wrote.name
        self.ways[made] = found
        for k, (_, _, reader, token) in enumerate(self.edges):
            if reader == name:
                self.into.setdefault(made, {}).setdefault(token, []).append(k)

    def add(self) -> None:
        """Add the blocks that a cut reaches and the answer needs, in the order of the graph."""
        order = self.graph.before(self.graph["logits"])
        needed = self._needed(order)
        for block in order:
            if block.name in self.into:
                self.copies[block.name] = self._with_cuts(block)
            elif block.name in needed and (copy := self._copied(block)) is not block:
                self.copies[block.name] = copy

    def _needed(self, order: Sequence[Block]) -> set[str]:
        """The blocks of this pass that other blocks use."""
        found = {"logits"}
        for block in reversed(order):
            if block.name not in found:
                continue
            if block.name in self.into:
                found.add(self.ways[block.name].reader.stream.name)
                some = (k for listed in self.into[block.name].values() for k in listed)
                found.update(self.edges[k][0] for k in some)
            if self._plain(block):
                found.update(b.name for _, _, b in block.operands)
        return found

    def _plain(self, block: Block) -> bool:
        """Whether a block is used only at tokens at which it reads the uncut stream."""
        return block.name != "logits" and len(self.into.get(block.name, ())) <= self.row

    def _copied(self, block: Block) -> Block:
        """A block computed from this pass; itself if no cut reaches it."""
        if not any(b.name in self.copies for _, _, b in block.operands):
            return block
        self.graph.at(CUT).copy_with(self.copies, [block])
        return self.graph[f"{CUT}.{block.name}"]

    def _with_cuts(self, block: Block) -> Block:
        """The output of a reader, from the stream that is cut for each token."""
        each = {t: self._seen(block, t, listed) for t, listed in self.into[block.name].items()}
        if block.name == "logits":
            return each[self.row]
        own = self._own(block) if self._plain(block) else block
        shape = self.row + 1, block.shape[1]
        return self.graph.at(CUT).table(
            block.name,
            shape,
            lambda t, j: expression(each[t][-1, j] if t in each else own[t, j]),
            block.axes,
        )

    def _own(self, block: Block) -> Block:
        """The output of a reader, from the stream of this pass."""
        renamed = replace(block, name=f"{block.name}.{OWN}")
        own = self._copied(renamed)
        return block if own is renamed else own

    def _seen(self, block: Block, token: int, listed: Sequence[int]) -> Block:
        """The output of a reader from the stream that it sees at a token: for a head, up to the
        token; otherwise the token alone."""
        found = self.ways[block.name]
        stream, kept = found.reader.stream, self.graph[KEPT]
        whole = self.copies.get(stream.name, stream)
        first = token if found.reader.pattern is None else 0

        def cell(i: int, j: int) -> Expression:
            left = expression(whole[first + i, j])
            for k in listed:
                source, at, *_ = self.edges[k]
                if at == first + i:
                    left = left - (1 - kept[k, 0]) * self._now(source)[at, j]
            return left

        axes = (stream.axes[0] if found.reader.pattern else "", stream.axes[1])
        at = self.graph.at(f"{CUT}.{SEEN}{self.n_streams}")
        self.n_streams += 1
        alone = at.table(stream.name, (token + 1 - first, stream.shape[1]), cell, axes)
        at.copy_with({stream.name: alone}, found.inside)
        return self.graph[f"{at.prefix}{block.name}"]

    def _now(self, name: str) -> Block:
        """A block in this pass."""
        return self.copies.get(name, self.graph[name])
