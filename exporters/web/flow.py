"""Trace a word's logit back to what wrote it, for the page's view "Follow the word".

The way goes from the logits to the embedding, block by block, as in `engine/studies/lens.py`. Each
step says how a direction changes that the word is scored along (credits.js takes the steps). At a
block that a part wrote into the stream, the dot product of block and direction is what the part
adds directly; these numbers add up to the logit. The way then goes on through the part, with
attention patterns, divisors and gates held, as in `engine/studies/answer_graph.py`: so an earlier
part also adds something through later ones.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models import ops
from cellformer.engine.studies.answer_graph import BENDS, GATED
from cellformer.engine.studies.lens import GAINS, NORMS, as_computed, maps, operands, scoring, terms

# By op, the name of its step, and the operands that the step needs.
STEPS = {
    "linear": ("map", "w"),
    "switched_linear": ("map", "w", "on"),
    "affine": ("gain", "w"),
    "gain_above_one": ("gain above one", "w"),
    "stretch": ("stretch", "length"),
    "normalize": ("centre", "scale"),
    "divide_rows": ("divide", "by"),
    "embed": ("pick", "ids"),
    "pooled": ("pool", "part"),
    "mix": ("spread", "pattern", "on"),
}
BEFORE = {"embed": "table", "mix": "v"}  # by op, the operand that the step leads to; else x
MOST_PRODUCTS = 30_000_000  # on the ways through parts: a page takes them in 0.1 s
# its name, the block that it comes from, the block that it leads to, the blocks that it needs
Step = tuple[str, Block, Block | None, list[Block]]


def steps(graph: Graph, index: Mapping[str, int]) -> list[list[Any]]:
    """The steps: [name, whether it is inside a part, from, to, *other blocks], blocks by index, and
    to -1 at a part's output. No steps if the logits do not follow from a stream."""
    if not {"logits", "resid_final"} <= graph.blocks.keys():
        return []
    for deep in True, False:
        try:
            found = list(_Way(graph, deep).steps())
        except (KeyError, ValueError):  # something else lies between the stream and the logits
            continue
        if not deep or _products(graph, found) <= MOST_PRODUCTS:
            return [
                [name, int(inside), index[x.name], -1 if to is None else index[to.name]]
                + [index[b.name] for b in blocks]
                for inside, (name, x, to, blocks) in found
            ]
    return []


def _products(graph: Graph, found: list[tuple[bool, Step]]) -> int:
    """The number of products in all maps inside parts, for all tokens."""
    sizes = (b[0].shape[0] * b[0].shape[1] for inside, (name, *_, b) in found if name == "map")
    return graph["tokens"].shape[0] * sum(sizes)


class _Way:
    """The way back through a graph, from its last block to its first."""

    def __init__(self, graph: Graph, deep: bool) -> None:
        self.graph, self.deep = graph, deep
        self.order = {block.name: n for n, block in enumerate(graph)}
        self.waiting: dict[str, bool] = {}  # blocks, and whether the way leads to them directly

    def steps(self) -> Iterator[tuple[bool, Step]]:
        """Each step, and whether it is inside a part."""
        for step in self._scores():
            yield False, step
        self._wait(step[2], True)
        while self.waiting:
            name = max(self.waiting, key=self.order.__getitem__)
            x, direct = self.graph[name], self.waiting.pop(name)
            carries = direct and self._carries(x)
            if direct and not carries:
                yield from ((False, step) for step in _shares(x))
            if carries or (self.deep and x.layer is not None):
                for step in _before(x, carries):
                    if carries or (step[2] and step[2].computed):
                        yield not carries, step
                        self._wait(step[2], carries)

    def _wait(self, block: Block | None, direct: bool) -> None:
        if block is not None:
            self.waiting[block.name] = self.waiting.get(block.name, False) or direct

    def _scores(self) -> Iterator[Step]:
        """From the logits to the stream."""
        end, scored = scoring(self.graph), self.graph["logits"]
        if end.cap:
            before = operands(scored)["x"]
            yield "cap", scored, before, [scored, before]
            scored = before
        if end.bias:
            yield "share", scored, None, [end.bias]
        yield "row" if end.by_rows else "column", scored, end.x, [end.words]

    def _carries(self, x: Block) -> bool:
        """Whether a block is the stream, or made from it alone, number by number."""
        if x.op is ops.embed:  # of rows of the stream, not of a table of words
            return operands(x)["table"].computed
        if x.op is ops.patched:
            return as_computed(x).op in (ops.add, *NORMS)
        ended = self.order[x.name] <= self.order["resid_final"]
        return x.op in (ops.add, ops.pooled, *NORMS, *GAINS) or maps(x) or not ended


def _shares(x: Block) -> Iterator[Step]:
    """Steps to the output of a part; of a sum of heads, to each head's."""
    if x.op is not ops.sum_of_heads:
        yield "share", x, None, [x]
        return
    yield from (("head", x, None, [z, w]) for z, w in _heads(x))
    if "b" in operands(x):
        yield "share", x, None, [operands(x)["b"]]


def _heads(x: Block) -> Iterator[tuple[Block, Block]]:
    """Each head's mixed values, and its part of the output matrix."""
    zs, ws = ([block for name, _, block in x.operands if name == of] for of in ("zs", "ws"))
    return zip(zs, ws, strict=True)


def _before(x: Block, carries: bool) -> Iterator[Step]:
    """From a block to what it is made from."""
    read, op = operands(x), x.op
    if carries and "b" in read:
        yield "share", x, None, [read["b"]]
    if op is ops.add:
        yield from (("same", x, term, []) for term in terms(x))
    elif op is ops.sum_of_heads:
        yield from (("map", x, z, [w]) for z, w in _heads(x))
    elif carries and op is ops.patched:
        yield "patch", x, None, [x, read["x"]]
        yield "same", x, read["x"], []
    elif op and op.name in STEPS:
        name, *needed = STEPS[op.name]
        yield name, x, read[BEFORE.get(op.name, "x")], [read[k] for k in needed if k in read]
    elif carries or op in (*BENDS, *GATED, ops.patched):
        if read["x"].shape != x.shape:
            raise ValueError(f"{x.name} is not made number by number")
        yield "bend", x, read["x"], [read["x"], x]
    else:
        raise ValueError(f"the way does not lead back through {x.name}")
