"""The gallery's models are trained by torch: first steps, which repeat, and what the command saves.

Apart from the other tests of these workbooks, for torch takes two seconds to import.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import cli

from cellformer.engine.learning import training
from cellformer.engine.learning.training import Progress
from cellformer.engine.models import checkpoint
from cellformer.workbooks import dialogue_game
from cellformer.workbooks.semantic_tiny import semantics

pytestmark = pytest.mark.usefixtures("torch")


def test_dialogue_game_training_starts() -> None:
    steps = dialogue_game.train(9, None)
    first = [next(steps) for _ in range(2)]
    again = dialogue_game.train(9, None)
    for a, b in zip(first, again, strict=False):
        assert isinstance(a, Progress) and isinstance(b, Progress)
        assert a.loss == b.loss and (a.ids == b.ids).all()
    assert first[0].loss > np.log(28)  # no better than a guess


def test_three_steps_of_semantic_tiny() -> None:
    recipe = replace(semantics.recipe(0.02), steps=3)
    *steps, weights = training.train(semantics.decoder(), recipe, semantics.sentences, 0)
    assert [step.step for step in steps if isinstance(step, Progress)] == [0, 1, 2]
    assert all(np.isfinite(step.loss) for step in steps if isinstance(step, Progress))
    assert isinstance(weights, dict)
    assert semantics.model(weights).spec == semantics.spec()


def test_train_saves_what_load_reads(tmp_path: Path) -> None:
    args = ("semantic-tiny", "-o", tmp_path / "m", "--seed", "3", "--embed-scale", "0.1")
    done = cli("train", *args, "--steps", 10)
    assert done.code == 0
    assert "king - man + woman" in done.out
    assert checkpoint.load(tmp_path / "m").vocabulary.texts == semantics.WORDS
