"""The text, or the bytes, that a tokenizer decodes from each token id.

Read from the decoder of the `tokenizers` library; `decoded_text` has the cells.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Literal

from cellformer.engine.text.marian import Marian
from cellformer.engine.text.subwords import Library, byte_alphabet, decoder_steps
from cellformer.engine.text.tokenizer import BYTE, Characters, Tokenizer, WordList

NO_TEXT = "\ufffd"
# of a piece: its id, whether it is left out, is a byte, fits nowhere; how many bytes it begins with
# that continue a character, the first of them, the bits of one, two, three of them; whether it has
# more; the character that it leaves open: bytes to come, bits so far, limits of the next byte
FIELDS = (
    *("id", "left out", "byte", "unfit", "continuing", "first", "bits 1", "bits 2", "bits 3"),
    *("more", "to come", "bits", "lowest", "highest"),
)
ALL_TEXT = (-1, *(int(name == "more") for name in FIELDS[1:]))  # of a piece that is in order
Open = tuple[int, int, int, int]  # bytes to come, bits, limits
CLOSED: Open = (0, 0, 0, 0)
NARROW = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}


@dataclass
class Decoding:
    """The text or bytes of each id."""

    later: list[str]  # the text that it adds to a line
    first: list[str]  # the same of one that a line begins with
    odd: dict[int, tuple[int, ...]] = field(default_factory=dict)  # FIELDS of pieces out of order
    # what pieces may be: texts alone, any bytes, or a single byte that stands in for a piece
    of: Literal["texts", "bytes", "fallback"] = "texts"
    stripped: bool = False  # whether a line's first space is left out

    def add_nothing(self) -> int:
        """Add a piece without a text; returns its id."""
        i = len(self.later)
        self.later.append("")
        if self.first is not self.later:
            self.first.append("")
        self.odd[i] = nothing(i)
        return i


# --- what a tokenizer does ------------------------------------------------------------------------


def read(tokenizer: Tokenizer) -> Decoding | None:
    """The way a tokenizer decodes; None if it has no text, or a decoder that has no formulas
    here."""
    if isinstance(tokenizer, Characters):
        return Decoding(list(tokenizer.words), list(tokenizer.words))
    if isinstance(tokenizer, WordList):
        return Decoding([f" {word}" for word in tokenizer.words], list(tokenizer.words))
    if isinstance(tokenizer, Marian):
        return _of_marian(tokenizer)
    return _of_library(tokenizer) if isinstance(tokenizer, Library) else None


def _of_marian(tokenizer: Marian) -> Decoding:
    """Texts without special tokens; spaces at the beginning are left out."""
    special = {tokenizer.ids[token] for token in tokenizer.special.values()}
    texts = ["" if i in special else text for i, text in enumerate(tokenizer.texts)]
    odd = {i: nothing(i) for i, text in enumerate(texts) if not text.strip(" ")}
    return Decoding(texts, [text.lstrip(" ") for text in texts], odd)


def _of_library(tokenizer: Library) -> Decoding | None:
    added = tokenizer.inner.get_added_tokens_decoder()
    special = {i for i, token in added.items() if token.special}
    found = [tokenizer.inner.id_to_token(i) for i in range(tokenizer.n)]
    left_out = {i for i, piece in enumerate(found) if piece is None or i in special}
    pieces = ["" if i in left_out else piece for i, piece in enumerate(found)]
    steps = decoder_steps(tokenizer.inner.decoder)
    kinds = [step["type"] for step in steps]
    decoding: Decoding | None
    if kinds == ["ByteLevel"]:
        decoding = _of_byte_level(pieces)
    elif kinds and set(kinds) <= {"Replace", "ByteFallback", "Fuse", "Strip"}:
        decoding = _of_sentence_pieces(pieces, steps)
    elif kinds == ["Metaspace"]:
        decoding = _of_metaspace(pieces, steps[0])
    elif kinds == ["WordPiece"]:
        decoding = _of_word_pieces(pieces, steps[0])
    elif not kinds:
        decoding = Decoding([f" {piece}" for piece in pieces], pieces)
    else:
        return None
    if decoding is not None:
        for i in left_out:
            decoding.later[i] = decoding.first[i] = ""
            decoding.odd[i] = nothing(i)
    return decoding


def nothing(i: int) -> tuple[int, ...]:
    """The FIELDS of a piece that decoding leaves out."""
    return (i, 1, *(0,) * (len(FIELDS) - 2))


def _of_byte_level(pieces: Sequence[str]) -> Decoding:
    """Byte-level tokens: bytes that complete a character, text, bytes of an incomplete
    character."""
    texts, odd, alphabet = [], {}, byte_alphabet()
    for i, piece in enumerate(pieces):
        spelled = all(c in alphabet for c in piece)
        text, fields = _of_bytes(bytes(alphabet[c] for c in piece) if spelled else piece.encode())
        texts.append(text)
        if any(fields):
            odd[i] = (i, 0, 0, 0, *fields)
    return Decoding(texts, texts[:], odd, "bytes")


def _of_bytes(held: bytes) -> tuple[str, tuple[int, ...]]:
    """The text between incomplete characters, and the FIELDS for the bytes before and after it."""
    n = next((k for k, byte in enumerate(held) if byte & 0xC0 != 0x80), len(held))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(held[n:])
    behind = _left_open(decoder.getstate()[0])
    if not n and behind == CLOSED:
        return text, ()
    bits = [_bits(0, held[:k]) if k <= n else 0 for k in (1, 2, 3)]
    return text, (n, held[0] if n else 0, *bits, int(n < len(held)), *behind)


def _left_open(begun: bytes) -> Open:
    """The missing bytes of a character that begins with these bytes."""
    if not begun:
        return CLOSED
    n = 2 if begun[0] < 0xE0 else 3 if begun[0] < 0xF0 else 4
    low, high = NARROW.get(begun[0], (0x80, 0xBF)) if len(begun) == 1 else (0x80, 0xBF)
    return n - len(begun), _bits(begun[0] & (0x7F >> n), begun[1:]), low, high


def _bits(first: int, others: bytes) -> int:
    """The bits of a character: some, and six of each byte that continues it."""
    return reduce(lambda bits, byte: bits * 64 + byte - 0x80, others, first)


def _of_sentence_pieces(pieces: Sequence[str], steps: list[dict[str, Any]]) -> Decoding | None:
    """SentencePiece's tokens: ▁ for a space, and byte fallback."""
    kinds = [step["type"] for step in steps]
    if "Strip" in kinds and (kinds[-1] != "Strip" or "Fuse" not in kinds):
        return None
    strip = steps[-1] if "Strip" in kinds else None
    if strip and (strip["content"], strip["start"], strip["stop"]) != (" ", 1, 0):
        return None
    texts, odd = list(pieces), {}
    for step in steps:
        if step["type"] == "Replace":
            if "String" not in step["pattern"]:
                return None
            old, new = step["pattern"]["String"], step["content"]
            texts = [text.replace(old, new) for text in texts]
    for i, text in enumerate(texts if "ByteFallback" in kinds else ()):
        if BYTE.fullmatch(text):
            texts[i], fields = _of_bytes(bytes([int(text[3:5], 16)]))
            odd[i] = (i, 0, 1, int(texts[i] == NO_TEXT), *(fields or (0,) * (len(FIELDS) - 4)))
    of: Literal["texts", "fallback"] = "fallback" if odd else "texts"
    return Decoding(texts, texts[:], odd, of, strip is not None)


def _of_metaspace(pieces: Sequence[str], step: dict[str, Any]) -> Decoding:
    sign, kept = step["replacement"], step.get("prepend_scheme", "always") == "never"
    later = [piece.replace(sign, " ") for piece in pieces]
    return Decoding(later, later[:] if kept else [piece.replace(sign, "") for piece in pieces])


def _of_word_pieces(pieces: Sequence[str], step: dict[str, Any]) -> Decoding:
    def tidied(text: str) -> str:
        for old, new in TIDIED if step["cleanup"] else ():
            text = text.replace(old, new)
        return text

    prefix = step["prefix"]
    joined = [p.removeprefix(prefix) if p.startswith(prefix) else f" {p}" for p in pieces]
    return Decoding([tidied(text) for text in joined], [tidied(piece) for piece in pieces])


TIDIED = (  # as the library's `cleanup` has it
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"),
    (" 'm", "'m"), (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip


def held(text: str) -> str:
    """A text that an .xlsx file can hold: control characters but newline and tab become U+FFFD."""
    return "".join(c if c in "\n\t" or c >= " " else NO_TEXT for c in text)
