"""Quantized checkpoint folders: matrices stored as small integers, unpacked to exact numbers.

    gptq          integers of 2, 4 or 8 bits, eight rows to a word (Frantar et al. 2022)
    awq           integers of 4 bits, eight columns to a word, in their own order (Lin et al. 2023)
    bitsandbytes  8 bits with a scale for each row (Dettmers et al. 2022), or 4 bits that name one
                  of 16 numbers, times a scale for each block (Dettmers et al. 2023, NF4)
    mlx           integers of 2, 4 or 8 bits, with a scale and an offset for each group of a row

A number is its integer less its zero point, times its scale, in float64: nothing is rounded. The
integers stay packed; rows are unpacked as they are read.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.cells.errors import InputError
from engine.cells.stored import Span
from engine.models.foreign import Config
from engine.models.tensors import TensorEntry

KEYS = ("quantization_config", "quantization")  # of config.json
WORD = 32  # bits
BITS = (2, 4, 8)
AWQ_ORDER = np.array([0, 2, 4, 6, 1, 3, 5, 7])  # the column that each four bits of a word hold
Held = dict[str, TensorEntry]
Rows = Callable[[int, int], np.ndarray]  # rows [start, stop) of a matrix, float64


@dataclass(frozen=True)
class PackedMatrix:
    """A matrix whose rows are unpacked as they are read: the interface of a file."""

    path: Path
    sides: tuple[int, int]
    rows: Rows

    def shape(self, name: str) -> tuple[int, ...]:
        """Its shape."""
        return self.sides

    def dtype(self, name: str) -> Any:
        """The type of its numbers."""
        return np.dtype(np.float64)

    def read(self, name: str, rows: Span, again: bool) -> np.ndarray:
        """Rows [start, stop)."""
        return self.rows(*rows)


def unpacked(folder: Path, config: Config, held: Held) -> Held:
    """The tensors of a folder, with those that its config calls quantized unpacked. Raises
    InputError for a way of packing that is not known, with advice."""
    given = next((config.values[key] for key in KEYS if config.values.get(key)), None)
    if given is None:
        return held
    if not isinstance(given, dict):
        raise InputError(f"{config.path}: quantization_config is {given!r}, no object")
    said = Config(config.path, given)
    kind = said.get("quant_method", str, "mlx" if "quantization" in config.values else "none")
    if kind not in KINDS:
        raise InputError(
            f"{folder} holds weights quantized by {kind!r}, which are not unpacked here (known: "
            f"{', '.join(KINDS)}); take the model before it was quantized, or its GGUF"
        )
    for key in KEYS:  # as a folder of plain numbers it is loaded, and saved
        config.values.pop(key, None)
    try:
        return KINDS[kind](folder, said, held)
    except InputError:
        raise
    except (ValueError, IndexError, KeyError) as error:
        raise InputError(
            f"{folder}: its {kind} weights are not as they should be ({error}); fetch it again"
        ) from None


def of_parts(held: Held, mark: str) -> tuple[dict[str, str], Held]:
    """The matrices' names, by the name of their tensor that ends with `mark`, and all others."""
    stems = {name.removesuffix(mark): name for name in held if name.endswith(mark)}
    others = {
        n: t for n, t in held.items() if n.rpartition(".")[0] not in stems or n.endswith(".bias")
    }
    return stems, others


def entry(folder: Path, name: str, sides: tuple[int, int], rows: Rows, turned: bool) -> TensorEntry:
    """A matrix in the terms of other tensors; `turned` if rows are those of [in, out]."""

    def fetch() -> np.ndarray:
        values = rows(0, sides[0])
        return values.T if turned else values

    shape = sides[::-1] if turned else sides
    return TensorEntry(shape, "F64", fetch, PackedMatrix(folder, sides, rows), name, turned)


def fields_of(words: np.ndarray, bits: int) -> np.ndarray:
    """The integers in words, lowest bits first: [...] to [..., WORD / bits], int64."""
    if words.dtype.itemsize * 8 != WORD:
        raise ValueError(f"words are {words.dtype}")
    shifts = np.arange(0, WORD, bits)
    return (words.view(np.uint32)[..., None].astype(np.int64) >> shifts) & ((1 << bits) - 1)


def bits_of(said: Config, known: tuple[int, ...] = BITS) -> int:
    """The bits of an integer. Raises InputError for a number that does not divide a word."""
    bits: int = said.get("bits", int, 4)
    if bits not in known:
        raise InputError(
            f"{said.path}: integers of {bits} bits are not unpacked here, but of "
            f"{', '.join(map(str, known))}; take the model before it was quantized, or its GGUF"
        )
    return bits


# --- ways of packing --------------------------------------------------------------------------


def gptq(folder: Path, said: Config, held: Held) -> Held:
    """`qweight` int32 [in / n, out], `qzeros` int32 [groups, out / n], `scales` [groups, out], and
    each input's group, `g_idx` [in]; n integers to a word. Zero points are stored less 1, except in
    its second version."""
    bits, size = bits_of(said), said.get("group_size", int, -1)
    first = 0 if said.get("checkpoint_format", str, "gptq") == "gptq_v2" else 1
    stems, found = of_parts(held, ".qweight")
    for stem, name in stems.items():
        words = held[name].fetch()
        scales = held[f"{stem}.scales"].fetch().astype(np.float64)
        zeros = fields_of(held[f"{stem}.qzeros"].fetch(), bits).reshape(len(scales), -1) + first
        n_in = len(words) * WORD // bits
        group = np.arange(n_in) // (size if size > 0 else n_in)
        if f"{stem}.g_idx" in held:
            group = held[f"{stem}.g_idx"].fetch()
        if zeros.shape != scales.shape or len(group) != n_in or group.max() >= len(scales):
            raise ValueError(f"{stem} has scales {scales.shape} for zeros {zeros.shape}")
        rows = partial(of_gptq, words, zeros, scales, group, bits)
        sides = (n_in, scales.shape[1])
        found[f"{stem}.weight"] = entry(folder, stem, sides, rows, turned=True)
    return found


def of_gptq(
    words: np.ndarray,
    zeros: np.ndarray,
    scales: np.ndarray,
    group: np.ndarray,
    bits: int,
    start: int,
    stop: int,
) -> np.ndarray:
    """Rows [start, stop) of [in, out]."""
    n = WORD // bits
    top = start // n
    fields = fields_of(words[top : -(-stop // n)], bits)  # [words, out, n]
    integers = fields.swapaxes(1, 2).reshape(-1, words.shape[1])[start - top * n : stop - top * n]
    of = group[start:stop]
    return np.asarray((integers - zeros[of]) * scales[of])


def awq(folder: Path, said: Config, held: Held) -> Held:
    """`qweight` int32 [in, out / 8], `qzeros` int32 [groups, out / 8], `scales` [groups, out]."""
    bits = bits_of(said, (4,))
    version = said.get("version", str, "gemm").lower()
    if version != "gemm":
        raise InputError(
            f"{said.path}: awq of version {version!r} is not unpacked here, but of 'gemm'; take "
            "the model before it was quantized, or its GGUF"
        )
    stems, found = of_parts(held, ".qweight")
    for stem, name in stems.items():
        words = held[name].fetch()
        scales = held[f"{stem}.scales"].fetch().astype(np.float64)
        zeros = of_awq_words(held[f"{stem}.qzeros"].fetch(), bits)
        if zeros.shape != scales.shape or len(words) % len(scales):
            raise ValueError(f"{stem} has scales {scales.shape} for zeros {zeros.shape}")
        rows = partial(of_awq, words, zeros, scales, bits)
        sides = (len(words), scales.shape[1])
        found[f"{stem}.weight"] = entry(folder, stem, sides, rows, turned=True)
    return found


def of_awq_words(words: np.ndarray, bits: int) -> np.ndarray:
    """The integers of words, in the order of columns: [rows, words * 8]."""
    fields = fields_of(words, bits)
    return fields[..., np.argsort(AWQ_ORDER)].reshape(len(words), -1)


def of_awq(
    words: np.ndarray, zeros: np.ndarray, scales: np.ndarray, bits: int, start: int, stop: int
) -> np.ndarray:
    """Rows [start, stop) of [in, out]."""
    of = np.arange(start, stop) // (len(words) // len(scales))
    return np.asarray((of_awq_words(words[start:stop], bits) - zeros[of]) * scales[of])


def mlx(folder: Path, said: Config, held: Held) -> Held:
    """`weight` uint32 [out, in / n], `scales` and `biases` [out, groups]: integer times scale plus
    bias."""
    bits = bits_of(said)
    stems, found = of_parts(held, ".scales")
    for stem in stems:
        words = held[f"{stem}.weight"].fetch()
        scales, offsets = (
            held[f"{stem}.{part}"].fetch().astype(np.float64) for part in ("scales", "biases")
        )
        n_in = words.shape[1] * WORD // bits
        if scales.shape != offsets.shape or n_in % scales.shape[1]:
            raise ValueError(f"{stem} has scales {scales.shape} for biases {offsets.shape}")
        rows = partial(of_mlx, words, scales, offsets, bits)
        found[f"{stem}.weight"] = entry(folder, stem, (len(words), n_in), rows, turned=False)
    return found


def of_mlx(
    words: np.ndarray, scales: np.ndarray, offsets: np.ndarray, bits: int, start: int, stop: int
) -> np.ndarray:
    """Rows [start, stop) of [out, in]."""
    n_in = words.shape[1] * WORD // bits
    grouped = (stop - start, scales.shape[1], n_in // scales.shape[1])
    integers = fields_of(words[start:stop], bits).reshape(grouped)
    found = integers * scales[start:stop, :, None] + offsets[start:stop, :, None]
    return np.asarray(found.reshape(stop - start, n_in))


def bitsandbytes(folder: Path, said: Config, held: Held) -> Held:
    """Matrices of 8 bits with `SCB`, or of 4 bits with `absmax` and `quant_map`."""
    found = dict(held)
    for name in held:
        if name.endswith(".SCB"):
            stem = name.removesuffix(".SCB")
            integers, scales = held[f"{stem}.weight"].fetch(), held[name].fetch()
            rows = partial(of_eight_bits, integers, scales.astype(np.float64) / 127)
            sides = (integers.shape[0], integers.shape[1])
            found[f"{stem}.weight"] = entry(folder, stem, sides, rows, turned=False)
            del found[name]
            found.pop(f"{stem}.weight_format", None)
        elif name.endswith(".quant_map") and ".nested_" not in name:
            matrix = name.removesuffix(".quant_map")
            parts = {n: t for n, t in held.items() if n.startswith(f"{matrix}.")}
            found = {n: t for n, t in found.items() if n not in parts}
            found[matrix] = of_four_bits(folder, matrix, held[matrix], parts)
    return found


def of_eight_bits(integers: np.ndarray, scales: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Rows [start, stop) of [out, in]: a row's largest number is 127 times its scale."""
    return np.asarray(integers[start:stop] * scales[start:stop, None])


def of_four_bits(
    folder: Path, name: str, packed: TensorEntry, parts: Mapping[str, TensorEntry]
) -> TensorEntry:
    """A matrix two of whose numbers are in a byte, the first in its high bits. The scales may be
    packed in turn: bytes that name one of 256 numbers, times a scale of theirs, plus an offset."""
    states = [t for n, t in parts.items() if ".quant_state.bitsandbytes__" in n]
    if not states:
        raise ValueError(f"{name} has no quant_state")
    state = json.loads(states[0].fetch().tobytes())
    scales = parts[f"{name}.absmax"].fetch()
    if scales.dtype == np.uint8:
        nested = parts[f"{name}.nested_quant_map"].fetch().astype(np.float64)[scales]
        of = np.arange(len(nested)) // state["nested_blocksize"]
        outer = parts[f"{name}.nested_absmax"].fetch().astype(np.float64)
        scales = nested * outer[of] + state["nested_offset"]
    numbers = parts[f"{name}.quant_map"].fetch().astype(np.float64)
    sides = (int(state["shape"][0]), int(state["shape"][1]))
    data = packed.fetch().reshape(-1)
    if data.size * 2 < sides[0] * sides[1] or len(numbers) != 16:
        raise ValueError(f"{name} holds {data.size} bytes for {sides[0]} x {sides[1]} numbers")
    scales, size = scales.astype(np.float64), int(state["blocksize"])
    rows = partial(of_named_numbers, data, numbers, scales, size, sides[1])
    return entry(folder, name, sides, rows, turned=False)


def of_named_numbers(
    data: np.ndarray,
    numbers: np.ndarray,
    scales: np.ndarray,
    size: int,
    n_in: int,
    start: int,
    stop: int,
) -> np.ndarray:
    """Rows [start, stop) of [out, in]: each the number that its bits name, times its block's
    scale."""
    first, last = start * n_in, stop * n_in
    some = data[first // 2 : -(-last // 2)]
    names = np.stack([some >> 4, some & 15], axis=-1).reshape(-1)[first % 2 :][: last - first]
    found = numbers[names] * scales[np.arange(first, last) // size]
    return np.asarray(found.reshape(stop - start, n_in))


KINDS: dict[str, Callable[[Path, Config, Held], Held]] = {
    "gptq": gptq,
    "awq": awq,
    "bitsandbytes": bitsandbytes,
    "mlx": mlx,
}
