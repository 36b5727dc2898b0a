"""What everybody meets first: a workbook opened with the values that it holds, and a word typed.

LibreOffice recalculates nothing when it opens a file: only what depends on the first word follows.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from conftest import default_book, random_model
from corners import N_COLUMNS, corner
from libreoffice import Typed, typed_by_hand
from on_play import RANKS_OF_LAST

import cellformer as cf
from cellformer.engine import Evaluator, ModelSpec
from cellformer.engine.models import checkpoint
from cellformer.engine.text.tokenizer import Characters
from cellformer.exporters.compose.book import Book
from cellformer.exporters.model.model_book import ModelBook

pytestmark = pytest.mark.usefixtures("libreoffice")


@cache
def book(kind: str) -> Book:
    """Small workbooks: of the gallery, of a golden model's corner, of characters."""
    if kind == "cat-sat":
        return default_book(kind)
    if kind == "qwen3":
        with TemporaryDirectory() as folder:
            model = checkpoint.load(corner(kind, Path(folder) / kind))
        return cf.build(model, ids=[1, 2], n_tokens=N_COLUMNS)
    letters = Characters(tuple("abdehiosTtW \n"))
    model = random_model(ModelSpec(len(letters.words), 4, 8, n_layers=1, n_heads=1, d_head=4))
    return cf.build(replace(model, vocabulary=letters), prompt="this", n_tokens=6)


# what is typed one upon the other: blocks' cells, and what goes into them
TYPED: dict[str, list[dict[tuple[str, int, int], float | str]]] = {
    "cat-sat": [
        {("sentence", 0, 0): "the dog"},
        {("prompt.pick", 1, 0): "cat"},
        {("look.target.instead", 0, 0): "dog"},
    ],
    "qwen3": [{("prompt.pick", 0, 0): "0"}, {("sentence", 0, 0): "2 1"}],
    "characters": [{("sentence", 0, 0): "What"}, {("prompt.pick", 2, 0): "␣"}],
}
WATCHED = ("tokens", "n_prompt", "position", "target", "logits", "probs", "text.whole")


def watched(kind: str) -> Iterator[tuple[str, int, int]]:
    """The cells of blocks that are looked at."""
    for name in WATCHED:
        if name in book(kind).graph.blocks:  # a model without a tokenizer has no text
            for i, j in np.ndindex(*book(kind).graph[name].shape):
                yield name, i, j


def cells(kind: str, typed: dict[tuple[str, int, int], float | str]) -> Typed:
    return {book(kind).cell(*cell): value for cell, value in typed.items()}


@pytest.mark.parametrize("kind", TYPED)
def test_the_first_word_typed_changes_the_prediction(kind: str, tmp_path: Path) -> None:
    path = cf.write(book(kind), tmp_path / "book.xlsx")
    opened = typed_by_hand(path, [cells(kind, typed) for typed in TYPED[kind]], tmp_path)
    live = Evaluator(book(kind).graph)
    for typed, told in zip(TYPED[kind], opened, strict=True):
        before = [live[name][i, j] for name, i, j in watched(kind)]
        for cell, value in typed.items():
            live.set(*cell, value)
        assert before != [live[name][i, j] for name, i, j in watched(kind)]
        for name, i, j in watched(kind):
            wanted: object = live[name][i, j]
            if not isinstance(wanted, str):
                wanted = pytest.approx(wanted, abs=1e-9)
            sheet, *at = book(kind).cell(name, i, j)
            found = told[sheet][tuple(at)]
            assert ("" if found is None else found) == wanted, (typed, name, i, j)


@pytest.mark.parametrize(
    ("name", "block"),
    [("loss", "weights"), ("low-rank", "W_Q_h1"), ("cat-sat", "blocks.0.attn.h0.W_Q")],
)
def test_the_first_number_typed_stands_in_the_ledger(name: str, block: str, tmp_path: Path) -> None:
    book = default_book(name)
    path = cf.write(book, tmp_path / "book.xlsx")
    (shown,) = typed_by_hand(path, [{book.cell(block, 0, 0): 5.0}], tmp_path)
    assert str(shown["Start"][2, 0]).startswith(f"1 edit: {block}[0,0] ")


def test_the_first_number_typed_ranks_many_words_anew(tmp_path: Path) -> None:
    book = cf.build(random_model(ModelSpec(2100, 4, 4, n_layers=1, n_heads=1, d_head=2)), ids=[1])
    assert isinstance(book, ModelBook) and book.plan.answers
    path = cf.write(book, tmp_path / "book.xlsx")
    (shown,) = typed_by_hand(path, [{book.cell("W_U", 0, 7): 50.0}], tmp_path)
    live = Evaluator(book.graph)
    live.set("W_U", 0, 7, 50.0)
    ids = np.argsort(-live["logits"][-1], kind="stable")[:5]
    words = [shown["Play"][RANKS_OF_LAST + rank, 1] for rank in range(5)]
    assert words == [book.labels[book.graph["logits"].axes[1]][i] for i in ids]
    assert set(ids) != set(np.argsort(-book.values["logits"][-1], kind="stable")[:5])
