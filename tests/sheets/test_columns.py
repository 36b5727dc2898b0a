"""Columns of tokens wait for the ones before them, whether the prompt fills all of them or not."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import (
    InIronCalc,
    assert_recomputes_after,
    libreoffice_after,
    random_model,
)

from cellformer.engine import ModelSpec
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read
from cellformer.exporters.file.xlsx import write

SPEC = ModelSpec(12, 8, 8, n_layers=2, n_heads=2, d_head=4, d_mlp=8, norm="layer", final_norm=True)
LONG = replace(SPEC, n_layers=1, d_mlp=100)  # columns that it computes in threads


def test_shorter_sentence_in_full_columns(tmp_path, libreoffice) -> None:
    """LibreOffice computes a column as one where its formulas are alike, and then sees cycles."""
    model = random_model(LONG)
    book = model_workbook.build("filled", model, passage(model, [3, 7, 1, 5], 4))
    path = write(book, tmp_path / "filled.xlsx")
    edit = {book.cell("sentence", 0, 0): "w3 w7"}
    (found,) = libreoffice_after(path, [edit], tmp_path / "office")
    assert not [name for name, sheet in found.items() if sheet.errors]
    after = book.edited({book.graph["sentence"][0, 0]: "w3 w7"})
    for k in range(model.spec.d_vocab):
        sheet, *at = book.cell("probs", 3, k)
        wanted = float(after.values["probs"][3, k])
        assert found[sheet][tuple(at)] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("n_tokens", [pytest.param(3, marks=pytest.mark.slow), 6])
def test_live_part_with_room_to_continue(n_tokens: int, tmp_path) -> None:
    model = random_model(SPEC)
    given = passage(model, [3, 7, 1], n_tokens)
    book = model_workbook.build("part", model, given, live=("blocks.1",))
    path = write(book, tmp_path / "part.xlsx")
    after = assert_recomputes_after(
        {("blocks.1.attn.h0.W_V", 2, 1): 2.0}, InIronCalc(path), book, read(path)
    )
    moved = after.values["blocks.1.resid_post"] - book.values["blocks.1.resid_post"]
    assert np.abs(moved).max() > 0.01
