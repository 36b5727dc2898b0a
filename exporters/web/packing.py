"""The numbers of a page's large blocks, one after another in as few bytes as hold them exactly.

A page with few weights has float32 or float64 numbers, row by row: `[type, offset]`. A large page
holds matrices of weights *packed*: `[type, offset, turned]`. Their type is the one of the model's
own file. Each line of a packed matrix is a row, or a column if it is turned.

F64, F32, F16, BF16   numbers one after another
Q8_0, Q4_0, Q4_1      GGUF's blocks of 32 numbers, with a float16 scale each
"""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.stored import Stored, TensorFile

ALIGNED = 8  # bytes
TOGETHER = 32  # numbers with one scale
QUANTIZED = {"Q8_0": 34, "Q4_0": 18, "Q4_1": 20}  # type -> bytes of so many numbers
PLAIN = {"BF16": np.dtype(ml_dtypes.bfloat16), "F16": np.dtype("<f2"), "F32": np.dtype("<f4")}


class Weights(bytearray):
    """The bytes of all blocks."""

    def add(self, values: np.ndarray) -> tuple[str, int]:
        """The type of a block's numbers, and where they begin."""
        narrow = _as(values, "<f4")
        kind = "f8" if narrow is None else "f4"
        return kind, self._put(values.astype("<f8") if narrow is None else narrow)

    def pack(self, values: Any, turned: bool) -> tuple[str, int, int]:
        """The type of a matrix, where it begins, and whether its columns are the lines. Numbers of
        blocks keep the lines of their file; others have those that are asked for."""
        if isinstance(values, Stored) and (found := _blocks(values)):
            return found[0], self._put(found[1]), int(values.transposed)
        numbers = np.asarray(values)
        for kind, dtype in PLAIN.items():
            if (narrow := _as(numbers, dtype)) is not None:
                return kind, self._put(narrow.T if turned else narrow), int(turned)
        return "F64", self._put((numbers.T if turned else numbers).astype("<f8")), int(turned)

    def _put(self, values: np.ndarray) -> int:
        start = len(self)
        self.extend(np.ascontiguousarray(values).view(np.uint8).data.cast("B"))
        self.extend(bytes(-len(self) % ALIGNED))
        return start


def _as(values: np.ndarray, dtype: Any) -> np.ndarray | None:
    """Numbers of a smaller type, if it holds them exactly."""
    with np.errstate(over="ignore"):
        narrow = values.astype(dtype)
    return narrow if (narrow.astype(np.float64) == values).all() else None


def _blocks(values: Stored) -> tuple[str, np.ndarray] | None:
    """The type of numbers that stand in blocks, and the bytes of each row."""
    if values.decimal or not isinstance(values.file, TensorFile):
        return None
    kind, raw = values.file.packed(values.name) or ("", values.file)
    left, right = values.cols
    if kind not in QUANTIZED or left % TOGETHER or right % TOGETHER:
        return None
    n_bytes = QUANTIZED[kind]
    rows = raw.read(values.name, values.rows, again=False)
    return kind, rows[:, left // TOGETHER * n_bytes : right // TOGETHER * n_bytes]


def matrices(graph: Graph) -> Mapping[str, bool]:
    """The matrices of weights that ops read, by name: whether products go down their columns."""
    found = {b.name: False for b in graph if b.kind == "weight" and min(b.shape) > 1}
    found = {name: False for name in found if name in graph.inputs}
    for block in graph:
        for _, at, read in block.sources if block.op else ():
            if read.name in found and at == (":", "j"):
                found[read.name] = True
    return found


def n_numbers(graph: Graph) -> int:
    """The size of the matrices of weights."""
    return sum(graph[name].shape[0] * graph[name].shape[1] for name in matrices(graph))
