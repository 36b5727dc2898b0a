"""Tokenizers of the `tokenizers` library: text to ids, ids to text, the text of each token.

They are loaded as transformers does: tokenizer.json with its post-processor; GPT-2's vocab.json and
merges.txt; BERT's vocab.txt; SentencePiece's tokenizer.model or spiece.model; each with
added_tokens.json, special_tokens_map.json and tokenizer_config.json.
"""

import codecs
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.fields import Fields, content_of, json_object
from cellformer.engine.cells.values import is_whole
from cellformer.engine.text import chat_template, sentencepiece
from cellformer.engine.text import tokenizers_library as library
from cellformer.engine.text.tokenizer_config import heed

FILES = ("tokenizer.json", "vocab.json", "merges.txt", "vocab.txt", "tokenizer.model")
UNIGRAMS = "spiece.model"
OF_BERT = {  # what the library calls options of tokenizer_config.json
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "tokenize_chinese_chars",
}
NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")  # special tokens that have a part


@dataclass(frozen=True)
class Library:
    """A tokenizer of the library, for an embedding of `n` rows.

    A row without a token is shown as its number; a prompt with a token without a row is refused.
    """

    inner: Any
    n: int
    begin: int | None = None
    ends: tuple[int, ...] = ()
    chat: chat_template.ChatTemplate | None = None  # how it wants a conversation to be written

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n:,} tokens>"

    @cached_property
    def texts(self) -> tuple[str, ...]:
        own = _convention(self.inner.decoder)
        pieces = map(self.inner.id_to_token, range(self.n))
        return tuple(f"<{i}>" if piece is None else own(piece) for i, piece in enumerate(pieces))

    @cached_property
    def byte_fallback(self) -> bool:
        """Whether text outside the vocabulary becomes one token per byte."""
        return any(step["type"] == "ByteFallback" for step in decoder_steps(self.inner.decoder))

    def encode(self, text: str, special: bool = True) -> list[int]:
        ids = library.encode(self.inner, text, special)
        for i in ids:
            if i >= self.n:
                raise InputError(
                    f"the prompt has the token {self.inner.id_to_token(i)!r} with id {i}, but "
                    f"the model's embedding has only {self.n} rows; leave out this token, or "
                    "give --ids"
                )
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        check_known(ids, self.n)
        return library.decode(self.inner, ids)


def check_known(ids: Sequence[int], n: int) -> None:
    """Raise InputError for an id that is not below `n`."""
    for i in ids:
        if not (is_whole(i) and 0 <= i < n):
            raise InputError(f"there is no token with the id {i!r}; ids run from 0 to {n - 1}")


# --- a piece's own text -----------------------------------------------------------------------


def byte_alphabet() -> dict[str, int]:
    """GPT-2's alphabet: the character for each byte in a byte-level token."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    unseen = [b for b in range(256) if b not in seen]
    return {chr(b): b for b in seen} | {chr(256 + k): b for k, b in enumerate(unseen)}


def _spelled_bytes(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are not valid UTF-8, written as SentencePiece writes a byte: <0x0A>."""
    assert isinstance(error, UnicodeDecodeError)
    return "".join(f"<0x{byte:02X}>" for byte in error.object[error.start : error.end]), error.end


codecs.register_error("spelled bytes", _spelled_bytes)


def _convention(decoder: Any) -> Callable[[str], str]:
    """A function from a token's own spelling to its text, with its leading space.

    The library's decoder cannot be used for single ids: it strips a leading space.
    """
    steps = decoder_steps(decoder)
    if any(step["type"] == "ByteLevel" for step in steps):
        return _of_bytes
    replaced = [
        (step["replacement"], " ")
        if step["type"] == "Metaspace"
        else (step["pattern"].get("String", ""), step["content"])
        for step in steps
        if step["type"] in ("Metaspace", "Replace")
    ]

    def text(piece: str) -> str:
        for old, new in replaced:
            piece = piece.replace(old, new) if old else piece
        return piece

    return text


def decoder_steps(decoder: Any) -> list[dict[str, Any]]:
    """The steps of a decoder, as in tokenizer.json."""
    if decoder is None:
        return []
    whole = json.loads(decoder.__getstate__())
    return whole["decoders"] if whole["type"] == "Sequence" else [whole]


_BYTES = byte_alphabet()


def _of_bytes(piece: str) -> str:
    """The text of a byte-level token; an added token is its own text."""
    if not all(character in _BYTES for character in piece):
        return piece
    return bytes(_BYTES[character] for character in piece).decode("utf-8", "spelled bytes")


# --- files --------------------------------------------------------------------------------------


def read(folder: Path, n: int) -> Library | None:
    """The tokenizer of a checkpoint folder; None if it has no tokenizer files.

    Raises InputError for invalid files, `sentencepiece.UnreadError` for unsupported ones.
    """
    config = _Config(folder)
    inner = _inner(folder, config)
    if inner is None:
        return None
    bos = config.token("bos")
    begin = n if bos is None else inner.token_to_id(bos)
    chat = chat_template.of_folder(folder, config.values)
    return Library(inner, n, None if begin is None or begin >= n else begin, chat=chat)


def _inner(folder: Path, config: "_Config") -> Any:
    """The library's own tokenizer; special tokens come from tokenizer.json, or are added later."""
    from cellformer.engine.text import spiece, vocabularies

    single, vocab, merges, words, model = (folder / name for name in FILES)
    if single.is_file():
        of_model = json_object(folder / "config.json")
        inner = library.from_file(single, partial(heed, said=config.said, config=of_model))
    elif vocab.is_file() and merges.is_file():
        qwen = str(config.values.get("tokenizer_class", "")).startswith("Qwen2")
        prefix = config.said.get("add_prefix_space", bool, False)
        inner = vocabularies.byte_level_files(vocab, merges, qwen, prefix)
        config.default(("eos", "unk") if qwen else ("bos", "eos", "unk"), "<|endoftext|>")
    elif words.is_file():
        asked = {ours: config.said.optional(own, bool, None) for ours, own in OF_BERT.items()}
        options = {ours: value for ours, value in asked.items() if value is not None}
        inner = vocabularies.word_pieces(words, options)
        config.default(("unk",), "[UNK]")
    elif model.is_file():
        inner = sentencepiece.tokenizer(model)
        config.default(("bos",), "<s>")
        config.default(("eos",), "</s>")
    elif (pieces := folder / UNIGRAMS).is_file():
        style = spiece.style_of(pieces, config.said)
        for part, token in style.tokens.items():
            config.default((part,), token)
        ends = [config.token(part) for part in style.ends]
        named = [known for part in NAMED if (known := config.token(part))]
        inner = spiece.tokenizer(pieces, config.said, style, ends, named)
    else:
        return None
    with library.asked(f"{folder}: the added tokens of its tokenizer"):
        config.add_to(inner)
        if inner.post_processor is None and not single.is_file():
            config.post_process(inner)
    return inner


class _Config:
    """The special and added tokens in the files beside a vocabulary."""

    def __init__(self, folder: Path):
        self.folder, path = folder, folder / "tokenizer_config.json"
        self.values = json_object(folder / "special_tokens_map.json") | json_object(path)
        self.said = Fields(path, self.values)

    def default(self, parts: Sequence[str], token: str) -> None:
        """Set these special tokens (`bos`, ...) if no file does."""
        self.values = {f"{part}_token": token for part in parts} | self.values

    def token(self, part: str) -> str | None:
        """A special token by its role, `bos`; None if there is none."""
        return content_of(self.values.get(f"{part}_token"))

    def add_to(self, inner: Any) -> None:
        """Add tokens that the vocabulary lacks, and mark special tokens as such.

        Raises InputError for an id that is not the next free one: the library assigns ids in order.
        """
        known = {token.content for token in inner.get_added_tokens_decoder().values()}
        special = self._special()
        added = self._added(special)
        new = {t.content for _, t in added if inner.token_to_id(t.content) is None}
        inner.add_tokens([token for _, token in added if token.content not in known])
        for i, token in added:
            if token.content in new and inner.token_to_id(token.content) != i:
                raise InputError(
                    f"{self.folder}: the added token {token.content!r} has id {i}, but the next "
                    f"free id is {inner.token_to_id(token.content)}; download the folder again"
                )
        lacking = [text for text in sorted(special - known) if inner.token_to_id(text) is not None]
        inner.add_special_tokens(lacking)

    def post_process(self, inner: Any) -> None:
        """Add begin- and end-of-text tokens to every text if the files ask for them."""
        from cellformer.engine.text.vocabularies import put_around

        wanted = [self.values.get(f"add_{p}_token") and self.token(p) for p in ("bos", "eos")]
        put_around(inner, [t if t and inner.token_to_id(t) is not None else None for t in wanted])

    def _special(self) -> set[str]:
        more = [self.values.get(f"{kind}_special_tokens") for kind in ("additional", "extra")]
        lists = [value for value in more if isinstance(value, list)]
        values = (*(self.token(part) for part in NAMED), *(v for one in lists for v in one))
        return {found for value in values if (found := content_of(value))}

    def _added(self, special: set[str]) -> list[tuple[int, Any]]:
        """Every added token with its id, by id."""
        from tokenizers import AddedToken

        found = {}
        beside = self.folder / "added_tokens.json"
        given = json_object(beside)
        library.check_pieces(given, given.values(), str(beside))
        for content, i in given.items():
            kind = content in special
            found[i] = AddedToken(content, normalized=not kind, special=kind)
        for i, token in self.said.get("added_tokens_decoder", dict, {}).items():
            if not (re.fullmatch(r"\d{1,9}", i) and content_of(token) and isinstance(token, dict)):
                raise InputError(
                    f"{self.said.path}: the entry {i!r}: {token!r} of added_tokens_decoder is not "
                    "an id and a token; download the file again"
                )
            library.check_pieces([token["content"]], (), str(self.said.path))
            found[int(i)] = AddedToken(**token)
        return sorted(found.items(), key=lambda item: item[0])
