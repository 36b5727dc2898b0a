"""Character tables: the treatment of each code point by a tokenizer, as ranges of codes.

Letters, numbers, spaces and punctuation are determined by asking the library, whose Unicode version
differs from Python's.
"""

import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine.cells.groups import batches
from cellformer.engine.text.tokenizers_library import normalizing

END, LETTER, NUMBER, SPACE, NEWLINE, OTHER, ALONE, OUTSIDE = range(8)  # kinds of characters
KINDS = ("end", "letter", "number", "space", "newline", "other", "by itself", "outside")
LAST = 0x33480  # beyond it there is nothing, but for
TAGS, PRIVATE = range(0xE0000, 0xE01F0), 0xF0000  # tags of flags, variants; private use
UNREADABLE = 0x110000  # stands for what is no character
SURROGATES = range(0xD800, 0xE000)
TAB_IN_LINES = 1  # what LibreOffice reads for a tab in a text of several lines
FIRST_MARK = 0xE000  # of private use: characters that stand for added tokens
MOST_OUT = 3  # characters that one is normalized to
STAYS, AT_ONCE = "ⵣ", 1000  # a letter that nothing changes or joins; characters asked at once


class Character(NamedTuple):
    """A character's properties: its kind, how many characters it becomes, the first of these minus
    its own code, and the others."""

    kind: int
    n: int = 1
    shift: int = 0
    second: int = 0
    third: int = 0


@lru_cache(maxsize=1)
def _asked() -> tuple[np.ndarray, np.ndarray, str]:
    """All codes of the table, the codes that are characters, and these characters."""
    codes = np.array([*range(LAST + 1), *TAGS, TAGS.stop, PRIVATE, UNREADABLE])
    unread = np.isin(codes, [0, TAB_IN_LINES, *SURROGATES, UNREADABLE])
    return codes, ~unread, "".join(map(chr, codes[~unread].tolist()))


def all_characters() -> str:
    """All characters of the table."""
    return _asked()[-1]


def table(kind_of: Mapping[str, int], others: Mapping[str, Character] | None = None) -> np.ndarray:
    """A row for every range of codes with equal properties: [ranges, 1 + fields], the first code
    first.

    A character stays as it is and has the given kind (default: OTHER), unless it is among `others`.
    Code 0 is the end of the text. Codes outside the table are not supported.
    """
    codes, read, _ = _asked()
    fields = np.empty((len(Character._fields), len(codes)))  # [fields, codes]
    fields[:] = np.reshape(Character(OTHER), (-1, 1))
    fields[0, _places(kind_of)] = [*kind_of.values()]
    if others:
        numbers = np.fromiter(chain.from_iterable(others.values()), np.float64)  # one by one
        fields[:, _places(others)] = numbers.reshape(len(others), -1).T
    fields[:, ~read] = np.reshape(Character(OUTSIDE), (-1, 1))
    fields[:, 0] = Character(END, 0)
    begins = np.ones(len(codes), dtype=bool)
    begins[1:-1] = (fields[:, 1:-1] != fields[:, :-2]).any(axis=0)
    return np.column_stack([codes[begins], fields[:, begins].T])


def _places(characters: Iterable[str]) -> np.ndarray:
    """The indices of characters among the codes of the table."""
    return np.searchsorted(_asked()[0], [*map(ord, characters)])


def changed(ask: Callable[[str], str]) -> dict[str, str]:
    """The result of a function of texts for every character that it changes, asked in bulk."""
    characters = all_characters().replace(STAYS, "")
    found: dict[str, str] = {}
    for some in batches(characters, AT_ONCE):
        made = ask(STAYS.join(["", *some, ""])).split(STAYS)[1:-1]
        found |= {old: new for old, new in zip(some, made, strict=True) if old != new}
    return found


def with_marks(characters: np.ndarray, fields: Sequence[float]) -> np.ndarray:
    """A character table with some codes for added tokens, each in a row of its own with its
    field. No code stands twice: programs take different ones of two equal ones."""
    if not fields:
        return characters
    codes = characters[:, 0]
    at = int(np.searchsorted(codes, FIRST_MARK))
    behind = int(np.searchsorted(codes, FIRST_MARK + len(fields), side="right"))
    marks = np.zeros((len(fields) + 1, characters.shape[1]))
    marks[:, 0] = FIRST_MARK + np.arange(len(fields) + 1)
    marks[:-1, 1], marks[:-1, 2] = ALONE, fields
    marks[-1, 1:] = characters[behind - 1, 1:]
    return np.concatenate([characters[:at], marks, characters[behind:]])


# --- normalizers ----------------------------------------------------------------------------


def moved(parts: list[dict[str, Any]]) -> Mapping[str, str]:
    """The library's normalized form of every character that normalizers change."""
    return _moved(json.dumps(parts)) if parts else {}


@lru_cache(maxsize=8)  # comparing a workbook with its file asks for it again
def _moved(spelt: str) -> Mapping[str, str]:
    parts = json.loads(spelt)
    apply = normalizing(parts)
    if all(part["type"] != "Precompiled" for part in parts):
        return changed(apply)
    each = ((character, apply(character)) for character in all_characters())  # it may join any two
    return {old: new for old, new in each if old != new}


def joining(parts: list[dict[str, Any]]) -> frozenset[str]:
    """Characters that a normalizer may combine or reorder with their neighbours."""
    return _joining(frozenset(part["type"] for part in parts))


@lru_cache(maxsize=8)
def _joining(names: frozenset[str]) -> frozenset[str]:
    if not names & {"NFC", "NFKC", "NFD", "NFKD", "Precompiled", "BertNormalizer"}:
        return frozenset()
    if names == {"BertNormalizer"}:  # it takes every mark away
        return frozenset(c for c in combining() if unicodedata.category(c) != "Mn")
    jamo = {chr(c) for c in range(0x1100, 0x1200)}
    others = {"\r", "\u200d", "\ufe0f"} | {chr(c) for c in range(0x1F1E6, 0x1F200)}
    return combining() | _seconds() | jamo | (others if "Precompiled" in names else set())


@lru_cache(maxsize=1)
def combining() -> frozenset[str]:
    """Combining marks, which may be reordered."""
    return frozenset(c for c in map(chr, range(LAST)) if unicodedata.combining(c))


@lru_cache(maxsize=1)
def _seconds() -> frozenset[str]:
    """Characters that can be the second of a composed pair."""
    pairs = (unicodedata.decomposition(c).split() for c in map(chr, range(LAST)))
    found = (int(pair[1], 16) for pair in pairs if len(pair) == 2 and pair[0][0] != "<")
    return frozenset(map(chr, found))


def normalized(
    parts: list[dict[str, Any]],
    kind_of: Mapping[str, int],
    alphabet: Iterable[str],
    cut_off: bool = False,
    nothing: int = OTHER,
    outside: Set[str] = frozenset(),
) -> np.ndarray:
    """The character table of a tokenizer that looks characters up after normalizing.

    `kind_of` has the kinds of normalized characters that are not OTHER. With `cut_off`, a character
    that gets spaces around it is a word of its own; otherwise characters that become spaces are
    unsupported. `nothing` is the kind of removed characters. A character whose result has none of
    the `alphabet` stays as it is, since no token has it. Characters `outside` are unsupported.
    """
    apart, letters = joining(parts) | outside, set(alphabet)
    alone, taken_away, out_of_reach = Character(ALONE), Character(nothing, 0), Character(OUTSIDE)

    def of(character: str, out: str) -> Character:
        core = (out.strip(" ") or out) if cut_off else out
        if character in apart:
            return out_of_reach
        if not core or core == character:  # most of them: taken away, or given spaces
            return alone if core else taken_away
        among = {kind_of.get(c, OTHER) for c in core}
        spaced = not cut_off and any(map(str.isspace, out))
        if spaced or len(core) > MOST_OUT or len(among) > 1:
            return out_of_reach
        kind = among.pop() if core == out else ALONE
        if not letters & {character, *core}:
            return Character(kind)
        codes = [*map(ord, core), 0, 0]
        return Character(kind, len(core), codes[0] - ord(character), codes[1], codes[2])

    others = {character: of(character, out) for character, out in moved(parts).items()}
    return table({**kind_of, **dict.fromkeys(apart, OUTSIDE)}, others)


@lru_cache(maxsize=1)
def spaces() -> str:
    """All white space characters, by Python's definition."""
    return "".join(filter(str.isspace, all_characters()))
