"""Mamba-2's states: what fades, what limits steps, what its config may say; and what `info`
counts."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, golden_models

from cellformer.engine import InputError
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.models import checkpoint
from cellformer.engine.studies import forecast

IDS = [3, 1, 5, 2, 4]
STEP = "blocks.0.ssm.h1.step"


def test_state_is_what_is_left_of_it_and_what_is_added() -> None:
    """Every number of every head, by the recurrence as the paper writes it."""
    values = golden_models()["mamba2"].graph(IDS).values
    for head in range(4):
        h, group = f"blocks.1.ssm.h{head}", f"blocks.1.ssm.g{head // 2}"
        step, rate = values[f"{h}.step"][:, 0], -np.exp(values[f"{h}.A_log"][0, 0])
        B, C, u = values[f"{group}.B"], values[f"{group}.C"], values[f"{h}.u"]
        state = np.zeros((u.shape[1], B.shape[1]))  # [d_head, d_state]
        for t in range(len(IDS)):
            state = np.exp(step[t] * rate) * state + step[t] * np.outer(u[t], B[t])
            for n in range(B.shape[1]):
                np.testing.assert_allclose(values[f"{h}.n{n}.state"][t], state[:, n], atol=1e-14)
            z = state @ C[t] + values[f"{h}.D"][0, 0] * u[t]
            np.testing.assert_allclose(values[f"{h}.z"][t], z, atol=1e-14)


def test_steps_stay_within_their_limits() -> None:
    live = Evaluator(golden_models()["mamba2"].graph(IDS))
    for shift, limit in ((-50.0, 0.3), (50.0, 0.9)):
        live.set("blocks.0.ssm.h1.b_shift", 0, 0, shift)
        np.testing.assert_array_equal(live[STEP], np.full((len(IDS), 1), limit))


def test_without_limits_there_are_no_cells_for_them(tmp_path: Path) -> None:
    model = checkpoint.load(
        changed(tmp_path, {"time_step_limit": [0.0, {"__float__": "Infinity"}]})
    )
    live = Evaluator(model.graph(IDS))
    live.set("blocks.0.ssm.h1.b_shift", 0, 0, 50.0)
    assert "blocks.0.ssm.h1.unlimited" not in live.graph.blocks and live[STEP].min() > 40


def changed(folder: Path, change: dict) -> Path:
    """The golden model with another config."""
    shutil.copytree(GOLDEN / "mamba2", folder / "model")
    config = json.loads((GOLDEN / "mamba2" / "config.json").read_text())
    (folder / "model" / "config.json").write_text(json.dumps(config | change))
    return folder / "model"


@pytest.mark.parametrize(
    "change, said",
    [
        (
            {"head_dim": 4},
            "num_heads = 4 times head_dim = 4 must equal expand times hidden_size = 12",
        ),
        ({"n_groups": 3}, "n_groups = 3 must divide num_heads = 4"),
        ({"time_step_limit": [0.1]}, "write two numbers, the lowest step and the highest step"),
        ({"time_step_limit": [0.1, "high"]}, "write two numbers, the lowest step and the highest"),
        ({"state_size": 0}, "state_size gives 0 numbers, but must give at least 1"),
    ],
)
def test_refused(change: dict, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        checkpoint.load(changed(tmp_path, change))


@pytest.mark.parametrize("name", ["mamba", "mamba2"])
def test_parameters_of_states_are_no_attention(name: str) -> None:
    model = golden_models()[name]
    found = forecast.parameters(model)
    assert found["attention"] == 0 and found["states"] > 0
    assert sum(found.values()) == sum(w.size for w in model.weights.values())
    assert forecast.kv_numbers(model) == 0
