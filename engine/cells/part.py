"""Freezing: one part of a graph stays live, and its inputs from the rest become constants.

So one layer of a large model can be studied in a small workbook: its cells respond to edits, and
there is nothing before or after it to recompute.
"""

from collections.abc import Sequence
from dataclasses import replace

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError, nearest
from cellformer.engine.cells.graph import Graph


def freeze_rest(graph: Graph, live: Sequence[str]) -> Graph:
    """The blocks under the names `live` (`blocks.3`); everything else that they read is constant.

    Raises InputError for a name with no computed block under it.
    """
    parts = sorted({block.path for block in graph} - {""})
    for name in live:
        if not any(b.op and b.under(name) for b in graph):
            raise InputError(f"no block's name begins with {name!r}; {nearest(name, parts)}")
    values = graph.values
    found = graph.empty()
    found.input("tokens", graph.inputs["tokens"], ("token", ""), "ids")
    made: dict[str, Block] = {"tokens": found["tokens"]}
    for block in graph:
        if block.op is None or not any(map(block.under, live)):
            continue
        operands = []
        for parameter, subscript, operand in block.operands:
            if operand.name not in made:
                kind = operand.kind if operand.op is None else "setting"
                name, axes = operand.name, operand.axes
                made[name] = found.input(name, values[name], axes, kind)
            operands.append((parameter, subscript, made[operand.name]))
        made[block.name] = found.add(replace(block, operands=tuple(operands)))
    return found


def cells_of(graph: Graph, live: Sequence[str]) -> int:
    """The number of cells of the graph of such a part: its own cells and its inputs."""
    own = [b for b in graph if b.op and any(map(b.under, live))]
    read = (operand for block in own for _, _, operand in block.operands)
    return sum({block.name: block.n_cells for block in (*own, *read)}.values())
