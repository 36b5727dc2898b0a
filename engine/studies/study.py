"""Studies of a prompt, each declared in one file, which is found by being there.

A file of this folder with a `STUDY` declares the columns of a row, its options, and the function
that computes rows. From that follow its command, the table in the terminal, CSV, Parquet and JSON,
files of prompts, `cellformer.study` and docs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args, get_type_hints

import numpy as np

from cellformer.engine import studies as files
from cellformer.engine.cells import finite
from cellformer.engine.cells.errors import InputError, nearest
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.packages import declaring
from cellformer.engine.models.model import Model
from cellformer.engine.text.tokenizer import IdsOnly, shown

Row = Any  # a dataclass; see `columns`


@dataclass(frozen=True)
class NoOptions:
    """The options of a study that has none of its own."""


@dataclass(frozen=True)
class Asked:
    """A prompt of a model, and the question about it."""

    name: str  # of the model
    model: Model
    ids: Sequence[int]
    second: Sequence[int] = ()  # the other sentence of a sentence encoder
    target: str = ""  # a word; "": the likeliest
    rival: str = ""
    against: str = ""  # another text
    options: Any = None  # of the study
    allow: Callable[[int], None] = lambda n_passes: None  # raises InputError for too many
    encode: Callable[..., list[int]] = list  # a text as ids; `what` it is stands in errors

    @cached_property
    def graph(self) -> Graph:
        """The graph of the prompt. Raises InputError if a number of it is not finite."""
        graph = self.model.graph(self.ids)
        finite.check(graph, graph.values)
        return graph

    @property
    def row(self) -> int:
        """The row of the token whose words are ranked."""
        return self.model.place_of_answer(self.ids) if self.model.spec.gives != "next word" else -1

    @cached_property
    def words(self) -> list[str]:
        """The texts of the words that have a logit."""
        return list(shown((self.model.outputs or self.model.vocabulary).texts))

    def word(self, text: str, option: str = "--target") -> int:
        """The word that a text names, by default the likeliest. Raises InputError."""
        if not text:
            return first_word(self.graph, self.row)
        return word_of(self.model, text, self.graph, self.row, option)


@dataclass(frozen=True)
class Study:
    """A study, as its file declares it."""

    name: str  # of its command
    summary: str  # for its help
    row: type  # a dataclass whose fields are the columns
    rows: Callable[[Asked], tuple[str, Iterable[Row]]]  # the target word, and its rows
    options: type = NoOptions  # a dataclass; a field is annotated with its help, and its option
    title: str = "{target}"  # of the table
    closing: Callable[[str, Sequence[Row]], str] = lambda target, rows: ""  # a sentence below it


def studies() -> dict[str, Study]:
    """Every study, by name."""
    return {study.name: study for study in declaring(files, "STUDY")}


def spelt(options: type) -> dict[str, tuple[Any, str, str, Any]]:
    """The options of a study by field: the type, the option as people type it without dashes, the
    help, and the default."""
    hints, found = get_type_hints(options, include_extras=True), {}
    for each in fields(options):
        kind, told, *name = get_args(hints[each.name])
        option = name[0] if name else each.name.replace("_", "-")
        found[each.name] = (kind, option, told, each.default)
    return found


def word_of(model: Model, text: str, graph: Graph, row: int, option: str = "--target") -> int:
    """The output word that a text names. Raises InputError if it is not one token.

    The leading space may be left out: the more likely of the two words is taken. A word as sheets
    show it works, too: `␣a`.
    """
    vocabulary = model.outputs or model.vocabulary
    known = zip(vocabulary.texts, shown(vocabulary.texts), strict=True)
    meant = [v for v, (own, name) in enumerate(known) if own in (text, f" {text}") or name == text]
    if meant:
        return max(meant, key=graph.values["probs"][row].__getitem__)
    if isinstance(vocabulary, IdsOnly):
        last = len(vocabulary.texts) - 1
        raise InputError(
            f"{option} {text!r} is not a word of this model, which has only token ids from 0 to "
            f"{last}; give one of these ids"
        )
    ids = vocabulary.encode(text, special=False)
    if len(ids) != 1:
        some = nearest(text, vocabulary.texts)
        raise InputError(
            f"{option} {text!r} has {len(ids)} tokens; give a word of one token ({some})"
        )
    return ids[0]


def first_word(graph: Graph, row: int) -> int:
    """The most likely word at a token."""
    return int(np.argmax(graph.values["logits"][row]))
