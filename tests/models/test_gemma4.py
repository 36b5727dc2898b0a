"""Gemma 4: experts beside the MLP, tokens that see all others, and its workbook elsewhere."""

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
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.verify import read
from cellformer.exporters.file.xlsx import write

NAME, IDS = "gemma4_moe", [5, 6, 7, 8]
OF_SENTENCES = {"architectures": ["Gemma4TextModel"], "use_bidirectional_attention": "all"}


def changed(folder: Path, change: dict) -> Path:
    """The golden model with another config."""
    shutil.copytree(GOLDEN / NAME, folder / "model")
    config = json.loads((GOLDEN / NAME / "config.json").read_text())
    (folder / "model" / "config.json").write_text(json.dumps(config | change))
    return folder / "model"


def test_two_of_three_experts_share_a_token() -> None:
    values = golden_models()[NAME].graph(IDS).values
    at = "blocks.0.mlp"
    share, scale = values[f"{at}.router.share"], values[f"{at}.expert_scale"]
    assert ((share > 0).sum(axis=1) == 2).all()
    np.testing.assert_allclose(share.sum(axis=1), 1)
    np.testing.assert_allclose(values[f"{at}.router.scaled_share"], share * scale)


@pytest.mark.parametrize("both, sees", [("all", True), ("vision", False)])
def test_a_token_of_a_sentence_encoder_may_see_later_ones(
    both: str, sees: bool, tmp_path: Path
) -> None:
    change = OF_SENTENCES | {"use_bidirectional_attention": both}
    modules = [{"type": "Transformer"}, {"type": "Pooling", "pooling_mode_mean_tokens": True}]
    model = checkpoint.load(changed(tmp_path, change | {"sentence_modules": modules}))
    assert model.spec.gives == "sentence"
    pattern = model.graph(IDS).values["blocks.0.attn.h0.pattern"]
    assert bool((np.triu(pattern, 1) > 0).any()) == sees


@pytest.mark.parametrize(
    "change, why",
    [
        ({"use_bidirectional_attention": "all"}, "the output layer of Gemma4ForCausalLM"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "write it into rope_parameters"),
        ({"num_experts": None}, "has no 'num_experts'"),
        ({"top_k_experts": 4}, "cannot choose 4 of 3 experts"),
    ],
)
def test_refused(change: dict, why: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=why):
        checkpoint.load(changed(tmp_path, change))


@pytest.mark.slow
def test_another_prompt_is_computed_in_other_programs(tmp_path: Path, libreoffice: None) -> None:
    """Other words are typed into a file whose every value is wrong: the logits are those of a
    graph of these words, which other experts read."""
    model = golden_models()[NAME]
    book = model_workbook.build(NAME, model, passage(model, [2, 0, 3], 4))
    cells = read(write(book, tmp_path / "book.xlsx"))
    words = book.labels["vocab"]
    edits: dict[CellName, float | str] = {
        ("prompt.pick", n, 0): words[word] for n, word in enumerate(IDS)
    }
    after = assert_recomputes_after(edits, InIronCalc(cells.path), book, cells)
    wanted = model.graph(IDS).values["logits"]  # [n_tokens, d_vocab]
    for token, word in np.ndindex(*wanted.shape):
        assert abs(after.cell(*book.cell("logits", token, word)) - wanted[token, word]) < 1e-9
    assert_libreoffice_agrees_after([edits], book, cells, tmp_path)
