"""Language: a workbook's texts in the language of its readers.

A text is written in English where it is used, and that is its key: gettext's way. Another
language is one catalogue, `engine/languages/it.po`, which Babel reads. Texts are translated where
they enter a workbook (`Sheet.put`, charts, `sentence`), while it is built within `speaking`; one
with values in it is `worded("{n} words", n=5)`. A text that is `AsIs` is left alone: a name, a word
of a vocabulary.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from cellformer.engine.cells.errors import InputError, nearest

FOLDER = Path(__file__).parent.parent / "languages"
ENDING = ".po"
SWAPPED = str.maketrans(",.", ".,")


class AsIs(str):
    """A text that is the same in every language, or that is translated already."""


class _Numbers(Formatter):
    """Writes a space before a percent sign, as live sentences do, and a decimal comma where a
    language has one."""

    def __init__(self, comma: bool):
        self.comma = comma

    def format_field(self, value: Any, format_spec: str) -> Any:
        told = super().format_field(value, format_spec)
        if not isinstance(value, float | int):
            return told
        told = told.replace("%", " %")
        return told.translate(SWAPPED) if self.comma else told


@dataclass(frozen=True)
class Language:
    """A language: its texts by those in English."""

    code: str
    texts: Mapping[str, str] = field(default_factory=dict)
    comma: bool = False  # whether decimals stand behind a comma

    def of(self, text: str) -> str:
        """A text in this language; one that it lacks stays English."""
        return text if isinstance(text, AsIs) else self.texts.get(text, text)

    def filled(self, text: str, values: Mapping[str, Any]) -> str:
        """A text in this language, with values in place of its braces."""
        return _Numbers(self.comma).vformat(self.of(text), (), values)


ENGLISH = Language("en")
_CURRENT: ContextVar[Language] = ContextVar("language", default=ENGLISH)


def current() -> Language:
    """The language of the workbook that is being built."""
    return _CURRENT.get()


def translated(text: str) -> str:
    """A text in the language of the workbook that is being built."""
    return AsIs(current().of(text))


def worded(text: str, /, **values: Any) -> str:
    """A text in the language of the workbook that is being built, with values in place of its
    braces."""
    return AsIs(current().filled(text, values))


@contextmanager
def speaking(language: Language) -> Iterator[None]:
    """Build in a language."""
    token = _CURRENT.set(language)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def codes() -> list[str]:
    """The languages that a workbook can be built in."""
    return sorted({ENGLISH.code, *(path.stem for path in FOLDER.glob(f"*{ENDING}"))})


@cache
def language(code: str) -> Language:
    """A language by its code, `it`. Raises InputError for one without a catalogue."""
    if code == ENGLISH.code:
        return ENGLISH
    if code not in codes():
        raise InputError(f"there is no translation into {code!r}; {nearest(code, codes())}")
    from babel.messages.pofile import read_po  # of other languages alone
    from babel.numbers import get_decimal_symbol

    with (FOLDER / f"{code}{ENDING}").open("rb") as file:
        found = read_po(file, locale=code)
    texts = {str(m.id): str(m.string) for m in found if m.id and m.string and not m.fuzzy}
    return Language(code, texts, get_decimal_symbol(code) == ",")
