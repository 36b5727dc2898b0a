"""The sheet Hidden attention: its table is the engine's, whatever channel is typed, and gives what
the layer has; other programs agree."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    ERROR,
    InIronCalc,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
    golden_models,
    script,
)

from cellformer.engine import Evaluator, Model
from cellformer.engine.cells import language
from cellformer.engine.models.forward import weight_shapes
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import hidden_attention
from cellformer.engine.text.tokenizer import WordList
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.audit import audit
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages.hidden_attention import ASKED, GAP, PURPOSE, READ, SHEET, WEIGHTS

pytestmark = pytest.mark.slow
CLOSE = 1e-10


def built(name: str, n_tokens: int = 5) -> ModelBook:
    model = golden_models()[name]
    words = passage(model, [4, 2, 6, 5, 3][:n_tokens], n_tokens)
    return model_workbook.build("hidden", model, words)


@pytest.fixture(scope="module", params=["mamba", "mamba2"])
def book(request: pytest.FixtureRequest) -> ModelBook:
    return built(request.param)


@pytest.fixture(scope="module")
def cells(book: ModelBook, tmp_path_factory: pytest.TempPathFactory) -> FormulaCells:
    return read(write(book, tmp_path_factory.mktemp("hidden") / "hidden.xlsx"))


@pytest.fixture(scope="module")
def sheet(cells: FormulaCells) -> InIronCalc:
    return InIronCalc(cells.path)


@pytest.mark.parametrize("name", ["mamba", "mamba2"])
def test_tables_in_cells_are_those_of_the_engine(name: str) -> None:
    """For every channel: the weights, and what is read by them."""
    graph = built(name).graph
    live = Evaluator(graph)
    for of in hidden_attention.recurrences(graph):
        head = [] if of.z.head is None else [int(of.z.head[1:])]
        for channel in range(of.n_channels):
            for k, number in enumerate([of.layer, *head, channel]):
                live.set(ASKED, k, 0, float(number))
            wanted = hidden_attention.weights(graph.values, of, channel)
            np.testing.assert_allclose(live[WEIGHTS], wanted, rtol=0, atol=1e-14)
            np.testing.assert_allclose(
                live[READ].ravel(), graph.values[of.z.name][:, channel], rtol=0, atol=CLOSE
            )
            assert np.abs(live[GAP]).max() < CLOSE


def test_every_suggested_edit_does_what_its_text_says(book, cells, sheet) -> None:
    suggestions = book.sheets[SHEET].suggestions
    assert len({t.cell for t in suggestions}) == 3
    for t in suggestions:
        after = assert_recomputes_after({t.cell: t.value}, sheet, book, cells)
        assert after.cell(*book.cell(*t.watch)) == pytest.approx(t.becomes, abs=1e-9)
        assert f"{round(t.becomes, 3) + 0.0:.3f}" in t.text and f"Type ‘{t.value:g}’" in t.text


def test_an_edited_weight_moves_the_table_and_the_layer_alike(book, cells, sheet) -> None:
    layer, *_, channel = (int(n) for n in book.graph.inputs[ASKED][:, 0])
    found = [one for one in hidden_attention.recurrences(book.graph) if one.layer == layer]
    of = found[int(book.value(ASKED, 1, 0)) if len(found) > 1 else 0]
    col = 0 if of.shares else channel
    names = {f"{of.name}.{leaf}": col for leaf in ("W_step", "A_log", "D")}
    names |= {f"{of.B.path}.W_B": 0, f"{of.C.path}.W_C": 1, f"{of.name}.W_x": channel}
    for name, j in names.items():
        edit = {(name, 0, j): 0.9}
        with sheet.typed({book.cell(*at): x for at, x in edit.items()}):
            shown = [sheet[book.cell(READ, t, 0)] for t in range(5)]
            gaps = [sheet[book.cell(GAP, t, 0)] for t in range(5)]
        assert np.abs(np.array(shown) - book.values[READ][:, 0]).max() > 1e-6, name
        assert np.abs(gaps).max() < CLOSE
    assert_recomputes_after(edit, sheet, book, cells)


def test_typed_numbers_out_of_range_and_texts_give_no_error(book, cells, sheet) -> None:
    """They count as the nearest that there is, or as the first."""
    n = len(book.graph.inputs[ASKED])
    for edit in ({(ASKED, 0, 0): 99.0}, {(ASKED, 1, 0): -3.5}, {(ASKED, n - 1, 0): 99.0}):
        assert_recomputes_after(edit, sheet, book, cells)
    for k in range(n):
        with sheet.typed({book.cell(ASKED, k, 0): "abc"}):
            shown = [sheet[cell] for cell in cells.formulas]
            assert not [x for x in shown if ERROR.fullmatch(str(x))]


def test_libreoffice_agrees_from_wrong_values(book, cells, tmp_path, libreoffice) -> None:
    """After every suggested edit, and after two at once."""
    edits = [{t.cell: t.value} for t in book.sheets[SHEET].suggestions]
    edits.append({(ASKED, 0, 0): 0.0, ("blocks.0.ln1.w", 0, 1): 0.8})
    assert_libreoffice_agrees_after(edits, book, cells, tmp_path)


def test_the_verdict_says_that_the_table_gives_what_the_layer_has(book: ModelBook) -> None:
    (verdict,) = (p for name, p in book.shown.items() if name == "hidden_attention.verdict")
    text = str(verdict.block[0, 0].value(book.clean))
    assert "these weights give" in text
    assert text.endswith("as the layer. The largest difference is 0.")


def test_one_token_has_its_sheet(tmp_path: Path) -> None:
    book = built("mamba", n_tokens=1)
    path = write(book, tmp_path / "short.xlsx")
    sheet = InIronCalc(path)
    assert audit(path) == [] and len(book.sheets[SHEET].suggestions) == 3
    assert sheet[book.cell(GAP, 0, 0)] == pytest.approx(0, abs=CLOSE)


def test_of_very_many_heads_the_leading_one_is_shown_alone(tmp_path: Path) -> None:
    """26 layers of 4 heads are too many for a formula that chooses among them."""
    small = golden_models()["mamba2"]
    spec = replace(small.spec, n_layers=26, d_state=1, d_vocab=4)
    rng = np.random.default_rng(0)
    shapes = weight_shapes(small.architecture, spec)
    weights = {name: rng.normal(0, 0.5, shape) for name, shape in shapes.items()}
    words = WordList(("a", "b", "c", "d"))
    model = Model(spec, weights, words, architecture=small.architecture)
    book = model_workbook.build("many", model, passage(model, [1, 2, 0], 3))
    assert book.graph[ASKED].shape == (1, 1) and len(book.sheets[SHEET].suggestions) == 3
    texts = [str(entry.value) for entry in book.sheets[SHEET].entries.values()]
    assert any("a formula for all 104 numbers would be too long" in t for t in texts)
    path = write(book, tmp_path / "many.xlsx")
    assert audit(path) == [] and np.abs(book.values[GAP]).max() < CLOSE
    sheet = InIronCalc(path)
    for t in book.sheets[SHEET].suggestions:
        with sheet.typed({book.cell(*t.cell): t.value}):
            assert sheet[book.cell(*t.watch)] == pytest.approx(t.becomes)


def test_start_of_a_model_without_heads_speaks_of_hidden_attention(book: ModelBook) -> None:
    texts = {str(e.value) for e in book.sheets["Start"].entries.values() if e.formula is None}
    assert model_workbook.HIDDEN in texts and "Heads" not in book.sheets
    assert not [text for text in texts if "heads" in text.split() or "head," in text]


def test_its_texts_are_in_every_catalogue() -> None:
    asked = script("languages").of_recurrence()
    assert PURPOSE in asked
    for code in set(language.codes()) - {"en"}:
        known = language.language(code).texts
        assert [text for text in asked if text not in known] == [], code
