"""SentencePiece's unigram tokenizer, by itself: how a text is normalized, and its best cut into
pieces (Kudo 2018, section 3.2).

The library of `subwords` numbers pieces by their places in the file. Marian's pieces have numbers
in another file, and pieces that are not in it count when a text is cut, so they are cut here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

SPACE = "▁"  # how a space is written in a piece
UNKNOWN = np.float32(10)  # how much worse an unknown character is than the worst piece


@dataclass(frozen=True)
class CharacterMap:
    """The replacements of a normalizer for some characters: a tree of 32-bit units, walked byte
    by byte, whose leaves are places in `texts`."""

    units: tuple[int, ...]
    texts: bytes

    def longest(self, data: bytes, start: int) -> tuple[int, str] | None:
        """The longest sequence from `start` on that is in the map: its length, and its
        replacement."""
        found, at = None, _children(self.units[0])
        for end in range(start, len(data)):
            at ^= data[end]
            unit = self.units[at]
            if unit & (1 << 31 | 0xFF) != data[end]:
                break
            at ^= _children(unit)
            if unit >> 8 & 1:
                found = end + 1 - start, self.units[at] & (1 << 31) - 1
        if found is None:
            return None
        length, place = found
        return length, self.texts[place : self.texts.index(0, place)].decode()

    @property
    def data(self) -> bytes:
        """The map as a file holds it."""
        units = np.array(self.units, "<u4").tobytes()
        return len(units).to_bytes(4, "little") + units + self.texts

    @property
    def followers(self) -> frozenset[str]:
        """The characters that are replaced together with those before them."""
        units, every, found = np.array(self.units, np.int64), np.arange(1, 256), set[str]()
        waiting = [(_children(self.units[0]), b"")]
        while waiting:
            at, key = waiting.pop()
            places = (at ^ every)[(at ^ every) < len(units)]
            for place in places[(units[places] & (1 << 31 | 0xFF)) == (at ^ places)].tolist():
                longer = key + bytes([at ^ place])
                if self.units[place] >> 8 & 1:
                    found.update(longer.decode(errors="ignore")[1:])
                waiting.append((place ^ _children(self.units[place]), longer))
        return frozenset(found)


def _children(unit: int) -> int:
    """The distance from a unit to its children."""
    return (unit >> 10) << ((unit & (1 << 9)) >> 6)


@dataclass(frozen=True)
class Unigram:
    """Pieces with their scores, and a normalizer's rules."""

    scores: Mapping[str, float]  # the logarithms of their probabilities
    characters: CharacterMap | None = None
    space_before: bool = True  # a text begins with a space
    fewer_spaces: bool = True  # those at its ends are left out, several become one

    def cut(self, text: str) -> list[str]:
        """The pieces of a text; adjacent unknown characters together. Sums are rounded to
        float32, as the original rounds them."""
        text = self.normalized(text)
        best = [(np.float32(0), 0, True)] + [(np.float32(-np.inf), 0, True)] * len(text)
        for start in range(len(text)):
            so_far, single = best[start][0], False
            for end in range(start + 1, min(start + self._longest, len(text)) + 1):
                score = self._rounded.get(text[start:end])
                if score is None:
                    continue
                single = single or end == start + 1
                if so_far + score > best[end][0]:
                    best[end] = (so_far + score, start, True)
            if not single and so_far + self._unknown > best[start + 1][0]:
                best[start + 1] = (so_far + self._unknown, start, False)
        found: list[tuple[str, bool]] = []  # from the end
        end = len(text)
        while end:
            _, start, known = best[end]
            if not known and found and not found[-1][1]:
                found[-1] = text[start:end] + found[-1][0], False
            else:
                found.append((text[start:end], known))
            end = start
        return [piece for piece, _ in reversed(found)]

    def normalized(self, text: str) -> str:
        """A text with its characters replaced, and a sign for each space."""
        parts = "".join(self._replaced(text.encode()))
        if self.fewer_spaces:
            parts = " ".join(part for part in parts.split(" ") if part)
        before = SPACE if self.space_before and parts else ""
        found = before + parts.replace(" ", SPACE)
        return found.rstrip(SPACE) if self.fewer_spaces else found

    def _replaced(self, data: bytes) -> Iterator[str]:
        """The characters, or their replacements by the map; a map may end within a character."""
        at = 0
        while at < len(data):
            found = self.characters.longest(data, at) if self.characters else None
            if found is None:
                length = _length(data[at])
                found = length, data[at : at + length].decode(errors="replace")
            at += found[0]
            yield found[1]

    @cached_property
    def _rounded(self) -> dict[str, np.float32]:
        return {piece: np.float32(score) for piece, score in self.scores.items()}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.scores))

    @cached_property
    def _unknown(self) -> np.float32:
        return np.float32(min(self._rounded.values()) - UNKNOWN)


def _length(byte: int) -> int:
    """The number of bytes of a character in UTF-8, by its first."""
    return 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)
