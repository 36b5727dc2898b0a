"""Which way each block lies, so that every dot product runs down two columns (see `layout`)."""

from collections.abc import Sequence

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.interventions import AnyGraph, intervened
from cellformer.engine.cells.name import (
    CUT,
    OWN,
    USED,
)
from cellformer.engine.learning import optimizers
from cellformer.engine.models import ops
from cellformer.engine.models.encoding import AXIS
from cellformer.engine.models.forward import SOURCE
from cellformer.engine.studies.lens import operands
from cellformer.exporters.model.model_book import ModelBook

TOKENS = ("token", AXIS, SOURCE)  # axes of tokens
SCORING = (ops.linear, ops.linear_tied)
SCALES = (ops.scale_of_column, ops.scale_of_row)  # of weights that are rounded
COPY = "turned"  # the last part of the names of copies that lie the other way


def read_along(graph: Graph, block: Block) -> int | None:
    """The axis along which others read a block: 1 if each reads a row of it; None: neither. Raises
    ValueError if both are read."""
    axes = set()
    for _, subscript in graph.readers[block.name]:
        for axis, code in enumerate(subscript):
            if code in (":", "≤i", "≥i") and block.shape[axis] > 1:
                axes.add(axis)
    if len(axes) > 1:
        raise ValueError(f"{block.name} is read along both axes: no column holds every product")
    return axes.pop() if axes else None


def turned(block: Block, book: ModelBook) -> bool:
    """Whether a block stands with its rows across the sheet, so that dot products run down."""
    if block.op is optimizers.descent:
        return turned(block.operands[0][2], book)  # as it lies before the step
    rows = book.plan.token_rows
    if block.leaf == OWN and block.kind == "computed" and not rows:
        its_readers = block.own.removesuffix(f".{OWN}")
        return turned(book.graph[its_readers], book)  # as what its readers read
    if block.op in SCALES:
        return turned(book.graph[f"{block.path}.{USED}"], book)
    axis = read_along(book.graph, block)
    if axis is not None:
        return (axis == 1) != rows
    readers = book.graph.readers[block.name]
    if block.kind == "weight" and block.shape[0] == 1 and readers:
        if book.by_hand:
            return turned(readers[0][0], book)  # a bias or gain lies along what it is added to
        # along the stream, or else under its matrix; down where a sheet has too few columns
        down = block.axes[1] == "d_model" or block.shape[1] > book.plan.limits.columns
        return down != rows
    activation = block.kind in ("computed", "gradient", "ids") or CUT in block.passes
    return activation and not rows


def side_by_side(graph: AnyGraph) -> AnyGraph:
    """The graph whose tables can all have a row for each token: what is read along its tokens is
    read by way of a copy, NAME.turned."""
    found = [b.name for b in graph if b.axes[0] in TOKENS and read_along(graph, b) == 0]
    return copied(graph, [name for name in found if graph[name].computed])


def scored_by_rows(graph: AnyGraph) -> AnyGraph:
    """The graph whose Lens scores rows: what stands in a column there is scored by way of a copy,
    NAME.turned."""
    scored = [block for block in graph if block.part == "lens" and block.op in SCORING]
    return copied(graph, [operands(block)["x"].name for block in scored])


def copied(graph: AnyGraph, names: Sequence[str]) -> AnyGraph:
    """The graph in which some blocks are read by way of a copy, NAME.turned."""

    def copy(g: Graph, name: str, own: Block) -> Block:
        return g.block(name, ops.same, own)

    return intervened(graph, dict.fromkeys(names, copy), COPY)


def is_copy(block: Block) -> bool:
    """Whether a block is a copy that lies the other way."""
    return block.op is ops.same
