"""The sheet Graph: every edge is the engine's, sums are exact; other programs agree."""

from pathlib import Path

import numpy as np
import pytest
from conftest import (
    ERROR,
    InIronCalc,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
)
from corners import corner
from thin import thin_game

from cellformer.engine import Evaluator, Model
from cellformer.engine.cells.batch import CellName
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.answer_graph import ANSWER as OBJECTIVE
from cellformer.engine.studies.answer_graph import AnswerGraph
from cellformer.engine.studies.edge_cuts import Cuts
from cellformer.exporters.assemble import model_workbook, tour
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.answer_cells import ANSWER, BIASES, AnswerCells
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import graph as page

pytestmark = pytest.mark.slow


def built(model: Model, n_tokens: int = 4) -> ModelBook:
    ids = [4, 2, 1, 5] if model.spec.d_vocab > 5 else [1, 2, 1, 0]
    words = passage(model, ids[:3], n_tokens)
    return model_workbook.build("graph", model, words, studies={"why": ""})


@pytest.fixture(scope="module")
def book() -> ModelBook:
    return built(thin_game())


@pytest.fixture(scope="module")
def cells(book: ModelBook, tmp_path_factory: pytest.TempPathFactory) -> FormulaCells:
    return read(write(book, tmp_path_factory.mktemp("graph") / "graph.xlsx"))


@pytest.fixture(scope="module")
def sheet(cells: FormulaCells) -> InIronCalc:
    return InIronCalc(cells.path)


def assert_is_the_engines(book: ModelBook) -> None:
    row = book.passage.n_prompt - 1
    target, rival = (int(book.value(word, 0, 0)) for word in ("target", "rival"))
    answer = AnswerGraph(book.model.graph(book.passage.ids[: row + 1]), row, target, rival)
    found = list(AnswerCells(book, row, _nowhere(book)).edges())
    values = book.values[page.VALUES][:, 0]
    assert len(found) == len(values) and abs(book.value(page.LEAD, 0, 0) - answer.lead) < 1e-9
    for edge, value in zip(found, values, strict=True):
        reader = OBJECTIVE if edge.reader == ANSWER else edge.reader
        if edge.source != BIASES:
            expected = answer.into[reader][edge.source][edge.token, edge.at]
            assert value == pytest.approx(expected, abs=1e-10), edge
    assert np.abs(book.values[page.GAPS]).max() < 1e-10


def _nowhere(book: ModelBook):
    """The tables that stand on the sheet already."""
    return lambda name, shape, cell, turned: book.graph[f"graph.{name}"].area


def test_edges_in_cells_are_those_of_the_engine(book: ModelBook) -> None:
    assert_is_the_engines(book)


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_other_architectures_have_the_sheet(name: str, tmp_path: Path) -> None:
    assert_is_the_engines(built(checkpoint.load(corner(name, tmp_path / name))))


def test_longer_prompts_have_the_sheet_if_edges_are_few() -> None:
    """Of 13 tokens the bound is 10,920."""
    model, ids = thin_game(), [4, 2, 6, 5] * 4
    longest, too_long = (
        model_workbook.build("g", model, passage(model, ids[:n], n), studies={"why": ""})
        for n in (12, 13)
    )
    assert page.SHEET not in too_long.sheets
    assert_is_the_engines(longest)


def test_norms_on_the_stream_leave_the_sheet_out(tmp_path: Path) -> None:
    found = built(checkpoint.load(corner("olmo2", tmp_path / "olmo2")))
    assert page.SHEET not in found.sheets and "Why" in found.sheets


def test_cuts_in_cells_do_what_the_engine_says(book: ModelBook) -> None:
    n = book.graph[page.CUTS].shape[0]
    row = book.passage.n_prompt - 1
    target, rival = (int(book.value(word, 0, 0)) for word in ("target", "rival"))
    answer = AnswerGraph(book.model.graph(book.passage.ids[: row + 1]), row, target, rival)
    edges = [edge for edge in (e.ends for e in answer.edges()) if Cuts(answer).possible(edge)][:n]
    live, rng = Evaluator(book.graph), np.random.default_rng(2)
    for _ in range(3):
        off = rng.random(n) < 0.5
        for k, is_off in enumerate(off):
            live.set(page.CUTS, k, 0, float(not is_off))
        (expected,) = Cuts(answer).leads([[edges[k] for k in np.flatnonzero(off)]])
        assert float(live[page.REALLY][0, 0]) == pytest.approx(expected, abs=1e-9)


def test_without_cuts_the_real_lead_is_the_lead(book: ModelBook) -> None:
    live = Evaluator(book.graph)
    live.set("W_E", 2, 1, 0.3)
    live.set("blocks.1.attn.h2.W_V", 0, 0, 0.5)
    assert float(live[page.REALLY][0, 0]) == pytest.approx(float(live[page.LEAD][0, 0]), abs=1e-9)


def test_sums_stay_exact_after_edits(book: ModelBook) -> None:
    live, rng = Evaluator(book.graph), np.random.default_rng(1)
    for name in ("W_E", "blocks.0.mlp.W_in", "blocks.1.attn.h2.W_V", "blocks.0.ln1.w"):
        live.set(name, 0, 0, float(rng.normal()))
    assert np.abs(live[page.GAPS]).max() < 1e-9


def test_every_suggested_edit_does_what_its_text_says(book, cells, sheet) -> None:
    suggestions = book.sheets[page.SHEET].suggestions
    assert len(suggestions) == 3
    for t in suggestions:
        after = assert_recomputes_after({t.cell: t.value}, sheet, book, cells)
        assert after.cell(*book.cell(*t.watch)) == pytest.approx(t.becomes, abs=1e-9)
        assert f"{t.becomes:.3f}" in t.text and f"Type ‘{t.value:g}’ " in t.text
        if t.cell[0] == page.CUTS:
            assert f"the real lead is {after.cell(*book.cell(page.REALLY, 0, 0)):.3f}." in t.text


def test_typed_texts_give_no_error(book, cells, sheet) -> None:
    for name in (page.THRESHOLD, page.CUTS):
        with sheet.typed({book.cell(name, 0, 0): "abc"}):
            shown = [sheet[cell] for cell in cells.formulas]
            assert not [x for x in shown if ERROR.fullmatch(str(x))], name


def test_libreoffice_agrees_from_wrong_values(book, cells, tmp_path, libreoffice) -> None:
    several: dict[CellName, float | str] = {
        (page.CUTS, 0, 0): 0.0,
        (page.CUTS, 3, 0): 0.25,
        (page.THRESHOLD, 0, 0): 0.01,
        ("W_E", 2, 1): 0.3,
    }
    suggested = [{t.cell: t.value} for t in book.sheets[page.SHEET].suggestions]
    assert_libreoffice_agrees_after([*suggested, several], book, cells, tmp_path)


def test_the_tour_ends_where_the_answer_comes_from(book: ModelBook) -> None:
    *_, last = tour.stops(book)
    text = str(last.text.value(book.clean))
    assert (last.concept, last.sheet) == ("where the answer comes from", page.SHEET)
    assert "As built, the strongest edge goes from" in text
