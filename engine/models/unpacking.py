"""Quantized checkpoint folders: matrices stored as small integers, unpacked to exact numbers.

    gptq          integers of 2, 4 or 8 bits, eight rows to a word (Frantar et al. 2022)
    awq           integers of 4 bits, eight columns to a word, in their own order (Lin et al. 2023)
    bitsandbytes  8 bits with a scale for each row (Dettmers et al. 2022), or 4 bits that name one
                  of 16 numbers, times a scale for each block (Dettmers et al. 2023, NF4)
    mlx           integers of 2, 4 or 8 bits, with a scale and an offset for each group of a row

A number is its integer less its zero point, times its scale, in float64: nothing is rounded. The
integers stay packed; rows are unpacked as they are read. So everything that they need is checked
before: the type and the shape of each part, groups, blocks and indices.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cellformer.engine.cells.errors import InputError, sides
from cellformer.engine.cells.fields import LARGEST, Fields
from cellformer.engine.cells.files import parse_json
from cellformer.engine.models import tensors
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.tensors import FLOATS, Made, TensorEntry

KEYS = ("quantization_config", "quantization")  # of config.json
ELSE = "use the original model before quantization, or its GGUF file"
WORD = 32  # bits
BITS = (2, 4, 8)
AWQ_ORDER = np.array([0, 2, 4, 6, 1, 3, 5, 7])  # the column that each four bits of a word hold
Held = dict[str, TensorEntry]
Rows = Callable[[int, int], np.ndarray]  # rows [start, stop) of a matrix, float64


class Kind(NamedTuple):
    """A type of numbers that a part may hold, and its names in safetensors and torch files."""

    what: str
    labels: tuple[str, ...]


NUMBERS = Kind("floating-point numbers", FLOATS)
WORDS = Kind("integers of 32 bits", ("I32", "U32", "int32", "uint32"))
INDICES = Kind("integers", ("I32", "I64", "int32", "int64"))
SIGNED = Kind("integers of 8 bits", ("I8", "int8"))
BYTES = Kind("bytes", ("U8", "uint8"))


def unpacked(folder: Path, config: Config, held: Held) -> Held:
    """The tensors of a folder, unpacked if its config calls them quantized. Raises InputError,
    with advice, for an unknown way of packing."""
    given = next((config.values[key] for key in KEYS if config.values.get(key)), None)
    if given is None:
        return held
    if not isinstance(given, dict):
        raise InputError(
            f"{config.path}: quantization_config is {given!r}, but it must be a JSON object"
        )
    said = Config(config.path, given)
    kind = said.get("quant_method", str, "mlx" if "quantization" in config.values else "none")
    if kind not in KINDS:
        raise InputError(
            f"{folder} has weights quantized by {kind!r}, which cellformer cannot unpack "
            f"(supported: {', '.join(KINDS)}); {ELSE}"
        )
    for key in KEYS:  # as a folder of plain numbers it is loaded, and saved
        config.values.pop(key, None)
    found = dict(held)
    KINDS[kind](folder, said, found)
    return found


class Parts:
    """The tensors of a quantized matrix, by the ends of their names. Each is checked as it is
    taken out of the folder's tensors."""

    def __init__(self, folder: Path, stem: str, held: Held):
        self.folder, self.stem, self.held = folder, stem, held

    def fault(self, end: str, fact: str) -> InputError:
        """The error that a part causes."""
        return InputError(f"{self.stem}.{end} in {self.folder} {fact}; download the folder again")

    def has(self, end: str) -> bool:
        """Whether there is such a part."""
        return f"{self.stem}.{end}" in self.held

    def take(self, end: str, kind: Kind, *shape: int | None) -> np.ndarray:
        """A part of this type and shape; None: a side of any length."""
        found = self.held.pop(f"{self.stem}.{end}", None)
        if found is None:
            raise self.fault(end, "is missing")
        if found.dtype not in kind.labels:
            raise self.fault(end, f"contains {found.dtype}, not {kind.what}")
        if len(found.shape) != len(shape):
            raise self.fault(end, f"has {len(found.shape)} dimensions, not {len(shape)}")
        wanted = tuple(h if w is None else w for h, w in zip(found.shape, shape, strict=True))
        if found.shape != wanted or 0 in wanted:
            raise self.fault(end, f"has shape {sides(found.shape)}, not {sides(wanted)}")
        return found.fetch()

    def numbers(self, end: str, *shape: int | None) -> np.ndarray:
        """A part of floating-point numbers, float64."""
        return self.take(end, NUMBERS, *shape).astype(np.float64)

    def group_size(self, said: Config, n_in: int, n_groups: int) -> int:
        """The number of inputs that share a scale, which the config may name, too; -1 there:
        all."""
        size, rest = divmod(n_in, n_groups)
        if rest:
            raise self.fault("scales", f"has {n_groups} groups, which do not divide {n_in} inputs")
        told: int = said.get("group_size", int, size)
        if told != size and (told, n_groups) != (-1, 1):
            raise InputError(
                f"{said.path}: group_size is {told}, but {self.stem}.scales has "
                f"{n_groups} groups for {n_in} inputs; set group_size to {size}, or download the "
                "folder again"
            )
        return size


def stems(held: Held, mark: str) -> list[str]:
    """The names of matrices that have a part whose name ends with `mark`."""
    return [name.removesuffix(mark) for name in held if name.endswith(mark)]


def entry(folder: Path, name: str, sides: tuple[int, int], rows: Rows, turned: bool) -> TensorEntry:
    """A matrix in terms of other tensors; `turned` if its rows are those of [in, out]."""
    return tensors.entry(Made(folder, sides, np.dtype(np.float64), rows), name, turned)


def fields_of(words: np.ndarray, bits: int) -> np.ndarray:
    """The integers in words, lowest bits first: [...] to [..., WORD / bits], int64."""
    shifts = np.arange(0, WORD, bits)
    return (words.view(np.uint32)[..., None].astype(np.int64) >> shifts) & ((1 << bits) - 1)


def bits_of(said: Config, known: tuple[int, ...] = BITS) -> int:
    """The bits of an integer. Raises InputError for a number that does not divide a word."""
    bits: int = said.get("bits", int, 4)
    if bits not in known:
        raise InputError(
            f"{said.path}: cellformer cannot unpack integers of {bits} bits, only of "
            f"{', '.join(map(str, known))} bits; {ELSE}"
        )
    return bits


def said_to_be(said: Config, name: str, older: str, *known: str) -> str:
    """The layout that a config names, in a field that has an older name. Raises InputError for one
    that is not known."""
    layout: str = said.get(older, str, said.get(name, str, known[0])).lower()
    if layout not in known:
        raise InputError(
            f"{said.path}: {older} is {layout!r}, but cellformer can unpack only "
            f"{' and '.join(known)}; {ELSE}"
        )
    return layout


# --- ways of packing: each puts matrices in place of their parts --------------------------------


def gptq(folder: Path, said: Config, held: Held) -> None:
    """`qweight` int32 [in / n, out], `qzeros` int32 [groups, out / n], `scales` [groups, out], and
    each input's group, `g_idx` [in]; n integers to a word. Zero points are stored less 1, except in
    its second version: less a word of ones, so that one may borrow from the next."""
    bits = bits_of(said)
    version = said_to_be(said, "format", "checkpoint_format", "gptq", "gptq_v2")
    ones = np.uint32(sum(1 << at for at in range(0, WORD, bits)) * (version == "gptq"))
    spans = []
    for stem in stems(held, ".qweight"):
        parts = Parts(folder, stem, held)
        words = parts.take("qweight", WORDS, None, None)
        n_in, n_out = len(words) * WORD // bits, words.shape[1]
        scales = parts.numbers("scales", None, n_out)
        size = parts.group_size(said, n_in, len(scales))
        packed = parts.take("qzeros", WORDS, len(scales), -(-n_out * bits // WORD))
        zeros = fields_of(packed.view(np.uint32) + ones, bits).reshape(len(scales), -1)[:, :n_out]
        spans.append((zeros.min(), zeros.max()))
        group = np.arange(n_in) // size
        if parts.has("g_idx") or said.get("desc_act", bool, False):
            given = parts.take("g_idx", INDICES, n_in)
            if not np.array_equal(np.sort(given), group):
                fact = f"does not give {size} inputs to each of the {len(scales)} groups"
                raise parts.fault("g_idx", fact)
            group = given
        rows = partial(of_gptq, words, zeros, scales, group, bits)
        held[f"{stem}.weight"] = entry(folder, stem, (n_in, n_out), rows, turned=True)
    check_version(said, version, bits, spans)


def check_version(said: Config, version: str, bits: int, spans: list[tuple[int, int]]) -> None:
    """Raise InputError if the zero points of all matrices belong to the other version. Symmetric
    ones are all in the middle of the integers, and others reach the largest integer."""
    if not spans:
        return
    lowest, highest = min(low for low, _ in spans), max(high for _, high in spans)
    middle, most = 1 << (bits - 1), (1 << bits) - 1
    shifted = version == "gptq_v2" and (lowest, highest) == (0, most - 1)
    if shifted or lowest == highest != middle:
        raise InputError(
            f"{said.path}: checkpoint_format is {version!r}, but the zero points range from "
            f"{lowest} to {highest}, as in another version of the format. Correct "
            "checkpoint_format, or download the folder again"
        )


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


def awq(folder: Path, said: Config, held: Held) -> None:
    """`qweight` int32 [in, out / 8], `qzeros` int32 [groups, out / 8], `scales` [groups, out]."""
    bits = bits_of(said, (4,))
    said_to_be(said, "format", "version", "gemm")
    for stem in stems(held, ".qweight"):
        parts = Parts(folder, stem, held)
        words = parts.take("qweight", WORDS, None, None)
        n_in, n_out = len(words), words.shape[1] * WORD // bits
        scales = parts.numbers("scales", None, n_out)
        size = parts.group_size(said, n_in, len(scales))
        zeros = of_awq_words(parts.take("qzeros", WORDS, len(scales), words.shape[1]), bits)
        rows = partial(of_awq, words, zeros, scales, bits, size)
        held[f"{stem}.weight"] = entry(folder, stem, (n_in, n_out), rows, turned=True)


def of_awq_words(words: np.ndarray, bits: int) -> np.ndarray:
    """The integers of words, in the order of columns: [rows, words * 8]."""
    return fields_of(words, bits)[..., np.argsort(AWQ_ORDER)].reshape(len(words), -1)


def of_awq(
    words: np.ndarray,
    zeros: np.ndarray,
    scales: np.ndarray,
    bits: int,
    size: int,
    start: int,
    stop: int,
) -> np.ndarray:
    """Rows [start, stop) of [in, out]."""
    of = np.arange(start, stop) // size
    return np.asarray((of_awq_words(words[start:stop], bits) - zeros[of]) * scales[of])


def mlx(folder: Path, said: Config, held: Held) -> None:
    """`weight` uint32 [out, in / n], `scales` and `biases` [out, groups]: integer times scale plus
    bias."""
    bits = bits_of(said)
    said_to_be(said, "mode", "mode", "affine")
    for stem in stems(held, ".scales"):
        parts = Parts(folder, stem, held)
        words = parts.take("weight", WORDS, None, None)
        n_out, n_in = len(words), words.shape[1] * WORD // bits
        scales = parts.numbers("scales", n_out, None)
        offsets = parts.numbers("biases", *scales.shape)
        parts.group_size(said, n_in, scales.shape[1])
        rows = partial(of_mlx, words, scales, offsets, bits)
        held[f"{stem}.weight"] = entry(folder, stem, (n_out, n_in), rows, turned=False)


def of_mlx(
    words: np.ndarray, scales: np.ndarray, offsets: np.ndarray, bits: int, start: int, stop: int
) -> np.ndarray:
    """Rows [start, stop) of [out, in]."""
    n_in = words.shape[1] * WORD // bits
    grouped = (stop - start, scales.shape[1], n_in // scales.shape[1])
    integers = fields_of(words[start:stop], bits).reshape(grouped)
    found = integers * scales[start:stop, :, None] + offsets[start:stop, :, None]
    return np.asarray(found.reshape(stop - start, n_in))


def bitsandbytes(folder: Path, said: Config, held: Held) -> None:
    """Matrices of 8 bits with `SCB`, or of 4 bits with `absmax` and `quant_map`."""
    for end, unpacked in ((".SCB", of_eight_bits), (".weight.quant_map", of_four_bits)):
        for stem in stems(held, end):
            held[f"{stem}.weight"] = unpacked(Parts(folder, stem, held))


def of_eight_bits(parts: Parts) -> TensorEntry:
    """A matrix int8 [out, in], and the largest number of each row, which 127 represents."""
    integers = parts.take("weight", SIGNED, None, None)
    n_out, n_in = integers.shape
    scales = parts.numbers("SCB", n_out) / 127
    if parts.has("weight_format") and parts.take("weight_format", BYTES):
        raise parts.fault(
            "weight_format", "names an order of columns that cellformer cannot unpack"
        )
    rows = partial(of_scaled_rows, integers, scales)
    return entry(parts.folder, parts.stem, (n_out, n_in), rows, turned=False)


def of_scaled_rows(integers: np.ndarray, scales: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Rows [start, stop) of [out, in]."""
    return np.asarray(integers[start:stop] * scales[start:stop, None])


class State(NamedTuple):
    """The shape and block size that bitsandbytes writes beside a matrix of 4 bits."""

    shape: tuple[int, int]
    size: int
    nested_size: int  # of the blocks of packed scales, and what is added to these
    offset: float

    @classmethod
    def of(cls, parts: Parts) -> "State":
        """The one state of a matrix, a JSON object in bytes."""
        mark = f"{parts.stem}.weight.quant_state."
        names = [name for name in parts.held if name.startswith(mark)]
        if len(names) != 1:
            raise parts.fault("weight.quant_state", f"appears {len(names)} times, not once")
        data = parts.take(names[0].removeprefix(f"{parts.stem}."), BYTES, None)
        where = parts.folder / names[0]
        try:
            return cls.read(Fields(where, parse_json(data.tobytes(), where) or {}))
        except InputError as error:
            raise InputError(f"{error}; download the folder again") from None

    @classmethod
    def read(cls, said: Fields) -> "State":
        """The state that a JSON object says."""
        shape = said.listed("shape", int)
        if len(shape) != 2 or not all(0 < side < LARGEST for side in shape):
            raise InputError(
                f"{said.path}: 'shape' must list two positive numbers; download the folder again"
            )
        sizes = said.get("blocksize", int), said.get("nested_blocksize", int, 1)
        if any(size < 1 or size & (size - 1) for size in sizes):
            raise InputError(
                f"{said.path}: its blocks have {sizes[0]} and {sizes[1]} numbers; both must be "
                "powers of 2"
            )
        return cls((shape[0], shape[1]), *sizes, said.get("nested_offset", float, 0.0))


def of_four_bits(parts: Parts) -> TensorEntry:
    """A matrix with two numbers in each byte, the first in its high bits."""
    state = State.of(parts)
    (n_out, n_in), size = state.shape, state.size
    numbers = parts.numbers("weight.quant_map", 16)
    scales = of_blocks(parts, state, -(-n_out * n_in // size))
    data = parts.take("weight", BYTES, -(-n_out * n_in // 2), 1)[:, 0]
    rows = partial(of_named_numbers, data, numbers, scales, size, n_in)
    return entry(parts.folder, parts.stem, (n_out, n_in), rows, turned=False)


def of_blocks(parts: Parts, state: State, n: int) -> np.ndarray:
    """The scales of n blocks. They may be packed in turn: bytes that name one of 256 numbers, times
    a scale of theirs, plus an offset."""
    if not parts.has("weight.nested_absmax"):
        return parts.numbers("weight.absmax", n)
    outer = parts.numbers("weight.nested_absmax", -(-n // state.nested_size))
    numbers = parts.numbers("weight.nested_quant_map", 256)
    names = parts.take("weight.absmax", BYTES, n)
    return np.asarray(numbers[names] * outer[np.arange(n) // state.nested_size] + state.offset)


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


KINDS: dict[str, Callable[[Path, Config, Held], None]] = {
    "gptq": gptq,
    "awq": awq,
    "bitsandbytes": bitsandbytes,
    "mlx": mlx,
}
