"""The sheet Nudge: a typed sentence is learnt as torch learns it, and other programs agree."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from conftest import (
    ERROR,
    GOLDEN,
    InIronCalc,
    assert_agrees,
    assert_recomputes_after,
    libreoffice_shows,
    typed,
)

from cellformer import names
from engine.models import objective
from engine.models.generate import passage
from engine.studies import nudge
from exporters import tour
from exporters.model_book import ModelBook
from exporters.plan import LOSS
from exporters.verify import read
from exporters.xlsx import write

MODELS = {"cat-sat": ("cat-sat", None), "mixtral": (str(GOLDEN / "mixtral"), "8,12")}
RATE, AFTER = (nudge.RATE, 0, 0), (nudge.LOSS_AFTER, 0, 0)


@cache
def book_of(name: str) -> ModelBook:
    """The workbook of a model that takes a step, with a column more than its prompt."""
    path, ids = MODELS[name]
    loaded = names.load(path, ids=ids)
    n_tokens = len(loaded.ids) + 1
    book = loaded.book(loaded.model, passage(loaded.model, loaded.ids, n_tokens), followed=LOSS)
    assert isinstance(book, ModelBook)
    return book


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("nudge")
    return {name: write(book_of(name), folder / f"{name}.xlsx") for name in MODELS}


def spelt(book: ModelBook, ids: list[int]) -> str:
    return " ".join(book.labels["vocab"][i] for i in ids)


@pytest.mark.parametrize("name", MODELS)
def test_every_suggested_edit_does_what_its_text_says(name: str, files) -> None:
    book, cells, sheet = book_of(name), read(files[name]), InIronCalc(files[name])
    tries = book.sheets["Nudge"].tries
    assert len(tries) == 3
    for t in tries:
        after = assert_recomputes_after({t.cell: t.value}, sheet, book, cells)
        assert after.cell(*book.cell(*t.watch)) == pytest.approx(t.becomes, abs=1e-9)
        assert f"{t.becomes:.3f}" in t.text and f"Type {t.value:g} " in t.text


def test_no_sentence_and_no_rate_gives_an_error(files) -> None:
    """A lone word, none, one that is unknown, too many; a text as rate, and one far too large."""
    book, cells = book_of("cat-sat"), read(files["cat-sat"])
    sheet, words = InIronCalc(files["cat-sat"]), book.labels["vocab"]
    sentences = ["", words[1], spelt(book, [2, 5]), spelt(book, [3] * 9), "no-such-word"]
    edits = [{("sentence", 0, 0): text} for text in sentences]
    edits += [{RATE: 1000.0}, {("temperature", 0, 0): 0.0}]
    for edit in edits:
        assert_recomputes_after(edit, sheet, book, cells)
    for edit in (*edits, {RATE: "abc"}):
        with sheet.typed({book.cell(*at): value for at, value in edit.items()}):
            shown = [sheet[cell] for cell in cells.formulas]
        assert not [x for x in shown if ERROR.fullmatch(str(x))], edit


@pytest.mark.office
def test_typed_sentences_and_rates_give_torchs_loss_in_libreoffice(files, tmp_path: Path) -> None:
    """From wrong values; at every other cell it has what the engine has."""
    from torch_cells import loss_after_step

    wanted = {}
    for name, ids, rate in (("cat-sat", [1, 0, 5, 2], 0.3), ("mixtral", [5, 1], 0.05)):
        book = book_of(name)
        edits = {("sentence", 0, 0): spelt(book, ids), RATE: rate}
        cells = {book.cell(*at): value for at, value in edits.items()}
        path = typed(files[name], tmp_path / f"{name}.xlsx", cells)
        alone = book.model.graph(ids)
        objective.loss(alone, *objective.next_words(alone))
        wanted[name] = path, edits, loss_after_step(alone, rate)
    paths = {name: path for name, (path, *_) in wanted.items()}
    shown = libreoffice_shows(paths, tmp_path / "office")
    for name, (_, edits, loss) in wanted.items():
        book, cells = book_of(name), read(files[name])
        after = book.edited({book.graph[at][i, j]: x for (at, i, j), x in edits.items()})
        formulas = {cell: after.cell(*cell) for cell in cells.formulas}
        assert_agrees(replace(cells, formulas=formulas), shown[name])
        sheet, *cell = book.cell(*AFTER)
        assert shown[name][sheet][tuple(cell)] == pytest.approx(loss, rel=1e-9)
        assert not [sheet for sheet in shown[name] if shown[name][sheet].errors]


def test_the_tour_ends_where_it_learns() -> None:
    book = book_of("mixtral")
    *_, change, last = tour.stops(book)
    assert (change.concept, last.concept, last.sheet) == ("change it", "watch it learn", "Nudge")
    assert f"{book.value('loss', 0, 0):.3f}".rstrip("0") in last.text.value(book.clean)
