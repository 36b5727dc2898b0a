"""ALBERT's layers, which share their weights; ESM's masked tokens, which have no vector."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN

from cellformer.engine import InputError
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.models import checkpoint

IDS = [3, 1, 5, 2]
MASK = 16  # of the golden ESM


def test_one_weight_cell_changes_both_layers() -> None:
    live = Evaluator(checkpoint.load(GOLDEN / "albert").graph(IDS))
    before = [live[f"blocks.{layer}.attn.h0.q"].copy() for layer in range(2)]
    live.set("blocks.0.attn.h0.b_Q", 0, 1, 7.0)
    after = [live[f"blocks.{layer}.attn.h0.q"] for layer in range(2)]
    assert (np.abs(after[0] - before[0])[:, 1] > 1).all()
    assert (np.abs(after[1] - before[1])[:, 1] > 1).all()


def test_saved_albert_has_one_set_of_weights(tmp_path: Path) -> None:
    checkpoint.save(checkpoint.load(GOLDEN / "albert"), tmp_path / "again")
    saved = (tmp_path / "again" / "model.safetensors").read_bytes()
    assert saved.count(b"attention.query.weight") == 1


def test_groups_that_are_more_than_layers_are_refused(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "albert", tmp_path / "model")
    config = json.loads((GOLDEN / "albert" / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | {"num_hidden_groups": 3}))
    with pytest.raises(InputError, match="check num_hidden_groups"):
        checkpoint.load(tmp_path / "model")


def test_masked_token_has_no_vector_and_others_make_up_for_it() -> None:
    model = checkpoint.load(GOLDEN / "esm")
    embed = model.graph([3, MASK, 5, 2]).values["embed"]
    np.testing.assert_array_equal(embed[1], 0)
    np.testing.assert_allclose(embed[0], model.weights["W_E"][3] * 0.88 * 4 / 3, rtol=1e-15)


def test_text_of_masked_tokens_alone_has_numbers() -> None:
    assert np.isfinite(checkpoint.load(GOLDEN / "esm").graph([MASK]).values["logits"]).all()


def test_padding_does_not_count_as_unmasked() -> None:
    model = checkpoint.load(GOLDEN / "esm")
    padded = model.graph([3, MASK, 5, 2])
    padded.fill("attention_mask", np.array([[1.0], [1.0], [1.0], [0.0]]))
    alone = model.graph([3, MASK, 5])
    np.testing.assert_allclose(
        padded.values["logits"][:3], alone.values["logits"], rtol=0, atol=1e-12
    )
