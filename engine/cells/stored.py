"""Stored: a weight matrix that stays in its file, and is read in slices on demand.

It replaces an array of float64 wherever a block's values are used: it has a shape, it can be
sliced, and numpy can convert it. So a large model is never in memory as a whole. Reading uses
`pread` if available: a memory-mapped file would count as memory of the process.

With `decimal`, a float32 number stands for its shortest decimal: 0.1 is 0.1 and not
0.10000000149011612. A workbook that writes these decimals and an engine that reads them compute
with the same numbers.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import ml_dtypes
import numpy as np
import orjson

from cellformer.engine.cells.errors import InputError

DTYPES: Mapping[str, Any] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}
Span = tuple[int, int]
BINADES = np.arange(256.0)  # a float32's exponent as its bits have it
HALF_STEPS = np.exp2(BINADES - 127 - 24)  # half of what lies between neighbours of that exponent
# the largest power of ten within two of these is 1 / SCALES; 10^22 is the last that float64 holds
POWERS = np.ceil(np.log10(0.5 / HALF_STEPS))
SCALES = np.where((POWERS >= 0) & (POWERS <= 22), 10.0 ** POWERS.clip(0, 22), np.nan)
SCALES[0] = 1.0  # of 0, which is its own decimal
NEAR = HALF_STEPS * SCALES + 1e-6  # a bit more than half a step, when it is scaled: from 0.5 to 5
STRIP = 1 << 18  # numbers read from a file together
MOST_TENSORS = 100_000  # in one file; the largest models have 3,000 a shard
MOST_KEPT = 12_000_000  # numbers; of larger tensors nothing is kept
AT_ONCE = 1 << 13  # numbers turned into decimals together


@dataclass(frozen=True)
class Place:
    """The place of a tensor in its file, and its number format.

    A row is an entry of the first axis; of a vector, one number. `paired` is the number of rows of
    a head if rows that rotate together are adjacent, as in Meta's own files: they are reordered
    into all first ones and then all second ones, as in Hugging Face's. `order` is set if heads
    stand in another order in the file: for each head of Hugging Face's the one that it is there.
    """

    offset: int
    shape: tuple[int, ...]
    dtype: Any  # of its numbers
    row_bytes: int
    unpack: Callable[[np.ndarray], np.ndarray] | None = None  # bytes [rows, row_bytes] to numbers
    paired: int = 0
    order: tuple[int, ...] = ()

    @classmethod
    def plain(cls, offset: int, shape: tuple[int, ...], dtype: Any, paired: int = 0) -> "Place":
        """The place of numbers stored one after another."""
        return cls(offset, shape, dtype, prod(shape[1:]) * dtype.itemsize, paired=paired)

    @property
    def stacked(self) -> "list[Place]":
        """The places of the matrices of a stack."""
        first = replace(self, shape=self.shape[1:], row_bytes=self.row_bytes // self.shape[1])
        return [
            replace(first, offset=self.offset + k * self.row_bytes) for k in range(self.shape[0])
        ]

    @property
    def end(self) -> int:
        """The first byte after it."""
        return self.offset + self.shape[0] * self.row_bytes


class TensorFile:
    """A file with tensors at known places, and a way to read rows of them."""

    def __init__(self, path: Path, places: Mapping[str, Place]):
        self.path = path
        self.places = places
        self._handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._lock = Lock()
        self._kept: dict[tuple[str, Span], np.ndarray] = {}

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            os.close(self._handle)

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return self.places[name].shape

    def dtype(self, name: str) -> Any:
        """The type of a tensor's numbers."""
        return self.places[name].dtype

    def whole(self, name: str) -> np.ndarray:
        """A tensor, in its own type."""
        shape = self.shape(name)
        return self._in_order(name, (0, shape[0])).reshape(shape)

    def read(self, name: str, rows: Span, again: bool) -> np.ndarray:
        """Rows [start, stop) of a tensor, in its own type: [rows, columns], read-only.

        They are cached if they will be read again, until another tensor or a large one is read:
        heads' matrices are columns of one matrix, and are read in turn.
        """
        if (name, rows) in self._kept:
            return self._kept[name, rows]
        large = prod(self.shape(name)) > MOST_KEPT
        if (again or large) and any(kept != name for kept, _ in self._kept):
            self._kept.clear()
        found = self._in_order(name, rows)
        if again and not large:
            self._kept[name, rows] = found
        return found

    def packed(self, name: str) -> "tuple[str, TensorFile] | None":
        """The type of a tensor whose numbers stand in blocks with a scale, and the same file with
        the rows' own bytes in place of the numbers; None for plain numbers."""
        place = self.places[name]
        kind = place.unpack.keywords.get("qtype") if isinstance(place.unpack, partial) else None
        if kind is None:
            return None
        raw = replace(place, unpack=None, dtype=np.dtype(np.uint8))
        return kind.name, TensorFile(self.path, {name: raw})

    def _in_order(self, name: str, rows: Span) -> np.ndarray:
        """Rows in Hugging Face's order."""
        paired, order = self.places[name].paired, self.places[name].order
        if order:
            n = self.shape(name)[0] // len(order)  # rows of a head
            slots = range(rows[0] // n, -(-rows[1] // n))
            found = [self._read(name, (order[k] * n, (order[k] + 1) * n)) for k in slots]
            return np.concatenate(found)[rows[0] - slots.start * n : rows[1] - slots.start * n]
        if not paired:
            return self._read(name, rows)
        first, last = rows[0] // paired * paired, -(-rows[1] // paired) * paired
        heads = self._read(name, (first, last))
        halves = heads.reshape(-1, paired // 2, 2, heads.shape[1]).swapaxes(1, 2)
        return halves.reshape(heads.shape)[rows[0] - first : rows[1] - first]

    def _read(self, name: str, rows: Span) -> np.ndarray:
        """Rows in the file's order."""
        place = self.places[name]
        data = np.empty((rows[1] - rows[0], place.row_bytes), np.uint8)
        offset = place.offset + rows[0] * place.row_bytes
        view, done = data.reshape(-1).data, 0
        while done < len(view):
            n = self._read_into(view[done:], offset + done)
            if not n:
                raise InputError(f"{self.path} ends in the middle of {name}; fetch the file again")
            done += n
        return place.unpack(data) if place.unpack else data.view(place.dtype)

    def _read_into(self, view: memoryview, offset: int) -> int:
        """Read the bytes at an offset of the file; returns how many there were. Windows has no
        `pread`, and threads share the position in the file."""
        if hasattr(os, "preadv"):
            return os.preadv(self._handle, [view], offset)
        with self._lock:
            os.lseek(self._handle, offset, os.SEEK_SET)
            found = os.read(self._handle, len(view))
        view[: len(found)] = found
        return len(found)


def tall(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a tensor for reading: a stack of matrices is one tall matrix, and each filter
    of a convolution is a row."""
    if len(shape) == 4:
        return shape[0], shape[1] * shape[2] * shape[3]
    return (shape[0] * shape[1], shape[2]) if len(shape) == 3 else shape


class SafetensorsFile(TensorFile):
    """A safetensors file, whose header says where each tensor begins."""

    def __init__(self, path: Path):
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        places = {
            name: Place.plain(
                8 + length + entry["data_offsets"][0],
                tall(tuple(entry["shape"])),
                DTYPES[entry["dtype"]],
            )
            for name, entry in header.items()
            if name != "__metadata__" and entry["shape"] and entry["dtype"] in DTYPES
        }
        super().__init__(path, places)


class MatrixFile(Protocol):
    """The interface of a file that `Stored` reads from."""

    @property
    def path(self) -> Path:
        """Its path, for messages."""

    def shape(self, name: str) -> tuple[int, ...]:
        """A matrix's shape."""

    def dtype(self, name: str) -> Any:
        """The type of a matrix's numbers."""

    def read(self, name: str, rows: Span, again: bool) -> np.ndarray:
        """Rows [start, stop) of a matrix, in its own type: [rows, columns]; `again`: they will be
        read again."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A rectangle of a matrix in a file, possibly transposed: an array of float64 not yet read."""

    file: MatrixFile
    name: str
    rows: Span  # of the matrix as it is in the file
    cols: Span
    transposed: bool = False
    decimal: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        rows, cols = self.rows[1] - self.rows[0], self.cols[1] - self.cols[0]
        return (cols, rows) if self.transposed else (rows, cols)

    @property
    def ndim(self) -> int:
        return 2

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def swapaxes(self, a: int, b: int) -> "Stored":
        """The transpose."""
        return replace(self, transposed=not self.transposed)

    def read(self) -> np.ndarray:
        """All of it, in the type of the file; for a narrow strip, the rest of each row is discarded
        as it is read."""
        (top, bottom), (left, right) = self.rows, self.cols
        found = np.empty((bottom - top, right - left), self.file.dtype(self.name))
        width = self.file.shape(self.name)[1]
        step = max(1, STRIP // max(1, width))
        for k in range(top, bottom, step):
            rows = (k, min(k + step, bottom))
            strip = self.file.read(self.name, rows, (left, right) != (0, width))
            found[k - top : rows[1] - top] = strip[:, left:right]
        if not np.isfinite(found).all():
            raise InputError(
                f"{self.name} in {self.file.path} contains a value that is infinite or not a "
                "number; download the file again"
            )
        return found.T if self.transposed else found

    def part(self, rows: slice, cols: slice) -> "Stored":
        """A rectangle of this one."""
        pair = (rows, cols)[::-1] if self.transposed else (rows, cols)
        spans = [
            (begin + s.indices(stop - begin)[0], begin + s.indices(stop - begin)[1])
            for s, (begin, stop) in zip(pair, (self.rows, self.cols), strict=True)
        ]
        return replace(self, rows=spans[0], cols=spans[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.read()
        if not (self.decimal and found.dtype == np.float32):
            return found.astype(dtype or np.float64)
        return decimals(found)

    def copy(self) -> np.ndarray:
        """All of it, as an array."""
        return np.asarray(self)

    def __getitem__(self, key: Any) -> np.ndarray:
        """Columns `x[..., rows, columns]` by slices, or `x[..., ids]` by ids."""
        index = key[1:] if key[0] is Ellipsis else key
        if len(index) == 1:
            columns = [np.asarray(self.part(slice(None), slice(i, i + 1))) for i in index[0]]
            return np.concatenate(columns, axis=1)
        return np.asarray(self.part(*index))


def decimals(x: np.ndarray) -> np.ndarray:
    """The shortest decimals of float32 numbers [rows, columns], as float64."""
    flat = np.ascontiguousarray(x).reshape(-1)
    found = np.empty(flat.shape)
    for k in range(0, len(flat), AT_ONCE):
        found[k : k + AT_ONCE] = _decimals(flat[k : k + AT_ONCE])
    return found.reshape(x.shape)


def _decimals(flat: np.ndarray) -> np.ndarray:
    """The same for a few numbers at a time, so that they fit into the processor's cache.

    A decimal leads back to a float32 if it is within half a step between neighbours. A number is
    scaled by a power of ten so that half a step is at least 0.5, and less than 5: then the nearest
    integer is such a decimal, the nearest multiple of ten is a shorter one if it is near enough,
    and a multiple of a hundred never is. Integer and power are exact in float64, so their quotient
    is what reading the decimal gives. Numbers that do not lead back (next to a power of two steps
    differ), and those that are too large or too small, are converted through text.
    """
    binade = ((flat.view(np.int32) >> 23) & 255).astype(np.intp)
    scale = SCALES.take(binade, mode="clip")
    found = flat * scale
    tens = found * 0.1
    np.rint(tens, out=tens)
    tens *= 10
    away = tens - found
    np.abs(away, out=away)
    shorter = away < NEAR.take(binade, mode="clip")
    np.rint(found, out=found)
    # not `np.where`: the processor would guess wrong at every other number
    np.subtract(found, tens, out=away)
    away *= shorter
    found -= away
    found /= scale
    wrong = np.flatnonzero(found.astype(np.float32) != flat)
    if len(wrong):
        found[wrong] = orjson.loads(orjson.dumps(flat[wrong], option=orjson.OPT_SERIALIZE_NUMPY))
    return found
