"""Other inputs: a graph's blocks with other numbers and texts in the input cells.

A formula that is tried on them cannot have its number from the workbook as built.
"""

import numpy as np

from cellformer.engine.cells.graph import Graph

NUMBERS = ("weight", "setting")  # the kinds of blocks whose numbers are changed
TEXTS = ("setting", "table")  # and those whose texts are
APART = 0.37  # how far a number is from the one as built, as a share
NEAR_ZERO = 0.05  # the largest weight in place of 0


def varied(graph: Graph) -> Graph:
    """The same graph, with other inputs."""
    inputs = {name: other(graph[name].kind, values) for name, values in graph.inputs.items()}
    return graph.varied(inputs)


def other(kind: str, values: np.ndarray) -> np.ndarray:
    """Other values for a block of a kind, of the same shape; the same where nothing fits."""
    if values.dtype == np.float64 and kind in NUMBERS and not _is_numbering(values):
        return _numbers(values, kind == "weight")
    if values.dtype == object and kind in TEXTS and all(isinstance(x, str) for x in values.flat):
        return _texts(values)
    return values


def _is_numbering(values: np.ndarray) -> bool:
    """Whether a block counts 0, 1, 2, ... or 1, 2, 3, ..."""
    first = values.flat[0] if values.size > 1 else 2
    return first in (0, 1) and np.array_equal(values.ravel(), first + np.arange(values.size))


def _numbers(values: np.ndarray, zeros: bool) -> np.ndarray:
    """Each number times a factor of its own; with `zeros`, other numbers for 0, too."""
    waves = np.sin(1 + np.arange(values.size)).reshape(values.shape)
    found: np.ndarray = values * (1 + APART * waves)
    return np.where(values == 0, NEAR_ZERO * waves, found) if zeros else found


def _texts(values: np.ndarray) -> np.ndarray:
    """A text's words in reverse order. In a list with repetitions, every second text is the one
    before it: counts change, and every word is still known."""
    found = values.copy()
    if values.size == 1:
        found.flat[0] = " ".join(reversed(values.flat[0].split(" ")))
    elif len(set(values.flat)) < values.size:
        found.flat[1::2] = values.ravel()[: values.size // 2 * 2 : 2]
    return found
