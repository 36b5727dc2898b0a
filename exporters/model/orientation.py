"""The orientation of each block on its sheet (see `layout`)."""

from cellformer.engine.cells.access import ALONG
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.name import (
    CUT,
    OWN,
    TURNED,
    USED,
)
from cellformer.engine.learning import optimizers
from cellformer.engine.models import ops
from cellformer.engine.models.encoding import TOKENS
from cellformer.exporters.model.model_book import ModelBook

SCALES = (ops.scale_of_column, ops.scale_of_row)  # of weights that are rounded


def read_along(graph: Graph, block: Block) -> int | None:
    """The axis along which others read a block: 1 if each reads a row of it; None: neither. Raises
    ValueError if both are read."""
    axes = set()
    for _, subscript in graph.readers[block.name]:
        axes |= {
            axis
            for axis, code in enumerate(subscript)
            if code in (":", "≤i", "≥i") and block.shape[axis] > 1
        }
    if len(axes) > 1:
        raise ValueError(
            f"{block.name} is read by rows and by columns, so one column cannot hold all its "
            "products"
        )
    return axes.pop() if axes else None


def turned(block: Block, book: ModelBook) -> bool:
    """Whether a block stands with its rows across the sheet and its columns down.

    The sentence runs across and features run down; but scores and patterns have a row for each
    token that looks, as in the papers. A weight stands as in its file, [in, out], so that products
    run down its columns; a tied embedding, which is read along its rows, is transposed."""
    if block.op is optimizers.descent:
        return turned(block.operands[0][2], book)  # as it lies before the step
    if block.leaf == OWN and block.kind == "computed":
        its_readers = block.own.removesuffix(f".{OWN}")
        return turned(book.graph[its_readers], book)  # as what its readers read
    if block.op in SCALES:
        return turned(book.graph[f"{block.path}.{USED}"], book)
    of_tokens = turned_by_tokens(block)
    if of_tokens is not None:
        return of_tokens
    axis = read_along(book.graph, block)
    if axis is not None:
        return axis == 1
    readers = book.graph.readers[block.name]
    if block.kind == "weight" and block.shape[0] == 1 and readers:
        if book.by_hand:
            return turned(readers[0][0], book)  # a bias or gain lies along what it is added to
        # along the stream, or else under its matrix; down where a sheet has too few columns
        return block.axes[1] == "d_model" or block.shape[1] > book.plan.limits.columns
    return block.kind in ("computed", "gradient", "ids") or CUT in block.passes


def turned_by_tokens(block: Block) -> bool | None:
    """The same for a block with a row for each token; None for others."""
    of_tokens, of_keys = (axis in TOKENS for axis in block.axes)
    if not of_tokens:
        return None
    return TURNED in block.passes if of_keys else not _of_a_row(block)


def _of_a_row(block: Block) -> bool:
    """Whether a block has a number for each row of scores, such as their largest: a column."""
    scores = (b for _, codes, b in block.operands if codes[0] == "i" and codes[1] in ALONG)
    return not block.axes[1] and any(b.axes[1] in TOKENS for b in scores)
