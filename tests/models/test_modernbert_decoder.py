"""ModernBERT's decoder: its windows, what is refused, and its workbook in other programs."""

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

NAME = "modernbert-decoder"


def changed(folder: Path, change: dict) -> Path:
    """The golden model with another config."""
    shutil.copytree(GOLDEN / NAME, folder / "model")
    config = json.loads((GOLDEN / NAME / "config.json").read_text())
    (folder / "model" / "config.json").write_text(json.dumps(config | change))
    return folder / "model"


@pytest.mark.parametrize(
    "change, window",
    [({}, 3), ({"sliding_window": None}, 3), ({"sliding_window": None, "local_attention": 9}, 4)],
)
def test_the_window_is_half_of_what_is_near(change: dict, window: int, tmp_path: Path) -> None:
    assert checkpoint.load(changed(tmp_path, change)).spec.windows == (None, window)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"sliding_window": 0}, "a window has 0 tokens"),
        ({"sliding_window": None, "local_attention": None}, "set local_attention to 2 or more"),
        ({"architectures": ["ModernBertDecoderForSequenceClassification"]}, "gives no class"),
    ],
)
def test_refused(change: dict, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        checkpoint.load(changed(tmp_path, change))


@pytest.mark.slow
def test_another_prompt_is_computed_in_other_programs(tmp_path: Path, libreoffice: None) -> None:
    """Other words are typed into a file whose every value is wrong: the logits are those of a
    graph of these words, more than a window has."""
    model, ids = golden_models()[NAME], [5, 6, 7, 8, 9]
    book = model_workbook.build(NAME, model, passage(model, [2, 0, 3, 1, 4], 5))
    cells = read(write(book, tmp_path / "book.xlsx"))
    words = book.labels["vocab"]
    edits: dict[CellName, float | str] = {
        ("prompt.pick", n, 0): words[word] for n, word in enumerate(ids)
    }
    after = assert_recomputes_after(edits, InIronCalc(cells.path), book, cells)
    wanted = model.graph(ids).values["logits"]  # [n_tokens, d_vocab]
    for token, word in np.ndindex(*wanted.shape):
        assert abs(after.cell(*book.cell("logits", token, word)) - wanted[token, word]) < 1e-9
    assert_libreoffice_agrees_after([edits], book, cells, tmp_path)
