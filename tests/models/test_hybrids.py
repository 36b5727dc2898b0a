"""Hybrids of states and attention: layers, what configs may say, and what is counted."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import (
    GOLDEN,
    InIronCalc,
    assert_libreoffice_agrees_after,
    assert_recomputes_after,
    golden_models,
)

from cellformer.engine import InputError
from cellformer.engine.cells.batch import CellName
from cellformer.engine.learning import decoders
from cellformer.engine.models import checkpoint
from cellformer.engine.models.architectures.llama import ATTENDS, MLP, STATES, WRITES
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import forecast
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read
from cellformer.exporters.file.xlsx import write

IDS = [3, 1, 5, 2, 4]
HYBRIDS = ("granitemoehybrid", "bamba", "falcon_h1", "nemotron_h")


def changed(name: str, folder: Path, change: dict) -> Path:
    """A golden model with another config."""
    shutil.copytree(GOLDEN / name, folder / "model")
    config = json.loads((GOLDEN / name / "config.json").read_text())
    (folder / "model" / "config.json").write_text(json.dumps(config | change))
    return folder / "model"


def test_each_layer_is_one_part() -> None:
    model = golden_models()["nemotron_h"]
    assert model.spec.layers == ((STATES,), (WRITES,), (ATTENDS,), (MLP,))
    blocks = model.graph(IDS).blocks
    assert "blocks.0.ssm_out" in blocks and "blocks.2.attn_out" in blocks
    assert not any(name.endswith(("resid_mid", "ln2.w")) for name in blocks)


def test_letters_of_older_configs_name_the_same_layers(tmp_path: Path) -> None:
    older = {"layers_block_type": None, "hybrid_override_pattern": "ME*-", "num_hidden_layers": 9}
    found = checkpoint.load(changed("nemotron_h", tmp_path, older))
    assert found.spec == golden_models()["nemotron_h"].spec


@pytest.mark.parametrize("name", HYBRIDS)
def test_all_weights_are_counted_and_only_attention_has_a_cache(name: str) -> None:
    model = golden_models()[name]
    found = forecast.parameters(model)
    assert found["states"] > 0 and found["attention"] > 0
    assert sum(found.values()) == sum(w.size for w in model.weights.values())
    assert forecast.kv_numbers(model) == 2 * model.spec.kv_heads * model.spec.d_head


@pytest.mark.parametrize(
    "name, change, said",
    [
        ("granitemoehybrid", {"layer_types": ["conv", "mamba"]}, "layer_types has 'conv'; write"),
        ("granitemoehybrid", {"layer_types": ["mamba"]}, "lists 1 layers, but the model has 2"),
        ("granitemoehybrid", {"mamba_d_head": 3}, "mamba_n_heads = 4 times mamba_d_head = 3"),
        ("bamba", {"mamba_n_groups": 3}, "mamba_n_groups = 3 must divide mamba_n_heads = 4"),
        ("falcon_h1", {"key_multiplier": 0.0}, "key_multiplier is 0"),
        ("falcon_h1", {"ssm_multipliers": [1.0]}, "it must be a list of 5 numbers"),
        ("nemotron_h", {"moe_latent_size": 2}, "moe_latent_size = 2 is not supported"),
        ("nemotron_h", {"layers_block_type": ["mamba", "conv"]}, "layers_block_type has 'conv'"),
    ],
)
def test_refused(name: str, change: dict, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        checkpoint.load(changed(name, tmp_path, change))


@pytest.mark.parametrize("name", [*HYBRIDS, "lfm2_moe"])
def test_no_new_one_is_trained(name: str) -> None:
    assert name not in decoders.names()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*HYBRIDS, "lfm2_moe"])
def test_another_prompt_is_computed_in_other_programs(
    name: str, tmp_path: Path, libreoffice: None
) -> None:
    """Other words are typed into files whose every value is wrong: the logits are those of a
    graph of these words."""
    model = golden_models()[name]
    book = model_workbook.build(name, model, passage(model, [2, 0, 3], 3))
    cells = read(write(book, tmp_path / f"{name}.xlsx"))
    words = book.labels["vocab"]
    edits: dict[CellName, float | str] = {("prompt.pick", n, 0): words[n + 5] for n in range(3)}
    after = assert_recomputes_after(edits, InIronCalc(cells.path), book, cells)
    wanted = model.graph([5, 6, 7]).values["logits"]  # [n_tokens, d_vocab]
    for token, word in np.ndindex(*wanted.shape):
        assert abs(after.cell(*book.cell("logits", token, word)) - wanted[token, word]) < 1e-9
    assert_libreoffice_agrees_after([edits], book, cells, tmp_path)
