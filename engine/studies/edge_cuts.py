"""Cutting edges of the graph of an answer: forward passes in which one part does not read another.

A cut takes what a source wrote at a token out of what one reader at one token reads (path patching;
Goldowsky-Dill et al. 2023, Wang et al. 2023, section 2.2): a head's query, keys and values, an
MLP's input, or the stream that is scored. Everything after it is computed anew, with norms,
patterns and activations as they then are; so the change of the answer is the real one, beside the
one that the edge's value predicts. Nothing replaces what is cut, or what `instead` holds: the
writer's average over other prompts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.evaluation import evaluate
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.groups import batches, grouped
from cellformer.engine.models.model import Model
from cellformer.engine.studies import scores
from cellformer.engine.studies.answer_graph import ANSWER, AnswerGraph, Ends, Reader, writers

MOST = 1 << 22  # numbers of a block that are computed together
Values = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Way:
    """A reader, with the blocks before its input and up to its output."""

    reader: Reader
    path: scores.Path  # to the stream
    inside: list[Block]  # from the stream to what it writes, that included

    @cached_property
    def sources(self) -> dict[str, int]:
        """The writers that it reads, biases left out, with their places in masks."""
        return {b.name: n for n, b in enumerate(b for b in self.path.writers if b.computed)}


@explained_class
class Cuts:
    """Forward passes of one answer with edges cut.

    `instead` are the outputs, by writer, that replace what is cut: [n_tokens,
    d_model] each; 0 for a writer that it does not hold.

    >>> graph = cf.graph("dialogue-game", "<BOS> Pietro chiama Paolo")
    >>> answer = cf.AnswerGraph(graph, 3, 7, 8)
    >>> bool(abs(cf.Cuts(answer).leads([[]])[0] - answer.lead) < 1e-9)
    True
    """

    def __init__(self, answer: AnswerGraph, instead: Values | None = None) -> None:
        self.answer, self.instead = answer, instead or {}
        graph = answer.graph
        self.n_tokens = graph["tokens"].shape[0]
        *parts, end = answer.readers
        self._ways = {r.wrote.name: way_of(graph, r) for r in parts}
        self._ways[ANSWER] = way_of(graph, replace(end, wrote=graph["logits"]))
        stream = {b.name for way in self._ways.values() for b in way.path.carriers}
        inside = {b.name for way in self._ways.values() for b in way.inside[:-1]} - stream
        self._order = [b for b in graph.before(end.wrote) if b.computed and b.name not in inside]

    def possible(self, edge: Ends) -> bool:
        """Whether there is such an edge to cut; a bias is never cut."""
        source, at, reader, token = edge
        way = self._ways.get(reader)
        if way is None or source not in way.sources or not 0 <= at <= token < self.n_tokens:
            return False
        return way.reader.pattern is not None or at == token

    def leads(self, sets: Sequence[Collection[Ends]], keep: bool = False) -> np.ndarray:
        """The answer with each set of edges cut, or with `keep`, with all others cut: [n_sets].

        Raises InputError for an edge that is not there.
        """
        return np.broadcast_to(self._values(sets, keep)[ANSWER], (len(sets), 1, 1))[:, 0, 0]

    def logits(self, sets: Sequence[Collection[Ends]], keep: bool = False) -> np.ndarray:
        """The same for all words: [n_sets, d_vocab]."""
        found = self._values(sets, keep)["logits"]
        return np.broadcast_to(found, (len(sets), *found.shape[-2:]))[:, self.answer.row]

    def _values(self, sets: Sequence[Collection[Ends]], keep: bool) -> Values:
        for edge in dict.fromkeys(edge for edges in sets for edge in edges):
            if not self.possible(edge):
                raise InputError(
                    f"there is no edge from {edge[0]} at token {edge[1]} to {edge[2]} at token "
                    f"{edge[3]}. Name an edge of the graph that starts at a head, an MLP or an "
                    "embedding"
                )
        masks = {
            way.reader.wrote.name: self._mask(name, sets, keep) for name, way in self._ways.items()
        }
        with np.errstate(all="ignore"):
            return self._run(masks, self._kept(sets) if keep else None)

    def _kept(self, sets: Sequence[Collection[Ends]]) -> dict[str, np.ndarray]:
        """Whether a kept edge leads from each writer and token: bool [n_sets, n_tokens] each.
        Writers without one need no computing."""
        found = {name: np.zeros((len(sets), self.n_tokens), dtype=bool) for name in self._ways}
        for k, edges in enumerate(sets):
            for source, at, _, _ in edges:
                if source in found:
                    found[source][k, at] = True
        return found

    def _mask(self, name: str, sets: Sequence[Collection[Ends]], keep: bool) -> np.ndarray:
        """The sources that a reader does not read: bool [n_sets, tokens of it, sources, tokens
        of these]."""
        n, way = self.n_tokens, self._ways[name]
        found = np.full((len(sets), n, len(way.sources), n), keep)
        if way.reader.pattern is None:
            found &= np.eye(n, dtype=bool)[:, None]
        for k, edges in enumerate(sets):
            for source, at, reader, token in edges:
                if reader == name:
                    found[k, token, way.sources[source], at] = not keep
        return found

    def _run(self, masks: Values, kept: Values | None) -> Values:
        """The values of all passes; with `kept`, only of the blocks in use."""
        ways = {way.reader.wrote.name: way for way in self._ways.values()}
        values: dict[str, np.ndarray] = dict(self.answer.graph.computed)
        reached: set[str] = set()
        for block in self._order:
            way = ways.get(block.name)
            if way is not None:
                read = None if kept is None else kept.get(block.name)  # the answer always is
                if read is not None and not read.any():
                    continue
                if masks[block.name].any() or way.reader.stream.name in reached:
                    values[block.name] = self._read(way, values, masks[block.name], read)
                    reached.add(block.name)
            elif any(b.name in reached for _, _, b in block.operands):
                values[block.name] = evaluate(block, block.whole, values)
                reached.add(block.name)
        return values

    def _read(
        self, way: Way, values: Values, mask: np.ndarray, read: np.ndarray | None
    ) -> np.ndarray:
        """The output of a reader in every pass: [n_sets, n_tokens, d_model]; for a head, only
        where it is `read`."""
        if way.reader.pattern is None:  # each token by itself: one stream has all their cuts
            each = mask[:, np.arange(self.n_tokens), :, np.arange(self.n_tokens)]
            return self._with(way, values, each.transpose(1, 2, 0), np.arange(len(mask)))
        whole = values[way.reader.wrote.name]
        if read is None:
            whole = _inside(way, values, values[way.reader.stream.name])
        found = np.array(np.broadcast_to(whole, (len(mask), *whole.shape[-2:])))
        which = mask.any((2, 3)) if read is None else read
        sets, tokens = np.nonzero(which)  # every query has a stream of its own
        at_once = max(1, MOST // (found.shape[1] * found.shape[2]))
        for some in batches(range(len(sets)), at_once):
            k, t = sets[some], tokens[some]
            found[k, t] = self._with(way, values, mask[k, t], k)[np.arange(len(k)), t]
        return found

    def _with(self, way: Way, values: Values, cut: np.ndarray, sets: np.ndarray) -> np.ndarray:
        """The output of a reader that does not read the `cut` sources: bool [n, sources,
        n_tokens]; the n streams are those of `sets`."""

        def of(name: str) -> np.ndarray:
            return values[name][sets] if values[name].ndim == 3 else values[name]

        def part(block: Block) -> np.ndarray:
            if block.name not in way.sources:
                return np.zeros(block.shape)
            change = of(block.name) - self.instead.get(block.name, 0.0)
            return np.where(cut[:, way.sources[block.name], :, None], change, 0.0)

        stream = way.reader.stream
        held = {b.name: of(b.name) for x in way.path.carriers for _, _, b in x.operands}
        taken = scores.follow(way.path, held, part) if way.path.carriers else part(stream)
        return _inside(way, values, of(stream.name) - taken)


def _inside(way: Way, values: Values, stream: np.ndarray) -> np.ndarray:
    """The output of a reader for a given stream."""
    live = {**values, way.reader.stream.name: stream}
    for block in way.inside:
        live[block.name] = evaluate(block, block.whole, live)
    return live[way.reader.wrote.name]


def way_of(graph: Graph, reader: Reader) -> Way:
    """A reader's way from the stream to its output."""
    after = graph.after([reader.stream.name])
    inside = [block for block in graph.before(reader.wrote) if block.name in after]
    return Way(reader, scores.path(graph, reader.stream), inside)


def averages(
    model: Model, prompts: Sequence[Sequence[int]], n_tokens: int
) -> dict[str, np.ndarray]:
    """The average output of each writer at each position over prompts: [n_tokens, d_model] each.

    So what is the same in every prompt stays: positions, biases, a first token. At a position that
    no prompt reaches it is the average over all tokens. Raises InputError for no prompts.
    """
    if not prompts:
        raise InputError("there are no prompts to average over; give some prompts")
    totals: dict[str, np.ndarray] = {}
    counts = np.zeros(n_tokens)
    for n, several in grouped([ids[:n_tokens] for ids in prompts], len).items():
        graph = model.graph(several[0])
        values = filled(graph, {"tokens": np.array(several, dtype=np.float64)[:, :, None]})
        counts[:n] += len(several)
        for block in writers(graph):
            if block.computed:
                total = totals.setdefault(block.name, np.zeros((n_tokens, block.shape[1])))
                alike = np.broadcast_to(values[block.name], (len(several), *block.shape))
                total[:n] += alike.sum(0)
    at, reached = np.maximum(counts, 1)[:, None], (counts > 0)[:, None]
    return {
        name: np.where(reached, total / at, total.sum(0) / counts.sum())
        for name, total in totals.items()
    }
