"""Interventions: a formula between a block and the blocks that read it.

An intervention changes what later blocks read, and nothing else. The block as it
is computed is renamed to `NAME.own`; a formula of it, and of anything else, becomes NAME, so that
whatever reads NAME, by formula or by name, reads the changed values. A block of typed values (a
weight) keeps its name, since it is what people edit; its readers read `NAME.used` instead.

No op, architecture or page knows of it: an intervened graph is like any other.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import UnknownNameError
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import OWN, USED

AnyGraph = TypeVar("AnyGraph", bound=Graph)
# what comes between: it takes the new graph, the name of the block to add, and the block as it is
# computed, and adds a block of the same shape
Formula = Callable[[Graph, str, Block], Block]


def intervened(graph: AnyGraph, formulas: Mapping[str, Formula], read_as: str = "") -> AnyGraph:
    """The graph with formulas between some blocks, by name, and the blocks that read them. If
    `read_as` is given, every block keeps its name, and what is read instead is NAME.`read_as`.

    Formulas may read every block that stands before theirs in the graph. Blocks that no
    intervention reaches are the same objects. Raises UnknownNameError for an unknown block, and
    ValueError for a graph with tables, whose cells name blocks themselves: intervene before they
    are added.
    """
    for name in formulas:
        if name not in graph.blocks:
            raise UnknownNameError("block", name, graph.blocks)
    if graph.tables:
        raise ValueError(
            f"{graph.tables[0].name} is a table; make interventions before you add tables"
        )
    found = graph.empty()
    read: dict[str, Block] = {}  # block name -> what its readers read
    for block in graph:
        own = block
        if any(read[b.name] is not b for _, _, b in block.operands):
            operands = tuple((p, at, read[b.name]) for p, at, b in block.operands)
            own = replace(block, operands=operands)
        if block.name in formulas and block.computed and not read_as:
            own = replace(own, name=f"{block.name}.{OWN}")
        read[block.name] = found.take(own, graph)
        if block.name in formulas:
            used = block.name if block.computed else f"{block.name}.{USED}"
            used = f"{block.name}.{read_as}" if read_as else used
            read[block.name] = formulas[block.name](found, used, own)
    return found
