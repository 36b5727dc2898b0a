"""Learning by cells is learning by torch, step by step; any architecture; a run without torch."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, cli

from cellformer.engine import Model
from cellformer.engine.learning import decoders, in_cells, objective
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.optimizers import ADAM, DESCENT, MOMENTUM
from cellformer.engine.learning.recipe import IGNORED, Recipe
from cellformer.engine.learning.text_training import TextRun
from cellformer.engine.learning.training import Progress
from cellformer.engine.models import checkpoint
from cellformer.workbooks import dialogue_game

STEPS, BATCH = 100, 8
SMALL = TextRun(n_layers=1, n_heads=2, d_model=8, d_mlp=16, context=8).decoder(20)  # 900 weights
RECIPE = Recipe(STEPS, BATCH, embed_scale=0.3, learning_rate=0.02, warmup=10, clip=0.5)


def sentences(rng: np.random.Generator, n: int, length: int = 9) -> np.ndarray:
    """Ids that count upwards, of many lengths, as training has them: [n, length]."""
    starts, ends = rng.integers(0, 20, (n, 1)), rng.integers(2, length + 1, (n, 1))
    places = np.arange(length)
    return np.where(places < ends, (starts + places) % 20, IGNORED)


def both_learn(decoder: Decoder, recipe: Recipe, torch: Any) -> np.ndarray:
    """The losses of a hundred steps by cells and by torch, in float64: [2, STEPS]. They end in the
    same weights."""
    from cellformer.engine.learning import in_torch

    rng = np.random.default_rng(0)
    start = decoder.initial(recipe, rng)
    ours = in_cells.Learner(decoder, recipe, start)
    theirs = in_torch.Learner(decoder, recipe, start, torch.float64)
    losses = []
    for n in range(STEPS):
        ids = sentences(rng, BATCH)
        losses.append((ours.step(n, ids), theirs.step(n, ids)))
    for name, w in theirs.weights.items():
        np.testing.assert_allclose(ours.weights[name], w, rtol=0, atol=1e-8, err_msg=name)
        assert ours.weights[name].shape == w.shape
    return np.transpose(losses)


@pytest.mark.parametrize("method", [DESCENT, MOMENTUM, ADAM])
def test_hundred_steps_equal_torch(method: int, torch) -> None:
    """Warm-up and decay of the rate, decay of the weights, and gradients that are clipped."""
    found, expected = both_learn(SMALL, replace(RECIPE, method=method, weight_decay=0.05), torch)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    assert found[-10:].mean() < found[:10].mean() - 0.1


@pytest.mark.parametrize("name", ["llama", "gemma", "gpt_neox", "bloom", "phi", "mixtral", "mamba"])
def test_hundred_steps_of_decoders_equal_torch(name: str, torch) -> None:
    """Rotary positions and ALiBi, RMSNorm, gated MLPs, shared keys, experts; tied or not."""
    sizes = {"d_vocab": 20, "n_ctx": 8, "d_model": 16, "n_layers": 2, "n_heads": 2, "d_mlp": 64}
    new = decoders.new(name, **sizes)
    decoder = replace(new, spec=replace(new.spec, n_kv_heads=1 if name == "llama" else None))
    found, expected = both_learn(decoder, RECIPE, torch)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    assert found[-10:].mean() < found[:10].mean() - 0.1


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_any_architecture_learns(name: str) -> None:
    """A step of plain descent is the rate times the gradient, and the loss falls as that says."""
    model = checkpoint.load(GOLDEN / name)
    weights = {k: np.asarray(w, dtype=np.float64) for k, w in model.weights.items()}
    rate = 1e-4
    plain = Recipe(1, 2, 1, rate, 0, last_rate=1, weight_decay=0, clip=np.inf, method=DESCENT)
    learner = in_cells.Learner(Decoder.of(model), plain, weights)
    ids = np.array([[5, 3, 8, 1], [2, 9, 4, IGNORED]])
    before = learner.step(0, ids)
    moved = sum(((learner.weights[k] - w) ** 2).sum() for k, w in weights.items())
    assert before - learner.step(0, ids) == pytest.approx(moved / rate, rel=0.02)
    parts = [(row[row != IGNORED][:-1], row[row != IGNORED][1:]) for row in ids]
    graphs = [model.graph(read.tolist()) for read, _ in parts]
    each = [
        objective.loss(g, wanted.tolist(), [1 / 5] * len(wanted))
        for g, (_, wanted) in zip(graphs, parts, strict=True)
    ]
    alone = sum(g.values[loss.name][0, 0] for g, loss in zip(graphs, each, strict=True))
    assert before == pytest.approx(alone, rel=1e-12)


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it is not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "cellformer.engine.learning.in_torch", raising=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_train_text_without_torch(name: str, without_torch: None, tmp_path: Path) -> None:
    windows = json.loads((GOLDEN / "shakespeare" / "held_out.json").read_text())["windows"]
    (tmp_path / "text.txt").write_text("".join(windows))
    sizes = ("--layers", 1, "--heads", 2, "--d-model", 8, "--context", 8, "--steps", 20)
    done = cli(
        "train",
        "--text",
        "text.txt",
        "-o",
        "model",
        *sizes,
        "--batch",
        4,
        "--architecture",
        name,
        cwd=tmp_path,
    )
    assert done.code == 0, done.err
    assert "torch is not installed, so numpy computes the 20 steps in about" in done.out
    assert "step 20: held-out loss" in done.out
    assert cli("run", tmp_path / "model", "--prompt", "Good").code == 0


@pytest.mark.slow
def test_train_workbook_without_torch(without_torch: None) -> None:
    *steps, model = dialogue_game.train(9, steps=3)
    assert [step.step for step in steps if isinstance(step, Progress)] == [0, 1, 2]
    assert isinstance(model, Model)
