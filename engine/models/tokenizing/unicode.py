"""Tables of characters: what each code point is to a tokenizer, as few ranges of codes.

What the library itself takes for a letter, a number, a space or a punctuation sign is asked of the
library, for it knows another Unicode than Python does.
"""

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

END, LETTER, NUMBER, SPACE, NEWLINE, OTHER, ALONE, OUTSIDE = range(8)  # kinds of characters
KINDS = ("end", "letter", "number", "space", "newline", "other", "by itself", "outside")
LAST = 0x33480  # beyond it there is nothing, but for
TAGS, PRIVATE = range(0xE0000, 0xE01F0), 0xF0000  # tags of flags, variants; private use
UNREADABLE = 0x110000  # stands for what is no character
SURROGATES = range(0xD800, 0xE000)
TAB_IN_LINES = 1  # what LibreOffice reads for a tab in a text of several lines
FIRST_MARK = 0xE000  # of private use: characters that stand for added tokens
MOST_OUT = 3  # characters that one is normalized to


class Character(NamedTuple):
    """What a character is: its kind, how many it becomes, the first of them less its own code, and
    the others."""

    kind: int
    n: int = 1
    shift: int = 0
    second: int = 0
    third: int = 0


THEMSELVES = [Character(kind) for kind in range(len(KINDS))]  # they stay as they are


def table(of: Callable[[str], Character]) -> np.ndarray:
    """A row for every range of codes that are alike: [ranges, 1 + fields], the first code first.

    Code 0 is the end of the text.
    """
    last, outside = Character(END, 0), Character(OUTSIDE)
    rows: list[tuple[int, ...]] = [(0, *last)]
    for code in (*range(1, LAST), LAST, *TAGS, TAGS.stop, PRIVATE):
        unread = code == TAB_IN_LINES or code in SURROGATES
        found = outside if unread else of(chr(code))
        if found is not last and found != last:
            rows.append((code, *found))
        last = found
    rows.append((UNREADABLE, *outside))
    return np.array(rows, dtype=np.float64)


def with_marks(characters: np.ndarray, fields: Sequence[float]) -> np.ndarray:
    """A table of characters in which some codes stand for added tokens: each by itself, with the
    field that is given for it behind its kind."""
    if not fields:
        return characters
    at = int(np.searchsorted(characters[:, 0], FIRST_MARK, side="right"))
    marks = np.zeros((len(fields) + 1, characters.shape[1]))
    marks[:, 0] = FIRST_MARK + np.arange(len(fields) + 1)
    marks[:-1, 1], marks[:-1, 2] = ALONE, fields
    marks[-1, 1:] = characters[at - 1, 1:]
    return np.concatenate([characters[:at], marks, characters[at:]])


@lru_cache(maxsize=1)
def kinds() -> dict[str, int]:
    """Letters, numbers, spaces and newlines as the library's patterns have them.

    It is slow to split a long text: it splits all characters once, where their kind changes, and
    says which the first of each piece is.
    """
    from tokenizers import Regex, pre_tokenizers

    def split(pattern: str, text: str, pattern_is: str) -> list[str]:
        splitting = pre_tokenizers.Split(Regex(pattern), pattern_is)
        return [piece for piece, _ in splitting.pre_tokenize_str(text)]

    text = "".join(chr(c) for c in range(1, LAST) if c not in SURROGATES)
    pieces = split(r"\p{L}+|\p{N}+|\s+", text, "isolated")
    firsts = "".join(piece[0] for piece in pieces)
    kind_of: dict[str, int] = {}
    for pattern, kind in ((r"\p{L}", LETTER), (r"\p{N}", NUMBER), (r"\s", SPACE)):
        others = set("".join(split(pattern, firsts, "removed")))
        kind_of |= {first: kind for first in firsts if first not in others}
    found = {c: kind_of[piece[0]] for piece in pieces if piece[0] in kind_of for c in piece}
    return found | {"\n": NEWLINE, "\r": NEWLINE}


# --- normalizers ----------------------------------------------------------------------------


def normalizer(parts: list[dict[str, Any]]) -> Callable[[str], str]:
    """What the library's normalizers make of a text."""
    if not parts:
        return str
    from tokenizers import Tokenizer, models

    spec = json.loads(Tokenizer(models.BPE()).to_str())
    spec["normalizer"] = {"type": "Sequence", "normalizers": parts}
    found: Callable[[str], str] = Tokenizer.from_str(json.dumps(spec)).normalizer.normalize_str
    return found


def joining(parts: list[dict[str, Any]]) -> set[str]:
    """Characters that a normalizer may join with, or move before, those that they stand beside."""
    names = {part["type"] for part in parts}
    if not names & {"NFC", "NFKC", "NFD", "NFKD", "Precompiled", "BertNormalizer"}:
        return set()
    moved = {chr(c) for c in range(LAST) if unicodedata.combining(chr(c))}
    if names == {"BertNormalizer"}:  # it takes every mark away
        return {c for c in moved if unicodedata.category(c) != "Mn"}
    pairs = (unicodedata.decomposition(chr(c)).split() for c in range(LAST))
    seconds = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and pair[0][0] != "<"}
    jamo = {chr(c) for c in range(0x1100, 0x1200)}
    others = {"\r", "\u200d", "\ufe0f"} | {chr(c) for c in range(0x1F1E6, 0x1F200)}
    return moved | seconds | jamo | (others if "Precompiled" in names else set())


def normalized(
    parts: list[dict[str, Any]],
    kind_of: Callable[[str], int],
    alphabet: Iterable[str],
    cut_off: bool = False,
    nothing: int = OTHER,
) -> np.ndarray:
    """The table of a tokenizer that looks characters up after normalizing them.

    `kind_of` gives the kind of a character that is normalized. `cut_off`: one that is given spaces
    about it stands by itself; else what becomes a space is outside. `nothing` is the kind of one
    that is taken away. A character whose result has none of the `alphabet` stands for itself, since
    no piece has it.
    """
    apply, apart, letters = normalizer(parts), joining(parts), set(alphabet)

    def of(character: str) -> Character:
        out = apply(character)
        if out == character and character not in apart and not character.isspace():
            return THEMSELVES[kind_of(character)]
        core = (out.strip(" ") or out) if cut_off else out
        among = {kind_of(c) for c in core}
        spaced = not cut_off and character != " " and parts and any(map(str.isspace, out))
        if character in apart or spaced or len(core) > MOST_OUT or len(among) > 1:
            return Character(OUTSIDE)
        if not core:
            return Character(nothing, 0)
        kind = among.pop() if core == out else ALONE
        if not letters & {character, *core}:
            return Character(kind)
        codes = [*map(ord, core), 0, 0]
        return Character(kind, len(core), codes[0] - ord(character), codes[1], codes[2])

    return table(of)
