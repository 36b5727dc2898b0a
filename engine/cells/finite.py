"""Where an evaluation first leads to no number: an overflow, or a division by 0."""

from typing import Protocol

import numpy as np

from engine.cells.errors import InputError
from engine.cells.graph import Graph


class Values(Protocol):
    """What knows blocks' values by name: float64 [rows, columns]."""

    def __getitem__(self, name: str, /) -> np.ndarray:
        """The values of a block."""


def check(graph: Graph, values: Values) -> None:
    """Raise InputError that names the first computed cell which holds no finite number."""
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
