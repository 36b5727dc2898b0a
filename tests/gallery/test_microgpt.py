"""microgpt: the program's losses, weights and names, in the engine and in LibreOffice."""

from functools import cache

import numpy as np
import pytest
from conftest import default_book
from microgpt_retold import N_SAMPLES, Begun, begin, gpt, samples, train

import cellformer as cf
from cellformer.engine import Evaluator, Model, WordList
from cellformer.workbooks import microgpt
from cellformer.workbooks.microgpt import program, step


def begun() -> Begun:
    """The retelling before its first step: the names that no step reads are left out."""
    found = begin([""] * program.N_SHUFFLED)
    found.docs[: program.STEPS] = program.names()
    return found


@cache
def retold() -> tuple[list[float], dict[str, np.ndarray], list[str]]:
    """The losses of 1,000 steps, the weights after them, and the names."""
    at = begun()
    losses = list(train(at))
    return losses, program.ours(at.weights), list(samples(at))


def test_weights_and_random_numbers_are_the_programs() -> None:
    at, drawn = begun(), program.drawn()
    for name, values in program.ours(at.weights).items():
        assert (drawn.weights[name] == values).all(), name
    assert [at.rng.random() for _ in drawn.numbers] == drawn.numbers
    assert sum(w.size for w in drawn.weights.values()) == 4192


@pytest.mark.slow
def test_losses_and_names_equal_the_retelling() -> None:
    losses, weights, names = retold()
    made = list(step.learn(program.drawn()))
    assert [loss for loss, _ in made] == pytest.approx(losses, abs=1e-9)
    for name, values in weights.items():
        np.testing.assert_allclose(made[-1][1][name], values, rtol=0, atol=1e-9)
    written = [*map(step.text, step.names(made[-1][1], program.drawn().numbers))]
    assert written == names and len(names) == N_SAMPLES
    assert names[:5] == ["kamon", "ann", "karai", "jaire", "vialan"]  # as published


@pytest.mark.slow
def test_included_weights_are_those_after_1000_steps() -> None:
    held = cf.load(microgpt.FOLDER)
    for name, values in retold()[1].items():
        np.testing.assert_allclose(held.weights[name], values, rtol=0, atol=1e-9)


def test_checkpoint_without_gains(tmp_path) -> None:
    at = begun()
    model = Model(program.SPEC, program.drawn().weights, WordList(program.WORDS))
    cf.save(model, tmp_path / "model")
    again = cf.load(tmp_path / "model")
    ids = again.vocabulary.encode("<BOS> e m m a")
    assert ids == [26, 4, 12, 12, 0]
    logits = again.graph(ids).values["logits"]
    np.testing.assert_allclose(logits, gpt(at.weights, ids)[0], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_odd_names_leave_no_error() -> None:
    live = Evaluator(default_book("microgpt").graph)
    for typed, n in {"Zoë?": 5, "x" * 40: 16}.items():
        live.set("docs", 0, 0, typed)
        assert live["n"][0, 0] == n and np.isfinite(live["loss"][0, 0]), typed
        assert set(live["tokens"].ravel()) <= set(range(27))


@pytest.mark.slow
def test_trained_weights_write_the_names() -> None:
    live = Evaluator(default_book("microgpt").graph)
    assert live["names"][0, 0] == "orgzqpdlw"
    live.set("begin", 0, 0, "trained")
    assert live["names"].ravel().tolist() == retold()[2]
    assert live["name"][0, 0] == "kamon"
