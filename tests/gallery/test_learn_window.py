"""learn in LibreOffice: 50 steps come out as torch's, whatever is read or shown between them."""

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import GOLDEN, ROOT, Built, default_book

from cellformer.engine.cells.batch import filled
from cellformer.workbooks import learn
from cellformer.workbooks.learn import game, step
from cellformer.workbooks.learn.step import Values

STEPS = json.loads((GOLDEN / "learn" / "steps.json").read_text(encoding="utf-8"))
N_STEPS = len(STEPS["losses"]) - 1
READ = ("nothing", "loss", "screen", "backwards")
PYTHON = "/usr/bin/python3"  # for which systems install LibreOffice's `uno`
ANOTHER_RATE = 0.05  # as the script types it
IDS = step.ids_of(game.sentences(), game.WORDS)


def script() -> ModuleType:
    """What made steps.json."""
    spec = importlib.util.spec_from_file_location("make_steps", GOLDEN / "learn" / "make.py")
    assert spec and spec.loader
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def ours(n: int, changes: int = 0) -> Iterator[tuple[float, Values]]:
    """The engine's steps; after so many `changes`, at another rate."""
    g = step.graph(learn.SPEC, step.start(learn.SPEC, learn.SEED), game.LENGTH - 1)
    made = step.add(g, learn.BATCH)
    if not changes:
        yield from islice(step.learn(made, IDS, learn.BATCH), n)
        return
    state: Values = {name: g.inputs[name] for name in made.states}
    for k, rows in enumerate(islice(step.batches(IDS, learn.BATCH), n)):
        rate = step.RATE if k < changes else ANOTHER_RATE
        typed = {"step": np.array([[k + 1.0]]), "rate": np.array([[rate]])}
        values = filled(g, state | step.inputs(rows) | typed)
        state = {name: values[after.name] for name, after in made.states.items()}
        yield float(values[made.loss.name][0, 0]), {name: state[name] for name in made.updated}


def agree(
    found: dict[str, Any], losses: list[float], weights: dict[str, Any], within: float
) -> None:
    """Every loss and every weight."""
    assert found["losses"] == pytest.approx(losses, abs=within)
    assert found["weights"].keys() == weights.keys()
    for name, values in weights.items():
        np.testing.assert_allclose(found["weights"][name], values, rtol=0, atol=within)


def test_engine_steps_equal_torch() -> None:
    made = list(ours(N_STEPS + 1))
    found = {"losses": [loss for loss, _ in made], "weights": made[N_STEPS - 1][1]}
    agree(found, STEPS["losses"], STEPS["weights"], 1e-12)


def test_stored_steps_are_torchs(torch) -> None:
    losses, weights = script().steps(N_STEPS)
    agree({"losses": losses, "weights": weights}, STEPS["losses"], STEPS["weights"], 1e-12)


def in_libreoffice(path: Path, n_steps: int, *ways: str, name: str = "learn") -> dict[str, Any]:
    """What the script of the benchmark sees in a workbook, `name`, or skip where something that it
    needs is missing."""
    if not Path(PYTHON).exists() or subprocess.run([PYTHON, "-c", "import uno"]).returncode:
        pytest.skip("no python has LibreOffice's `uno`; apt install python3-uno")
    for program in ("Xvfb", "xdotool") if "window" in ways else ():
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed; apt install xvfb xdotool")
    file = ROOT / "benchmarks" / "learn_in_libreoffice.py"
    asked = [PYTHON, file, path, str(n_steps), *ways]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=600)
    assert not done.returncode, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    places = default_book(name).places
    for way in found.values():
        for name, values in way["weights"].items():
            way["weights"][name] = np.transpose(values) if places[name].turned else values
    return found


def test_steps_in_libreoffice_equal_torch(built: Built, libreoffice) -> None:
    """Not a cell, the loss alone, the sheet Learn as a screen paints it, the step from its end."""
    shown = in_libreoffice(built["learn"], N_STEPS, *READ)
    for way in READ:
        agree(shown[way], STEPS["losses"], STEPS["weights"], 1e-9)
        assert shown[way]["recalculations"] <= 2 * N_STEPS + 2  # the first completes what there is
        assert shown[way]["begun"] == [0, pytest.approx(STEPS["losses"][0], abs=1e-12)]


def test_steps_after_a_pause_at_another_rate(built: Built, libreoffice) -> None:
    (shown,) = in_libreoffice(built["learn"], 10, "paused").values()
    made = list(ours(11, changes=5))
    agree(shown, [loss for loss, _ in made], made[9][1], 1e-9)
    assert shown["begun"] == [0, pytest.approx(STEPS["losses"][0], abs=1e-12)]


def test_steps_in_a_window_equal_torch(built: Built, libreoffice) -> None:
    """`learn` typed, F9 pressed, and the sheets of the step shown now and then."""
    (shown,) = in_libreoffice(built["learn"], N_STEPS, "window").values()
    agree(shown, STEPS["losses"], STEPS["weights"], 1e-9)
    assert shown["recalculations"] <= 2 * N_STEPS + 2
