"""Tokenizers of the `tokenizers` library, built from the vocabularies of older files and formats.

Three kinds: byte-level BPE (GPT-2's), with its merges and the name of a pre-tokenizer pattern;
SentencePiece's BPE, whose merges follow from the tokens' scores; and BERT's WordPiece. Files are
checked by `tokenizers_library` before use.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers import BertWordPieceTokenizer as BertTokenizer
from tokenizers.models import BPE, WordPiece
from tokenizers.processors import TemplateProcessing

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import check_size, read_json
from cellformer.engine.text.tokenizers_library import asked, check_pieces

Ends = Sequence[str | None]  # what comes before a text, and behind it


class Kind(IntEnum):
    """A token's kind, by its number in SentencePiece and GGUF."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORD_AND_SPACE = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{WORD_AND_SPACE}"
QWEN2 = rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{WORD_AND_SPACE}"
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
LLAMAS = ("llama-bpe", "llama3", "llama-v3", "falcon3")  # texts begin with a token by default, and
# a word that is a token is not merged from parts
PATTERNS = {
    **dict.fromkeys((*LLAMAS, "dbrx", "smaug-bpe"), LLAMA3),
    **dict.fromkeys(("qwen2", "stablelm2"), QWEN2),
    **dict.fromkeys(("bloom", "poro-chat", "gpt3-finnish"), BLOOM),
}
BEFORE_DIGITS = ("smollm", "starcoder", "refact", "command-r")  # every digit stands alone there
AS_GPT2 = ("", "default", "gpt-2", "phi-2", "olmo", "mpt", "jais")


def byte_level(
    pieces: Sequence[str],
    merges: Sequence[str],
    pattern: str,
    kinds: Sequence[int],
    ends: Ends = (None, None),
) -> Tokenizer:
    """Byte-level BPE; `pattern` is llama.cpp's name for the pre-tokenizer.

    `ends` are the tokens before and after every text, if any.
    """
    check_pieces(pieces, (), "the vocabulary")
    used = {p: i for i, p in enumerate(pieces) if kinds[i] != Kind.UNUSED}
    pairs = [merge.partition(" ")[::2] for merge in merges]
    known = [pair for pair in pairs if all(p in used for p in (*pair, "".join(pair)))]
    with asked("its merges"):
        inner = Tokenizer(BPE(used, known, ignore_merges=pattern in LLAMAS))
    if PATTERNS.get(pattern) == QWEN2:
        inner.normalizer = normalizers.NFC()
    inner.pre_tokenizer = _splitter(pattern)
    inner.decoder = decoders.ByteLevel()
    return finish(inner, pieces, kinds, ends)


def byte_level_files(vocab: Path, merges: Path, qwen: bool, prefix: bool) -> Tokenizer:
    """Byte-level BPE from GPT-2's two files, or Qwen's, with another pre-tokenizer; `prefix` puts a
    space before every text."""
    pieces = read_json(vocab)
    if not isinstance(pieces, dict):
        raise InputError(f"{vocab} does not contain tokens with their ids; download the file again")
    check_pieces(pieces, pieces.values(), str(vocab))
    check_size(merges)
    with asked(f"{vocab} and {merges.name}"):
        inner = Tokenizer(BPE.from_file(str(vocab), str(merges)))
    inner.decoder = decoders.ByteLevel()
    level = pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=not qwen)
    inner.pre_tokenizer = level
    if qwen:
        inner.normalizer = normalizers.NFC()
        words = pre_tokenizers.Split(Regex(QWEN2), "isolated")
        inner.pre_tokenizer = pre_tokenizers.Sequence([words, level])
    return inner


def word_pieces(path: Path, options: Mapping[str, bool]) -> Tokenizer:
    """BERT's WordPiece tokenizer, from a file with one token per line."""
    check_size(path)
    with asked(str(path)):
        pieces = WordPiece.read_file(str(path))
        check_pieces(pieces, (), str(path))
        inner: Tokenizer = BertTokenizer(pieces, **options)._tokenizer
    return inner


def phantom_pieces(pieces: Sequence[str], kinds: Sequence[int]) -> Tokenizer:
    """BERT's WordPiece from GGUF: a piece that begins a word has a ▁ before it there, one within a
    word no ##. Capitals and accents are taken off, as llama.cpp does."""
    check_pieces(pieces, (), "the vocabulary")
    plain = {Kind.CONTROL, Kind.UNKNOWN, Kind.UNUSED}
    spelt = {
        p if kind in plain or p[:1] + p[-1:] == "[]" else p[1:] if p[:1] == "▁" else f"##{p}": i
        for i, (p, kind) in enumerate(zip(pieces, kinds, strict=True))
    }
    with asked("its pieces"):
        inner: Tokenizer = BertTokenizer(spelt)._tokenizer
    return inner


def _splitter(pattern: str) -> Any:
    """The pre-tokenizer of a name."""
    as_gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if pattern in AS_GPT2:
        return as_gpt2
    if pattern in BEFORE_DIGITS:
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), as_gpt2])
    if pattern == "falcon":
        marks = pre_tokenizers.Punctuation("contiguous")
        three = pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")
        digits = pre_tokenizers.Digits(individual_digits=False)
        return pre_tokenizers.Sequence([marks, as_gpt2, digits, three])
    if pattern not in PATTERNS:
        known = ", ".join((*AS_GPT2[1:], *BEFORE_DIGITS, "falcon", *PATTERNS))
        raise InputError(
            f"its tokenizer splits text by {pattern!r}; cellformer supports only {known}"
        )
    split = pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated")
    bytes_only = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, bytes_only])


def sentence_pieces(
    pieces: Sequence[str],
    scores: Sequence[float],
    kinds: Sequence[int],
    ends: Ends = (None, None),
    space_before: bool = True,
) -> Tokenizer:
    """SentencePiece's BPE: spaces are ▁, and text outside the vocabulary becomes single bytes."""
    check_pieces(pieces, (), "the vocabulary")
    used = {p: i for i, p in enumerate(pieces) if kinds[i] != Kind.UNUSED}
    unknown = next((p for p, k in zip(pieces, kinds, strict=True) if k == Kind.UNKNOWN), None)
    merged = [p for p, kind in zip(pieces, kinds, strict=True) if kind == Kind.NORMAL]
    merges = _merges(merged, dict(zip(pieces, scores, strict=True)))
    with asked("its pieces"):
        inner = Tokenizer(BPE(used, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True))
    prepend = [normalizers.Prepend("▁")] if space_before else []
    inner.normalizer = normalizers.Sequence([*prepend, normalizers.Replace(" ", "▁")])
    back: list[Any] = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    inner.decoder = decoders.Sequence(back + [decoders.Strip(" ", 1, 0)] * space_before)
    return finish(inner, pieces, kinds, ends)


def _merges(pieces: Sequence[str], scores: dict[str, float]) -> list[tuple[str, str]]:
    """The pairs that make up each token: first the pairs of the token with the best score, then by
    the halves' ids.

    SentencePiece merges the adjacent pair whose union has the best score, whatever pair that is.
    """
    place = {piece: i for i, piece in enumerate(pieces)}
    found = [
        (-scores[piece], place[left], place[right], left, right)
        for piece in pieces
        for left, right in ((piece[:k], piece[k:]) for k in range(1, len(piece)))
        if left in place and right in place
    ]
    return [(left, right) for *_, left, right in sorted(found)]


def finish(inner: Tokenizer, pieces: Sequence[str], kinds: Sequence[int], ends: Ends) -> Tokenizer:
    """Set special tokens, and the tokens before and after every text."""
    whole = {Kind.CONTROL: True, Kind.UNKNOWN: True, Kind.USER_DEFINED: False}  # special or not
    inner.add_tokens(
        [
            AddedToken(piece, normalized=False, special=whole[Kind(kind)])
            for piece, kind in zip(pieces, kinds, strict=True)
            if kind in whole
        ]
    )
    if any(ends):
        put_around(inner, ends)
    return inner


def put_around(inner: Tokenizer, ends: Ends) -> None:
    """Put tokens before and after every text."""
    template = [piece for piece in (ends[0], "$A", ends[1]) if piece]
    ids = {piece: inner.token_to_id(piece) for piece in ends if piece}
    inner.post_processor = TemplateProcessing(single=template, special_tokens=[*ids.items()])
