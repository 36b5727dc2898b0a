"""A GGUF file: the metadata in its header, and the places of its tensors.

The `gguf` library unpacks quantized tensors, row by row as needed. The most usual kinds are
unpacked here, three times as fast. The header is read here, since the library makes an array of
every token's text, which takes seconds.
"""

import struct
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import Fields
from cellformer.engine.cells.stored import DTYPES, MOST_TENSORS, Place

MAGIC = b"GGUF"
VERSIONS = (2, 3)
NUMBERS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}  # kind -> for `struct`
UINT32, FLOAT32, STRING, ARRAY, UINT64 = 4, 6, 8, 9, 10
MOST_VALUES = 10_000_000  # in an array of the metadata; the largest vocabularies have 300,000
MOST_SIDES = 4  # of a tensor, as llama.cpp has it
PLAIN = {0: "F32", 1: "F16", 28: "F64", 30: "BF16"}  # tensors whose numbers are as they are

Values = dict[str, Any]


SPLIT = ("Q8_0", "Q4_0")  # kinds whose numbers are integers times one scale for each block
SCALE_BYTES = 2  # a float16


def split(data: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The integers of packed rows, and the scale of each: bytes [rows, row_bytes] to two arrays
    [rows, columns]. A number is its integer times its scale."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    _, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    blocks = data.reshape(len(data), -1, n_bytes)
    scales = np.ascontiguousarray(blocks[..., :SCALE_BYTES]).view("<f2").astype(np.float64)
    own = blocks[..., SCALE_BYTES:]
    if kind == "Q8_0":
        integers = own.astype(np.int8).astype(np.float64)
    else:  # two to a byte: the first half of a block in the low bits
        integers = np.concatenate([own & 15, own >> 4], axis=-1).astype(np.float64) - 8
    rows = len(data), -1
    return integers.reshape(rows), np.broadcast_to(scales, integers.shape).reshape(rows)


class Header:
    """A reader of the header, from first to last byte."""

    def __init__(self, path: Path, file: BinaryIO):
        self.path, self.file, self.size = path, file, path.stat().st_size

    def take(self, n: int) -> bytes:
        """The next bytes. Raises InputError at the end of the file."""
        data = self.file.read(n) if n <= self.size else b""
        if len(data) < n:
            raise InputError(
                f"{self.path} ends in the middle of its header; download the file again"
            )
        return data

    def numbers(self, kind: int, n: int) -> tuple[Any, ...]:
        """The next numbers of a type; a float32 becomes the shortest decimal that rounds to it."""
        letter = NUMBERS[kind]
        values = struct.unpack(f"<{n}{letter}", self.take(n * struct.calcsize(f"<{letter}")))
        return tuple(float(str(np.float32(v))) for v in values) if kind == FLOAT32 else values

    def text(self) -> str:
        """The next text."""
        return self.take(self.numbers(UINT64, 1)[0]).decode("utf-8", "replace")

    def name(self) -> str:
        """The next text, with unprintable characters escaped for messages."""
        text = self.text()
        return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")

    def value(self, kind: int | None = None) -> Any:
        """The next value, preceded by its type unless that is known."""
        kind = self.numbers(UINT32, 1)[0] if kind is None else kind
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            of, n = self.numbers(UINT32, 1)[0], self.numbers(UINT64, 1)[0]
            if of == ARRAY or n > MOST_VALUES:
                what = "of arrays" if of == ARRAY else f"of {n:,} values"
                raise InputError(
                    f"{self.path} has an array {what}, which no GGUF file needs; download the "
                    "file again"
                )
            if of in NUMBERS:
                return list(self.numbers(of, n))
            return [self.value(of) for _ in range(n)]
        if kind not in NUMBERS:
            raise InputError(
                f"{self.path} contains a value of type {kind}, which GGUF does not have; download "
                "the file again"
            )
        return self.numbers(kind, 1)[0]


def header(path: Path) -> tuple[Values, dict[str, Place]]:
    """A file's metadata, and the place of each tensor. Raises InputError."""
    with path.open("rb") as file:
        head = Header(path, file)
        if head.take(len(MAGIC)) != MAGIC:
            raise InputError(f"{path} is not a GGUF file")
        version, n_tensors, n_values = *head.numbers(UINT32, 1), *head.numbers(UINT64, 2)
        if version not in VERSIONS:
            raise InputError(
                f"{path} has GGUF version {version}; cellformer reads only little-endian files "
                "of versions 2 and 3"
            )
        meta = {head.name(): head.value() for _ in range(n_values)}
        if n_tensors > MOST_TENSORS:
            raise InputError(
                f"{path} claims to have {n_tensors:,} tensors, too many for a model; download "
                "the file again"
            )
        listed = [tensor_line(head) for _ in range(n_tensors)]
        align = Fields(path, meta).get("general.alignment", int, 32)
        if align < 1 or align & (align - 1):
            raise InputError(
                f"{path}: general.alignment is {align}, which is not a power of two; download "
                "the file again"
            )
        begin = -(-file.tell() // align) * align
    places = {name: place(path, name, kind, sides, begin + at) for name, sides, kind, at in listed}
    for name, found in places.items():
        if found.end > head.size:
            raise InputError(f"{path} ends in the middle of {name}; download the file again")
    return meta, places


def tensor_line(head: Header) -> tuple[str, tuple[int, ...], int, int]:
    """A tensor's name, shape, number type, and first byte."""
    name, n_sides = head.name(), head.numbers(UINT32, 1)[0]
    if not 1 <= n_sides <= MOST_SIDES:
        raise InputError(
            f"{name} in {head.path} has {n_sides} dimensions, not 1 to {MOST_SIDES}; download "
            "the file again"
        )
    sides = head.numbers(UINT64, n_sides)[::-1]
    if not all(sides):
        raise InputError(
            f"{name} in {head.path} has a dimension of size 0; download the file again"
        )
    return name, sides, head.numbers(UINT32, 1)[0], head.numbers(UINT64, 1)[0]


def place(path: Path, name: str, kind: int, sides: tuple[int, ...], offset: int) -> Place:
    """The place of a tensor, and how its rows are unpacked."""
    if kind in PLAIN:
        return Place.plain(offset, sides, DTYPES[PLAIN[kind]])
    try:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    except ImportError:
        raise InputError(
            f"{path} has quantized numbers; to read them, run `pip install 'cellformer[gguf]'`"
        ) from None
    try:
        packed = GGMLQuantizationType(kind)
        together, n_bytes = GGML_QUANT_SIZES[packed]  # numbers in a block, and its bytes
        unpack = partial(unpacked, qtype=packed)
        unpack(np.zeros((1, n_bytes), np.uint8))
    except (ValueError, KeyError, NotImplementedError):
        raise InputError(
            f"{name} in {path} is quantized in a format that cellformer does not support"
        ) from None
    if sides[-1] % together:
        raise InputError(
            f"{name} in {path} has rows of {sides[-1]} numbers, but its format packs numbers in "
            f"groups of {together}; download the file again"
        )
    return Place(offset, sides, DTYPES["F32"], prod(sides[1:]) // together * n_bytes, unpack)


def unpacked(data: np.ndarray, qtype: Any) -> np.ndarray:
    """The numbers of packed rows, as float32: bytes [rows, row_bytes] to [rows, columns]. Raises
    what the library raises for a kind that it does not support."""
    from gguf.quants import dequantize

    found = KINDS[qtype.name](data) if qtype.name in KINDS else dequantize(data, qtype)
    return found.reshape(len(data), -1)


def _q8_0(data: np.ndarray) -> np.ndarray:
    blocks = data.reshape(-1, 34)
    found = blocks[:, 2:].view(np.int8).astype(np.float32)  # [blocks, 32]
    found *= _halves(blocks[:, :2])
    return found


def _q4_0(data: np.ndarray) -> np.ndarray:
    blocks = data.reshape(-1, 18)
    found = _nibbles(blocks[:, 2:])
    found -= 8
    found *= _halves(blocks[:, :2])[..., None]
    return found


def _q4_1(data: np.ndarray) -> np.ndarray:
    blocks = data.reshape(-1, 20)
    found = _nibbles(blocks[:, 4:])
    scales = _halves(blocks[:, :4])[..., None]  # [blocks, 2, 1]: a factor, and the least number
    found *= scales[:, :1]
    found += scales[:, 1:]
    return found


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """Integers of 4 bits, the low ones before the high ones: [blocks, 2, 16]."""
    found = np.empty((len(packed), 2, packed.shape[1]), np.float32)
    found[:, 0], found[:, 1] = packed & 15, packed >> 4
    return found


def _halves(packed: np.ndarray) -> np.ndarray:
    """Numbers of float16, as float32: [blocks, bytes / 2]. A table is faster than numpy."""
    return HALVES.take(packed.copy().view("<u2"))


HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
KINDS = {"Q8_0": _q8_0, "Q4_0": _q4_0, "Q4_1": _q4_1}
