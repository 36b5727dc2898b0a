"""Finding the first cell whose value is not finite: an overflow, or a division by 0."""

from typing import Protocol

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.graph import Graph


class Values(Protocol):
    """A mapping of block names to values: float64 [rows, columns]."""

    def __getitem__(self, name: str, /) -> np.ndarray:
        """The values of a block."""


MOST = 1e150  # in a workbook: its sheets square numbers, and add the squares


def check(graph: Graph, values: Values) -> None:
    """Raise InputError with the first computed cell that is not finite."""
    for block in graph:
        if block.op:
            check_cells(block, block.whole, values[block.name])


def check_cells(block: Block, rect: Rect, values: np.ndarray) -> None:
    """Raise InputError with the first of a block's cells [rows, columns] that is not finite."""
    fine = np.isfinite(values)
    if fine.all():
        return
    bad = ~fine & block.mask.seen(rect) if block.partial else ~fine
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise InputError(
            f"{block.name}[{rect.top + i},{rect.left + j}] is not a finite number, because of an "
            "overflow or a division by 0. Change the inputs of this cell (see `cellformer trace`)"
        )


def check_for_sheets(graph: Graph, values: Values) -> None:
    """Raise InputError with the first number of a block that is not finite, or so large that its
    square is not."""
    check(graph, values)
    for block in graph:
        found = values[block.name]
        if block.expression or not isinstance(found, np.ndarray) or found.dtype == object:
            continue  # a table, texts; what stays in its file
        large = np.isfinite(found) & (np.abs(found) > MOST)
        if large.any():
            i, j = np.argwhere(large)[0]
            raise InputError(
                f"{block.name}[{i},{j}] is {found[i, j]:.3g}, which is too large, because the "
                "sheets compute squares of numbers; use weights that keep all numbers below "
                f"{MOST:g}"
            )
