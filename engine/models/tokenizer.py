"""Text to token ids, and how a token is shown.

A tokenizer has `encode`, and `texts`: what each id stands for. Word lists and characters are ours;
tokenizer.json and GPT-2's vocab.json with merges.txt go through the `tokenizers` library.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from engine.cells.errors import InputError, nearest

LONGEST = 40  # characters of a token that a sheet shows


class Tokenizer(Protocol):
    """What a model needs of its tokenizer."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of every id."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises InputError for text that has none."""


@dataclass(frozen=True)
class WordList:
    """A vocabulary of whole words, split at white space; a word's id is its place in the list."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        refuse_duplicates(self.words)

    @property
    def texts(self) -> tuple[str, ...]:
        return self.words

    def encode(self, text: str) -> list[int]:
        return [self._id(word) for word in text.split()]

    def _id(self, word: str) -> int:
        if word not in self._ids:
            raise InputError(f"{word!r} is not in the vocabulary; {nearest(word, self.words)}")
        return self._ids[word]

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}


@dataclass(frozen=True)
class Characters(WordList):
    """A vocabulary of characters, white space included."""

    def encode(self, text: str) -> list[int]:
        return [self._id(character) for character in text]


@dataclass(frozen=True)
class IdsOnly:
    """No vocabulary: ids stand for themselves."""

    n: int

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.n)))

    def encode(self, text: str) -> list[int]:
        raise InputError("this model has no tokenizer; give token ids, as --ids 0,1,3")


@dataclass(frozen=True)
class Library:
    """A tokenizer of the `tokenizers` library; ids beyond its vocabulary are shown as numbers."""

    inner: Any
    n: int

    @cached_property
    def texts(self) -> tuple[str, ...]:
        return tuple(self._text(i) for i in range(self.n))

    def _text(self, i: int) -> str:
        """An id's own text; a byte that is no UTF-8 by itself stays in the byte-level alphabet."""
        token = self.inner.id_to_token(i)
        if token is None:
            return f"<{i}>"
        text = self.inner.decode([i], skip_special_tokens=False)
        return token if not text or "\ufffd" in text else text

    def encode(self, text: str) -> list[int]:
        try:
            return list(self.inner.encode(text, add_special_tokens=False).ids)
        except (TypeError, UnicodeEncodeError):
            raise InputError(f"the prompt {text!r} is not valid Unicode text") from None


def load_tokenizer(folder: Path, n: int) -> Tokenizer:
    """The tokenizer of a checkpoint folder with `n` token ids; ids only where there is none."""
    for name, kind in (("words.json", WordList), ("characters.json", Characters)):
        if (folder / name).is_file():
            words = _word_list(folder / name)
            if len(words) != n:
                raise InputError(f"{folder / name} has {len(words)} entries for {n} token ids")
            return kind(tuple(words))
    single, bpe = folder / "tokenizer.json", (folder / "vocab.json", folder / "merges.txt")
    if single.is_file() or all(path.is_file() for path in bpe):
        inner = _library(single) if single.is_file() else _byte_level(*bpe)
        size = inner.get_vocab_size()
        if size > n:
            raise InputError(f"the tokenizer in {folder} has {size} tokens, the embedding {n} rows")
        return Library(inner, n)
    return IdsOnly(n)


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write a tokenizer's file where `load_tokenizer` finds it."""
    if isinstance(tokenizer, Library):
        tokenizer.inner.save(str(folder / "tokenizer.json"))
    elif isinstance(tokenizer, WordList):
        name = "characters.json" if isinstance(tokenizer, Characters) else "words.json"
        (folder / name).write_text(json.dumps(tokenizer.words), encoding="utf-8")


def _word_list(path: Path) -> list[str]:
    try:
        words = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
        raise InputError(f"{path} is not a list of texts")
    return words


def _library(path: Path) -> Any:
    from tokenizers import Tokenizer as FromLibrary

    try:
        return FromLibrary.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"{path} is no tokenizer: {str(error).splitlines()[0]}") from None


def _byte_level(vocab: Path, merges: Path) -> Any:
    from tokenizers import ByteLevelBPETokenizer

    try:
        return ByteLevelBPETokenizer.from_file(str(vocab), str(merges))
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"{vocab} and {merges.name}: {str(error).splitlines()[0]}") from None


def refuse_duplicates(words: tuple[str, ...]) -> None:
    """Raise InputError where one text has two ids: a sheet could not tell them apart."""
    seen: dict[str, int] = {}
    for i, word in enumerate(words):
        if word in seen:
            raise InputError(f"the vocabulary has {word!r} twice, as ids {seen[word]} and {i}")
        seen[word] = i


def shown(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Every token as a sheet shows it: readable, no two alike."""
    found = [show(text) for text in texts]
    count = Counter(found)
    return tuple(f"{text} #{i}" if count[text] > 1 else text for i, text in enumerate(found))


def show(text: str) -> str:
    """One token as a sheet shows it: a space as ␣, what cannot be seen escaped, the long cut.

    A backslash and a ␣ of the token's own are escaped too, so that what is shown is unambiguous,
    and so is `_x0041_`, which is how a spreadsheet file spells A.
    """
    out = []
    for character in text:
        if character == " ":
            out.append("␣")
        elif character in "\\␣":
            out.append("\\" + character)
        elif character.isprintable():
            out.append(character)
        else:
            out.append(character.encode("unicode_escape").decode("ascii"))
    whole = re.sub(r"_(?=x[0-9a-fA-F]{4}_)", r"_\\", "".join(out)) or "\\empty"
    return whole if len(whole) <= LONGEST else whole[: LONGEST - 1] + "…"
