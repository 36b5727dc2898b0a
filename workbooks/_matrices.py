"""The product of matrices in cells, for no-attention; `exporters/matrices.py` is what replaces it."""

from collections.abc import Callable

from exporters.by_hand import Table


def times(left: Table, right: Table) -> Callable[[int, int], str]:
    """The matrix product left @ right."""
    inner = range(left.values.shape[1])
    return lambda i, j: "+".join(f"{left.at(i, k)}*{right.at(k, j)}" for k in inner)
