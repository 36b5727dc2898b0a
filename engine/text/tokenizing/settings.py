"""The settings of a tokenizer of the `tokenizers` library, read from its own file.

Every setting that changes ids is either supported or refused by name; none is ignored.
"""

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from engine.cells.errors import InputError
from engine.text import tokenizers_library as library

CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
GPT2 = f"{CONTRACTIONS}| ?\\p{{L}}+| ?\\p{{N}}+| ?[^\\s\\p{{L}}\\p{{N}}]+|\\s+(?!\\S)|\\s+"
_LATER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA3, QWEN2 = _LATER % "{1,3}", _LATER % ""
Pattern = Literal["", "gpt2", "llama3", "qwen2"]
PATTERNS: dict[str, Pattern] = {GPT2: "gpt2", LLAMA3: "llama3", QWEN2: "qwen2"}
SPACE_SIGN = "▁"  # a space, in SentencePiece's pieces


class Mark(NamedTuple):
    """An added token, which is one token wherever its text stands: `[MASK]`."""

    text: str
    id: int
    strips: bool  # whether it takes the spaces before it


@dataclass(eq=False)
class Settings:
    """All settings that decide how a text becomes ids."""

    kind: str  # of the library's models: BPE, WordPiece, Unigram
    model: dict[str, Any]
    normalizers: list[dict[str, Any]] = field(default_factory=list)  # those of each character
    prefix: Literal["", "always", "unless there"] = ""  # whether a space is put before the text
    # whether several spaces are made one: those between words, or also at the ends
    collapsed: Literal["", "between", "ends too"] = ""
    stripped: Literal["", "end", "ends"] = ""  # whether spaces are taken from the end, or both
    replaced: list[tuple[str, str]] = field(default_factory=list)  # texts, before all else
    signed: bool = False  # whether a space becomes SentencePiece's sign
    bytes: bool = False  # whether symbols are bytes
    pattern: Pattern = ""
    digits: bool = False  # whether every digit is a piece of its own
    split: bool = False  # whether a piece begins at every space
    before: list[int] = field(default_factory=list)  # ids that every text begins with
    after: list[int] = field(default_factory=list)
    added: list[str] = field(default_factory=list)  # texts that are one token wherever they stand
    marks: list["Mark"] = field(default_factory=list)  # those of them that are found in a text

    @property
    def vocabulary(self) -> dict[str, int]:
        """Every token, and its id."""
        vocabulary = self.model["vocab"]
        if isinstance(vocabulary, dict):
            return vocabulary
        return {piece: i for i, (piece, _) in enumerate(vocabulary)}


def read(inner: Any) -> Settings:
    """The settings of a tokenizer of the library. Raises InputError for unsupported ones."""
    return _read(inner.to_str())


@lru_cache(maxsize=16)
def _read(text: str) -> Settings:
    spec = json.loads(text)
    model = spec["model"]
    found = Settings(model.get("type", "BPE"), model)
    if found.kind not in ("BPE", "WordPiece", "Unigram"):
        raise _refused(f"of the kind {found.kind}")
    found.added = sorted(token["content"] for token in spec["added_tokens"])
    for part in _parts(spec["normalizer"], "normalizers"):
        _normalizer(found, part)
    _pre_tokenizers(found, _parts(spec["pre_tokenizer"], "pretokenizers"))
    _check_model(found)
    found.marks = _marks(found, spec["added_tokens"])
    found.before, found.after = _specials(library.from_text(text))
    return found


MOST_MARKS = 2_000
PADDING = ("[PAD]", "<pad>")  # tokens of no text, which some models count no position for


def _marks(found: Settings, added: list[dict[str, Any]]) -> list[Mark]:
    """The added tokens that a sheet can find in a text, longest first.

    The library finds them before everything else, and treats the text between two of them as
    separate, with a prefix of its own; so there are none if texts get a prefix, or if two could
    overlap. Tokens that are matched in the normalized text are not supported either.
    """
    if found.prefix or not (found.bytes or found.kind == "WordPiece"):
        return []
    marks = [
        Mark(token["content"], token["id"], token["lstrip"])
        for token in added
        if not (token["single_word"] or token["rstrip"] or token["content"] in PADDING)
        if not (token["normalized"] and found.normalizers)
    ]
    begins = {text[:k] for text in found.added for k in range(1, len(text))}
    ends = {text[k:] for text in found.added for k in range(1, len(text))}
    if begins & ends or len(marks) > MOST_MARKS:
        return []
    return sorted(marks, key=lambda mark: -len(mark.text))


def _refused(what: str) -> InputError:
    return InputError(f"a tokenizer {what} has no formulas here yet; give token ids with --ids")


def _parts(part: Any, name: str) -> list[dict[str, Any]]:
    """A step, or the steps of a sequence in order."""
    if part is None:
        return []
    if part["type"] == "Sequence":
        return [inner for each in part[name] for inner in _parts(each, name)]
    return [part]


def _normalizer(found: Settings, part: dict[str, Any]) -> None:
    kind = part["type"]
    of_each = ("BertNormalizer", "Lowercase", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Nmt")
    if kind in of_each or kind == "Precompiled":
        found.normalizers.append(part)
    elif kind == "Prepend" and part["prepend"] == SPACE_SIGN:
        found.prefix = "always"
    elif kind == "Replace":
        _replacement(found, part["pattern"], part["content"])
    elif kind == "Strip" and part["strip_right"] and found.kind == "Unigram":
        found.stripped = "ends" if part["strip_left"] else "end"
    else:
        raise _refused(f"with the normalizer {kind}")


def _replacement(found: Settings, pattern: dict[str, str], content: str) -> None:
    """A text, or a run of spaces, and its replacement."""
    if pattern == {"String": " "} and content == SPACE_SIGN:
        found.signed = True
    elif pattern == {"Regex": " {2,}"} and content in (" ", SPACE_SIGN):
        found.collapsed = "between"
    elif _plain(pattern.get("String", " ")) and _plain(content) and not found.normalizers:
        found.replaced.append((pattern["String"], content))
    else:
        raise _refused(f"with a normalizer that replaces {next(iter(pattern.values()))!r}")


def _plain(text: str) -> bool:
    """Whether a text contains no white space and nothing that a formula cannot hold."""
    return text.isprintable() and not set(text) & {" ", SPACE_SIGN}


def _pre_tokenizers(found: Settings, parts: list[dict[str, Any]]) -> None:
    for part in parts:
        kind = part["type"]
        if kind == "ByteLevel":
            found.bytes = True
            found.prefix = "unless there" if part["add_prefix_space"] else found.prefix
            if part.get("use_regex", True):
                found.pattern = "gpt2"
        elif kind == "Split" and part["pattern"].get("Regex") in PATTERNS:
            if part["behavior"] != "Isolated" or part["invert"]:
                raise _refused(f"that splits with the behavior {part['behavior']}")
            found.pattern = PATTERNS[part["pattern"]["Regex"]]
        elif kind == "Split" and part["pattern"] == {"String": " "} and found.signed:
            pass  # no space is left to split at
        elif kind == "Digits" and part["individual_digits"]:
            found.digits = True
        elif kind == "Metaspace" and part["replacement"] == SPACE_SIGN:
            _metaspace(found, part)
        elif kind == "WhitespaceSplit" and part is parts[0] and parts[-1]["type"] == "Metaspace":
            found.collapsed = "ends too"
        elif kind != "BertPreTokenizer" or found.kind != "WordPiece":
            what = part["pattern"] if kind == "Split" else kind
            raise _refused(f"with the pre-tokenizer {what}")
    if found.stripped and not (found.collapsed and found.signed):
        raise _refused("with the normalizer Strip")
    if found.digits and found.pattern != "gpt2":
        raise _refused("that splits digits in this way")


def _metaspace(found: Settings, part: dict[str, Any]) -> None:
    scheme = part.get("prepend_scheme", "always")
    if scheme not in ("always", "first", "never"):
        raise _refused(f"with the prepend scheme {scheme}")
    found.signed, found.split = True, part.get("split", True)
    if found.collapsed == "ends too" and scheme != "always":
        raise _refused(f"that splits at spaces, with the prepend scheme {scheme}")
    if scheme != "never":
        found.prefix = "always" if found.prefix == "always" else "unless there"


def _check_model(found: Settings) -> None:
    model, kind = found.model, found.kind
    if kind == "BPE":
        for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
            if model.get(key):
                raise _refused(f"with {key}")
        if found.split or not (found.bytes or found.signed):
            raise _refused("of byte pairs that are neither byte-level nor SentencePiece's")
    elif kind == "Unigram" and (found.bytes or found.pattern):
        raise _refused("of the kind Unigram over bytes")
    elif kind == "WordPiece" and (found.bytes or found.signed or found.prefix):
        raise _refused("of the kind WordPiece with another pre-tokenizer than BERT's")


def _specials(inner: Any) -> tuple[list[int], list[int]]:
    """The special tokens' ids before and after every text."""
    alone, ids = (library.encode(inner, "a", special) for special in (False, True))
    at = next((k for k in range(len(ids)) if ids[k : k + len(alone)] == alone), None)
    if at is None or not alone:
        raise _refused("whose special tokens cannot be told")
    return ids[:at], ids[at + len(alone) :]
