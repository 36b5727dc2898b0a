"""t-SNE (van der Maaten & Hinton 2008): points on a plane that keep their neighbours."""

import numpy as np

STEPS, EARLY = 750, 150
EXAGGERATION = 4.0


def tsne(x: np.ndarray, perplexity: float, seed: int) -> np.ndarray:
    """Coordinates [n, 2] of rows x [n, d]; the same seed gives the same points (section 3.4)."""
    n = len(x)
    p = joint(x, min(perplexity, (n - 1) / 3))  # [n, n]
    y = np.random.default_rng(seed).normal(0, 1e-4, (n, 2))
    velocity, gain = np.zeros_like(y), np.ones_like(y)
    for step in range(STEPS):
        affinity = 1 / (1 + distances(y))  # Student's t with one degree of freedom
        np.fill_diagonal(affinity, 0)
        q = affinity / affinity.sum()
        pull = ((EXAGGERATION if step < EARLY else 1.0) * p - q) * affinity
        gradient = 4 * (pull.sum(axis=1)[:, None] * y - pull @ y)
        gain = np.maximum(np.where(gradient * velocity < 0, gain + 0.2, gain * 0.8), 0.01)
        velocity = (0.5 if step < EARLY else 0.8) * velocity - max(n / 12, 10) * gain * gradient
        y = y + velocity
        y -= y.mean(axis=0)
    return y


def joint(x: np.ndarray, perplexity: float) -> np.ndarray:
    """Symmetric neighbour probabilities [n, n], each row's entropy set by the perplexity."""
    n, d = len(x), distances(x)
    d = d / max(d.mean(), 1e-12)
    p = np.zeros((n, n))
    for i in range(n):
        away, low, high, beta = np.delete(d[i], i), 0.0, np.inf, 1.0
        for _ in range(64):
            e = np.exp(-(away - away.min()) * beta)
            share = e / e.sum()
            entropy = -(share * np.log(np.maximum(share, 1e-300))).sum()
            low, high = (beta, high) if entropy > np.log(perplexity) else (low, beta)
            beta = 2 * beta if high == np.inf else (low + high) / 2
        p[i, np.arange(n) != i] = share
    return np.maximum((p + p.T) / (2 * n), 1e-12)


def distances(x: np.ndarray) -> np.ndarray:
    """Squared distances between all rows: [n, n]."""
    square = (x * x).sum(axis=1)
    found: np.ndarray = np.maximum(square[:, None] + square[None, :] - 2 * x @ x.T, 0)
    return found
