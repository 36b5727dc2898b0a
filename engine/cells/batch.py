"""Many variants of one graph at once, each with a few cells changed.

Blocks that no change reaches are computed once for all; the others have a leading axis, one entry
per variant, through the same ops (see `evaluation`).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.cells.arrays import Arrays
from engine.cells.evaluation import evaluate
from engine.cells.graph import Graph

CellName = tuple[str, int, int]  # block, row, column
Change = Mapping[CellName, float]


class Variants(Arrays[np.ndarray]):
    """The values of blocks in each of n variants: [n, rows, columns]."""

    def __init__(self, values: Mapping[str, np.ndarray], n: int) -> None:
        super().__init__(values)
        self._n = n

    def __getitem__(self, name: str) -> np.ndarray:
        found = np.asarray(super().__getitem__(name))
        return np.broadcast_to(found, (self._n, *found.shape[-2:]))


def variants(graph: Graph, changes: Sequence[Change]) -> Variants:
    """Every block's values: float64 [n_variants, rows, columns], broadcast if no change reaches the
    block. Raises InputError for an invalid cell or value."""
    overlay = _overlays(graph, changes)
    values: dict[str, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for block in graph:
            reached = any(values[b.name].ndim > 2 for _, _, b in block.operands)
            clean = graph.computed[block.name]
            array = evaluate(block, block.whole, values) if reached else clean
            if block.name in overlay:
                array = np.array(np.broadcast_to(array, (len(changes), *block.shape)))
                for n, i, j, value in overlay[block.name]:
                    array[n, i, j] = value
            values[block.name] = array
    return Variants(values, len(changes))


def filled(graph: Graph, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every block's values if some inputs have other values, by name: [rows, columns], or for a
    batch [n, rows, columns]; blocks that depend on these have the first axis too."""
    values = {**graph.computed, **inputs}
    reached = set(inputs)
    with np.errstate(all="ignore"):
        for block in graph:
            if block.op and any(b.name in reached for _, _, b in block.operands):
                values[block.name] = evaluate(block, block.whole, values)
                reached.add(block.name)
    return values


def _overlays(
    graph: Graph, changes: Sequence[Change]
) -> dict[str, list[tuple[int, int, int, float]]]:
    """For each changed block, (variant, row, column, value)."""
    found: dict[str, list[tuple[int, int, int, float]]] = {}
    for n, change in enumerate(changes):
        for (name, i, j), value in change.items():
            graph.check_value(graph[name], i, j, value)
            found.setdefault(name, []).append((n, i, j, value))
    return found
