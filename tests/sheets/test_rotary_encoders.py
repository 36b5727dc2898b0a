"""Workbooks of encoders with rotary positions, with a vector of the task, or with scores by
distance: other ids are typed into files whose cached values are wrong."""

from pathlib import Path

import pytest
from conftest import (
    GOLDEN,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
    recomputed_in_ironcalc,
)

import cellformer as cf
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read

pytestmark = pytest.mark.slow
NAMES = ("ernie", "nomic_bert", "gte", "eurobert", "deberta")
OTHER = {("tokens", 1, 0): 9.0, ("tokens", 2, 0): 4.0, ("n_prompt", 0, 0): 3.0}


def built(name: str):
    model = checkpoint.load(GOLDEN / name)
    return model_workbook.build(name, model, passage(model, [3, 1], 4))


@pytest.mark.parametrize("name", NAMES)
def test_ids_typed_in_ironcalc(name: str, tmp_path: Path) -> None:
    book = built(name)
    cells = read(cf.write(book, tmp_path / "book.xlsx"))
    assert_recomputes_after(OTHER, recomputed_in_ironcalc(cells, tmp_path), book, cells)


@pytest.mark.parametrize("name", NAMES)
def test_ids_typed_in_libreoffice(name: str, tmp_path: Path, libreoffice) -> None:
    book = built(name)
    path = cf.write(book, tmp_path / "book.xlsx")
    assert_libreoffice_agrees_after([{}, OTHER], book, read(path), tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_typed_ids_give_the_numbers_of_the_model(name: str) -> None:
    book = built(name)
    live = cf.Evaluator(book.graph)
    for (block, i, j), value in OTHER.items():
        live.set(block, i, j, value)
    alone = book.model.graph([3, 9, 4]).values["probs"]
    assert abs(live["probs"][0] - alone[2]).max() < 1e-12
