"""The first minute: first lists that are not certain, one start, tables as their labels say."""

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import Built, cli, default_book
from libreoffice import places

from cellformer import workbooks
from cellformer.exporters.model.model_book import ModelBook

MODELS = [n for n in workbooks.path() if not hasattr(workbooks.find(n), "book")]
SURE = {"tool-call"}  # it has learnt to copy sums, where nothing is to be unsure of
SHAPE = re.compile(r"^(\S+) = .*?   \[(\d+)(?: \S+)? × (\d+)(?: \S+)?\]   ")


def model_book(name: str) -> ModelBook:
    book = default_book(name)
    assert isinstance(book, ModelBook)
    return book


def entropy(p: np.ndarray) -> float:
    """In nats."""
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


@pytest.mark.parametrize("name", MODELS)
def test_first_lists_have_more_than_a_nat_of_entropy(name: str) -> None:
    """What Play ranks first, in place of the last word or after it, is open; with three words, by
    three quarters of what there can be."""
    loaded = workbooks.find(name)
    model = loaded.model()
    ids = model.vocabulary.encode(loaded.PROMPT)
    probs = model.graph(ids).values["probs"]
    least = min(1.0, 0.75 * np.log(probs.shape[1]))
    assert max(map(entropy, probs[-2:])) > least or name in SURE


def test_one_workbook_is_the_start() -> None:
    first, *others = workbooks.path()
    assert workbooks.first() == first
    assert workbooks.level(first) == 1 and not workbooks.place(first).after
    told = cli("list").out
    assert told.count("start here") == 1
    assert told.index(f" {first} ") < told.index("start here") < told.index(f" {others[0]} ")


SMALL = [n for n in MODELS if hasattr(workbooks.find(n), "HEADINGS")]  # set by hand
TRAINED = [pytest.param(n, marks=pytest.mark.slow) for n in MODELS if n not in SMALL]


@pytest.mark.parametrize("name", [*SMALL, *(p for p in TRAINED if p.values != ("shakespeare",))])
def test_labels_say_how_tables_lie(name: str) -> None:
    """The shape on the label of a block is that of its range, rows before columns."""
    book, n_labels = model_book(name), 0
    for sheet in book.sheets.values():
        for entry in sheet.entries.values():
            found = SHAPE.match(str(entry.value)) if entry.style == "equation" else None
            if found:
                block, rows, cols = found.groups()
                assert book.places[block].size == (int(rows), int(cols)), (name, entry.value)
                n_labels += 1
    assert n_labels > 3


SCREEN = 1313, 586  # pixels of cells that LibreOffice's window of 1366 x 768 shows at 100 %
BELOW = {  # sheets that begin with the table that their chart draws
    ("positions", "Hands"), ("no-attention", "Streams"),
}  # fmt: skip
PLACED = [
    pytest.param(n, marks=() if n in ("adder", "loss") else pytest.mark.slow)
    for n in workbooks.path()
    if n != "shakespeare"
]


@pytest.mark.parametrize("name", PLACED)
def test_results_stand_on_the_first_screen(
    libreoffice: None, built: Built, name: str, tmp_path: Path
) -> None:
    """Where LibreOffice has them: on each sheet with charts one of them whole, and on Start what
    the cells of all three suggested edits show."""
    book = default_book(name)
    watched = book.shown["start.watched"]
    last = ("Start", watched.top + 2, watched.left)
    *charts, cell = places(built[name], last, tmp_path)
    assert cell[1] <= SCREEN[0] and cell[2] <= SCREEN[1]
    seen = {sheet for sheet, right, bottom in charts if right <= SCREEN[0] and bottom <= SCREEN[1]}
    assert {(name, sheet) for sheet, *_ in charts if sheet not in seen} <= BELOW
