"""Edited workbooks: what differs is found, and nothing else; the edited model comes back."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import EARLIER, GOLDEN, default_book, needs, random_model
from openpyxl import load_workbook

from cellformer.command import main as command
from engine import Evaluator, InputError, ModelSpec
from engine.models import checkpoint
from engine.models.generate import passage
from engine.studies import ablation
from engine.studies.folding import folded
from exporters import anymodel, edited
from exporters.book import Book
from exporters.verify import recalculate_in_libreoffice
from exporters.xlsx import write

N_EDITS = 100
SPARED = ("eps", "positions")  # not edited at random


def edit(path: Path, target: Path, change: Callable[[Any], None]) -> Path:
    """A copy of a workbook, changed through openpyxl."""
    sheets = load_workbook(path)
    change(sheets)
    sheets.save(target)
    return target


def random_edits(book: Book, n: int, seed: int) -> dict[tuple[str, int, int], float]:
    """Cells of inputs, in proportion to nothing: a switch is as likely as an embedding."""
    rng = np.random.default_rng(seed)
    inputs = [b for b in book.graph if b.kind in ("weight", "setting")]
    blocks = [b for b in inputs if b.leaf not in SPARED]
    found: dict[tuple[str, int, int], float] = {}
    while len(found) < n:
        block = blocks[int(rng.integers(len(blocks)))]
        i, j = (int(rng.integers(size)) for size in block.shape)
        value = float(np.round(rng.uniform(0.1, 1.0), 3))
        if abs(value - book.value(block.name, i, j)) > 1e-9:
            found[block.name, i, j] = value
    return found


@pytest.fixture(scope="module")
def hundred(built, tmp_path_factory) -> tuple[Path, dict[tuple[str, int, int], float]]:
    """A hundred random edits of the dialogue game and another prompt, saved by LibreOffice."""
    needs("libreoffice")
    folder = tmp_path_factory.mktemp("hundred")
    book = default_book("dialogue-game")
    edits = random_edits(book, N_EDITS, 5)

    def change(sheets: Any) -> None:
        for (name, i, j), value in edits.items():
            row, col = book.places[name].cell(i, j)
            sheets[book.places[name].sheet].cell(row + 1, col + 1).value = value
        sheets["Play"]["C5"] = "<BOS> 3 chiama Paolo"

    path = edit(built["dialogue-game"], folder / "edited.xlsx", change)
    return recalculate_in_libreoffice([path], folder / "out")[0], edits


def test_diff_finds_exactly_the_edits(hundred) -> None:
    path, edits = hundred
    found = edited.read(path)
    typed = "<BOS> 3 chiama Paolo"
    assert found.values == edits | {("sentence", 0, 0): typed}
    names = {f"{name}[{i},{j}]" for name, i, j in edits}
    assert {change.name for change in found.inputs} == names | {"sentence[0,0]"}
    assert found.overwritten == [] and found.unknown == []
    (sentence,) = (change for change in found.inputs if change.name == "sentence[0,0]")
    assert sentence.now == typed and found.words == typed.split()


def test_the_edited_sheet_is_what_the_engine_makes_of_its_edits(hundred) -> None:
    path, _ = hundred
    found = edited.read(path)
    live, sheets = found.live(), load_workbook(path, data_only=True)
    for name in ("tokens", "logits", "probs", "blocks.1.attn.h2.pattern"):
        place = found.book.places[name]
        for i, j in place.block.whole.cells():
            if place.block.has(i, j):
                row, col = place.cell(i, j)
                value = sheets[place.sheet].cell(row + 1, col + 1).value
                assert value == pytest.approx(live[name][i, j], abs=1e-9), (name, i, j)


def test_import_gives_the_sheet_s_logits(hundred, tmp_path: Path, monkeypatch, capsys) -> None:
    path, _ = hundred
    assert call(monkeypatch, "import", str(path), "-o", str(tmp_path / "model")) == 0
    model = checkpoint.load(tmp_path / "model")
    found = edited.read(path)
    logits = model.graph(found.ids).values["logits"]
    place = found.book.places["logits"]
    sheet = load_workbook(path, data_only=True)[place.sheet]
    for i, j in np.ndindex(*logits.shape):
        row, col = place.cell(i, j)
        assert sheet.cell(row + 1, col + 1).value == pytest.approx(logits[i, j], abs=1e-6)


def test_nothing_edited_nothing_found(built, monkeypatch, capsys) -> None:
    for name in EARLIER:
        assert call(monkeypatch, "diff", str(built[name])) == 0
        assert "nothing differs" in capsys.readouterr().out


def call(monkeypatch, *args: str) -> object:
    monkeypatch.setattr("sys.argv", ["cellformer", *args])
    try:
        command.main()
    except SystemExit as stopped:
        return stopped.code
    return 0


def test_diff_prints_the_edits_and_what_they_did(built, tmp_path, monkeypatch, capsys) -> None:
    weight = default_book("cat-sat").places["blocks.0.attn.h0.W_K"]

    def change(sheets: Any) -> None:
        sheets["Play"]["D8"] = "dog"  # picked in place of the second word
        sheets["Play"]["C18"] = 3  # top-k
        row, col = weight.cell(0, 0)
        sheets[weight.sheet].cell(row + 1, col + 1).value = "=1+1"

    path = edit(built["cat-sat"], tmp_path / "edited.xlsx", change)
    assert call(monkeypatch, "diff", str(path)) == 2  # openpyxl computes nothing
    assert "formula without a value" in capsys.readouterr().err
    needs("libreoffice")
    (path,) = recalculate_in_libreoffice([path], tmp_path / "out")
    assert call(monkeypatch, "diff", str(path)) == 0
    out = capsys.readouterr().out
    assert "the cat sat" in out and "the dog sat" in out and "top_k" in out
    assert "blocks.0.attn.h0.W_K[0,0]" in out and "next word" in out


def test_a_formula_typed_over_is_told_and_not_imported(
    built, tmp_path, monkeypatch, capsys
) -> None:
    place = default_book("cat-sat").places["blocks.0.attn.h0.scores"]
    row, col = place.cell(1, 0)

    def change(sheets: Any) -> None:
        sheets[place.sheet].cell(row + 1, col + 1).value = 0.5

    path = edit(built["cat-sat"], tmp_path / "edited.xlsx", change)
    found = edited.read(path)
    assert [c.name for c in found.overwritten] == ["blocks.0.attn.h0.scores[1,0]"]
    assert found.live()["blocks.0.attn.h0.scores"][1, 0] == 0.5
    assert call(monkeypatch, "import", str(path), "-o", str(tmp_path / "model")) == 2
    assert "cannot hold" in capsys.readouterr().err
    assert not (tmp_path / "model").exists()


WEIGHT = ("Weights 1", (23, 1))  # sheet, row and column from 0


def text_in_a_weight(sheets: Any) -> None:
    sheets["Weights 1"]["B24"] = "a lot"


def no_weight(sheets: Any) -> None:
    sheets["Weights 1"]["B24"] = None


def error_in_a_weight(sheets: Any) -> None:
    sheets["Weights 1"]["B24"] = "#DIV/0!"


def deleted_sheet(sheets: Any) -> None:
    del sheets["Weights 1"]


def deleted_source(sheets: Any) -> None:
    del sheets["Source"]


def damaged_source(sheets: Any) -> None:
    sheets["Source"]["A8"] = "UEsDBBQAAAAIAAAAIVxa"


def inserted_row(sheets: Any) -> None:
    sheets["Weights 1"].insert_rows(40)


def deleted_row(sheets: Any) -> None:
    sheets["Weights 1"].delete_rows(40)


def inserted_column(sheets: Any) -> None:
    sheets["Block 0"].insert_cols(3)


def unknown_token(sheets: Any) -> None:
    sheets["Play"]["D10"] = 99


BAD = [
    (text_in_a_weight, "holds the text 'a lot'"),
    (no_weight, "is empty"),
    (error_in_a_weight, "holds the error #DIV/0!"),
    (deleted_sheet, "sheet 'Weights 1' is missing"),
    (deleted_source, "no sheet Source"),
    (damaged_source, "its checkpoint is damaged"),
    (inserted_row, "a row was inserted in sheet 'Weights 1' about row 40"),
    (deleted_row, "a row was deleted in sheet 'Weights 1' about row 40"),
    (inserted_column, "a column was inserted in sheet 'Block 0' about column 3"),
    (unknown_token, "99 is no id"),
]


@pytest.fixture(scope="module")
def two_layers(tmp_path_factory) -> Path:
    """A two-layer GPT-2's workbook."""
    model = checkpoint.load(GOLDEN / "gpt2")
    book = anymodel.build("two-layers", model, passage(model, [1, 2, 3], 5))
    place = book.places["blocks.1.attn.h0.W_Q"]
    assert (place.sheet, place.cell(1, 0)) == WEIGHT
    return write(book, tmp_path_factory.mktemp("two") / "two-layers.xlsx")


@pytest.mark.parametrize(("change", "fact"), BAD)
def test_what_cannot_be_read_back_gets_one_line(
    change, fact: str, two_layers, tmp_path: Path, monkeypatch, capsys
) -> None:
    path = edit(two_layers, tmp_path / "edited.xlsx", change)
    for args in (("diff", str(path)), ("import", str(path), "-o", str(tmp_path / "model"))):
        assert call(monkeypatch, *args) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and printed.err.count("\n") == 1
        assert fact in printed.err and "edited.xlsx" in printed.err
    assert not (tmp_path / "model").exists()


def test_a_file_of_somebody_else_s(tmp_path: Path, monkeypatch, capsys) -> None:
    import openpyxl

    openpyxl.Workbook().save(tmp_path / "theirs.xlsx")
    assert call(monkeypatch, "diff", str(tmp_path / "theirs.xlsx")) == 2
    assert "no sheet Source" in capsys.readouterr().err


def test_a_model_without_a_checkpoint_layout(built, tmp_path: Path, monkeypatch, capsys) -> None:
    """final-step searches for a posited query: it is found by its name, and cannot be saved."""
    path = edit(built["final-step"], tmp_path / "edited.xlsx", lambda sheets: None)
    assert call(monkeypatch, "diff", str(path)) == 0
    capsys.readouterr()
    assert call(monkeypatch, "import", str(path), "-o", str(tmp_path / "model")) == 2
    assert "no checkpoint layout" in capsys.readouterr().err


# --- folding ----------------------------------------------------------------------------------

SPECS = {
    "attention only": ModelSpec(7, 6, 8, n_layers=2, n_heads=2, d_head=3, position="learned"),
    "MLP only": ModelSpec(7, 6, 8, n_layers=2, d_mlp=5, bias=True, norm="layer"),
    "with biases": ModelSpec(
        7, 6, 8, n_layers=2, n_heads=2, d_head=3, d_mlp=5, bias=True, norm="rms", tied=True,
        final_norm=True, position="rotary", d_rotary=2,
    ),
}  # fmt: skip
MODELS = {name: random_model(spec, 2) for name, spec in SPECS.items()}
MODELS |= {p.parent.name: checkpoint.load(p.parent) for p in sorted(GOLDEN.glob("*/config.json"))}
WITH_BIAS = ("with biases", "MLP only", "gpt2", "gpt2-untied", "gpt_neo", "gpt_neox")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_folding_keeps_every_logit(name: str, seed: int, tmp_path: Path) -> None:
    model = ablation.averaged(MODELS[name], [[1, 2, 3, 4, 5]])
    graph = model.graph([3, 1, 2, 6])
    rng = np.random.default_rng(seed)
    change: dict[tuple[str, int, int], float] = {}
    for block in graph:
        if block.leaf in ("switch", "sqrt_d_head"):
            change[block.name, 0, 0] = float(rng.choice([0.0, 1.0, 0.25, 1.5]) or 0.5)
        if block.leaf == "switch" and rng.random() < 0.3:
            change[block.name, 0, 0] = 0.0
        if block.leaf == "eps":
            change[block.name, 0, 0] = 0.01
    if name in WITH_BIAS and "mean_ablation" in graph.blocks:
        change["mean_ablation", 0, 0] = 1.0
    weight = next(b for b in graph if b.kind == "weight")
    change[weight.name, 0, 0] = 0.123
    live = Evaluator(graph)
    for cell, value in change.items():
        live.set(*cell, value)
    checkpoint.save(folded(model, change), tmp_path)
    again = checkpoint.load(tmp_path).graph([3, 1, 2, 6])
    np.testing.assert_allclose(again.values["logits"], live["logits"], atol=1e-9)


def test_what_weights_cannot_say_is_refused() -> None:
    llama = ablation.averaged(MODELS["llama"], [[1, 2, 3]])
    off = {("mean_ablation", 0, 0): 1.0, ("blocks.0.attn.h0.switch", 0, 0): 0.0}
    with pytest.raises(InputError, match="no bias to hold it"):
        folded(llama, off)
    with pytest.raises(InputError, match="cannot hold that"):
        folded(llama, {("rotary.frequency", 0, 0): 2.0})
    with pytest.raises(InputError, match="different eps"):
        folded(llama, {("blocks.0.ln1.eps", 0, 0): 0.1})
    with pytest.raises(InputError, match="is 0"):
        folded(llama, {("blocks.0.attn.sqrt_d_head", 0, 0): 0.0})


@pytest.mark.parametrize("name", MODELS)
def test_every_model_s_workbook_can_be_read_back(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    book = anymodel.build("any", model, passage(model, [1, 2, 3], 5))
    path = write(book, tmp_path / "any.xlsx")
    edits = random_edits(book, 5, 1)

    def change(sheets: Any) -> None:
        for (block, i, j), value in edits.items():
            row, col = book.places[block].cell(i, j)
            sheets[book.places[block].sheet].cell(row + 1, col + 1).value = value

    found = edited.read(edit(path, tmp_path / "edited.xlsx", change))
    assert found.values == edits
    assert found.ids == [1, 2, 3]
    assert np.isfinite(found.live()["logits"]).all()


def test_a_model_too_large_to_be_carried_is_named(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("exporters.source.MOST_WEIGHTS", 10)
    model = replace(MODELS["gpt2"])
    path = write(anymodel.build("big", model, passage(model, [1, 2])), tmp_path / "big.xlsx")
    assert call(monkeypatch, "diff", str(path)) == 2
    assert "--model" in capsys.readouterr().err
    shutil.copytree(GOLDEN / "gpt2", tmp_path / "gpt2")
    assert call(monkeypatch, "diff", str(path), "--model", str(tmp_path / "gpt2")) == 0
    assert "nothing differs" in capsys.readouterr().out
