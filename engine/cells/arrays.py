"""Read-only arrays, so that nobody changes a graph's numbers without telling the graph.

Inputs, weights and computed values are shared with callers. To change a cell use `Evaluator.set`,
which updates the cells that depend on it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from cellformer.engine.cells.errors import UnknownNameError

Values = TypeVar("Values")


class Arrays(Mapping[str, Values], Generic[Values]):
    """Read-only arrays by name. An unknown name is an InputError with the nearest names."""

    __slots__ = ("_arrays", "_what")

    def __init__(self, arrays: Mapping[str, Values], what: str = "block") -> None:
        self._arrays, self._what = arrays, what

    def __getitem__(self, name: str) -> Values:
        try:
            return self._arrays[name]
        except KeyError:
            raise UnknownNameError(self._what, name, self._arrays) from None

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __or__(self, others: Mapping[str, Any]) -> dict[str, Any]:
        return {**self._arrays, **others}

    def __repr__(self) -> str:
        return f"{len(self)} arrays by name: {', '.join(list(self)[:8])}, ..."


def ranked(values: np.ndarray, most: int | None = None) -> list[int]:
    """The indices of the largest numbers, in descending order, at most `most`; equal ones in their
    own order."""
    return np.argsort(-values, kind="stable")[:most].tolist()  # type: ignore[no-any-return]


def frozen(array: np.ndarray) -> np.ndarray:
    """A read-only array of the same numbers; a copy if the original is writable."""
    if array.flags.writeable or (_changes(array.base) and 0 not in array.strides):
        array = array.copy(order="K")  # in the same order, so that sums come out the same
        array.flags.writeable = False
    return array  # one whose strides are 0 is one number everywhere: it stands for its size


def _changes(owner: Any) -> bool:
    """Whether an array is a view of memory that can be written to."""
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    return False
