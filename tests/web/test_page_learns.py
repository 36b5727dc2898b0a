"""A page that learns: each recalculation makes the steps of the loop in numpy."""

from itertools import islice
from pathlib import Path

import as_page
import pytest
from in_node import call

from cellformer.workbooks import learn, unrolled
from cellformer.workbooks.learn import game, step


def test_recalculations_make_steps_of_the_loop(node: str, tmp_path: Path) -> None:
    spec = unrolled.SPEC
    folder = as_page.write(learn.built(spec, 2, step.RATE), tmp_path / "page")
    made = dict(call("learning.mjs", "losses", folder, 24))
    g = step.graph(spec, step.start(spec, learn.SEED), game.LENGTH - 1)
    ids = step.ids_of(game.sentences(), game.WORDS)
    wanted = [loss for loss, _ in islice(step.learn(step.add(g, 2), ids, 2), 12)]
    assert [made[k] for k in range(1, 12)] == pytest.approx(wanted[1:], abs=1e-12)
