"""A file with a list of words, one per line, each of which must be one token of a model.

A line that begins with `# ` names the group of the words below it. A word is looked up first with a
leading space, as within a text, and then without.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from engine.cells.errors import InputError, nearest
from engine.cells.texts import readable
from engine.text.tokenizer import IdsOnly, Tokenizer, WordList

FEWEST, MOST = 4, 255  # words of a map; a chart has no more than 255 series
LARGEST = 100_000  # bytes of a file
LONGEST = 60  # characters of a word that a message shows
NO_GROUP = "words"


def read(path: Path) -> dict[str, list[str]]:
    """The words of a file by group, in the file's order. Raises InputError for a file that cannot
    be read, is not such a list, has too few or too many words, or has one twice."""
    found: dict[str, list[str]] = {}
    group, seen = NO_GROUP, dict[str, int]()
    for number, line in enumerate(_text(path).splitlines(), 1):
        word = line.strip()
        if word.startswith("# "):
            group = word[2:].strip()
        elif word in seen:
            raise InputError(
                f"{path}, line {number}: {_shown(word)} stands on line {seen[word]} already"
            )
        elif word:
            seen[word] = number
            found.setdefault(group, []).append(word)
    if not FEWEST <= len(seen) <= MOST:
        raise InputError(
            f"{path} lists {len(seen):,}; a map takes {FEWEST} to {MOST} words, one a line"
        )
    return found


def _text(path: Path) -> str:
    if not path.is_file():
        raise InputError(f"{path} is no file; give a list of words, one a line")
    try:
        if path.stat().st_size > LARGEST:
            raise InputError(f"{path} is larger than a list of {MOST} words; shorten it")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text in UTF-8; save the list of words as one") from None


def ids(groups: Mapping[str, Sequence[str]], tokenizer: Tokenizer) -> dict[str, list[int]]:
    """The token of each word, by group. Raises InputError for a word that is not exactly one token,
    and for two words with the same token."""
    if isinstance(tokenizer, IdsOnly):
        raise InputError(f"{tokenizer.reason}; a list of words needs one")
    seen = dict[int, str]()
    found: dict[str, list[int]] = {}
    for group, words in groups.items():
        for word in words:
            ident = _token(word, tokenizer)
            if ident in seen:
                raise InputError(
                    f"{_shown(word)} and {_shown(seen[ident])} are the same token; leave one out"
                )
            seen[ident] = word
            found.setdefault(group, []).append(ident)
    return found


def _token(word: str, tokenizer: Tokenizer) -> int:
    """The only token of a word."""
    words = isinstance(tokenizer, WordList)
    if words and word in tokenizer.texts:
        return tokenizer.texts.index(word)
    tried = [tried for text in (f" {word}", word) if (tried := _encoded(text, tokenizer))]
    for ident in (given[0] for given in tried if len(given) == 1):
        if tokenizer.decode([ident]).strip().casefold() == word.casefold():
            return ident
    if tried and min(map(len, tried)) > 1:
        pieces = ", ".join(tokenizer.texts[i].strip() for i in min(tried, key=len)[:8])
        raise InputError(
            f"{_shown(word)} is {min(map(len, tried))} tokens here ({readable(pieces)}); "
            "a map takes words of one"
        )
    close = nearest(word[:LONGEST], tokenizer.texts) if words else "leave it out"
    raise InputError(f"{_shown(word)} is not in the vocabulary; {close}")


def _encoded(text: str, tokenizer: Tokenizer) -> list[int]:
    """The ids of a text without special tokens; none if it cannot be tokenized."""
    with suppress(InputError):
        return tokenizer.encode(text, special=False)
    return []


def _shown(word: str) -> str:
    return repr(word if len(word) <= LONGEST else word[:LONGEST] + "…")
