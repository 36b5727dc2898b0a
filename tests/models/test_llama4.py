"""Llama 4: chunks of the text, queries that grow, experts that read their share; and what configs
may say."""

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
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.folding import folded
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read
from cellformer.exporters.file.xlsx import write

IDS = [3, 1, 5, 2, 4]


def test_a_token_sees_its_chunk_or_all_before_it() -> None:
    """The first layer has chunks of three tokens; in the second, queries grow at every other."""
    values = golden_models()["llama4"].graph(IDS).values
    near, far = (values[f"blocks.{n}.attn.h0.pattern"] > 0 for n in range(2))
    assert [list(row) for row in near[3:]] == [[0, 0, 0, 1, 0], [0, 0, 0, 1, 1]]
    assert (far == np.tri(5)).all()
    grown = 1 + 0.5 * np.log([1, 2, 2, 3, 3])
    np.testing.assert_allclose(values["query.growth"][:, 0], grown, rtol=1e-15)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"floor_scale": 0}, "floor_scale is 0; it must be at least 1"),
        ({"interleave_moe_layer_step": 0}, "interleave_moe_layer_step is 0; it must be"),
        ({"no_rope_layer_interval": -1}, "no_rope_layer_interval is -1; it must be at least 1"),
        ({"no_rope_layers": [1]}, "no_rope_layers lists 1 layers, but the model has 2"),
        ({"attention_chunk_size": 0}, "a window must have at least 1 key"),
        ({"attention_chunk_size": None}, "layer_types has chunked_attention; set attention_chunk"),
        ({"layer_types": ["sliding_attention"] * 2}, "write full_attention or chunked_attention"),
        ({"num_experts_per_tok": 9}, "the model cannot choose 9 of 3 experts"),
        ({"head_dim": 3}, "d_rotary is 3; it must be even"),
    ],
)
def test_refused(change: dict, said: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(GOLDEN / "llama4", tmp_path / "model"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(InputError, match=said):
        checkpoint.load(folder)


def test_a_new_one_begins_in_small_sizes() -> None:
    sizes = {"d_vocab": 9, "n_ctx": 6, "d_model": 8, "n_layers": 2, "n_heads": 2, "d_mlp": 6}
    spec = decoders.new("llama4_text", **sizes).spec
    assert (spec.d_model, spec.d_mlp, spec.size("expert")) == (8, 6, 6)


def test_weights_cannot_hold_a_divisor_before_a_norm_without_gain() -> None:
    with pytest.raises(InputError, match="limits the size of queries"):
        folded(golden_models()["llama4"], {("blocks.0.attn.sqrt_d_head", 0, 0): 3.0})


@pytest.mark.slow
def test_another_prompt_is_computed_in_other_programs(tmp_path: Path, libreoffice: None) -> None:
    """Other words are typed into files whose every value is wrong: the logits are those of a
    graph of these words."""
    model = golden_models()["llama4"]
    book = model_workbook.build("llama4", model, passage(model, IDS, 5))
    cells = read(write(book, tmp_path / "llama4.xlsx"))
    words = book.labels["vocab"]
    edits: dict[CellName, float | str] = {("prompt.pick", n, 0): words[n + 6] for n in range(5)}
    after = assert_recomputes_after(edits, InIronCalc(cells.path), book, cells)
    wanted = model.graph([6, 7, 8, 9, 10]).values["logits"]  # [n_tokens, d_vocab]
    for token, word in np.ndindex(*wanted.shape):
        assert abs(after.cell(*book.cell("logits", token, word)) - wanted[token, word]) < 1e-9
    assert_libreoffice_agrees_after([edits], book, cells, tmp_path)
