"""UMAP (McInnes, Healy & Melville 2018), where umap-learn is installed: points on a plane."""

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

NEIGHBOURS = 15  # umap-learn's own
FEWEST = 5  # rows that it places


def installed() -> bool:
    """Whether umap-learn is there."""
    return find_spec("umap") is not None


def umap(x: np.ndarray, seeds: Sequence[int]) -> list[list[list[float]]]:
    """Coordinates [n_seeds, n, 2] of rows x [n, d], to three decimals; the same seed gives the same
    points. None of them where umap-learn is missing, or for fewer than five rows."""
    if not installed() or len(x) < FEWEST:
        return []
    from umap import UMAP

    neighbours = min(NEIGHBOURS, len(x) - 1)
    return [
        UMAP(n_neighbors=neighbours, random_state=seed, n_jobs=1)
        .fit_transform(np.asarray(x, dtype=np.float32))
        .astype(np.float64)
        .round(3)
        .tolist()
        for seed in seeds
    ]
