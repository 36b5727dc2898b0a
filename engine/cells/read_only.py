"""The values of a block as an evaluator shows them: an array that says how to change a cell.

NumPy says only that the array is read-only. Results of arithmetic are plain arrays.
"""

from typing import Any

import numpy as np

from cellformer.engine.cells.errors import InputError


class ReadOnly(np.ndarray):
    """An array that cannot be written to, with the name of its block."""

    block = ""

    def __array_finalize__(self, of: Any) -> None:
        """Keep the name in a part of the array."""
        self.block = getattr(of, "block", "")

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """The result of a computation, without its class."""
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __setitem__(self, at: Any, value: Any) -> None:
        """Write to a copy; raise InputError for the values themselves."""
        if self.flags.writeable:
            return super().__setitem__(at, value)
        whole = isinstance(at, tuple) and len(at) == 2 and all(np.ndim(i) == 0 for i in at)
        cell = f"{at[0]}, {at[1]}, {value}" if whole else "row, column, value"
        raise InputError(f"this array is read-only; use live.set({self.block!r}, {cell})")

    def __repr__(self) -> str:
        return repr(np.asarray(self))
