"""The forecast of a workbook, held against workbooks that are built."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, default_book, random_model
from learnt import learnt

from cellformer.engine import ModelSpec
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.forecast import Forecast, forecast
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file import xlsx
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.plan import for_model

pytestmark = pytest.mark.slow

WITHIN = 0.25


def of(book: Book) -> Forecast:
    """What is forecast for the model and the number of tokens of a book."""
    assert isinstance(book, ModelBook)
    return forecast(book.model, len(book.passage.ids), for_model(book.model).readout)


def assert_near(book: Book, path: Path) -> None:
    expected = of(book)
    assert expected.n_formulas == pytest.approx(book.n_formulas, rel=WITHIN)
    assert expected.n_cells == pytest.approx(book.n_cells, rel=WITHIN)
    assert expected.megabytes == pytest.approx(path.stat().st_size / 1e6, rel=WITHIN)


def test_forecast_of_gallery_workbooks(built) -> None:
    for name in ("cat-sat", "dialogue-game"):
        assert_near(default_book(name), built[name])


@pytest.mark.parametrize(("name", "within"), [("shakespeare", 0.01), ("dialogue-game", 0.04)])
def test_forecast_of_pages(name: str, within: float) -> None:
    """Maps, attribution and the machine are counted: they were 25,000 formulas too few."""
    book = default_book(name)
    assert of(book).n_formulas == pytest.approx(book.n_formulas, rel=within)


def test_forecast_of_a_subword_model(tmp_path: Path) -> None:
    tokenizer = learnt("llama3")
    spec = ModelSpec(
        d_vocab=len(tokenizer.texts), d_model=24, n_ctx=32, n_layers=3, n_heads=4, d_head=6,
        d_mlp=50, activation="silu", position="rotary", norm="rms", final_norm=True,
    )  # fmt: skip
    model = replace(random_model(spec), vocabulary=tokenizer)
    book = model_workbook.build("pieces", model, passage(model, tokenizer.encode("a cat"), 6))
    assert_near(book, xlsx.write(book, tmp_path / "pieces.xlsx"))


@pytest.mark.parametrize("name", ["minilm", "bert", "distilbert"])
def test_forecast_of_an_encoder(name: str, tmp_path: Path) -> None:
    """It has no pages that explain a next word: all-MiniLM's was twice too high."""
    model = checkpoint.load(GOLDEN / name)
    second = [2, 1, 3, 4, 1, 2] if name == "minilm" else []
    book = model_workbook.build(name, model, passage(model, [1, 2, 3, 4, 2, 1], second=second))
    assert_near(book, xlsx.write(book, tmp_path / "encoder.xlsx"))


def test_forecast_of_an_encoder_of_many_words() -> None:
    """What grows with the vocabulary of a decoder, its lens and its maps, an encoder has not."""
    few, many = (with_words(n) for n in (3_000, 30_000))
    assert many.n_formulas == few.n_formulas


def with_words(n: int) -> Forecast:
    """What is forecast for a sentence model with so many words."""
    model = checkpoint.load(GOLDEN / "minilm")
    spec = replace(model.spec, d_vocab=n)
    weights = {**model.weights, "W_E": np.zeros((n, spec.d_model))}
    many = replace(model, spec=spec, weights=weights)
    return forecast(many, 6, for_model(many).readout)
