"""The sheet Why: its tables are the engine's, whatever head and tokens are typed; other programs
agree."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    ERROR,
    InIronCalc,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
    cli,
    golden_models,
)
from thin import thin_game

from cellformer import names
from cellformer.engine import Evaluator, Model
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import scores
from cellformer.exporters.assemble import model_workbook, tour
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.asked_score import HEAD, TOKENS
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.plan import LIMITS, Limits
from cellformer.exporters.pages.why import DIFFERENCE, SUMS

pytestmark = pytest.mark.slow


def built(model: Model, head: str = "", limits: Limits = LIMITS, n_tokens: int = 4) -> ModelBook:
    words = passage(model, [4, 2, 6, 5][:n_tokens], n_tokens)
    return model_workbook.build("why", model, words, studies={"why": head}, limits=limits)


@pytest.fixture(scope="module")
def book() -> ModelBook:
    return built(thin_game())


@pytest.fixture(scope="module")
def cells(book: ModelBook, tmp_path_factory: pytest.TempPathFactory) -> FormulaCells:
    return read(write(book, tmp_path_factory.mktemp("why") / "why.xlsx"))


@pytest.fixture(scope="module")
def sheet(cells: FormulaCells) -> InIronCalc:
    return InIronCalc(cells.path)


@pytest.mark.parametrize("name", ["gemma2", "bloom", "llama4"])
def test_tables_in_cells_are_those_of_the_engine(name: str) -> None:
    """For every head, with a token and two keys at random."""
    graph = built(golden_models()[name]).graph
    live, rng = Evaluator(graph), np.random.default_rng(0)
    for block in scores.heads(graph):
        head, query = scores.Head(graph, block), int(rng.integers(4))
        seen = [k for k in range(4) if head.product.has(query, k)]
        key, rival = map(int, rng.choice(seen, 2))
        for k, n in enumerate(re.findall(r"\d+", block)):
            live.set(HEAD, k, 0, float(n))
        for k, n in enumerate((query, key, rival)):
            live.set(TOKENS, k, 0, float(n))
        one, two = head.split(query, key), head.split(query, rival)
        sums = [one.score, two.score, one.score - two.score]
        assert live[SUMS][-1] == pytest.approx(sums, abs=1e-12)
        own, difference = live["why.to.key"], one.less(two)
        for table, split in ((own, one.table), (live[DIFFERENCE], difference)):
            assert np.sort(table[table != 0]) == pytest.approx(np.sort(split[split != 0]))


def test_every_suggested_edit_does_what_its_text_says(book, cells, sheet) -> None:
    suggestions = book.sheets["Why"].suggestions
    assert len({t.cell for t in suggestions}) == 3
    for t in suggestions:
        after = assert_recomputes_after({t.cell: t.value}, sheet, book, cells)
        assert after.cell(*book.cell(*t.watch)) == pytest.approx(t.becomes, abs=1e-9)
        assert f"{t.becomes:.3f}" in t.text and f"Type ‘{t.value:g}’ " in t.text


def test_typed_numbers_out_of_range_and_texts_give_no_error(book, cells, sheet) -> None:
    """They count as the nearest that there is, or as 0."""
    for (name, k), value in (((HEAD, 0), 99.0), ((HEAD, 1), -3.5), ((TOKENS, 1), 99.0)):
        assert_recomputes_after({(name, k, 0): value}, sheet, book, cells)
    last = len(book.graph[SUMS][:, 0].cells) - 1
    for name, k in ((HEAD, 0), (HEAD, 1), (TOKENS, 0), (TOKENS, 2)):
        with sheet.typed({book.cell(name, k, 0): "abc"}):
            shown = [sheet[cell] for cell in cells.formulas]
            assert not [x for x in shown if ERROR.fullmatch(str(x))], (name, k)
            assert isinstance(sheet[book.cell(SUMS, last, 0)], float)


def test_libreoffice_agrees_from_wrong_values(book, cells, tmp_path, libreoffice) -> None:
    """After every suggested edit, and after three at once."""
    edits = [{t.cell: t.value} for t in book.sheets["Why"].suggestions]
    edits.append({(HEAD, 0, 0): 0.0, (TOKENS, 0, 0): 2.0, (TOKENS, 1, 0): 0.0})
    assert_libreoffice_agrees_after(edits, book, cells, tmp_path)


def test_one_head_alone_where_all_are_too_many() -> None:
    model = golden_models()["gpt2"]
    book = built(model, "1.2", replace(LIMITS, parts=0))
    assert HEAD not in book.graph.blocks and len(book.sheets["Why"].suggestions) == 3
    texts = [str(entry.value) for entry in book.sheets["Why"].entries.values()]
    assert any(
        text.startswith("The sheet shows only this head. The parts of all 6 heads would need")
        for text in texts
    )
    query, key, _ = (int(x) for x in book.graph.inputs[TOKENS][:, 0])
    split = scores.Head(book.graph, "blocks.1.attn.h2").split(query, key)
    assert book.value(SUMS, 1, 0) == pytest.approx(split.score, rel=1e-12)
    assert book.n_formulas < built(model).n_formulas


def test_the_tour_has_a_stop_at_why(book: ModelBook) -> None:
    (last,) = (stop for stop in tour.stops(book) if stop.sheet == "Why")
    text = str(last.text.value(book.clean))
    assert (last.concept, last.sheet) == ("why a head looks there", "Why")
    assert "of its attention, and" in text and "in the query and" in text


def test_a_model_of_one_head_has_no_cells_for_the_head() -> None:
    loaded = names.load("cat-sat")
    words = passage(loaded.model, loaded.ids)
    book = loaded.book(loaded.model, words, studies={"why": ""})
    texts = [str(entry.value) for entry in book.sheets["Why"].entries.values()]
    assert HEAD not in book.graph.blocks
    assert not any(text.startswith("The sheet shows only this head. The") for text in texts)


def test_one_token_has_its_sheet(tmp_path: Path) -> None:
    book = built(golden_models()["opt"], n_tokens=1)
    assert np.isfinite(book.values[SUMS]).all()
    sheet = InIronCalc(write(book, tmp_path / "short.xlsx"))
    for t in book.sheets["Why"].suggestions:
        with sheet.typed({book.cell(*t.cell): t.value}):
            assert sheet[book.cell(*t.watch)] == pytest.approx(t.becomes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("tests/golden/bert", "--ids", "3,4", "--why"), "--why needs a decoder with at most"),
        (("cat-sat", "--why", "--against", "a dog sat"), "--why and --against cannot be combined"),
        (("cat-sat", "--head", "0.0"), "--head works only together with --why"),
        (("cat-sat", "--why", "--head", "3.1"), "no head is named '3.1'; "),
    ],
)
def test_what_cannot_be_built_ends_in_a_line(
    options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = cli("build", *options, "-o", tmp_path / "x.xlsx")
    assert done.code == 2 and said in done.err and done.err.count("\n") == 1
