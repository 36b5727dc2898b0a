"""RWKV: its means of all values so far, told by their definition; halved streams; switches."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN

from cellformer.engine import InputError
from cellformer.engine.cells.batch import variants
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.models import checkpoint
from cellformer.engine.models.model import Model
from cellformer.engine.studies.folding import folded

FOLDER = GOLDEN / "rwkv"
IDS = [3, 1, 5, 2, 4]
T = "blocks.1.time"


def changed(folder: Path, **change: object) -> Model:
    """The golden model with another config."""
    shutil.copytree(FOLDER, folder)
    config = json.loads((FOLDER / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    return checkpoint.load(folder)


@pytest.mark.parametrize("add", [0.0, 800.0, -800.0], ids=["as it is", "large", "small"])
def test_mean_of_all_values_by_its_definition(add: float) -> None:
    """What is added to all exponents cancels, also where their exponentials would overflow, or all
    be 0."""
    graph = checkpoint.load(FOLDER).graph(IDS)
    live = Evaluator(graph)
    k, v = graph.values[f"{T}.k"], graph.values[f"{T}.v"]
    for at in graph[f"{T}.k"].whole.cells():
        live.set(f"{T}.k", *at, k[at] + add)
    fade, bonus = graph.values[f"{T}.fade"][0], graph.values[f"{T}.bonus"][0]
    for t in range(len(IDS)):
        passed = t - 1 - np.arange(t)[:, None]
        counts = np.exp(np.vstack([k[:t] + passed * fade, k[t] + bonus]))
        expected = (counts * v[: t + 1]).sum(axis=0) / counts.sum(axis=0)
        np.testing.assert_allclose(live[f"{T}.z"][t], expected, rtol=1e-11)


def test_a_halved_stream_is_a_larger_epsilon(tmp_path: Path) -> None:
    """A norm of x / 2 is that of x with four times the epsilon."""
    model = checkpoint.load(FOLDER)  # which halves it after each layer
    eps = [float(model.graph(IDS).values[f"blocks.{n}.ln1.eps"][0, 0]) for n in range(2)]
    assert eps == [1e-5, 4e-5]
    assert float(model.graph(IDS).values["ln_final.eps"][0, 0]) == 16e-5
    with pytest.raises(
        InputError,
        match="an eps that differs from the others, and a config",
    ):
        folded(model, {("blocks.1.ln1.eps", 0, 0): 1e-5})
    never = changed(tmp_path / "never", rescale_every=0)
    assert float(never.graph(IDS).values["ln_final.eps"][0, 0]) == 1e-5


def test_a_token_changes_itself_and_those_after() -> None:
    live = Evaluator(checkpoint.load(FOLDER).graph(IDS))
    before = live[f"{T}.z"].copy()
    live.set("tokens", 1, 0, 7)
    assert (np.abs(live[f"{T}.z"] - before).max(axis=1) > 0).tolist() == [False] + 4 * [True]


def test_set_sum_is_carried_on_alike_everywhere() -> None:
    graph = checkpoint.load(FOLDER).graph(IDS)
    live = Evaluator(graph)
    live.set(f"{T}.sum", 1, 0, 2.0)
    logits = live["logits"].copy()
    found = variants(graph, [{(f"{T}.sum", 1, 0): 2.0}])["logits"][0]
    np.testing.assert_allclose(logits, found, rtol=1e-12)
    live.run()
    np.testing.assert_allclose(live["logits"], found, rtol=1e-12)
    assert np.abs(logits[2:] - graph.values["logits"][2:]).max() > 1e-6
    np.testing.assert_array_equal(logits[:2], graph.values["logits"][:2])


def test_parts_that_are_off_write_nothing() -> None:
    live = Evaluator(checkpoint.load(FOLDER).graph(IDS))
    for part in ("time", "mlp"):
        live.set(f"blocks.0.{part}.switch", 0, 0, 0)
        np.testing.assert_array_equal(live[f"blocks.0.{part}_out"], 0)


def test_options_that_are_not_known_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="attention_hidden_size"):
        changed(tmp_path / "none", attention_hidden_size=-1)
