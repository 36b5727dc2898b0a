"""t-SNE (van der Maaten & Hinton 2008): points on a plane that keep their neighbours."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

STEPS, EARLY = 750, 150
EXAGGERATION = 4.0


def tsne(x: np.ndarray, runs: Sequence[tuple[int, float]]) -> np.ndarray:
    """Coordinates [n_runs, n, 2] of rows x [n, d], one run for each seed and perplexity; the same
    seed gives the same points (section 3.4). Results are cached, since workbooks of one model ask
    for the same."""
    return _placed(np.asarray(x, dtype=np.float64).tobytes(), len(x), tuple(runs)).copy()


@lru_cache(maxsize=16)
def _placed(rows: bytes, n: int, runs: Sequence[tuple[int, float]]) -> np.ndarray:
    x = np.frombuffer(rows).reshape(n, -1)
    of = {perplexity: joint(x, min(perplexity, (n - 1) / 3)) for _, perplexity in runs}
    p = np.stack([of[perplexity] for _, perplexity in runs])  # [n_runs, n, n]
    y = np.stack([np.random.default_rng(seed).normal(0, 1e-4, (n, 2)) for seed, _ in runs])
    velocity, gain = np.zeros_like(y), np.ones_like(y)
    exaggerated, rate = EXAGGERATION * p, max(n / 12, 10)
    for step in range(STEPS):
        early = step < EARLY
        affinity = 1 / (1 + distances(y))  # Student's t with one degree of freedom
        flat = affinity.reshape(len(y), n * n)
        flat[:, :: n + 1] = 0  # of a point with itself
        q = affinity / np.add.reduce(flat, axis=1)[:, None, None]
        pull = ((exaggerated if early else p) - q) * affinity
        gradient = 4 * (np.add.reduce(pull, axis=2)[:, :, None] * y - pull @ y)
        gain = np.maximum(np.where(gradient * velocity < 0, gain + 0.2, gain * 0.8), 0.01)
        velocity = (0.5 if early else 0.8) * velocity - rate * gain * gradient
        y = y + velocity
        y -= np.add.reduce(y, axis=1, keepdims=True) / n
    return y


def joint(x: np.ndarray, perplexity: float) -> np.ndarray:
    """Symmetric neighbour probabilities [n, n], each row's entropy set by the perplexity."""
    n, d = len(x), distances(x)
    d = d / max(d.mean(), 1e-12)
    others = ~np.eye(n, dtype=bool)
    away = d[others].reshape(n, n - 1)
    away = away - away.min(axis=1, keepdims=True)
    low, high, beta = np.zeros(n), np.full(n, np.inf), np.ones(n)
    for _ in range(64):
        e = np.exp(-away * beta[:, None])
        share = e / e.sum(axis=1, keepdims=True)
        entropy = -(share * np.log(np.maximum(share, 1e-300))).sum(axis=1)
        wide = entropy > np.log(perplexity)
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
        beta = np.where(high == np.inf, 2 * beta, (low + high) / 2)
    p = np.zeros((n, n))
    p[others] = share.ravel()
    return np.maximum((p + p.T) / (2 * n), 1e-12)


def distances(x: np.ndarray) -> np.ndarray:
    """Squared distances between all rows: [..., n, n]."""
    square = np.add.reduce(x * x, axis=-1)
    products = 2 * x @ x.swapaxes(-1, -2)
    return np.asarray(np.maximum(square[..., :, None] + square[..., None, :] - products, 0))
