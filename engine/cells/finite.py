"""Finding the first cell whose value is not finite: an overflow, or a division by 0."""

from typing import Protocol

import numpy as np

from engine.cells.errors import InputError
from engine.cells.graph import Graph


class Values(Protocol):
    """A mapping of block names to values: float64 [rows, columns]."""

    def __getitem__(self, name: str, /) -> np.ndarray:
        """The values of a block."""


def check(graph: Graph, values: Values) -> None:
    """Raise InputError with the first computed cell that is not finite."""
    for block in graph:
        if block.op is None:
            continue
        bad = ~np.isfinite(values[block.name])
        if block.partial:
            bad &= block.mask.seen(block.whole)
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise InputError(
                f"{block.name}[{i},{j}] is no number: it overflows, or is divided by 0; "
                "change what it reads, see `cellformer trace`"
            )
