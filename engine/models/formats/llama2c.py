"""llama2.c's `.bin` files (versions 0, 1 and 2), with a `tok*.bin` beside them.

A Llama model whose matrices stand in a fixed order; version 2 quantizes them to 8 bits. Rows of
queries and keys that rotate together are adjacent, as in Meta's own files.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import isfinite, prod
from pathlib import Path

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import check_size
from cellformer.engine.cells.stored import DTYPES, Place, Span, TensorFile
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.formats import Source
from cellformer.engine.models.spec import MAX_HEADS
from cellformer.engine.models.tensors import Tensors, entry
from cellformer.engine.text.tokenizer import IdsOnly, Library, Tokenizer
from cellformer.engine.text.vocabularies import Kind, sentence_pieces

MAGIC = 0x616B3432  # "ak42" before the version, from the first one on
HEADER = 256  # bytes of it, from version 1 on
FIELDS = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
    "max_position_embeddings",
)
OUTSIDE = EMBEDDING, FINAL, HEAD = "model.embed_tokens", "model.norm", "lm_head"
ATTENTION = tuple(f"self_attn.{which}_proj" for which in "qkvo")
MLP = tuple(f"mlp.{which}_proj" for which in ("gate", "down", "up"))
BEFORE, BETWEEN = "input_layernorm", "post_attention_layernorm"
ORDER = {  # of the tensors; what is in every layer stands there layer by layer
    0: (EMBEDDING, BEFORE, *ATTENTION, BETWEEN, *MLP, FINAL, HEAD),
    1: (BEFORE, BETWEEN, FINAL, EMBEDDING, *ATTENTION, *MLP, HEAD),
}
ORDER[2] = ORDER[1]
F32 = DTYPES["F32"]
SCALES = " scales"  # behind the name of a packed tensor
ENDS = {0: "<unk>", 1: "<s>", 2: "</s>"}  # the first pieces, which tok*.bin spells otherwise
BYTES = range(3, 259)  # the ids of single bytes
MOST_BYTES = 20_000_000  # of a tokenizer's file; that of Llama has 434 thousand


@dataclass(frozen=True)
class Shape:
    """The sizes in a header."""

    sizes: dict[str, int]
    version: int
    tied: bool
    group: int  # numbers that share a scale, in version 2
    begin: int  # of the numbers


def reads(name: str) -> bool:
    """A file that ends in .bin and is neither a tokenizer nor torch's."""
    path = Path(name)
    other = path.name.startswith(("tok", "pytorch_model"))
    return path.is_file() and path.suffix == ".bin" and not other


def open_source(name: str) -> Source:
    """The model of a .bin file."""
    path = Path(name)
    shape = header(path)
    size, wanted = path.stat().st_size, n_bytes(shape)
    if size != wanted:  # before what the header says is listed
        raise InputError(
            f"{path} has {size:,} bytes, but its header requires {wanted:,}; download the file "
            "again"
        )
    places = dict(laid_out(shape))
    file = GroupedFile(path, places, shape.group)
    config = {
        "model_type": "llama",
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": shape.tied,
        **shape.sizes,
    }
    tensors = Tensors(path, {own: entry(file, own) for own in places if not own.endswith(SCALES)})
    return Source(Config(path, config), tensors, partial(tokenizer, path))


def header(path: Path) -> Shape:
    """The sizes in a file's header. Raises InputError for impossible ones."""
    with path.open("rb") as file:
        data = file.read(HEADER).ljust(HEADER, b"\0")
    magic, version = struct.unpack_from("<Ii", data)
    if magic != MAGIC:
        sizes, version, begin = struct.unpack_from("<7i", data), 0, 28
        tied, group = sizes[5] > 0, 0
    else:
        sizes, begin = struct.unpack_from("<7i", data, 8), HEADER
        tied, group = struct.unpack_from("<?i", data, 36)
    found = dict(zip(FIELDS, (*sizes[:5], abs(sizes[5]), sizes[6]), strict=True))
    width, heads, shared = (found[FIELDS[k]] for k in (0, 3, 4))
    whole = min(found.values()) > 0 and not (width % heads or heads % shared)
    whole = whole and found["num_hidden_layers"] * heads <= MAX_HEADS and version in ORDER
    shape = Shape(found, version, tied, group, begin)
    if not whole or (version > 1 and (group < 1 or not in_groups(shape))):
        raise InputError(
            f"{path} is not a llama2.c model, because the values in its header are not valid; "
            "download the file again"
        )
    return shape


def in_groups(shape: Shape) -> bool:
    """Whether every matrix can be divided into groups of equal size."""
    return not any(prod(sides_of(shape, p)) % shape.group for p in (EMBEDDING, *ATTENTION, *MLP))


def n_bytes(shape: Shape) -> int:
    """The file's expected length, by arithmetic: a damaged header may claim a billion layers."""
    found = shape.begin + (0 if shape.version else rotation_bytes(shape))
    for part in ORDER[shape.version]:
        *_, (_, last) = placed(shape, part, part, 0)
        if not (part == HEAD and shape.tied):
            found += last.end * (1 if part in OUTSIDE else shape.sizes["num_hidden_layers"])
    return found


def laid_out(shape: Shape) -> Iterator[tuple[str, Place]]:
    """The place of each tensor in the file, by its Hugging Face name."""
    offset = shape.begin
    for part in ORDER[shape.version]:
        outside = part in OUTSIDE
        if part == HEAD and shape.tied:
            continue
        if part == HEAD and not shape.version:
            offset += rotation_bytes(shape)
        for n in range(1 if outside else shape.sizes["num_hidden_layers"]):
            name = f"{part}.weight" if outside else f"model.layers.{n}.{part}.weight"
            for own, place in placed(shape, name, part, offset):
                yield own, place
                offset = place.end


def placed(shape: Shape, name: str, part: str, offset: int) -> Iterator[tuple[str, Place]]:
    """The place of a tensor that begins at an offset; a quantized one is followed by its scales."""
    sides = sides_of(shape, part)
    paired = head_size(shape) if part in ATTENTION[:2] else 0
    if shape.version < 2 or len(sides) == 1:
        yield name, Place.plain(offset, sides, F32, paired)
        return
    packed = Place(offset, sides, F32, sides[1], partial(np.ndarray.view, dtype=np.int8), paired)
    yield name, packed
    yield name + SCALES, Place.plain(packed.end, (prod(sides) // shape.group,), F32)


def sides_of(shape: Shape, part: str) -> tuple[int, ...]:
    """A tensor's shape, [out, in]."""
    width, hidden = shape.sizes["hidden_size"], shape.sizes["intermediate_size"]
    if part in (EMBEDDING, HEAD):
        return shape.sizes["vocab_size"], width
    if part in ("self_attn.k_proj", "self_attn.v_proj"):
        return shape.sizes["num_key_value_heads"] * head_size(shape), width
    if part in ATTENTION:
        return width, width
    if part in MLP:
        return (width, hidden) if part == "mlp.down_proj" else (hidden, width)
    return (width,)


def head_size(shape: Shape) -> int:
    """The number of features of a head."""
    return shape.sizes["hidden_size"] // shape.sizes["num_attention_heads"]


def rotation_bytes(shape: Shape) -> int:
    """The size of the cosines and sines that version 0 stores, which are not used."""
    return shape.sizes["max_position_embeddings"] * head_size(shape) * int(F32.itemsize)


class GroupedFile(TensorFile):
    """A file of quantized tensors with a scale for every group of numbers."""

    def __init__(self, path: Path, places: dict[str, Place], group: int):
        super().__init__(path, places)
        self.group = group

    def _read(self, name: str, rows: Span) -> np.ndarray:
        found = super()._read(name, rows)
        if found.dtype != np.int8:
            return found
        begin, end = (row * found.shape[1] for row in rows)  # of the numbers
        groups = begin // self.group, -(-end // self.group)
        scales: np.ndarray = super()._read(name + SCALES, groups).repeat(self.group)
        first = groups[0] * self.group
        scales = scales[begin - first : end - first].reshape(found.shape)
        return np.asarray(found * scales)


# --- tokenizer ----------------------------------------------------------------------------------


def tokenizer(path: Path, n: int) -> Tokenizer:
    """The tokenizer beside a model: tok512.bin for 512 tokens, or tokenizer.bin; else `IdsOnly`.

    It holds the tokens of SentencePiece's BPE with their scores, and spaces for ▁.
    """
    found = [path.with_name(f"tok{n}.bin"), path.with_name("tokenizer.bin")]
    beside = next((p for p in found if p.is_file()), None)
    if beside is None:
        return IdsOnly(n)
    pieces, scores = in_tokenizer(beside)
    if len(pieces) != n:
        raise InputError(
            f"{beside} has {len(pieces)} pieces of text for {n} token ids; the numbers must be "
            "equal"
        )
    pieces[: len(ENDS)] = ENDS.values()
    kinds = [Kind.UNKNOWN, Kind.CONTROL, Kind.CONTROL, *[Kind.NORMAL] * (n - len(ENDS))]
    for i in BYTES:
        if i < n and pieces[i] == f"<0x{i - BYTES.start:02X}>":
            kinds[i] = Kind.BYTE
    return Library(sentence_pieces(pieces, scores, kinds, (ENDS[1], None)), n, 1, tuple(ENDS)[1:])


def in_tokenizer(path: Path) -> tuple[list[str], list[float]]:
    """The tokens in a tokenizer's file, and their scores."""
    check_size(path, MOST_BYTES)
    data, at = path.read_bytes(), 4  # behind the length of the longest piece
    pieces: list[str] = []
    scores: list[float] = []
    while at < len(data):
        head = data[at : at + 8]
        score, length = struct.unpack("<fi", head) if len(head) == 8 else (0.0, -1)
        text = data[at + 8 : at + 8 + length]
        if length < 0 or len(text) < length or not isfinite(score):
            raise InputError(
                f"{path} ends in the middle of piece {len(pieces)}, or is not a tokenizer; "
                "download the file again"
            )
        pieces.append(text.decode("utf-8", "replace").replace(" ", "▁"))
        scores.append(score)
        at += 8 + length
    if len(pieces) < len(ENDS):
        raise InputError(f"{path} is not a llama2.c tokenizer: it has {len(pieces)} pieces")
    return pieces, scores
