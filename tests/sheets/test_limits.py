"""What Excel would mistake: rounding for an edit, words for references, long prompts and texts."""

import zipfile
from pathlib import Path

import pytest
from conftest import InIronCalc, random_model

from cellformer.engine import ModelSpec, WordList
from cellformer.engine.cells.expression import Rounded
from cellformer.engine.models.generate import passage
from cellformer.engine.models.model import Model
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.audit import audit
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file import xlsx
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.pages import check

WORDS = ("wow!A1", "=x!B2", "'s'!C3", "1", "01", "*", "?", "a", "b", "c")
IDS = [0, 7, 1, 8, 9]


def awkward(scale: float) -> Model:
    """Weights of a size, and words that look like something else."""
    spec = ModelSpec(len(WORDS), 8, 16, n_layers=1, n_heads=2, d_head=4, position="learned")
    model = random_model(spec)
    weights = {name: w * scale for name, w in model.weights.items()}
    return Model(spec, weights, WordList(WORDS))


def build(model: Model, path: Path, ids: list[int] = IDS) -> tuple[Book, Path]:
    book = model_workbook.build("awkward", model, passage(model, ids))
    return book, xlsx.write(book, path)


@pytest.fixture(scope="module")
def large_weights(tmp_path_factory) -> tuple[Book, Path]:
    """A workbook whose weights' squares sum to a hundred millions."""
    return build(awkward(3000.0), tmp_path_factory.mktemp("large") / "large.xlsx")


def test_rounding_is_no_edit(large_weights) -> None:
    book, path = large_weights
    seen = InIronCalc(path)
    seen.model.evaluate()
    lines = range(5, 5 + len(book.blocks))
    assert {seen["Index", row, 7] for row in lines} <= {"no", "", None}
    at = book.cell("W_E", 2, 3)
    index = next(row for row in lines if seen["Index", row, 0] == "W_E")
    with seen.typed({at: book.value("W_E", 2, 3) + 0.5}):
        assert seen["Index", index, 7] == "edited"


@pytest.mark.parametrize(
    "number", [0.0, -2.5e-7, 0.1 + 0.2, 256_445.123456789123, -1e15 / 3, 2e20 / 3]
)
def test_a_number_in_a_formula_has_fifteen_digits(number: float) -> None:
    text = Rounded(number).text(None)  # type: ignore[arg-type]
    assert len(text.replace("-", "").replace(".", "").strip("0")) <= 15
    assert float(text) == pytest.approx(number, rel=1e-14, abs=1e-12)
    assert Rounded(number).value(None) == float(text)  # type: ignore[arg-type]


def test_words_are_no_references_in_charts(large_weights) -> None:
    _, path = large_weights
    assert audit(path) == []
    with zipfile.ZipFile(path) as book:
        charts = [book.read(part).decode() for part in book.namelist() if "charts/chart" in part]
    assert any("<c:v>wow!A1</c:v>" in chart for chart in charts)
    assert not any("<c:f>wow!A1</c:f>" in chart for chart in charts)


@pytest.mark.slow
def test_long_prompt_is_checked_in_parts(tmp_path: Path) -> None:
    most = check.MOST_TOGETHER
    model = random_model(ModelSpec(3, 2, 2 * most, n_layers=1, n_heads=1, d_head=2))
    _, path = build(model, tmp_path / "parts.xlsx", [k % 3 for k in range(most + 5)])
    file = WorkbookFile(path)
    claims = [claim for claim in file["Check"].column(0) if "probs sum" in claim]
    spans = ((0, most - 1), (most, most + 4))
    assert claims == [f"columns {a} to {b} of probs sum to 1" for a, b in spans]
    seen = InIronCalc(path)
    seen.model.evaluate()
    assert {seen["Check", row, 2] for row in range(5, 5 + len(claims))} == {"ok"}
