"""The settings of a tokenizer of the `tokenizers` library, read from its own file.

Every setting that changes ids is either supported or refused by name; none is ignored.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple, cast, get_args

from cellformer.engine.cells.errors import InputError, check_all
from cellformer.engine.text import tokenizers_library as library
from cellformer.engine.text.tokenizing import patterns
from cellformer.engine.text.tokenizing.patterns import Behavior, Choice, One, Split, Star

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
WHITE = ("Whitespace", "WhitespaceSplit")
PROBES = ("a", "1", "!", " ")  # texts; special tokens stand around the ids of one
SPACE_SIGN = "▁"  # a space, in SentencePiece's pieces


class Mark(NamedTuple):
    """An added token, which is one token wherever its text stands: `[MASK]`."""

    text: str
    id: int
    strips: bool  # whether it takes the spaces before it
    strips_after: bool  # whether it takes those behind it


@dataclass(eq=False)
class Settings:
    """All settings that decide how a text becomes ids."""

    kind: str  # of the library's models: BPE, WordPiece, Unigram
    model: dict[str, Any]
    normalizers: list[dict[str, Any]] = field(default_factory=list)  # those of each character
    prefix: Literal["", "always", "unless there"] = ""  # whether a space is put before the text
    once: bool = False  # whether it is not put behind added tokens, too
    # whether several spaces are made one: those between words, or also at the ends
    # or where the split drops them, so that nothing is to be done
    collapsed: Literal["", "between", "ends too", "if dropped"] = ""
    stripped: Literal["", "end", "ends"] = ""  # whether spaces are taken from the end, or both
    replaced: list[tuple[str, str]] = field(default_factory=list)  # texts, before all else
    signed: bool = False  # whether a space becomes SentencePiece's sign
    bytes: bool = False  # whether symbols are bytes
    splits: tuple[Split, ...] = ()  # of a text into words
    # pre-tokenizers of a WordPiece, which look at one character alone
    apart: list[dict[str, Any]] = field(default_factory=list)
    split: bool = False  # whether a piece begins at every space
    before: list[int] = field(default_factory=list)  # ids that every text begins with
    after: list[int] = field(default_factory=list)
    added: list[str] = field(default_factory=list)  # texts that are one token wherever they stand
    marks: list["Mark"] = field(default_factory=list)  # those of them that are found in a text
    # Marian: the ids of its pieces, how many marks stand anywhere (others are languages, at the
    # beginning), and characters without formulas
    numbers: list[int] = field(default_factory=list)
    n_anywhere: int = 0
    apart_from_text: frozenset[str] = frozenset()

    @property
    def suffix(self) -> str:
        """The vocabulary's mark for a word's end: `</w>`."""
        return self.model.get("end_of_word_suffix") or ""

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
    found.marks = _marks(spec["added_tokens"], bool(_parts(spec["normalizer"], "normalizers")))
    found.before, found.after = _specials(library.from_text(text), found.vocabulary)
    return found


MOST_MARKS = 2_000
PADDING = ("[PAD]", "<pad>")  # tokens of no text, which some models count no position for


def _marks(added: list[dict[str, Any]], normalizes: bool) -> list[Mark]:
    """The added tokens that a sheet can find in a text, longest first.

    The library finds them before everything else. Those that could overlap are left out, unless
    they are runs of one character, and so are those that it looks for in the normalized text.
    """
    marks = [
        Mark(token["content"], token["id"], token["lstrip"], token["rstrip"])
        for token in added
        if not (token["single_word"] or token["content"] in PADDING)
        if not (token["normalized"] and normalizes)
    ]
    begins: dict[str, list[str]] = {}
    for text in (mark.text for mark in marks):
        for k in range(1, len(text)):
            begins.setdefault(text[:k], []).append(text)
    overlapping = set[str]()
    for text in (mark.text for mark in marks):
        for k in range(1, len(text)):
            others = [o for o in begins.get(text[k:], ()) if len({*text, *o}) > 1]
            overlapping.update(others, [text] if others else [])
    apart = [mark for mark in marks if mark.text not in overlapping][:MOST_MARKS]
    return sorted(apart, key=lambda mark: -len(mark.text))


def _refused(what: str) -> InputError:
    return InputError(
        f"cellformer has no formulas yet for a tokenizer {what}; give token ids with --ids"
    )


def _check(*facts: tuple[object, str]) -> None:
    """Refuse a tokenizer by the first fact that does not hold."""
    check_all(*((holds, str(_refused(what))) for holds, what in facts))


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
    elif pattern == {"Regex": r"\s+"} and content == " ":
        found.collapsed = "if dropped"
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
            _byte_level(found, part)
        elif kind == "Split" and part["pattern"] == {"String": " "} and found.signed:
            pass  # no space is left to split at
        elif kind == "Metaspace" and part["replacement"] == SPACE_SIGN:
            _metaspace(found, part)
        elif kind == "WhitespaceSplit" and found.kind == "Unigram" and part is parts[0]:
            _check((parts[-1]["type"] == "Metaspace", "of the kind Unigram that splits at spaces"))
            found.collapsed = "ends too"
        elif found.kind == "WordPiece":
            _check_word_piece(part)
            found.apart.append(part)
        else:
            unchanged = not (found.bytes or found.signed)
            _check(
                (unchanged, f"that has the pre-tokenizer {kind} after one that changes the text")
            )
            found.splits += (_split(part),)
    _check(
        (
            found.collapsed != "if dropped" or _drops_spaces(found),
            r"with a normalizer that replaces '\s+'",
        ),
        (
            not found.stripped or (found.collapsed and found.signed),
            "with the normalizer Strip",
        ),
    )


def _byte_level(found: Settings, part: dict[str, Any]) -> None:
    prefix = part["add_prefix_space"]
    _check((not (prefix and found.splits), "that puts a space before every word"))
    found.bytes = True
    found.prefix = "unless there" if prefix else found.prefix
    if part.get("use_regex", True):
        found.splits += (Split(patterns.read(GPT2), "Isolated"),)


def _check_word_piece(part: dict[str, Any]) -> None:
    kind, behavior = part["type"], part.get("behavior", "Isolated")
    known = ("BertPreTokenizer", "Digits", "Punctuation", *WHITE)
    _check(
        (
            behavior in ("Isolated", "Contiguous", "Removed"),
            f"that splits with the behavior {behavior}",
        ),
        (kind in known, f"of the kind WordPiece with the pre-tokenizer {kind}"),
    )


def _drops_spaces(found: Settings) -> bool:
    """Whether the first split drops all white space."""
    first = found.splits[0] if found.splits else None
    return (
        first is not None
        and first.behavior == "Kept"
        and not any(one.members & One(r"\s").members for one in patterns.ones((first.pattern,)))
    )


def _split(part: dict[str, Any]) -> Split:
    """A pre-tokenizer as a split by a pattern."""
    kind = part["type"]
    own = json.dumps(part)
    joins, parts = (One(text, own, text) for text in ("joins", "parts"))
    words = (joins, Star(joins))
    beside: dict[
        str, tuple[patterns.Sequence, ...]
    ] = {  # words, which others keep white space from
        "WhitespaceSplit": (),
        "Whitespace": ((parts, Star(parts)),),
        "BertPreTokenizer": ((parts,),),
    }
    if kind in beside:
        return Split(Choice((words, *beside[kind])), "Kept")
    if kind == "Split":
        text = part["pattern"].get("Regex") or re.escape(part["pattern"]["String"])
        return Split(patterns.read(text), _behavior(part["behavior"], part["invert"]))
    if kind == "CharDelimiterSplit":
        return Split(patterns.read(re.escape(part["delimiter"])), "Removed")
    if kind == "Digits":
        own = json.dumps(part | {"individual_digits": True})
        digit = One("parts", own, "parts")
        each = part["individual_digits"]
        return Split(Choice(((digit,) if each else (digit, Star(digit)),)), "Isolated")
    if kind == "Punctuation":
        return Split(Choice(((parts,),)), _behavior(part["behavior"]))
    raise _refused(f"with the pre-tokenizer {kind}")


def _behavior(name: str, inverted: bool = False) -> Behavior:
    """The treatment of a match; if inverted, of the text between matches."""
    if (name, inverted) == ("Removed", True):
        return "Kept"
    if name not in get_args(Behavior) or inverted:
        raise _refused(f"that splits with the behavior {name}")
    return cast(Behavior, name)


def _metaspace(found: Settings, part: dict[str, Any]) -> None:
    scheme = part.get("prepend_scheme", "always")
    _check(
        (scheme in ("always", "first", "never"), f"with the prepend scheme {scheme}"),
        (
            found.collapsed != "ends too" or scheme == "always",
            f"that splits at spaces, with the prepend scheme {scheme}",
        ),
        (not found.splits, "that has the pre-tokenizer Metaspace after another pre-tokenizer"),
    )
    found.signed, found.split = True, part.get("split", True)
    found.once = scheme == "first"
    if scheme != "never":
        found.prefix = "always" if found.prefix == "always" else "unless there"


def _check_model(found: Settings) -> None:
    model, kind = found.model, found.kind
    if kind == "BPE":
        _check(
            *(
                (not model.get(key), f"with {key}")
                for key in ("dropout", "continuing_subword_prefix")
            ),
            (
                not (found.suffix and model.get("byte_fallback")),
                "with end_of_word_suffix and byte_fallback",
            ),
        )
        if found.split:
            found.splits = (Split(patterns.read(f"[ {SPACE_SIGN}]"), "MergedWithNext"),)
    elif kind == "Unigram":
        _check((not (found.bytes or found.splits), "of the kind Unigram that works on bytes"))
    elif kind == "WordPiece":
        changes = (found.bytes, found.signed, found.prefix, found.replaced, found.collapsed)
        _check(
            (not any(changes), "of the kind WordPiece that changes the text first"),
            (
                any(part["type"] in ("BertPreTokenizer", *WHITE) for part in found.apart),
                "of the kind WordPiece that does not split at spaces",
            ),
        )


def _specials(inner: Any, vocabulary: Iterable[str]) -> tuple[list[int], list[int]]:
    """The special tokens' ids before and after every text."""
    probes = (text for text in (*PROBES, *vocabulary) if library.encode(inner, text, False))
    text = next(probes, None)
    if text is None:  # its splits remove them all
        raise _refused(f"that gives no ids for {', '.join(map(repr, PROBES))}")
    alone, ids = (library.encode(inner, text, special) for special in (False, True))
    at = next((k for k in range(len(ids)) if ids[k : k + len(alone)] == alone), None)
    if at is None:
        raise _refused("whose special tokens cannot be found")
    return ids[:at], ids[at + len(alone) :]
