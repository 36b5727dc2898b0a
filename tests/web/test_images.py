"""Golden models of images as workbooks and pages: with another image typed, they show what the
engine has."""

from pathlib import Path

import numpy as np
import pytest
from conftest import (
    GOLDEN,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
    recomputed_in_ironcalc,
)
from in_node import call
from pages import differing, values, written

from cellformer.engine import Evaluator
from cellformer.engine.models import checkpoint
from cellformer.engine.models.forward import ONE_TOKEN
from cellformer.exporters.assemble.block_list import stack
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.checking.verify import FormulaCells, read
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story
from cellformer.exporters.file.xlsx import write

NAMES = ("vit", "dinov2", "siglip", "clip")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=NAMES)
def book(request: pytest.FixtureRequest) -> Book:
    """Every block of the pass over the golden image, on one sheet."""
    folder = GOLDEN / "classes" / request.param
    with np.load(folder / "golden.npz") as reference:
        graph = checkpoint.load(folder).graph(reference["ids"].tolist(), ONE_TOKEN)
    w = Workbook(request.param, graph)
    ws = w.sheet("Pass", "from pixels to the probability of each class")
    for block in [*graph]:
        stack(ws, block, {}, "")
    return w.done(
        Story(title="images", source="made here", about=["x"], look=["x"], suggestions=[])
    )


@pytest.fixture(scope="module")
def cells(book: Book, tmp_path_factory: pytest.TempPathFactory) -> FormulaCells:
    return read(write(book, tmp_path_factory.mktemp("images") / "images.xlsx"))


def another(book: Book) -> dict[tuple[str, int, int], float]:
    """Another image: what is typed into each cell of the pixels."""
    rng = np.random.default_rng(1)
    return {
        ("tokens", i, j): float(rng.integers(256))
        for i, j in np.ndindex(*book.graph["tokens"].shape)
    }


def test_another_image_in_ironcalc(book: Book, cells: FormulaCells, tmp_path: Path) -> None:
    sheet = recomputed_in_ironcalc(cells, tmp_path)
    after = assert_recomputes_after(another(book), sheet, book, cells)
    changed = after.cell(*book.cell("logits", 0, 0)) - book.value("logits", 0, 0)
    assert abs(changed) > 1e-3


def test_another_image_in_libreoffice(book, cells, tmp_path: Path, libreoffice) -> None:
    assert_libreoffice_agrees_after([another(book)], book, cells, tmp_path)


@pytest.mark.usefixtures("node")
def test_another_image_on_a_page(book: Book, tmp_path: Path) -> None:
    written(book, tmp_path / "page.html")
    call("values.mjs", "open", str(tmp_path / "page.html.json"))
    live, edits = Evaluator(book.graph), [[*at, x] for at, x in another(book).items()]
    for edit in edits:
        live.set(*edit)
    call("values.mjs", "edit", edits)
    assert [*differing(values(tmp_path), live)] == []
