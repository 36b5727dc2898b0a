"""Trace a word's logit back to what wrote it, for the page's view "Follow the word".

The way goes from the logits to the embedding, as in `engine/studies/lens.py`. Each step says how
the direction changes that a word is scored along (credits.js takes the steps). It ends at a block
that something wrote into the stream. The dot product of that block and the direction is its share
of the logit; the shares add up to the logit.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.graph import Graph
from cellformer.engine.models import ops
from cellformer.engine.studies.lens import GAINS, NORMS, as_computed, maps, operands, scoring, terms

# By op, the name of its step, and the operand that the step needs.
STEPS = {
    "linear": ("map", "w"),
    "affine": ("gain", "w"),
    "gain_above_one": ("gain above one", "w"),
    "stretch": ("stretch", "length"),
    "normalize": ("centre", "scale"),
    "divide_rows": ("divide", "by"),
    "embed": ("pick", "ids"),
    "pooled": ("pool", "part"),
}
Step = tuple[str, int, list[Block]]  # its name, the step that it follows, its blocks


def steps(graph: Graph, index: Mapping[str, int]) -> list[list[Any]]:
    """The steps, each with its blocks by index; none if the logits do not follow from a stream."""
    if not {"logits", "resid_final"} <= graph.blocks.keys():
        return []
    try:
        found = list(_steps(graph))
    except (KeyError, ValueError):  # something else lies between the stream and the logits
        return []
    return [[name, after, *(index[b.name] for b in blocks)] for name, after, blocks in found]


def _steps(graph: Graph) -> Iterator[Step]:
    end, logits, made = scoring(graph), graph["logits"], 1
    yield "row" if end.by_rows else "column", -1, [end.words]
    if end.cap:
        yield "cap", 0, [logits, operands(logits)["x"]]
        made += 1
    if end.bias:
        yield "bias", made - 1, [end.bias]
        made += 1
    waiting, ended = [(end.x, int(end.cap is not None))], False
    while waiting:
        x, after = waiting.pop()
        read, ended = operands(x), ended or x.name == "resid_final"
        if not _carries(x, ended):
            shares = list(_shares(x, after))
            yield from shares
            made += len(shares)
            continue
        if "b" in read:
            yield "share", after, [read["b"]]
            made += 1
        if x.op is ops.add:
            waiting += [(term, after) for term in terms(x)]
        elif x.op is ops.patched and as_computed(x).op in (ops.add, *NORMS):
            yield "patch", after, [x, read["x"]]
            made += 1
            waiting.append((read["x"], after))
        else:
            name, needed = STEPS.get(x.op.name if x.op else "", ("bend", ""))
            before = read["table" if x.op is ops.embed else "x"]
            if not needed and before.shape != x.shape:
                raise ValueError(f"{x.name} is not made number by number")
            yield name, after, [read[needed]] if needed else [before, x]
            made += 1
            waiting.append((before, made - 1))


def _shares(x: Block, after: int) -> Iterator[Step]:
    """The share of what a block wrote; if it is a sum of heads, of each head."""
    if x.op is not ops.sum_of_heads:
        yield "share", after, [x]
        return
    zs, ws = ([block for name, _, block in x.operands if name == of] for of in ("zs", "ws"))
    for z, w in zip(zs, ws, strict=True):
        yield "head", after, [z, w]
    if "b" in operands(x):
        yield "share", after, [operands(x)["b"]]


def _carries(x: Block, ended: bool) -> bool:
    """Whether a block is the stream, or made from it alone, number by number."""
    if x.op is ops.embed:  # of rows of the stream, not of a table of words
        return operands(x)["table"].computed
    if x.op is ops.patched:
        return as_computed(x).op in (ops.add, *NORMS)
    return x.op in (ops.add, ops.pooled, *NORMS, *GAINS) or maps(x) or not ended
