"""Rules of an encoder-decoder's checkpoint for its answers, beside the weights: the first or last
word, forbidden words, and forbidden repetitions.

They stand in generation_config.json or, where there is none, in config.json, and hold for every
way to choose a word, as in transformers' `generate`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cellformer.engine.cells.errors import InputError, check_all
from cellformer.engine.cells.fields import Fields, json_object
from cellformer.engine.cells.values import is_whole
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.spec import TwoStackSpec

FILE = "generation_config.json"
START = "decoder_start_token_id"
MOST_IN_CELLS = 8  # words that never come; each is named in the formula of every logit
FIELDS = {  # of a file -> of Rules
    "forced_bos_token_id": "first",
    "forced_eos_token_id": "last",
    "bad_words_ids": "never",
    "no_repeat_ngram_size": "no_repeat",
    "encoder_no_repeat_ngram_size": "no_copy",
    "min_length": "shortest",
}


@dataclass(frozen=True)
class Rules:
    """The rules for an answer; without any, each word may follow any other."""

    first: tuple[int, ...] = ()  # that an answer begins with, after its start; (): with any word
    last: tuple[int, ...] = ()  # the least of which ends it where there is no room for another
    never: tuple[tuple[int, ...], ...] = ()  # sequences of ids that are in no answer
    no_repeat: int = 0  # no sequence of so many words comes twice; 0: it may
    no_copy: int = 0  # none of so many is the source's; 0: it may be
    shortest: int = 0  # tokens, the start among them, before the end may come

    def allowed(
        self,
        n_words: int,
        so_far: Sequence[int],
        source: Sequence[int],
        ends: Sequence[int],
        is_last: bool,
    ) -> np.ndarray:
        """The ids that may follow the ids `so_far`; `is_last` if there is no room for more.
        Raises InputError if there are none."""
        if is_last and self.last:
            return np.array([min(self.last)])
        if len(so_far) == 1 and self.first:
            return np.array(self.first)
        sequences = [word for word in self.never if word not in [(end,) for end in ends]]
        sequences += windows(so_far, self.no_repeat) if self.no_repeat else []
        sequences += windows(source, self.no_copy) if self.no_copy else []
        banned = {word[-1] for word in sequences if follows(so_far, word)}
        banned |= set(ends) if len(so_far) < self.shortest else set()
        found = np.setdiff1d(np.arange(n_words), list(banned))
        if not len(found):
            raise InputError(
                f"the model's rules for answers (in {FILE} or config.json) allow no further word; "
                "ask for fewer words"
            )
        return found

    @property
    def in_cells(self) -> "Rules":
        """The rules that cells apply: the first word, the last word, and a few forbidden words."""
        words = tuple(word for word in self.never if len(word) == 1)
        return Rules(self.first, self.last, words if len(words) <= MOST_IN_CELLS else ())

    @property
    def fields(self) -> dict[str, Any]:
        """The rules as a file has them."""
        held = {theirs: getattr(self, ours) for theirs, ours in FIELDS.items()}
        found = {name: value for name, value in held.items() if value}
        for name in found.keys() & {"forced_bos_token_id", "forced_eos_token_id"}:
            found[name] = found[name][0] if len(found[name]) == 1 else list(found[name])
        if self.never:
            found["bad_words_ids"] = [list(word) for word in self.never]
        return found


def windows(ids: Sequence[int], n: int) -> Iterator[tuple[int, ...]]:
    """Every n ids that stand one after another."""
    return (tuple(ids[k : k + n]) for k in range(len(ids) - n + 1))


def follows(so_far: Sequence[int], word: tuple[int, ...]) -> bool:
    """Whether the ids so far end with all but the last id of a sequence."""
    return len(word) == 1 or tuple(so_far[1 - len(word) :]) == word[:-1]


def read(config: Config, spec: TwoStackSpec) -> tuple[TwoStackSpec, Rules]:
    """The rules of a checkpoint, and its spec with the start that they name. Raises InputError for
    an odd value."""
    beside, n_words = config.path.parent / FILE, spec.d_vocab
    said = Fields(beside) if beside.is_file() else config
    config.ignore(*FIELDS)
    start = forced(said, START, n_words) or (spec.start,)
    counts = ("no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "min_length")
    sizes = [said.get(name, int, 0) for name in counts]
    check_all(*(
        (value >= 0, f"{said.path}: {name} is {value}; it cannot be negative")
        for name, value in zip(counts, sizes, strict=True)
    ))  # fmt: skip
    first, last = (forced(said, f"forced_{end}_token_id", n_words) for end in ("bos", "eos"))
    return replace(spec, start=start[0]), Rules(first[:1], last, never(said, n_words), *sizes)


def forced(said: Fields, name: str, n_words: int) -> tuple[int, ...]:
    """The ids of a field that is an id, a list of them, or null."""
    value = said.look(name)
    ids = [] if value is None else value if isinstance(value, list) else [value]
    return checked(said, name, ids, n_words)


def never(said: Fields, n_words: int) -> tuple[tuple[int, ...], ...]:
    """The sequences of `bad_words_ids`."""
    name = "bad_words_ids"
    return tuple(checked(said, name, word, n_words) for word in said.listed(name, list) if word)


def checked(said: Fields, name: str, ids: Sequence[Any], n_words: int) -> tuple[int, ...]:
    """Ids of words of the model. Raises InputError for others."""
    check_all(*(
        (
            is_whole(i) and 0 <= i < n_words,
            f"{said.path}: {name} has {i!r}, but ids run from 0 to {n_words - 1}",
        )
        for i in ids
    ))  # fmt: skip
    return tuple(ids)


def save(rules: Rules, start: int, folder: Path) -> None:
    """Write rules, and the id that answers start with, beside what a folder's file has."""
    values = json_object(folder / FILE) | {START: start} | rules.fields
    (folder / FILE).write_text(json.dumps(values), encoding="utf-8")
