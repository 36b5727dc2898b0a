"""LFM2's layers with a convolution in place of attention: their switch, their weights, refusals."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN

from cellformer.engine import InputError
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.models import checkpoint
from cellformer.engine.studies import forecast

IDS = [3, 1, 5, 2, 4]


def test_convolution_sees_three_tokens_and_none_after() -> None:
    live = Evaluator(checkpoint.load(GOLDEN / "lfm2").graph(IDS))
    before = live["blocks.0.conv.z"].copy()
    live.set("tokens", 1, 0, 7)
    changed = np.abs(live["blocks.0.conv.z"] - before).max(axis=1) > 0
    assert changed.tolist() == [False, True, True, True, False]


def test_convolution_that_is_off_writes_nothing() -> None:
    live = Evaluator(checkpoint.load(GOLDEN / "lfm2").graph(IDS))
    live.set("blocks.0.conv.switch", 0, 0, 0)
    np.testing.assert_array_equal(live["blocks.0.conv_out"], 0)


def test_layers_with_a_convolution_add_nothing_to_the_kv_cache() -> None:
    model = checkpoint.load(GOLDEN / "lfm2")
    assert forecast.kv_numbers(model) == 2 * model.spec.kv_heads * model.spec.d_head
    assert forecast.parameters(model)["convolutions"] > 0


@pytest.mark.parametrize(
    "change, said",
    [
        ({"layer_types": ["conv", "mamba"]}, "full_attention or conv"),
        ({"layer_types": ["conv"]}, "each of 2 layers"),
        ({"conv_L_cache": 0}, "must see at least one token"),
    ],
)
def test_refused(change: dict, said: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "lfm2", tmp_path / "model")
    config = json.loads((GOLDEN / "lfm2" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=said):
        checkpoint.load(tmp_path / "model")
