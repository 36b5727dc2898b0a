"""Probes: a test whether the vector at a site tells which of two lists a sentence comes from.

A linear probe (Alain & Bengio 2016) projects on a direction and compares with a threshold. This one
is the mass-mean probe (Marks & Tegmark 2023, section 5): the direction from one mean to the other,
the threshold half-way. Nothing is searched, so cells compute it too. A third of each list, drawn by
a random seed, is held out: the probe is fitted on the others alone.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.studies.part_names import said

HELD_OUT = 3  # one sentence of so many is


@dataclass(frozen=True)
class Accuracy:
    """The shares of sentences that a probe assigns to their list."""

    site: Annotated[str, "where", said]
    fitted: Annotated[float, "share of fitted sentences that the probe assigns correctly", ".1%"]
    held_out: Annotated[float, "share of the others", ".1%"]
    n_fitted: Annotated[int, "how many"]
    n_held_out: Annotated[int, "how many"]


def held_out(n: int, seed: int = 0) -> np.ndarray:
    """The held-out sentences among n: bool [n]. Raises InputError for fewer than two."""
    if n < 2:
        raise InputError(
            f"a list of {n} cannot be split into sentences to learn from and sentences to test; "
            "give each list at least two sentences"
        )
    found = np.zeros(n, dtype=bool)
    found[np.random.default_rng(seed).permutation(n)[: max(1, n // HELD_OUT)]] = True
    return found


def accuracy(site: str, first: np.ndarray, second: np.ndarray, seed: int = 0) -> Accuracy:
    """The accuracy of the mass-mean probe of two lists, [n_sentences, width] each. Raises
    InputError for a list that cannot be split."""
    lists = [(x, held_out(len(x), seed)) for x in (first, second)]
    (a, b), (c, d) = ([x[out == kept] for x, out in lists] for kept in (False, True))
    direction = a.mean(axis=0) - b.mean(axis=0)  # [width]
    threshold = float((a.mean(axis=0) + b.mean(axis=0)) @ direction) / 2

    def right(one: np.ndarray, other: np.ndarray) -> float:
        hits = np.concatenate([one @ direction > threshold, other @ direction <= threshold])
        return float(hits.mean())

    return Accuracy(site, right(a, b), right(c, d), len(a) + len(b), len(c) + len(d))
