"""A workbook with its backward pass, and one with a step and a second pass: others agree from wrong
values; products run down columns."""

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, assert_agrees, cli, libreoffice_shows, needs
from corners import with_few_words

from cellformer import names
from cellformer.engine import Evaluator
from cellformer.engine.models.generate import passage
from cellformer.exporters.checking.verify import read, verify
from cellformer.exporters.compose.address import index
from cellformer.exporters.file.reading import WorkbookFile

pytestmark = pytest.mark.slow

PRODUCT = re.compile(r"SUMPRODUCT\(([^()]*)\)")
RANGE = re.compile(r"\$?([A-Z]+)\$?(\d+):\$?([A-Z]+)\$?(\d+)")
# sheets, by how their names begin
OF_BLOCKS = ("Block", "Readout", "Backward", "Gradient", "Nudged")
MODELS = {
    "cat-sat": ("--gradient", "--tokens", "3"),
    "mixtral": ("--nudge", "--tokens", "3", "--ids", "2,1,0"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The workbooks, by name."""
    folder = tmp_path_factory.mktemp("gradient")
    models = {"cat-sat": "cat-sat", "mixtral": with_few_words("mixtral", folder / "mixtral")}
    paths = {name: folder / f"{name}.xlsx" for name in MODELS}
    for name, path in paths.items():
        done = cli("build", models[name], *MODELS[name], "-o", path)
        assert done.code == 0, done.err
    return paths


@pytest.mark.parametrize("name", MODELS)
def test_ironcalc_agrees_at_every_cell(built: dict[str, Path], name: str) -> None:
    needs("ironcalc")
    report = verify(built[name], "ironcalc")
    assert report.agrees, report


@pytest.mark.parametrize(
    "name, option",
    [
        ("mamba", "--gradient"),
        ("mamba2", "--nudge"),
        ("qwen3_next", "--nudge"),
        ("rwkv", "--nudge"),
    ],
)
def test_gradient_of_a_recurrence_agrees_in_ironcalc(
    name: str, option: str, tmp_path: Path
) -> None:
    needs("ironcalc")
    path = tmp_path / f"{name}.xlsx"
    done = cli("build", GOLDEN / name, option, "--ids", "3,1,4", "-o", path)
    assert done.code == 0, done.err
    report = verify(path, "ironcalc")
    assert report.agrees, report


def test_libreoffice_agrees_at_every_cell(
    built: dict[str, Path], tmp_path: Path, libreoffice
) -> None:
    for name, shown in libreoffice_shows(built, tmp_path / "office").items():
        assert_agrees(read(built[name]), shown)


@pytest.mark.parametrize("name", MODELS)
def test_the_lines_of_a_product_run_the_same_way(built: dict[str, Path], name: str) -> None:
    """Down two columns or along two rows: a column and a row are no product in most programs."""
    n = 0
    file = WorkbookFile(built[name])
    for sheet in (name for name in file if name.startswith(OF_BLOCKS)):
        for cell in file[sheet].cells.values():
            for inside in PRODUCT.findall(cell.formula or ""):
                shapes = {
                    (index(right) - index(left), int(bottom) - int(top))
                    for left, top, right, bottom in RANGE.findall(inside)
                }
                assert len(shapes) == 1, cell.formula
                n += 1
    assert n > 150


def test_another_target_gives_its_gradient() -> None:
    """Typed on Play, in the workbook and in the engine: the same gradient of every weight."""
    loaded = names.load("cat-sat")
    book = loaded.book(loaded.model, passage(loaded.model, loaded.ids), studies={"gradient": True})
    live = Evaluator(book.graph)
    before = live["gradient.blocks.0.attn.h0.W_V"].copy()
    live.set("target", 0, 0, 2)
    assert np.abs(live["gradient.blocks.0.attn.h0.W_V"] - before).max() > 1e-3
    assert book.places["gradient.blocks.0.attn.h0.W_V"].sheet == "Gradient 0"
