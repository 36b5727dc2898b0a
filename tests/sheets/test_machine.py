"""The sheet Machine: it fits a screen, and speaks of the sentence that is typed."""

from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, InIronCalc, default_book, random_model

from cellformer.engine import ModelSpec
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.compose import theme
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import machine
from cellformer.exporters.pages.machine import SHEET, Canvas

SCREEN = 1180, 568  # pixels of Excel that a screen of 1366 x 768 shows of a sheet
USUAL = 20  # height of a row


def pixels_across(book: ModelBook, end: int) -> float:
    """How far the columns before `end` reach."""
    return sum(theme.pixels(book.sheets[SHEET].widths[col]) for col in range(end))


def pixels_down(book: ModelBook, end: int) -> float:
    """How far the rows before `end` reach; that of the title is higher."""
    heights = book.sheets[SHEET].heights
    return 8 + sum(heights.get(row, 0.75 * USUAL) / 0.75 for row in range(end))


def row_of(book: ModelBook, begins: str) -> int:
    """The row whose first cell begins so, as built."""
    rows = {row for row, _ in book.sheets[SHEET].entries}
    (row,) = (r for r in rows if str(book.clean.cell(SHEET, r, 0) or "").startswith(begins))
    return row


def formulas_of(book: ModelBook, name: str) -> list[tuple[int, int]]:
    """Where a sheet's own formulas stand."""
    return [at for at, entry in book.sheets[name].entries.items() if entry.formula is not None]


@pytest.mark.slow
def test_machine_fits_one_screen() -> None:
    book = default_book("dialogue-game")
    assert isinstance(book, ModelBook)
    (chart,) = book.sheets[SHEET].charts
    assert pixels_down(book, row_of(book, "Attention of ‘Paolo’ in each head")) <= SCREEN[1]
    assert pixels_down(book, chart.row) + chart.size[1] <= SCREEN[1]
    assert pixels_across(book, chart.col) + chart.size[0] <= SCREEN[0]
    said = {v for at in book.sheets[SHEET].entries if (v := book.clean.cell(SHEET, *at))}
    assert "‘Paolo’ gives ‘chiama’ 98.9 % of its attention" in said


@pytest.mark.slow
def test_twelve_layers_fold() -> None:
    """Every stage on the first screen; tiles side by side, in further rows where they are many."""
    n_heads, n_tokens = 7, 3
    spec = ModelSpec(3, 70, 12, n_layers=12, n_heads=n_heads, d_head=1, d_mlp=1)
    model = random_model(spec)
    book = model_workbook.build("deep", model, passage(model, [1, 2], n_tokens))
    canvas = Canvas(book)
    assert pixels_down(book, row_of(book, "sum")) <= SCREEN[1]
    assert pixels_across(book, 1 + canvas.columns) <= SCREEN[0] + canvas.unit
    assert canvas.across * canvas.tile_rows >= n_heads
    assert canvas.across * canvas.slot < canvas.chart_col
    assert canvas.slot * canvas.unit >= machine.CAPTION


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "falcon-rw", "opt-350m", "bert"])
def test_strips_add_up_to_the_stream(name: str) -> None:
    """Of every architecture, with norms before or after its sums, of layers one after the other or
    at once: each strip is what changes, so that all of them add up."""
    model = checkpoint.load(GOLDEN / name)
    book = model_workbook.build(name, model, passage(model, [3, 1, 2], 3))
    first, last = row_of(book, "embedding"), row_of(book, "sum")
    cols = range(1, 1 + Canvas(book).shown)
    strips = np.array(
        [[book.clean.cell(SHEET, r, c) for c in cols] for r in range(first, last + 1)]
    )
    np.testing.assert_allclose(strips[:-1].sum(axis=0), strips[-1], atol=1e-12)
    end = book.graph.values["resid_final"][2, : len(cols)]
    np.testing.assert_allclose(strips[-1], end, atol=1e-12)


@pytest.mark.slow
def test_machine_follows_the_typed_sentence(tmp_path: Path) -> None:
    """Three sentences, in IronCalc: the words in their boxes, the one that is looked at, where it
    looks, what it says."""
    spec = ModelSpec(9, 8, 6, n_layers=2, n_heads=2, d_head=4, d_mlp=5, position="learned")
    model = random_model(spec, seed=4)
    book = model_workbook.build("any", model, passage(model, [3, 1, 2], 6))
    sheet = InIronCalc(write(book, tmp_path / "any.xlsx"))
    said = dict[str, set[str]]()
    for text in ("w5", "w8 w0 w4 w4", "w2 w2 w7 w1 w6 w3"):
        after = book.edited({book.graph["sentence"][0, 0]: text})
        with sheet.typed({book.cell("sentence", 0, 0): text}):
            stops = [at for at in formulas_of(book, "Start") if at[0] > 3]  # below the verdict
            tour = {at: sheet["Start", *at] for at in stops}
            shown = {at: sheet[SHEET, *at] for at in formulas_of(book, SHEET)}
        assert len(tour) == 8  # the stops
        assert tour == {at: after.cell("Start", *at) for at in tour}
        assert f"‘{text}’; number of tokens: {len(text.split())}" in " ".join(tour.values())
        for at, value in shown.items():
            expected = after.cell(SHEET, *at)
            assert value == (pytest.approx(expected) if isinstance(expected, float) else expected)
        texts = {value for value in shown.values() if isinstance(value, str)}
        looked, ids = text.split()[-1], [int(word[1:]) for word in text.split()]
        values = model.graph(ids).values
        at_most = values["blocks.1.attn.h0.pattern"][-1]
        where = text.split()[int(at_most.argmax())]
        share = f"{round(100 * at_most.max(), 1):g} %"
        assert f"‘{looked}’ gives ‘{where}’ {share} of its attention" in texts
        word, chance = values["probs"][-1].argmax(), values["probs"][-1].max()
        assert f"says ‘w{word}’, {round(100 * chance, 1):g} %" in texts
        said[text] = texts
    assert len({frozenset(texts) for texts in said.values()}) == len(said)


def test_colours_are_symmetric(tmp_path: Path) -> None:
    """Strips diverge about 0, tiles begin at 0; both say what full colour is."""
    model = checkpoint.load(GOLDEN / "llama")
    book = model_workbook.build("llama", model, passage(model, [3, 1, 2], 5))
    kinds = [dressing for _, dressing in book.sheets[SHEET].dressings]
    n_heads = model.spec.n_layers * model.spec.n_heads
    assert kinds.count("diverging") == 2
    assert kinds.count("scale") == 2 * n_heads + 1
    for said in ("orange below 0, blue above, full colour at ±", "full colour: 100 %"):
        texts = [book.clean.cell(SHEET, row, 0) for row in range(40)]
        assert any(said in str(text) for text in texts)
