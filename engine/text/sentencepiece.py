"""SentencePiece's own file, tokenizer.model: its tokens and its normalization.

A protocol buffer. BPE without normalization is read, as Llama, Mistral and Gemma use it, and plain
unigrams, as Marian does.
"""

import base64
import struct
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.text.tokenizers_library import is_sound
from cellformer.engine.text.unigram import CharacterMap, Unigram

PIECE, TRAINER, NORMALIZER = 1, 2, 3  # the parts of a model
TEXT, SCORE, KIND = 1, 2, 3  # the fields of a piece
NORMAL = 1  # a piece's kind, unless it says another
MODEL_TYPE, SPACE_BEHIND, BYTES = 3, 24, 35  # of the trainer
CHARACTER_MAP, SPACE_BEFORE, FEWER_SPACES, SIGNS = 2, 3, 4, 5  # of the normalizer
UNIGRAM, BPE = 1, 2
MOST_BYTES = 20_000_000  # of a file; the largest have 5 million
MOST_FIELDS = 1_000_000  # of a message: a piece is one, and the largest vocabularies have 262,000
MOST_DIGITS = 10  # of seven bits: a number has 64 bits at most
REMEDY = (
    "save the tokenizer as tokenizer.json, with AutoTokenizer.from_pretrained and save_pretrained"
)


class UnreadError(InputError):
    """A file that may be valid but is not supported: its model can still be used with token ids."""


def tokenizer(path: Path) -> Any:
    """The library's tokenizer of a file, without special tokens. Raises UnreadError."""
    from cellformer.engine.text.vocabularies import sentence_pieces

    found = content(path)
    if found.trainer.get(MODEL_TYPE, UNIGRAM) != BPE:
        raise UnreadError(f"{path} has no byte pairs, but cellformer needs byte pairs; {REMEDY}")
    rules = found.rules
    if rules.get(CHARACTER_MAP) or rules.get(FEWER_SPACES, 1):
        raise UnreadError(
            f"{path} changes the text before it splits the text, which cellformer cannot do; "
            f"{REMEDY}"
        )
    before = bool(rules.get(SPACE_BEFORE, 1))
    return sentence_pieces(found.texts, found.scores, found.kinds, space_before=before)


def unigram(path: Path) -> Unigram:
    """The unigram tokenizer of a file. Raises UnreadError."""
    from cellformer.engine.text.vocabularies import Kind

    found, trainer = content(path), content(path).trainer
    plain = {Kind.NORMAL, Kind.UNKNOWN, Kind.CONTROL, Kind.UNUSED}
    if trainer.get(MODEL_TYPE, UNIGRAM) != UNIGRAM or not plain.issuperset(found.kinds):
        raise UnreadError(
            f"{path} is not a plain unigram tokenizer, but cellformer needs one; {REMEDY}"
        )
    if trainer.get(SPACE_BEHIND) or trainer.get(BYTES) or not found.rules.get(SIGNS, 1):
        raise UnreadError(
            f"{path} marks spaces in a way that cellformer does not support; {REMEDY}"
        )
    pieces = zip(found.texts, found.scores, found.kinds, strict=True)
    scores = {text: score for text, score, kind in pieces if kind == Kind.NORMAL}
    charsmap = found.rules.get(CHARACTER_MAP, b"")
    if not scores or (charsmap and not is_sound(base64.b64encode(charsmap))):
        raise UnreadError(f"{path} is not a SentencePiece model; {REMEDY}")
    before, fewer = (bool(found.rules.get(key, 1)) for key in (SPACE_BEFORE, FEWER_SPACES))
    return Unigram(scores, character_map(charsmap) if charsmap else None, before, fewer)


def character_map(data: bytes) -> CharacterMap:
    """A normalizer's map of characters: its size, its tree, and its texts."""
    size = 4 + int.from_bytes(data[:4], "little")
    return CharacterMap(tuple(np.frombuffer(data[4:size], "<u4").tolist()), data[size:])


class Content(NamedTuple):
    """The contents of a file: pieces, and fields of its trainer and its normalizer."""

    texts: list[str]
    scores: list[float]
    kinds: list[int]
    trainer: dict[int, Any]
    rules: dict[int, Any]


def content(path: Path) -> Content:
    """The content of a file. Raises UnreadError."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("too many bytes")
        found = list(fields(path.read_bytes()))
        pieces = [dict(fields(value)) for field, value in found if field == PIECE]
        parts = dict(found)
        trainer, rules = (dict(fields(parts.get(part, b""))) for part in (TRAINER, NORMALIZER))
        texts = [piece[TEXT].decode("utf-8") for piece in pieces]
        scores = [struct.unpack("<f", piece.get(SCORE, bytes(4)))[0] for piece in pieces]
        kinds = [piece.get(KIND, NORMAL) for piece in pieces]
        if not texts or not all(map(isfinite, scores)):
            raise ValueError("no pieces, or scores that are not numbers")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, struct.error):
        raise UnreadError(f"{path} is not a SentencePiece model; {REMEDY}") from None
    return Content(texts, scores, kinds, trainer, rules)


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer message, each with its number: integers, or bytes."""
    at, n = 0, 0
    while at < len(data):
        key, at = _number(data, at)
        n += 1
        if not key >> 3 or n > MOST_FIELDS:
            raise ValueError("a field without a number, or too many fields")
        if key & 7 == 0:
            value, at = _number(data, at)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        if size is None:
            if key & 7 != 2:
                raise ValueError("a kind of field that is no longer used")
            size, at = _number(data, at)
        if at + size > len(data):
            raise ValueError("a field that is cut off")
        yield key >> 3, data[at : at + size]
        at += size


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A varint (seven bits per byte), and the offset after it."""
    value = 0
    for k in range(MOST_DIGITS):
        byte = data[at + k]
        value |= (byte & 127) << 7 * k
        if byte < 128:
            return value, at + k + 1
    raise ValueError("a number that ends with the file")
