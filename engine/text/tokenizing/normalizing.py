"""Normalizers in cells, for tokenizers of byte pairs: lower case, accents, Unicode's forms.

A character becomes others by a table. Where neighbours matter, the steps are those of Unicode's
annex 15: each character is decomposed, marks behind a letter are sorted by their combining class,
and a letter and a mark that have a character of their own are composed. What stands behind such a
form in the list of normalizers is a table again.
"""

import unicodedata
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import AND, IF, INDEX, LARGE, MATCH, MOD
from cellformer.engine.text.tokenizers_library import normalizing
from cellformer.engine.text.tokenizing.settings import Settings
from cellformer.engine.text.tokenizing.steps import Steps, listed, shifted
from cellformer.engine.text.tokenizing.unicode import (
    FIRST_MARK,
    MOST_OUT,
    OTHER,
    OUTSIDE,
    Character,
    combining,
    joining,
    moved,
    table,
)

Parts = list[dict[str, Any]]
OF_EACH = {"Lowercase", "StripAccents", "Nmt"}  # what looks at one character alone
DECOMPOSED = {"NFC": "NFD", "NFKC": "NFKD", "NFD": "NFD", "NFKD": "NFKD"}
MARK, WHOLE = 1, 2  # kinds of characters: marks, and what a letter and marks compose
BASE = 1 << 21  # more than there are codes
CLASSES = 256  # more than there are combining classes
# Hangul: first letters and vowels, last letters; a syllable is computed from their numbers
LEADING, VOWELS, TRAILING, SYLLABLES = 0x1100, 0x1161, 0x11A7, 0xAC00
N_LEADING, N_VOWELS, N_TRAILING = 19, 21, 28
BEYOND_SYLLABLES = SYLLABLES + N_LEADING * N_VOWELS * N_TRAILING


@dataclass(frozen=True)
class Plan:
    """The steps in their order: each character by itself, sorting, composing, and each character
    by itself again. `outside` are characters that the steps cannot handle."""

    first: Parts
    form: Parts = field(default_factory=list)  # what `first` and composing come to
    sorts: bool = False
    composes: bool = False
    then: Parts = field(default_factory=list)
    outside: frozenset[str] = frozenset()


def plan(parts: Parts) -> Plan:
    """The steps of a list of normalizers."""
    kinds = [part["type"] for part in parts]
    forms = [k for k, kind in enumerate(kinds) if kind in DECOMPOSED]
    others = {kind for kind in kinds if kind not in DECOMPOSED}
    if len(forms) > 1 or not others <= OF_EACH:
        return Plan(parts, outside=joining(parts))
    if not forms:
        return Plan(parts)
    (at,) = forms
    form, then = kinds[at], parts[at + 1 :]
    composes = form in ("NFC", "NFKC")
    if not composes and "StripAccents" in kinds[at:]:
        left = frozenset(mark for mark in combining() if moved(parts).get(mark) != "")
        return Plan(parts, outside=left)
    return Plan([*parts[:at], {"type": DECOMPOSED[form]}], parts[: at + 1], True, composes, then)


def sorts_marks(parts: Parts) -> bool:
    """Whether marks are sorted, and nothing is taken away after that."""
    what = plan(parts)
    return what.sorts and all(part["type"] == "Lowercase" for part in what.then)


def add(steps: Steps, settings: Settings) -> None:
    """Replace the codes of the text by the codes of the normalized text."""
    if not settings.normalizers:
        return
    what = plan(settings.normalizers)
    outside = what.outside
    if settings.prefix:  # which asks for a space before anything is normalized
        outside |= {c for c, out in moved(settings.normalizers).items() if out[:1].isspace()}
    if settings.collapsed or settings.stripped:  # which look at spaces before that
        outside |= {c for c, out in moved(settings.normalizers).items() if " " in out}
    signs = {chr(FIRST_MARK + k) for k in range(len(steps.marks))}  # which no normalizer sees
    syllables = set(map(chr, range(SYLLABLES, BEYOND_SYLLABLES))) if what.composes else set()
    whole = moved(what.first).keys() - moved(what.form).keys() if what.composes else set()
    rows = _table(what.first, outside, signs | syllables, whole)
    _changed(steps, rows, "normal", wholes=what.composes)
    if not what.sorts:
        return
    ranks = _sorted(steps)
    gone = _composed(steps, ranks) if what.composes else None
    if gone is not None or what.then:
        _changed(steps, _table(what.then, (), signs), "again", gone)


def _table(
    parts: Parts, outside: Iterable[str], left: Set[str], whole: Set[str] = frozenset()
) -> np.ndarray:
    """The replacement of each character, except those `left` as they are: ranges of codes
    [ranges, 1 + fields of Character]. Characters of `whole` are not split, as they would be
    composed again."""

    def of(old: str, new: str) -> Character:
        if len(new) > MOST_OUT:
            return Character(OUTSIDE)
        codes = [*map(ord, new), 0, 0, 0]
        shift = codes[0] - ord(old) if new else 0
        return Character(WHOLE if old in whole else OTHER, len(new), shift, codes[1], codes[2])

    others = {old: of(old, new) for old, new in moved(parts).items() if old not in left}
    marks = {mark: others.get(mark, Character(OTHER))._replace(kind=MARK) for mark in combining()}
    others |= marks | dict.fromkeys(outside, Character(OUTSIDE))
    return table({}, others)


def _changed(
    steps: Steps, rows: np.ndarray, name: str, gone: Block | None = None, wholes: bool = False
) -> None:
    """Replace each character by those of a table; those that are `gone`, by none. With `wholes`,
    a letter that would be composed again stays as it is, unless a mark follows."""
    table = steps.input(f"{name}_characters", rows)
    first, kinds = table[:, 0].fixed, table[:, 1].fixed
    code = steps.code
    entry = steps.row(f"{name}_entry", lambda k: MATCH(code[0, k], first, 1), runs=True)
    kind = steps.row(f"{name}_kind", lambda k: INDEX(kinds, entry[0, k]), runs=True)
    steps.refuse_first(kind, OUTSIDE)

    def all_of(k: Any) -> Expression:
        return INDEX(table[:, 2].fixed, entry[0, k])

    def before_mark(k: Any) -> Expression:
        alone = IF(kind[0, k + 1] == MARK, all_of(k), 1)  # no AND, which is one of a whole run
        return IF(kind[0, k] == WHOLE, alone, all_of(k))

    def gives(k: Any) -> Expression:
        if wholes:
            return shifted(
                before_mark, k, steps.n - 1, lambda k: IF(kind[0, k] == WHOLE, 1, all_of(k))
            )
        return all_of(k) if gone is None else IF(gone[0, k] > 0, 0, all_of(k))

    letters = steps.spread(gives, prefix=f"{name}_")

    def become(k: Any) -> Expression:
        place, at = letters.within[0, k], letters.of(entry, k)
        shift, second, third = (INDEX(table[:, column].fixed, at) for column in (3, 4, 5))
        if wholes:
            apart = IF(letters.of(letters.gives, k) == 1, 0, shift)
            shift = IF(letters.of(kind, k) == WHOLE, apart, shift)
        own = letters.of(code, k) + shift
        return IF(letters.source[0, k] > 0, IF(place == 0, own, IF(place == 1, second, third)), 0)

    steps.code = steps.row(f"{name}_code", become, runs=True)


# --- marks -------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def ranks() -> np.ndarray:
    """The combining class of each character, as ranges of codes [ranges, 2]; 0 for characters
    that the library does not move, since its Unicode differs from Python's."""
    sort = normalizing([{"type": "NFD"}])
    of = {0: 0}
    for mark in sorted(combining()):
        low, high = "\u0334", "\u0345"  # of the classes 1 and 240
        moves = sort(mark + low)[0] != mark or sort(high + mark)[0] != high
        of[ord(mark)] = unicodedata.combining(mark) if moves else 0
        of.setdefault(ord(mark) + 1, 0)
    rows = sorted(of.items())
    kept = [row for k, row in enumerate(rows) if not k or row[1] != rows[k - 1][1]]
    return np.array(kept, dtype=np.float64)


@lru_cache(maxsize=1)
def pairs() -> np.ndarray:
    """The characters that two others compose: [pairs, 2], a pair's number and the character."""
    compose = normalizing([{"type": "NFC"}])
    found = {0: 0}
    for whole, apart in moved([{"type": "NFD"}]).items():
        if len(apart) > 1 and compose(apart) == whole:
            first, second = compose(apart[:-1]), apart[-1]
            if len(first) == 1 and ord(first) < SYLLABLES:
                found[ord(first) * BASE + ord(second)] = ord(whole)
    return np.array(sorted(found.items()), dtype=np.float64)


def _sorted(steps: Steps) -> Block:
    """Sort the marks behind each letter by combining class, and give these classes."""
    table, code = steps.input("combining", ranks()), steps.code
    first, classes, n = table[:, 0].fixed, table[:, 1].fixed, 1 << steps.n.bit_length()
    rank = steps.row("mark_class", lambda k: INDEX(classes, MATCH(code[0, k], first, 1)), runs=True)

    letter = steps.row(
        "letter", lambda k: 1 if k == 0 else letter[0, k - 1] + IF(rank[0, k] > 0, 0, 1)
    )
    keys = steps.row(
        "key", lambda k: (letter[0, k] * CLASSES + rank[0, k]) * n + steps.number[0, k].fixed_rows
    )
    order = steps.row(
        "order",
        lambda k: MOD(LARGE(keys.area.fixed, steps.n + 1 - steps.number[0, k].fixed_rows), n),
    )
    steps.code = steps.row("sorted", lambda k: INDEX(code.area.fixed, 1, order[0, k]), runs=True)
    return steps.row("sorted_class", lambda k: INDEX(rank.area.fixed, 1, order[0, k]), runs=True)


def _composed(steps: Steps, rank: Block) -> Block:
    """Compose letters and marks; 1 for what is gone into a letter before it."""
    table, code = steps.input("compositions", pairs()), steps.code
    numbers = table[:, 0].fixed

    def whole(k: int) -> Any:
        """The character that the letter before and this one compose; 0: none. Between them only
        marks of lower classes may stand."""
        if k == 0:
            return 0
        first, second, last = letter[0, k - 1], code[0, k], between[0, k - 1]
        found = listed(first * BASE + second, numbers, table[:, 1].fixed, _syllable(first, second))
        near = IF(last > 0, rank[0, k] > last, second > 0x2FF)
        return IF(second < 0x300, 0, IF(near, found, 0))

    def so_far(k: int) -> Expression:
        before = letter[0, k - 1] if k else expression(0)
        return IF(gone[0, k] > 0, gone[0, k], IF(rank[0, k] > 0, before, code[0, k]))

    def final(k: int) -> Expression:
        """The letter with all that is composed with it."""
        if k + 1 == steps.n:
            return letter[0, k] + 0
        return IF(AND(rank[0, k + 1] == 0, gone[0, k + 1] == 0), letter[0, k], result[0, k + 1])

    gone = steps.row("composed", whole)
    letter = steps.row("composed_letter", so_far)
    between = steps.row(
        "marks_between",
        lambda k: IF(gone[0, k] > 0, between[0, k - 1] if k else expression(0), rank[0, k]),
    )
    result = steps.row("whole", final)
    steps.code = steps.row(
        "composed_code", lambda k: IF(rank[0, k] > 0, code[0, k], result[0, k]), runs=True
    )
    return gone


def _syllable(first: Any, second: Any) -> Expression:
    """The Hangul syllable of two letters, or of a syllable and a last letter; 0: none."""
    lead, vowel, tail = first - LEADING, second - VOWELS, second - TRAILING
    two = AND(lead >= 0, lead < N_LEADING, vowel >= 0, vowel < N_VOWELS)
    open_one = AND(
        first >= SYLLABLES,
        first < BEYOND_SYLLABLES,
        MOD(first - SYLLABLES, N_TRAILING) == 0,
        tail > 0,
        tail < N_TRAILING,
    )
    syllable = SYLLABLES + (lead * N_VOWELS + vowel) * N_TRAILING
    return IF(two, syllable, IF(open_one, first + tail, 0))
