"""Tokenizers: text to token ids and back, and how sheets show a token.

A tokenizer has `texts` (the text of each id), `encode` and `decode`. Word lists and characters are
implemented here; subwords use the `tokenizers` library, see `cellformer.engine.text.subwords`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.errors import InputError, nearest
from cellformer.engine.cells.fields import json_object
from cellformer.engine.cells.files import read_json
from cellformer.engine.cells.groups import grouped
from cellformer.engine.cells.texts import cut, escaped
from cellformer.engine.text import chat_template, marian, subwords
from cellformer.engine.text.marian import Marian
from cellformer.engine.text.sentencepiece import UnreadError
from cellformer.engine.text.subwords import Library as Library
from cellformer.engine.text.subwords import check_known

MASKS = ("[MASK]", "<mask>")  # what stands for a word that is to be found
BEGIN = "<BOS>"  # what begins every text, in a vocabulary of words that has it
LONGEST = 40  # characters of a token that a sheet shows, as spreadsheets count: 2 bytes each
BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # how SentencePiece writes a byte


class Tokenizer(Protocol):
    """The interface that a model needs of its tokenizer."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of every id, with its leading space."""

    @property
    def begin(self) -> int | None:
        """The begin-of-text token, if there is one."""

    @property
    def ends(self) -> tuple[int, ...]:
        """The end-of-text tokens."""

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The ids of a text, with the tokenizer's special tokens if `special`. Raises InputError
        for a text that cannot be tokenized."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids: without special tokens, bytes joined to characters."""


@explained_class
@dataclass(frozen=True)
class WordList:
    """A vocabulary of whole words, split at white space; a word's id is its index in the list.

    Case is ignored if only one word fits, as on the sheets. With a word `<BOS>`, every text begins
    with it: it is put in front of one that lacks it.

    >>> words = cf.WordList(("the", "cat", "sat"))
    >>> words.encode("the cat"), words.decode([0, 1, 2])
    ([0, 1], 'the cat sat')
    """

    words: tuple[str, ...]
    begin: int | None = None
    ends: tuple[int, ...] = ()

    ONE: ClassVar = "a word must be a text without white space"
    BETWEEN: ClassVar = " "  # what stands between two entries in a text

    def __post_init__(self) -> None:
        if isinstance(self.words, str):
            raise InputError(f"the vocabulary is {self.words!r}, but it must be a list of texts")
        for word in self.words:
            if not (isinstance(word, str) and self._whole(word)):
                raise InputError(f"the vocabulary contains {word!r}; {self.ONE}")
        refuse_duplicates(self.words)

    @property
    def texts(self) -> tuple[str, ...]:
        return self.words

    def __repr__(self) -> str:
        first = cut(", ".join(map(repr, self.words[:8])))
        return f"<{type(self).__name__} of {len(self.words)}: {first}>"

    @property
    def opening(self) -> str:
        """The word that every text begins with; "" if there is none."""
        return BEGIN if BEGIN in self._ids else ""

    def encode(self, text: str, special: bool = True) -> list[int]:
        words = [self._forgiven(word) for word in text.split()]
        lacks = special and words and self.opening not in ("", words[0])
        return [self._id(word) for word in ([self.opening] if lacks else []) + words]

    def decode(self, ids: Sequence[int]) -> str:
        check_known(ids, len(self.words))
        return self.BETWEEN.join(self.words[i] for i in ids)

    def _whole(self, word: str) -> bool:
        """Whether a text, split at white space, is exactly this one word."""
        return word.split() == [word]

    def _id(self, word: str) -> int:
        if word not in self._ids:
            raise InputError(f"{word!r} is not in the vocabulary; {nearest(word, self.words)}")
        return self._ids[word]

    def _forgiven(self, word: str) -> str:
        """The only word of the list that differs from this one in case alone, or else the word
        itself."""
        alike = self._lowered.get(word.lower(), [])
        return alike[0] if len(alike) == 1 and word not in self._ids else word

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    @cached_property
    def _lowered(self) -> dict[str, list[str]]:
        return grouped(self.words, str.lower)


@explained_class
@dataclass(frozen=True, repr=False)
class Characters(WordList):
    """A vocabulary of characters, white space included.

    >>> cf.Characters(("a", "b", " ")).encode("ab a")
    [0, 1, 2, 0]
    """

    ONE: ClassVar = "each entry must be one character"
    BETWEEN: ClassVar = ""

    def encode(self, text: str, special: bool = True) -> list[int]:
        return [self._id(character) for character in text]

    def _whole(self, word: str) -> bool:
        return len(word) == 1


@dataclass(frozen=True)
class IdsOnly:
    """No vocabulary: texts are the ids themselves."""

    n: int
    begin: int | None = None
    ends: tuple[int, ...] = ()
    reason: str = "this model has no tokenizer"

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(map(str, range(self.n)))

    def encode(self, text: str, special: bool = True) -> list[int]:
        raise InputError(f"{self.reason}; give token ids, for example --ids 0,1,3")

    def decode(self, ids: Sequence[int]) -> str:
        check_known(ids, self.n)
        return " ".join(map(str, ids))


def reader_of(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer of the sentence that is read: another one if the languages of a translator
    have vocabularies of their own."""
    return (tokenizer.reader if isinstance(tokenizer, Marian) else None) or tokenizer


def mask_of(tokenizer: Tokenizer) -> int | None:
    """The id of the mask token, if there is one."""
    return next((tokenizer.texts.index(text) for text in MASKS if text in tokenizer.texts), None)


def stream(tokenizer: Tokenizer, ids: Iterable[int]) -> Iterator[str]:
    """Decode ids as they come: yields each part of the text as soon as no later id can change it.

    The parts together equal `decode`. A byte waits for those that may complete it; with byte
    fallback, for the whole run of bytes, which a single invalid byte spoils.
    """
    runs = isinstance(tokenizer, Library) and tokenizer.byte_fallback
    seen: list[int] = []
    text, given = "", 0
    for i in ids:
        seen.append(i)
        before, text = text, tokenizer.decode(seen)
        waits = text.endswith("\ufffd") or (runs and BYTE.fullmatch(tokenizer.texts[i]))
        if text != before and not waits:
            yield text[given:]
            given = len(text)
    if given < len(text):
        yield text[given:]


def until(parts: Iterable[str], stops: Sequence[str], begun: int = 0) -> Iterator[str]:
    """A text in parts, up to the start of one of `stops`, not before the character `begun`. A
    possible beginning of a stop waits for the next part."""
    text, given = "", 0
    for part in parts:
        text += part
        found = [at for stop in stops if (at := text.find(stop, begun)) >= 0]
        if found:
            yield text[given : min(found)]
            return
        begins = (k for stop in stops for k in range(len(stop)) if text.endswith(stop[:k]))
        end = len(text) - max(begins, default=0)
        if end > given:
            yield text[given:end]
            given = end
    if given < len(text):
        yield text[given:]


# --- files --------------------------------------------------------------------------------------


def load_tokenizer(folder: Path, n: int) -> Tokenizer:
    """The tokenizer of a checkpoint folder with `n` token ids; `IdsOnly` if it has none."""
    found = _load(folder, n)
    config, generation = (json_object(folder / f) for f in ("config.json", GENERATION))
    begin, ends = (
        [i for i in _ids(generation.get(key)) or _ids(config.get(key)) if i < n]
        for key in ("bos_token_id", "eos_token_id")
    )
    return replace(found, begin=begin[0] if begin else found.begin, ends=tuple(ends))


GENERATION = "generation_config.json"


def _load(folder: Path, n: int) -> WordList | IdsOnly | Library | Marian:
    for name, kind in (("words.json", WordList), ("characters.json", Characters)):
        if (folder / name).is_file():
            words = _word_list(folder / name)
            if len(words) != n:
                raise InputError(
                    f"{folder / name} has {len(words)} entries for {n} token ids; the numbers "
                    "must be equal"
                )
            return kind(tuple(words))
    try:
        return subwords.read(folder, n) or marian.read(folder, n) or IdsOnly(n)
    except UnreadError as error:
        return IdsOnly(n, reason=str(error))


def _ids(value: Any) -> list[int]:
    """Token ids from a config, where they are a number, a list or null."""
    values = value if isinstance(value, list) else [value]
    return [i for i in values if isinstance(i, int) and i >= 0]


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write a tokenizer's files, for `load_tokenizer` to read."""
    if isinstance(tokenizer, Library):
        tokenizer.inner.save(str(folder / "tokenizer.json"))
        if tokenizer.chat:
            chat_template.save(tokenizer.chat, folder)
    elif isinstance(tokenizer, Marian):
        marian.save(tokenizer, folder)
    elif isinstance(tokenizer, WordList):
        name = "characters.json" if isinstance(tokenizer, Characters) else "words.json"
        (folder / name).write_text(json.dumps(tokenizer.words), encoding="utf-8")
    ends = list(tokenizer.ends) or None
    if tokenizer.begin is not None or ends:
        values = {"bos_token_id": tokenizer.begin, "eos_token_id": ends}
        (folder / GENERATION).write_text(json.dumps(values), encoding="utf-8")


def _word_list(path: Path) -> list[str]:
    words = read_json(path)
    if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
        raise InputError(
            f"{path} must be a JSON list of words, none of them empty; download the file again"
        )
    return words


def refuse_duplicates(words: tuple[str, ...]) -> None:
    """Raise InputError if two ids have the same text: a sheet could not tell them apart."""
    seen: dict[str, int] = {}
    for i, word in enumerate(words):
        if word in seen:
            raise InputError(f"the vocabulary contains {word!r} twice, as ids {seen[word]} and {i}")
        seen[word] = i


# --- how a token is shown -----------------------------------------------------------------------


@lru_cache(maxsize=4)
def shown(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Every token as sheets show it: readable, without spaces, all different.

    Tokens that would look alike get their id after a `\\#`, which no other shown text contains.
    """
    found = [show(text) for text in texts]
    count = Counter(found)
    return tuple(_cut(text, f"\\#{i}") if count[text] > 1 else text for i, text in enumerate(found))


def show(text: str) -> str:
    """One token as sheets show it: a space as ␣, invisible characters escaped, long texts cut.

    A backslash, a ␣ and `_x0041_` (a spreadsheet file's spelling of A) in the token itself are
    escaped, so that what is shown is unambiguous.
    """
    text = text[: LONGEST + len("_x0041_")]  # nothing of the rest is seen
    if text.isalnum() and text.isascii() and len(text) <= LONGEST:
        return text
    out = "".join(_sign(character) for character in text)
    return _cut(re.sub(r"_(?=x[0-9a-fA-F]{4}_)", r"_\\", out) or "\\empty")


def _sign(character: str) -> str:
    if character == " ":
        return "␣"
    if character in "\\␣":
        return "\\" + character
    return character if character.isprintable() else escaped(character)


def _cut(text: str, mark: str = "") -> str:
    """A text, cut if long, with a mark."""
    if _width(text) + len(mark) <= LONGEST:
        return text + mark
    while _width(text) + 1 + len(mark) > LONGEST:
        text = text[:-1]
    return text + "…" + mark


def _width(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
