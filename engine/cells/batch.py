"""Many variants of one graph at once, each with a few cells changed.

Blocks that no change reaches are computed once for all; the others have a leading axis, one entry
per variant, through the same ops (see `evaluation`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.arrays import Arrays
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.evaluation import evaluate
from cellformer.engine.cells.graph import Graph

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


@explained
def variants(graph: Graph, changes: Sequence[Change]) -> Variants:
    """Every block's values: float64 [n_variants, rows, columns], broadcast if no change reaches the
    block. Raises InputError for an invalid cell or value.

    >>> graph = cf.graph("cat-sat", "the cat sat")
    >>> found = cf.variants(graph, [{("W_E", 1, 0): x} for x in (-1.0, 0.0, 1.0)])
    >>> found["probs"].shape
    (3, 3, 20)
    """
    overlay = _overlays(graph, changes)

    def laid_over(name: str, values: np.ndarray) -> np.ndarray:
        array = np.array(np.broadcast_to(values, (len(changes), *graph[name].shape)))
        for n, i, j, value in overlay[name]:
            array[n, i, j] = value
        return array

    put = {name: partial(laid_over, name) for name in overlay}
    return Variants(_following(graph, put), len(changes))


def filled(graph: Graph, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every block's values if some inputs have other values, by name: [rows, columns], or for a
    batch [n, rows, columns]; blocks that depend on these have the first axis too."""
    return _following(graph, {name: lambda _, to=to: to for name, to in inputs.items()})


@np.errstate(all="ignore")
def _following(graph: Graph, put: Mapping[str, Callable[..., np.ndarray]]) -> dict[str, np.ndarray]:
    """Every block's values if some are replaced: `put` makes them of the block's own values."""
    values = dict(graph.computed)
    reached = set(put)
    for block in graph:
        if block.op and block.recurs and block.name in put:
            values[block.name] = _row_by_row(block, values, put[block.name])
            continue
        if block.op and any(b.name in reached for _, _, b in block.operands):
            values[block.name] = evaluate(block, block.whole, values)
            reached.add(block.name)
        if block.name in put:
            values[block.name] = put[block.name](values[block.name])
    return values


def _row_by_row(
    block: Block, values: Mapping[str, np.ndarray], put: Callable[..., np.ndarray]
) -> np.ndarray:
    """The values of a block whose rows read each other, computed row by row, with some cells
    replaced."""
    known = {b.name: values[b.name] for _, _, b in block.sources}
    for row in block.passes_over(block.whole):
        found = evaluate(block, row, known)
        own = known[block.name] = np.array(
            np.broadcast_to(known[block.name], (*found.shape[:-2], *block.shape))
        )
        own[(..., *row.slices)] = found
        known[block.name] = put(own)
    return known[block.name]


def _overlays(
    graph: Graph, changes: Sequence[Change]
) -> dict[str, list[tuple[int, int, int, float]]]:
    """The (variant, row, column, value) of every changed block."""
    found: dict[str, list[tuple[int, int, int, float]]] = {}
    for n, change in enumerate(changes):
        for (name, i, j), value in change.items():
            graph.check_value(graph[name], i, j, value)
            found.setdefault(name, []).append((n, i, j, value))
    return found
