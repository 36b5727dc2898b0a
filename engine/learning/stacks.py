"""Stacks: blocks of a graph that are computed together, for libraries that prefer few large
operations.

The heads of a layer have the same ops, over operands of the same shapes: their queries, keys and
values are products of one x with different matrices. So they become one array with an additional
axis, and one product. Nothing here knows of heads: blocks are stacked if they have the same op and
depend on equally many others. If a library has a kernel for several blocks together, such as a
softmax, a pattern of ops describes them.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.graph import Graph

# A block, by a name of one's own, the same block wherever it stands; or an op over patterns.
Pattern = str | tuple[Any, ...]


class Step(NamedTuple):
    """The way to compute a block: its op, or the kernel of a pattern that it matches."""

    block: Block
    pattern: Pattern | None  # None: by its op
    operands: tuple[Block, ...]


def stacks(
    graph: Graph, of: str, given: Collection[str], patterns: Collection[Pattern]
) -> list[list[Step]]:
    """The steps from the `given` blocks to the block `of`: a list of similar blocks, inputs
    first."""
    steps: dict[str, Step] = {}
    level = dict.fromkeys(given, 0)  # how many steps stand before
    for block in graph:
        step = _step(block, patterns)
        below = [level[b.name] for b in step.operands if b.name in level]
        if below and block.name not in level:
            steps[block.name], level[block.name] = step, max(below) + 1
    needed = {of}
    for name in reversed(steps):
        if name in needed:
            needed |= {b.name for b in steps[name].operands}
    found: dict[Any, list[Step]] = {}
    for name, (block, pattern, operands) in steps.items():
        if name in needed:
            kind = (level[name], pattern, *_kind(block), *_reads(operands, level, graph))
            found.setdefault(kind, []).append(steps[name])
    return [found[kind] for kind in sorted(found, key=lambda kind: kind[0])]


def _kind(block: Block) -> tuple[Any, ...]:
    """The common traits of the blocks of a stack: their formula, and how it reads its operands."""
    at = tuple(at for _, at, _ in block.operands)
    return id(block.op), block.shape, block.mask, at


def _reads(operands: Collection[Block], level: Mapping[str, int], graph: Graph) -> tuple[Any, ...]:
    """The common traits of their operands: shapes, constants, and which operands are the same
    block."""
    same = tuple([*operands].index(b) for b in operands)
    still = [b.shape == (1, 1) and b.name not in level for b in operands]
    sizes = zip(operands, still, strict=True)
    return same, tuple(graph.values[b.name].item() if x else b.shape for b, x in sizes)


def _step(block: Block, patterns: Collection[Pattern]) -> Step:
    for pattern in patterns:
        names: dict[str, Block] = {}
        if _matches(pattern, block, names):
            return Step(block, pattern, tuple(names.values()))
    return Step(block, None, tuple(b for _, _, b in block.operands))


def _matches(pattern: Pattern, block: Block, names: dict[str, Block]) -> bool:
    """Whether a block matches a pattern, whose names are then bound to blocks."""
    if isinstance(pattern, str):
        return names.setdefault(pattern, block) is block
    op, *inner = pattern
    return (
        block.op is not None
        and block.op.name == op
        and len(block.operands) == len(inner)
        and all(_matches(p, b, names) for p, (_, _, b) in zip(inner, block.operands, strict=True))
    )
