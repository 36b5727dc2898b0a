"""The sheet Quantization: bits typed in cells do what the engine says, and other programs agree."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    ERROR,
    GOLDEN,
    InIronCalc,
    assert_agrees,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
    cli,
    libreoffice_after,
)
from thin import thin_game

import cellformer as cf
from cellformer.engine import InputError, Model
from cellformer.engine.cells.batch import CellName
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.quantization import ALL_BITS, matrices
from cellformer.exporters.assemble import model_workbook, tour
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.plan import LIMITS, Limits
from cellformer.exporters.pages.quantization import LEAD, NOT_KNOWN

pytestmark = pytest.mark.slow

BITS = (ALL_BITS, 0, 0)


def built(model: Model, limits: Limits = LIMITS) -> ModelBook:
    words = passage(model, [4, 2, 6, 5], 4)
    return model_workbook.build("q", model, words, studies={"quantize": {}}, limits=limits)


@pytest.fixture(scope="module")
def book() -> ModelBook:
    return built(thin_game())


@pytest.fixture(scope="module")
def cells(book: ModelBook, tmp_path_factory: pytest.TempPathFactory) -> FormulaCells:
    return read(write(book, tmp_path_factory.mktemp("bits") / "q.xlsx"))


@pytest.fixture(scope="module")
def sheet(cells: FormulaCells) -> InIronCalc:
    return InIronCalc(cells.path)


def test_as_built_every_value_is_the_models_own(book: ModelBook) -> None:
    plain = book.model.graph(book.passage.ids)
    for block in plain:
        if block.name not in ("target", "rival", "position"):
            assert np.array_equal(book.values[block.name], plain.values[block.name]), block.name


def test_suggested_edits_do_what_their_texts_say(book, cells, sheet) -> None:
    suggestions = book.sheets["Quantization"].suggestions
    assert len(suggestions) == 3
    for t in suggestions:
        after = assert_recomputes_after({t.cell: t.value}, sheet, book, cells)
        assert after.cell(*book.cell(*t.watch)) == pytest.approx(t.becomes, abs=1e-9)
        assert f"to {t.becomes:.3f}." in t.text


def test_what_is_typed_never_leads_to_an_error(book, cells, sheet) -> None:
    """1, a text, a fraction or an error counts as none, and a message says so."""
    instead = ("quantize.W_E.instead", 0, 0)
    lead, message = book.cell(LEAD, 0, 0), NOT_KNOWN
    for cell in (BITS, instead):
        for value in (1.0, "x", 2.5, -8.0, "#N/A"):
            with sheet.typed({book.cell(*cell): value}):
                shown = {at: sheet[at] for at in cells.formulas}
            errors = [at for at, x in shown.items() if ERROR.fullmatch(str(x))]
            assert all(at[0] == "Built" for at in errors), (cell, value)  # which says what is there
            assert shown[lead] == pytest.approx(book.value(LEAD, 0, 0), abs=1e-12)
            assert message in map(str, shown.values()), (cell, value)
    assert_recomputes_after({BITS: 3.0, instead: 0.0}, sheet, book, cells)


def test_bits_in_libreoffice(book, cells, tmp_path, libreoffice) -> None:
    suggested = [{t.cell: t.value} for t in book.sheets["Quantization"].suggestions]
    both: dict[CellName, float | str] = {BITS: 4.0, ("quantize.blocks.0.mlp.instead", 0, 0): 2.0}
    assert_libreoffice_agrees_after([*suggested, both], book, cells, tmp_path)


def test_scales_stand_under_what_is_rounded(book: ModelBook) -> None:
    for weight in matrices(book.model.graph([0])):
        used, scale = (book.places[f"{weight.name}.{leaf}"] for leaf in ("used", "quant_scale"))
        assert (scale.top, scale.left) == (used.top + used.size[0], used.left), weight.name
        assert used.turned == book.places[weight.name].turned, weight.name


def test_edits_are_read_back(book: ModelBook, tmp_path: Path) -> None:
    path = cf.write(book, tmp_path / "edited.xlsx", {BITS: 4.0, ("W_E", 2, 1): 0.5})
    found = {cell.name: cell.now for cell in cf.read(path).inputs}
    assert found == {"quantize.bits[0,0]": 4.0, "W_E[2,1]": 0.5}


def test_stop_of_the_tour(book: ModelBook) -> None:
    (stop,) = [s for s in tour.stops(book) if s.sheet == "Quantization"]
    assert f"{book.value(LEAD, 0, 0):.3f}".rstrip("0") in stop.text.value(book.clean)


def test_page_recomputes(book: ModelBook, tmp_path: Path, node) -> None:
    page = cf.write(book, tmp_path / "q.html")
    done = cli("verify", page, "--engine", "javascript")
    assert not done.code, done.err


def test_workbook_of_rounded_weights_refuses_some_models() -> None:
    model = thin_game()
    with pytest.raises(InputError, match="above the limit of 10"):
        built(model, replace(LIMITS, rounded=10))
    with pytest.raises(InputError, match="--nudge and --quantize cannot be combined"):
        words = passage(model, [4, 2], 2)
        both = {"nudge": True, "quantize": {}}
        model_workbook.build("q", model, words, studies=both)


def test_a_step_of_a_model_with_an_adapter_moves_the_adapter_alone() -> None:
    model = cf.load(GOLDEN / "gpt2", GOLDEN / "adapters" / "gpt2")
    words, studies = passage(model, [3, 8, 12], 3), {"nudge": True}
    book = model_workbook.build("gpt2", model, words, studies=studies)
    after = book.values
    for name in model.weights:
        if f"nudged.{name}" in after:
            assert np.array_equal(after[f"nudged.{name}"], np.atleast_2d(model.weights[name])), name
    assert model.adapter and after["nudged.loss"][0, 0] < after["loss"][0, 0]
    for name, matrix in model.adapter.matrices.items():
        assert not np.array_equal(after[f"nudged.{name}"], matrix), name
    for edit in book.sheets["Nudge"].suggestions:
        assert edit.becomes != pytest.approx(after["nudged.loss"][0, 0], abs=1e-9), edit.text


def test_one_word_has_no_loss() -> None:
    model = thin_game()
    found = model_workbook.build("q", model, passage(model, [4], 3), studies={"quantize": {}})
    assert "loss" not in found.graph.blocks and LEAD in found.graph.blocks


def test_merge_switch_in_libreoffice_and_ironcalc(tmp_path: Path, libreoffice) -> None:
    """From wrong values: the cells of a model with an adapter, and without it."""
    name = "gpt2"
    model = cf.load(GOLDEN / name, GOLDEN / "adapters" / name)
    book = model_workbook.build(name, model, passage(model, [3, 8, 12], 3))
    cells = read(write(book, tmp_path / "adapter.xlsx"))
    edit = {("merge", 0, 0): 0.0}
    after = assert_recomputes_after(edit, InIronCalc(cells.path), book, cells)
    there = [{}, {book.cell("merge", 0, 0): 0.0}]
    with_it, without = libreoffice_after(cells.path, there, tmp_path / "office")
    assert_agrees(cells, with_it)
    wanted = {at: after.cell(*at) for at in cells.formulas}
    assert_agrees(replace(cells, formulas=wanted), without)
