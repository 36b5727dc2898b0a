"""A file with a list of words, one per line, each of which must be one token of a model.

A line that begins with `# ` names the group of the words below it. A word is looked up first with a
leading space, as within a text, and then without.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from cellformer.engine.cells.errors import InputError, nearest
from cellformer.engine.cells.texts import readable
from cellformer.engine.text import list_file
from cellformer.engine.text.list_file import LONGEST, quoted
from cellformer.engine.text.tokenizer import IdsOnly, Tokenizer, WordList

FEWEST, MOST = 4, 255  # words of a map; a chart has no more than 255 series
NO_GROUP = "words"


def read(path: Path) -> dict[str, list[str]]:
    """The words of a file by group, in the file's order. Raises InputError for a file that cannot
    be read, is not such a list, has too few or too many words, or has one twice."""
    found: dict[str, list[str]] = {}
    seen: dict[str, int] = {}
    for number, group, word in list_file.lines(path, "words", MOST):
        if word in seen:
            raise InputError(
                f"{path}, line {number}: {quoted(word)} is already on line {seen[word]}; delete "
                "one of them"
            )
        if word:
            seen[word] = number
            found.setdefault(group or NO_GROUP, []).append(word)
    if not FEWEST <= len(seen) <= MOST:
        listed = "1 word" if len(seen) == 1 else f"{len(seen):,} words"
        raise InputError(
            f"{path} lists {listed}; a map needs {FEWEST} to {MOST} words, one on each line"
        )
    return found


def ids(groups: Mapping[str, Sequence[str]], tokenizer: Tokenizer) -> dict[str, list[int]]:
    """The token of each word, by group. Raises InputError for a word that is not exactly one token,
    and for two words with the same token."""
    if isinstance(tokenizer, IdsOnly):
        raise InputError(f"{tokenizer.reason}; a list of words needs a tokenizer")
    seen = dict[int, str]()
    found: dict[str, list[int]] = {}
    for group, words in groups.items():
        for word in words:
            ident = _token(word, tokenizer)
            if ident in seen:
                raise InputError(
                    f"{quoted(word)} and {quoted(seen[ident])} are the same token; delete one of "
                    "them"
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
            f"the tokenizer splits {quoted(word)} into {min(map(len, tried))} tokens "
            f"({readable(pieces)}), but a map needs words of one token; replace this word"
        )
    close = nearest(word[:LONGEST], tokenizer.texts) if words else "leave it out"
    raise InputError(f"the vocabulary does not contain {quoted(word)}; {close}")


def _encoded(text: str, tokenizer: Tokenizer) -> list[int]:
    """The ids of a text without special tokens; none if it cannot be tokenized."""
    with suppress(InputError):
        return tokenizer.encode(text, special=False)
    return []
