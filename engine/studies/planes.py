"""Principal components of a cloud of vectors, without those that are only rounding noise."""

from pathlib import Path

import numpy as np

from cellformer.engine.cells.rounding import NOISE
from cellformer.engine.studies.addition import Addition, Option
from cellformer.engine.text import word_list_file


def principal(x: np.ndarray, n: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The first n principal components of rows x [n_words, d], as rows [n, d], and the share of the
    variance that each explains [n].

    A component's sign is arbitrary: its largest entry is made positive. Components of rounding
    noise alone, and those beyond the number of rows, are zero, with a share of zero.
    """
    _, spread, axes = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    spread, total = spread**2, float((spread**2).sum())
    found, shares = np.zeros((n, x.shape[1])), np.zeros(n)
    for k in range(min(n, len(spread))):
        if total and spread[k] > NOISE * total:
            found[k] = axes[k] * np.sign(axes[k, np.abs(axes[k]).argmax()])
            shares[k] = spread[k] / total
    return found, shares


ADDITION = Addition(
    "words",
    (
        Option(
            "words",
            Path,
            "Include maps of the words in this file. Write one word per line; a line ‘# name’ "
            "begins a group.",
        ),
    ),
    lambda given: word_list_file.ids(
        word_list_file.read(given.options["words"]), given.model.outputs or given.model.vocabulary
    ),  # by group
    decoder=True,
)
