"""Examples for superposition: every subset of five features, with strengths, and its probability.

A feature is present with probability p, independently of the others, with a strength drawn
uniformly from 0 to 1. So there are 32 subsets, of probability p^n (1 - p)^(5 - n) with n present.
The examples contain each subset with a few strengths: a loss over them is exact over which features
are present, whatever p is, and a sample only over strengths.
"""

from itertools import product

import numpy as np

NAMES = ("bank", "risk", "growth", "debt", "tax")
N_FEATURES = len(NAMES)
DRAWS = (1, 4, 3, 3, 4, 20)  # examples of each subset, by how many features it has
SUBSETS = np.array(list(product((0, 1), repeat=N_FEATURES)))  # [32, features]
N_PRESENT = np.repeat(SUBSETS.sum(1), np.take(DRAWS, SUBSETS.sum(1)))  # [examples]
N_EXAMPLES = len(N_PRESENT)


def drawn(rng: np.random.Generator) -> np.ndarray:
    """Examples [examples, features]: the strength of each feature, 0 where it is absent.

    Within a subset each feature has one strength in each of as many equal parts of 0 to 1 as the
    subset has examples (Latin hypercube: McKay, Beckman & Conover 1979).
    """
    found = []
    for subset in SUBSETS:
        n = DRAWS[subset.sum()]
        part = rng.permuted(np.tile(np.arange(n), (N_FEATURES, 1)), axis=1).T  # [n, features]
        found.append(subset * (part + rng.random((n, N_FEATURES))) / n)
    return np.concatenate(found)


def shares(p: float) -> np.ndarray:
    """The probability that each example stands for, if a feature is present with probability p:
    [examples], summing to 1."""
    odds = p**N_PRESENT * (1 - p) ** (N_FEATURES - N_PRESENT)
    return np.asarray(odds / np.take(DRAWS, N_PRESENT))
