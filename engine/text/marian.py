"""Marian's tokenizer: source.spm cuts a text into pieces, vocab.json numbers them for both
languages, and </s> ends the text. Where languages have vocabularies of their own,
target_vocab.json numbers the answer's.

As transformers' `MarianTokenizer`, which leaves quotes and dashes as they are unless the library
sacremoses is there.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cellformer.engine.cells.errors import InputError, check_all
from cellformer.engine.cells.fields import Fields, content_of, json_object
from cellformer.engine.cells.files import read_json
from cellformer.engine.text import sentencepiece
from cellformer.engine.text.subwords import check_known
from cellformer.engine.text.tokenizers_library import check_pieces
from cellformer.engine.text.unigram import SPACE, Unigram

SOURCE, PIECES = FILES = ("source.spm", "vocab.json")
TARGETS, SAID = "target_vocab.json", "tokenizer_config.json"
SPECIAL = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
LANGUAGE = re.compile(r">>.*?<<", re.DOTALL)  # which an answer is to be in, before a text


@dataclass(frozen=True, repr=False, eq=False)
class Marian:
    """A tokenizer of Marian's, for an embedding of `n` rows."""

    source: Unigram
    ids: Mapping[str, int]  # of pieces of both languages
    special: Mapping[str, str]  # tokens by their roles, as in SPECIAL
    n: int
    files: Mapping[str, bytes]  # that it was read from, by name
    begin: int | None = None
    ends: tuple[int, ...] = ()
    reader: "Marian | None" = None  # of the source language, if it has a vocabulary of its own

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n:,} tokens>"

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The text of every id; of a row without a piece, its number."""
        pieces = {i: piece for piece, i in self.ids.items()}
        return tuple(pieces.get(i, f"<{i}>").replace(SPACE, " ") for i in range(self.n))

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The ids of a text, with </s> behind them if `special`."""
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"the prompt {text!r} is not valid Unicode text") from None
        unknown = self.ids[self.special["unk_token"]]
        found = [self.ids.get(piece, unknown) for piece in self._pieces(text)]
        return [*found, self.ids[self.special["eos_token"]]] if special else found

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without special tokens."""
        check_known(ids, self.n)
        special = {self.ids[token] for token in self.special.values()}
        return "".join(self.texts[i] for i in ids if i not in special).strip()

    def _pieces(self, text: str) -> Iterator[str]:
        """The pieces of a text; special tokens within it are pieces."""
        tokens = "|".join(map(re.escape, self.special.values()))
        for part in re.split(f"({tokens})", text):
            if part in self.special.values():
                yield part
                continue
            language = LANGUAGE.match(part)
            if language:
                yield language[0]
            yield from self.source.cut(part[language.end() :] if language else part)


def read(folder: Path, n: int) -> Marian | None:
    """The tokenizer of a checkpoint folder; None if there is none of Marian's.

    Raises InputError for files that are damaged, and UnreadError for an unsupported source.spm.
    """
    if not all((folder / name).is_file() for name in FILES):
        return None
    source = sentencepiece.unigram(folder / SOURCE)
    said = json_object(folder / "special_tokens_map.json") | json_object(folder / SAID)
    special = {role: content_of(said.get(role)) or token for role, token in SPECIAL.items()}
    names = [*FILES, "target.spm", *((TARGETS, SAID) if said.get("separate_vocabs") else ())]
    files = {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}
    if not said.get("separate_vocabs"):
        return Marian(source, numbered(folder / PIECES, special, n), special, n, files)
    n_read = Fields(folder / "config.json").get("vocab_size", int)
    reader = Marian(source, numbered(folder / PIECES, special, n_read), special, n_read, {})
    own = numbered(folder / TARGETS, special, n)
    return Marian(source, own, special, n, files, reader=reader)


def numbered(path: Path, special: Mapping[str, str], n: int) -> dict[str, int]:
    """The ids of pieces in a file, all below `n`. Raises InputError."""
    ids = read_json(path)
    if not isinstance(ids, dict):
        raise InputError(f"{path} does not contain tokens with their ids; download the file again")
    check_pieces(ids, ids.values(), str(path))
    beyond = next((piece for piece, i in ids.items() if not 0 <= i < n), None)
    if beyond is not None:
        raise InputError(
            f"{path}: {beyond!r} has id {ids[beyond]}, but the model's ids run from 0 to {n - 1}; "
            "download the folder again"
        )
    check_all(*(
        (token in ids, f"{path} lacks the special token {token!r}; download the file again")
        for token in special.values()
    ))  # fmt: skip
    return ids


def save(tokenizer: Marian, folder: Path) -> None:
    """Write the files that a tokenizer was read from."""
    for name, data in tokenizer.files.items():
        (folder / name).write_bytes(data)
