"""digits: its accuracy, what is drawn in IronCalc and LibreOffice, its training."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from conftest import InIronCalc, cli, default_book
from libreoffice import watched_while_typed

from cellformer.engine.cells.batch import filled
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.models import checkpoint
from cellformer.workbooks import digits
from cellformer.workbooks.digits import canvas, learning, trained
from cellformer.workbooks.digits.drawings import MOST, N_HELD_OUT, SIDE, every, split

N_TYPED = 50
ODD = {  # what is typed in a cell of the drawing -> what is then said above it
    "x": "Cells without a number: 1. They count as 0. Type 0 to 16.",
    -3.0: "Cells below 0: 1. They count as 0. Type 0 to 16.",
    99.0: "Cells above 16: 1. They count as 16. Type 0 to 16.",
    "": "Blank cells: 1. They count as 0, no ink.",
}


@pytest.fixture(scope="module")
def cells() -> dict[str, tuple[str, int, int]]:
    book = default_book("digits")
    found = {name: book.cell(name, 0, 0) for name in ("guess", "sure", "number", "reads_held_out")}
    said = book.shown["draw.said"]
    return found | {"said": (said.sheet, said.top, said.left)}


def pixel(i: int, j: int) -> tuple[str, int, int]:
    return default_book("digits").cell("drawing", i, j)


def drawn() -> np.ndarray:
    """Drawings to type: held-out ones, of which some have all pixels full or empty: [n, 8, 8]."""
    pixels = split()[1].pixels[-N_TYPED:].copy()
    pixels[::5] = MOST * (pixels[::5] >= MOST / 2)
    return pixels


def probabilities(pixels: np.ndarray) -> np.ndarray:
    """Those of the included model, for drawings [n, 8, 8]: [n, 10]."""
    shape = Decoder.of(model := trained.load())
    rows = {name: np.atleast_2d(w) for name, w in model.weights.items()}
    graph = learning.blank(shape, rows)
    return filled(graph, {"tokens": learning.in_patches(pixels)})["probs"][:, 0]


def test_held_out_accuracy_is_what_the_workbook_tells() -> None:
    right = trained.right(trained.load())
    assert len(right) == N_HELD_OUT and right.sum() == digits.N_RIGHT
    assert right.mean() >= 0.95
    assert "354 correctly: 98.3 %" in digits.accuracy()


def test_no_held_out_drawing_is_among_those_learnt_from() -> None:
    learnt, held_out = split()
    assert len(learnt.digits) + len(held_out.digits) == len(every().digits) == 1797
    seen = {x.tobytes() for x in learnt.pixels}
    assert not any(x.tobytes() in seen for x in held_out.pixels)


def test_drawings_are_those_of_scikit_learn() -> None:
    datasets = pytest.importorskip("sklearn.datasets", reason="pip install scikit-learn")
    theirs = datasets.load_digits()
    np.testing.assert_array_equal(every().pixels, theirs.images)
    np.testing.assert_array_equal(every().digits, theirs.target)


def test_first_drawing_is_read_as_a_seven() -> None:
    values = default_book("digits").values
    assert values["guess"].item() == 7
    shares = probabilities(canvas.drawn()[None])[0]
    np.testing.assert_allclose(values["chances"][:, 0].astype(float), shares, rtol=0, atol=1e-9)


def test_heat_map_is_the_mean_attention_of_the_last_layer() -> None:
    values = default_book("digits").values
    heads = [values[f"blocks.1.attn.h{n}.pattern"][0, 1:] for n in (0, 1)]
    mean = np.mean(heads, axis=0).reshape(4, 4)
    on_pixels = np.kron(mean / mean.max(), np.ones((2, 2)))
    np.testing.assert_allclose(values["looks"].astype(float), on_pixels, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_training_repeats_and_is_saved(tmp_path: Path) -> None:
    """Two runs write the same bytes; the loss falls; the saved model is read again."""
    losses = [step.loss for step in islice(learning.learn(0, learning.RECIPE.steps), 60)]
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10])
    for folder in ("a", "b"):
        done = cli("train", "digits", "-o", tmp_path / folder, "--steps", 3)
        assert done.code == 0, done.err
        assert "of 360 held-out drawings" in done.out
    files = [(tmp_path / folder / "model.safetensors").read_bytes() for folder in "ab"]
    assert files[0] == files[1]
    assert checkpoint.load(tmp_path / "a").spec == trained.load().spec


@pytest.mark.slow
def test_drawings_and_bad_cells_in_ironcalc(built, cells) -> None:
    sheet = InIronCalc(built["digits"])
    pixels = drawn()[:5]
    for x, shares in zip(pixels, probabilities(pixels), strict=True):
        typed = {pixel(i, j): float(x[i, j]) for i, j in np.ndindex(SIDE, SIDE)}
        with sheet.typed(typed):
            assert sheet[cells["guess"]] == shares.argmax()
            assert sheet[cells["sure"]] == pytest.approx(shares.max(), abs=1e-9)
    for text, said in ODD.items():
        with sheet.typed({pixel(0, 0): text}):
            assert sheet[cells["said"]] == said
            full = sheet[cells["sure"]]
        with sheet.typed({pixel(0, 0): 16.0 if text == 99.0 else 0.0}):
            assert sheet[cells["sure"]] == full
    with sheet.typed({cells["number"]: 4.0, cells["reads_held_out"]: 1.0}):
        assert sheet[cells["guess"]] == probabilities(canvas.shown().pixels[3:4])[0].argmax()


def test_fifty_drawings_typed_into_libreoffice(built, cells, tmp_path: Path, libreoffice) -> None:
    """One upon the other; then what is no number from 0 to 16. No cell is an error."""
    pixels, before, texts = drawn(), canvas.drawn(), []
    for x in pixels:
        changed = np.argwhere(x != before)
        texts.append({pixel(i, j): float(x[i, j]) for i, j in changed})
        before = x
    texts += [{pixel(0, 0): text} for text in ODD]
    watched = [cells[k] for k in ("guess", "sure", "said")]
    rows = watched_while_typed(built["digits"], texts, watched, tmp_path, len(ODD))
    for shares, row in zip(probabilities(pixels), rows, strict=False):
        assert row[1:3] == [str(shares.argmax()), f"{shares.max():.3f}"]
    assert {errors for errors, *_ in rows[N_TYPED:]} == {"0"}
    assert [row[3] for row in rows[N_TYPED:]] == [*ODD.values()]
