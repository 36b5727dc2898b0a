"""superposition: its cells computed a second time, its training held to a gradient by hand."""

import json
from collections.abc import Generator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import assert_agrees, default_book, libreoffice_after

from cellformer.command import train
from cellformer.engine import InputError
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.gradient import backward
from cellformer.engine.learning.training import Progress
from cellformer.workbooks.superposition import examples, learning, room
from cellformer.workbooks.superposition.examples import N_EXAMPLES, N_FEATURES

pytestmark = pytest.mark.slow

HELD = json.loads((learning.FOLDER / learning.FILE).read_text())  # read a second way
TOYS = {
    (decay, p): (np.array(HELD["W"][i][j]), np.array(HELD["b"][i][j]))
    for i, decay in enumerate(learning.DECAYS)
    for j, p in enumerate(learning.PROBABILITIES)
}
RARE = TOYS[1.0, 0.05]


def cells(name: str) -> np.ndarray:
    return default_book("superposition").values[name].astype(float)


def degrees_between(W: np.ndarray) -> list[float]:
    """The angles from each arrow to the next, all the way round."""
    angles = np.sort(np.degrees(np.arctan2(W[1], W[0])))
    return [b - a for a, b in pairwise([*angles, angles[0] + 360])]


# --- the cells, computed again ------------------------------------------------------------------


def test_the_toy_model_and_its_interference() -> None:
    W, b = RARE
    x = cells("x")[:, 0]
    np.testing.assert_allclose(cells("interference"), W.T @ W, rtol=0, atol=1e-9)
    back = np.maximum(W.T @ (W @ x) + b, 0)
    np.testing.assert_allclose(cells("back")[:, 0], back, rtol=0, atol=1e-9)
    unit = W / np.linalg.norm(W, axis=0)
    np.testing.assert_allclose(cells("cosines"), unit.T @ unit, rtol=0, atol=1e-9)
    nearest = np.sort(unit.T @ unit, axis=0)[-2]
    np.testing.assert_allclose(cells("angles")[0], np.degrees(np.arccos(nearest)), atol=1e-9)


def loss_over_subsets(W: np.ndarray, b: np.ndarray, decay: float, p: float) -> float:
    """The weighed error of each example on the sheet, times how often its case occurs."""
    x = cells("examples")
    error = ((np.maximum(x @ W.T @ W + b, 0) - x) ** 2) @ decay ** np.arange(N_FEATURES)
    return float(error @ examples.shares(p))


def test_the_losses_and_what_is_held() -> None:
    decay, p = cells("decay")[0, 0], cells("p")[0, 0]
    toys = [TOYS[decay, odds] for odds in (1.0, p, 0.05)]
    held = [(np.linalg.norm(W, axis=0) >= 0.5).sum() for W, _ in toys]
    assert cells("held_by")[0].tolist() == held == [2, 4, 5]
    for k, toy in enumerate(toys):
        assert cells("loss")[0, k] == pytest.approx(loss_over_subsets(*toy, decay, p), abs=1e-9)
        curve = [loss_over_subsets(*toy, decay, odds) for odds in cells("odds")[:, 0]]
        np.testing.assert_allclose(cells("curves")[:, k], curve, rtol=0, atol=1e-9)
        np.testing.assert_allclose(cells(f"interference_{k}"), toy[0].T @ toy[0], atol=1e-9)


@pytest.mark.parametrize("p", [0.05, 0.2, 1.0])
def test_the_examples_stand_for_any_draw(p: float) -> None:
    """Their loss is that of many draws, to within a tenth; their shares add up to 1."""
    rng = np.random.default_rng(8)
    shape = (100_000, N_FEATURES)
    x = rng.random(shape) * (rng.random(shape) < p)
    W, b = TOYS[0.9, p]
    drawn = ((np.maximum(x @ W.T @ W + b, 0) - x) ** 2) @ 0.9 ** np.arange(N_FEATURES)
    assert loss_over_subsets(W, b, 0.9, p) == pytest.approx(drawn.mean(), rel=0.1)
    assert examples.shares(p).sum() == pytest.approx(1)


def test_the_autoencoder_finds_every_feature() -> None:
    W, _ = RARE
    E, bias, D = (np.array(HELD[name][-1]) for name in ("encoder", "encoder_bias", "decoder"))
    unit = W / np.linalg.norm(W, axis=0)
    cosines = D @ unit / np.linalg.norm(D, axis=1, keepdims=True)
    np.testing.assert_allclose(cells("matching"), cosines, rtol=0, atol=1e-9)
    assert (cosines.max(0) > 0.999).all()
    assert sorted(cosines.argmax(0)) == list(range(N_FEATURES))
    assert cells("found")[0, 0] == 5
    h = cells("examples") @ W.T
    f = np.maximum(h @ E + bias, 0)
    share = examples.shares(0.05)
    lost = share @ ((f @ D - h) ** 2).sum(1) / (share @ (h**2).sum(1))
    assert cells("unexplained")[0, 0] == pytest.approx(lost, abs=1e-9)
    assert cells("n_active")[0, 0] == pytest.approx(share @ (f > 0).sum(1), abs=1e-9)


def test_directions_are_counted() -> None:
    near, vectors = cells("near")[0, 0], room.VECTORS
    for k, d in enumerate(cells("widths")[0].astype(int)):
        unit = vectors[:d] / np.linalg.norm(vectors[:d], axis=0)
        cosines = np.abs(unit.T @ unit)
        np.testing.assert_allclose(cells(f"cosines_{k}"), cosines, rtol=0, atol=1e-9)
        kept: list[int] = []
        for i in range(room.N):
            kept += [i] if all(cosines[i, j] < near for j in kept) else []
        assert np.flatnonzero(cells(f"kept_{k}")[0]).tolist() == kept
        assert cells("fit")[0, k] == len(kept)
        apart = cosines[np.triu_indices(room.N, 1)]
        assert cells("share")[0, k] == pytest.approx((apart >= near).mean(), abs=1e-9)


@pytest.mark.parametrize(("d", "counted"), [(1000.0, 64), (0.0, 1), (-3.0, 1), (2.5, 2)])
def test_missing_dimensions_do_not_count(d: float, counted: int) -> None:
    """What is measured and what the formula says are of the same number of dimensions."""
    book = default_book("superposition")
    values = book.edited({book.graph["widths"][0, 2]: d}).values
    assert values["counted"][0, 2] == counted == values["used"][:, 2].sum()
    assert values["expected_cosine"][0, 2] == pytest.approx(counted**-0.5)


@pytest.mark.parametrize("near", [2.0, 1.0, 0.0, -1.0])
def test_shares_of_pairs_for_any_input(near: float) -> None:
    book = default_book("superposition")
    shares = book.edited({book.graph["near"][0, 0]: near}).values["share"].astype(float)
    assert (shares == (near <= 0)).all()


def test_settings_name_the_nearest_model() -> None:
    book = default_book("superposition")
    typed = {"p": 5.0, "decay": 0.8, "penalty": -1.0}
    after = book.edited({book.graph[name][0, 0]: x for name, x in typed.items()})
    for name, taken in (("p", "1"), ("decay", "0.7"), ("penalty", "0.03")):
        sheet, row, col = book.cell(name, 0, 0)
        assert after.cell(sheet, row, col + 1) == f"uses the model trained at {taken}"
        assert (row, col) in book.sheets[sheet].rules  # what is typed is asked to be a share


@pytest.mark.parametrize("d", [8, 64])
def test_the_bound_is_one(d: int) -> None:
    """Of many random directions, no larger share is near the first axis than the formula says."""
    x = np.random.default_rng(d).normal(size=(20_000, d))
    cosines = np.abs(x[:, 0]) / np.linalg.norm(x, axis=1)
    for near in (0.1, 0.3, 0.5):
        assert (cosines >= near).mean() <= 2 * np.exp(-d * near**2 / 2)


def test_typed_values_in_libreoffice(built, tmp_path: Path, libreoffice) -> None:
    """Features, weights and settings drawn at random: LibreOffice shows at every cell what the
    engine has, and the interference is numpy's."""
    rng, book = np.random.default_rng(12), default_book("superposition")
    edits = {(name, i, 0): float(rng.random()) for name in ("x", "mix") for i in range(N_FEATURES)}
    edits |= {("W", i, j): float(rng.normal()) for i in range(4) for j in range(2)}
    edits |= {("W", 4, j): 0.0 for j in range(2)}  # an arrow of no length
    edits |= {("p", 0, 0): 0.33, ("decay", 0, 0): 0.8, ("penalty", 0, 0): 0.12}
    edits |= {("near", 0, 0): 0.45, ("widths", 0, 1): 9.0, ("p_seen", 0, 0): 0.4}
    after = book.edited({book.graph[name][i, j]: x for (name, i, j), x in edits.items()})
    cells = {book.cell(*at): x for at, x in edits.items()}
    (shown,) = libreoffice_after(built["superposition"], [cells], tmp_path / "office")
    formulas = built.formula_cells("superposition")
    wanted = replace(formulas, formulas={at: after.cell(*at) for at in formulas.formulas})
    assert_agrees(wanted, shown)
    W = np.array([[edits["W", i, j] for j in range(2)] for i in range(N_FEATURES)])
    sheet, top, left = book.cell("interference", 0, 0)
    found = [[shown[sheet][top + i, left + j] for j in range(5)] for i in range(5)]
    np.testing.assert_allclose(found, W @ W.T, rtol=0, atol=1e-9)
    assert shown["Sparsity"][book.cell("row_1", 0, 0)[1:]] == 3  # the next settings below


# --- the training ---------------------------------------------------------------------------------


def test_the_gradient_is_the_one_by_hand() -> None:
    rng = np.random.default_rng(4)
    graph = learning.toy_model()
    names = backward(graph, graph["loss"])
    x, share = examples.drawn(rng), examples.shares(0.3)[:, None]
    W, b = rng.normal(size=(2, N_FEATURES)), rng.normal(size=(1, N_FEATURES))
    importance = rng.random((1, N_FEATURES))
    given = {"x": x, "share": share, "W": W, "b": b, "importance": importance}
    values = filled(graph, given)
    h = x @ W.T
    out = np.maximum(h @ W + b, 0)
    slope = 2 * share * importance * (out - x) * (out > 0)  # [examples, features]
    by_hand = {"W": h.T @ slope + (slope @ W.T).T @ x, "b": slope.sum(0, keepdims=True)}
    for name, wanted in by_hand.items():
        np.testing.assert_allclose(values[names[name].name], wanted, rtol=0, atol=1e-12)


def finish(steps: Generator[Progress, None, learning.Weights]) -> learning.Weights:
    """The weights that a training ends in."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


@pytest.mark.slow
def test_other_seed_finds_the_same_features() -> None:
    rng = np.random.default_rng(2026)
    share = {"share": examples.shares(0.05)[:, None]}
    start = {
        "W": rng.normal(0, 0.5, (1, 4, 2, N_FEATURES)),
        "b": np.zeros((1, 4, 1, N_FEATURES)),
    }
    draw = lambda: {"x": examples.drawn(rng)}  # noqa: E731
    W = finish(learning.minimized(learning.toy_model(), share, draw, start, 400))["W"][0]
    np.testing.assert_allclose(np.linalg.norm(W, axis=0), 1.13, atol=0.05)
    np.testing.assert_allclose(degrees_between(W), 72, atol=4)
    D = rng.normal(size=(1, 4, N_FEATURES, 2))
    D /= np.linalg.norm(D, axis=-1, keepdims=True)
    start = {"E": D.swapaxes(-1, -2).copy(), "b": np.zeros((1, 4, 1, N_FEATURES)), "D": D}
    given = share | {"penalty": np.array([[0.2]])}
    draw = lambda: {"h": examples.drawn(rng) @ W.T}  # noqa: E731
    D = finish(learning.minimized(learning.autoencoder(), given, draw, start, 500))["D"][0]
    cosines = (D / np.linalg.norm(D, axis=1, keepdims=True)) @ (W / np.linalg.norm(W, axis=0))
    assert (cosines.max(0) > 0.95).all()


def test_angles_of_shipped_arrows() -> None:
    np.testing.assert_allclose(degrees_between(RARE[0]), 72, atol=0.5)
    W, _ = TOYS[0.9, 1.0]
    assert abs(W[:, 0] @ W[:, 1]) < 0.01  # two features, at right angles
    W, _ = TOYS[0.9, 0.2]
    pairs = np.sort((W.T @ W)[np.triu_indices(4, 1)])  # four, as two pairs of opposites
    np.testing.assert_allclose(pairs, [-1, -1, 0, 0, 0, 0], atol=0.03)


def test_examples_are_of_every_subset() -> None:
    x = examples.drawn(np.random.default_rng(0))
    assert x.shape == (N_EXAMPLES, N_FEATURES)
    assert len({tuple(row > 0) for row in x}) == 32
    assert ((x > 0).sum(1) == examples.N_PRESENT).all()
    assert x.max() < 1


def test_train_saves_what_it_learned(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train.workbook("superposition", None, tmp_path / name, False, seed, steps=2)
    a, b, c = ((tmp_path / name / learning.FILE).read_bytes() for name in "abc")
    assert a == b != c
    learned = learning.load(tmp_path / "a")
    assert learned.W.shape == (3, 6, 2, 5) and learned.decoder.shape == (3, 5, 2)
    with pytest.raises(InputError, match="replace the model with --force"):
        train.workbook("superposition", None, tmp_path / "a", False, 1, steps=2)
