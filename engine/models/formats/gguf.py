"""GGUF, llama.cpp's format: metadata, possibly quantized tensors, and a vocabulary.

Names of architectures, metadata and tensors are translated by the tables in `gguf_families`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cellformer.engine.cells.errors import InputError, check_all
from cellformer.engine.cells.stored import Place, TensorFile
from cellformer.engine.models.foreign import LLAMA3, ORIGINAL, Config
from cellformer.engine.models.formats import Source
from cellformer.engine.models.gguf_families import FAMILIES, Family, family_of
from cellformer.engine.models.gguf_file import MAGIC, SPLIT, Values, header, split
from cellformer.engine.models.tensors import TensorEntry, Tensors, entry
from cellformer.engine.text import chat_template
from cellformer.engine.text.tokenizer import IdsOnly, Library, Tokenizer
from cellformer.engine.text.tokenizers_library import asked
from cellformer.engine.text.vocabularies import (
    LLAMAS,
    Kind,
    byte_level,
    phantom_pieces,
    sentence_pieces,
)

OF_TOKENIZER, TEMPLATE = "tokenizer.ggml.", "tokenizer.chat_template"

SCALING = {
    "type": "rope_type",
    "factor": "factor",
    "original_context_length": "original_max_position_embeddings",
}
OF_ALL_HEADS = "attention.head_count_kv"
WHOLE_HEAD = ("rope.dimension_count", "attention.value_length")  # keys that repeat a head's size
OF_NO_CONSEQUENCE = (  # the embedding says it; history; a remark on `fused`
    "vocab_size",
    "rope.scaling.finetuned",
    "tensor_data_layout",
)
NEUTRAL: tuple[Any, ...] = (0, None, "none", "", [])  # values of keys that then change nothing
MOST_EXPERTS = 10_000  # of a layer; the largest models have 512
FACTORS = "rope_freqs.weight"  # what Llama 3 divides its frequencies by
ROUTER = "ffn_gate_inp_shexp"  # of Qwen's shared expert
SHORT, LONG = "rope_factors_short.weight", "rope_factors_long.weight"  # of Phi-3


def reads(name: str) -> bool:
    """A GGUF file, by its extension or its first bytes."""
    path = Path(name)
    if not path.is_file():
        return False
    if path.suffix == ".gguf":
        return True
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open_source(name: str) -> Source:
    """The model of a GGUF file."""
    path = Path(name)
    meta, places = header(path)
    said = Config(path, meta)
    kind = said.get("general.architecture", str)
    if kind not in FAMILIES:
        raise InputError(
            f"{path} has the architecture {kind!r}; from GGUF files, cellformer can read only "
            f"{', '.join(FAMILIES)}"
        )
    values = config(said, kind, places)
    values |= stretched(path, values, places)
    tensors = named(path, family_of(kind, places), values, places)
    return Source(Config(path, values), Tensors(path, tensors), partial(tokenizer, said))


def integers(name: str) -> tuple[dict[str, str], Tensors, Tensors]:
    """The kinds, integers and scales of the matrices of a file that are packed as integers times
    scales, by their Hugging Face names; a number is its integer times its scale."""
    path = Path(name)
    meta, places = header(path)
    said = Config(path, meta)
    kind = said.get("general.architecture", str)
    family, values = family_of(kind, places), config(said, kind, places)
    kinds = {
        own: place.unpack.keywords["qtype"].name
        for own, place in places.items()
        if isinstance(place.unpack, partial) and len(place.shape) == 2
    }
    kinds = {own: packed for own, packed in kinds.items() if packed in SPLIT}

    def tensors(which: int) -> Tensors:
        apart = {
            own: replace(places[own], unpack=partial(_part, kind=packed, which=which))
            for own, packed in kinds.items()
        }
        return Tensors(path, named(path, family, values, apart))

    names = {hugging_face_name(family, own)[0]: packed for own, packed in kinds.items()}
    return names, tensors(0), tensors(1)


def _part(data: np.ndarray, kind: str, which: int) -> np.ndarray:
    """The integers of packed rows (0), or their scales (1)."""
    return split(data, kind)[which]


# --- config -------------------------------------------------------------------------------------


def config(meta: Config, kind: str, places: Mapping[str, Place]) -> Values:
    """The metadata as a config.json."""
    path = meta.path
    if "token_embd.weight" not in places:
        raise InputError(f"{path} has no tensor token_embd.weight")
    own = [key for key in meta.values if key.startswith(f"{kind}.")]
    said = {key.removeprefix(f"{kind}."): meta.values[key] for key in own}
    values = dict(FAMILIES[kind].fixed) | translated(path, kind, said)
    values["vocab_size"] = places["token_embd.weight"].shape[0]
    values["tie_word_embeddings"] = "output.weight" not in places
    values |= FAMILIES[kind].settle(values, places)
    for end in ("bos", "eos"):
        if (ident := meta.optional(f"{OF_TOKENIZER}{end}_token_id", int, None)) is not None:
            values[f"{end}_token_id"] = ident
    return values


def translated(path: Path, kind: str, said: Values) -> Values:
    """An architecture's own keys. Raises InputError for an unknown one that would change the
    result."""
    family = FAMILIES[kind]
    values: Values = {}
    scaling: Values = {}
    for key, value in said.items():
        part = key.removeprefix("rope.scaling.")
        if key in family.keys:
            values[family.keys[key]] = value
        elif part != key and part in SCALING:
            scaling[SCALING[part]] = value
        elif key == OF_ALL_HEADS and value == said.get("attention.head_count"):
            continue  # an architecture in which none is shared
        elif key not in (*WHOLE_HEAD, *OF_NO_CONSEQUENCE) and value not in NEUTRAL:
            raise InputError(
                f"{path} has {kind}.{key} = {value!r}, and cellformer does not support this value"
            )
    if scaling.get("rope_type", "none") != "none":
        values["rope_scaling"] = scaling
    size = head_size(path, values)
    n_rotary = said.get("rope.dimension_count")
    if family.share and size and isinstance(n_rotary, int):
        values[family.share] = share_of(path, n_rotary, size)
    check_all(*(
        (
            said.get(key, size) == size,
            f"{path}: {key} is {said.get(key)!r}, but a head has {size} features, and both numbers "
            "must be equal; download the file again",
        )
        for key in WHOLE_HEAD[bool(family.share) :]
    ))  # fmt: skip
    return values


def share_of(path: Path, n_rotary: int, size: int) -> float:
    """The share of a head's features that rotate, whose product with `size` is not below their
    number. Raises InputError."""
    if not 0 <= n_rotary <= size:
        raise InputError(
            f"{path}: rope.dimension_count is {n_rotary}, but it must be from 0 to {size}, the "
            "number of features of a head; download the file again"
        )
    return n_rotary / size if int(n_rotary / size * size) == n_rotary else (n_rotary + 0.5) / size


def head_size(path: Path, values: Values) -> int | None:
    """The number of features of a head; None if the metadata do not say."""
    heads = "n_head" if "n_head" in values else "num_attention_heads"
    if not {"hidden_size", heads} <= values.keys():
        return None
    said = Config(path, values)
    given: int | None = said.optional("head_dim", int, None)
    return given or said.divide("hidden_size", heads)


def stretched(path: Path, values: Values, places: Mapping[str, Place]) -> Values:
    """The scaling of rotary positions that is in tensors: Llama 3's, or Phi-3's. Raises
    InputError."""
    file = TensorFile(path, places)
    if FACTORS in places:
        theta = Config(path, values).get("rope_theta", float)
        return {"rope_scaling": llama3_scaling(path, file.whole(FACTORS), theta)}
    if not {SHORT, LONG} <= places.keys():
        return {}
    scaling = {
        "type": "longrope",
        "short_factor": file.whole(SHORT).tolist(),
        "long_factor": file.whole(LONG).tolist(),
    }
    return {"rope_scaling": scaling | {"attention_factor": values.pop("attention_factor", None)}}


def llama3_scaling(path: Path, stretch: np.ndarray, theta: float) -> Values:
    """The Llama 3 scaling that gives these divisors of a head's frequencies."""
    if stretch.ndim != 1 or not (stretch > 0).all() or theta <= 0:
        raise InputError(
            f"{path} divides its frequencies by {FACTORS}, and all these numbers must be "
            "positive; download the file again"
        )
    factor = float(stretch.max())
    low, high = LLAMA3["low_freq_factor"], LLAMA3["high_freq_factor"]
    radians = theta ** (-np.arange(len(stretch)) / len(stretch))  # a token
    turns = LLAMA3[ORIGINAL] * radians / (2 * np.pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    if not np.allclose(stretch, 1 / ((1 - smooth) / factor + smooth), rtol=1e-4):
        raise InputError(
            f"{path} divides its frequencies by {FACTORS}, but these are not the numbers of Llama "
            "3, the only ones that cellformer supports; use the model in Hugging Face's format"
        )
    return {"rope_type": "llama3", "factor": factor, **LLAMA3}


# --- tensors ------------------------------------------------------------------------------------


def named(
    path: Path, family: Family, values: Values, places: Mapping[str, Place]
) -> dict[str, TensorEntry]:
    """The tensors by their Hugging Face names; unknown tensors keep their own."""
    turned: dict[str, bool] = {}
    paired = head_size(path, values) or 0
    order = head_by_head(values) if family.fused else ()
    ordered: dict[str, Place] = {}
    for own, place in places.items():
        if own in (FACTORS, SHORT, LONG):
            continue
        name, part = hugging_face_name(family, own)
        turned[name] = part in family.turned and len(place.shape) == 2
        if part == ROUTER and len(place.shape) == 1:  # a matrix with one row
            place = replace(place, shape=(1, *place.shape), row_bytes=place.end - place.offset)
        if part in family.paired:
            place = replace(place, paired=paired)
        elif part and part == family.fused:
            if place.shape[0] % len(order):
                raise InputError(
                    f"{own} in {path} has {place.shape[0]} rows, which does not match "
                    f"{len(order)} heads; download the file again"
                )
            place = replace(place, order=order)
        elif family.above_one and own.endswith("norm.weight"):
            place = replace(place, unpack=partial(less_one, unpack=place.unpack, of=place.dtype))
        ordered[name] = place
        if "{}" in family.parts.get(part, "") and len(place.shape) > 1:
            if place.shape[0] > MOST_EXPERTS:
                raise InputError(
                    f"{own} in {path} has {place.shape[0]:,} experts; cellformer reads at most "
                    f"{MOST_EXPERTS:,}"
                )
            ordered |= {name.replace("{}", str(k)): m for k, m in enumerate(place.stacked)}
            del ordered[name]
    file = TensorFile(path, ordered)
    return {name: entry(file, name, turned.get(name, False)) for name in file.places}


def head_by_head(values: Values) -> tuple[int, ...]:
    """The heads of a tensor with all queries, all keys, all values, in Hugging Face's order: group
    by group the queries, then their key, then their value."""
    n_heads = values.get("n_head") or values.get("num_attention_heads") or 1
    kv_heads = values.get("num_kv_heads") or n_heads
    group = n_heads // kv_heads
    return tuple(
        head
        for k in range(kv_heads)
        for head in (*range(k * group, (k + 1) * group), n_heads + k, n_heads + kv_heads + k)
    )


def less_one(
    data: np.ndarray, unpack: Callable[[np.ndarray], np.ndarray] | None, of: Any
) -> np.ndarray:
    """The numbers of a norm's gain, as bytes, without the 1 that was added."""
    found = unpack(data) if unpack else data.view(of)
    return np.asarray(found - found.dtype.type(1))


def hugging_face_name(family: Family, own: str) -> tuple[str, str]:
    """A tensor's Hugging Face name, and the part of a block that it belongs to."""
    stem, _, end = own.rpartition(".")
    block, _, part = stem.removeprefix("blk.").partition(".")
    if part in family.parts:
        return f"{family.block}.{block}.{family.parts[part]}.{end}", part
    return (f"{family.names[stem]}.{end}" if stem in family.names else own), ""


# --- tokenizer ----------------------------------------------------------------------------------


def tokenizer(said: Config, n: int) -> Tokenizer:
    """The tokenizer of the metadata; `IdsOnly` if there is none."""
    model = said.get(f"{OF_TOKENIZER}model", str, "none")
    if model in ("none", "no_vocab"):
        return IdsOnly(n)
    if model not in MODELS:
        raise InputError(f"{said.path}: cellformer does not support the tokenizer kind {model!r}")
    pieces = said.listed(f"{OF_TOKENIZER}tokens", str)
    if len(pieces) > n:
        raise InputError(
            f"{said.path} has {len(pieces)} pieces of text for {n} token ids; the numbers must "
            "be equal"
        )
    try:
        with asked("its tokenizer"):
            inner = MODELS[model](said, pieces)
    except InputError as error:
        raise InputError(f"{said.path}: {error}") from None
    own = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    named = {name: token(said, theirs) for name, theirs in own.items()}
    begin, last = named["bos"], named["eos"]
    ends = (last,) if 0 <= last < n else ()
    texts = {f"{name}_token": pieces[i] for name, i in named.items() if 0 <= i < len(pieces)}
    chat = chat_template.of_text(said.get(TEMPLATE, str, ""), texts)
    return Library(inner, n, begin if 0 <= begin < n else None, ends, chat)


def byte_pairs(said: Config, pieces: list[str]) -> Any:
    """The library's tokenizer for a vocabulary of GPT-2's kind."""
    pattern = said.get(f"{OF_TOKENIZER}pre", str, "")
    ends = put_between(said, pieces, pattern in LLAMAS)
    merges = said.listed(f"{OF_TOKENIZER}merges", str)
    return byte_level(pieces, merges, pattern, kinds_of(said, pieces), ends)


def scored(said: Config, pieces: list[str]) -> Any:
    """The library's tokenizer for a vocabulary of SentencePiece's kind."""
    scores = said.listed(f"{OF_TOKENIZER}scores", float)
    if len(scores) != len(pieces) or not np.isfinite(scores).all():
        raise InputError(
            f"{OF_TOKENIZER}scores must give each piece a finite number; download the file again"
        )
    before = said.get(f"{OF_TOKENIZER}add_space_prefix", bool, True)
    ends = put_between(said, pieces, True)
    return sentence_pieces(pieces, scores, kinds_of(said, pieces), ends, before)


def of_words(said: Config, pieces: list[str]) -> Any:
    """The library's tokenizer for a vocabulary of BERT's kind."""
    return phantom_pieces(pieces, kinds_of(said, pieces))


MODELS: dict[str, Callable[[Config, list[str]], Any]] = {
    "gpt2": byte_pairs,
    "llama": scored,
    "bert": of_words,
}


def kinds_of(said: Config, pieces: list[str]) -> list[int]:
    """The kind of each token."""
    kinds = said.listed(f"{OF_TOKENIZER}token_type", int) or [int(Kind.NORMAL)] * len(pieces)
    if len(kinds) != len(pieces) or not set(kinds) <= set(Kind):
        raise InputError(
            f"{OF_TOKENIZER}token_type must give each piece a kind (1 to 6); download the file "
            "again"
        )
    return kinds


def put_between(said: Config, pieces: list[str], begins: bool) -> list[str | None]:
    """The tokens before and after every text; `begins`: one before it by default."""
    found: list[str | None] = []
    for end, default in (("bos", begins), ("eos", False)):
        ident = token(said, end)
        wanted = said.get(f"{OF_TOKENIZER}add_{end}_token", bool, default)
        found.append(pieces[ident] if wanted and 0 <= ident < len(pieces) else None)
    return found


def token(said: Config, end: str) -> int:
    """The id of the begin- or end-of-text token; -1 if there is none."""
    return int(said.get(f"{OF_TOKENIZER}{end}_token_id", int, -1))
