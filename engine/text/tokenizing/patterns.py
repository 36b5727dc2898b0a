"""The regular expressions of pre-tokenizers, read into parts that become rows of a sheet.

A pattern is a choice of sequences. A sequence has characters (`One`: a letter, a class such as
`\\p{L}` or `[^\\s]`), characters any number of times (`Star`), parts that may be left out
(`Choice` with an empty sequence), and looks ahead (`Ahead`). Other signs of the syntax are refused
by name. Which characters a class has is asked of the library, whose regular expressions are
Oniguruma's: so what stands within brackets is not read here.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Literal

from cellformer.engine.cells.errors import InputError
from cellformer.engine.text import tokenizers_library as library
from cellformer.engine.text.tokenizing.unicode import all_characters

Behavior = Literal[  # `Kept`: what lies between matches is dropped
    "Isolated", "Contiguous", "Removed", "Kept", "MergedWithPrevious", "MergedWithNext"
]
MOST = 16  # times that a part may be repeated, if its number is bounded
FEW = 3  # characters of a class that are compared by code
IGNORING = "(?i:"  # upper and lower case


@dataclass(frozen=True)
class One:
    """One character of a class: by a regular expression, or by a pre-tokenizer's effect on it."""

    text: str
    asked: str = ""  # the pre-tokenizer, as JSON; "": the text is a regular expression
    does: Literal["", "joins", "parts", "drops"] = ""

    @property
    def members(self) -> frozenset[str]:
        """All characters of the class."""
        return _members(self)

    @property
    def codes(self) -> list[int]:
        """The characters' codes if they are few, else nothing."""
        return sorted(map(ord, self.members)) if len(self.members) <= FEW else []


@dataclass(frozen=True)
class Star:
    """A character, any number of times."""

    one: One

    @property
    def text(self) -> str:
        return f"{self.one.text}*"


@dataclass(frozen=True)
class Choice:
    """The first of several sequences that fits; an empty one, last, fits always."""

    ways: tuple["Sequence", ...]

    @property
    def text(self) -> str:
        written = "|".join(text_of(way) for way in self.ways if way)
        if all(one.text.startswith(IGNORING) for one in ones((self,))):  # written once, before all
            inner = re.sub(rf"{re.escape(IGNORING)}(.|\\.)\)", r"\1", written)
            return f"{IGNORING}{inner})" + ("?" if self.ways[-1] == () else "")
        whole = written if len(self.ways) == 2 and len(self.ways[0]) == 1 else f"(?:{written})"
        return f"{whole}?" if self.ways[-1] == () else f"(?:{written})"


@dataclass(frozen=True)
class Ahead:
    """A condition: the next character is not of a class."""

    one: One

    @property
    def text(self) -> str:
        return f"(?!{self.one.text})"


Part = One | Star | Choice | Ahead
Sequence = tuple[Part, ...]


@dataclass(frozen=True)
class Split:
    """A pattern, and the treatment of its matches."""

    pattern: Choice
    behavior: Behavior


def text_of(parts: Sequence) -> str:
    """A sequence as a regular expression."""
    return "".join(part.text for part in parts)


def infallible(parts: Sequence) -> bool:
    """Whether a sequence fits everywhere, at least as nothing."""
    return all(
        isinstance(part, Star)
        or (isinstance(part, Choice) and any(infallible(way) for way in part.ways))
        for part in parts
    )


def ones(parts: Sequence) -> list[One]:
    """The classes of a sequence in order."""
    found: list[One] = []
    for part in parts:
        if isinstance(part, Choice):
            found += [one for way in part.ways for one in ones(way)]
        else:
            found.append(part if isinstance(part, One) else part.one)
    return found


@lru_cache(maxsize=128)
def _members(one: One) -> frozenset[str]:
    every = all_characters()
    if one.asked:
        return frozenset(library.treated(one.asked, every)[one.does])
    matched = library.matching(one.text)
    return frozenset().union(*(matched(every[k : k + 300]) for k in range(0, len(every), 300)))


# --- reading ------------------------------------------------------------------------------------

CLASS = re.compile(r"\\[pP]\{\^?\w+\}|\\u\{?[0-9a-fA-F]{4,6}\}?|\\[^bBAzZGkKgX1-9]|\.", re.DOTALL)
TIMES = re.compile(r"[?*+]|\{(\d+)(,?)(\d*)\}")


def read(pattern: str) -> Choice:
    """The parts of a regular expression. Raises InputError if there are no formulas for it."""
    reader = _Reader(pattern)
    found = reader.choice()
    if reader.at < len(pattern):
        raise reader.refused(pattern[reader.at])
    if any(infallible(way) for way in found.ways):
        raise reader.refused("what fits nothing")
    return found


class _Reader:
    """A regular expression while it is read."""

    def __init__(self, pattern: str):
        self.pattern, self.at, self.ignores_case = pattern, 0, False

    def refused(self, what: str) -> InputError:
        return InputError(
            f"the tokenizer's pattern {self.pattern!r} contains {what!r}, and cellformer has no "
            "formulas for this yet; give token ids with --ids"
        )

    def takes(self, text: str) -> bool:
        """Whether a text comes next; if so, it is passed."""
        there = self.pattern.startswith(text, self.at)
        self.at += len(text) if there else 0
        return there

    def choice(self) -> Choice:
        ways = [self.sequence()]
        while self.takes("|"):
            ways.append(self.sequence())
        return Choice(_factored(ways))

    def sequence(self) -> Sequence:
        found: Sequence = ()
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            found += self.repeated(self.part())
        return found

    def part(self) -> Part:
        for opening, before in ((IGNORING, True), ("(?:", self.ignores_case)):
            if self.takes(opening):
                return self.group(before)
        if self.takes("(?!"):
            one = self.one()
            self.closed()
            return Ahead(one)
        if self.pattern.startswith("(?", self.at):
            raise self.refused(self.pattern[self.at : self.at + 4])
        return self.group(self.ignores_case) if self.takes("(") else self.one()

    def group(self, ignores_case: bool) -> Choice:
        before, self.ignores_case = self.ignores_case, ignores_case
        found = self.choice()
        self.ignores_case = before
        self.closed()
        return found

    def closed(self) -> None:
        if not self.takes(")"):
            raise self.refused(self.pattern[self.at : self.at + 1] or "no end")

    def one(self) -> One:
        rest = self.pattern[self.at :]
        if rest.startswith("["):
            text = rest[: _end_of_class(rest)]
        elif match := CLASS.match(rest):
            text = match.group()
        elif rest and rest[0] not in "^$()?*+{|\\":
            text = rest[0]
        else:
            raise self.refused(rest[:2])
        self.at += len(text)
        return One(f"{IGNORING}{text})" if self.ignores_case else text)

    def repeated(self, part: Part) -> Sequence:
        """A part as often as its quantifier says."""
        match = TIMES.match(self.pattern, self.at)
        if not match:
            return (part,)
        self.at = match.end()
        if isinstance(part, One) and match.group() in ("?", "*", "+") and self.takes("+"):
            return _possessive(part, match.group())
        if self.pattern[self.at : self.at + 1] in ("?", "+"):
            raise self.refused(match.group() + self.pattern[self.at])
        may_be = Choice(((part,), ()))
        if match.group() == "?":
            return (may_be,)
        if match.group() in "*+":
            if not isinstance(part, One):
                raise self.refused(f"){match.group()}")
            return (part, Star(part)) if match.group() == "+" else (Star(part),)
        least, comma, most = match.groups()
        n = int(most or least)
        if not isinstance(part, One) or (comma and not most) or n > MOST:
            raise self.refused(match.group())
        return (part,) * int(least) + (may_be,) * (n - int(least))


def _possessive(one: One, quantifier: str) -> Sequence:
    """A possessive repeat, which takes all of a character that there are: `x++` is `xx*(?!x)`."""
    if quantifier == "?":
        return (Choice(((one,), (Ahead(one),))),)
    return (*((one,) if quantifier == "+" else ()), Star(one), Ahead(one))


def _end_of_class(text: str) -> int:
    """The end of a class in brackets, which may contain other classes."""
    depth, at = 0, 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == "[":
            depth += 1
        elif text[at] == "]" and at > 1:
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    return len(text)


def _factored(ways: list[Sequence]) -> tuple[Sequence, ...]:
    """Ways with the same first character as one: `'s|'t` as `'(?:s|t)`."""

    def first(numbered: tuple[int, Sequence]) -> One | int:
        k, way = numbered
        return way[0] if way and isinstance(way[0], One) else k

    found: list[Sequence] = []
    for head, some in groupby(enumerate(ways), first):
        alike = [way for _, way in some]
        if isinstance(head, One) and len(alike) > 1:
            found.append((head, Choice(tuple(way[1:] for way in alike))))
        else:
            found.append(alike[0])
    return tuple(found)
