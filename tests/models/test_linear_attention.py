"""Qwen3-Next's linear attention: a memory that a delta rule writes, told by what each token wrote;
its switches, its weights, refusals."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, cli
from safetensors.numpy import load_file, save_file

from cellformer.engine import Graph, InputError
from cellformer.engine.cells.access import Mask
from cellformer.engine.cells.batch import variants
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.models import checkpoint, ops
from cellformer.engine.studies import circuits, forecast
from cellformer.exporters.pages import switches

IDS = [3, 1, 5, 2, 4]
FOLDER = GOLDEN / "qwen3_next"
HEAD = "blocks.0.attn.h1"


def test_what_is_recalled_is_read_of_a_memory_that_fades_and_is_replaced() -> None:
    """The rule as it is defined: a matrix that goes from token to token."""
    values = checkpoint.load(FOLDER).graph(IDS).values
    q, k = (values[f"blocks.0.attn.qk0.{which}"] for which in "qk")
    v, replaced, fades = (values[f"{HEAD}.{leaf}"] for leaf in ("v", "replaced", "fades"))
    memory = np.zeros((k.shape[1], v.shape[1]))
    for t in range(len(IDS)):
        memory = memory * np.exp(fades[t])
        memory = memory + np.outer(k[t], replaced[t] * (v[t] - k[t] @ memory))
        np.testing.assert_allclose(values[f"{HEAD}.recalled"][t], q[t] @ memory, rtol=1e-12)


def test_a_token_changes_what_later_ones_write_and_none_before() -> None:
    live = Evaluator(checkpoint.load(FOLDER).graph(IDS))
    before = live[f"{HEAD}.written"].copy()
    live.set("tokens", 1, 0, 7)
    changed = np.abs(live[f"{HEAD}.written"] - before).max(axis=1) > 0
    assert changed.tolist() == [False, True, True, True, True]


def test_set_cell_of_what_was_written_is_carried_on_alike_everywhere() -> None:
    graph = checkpoint.load(FOLDER).graph(IDS)
    live = Evaluator(graph)
    live.set(f"{HEAD}.written", 1, 0, 2.0)
    found = live[f"{HEAD}.written"].copy()
    overlap, offered = (graph.values[f"{HEAD}.{leaf}"] for leaf in ("overlap", "offered"))
    assert found[1, 0] == 2.0
    np.testing.assert_allclose(found[3], offered[3] - overlap[3, :3] @ found[:3], rtol=1e-14)
    np.testing.assert_array_equal(found[:, 1], graph.values[f"{HEAD}.written"][:, 1])
    of_variant = variants(graph, [{(f"{HEAD}.written", 1, 0): 2.0}])["logits"][0]
    np.testing.assert_allclose(live["logits"], of_variant, rtol=1e-12)
    live.run()
    np.testing.assert_allclose(live["logits"], of_variant, rtol=1e-12)


def test_cells_tell_what_they_read() -> None:
    graph = checkpoint.load(FOLDER).graph(IDS)
    first, third = graph.cell(f"{HEAD}.written", 0, 1), graph.cell(f"{HEAD}.written", 2, 1)
    assert first.formula == "offered[0,1]"
    assert third.formula == "offered[2,1] − overlap[2,:2]·written[:2,1]"
    read = [cell.name.removeprefix(f"{HEAD}.") for cell in third.precedents]
    before = ["overlap[2,0]", "overlap[2,1]", "written[0,1]", "written[1,1]"]
    assert read == ["offered[2,1]", *before]
    later = [cell.name for cell in third.dependents]
    assert f"{HEAD}.written[3,1]" in later and f"{HEAD}.written[2,1]" not in later
    assert not graph[f"{HEAD}.overlap"].has(2, 2) and graph[f"{HEAD}.reads"].has(2, 2)


def test_heads_that_are_off_write_nothing() -> None:
    live = Evaluator(checkpoint.load(FOLDER).graph(IDS))
    both = live["blocks.0.attn_out"].copy()
    one = live[f"{HEAD}.result"].copy()
    live.set(f"{HEAD}.switch", 0, 0, 0)
    np.testing.assert_allclose(live["blocks.0.attn_out"], both - one, atol=1e-15)
    live.set("blocks.0.attn.switch", 0, 0, 0)
    np.testing.assert_array_equal(live["blocks.0.attn_out"], 0)


def test_row_that_would_read_itself_is_refused() -> None:
    g = Graph()
    x = g.input("x", np.ones((3, 2)))
    overlap = g.block("overlap", ops.fraction, g.input("y", np.ones((3, 3))), x, mask=Mask())
    with pytest.raises(ValueError, match="must not read itself"):
        g.block("z", ops.corrected, x, overlap)


def test_switches_have_a_column_for_every_head_of_either_kind() -> None:
    heads = [*(f"blocks.0.attn.h{n}" for n in range(11)), "blocks.1.attn.h0"]
    found = switches.columns(["blocks.0.attn", *heads, "blocks.0.mlp", "blocks.0.mlp.e0"])
    assert list(found) == ["attn", "mlp", *(f"h{n}" for n in range(11)), "e0"]


def test_layers_with_linear_attention_add_nothing_to_the_kv_cache() -> None:
    model = checkpoint.load(FOLDER)
    assert forecast.kv_numbers(model) == 2 * model.spec.kv_heads * model.spec.d_head


def test_gated_heads_have_a_qk_circuit_and_no_ov_circuit() -> None:
    model = checkpoint.load(FOLDER)
    assert circuits.qk(model, "blocks.1.attn.h0").shape == (17, 17)
    with pytest.raises(InputError, match="multiplied by a gate"):
        circuits.ov(model, "blocks.1.attn.h0")


def test_part_that_guesses_several_words_is_left_aside(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "model")
    path = tmp_path / "model" / "model.safetensors"
    save_file(load_file(path) | {"mtp.fc.weight": np.ones((8, 16), np.float32)}, path)
    config = json.loads((FOLDER / "config.json").read_text())
    config |= {"mtp_num_hidden_layers": 1, "mamba_ssm_dtype": "float32", "attn_output_gate": True}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    model = checkpoint.load(tmp_path / "model")
    assert model.spec == checkpoint.load(FOLDER).spec


@pytest.mark.parametrize("name", ["qwen3_next", "lfm2", "bamba"])
def test_why_is_refused_where_some_layers_have_no_scores(name: str, tmp_path: Path) -> None:
    path = tmp_path / "why.xlsx"
    done = cli("build", GOLDEN / name, "--why", "--ids", "3,1,4", "-o", path)
    assert done.code == 2 and "scores of queries and keys in every layer" in done.err


@pytest.mark.parametrize(
    "change, said",
    [
        ({"layer_types": ["linear_attention", "conv"]}, "full_attention or linear_attention"),
        ({"layer_types": ["linear_attention"]}, "each of 2 layers"),
        ({"layer_types": None, "full_attention_interval": 0}, "it must be at least 1"),
        ({"linear_num_key_heads": 3}, "must divide linear_num_value_heads"),
        ({"linear_conv_kernel_dim": 0}, "d_conv is 0"),
        ({"mrope_section": [1, 1, 1]}, "mrope_section = "),
    ],
)
def test_refused(change: dict, said: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "model")
    config = json.loads((FOLDER / "config.json").read_text())
    (tmp_path / "model" / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=said):
        checkpoint.load(tmp_path / "model")
