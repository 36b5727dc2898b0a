"""The sheet Nudge: a typed sentence is learnt as torch learns it, and other programs agree."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import (
    ERROR,
    InIronCalc,
    assert_agrees,
    assert_recomputes_after,
    libreoffice_after,
    random_model,
)

from cellformer import names
from cellformer.engine import Model, ModelSpec
from cellformer.engine.learning import objective
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import nudge
from cellformer.exporters.assemble import model_workbook, tour
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import nudge as page

pytestmark = pytest.mark.slow

RATE, AFTER = (nudge.RATE, 0, 0), (nudge.LOSS_AFTER, 0, 0)


@pytest.fixture(scope="module")
def book() -> ModelBook:
    """cat-sat's workbook that takes a step, with a column more than its prompt."""
    loaded = names.load("cat-sat")
    words = passage(loaded.model, loaded.ids, len(loaded.ids) + 1)
    found = loaded.book(loaded.model, words, studies={"nudge": True})
    assert isinstance(found, ModelBook)
    return found


@pytest.fixture(scope="module")
def cells(book, tmp_path_factory) -> FormulaCells:
    return read(write(book, tmp_path_factory.mktemp("nudge") / "cat-sat.xlsx"))


@pytest.fixture(scope="module")
def sheet(cells) -> InIronCalc:
    return InIronCalc(cells.path)


def spelt(book: ModelBook, ids: list[int]) -> str:
    return " ".join(book.labels["vocab"][i] for i in ids)


def test_every_suggested_edit_does_what_its_text_says(book, cells, sheet) -> None:
    suggestions = book.sheets["Nudge"].suggestions
    assert len(suggestions) == 3
    for t in suggestions:
        after = assert_recomputes_after({t.cell: t.value}, sheet, book, cells)
        assert after.cell(*book.cell(*t.watch)) == pytest.approx(t.becomes, abs=1e-9)
        assert f"{t.becomes:.3f}" in t.text and f"Type ‘{t.value:g}’ " in t.text


def test_no_input_gives_an_error(book, cells, sheet) -> None:
    """A lone word, none, one that is unknown, too many; a text as rate, and one far too large."""
    for edit in ({("sentence", 0, 0): spelt(book, [2, 5])}, {("temperature", 0, 0): 0.0}):
        assert_recomputes_after(edit, sheet, book, cells)
    nothing = ("", spelt(book, [1]), spelt(book, [1]) + " no-such-word")
    sentences = [("sentence", text) for text in (spelt(book, [3] * 9), *nothing)]
    for name, value in (*sentences, (nudge.RATE, 1000.0), (nudge.RATE, "abc")):
        with sheet.typed({book.cell(name, 0, 0): value}):
            shown = {cell: sheet[cell] for cell in cells.formulas}
        assert not [cell for cell, x in shown.items() if ERROR.fullmatch(str(x))], value
        if value in nothing:
            assert shown[book.cell(*AFTER)] == 0
        n, heading = len(book.passage.ids), shown["Nudge", 4, 0]
        assert (f"One training step on the first {n} tokens of ‘" in heading) == (
            value == sentences[0][1]
        )


def test_loss_in_libreoffice_equals_torch(book, cells, tmp_path, libreoffice, torch) -> None:
    """From wrong values; every other cell has what the engine has."""
    from by_torch import loss_after_step

    ids, rate = [1, 0, 5, 2], 0.3
    edits = {("sentence", 0, 0): spelt(book, ids), RATE: rate}
    there = {book.cell(*at): value for at, value in edits.items()}
    (shown,) = libreoffice_after(cells.path, [there], tmp_path / "office")
    after = book.edited({book.graph[at][i, j]: x for (at, i, j), x in edits.items()})
    assert_agrees(replace(cells, formulas={at: after.cell(*at) for at in cells.formulas}), shown)
    alone = book.model.graph(ids)
    objective.loss(alone, *objective.next_words(alone))
    sheet, *cell = book.cell(*AFTER)
    assert shown[sheet][tuple(cell)] == pytest.approx(loss_after_step(alone, rate), rel=1e-9)


def test_the_tour_ends_where_it_learns(book) -> None:
    *_, change, last = tour.stops(book)
    assert (change.concept, last.concept, last.sheet) == ("change it", "watch it learn", "Nudge")
    assert f"{book.value('loss', 0, 0):.3f}".rstrip("0") in last.text.value(book.clean)


def test_nudge_of_a_model_of_zeros(tmp_path) -> None:
    """No step is too far where none changes anything."""
    small = random_model(ModelSpec(4, 3, 4, n_layers=1, n_heads=1, d_head=2, d_mlp=2))
    nothing = {name: 0 * np.asarray(weight) for name, weight in small.weights.items()}
    model = Model(**{**vars(small), "weights": nothing})
    book = model_workbook.build("zeros", model, passage(model, [1, 2, 3]), studies={"nudge": True})
    path = write(book, tmp_path / "zeros.xlsx")
    sheet = InIronCalc(path)
    suggestions = page.suggestions(book)
    assert len(suggestions) == 3 and not any(
        "too large" in suggestion.text for suggestion in suggestions
    )
    for suggestion in suggestions:
        with sheet.typed({book.cell(*suggestion.cell): suggestion.value}):
            assert sheet[book.cell(*suggestion.watch)] == pytest.approx(suggestion.becomes)
