"""A model of a text: it learns, twice alike; its best is kept; its loss is the graph's."""

import json
import sys
from dataclasses import replace
from functools import cache
from math import log
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, library
from safetensors.numpy import load_file

from cellformer.engine import InputError, Model
from cellformer.engine.learning import corpus, text_training
from cellformer.engine.learning.corpus import Corpus
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.learning.text_training import Check, TextRun
from cellformer.engine.learning.training import Progress
from cellformer.engine.models import checkpoint

pytestmark = pytest.mark.slow

TEXT = "".join(json.loads((GOLDEN / "shakespeare" / "held_out.json").read_text())["windows"])
SMALL = TextRun(
    n_layers=2, n_heads=2, d_model=16, d_mlp=24, context=12, steps=20, batch=4,
    sample_length=15,  # a little longer than the context
)  # fmt: skip
CORPUS = corpus.corpus(TEXT, None, SMALL.context)


@cache
def first() -> tuple[list[Progress], list[Check], Model]:
    """The run that others are held to."""
    return run(SMALL)


def run(
    small: TextRun, seed: int = 0, learnt: Corpus = CORPUS
) -> tuple[list[Progress], list[Check], Model]:
    steps = list(text_training.fit(small, learnt, seed))
    checks = [step for step in steps if isinstance(step, Check)]
    (model,) = [step for step in steps if isinstance(step, Model)]
    return [step for step in steps if isinstance(step, Progress)], checks, model


def test_the_same_seed_gives_the_same_weights() -> None:
    (steps, checks, model), (_, again, other), (_, _, third) = first(), run(SMALL), run(SMALL, 1)
    assert [step.step for step in steps] == list(range(SMALL.steps))
    assert checks == again
    assert all((model.weights[name] == w).all() for name, w in other.weights.items())
    assert any((model.weights[name] != w).any() for name, w in third.weights.items())


def test_checks_do_not_change_the_run() -> None:
    _, _, model = first()
    _, checks, other = run(replace(SMALL, n_checks=1))
    assert [check.step for check in checks] == [SMALL.steps]
    assert all((model.weights[name] == w).all() for name, w in other.weights.items())


def test_training_lowers_the_loss() -> None:
    """After so many steps it knows more than how often each character comes."""
    steps, checks, _ = run(replace(SMALL, steps=80, batch=16, learning_rate=3e-2))
    shares = np.bincount(CORPUS.learnt) / len(CORPUS.learnt)
    entropy = -sum(p * log(p) for p in shares if p)
    assert steps[0].loss == pytest.approx(log(len(shares)), rel=0.05)
    assert checks[-1].loss < entropy - 0.3
    assert set(checks[-1].sample) <= set(TEXT)


def test_the_best_check_is_kept() -> None:
    """So small a text is learnt by heart: what is held out is worse in the end."""
    few = corpus.corpus(TEXT[:800], None, SMALL.context)
    long = TextRun(n_layers=1, n_heads=2, d_model=32, context=12, steps=100, batch=16)
    _, checks, model = run(replace(long, learning_rate=2e-2), 0, few)
    losses = [check.loss for check in checks]
    assert min(losses) < losses[-1]
    kept = text_training.loss(Decoder.of(model), model.weights, few.windows())
    assert kept == pytest.approx(min(losses), rel=1e-6)  # the weights are float32 in the end


@pytest.mark.parametrize("n_pieces", [None, 300])
def test_loss_equals_the_graph(n_pieces: int | None) -> None:
    learnt = corpus.corpus(TEXT, n_pieces, SMALL.context) if n_pieces else CORPUS
    *_, model = run(SMALL, 0, learnt) if n_pieces else first()
    windows = learnt.windows(4)
    probs = [model.graph(row[:-1].tolist()).values["probs"] for row in windows]
    by_graph = [-np.log(p[range(len(p)), row[1:]]) for p, row in zip(probs, windows, strict=True)]
    found = text_training.loss(Decoder.of(model), model.weights, windows)
    assert found == pytest.approx(np.mean(by_graph), abs=1e-6)


def test_half_is_a_file_half_as_large(tmp_path: Path) -> None:
    sizes = []
    for half in (False, True):
        _, _, model = run(replace(SMALL, half=True, steps=2)) if half else first()
        checkpoint.save(model, tmp_path / str(half))
        path = tmp_path / str(half) / "model.safetensors"
        again = checkpoint.load(tmp_path / str(half))
        assert all((again.weights[name] == w).all() for name, w in model.weights.items())
        sizes.append(sum(tensor.nbytes for tensor in load_file(path).values()))
    assert sizes[0] == 2 * sizes[1]
    finer = replace(again, weights={n: w + 1e-9 for n, w in again.weights.items()})
    checkpoint.save(finer, tmp_path / "finer")
    found = checkpoint.load(tmp_path / "finer")
    assert checkpoint.number_type(found) == np.float64  # never rounded unasked


def test_the_rate_rises_stays_and_decays() -> None:
    flat = Recipe(steps=1000, batch=1, embed_scale=1, learning_rate=1.0, warmup=10, flat=0.5)
    rates = [flat.rate(step) for step in range(1000)]
    assert rates[:10] == pytest.approx(np.arange(1, 11) / 10)
    assert set(rates[10:501]) == {1.0}
    assert (np.diff(rates[500:]) < 0).all()
    assert rates[-1] == pytest.approx(flat.last_rate, abs=1e-3)
    usual = replace(flat, flat=0.0)  # the cosine begins when the warm-up ends
    assert usual.rate(10) == 1.0 > usual.rate(11)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"n_heads": 3}, "the number of heads, 3, must divide"),
        ({"learning_rate": 1e30}, "--learning-rate"),
    ],
)
@pytest.mark.parametrize("torch", [True, False])
def test_diverged_runs_are_refused(change: dict, fault: str, torch: bool, monkeypatch) -> None:
    if torch:
        library("torch")
    else:
        monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=fault):
        run(replace(SMALL, **change))


@pytest.mark.parametrize(
    "change",
    [
        {"d_model": 100_000},
        {"d_model": 10**9},
        {"d_mlp": 10**9},
        {"batch": 10**20},
        {"context": 100_000, "n_layers": 1000},
        {"architecture": "mixtral", "d_model": 1024, "n_layers": 12},
    ],
    ids=str,
)
def test_run_too_large_for_memory_is_refused(change: dict) -> None:
    with pytest.raises(InputError, match=r"would hold [\d,]+ numbers, .* --context or --batch"):
        TextRun(**change).decoder(65)


def test_thirty_million_weights_are_accepted() -> None:
    TextRun(d_model=1024, n_layers=12).decoder(65)
    large = TextRun(n_layers=8, n_heads=8, d_model=512, context=256, batch=16)
    assert large.decoder(8_000).spec.d_mlp == 2048


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("rate", "half"), [(1e30, False), (1e5, True), (1e300, False), (float("inf"), False)]
)
def test_huge_learning_rate_without_torch(rate, half, monkeypatch) -> None:
    """The loss may well be a number: a norm divides by what has grown."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="try a lower --learning-rate") as told:
        run(replace(SMALL, learning_rate=rate, half=half, steps=40))
    assert len(str(told.value)) < 100
