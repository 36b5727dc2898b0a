"""What a name and a prompt on the command line stand for: a model, ids, and its workbook."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import workbooks
from engine import Graph, InputError, Model
from engine.models.generate import Passage
from engine.models.spec import MANY_WORDS

if TYPE_CHECKING:
    from exporters.book import Book

COLUMNS = 16  # tokens of a checkpoint's workbook, prompt and continuation, where it stays small
MANY_FORMULAS = 250_000  # above it, a column is made for every token of the prompt and no more


class Loaded(NamedTuple):
    """A model, the ids of a prompt, and what builds a workbook of a passage."""

    model: Model
    ids: list[int]
    build: "Callable[[Model, Passage, Sequence[str]], Book]"
    n_tokens: int  # columns of the workbook unless another number is asked for

    @property
    def graph(self) -> Graph:
        """The graph of the prompt alone."""
        return self.model.graph(self.ids)


def load(name: str, prompt: str | None = None, ids: str | None = None) -> Loaded:
    """A workbook of the list or a checkpoint folder, with a prompt or the one it comes with."""
    if Path(name).is_dir():
        return _folder(name, prompt, ids)

    from exporters import anymodel

    module = _transformer(name)
    model = module.model()
    given = _ids(model, prompt, ids)
    if given is None:
        given = model.vocabulary.encode(module.PROMPT)
    n_tokens = max(len(given), getattr(module, "N_TOKENS", 0))

    def build(model: Model, passage: Passage, live: Sequence[str]) -> "Book":
        if live:
            return anymodel.build(name, model, passage, live)
        return module.build(model, passage)

    return Loaded(model, given, build, n_tokens)


def model(name: str) -> Model:
    """The model of a workbook or a checkpoint folder."""
    if Path(name).is_dir():
        from engine.models import checkpoint

        return checkpoint.load(name)
    return _transformer(name).model()


def book(name: str) -> "Book":
    """A workbook of the list, as it comes."""
    module = workbooks.find(name)
    if hasattr(module, "book"):
        return module.book()
    from engine.models.generate import passage

    loaded = load(name)
    return loaded.build(loaded.model, passage(loaded.model, loaded.ids, loaded.n_tokens), ())


def is_worksheet(name: str) -> bool:
    """Whether a workbook of the list is made of worksheets, without a transformer."""
    return not Path(name).is_dir() and hasattr(workbooks.find(name), "book")


def _transformer(name: str) -> ModuleType:
    module = workbooks.find(name)
    if hasattr(module, "book"):
        raise InputError(
            f"{name} holds no transformer, only its worksheets: `cellformer build {name}`"
        )
    return module


def _folder(name: str, prompt: str | None, ids: str | None) -> Loaded:

    from exporters import anymodel

    found = model(name)
    given = _ids(found, prompt, ids)
    if given is None:
        raise InputError("a checkpoint has no prompt of its own; give --prompt or --ids")
    found.check_ids(given)
    title = Path(name).resolve().name
    n_tokens = _columns(found, len(given))
    return Loaded(found, given, partial(anymodel.build, title), n_tokens)


def _columns(model: Model, n_prompt: int) -> int:
    """Room to continue, where the model can and its workbook stays small."""
    from engine.studies.forecast import forecast

    n_tokens = max(n_prompt, min(COLUMNS, model.spec.n_ctx))
    if model.spec.d_vocab > MANY_WORDS:
        return n_prompt  # a large vocabulary's sheet does not generate
    small = model.spec.causal and forecast(model, n_tokens).n_formulas <= MANY_FORMULAS
    return n_tokens if small else n_prompt


def _ids(model: Model, prompt: str | None, ids: str | None) -> list[int] | None:
    if prompt is not None and ids is not None:
        raise InputError("--prompt and --ids exclude each other; give one")
    if ids is not None:
        if not re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", ids):
            raise InputError(f"--ids {ids!r} is no list of token ids; write it as 0,1,3")
        return [int(i) for i in ids.split(",")]
    return None if prompt is None else model.vocabulary.encode(prompt)
