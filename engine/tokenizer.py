"""Text to token ids and back: a word list."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import InputError, nearest


@dataclass(frozen=True)
class WordList:
    """A vocabulary of whole words, split at white space; a word's id is its place in the list."""

    words: tuple[str, ...]

    def encode(self, text: str) -> list[int]:
        """The ids of the words of a text. Raises InputError for a word that is not in the list."""
        ids = {word: i for i, word in enumerate(self.words)}
        for word in text.split():
            if word not in ids:
                raise InputError(f"{word!r} is not in the vocabulary; {nearest(word, self.words)}")
        return [ids[word] for word in text.split()]

    def decode(self, ids: Sequence[int]) -> list[str]:
        """The words with these ids."""
        return [self.words[i] for i in ids]
