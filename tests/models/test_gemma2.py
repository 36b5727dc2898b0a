"""Gemma 2, what only it has: caps, a null for none, attribution through norms on both sides."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN

from cellformer.engine import Evaluator
from cellformer.engine.models import checkpoint
from cellformer.engine.studies import ablation, lens

FOLDER = GOLDEN / "gemma2"
IDS = [8, 12, 3, 16, 6]


def changed(tmp_path: Path, **fields: object) -> Path:
    folder = Path(shutil.copytree(FOLDER, tmp_path / "gemma2"))
    config = json.loads((folder / "config.json").read_text()) | fields
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_scores_and_logits_are_capped() -> None:
    values = checkpoint.load(FOLDER).graph(IDS).values
    assert np.abs(values["uncapped"]).max() > 4 > np.abs(values["logits"]).max()
    scores = values["blocks.0.attn.h0.scores"]
    assert np.isneginf(scores[0, 1]) and np.abs(scores[np.isfinite(scores)]).max() < 1.5


def test_null_is_no_cap(tmp_path: Path) -> None:
    nulls = {"attn_logit_softcapping": None, "final_logit_softcapping": None}
    model = checkpoint.load(changed(tmp_path, **nulls))
    assert "uncapped" not in model.graph(IDS).blocks
    checkpoint.save(model, tmp_path / "again")
    assert checkpoint.load(tmp_path / "again").spec == model.spec


def test_shares_of_heads_add_up() -> None:
    graph = checkpoint.load(FOLDER).graph(IDS)
    views = lens.add_lens(graph, 2, 4, 5)
    assert len(views.stages) == 7 and views.stages[0].name == "blocks.0.resid_pre"
    live = Evaluator(graph)
    for part in ("blocks.1.attn.h2", "blocks.2.mlp"):
        live.set(f"{part}.switch", 0, 0, 0.0)
        total = sum(live[credit.name] for credit in views.credits["target"].values())
        np.testing.assert_allclose(total[:, 0], live["logits"][:, 4], atol=1e-12)
        name = f"{part}.result" if ".h" in part else "blocks.2.mlp_out"
        assert not live[views.credits["target"][name].name].any()


def test_every_head_and_mlp_can_be_switched_off() -> None:
    graph = checkpoint.load(FOLDER).graph(IDS)
    found = ablation.effects(graph, 4)
    assert len(found) == 3 * (1 + 4 + 1)
    assert all(abs(effect.change) > 1e-9 for effect in found)


def test_unsupported_gemma2_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="use_bidirectional_attention"):
        checkpoint.load(changed(tmp_path, use_bidirectional_attention=True))
