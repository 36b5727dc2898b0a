"""What everybody meets first: a workbook opened with the values that it holds, and a word typed.

LibreOffice recalculates nothing when it opens a file: only what depends on the first word follows.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import GOLDEN, default_book, random_model
from typist import Typed, typed_in_libreoffice

import cellformer as cf
from engine import Evaluator, ModelSpec
from engine.models import checkpoint
from engine.models.tokenizer import Characters
from exporters.book import Book
from exporters.reading import WorkbookFile

pytestmark = pytest.mark.office


@cache
def book(kind: str) -> Book:
    """Small workbooks: of the gallery, of a golden file, of characters."""
    if kind == "cat-sat":
        return default_book(kind)
    if kind == "qwen3":
        model = checkpoint.load(GOLDEN / kind)
        return cf.build(model, ids=[1, 2], n_tokens=4)
    letters = Characters(tuple("abdehiosTtW \n"))
    model = random_model(ModelSpec(len(letters.words), 4, 8, n_layers=1, n_heads=1, d_head=4))
    return cf.build(replace(model, vocabulary=letters), prompt="this", n_tokens=6)


# what is typed one upon the other: blocks' cells, and what goes into them
TYPED: dict[str, list[dict[tuple[str, int, int], float | str]]] = {
    "cat-sat": [
        {("sentence", 0, 0): "the dog"},
        {("prompt.pick", 1, 0): "cat"},
        {("look.target", 0, 0): "dog"},
    ],
    "qwen3": [{("prompt.pick", 0, 0): "5"}, {("sentence", 0, 0): "7 3"}],
    "characters": [{("sentence", 0, 0): "What"}, {("prompt.pick", 2, 0): "␣"}],
}
WATCHED = ("tokens", "n_prompt", "position", "target", "logits", "probs")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[WorkbookFile]]:
    """What LibreOffice saves after each text."""
    folder = tmp_path_factory.mktemp("first")
    paths = {kind: cf.write(book(kind), folder / f"{kind}.xlsx") for kind in TYPED}
    jobs = {paths[kind]: [cells(kind, typed) for typed in texts] for kind, texts in TYPED.items()}
    found = typed_in_libreoffice(jobs, folder)
    return {kind: found[path] for kind, path in paths.items()}


def cells(kind: str, typed: dict[tuple[str, int, int], float | str]) -> Typed:
    return {book(kind).cell(*cell): value for cell, value in typed.items()}


@pytest.mark.parametrize("kind", TYPED)
def test_the_first_word_typed_changes_the_prediction(
    kind: str, opened: dict[str, list[WorkbookFile]]
) -> None:
    live = Evaluator(book(kind).graph)
    for typed, file in zip(TYPED[kind], opened[kind], strict=True):
        before = [live[name].copy() for name in WATCHED]
        for cell, value in typed.items():
            live.set(*cell, value)
        assert any((live[n] != old).any() for n, old in zip(WATCHED, before, strict=True))
        for name in WATCHED:
            shown = np.zeros(live[name].shape)
            for i, j in np.ndindex(*shown.shape):
                sheet, row, col = book(kind).cell(name, i, j)
                shown[i, j] = file[sheet][row, col]
            np.testing.assert_allclose(shown, live[name], atol=1e-9, err_msg=f"{typed} {name}")
