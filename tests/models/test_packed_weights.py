"""GGUF's packed weights as integers times scales: the gguf library's numbers, in numpy and in
cells."""

from pathlib import Path

import numpy as np
import pytest
from conftest import InIronCalc, assert_recomputes_after
from format_writers import write_packed

from cellformer.engine import Evaluator
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.packed_weights import OTHER, SAME


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_packed_weights_are_integers_times_scales(kind: str, tmp_path: Path) -> None:
    """Their products are the numbers of the gguf library, all digits of them."""
    path = write_packed(tmp_path, lambda name: kind)
    model = checkpoint.load(path)
    found = checkpoint.packed(str(path), model)
    matrices = {name for name, weight in model.weights.items() if np.ndim(weight) == 2}
    assert found.keys() == matrices
    for name, packed in found.items():
        assert packed.kind == kind
        assert np.array_equal(packed.integers * packed.scales, model.weights[name]), name
        assert np.array_equal(packed.integers, np.rint(packed.integers))
        assert np.abs(packed.integers).max() <= (128 if kind == "Q8_0" else 8)
    of_folder = checkpoint.load(tmp_path / "small")
    assert checkpoint.packed(str(tmp_path / "small"), of_folder) == {}


def test_an_evaluator_shows_weights_that_stay_in_their_file(tmp_path: Path) -> None:
    model = checkpoint.load(write_packed(tmp_path, lambda name: "Q8_0"), 0)
    live = Evaluator(model.graph([1, 2]))
    assert np.array_equal(live["W_E"], np.asarray(model.weights["W_E"]))


@pytest.mark.slow
def test_packed_weights_of_a_gguf_file(tmp_path: Path) -> None:
    """Integers times scales in cells are the weights of the model, and so of the gguf library."""
    path = write_packed(tmp_path, lambda name: "Q8_0" if "attn" in name else "Q4_0")
    model = checkpoint.load(path)
    studies = {"quantize": checkpoint.packed(str(path), model)}
    book = model_workbook.build("gguf", model, passage(model, [4, 2, 6], 3), studies=studies)
    shown = {
        kind: [place.sheet, *place.cell(0, 0)]
        for kind in ("packed.Q8_0", "packed.Q4_0", "same.Q8_0", "same.Q4_0")
        for place in [book.shown[f"quantization.{kind}"]]
    }
    for kind, name in (("Q8_0", "blocks.0.attn.h0.W_Q"), ("Q4_0", "W_U")):
        sheet, top, left = shown[f"packed.{kind}"]
        for (i, j), value in np.ndenumerate(np.asarray(model.weights[name])):
            assert book.clean.cell(sheet, top + i, left + j) == value, (name, i, j)
        assert book.clean.cell(*shown[f"same.{kind}"]) == SAME
    cells = read(write(book, tmp_path / "gguf.xlsx"))
    weight = ("blocks.0.attn.h0.W_Q", 3, 4)
    after = assert_recomputes_after({weight: 0.5}, InIronCalc(cells.path), book, cells)
    assert after.cell(*shown["same.Q8_0"]) == OTHER
