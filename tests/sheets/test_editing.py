"""Edited workbooks: what differs is found, and nothing else; the edited model comes back."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import (
    THIN,
    CellAt,
    Edits,
    assert_read_back,
    cli,
    default_book,
    golden_models,
    random_edits,
    random_model,
    saved,
    typed,
)
from corners import corner
from on_play import PICK_ROW, SETTINGS_ROW
from openpyxl import load_workbook

from cellformer.engine import Evaluator, Graph, InputError, Model, ModelSpec
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import ablation
from cellformer.engine.studies.folding import folded
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import edited
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.plan import Limits

pytestmark = pytest.mark.slow

N_EDITS = 100
TYPED = "<BOS> 3 chiama Paolo"
GAME = f"{THIN}dialogue-game"


def edit(path: Path, target: Path, change: Callable[[Any], None]) -> Path:
    """A copy of a workbook, changed through openpyxl."""
    sheets = load_workbook(path)
    change(sheets)
    sheets.save(target)
    return target


@pytest.fixture(scope="module")
def thin() -> Book:
    """The dialogue game of narrow vectors."""
    return default_book(GAME)


@pytest.fixture(scope="module")
def edits(thin) -> Edits:
    return random_edits(thin, N_EDITS, 5)


@pytest.fixture(scope="module")
def three(built, tmp_path_factory) -> Path:
    """Three edits of cat-sat, as openpyxl saves them, which computes nothing."""
    return edit(built["cat-sat"], tmp_path_factory.mktemp("three") / "three.xlsx", three_edits)


@pytest.fixture(scope="module")
def office(built, thin, edits, three, tmp_path_factory, libreoffice) -> dict[str, WorkbookFile]:
    """A hundred random edits of the dialogue game and another prompt; three edits of cat-sat:
    saved by LibreOffice."""
    folder = tmp_path_factory.mktemp("office")
    cells = {thin.cell(*cell): value for cell, value in edits.items()}
    cells[thin.cell("sentence", 0, 0)] = TYPED
    hundred = typed(built[GAME], folder / "hundred.xlsx", cells)
    paths = saved({"hundred": hundred, "three": three}, folder / "out")
    return {name: WorkbookFile(path) for name, path in paths.items()}


@pytest.fixture(scope="module")
def hundred(office) -> WorkbookFile:
    return office["hundred"]


@pytest.fixture(scope="module")
def found(hundred) -> edited.Edited:
    """What is found in it, read once."""
    return edited.read(hundred.path)


def test_diff_finds_exactly_the_edits(found, edits, libreoffice) -> None:
    assert found.values == edits | {("sentence", 0, 0): TYPED}
    names = {f"{name}[{i},{j}]" for name, i, j in edits}
    assert {change.name for change in found.inputs} == names | {"sentence[0,0]"}
    assert found.overwritten == [] and found.unknown == []
    (sentence,) = (change for change in found.inputs if change.name == "sentence[0,0]")
    assert sentence.now == TYPED and found.words == TYPED.split()


def test_edited_sheet_equals_the_engine(hundred, found, libreoffice) -> None:
    live = found.live()
    for name in ("tokens", "logits", "probs", "blocks.1.attn.h2.pattern"):
        place = found.book.places[name]
        for i, j in place.block.whole.cells():
            if place.block.has(i, j):
                value = hundred[place.sheet][place.cell(i, j)]
                assert value == pytest.approx(live[name][i, j], abs=1e-9), (name, i, j)


def test_import_gives_the_sheet_s_logits(hundred, found, tmp_path: Path, libreoffice) -> None:
    assert cli("import", hundred.path, "-o", tmp_path / "model").code == 0
    model = checkpoint.load(tmp_path / "model")
    logits = model.graph(found.ids).values["logits"]
    place = found.book.places["logits"]
    for i, j in np.ndindex(*logits.shape):
        shown = hundred[place.sheet][place.cell(i, j)]
        assert shown == pytest.approx(logits[i, j], abs=1e-6)


@pytest.mark.parametrize(
    "name", ("cat-sat", GAME, "final-step", "fluffy-creature", "semantic-tiny")
)
def test_nothing_edited_nothing_found(name: str, built) -> None:
    done = cli("diff", built[name])
    assert done.code == 0
    assert "nothing differs" in done.out


def three_edits(sheets: Any) -> None:
    """A word picked in place of the second, another top-k, and a formula for a weight."""
    sheets["Play"][f"D{PICK_ROW + 1}"] = "dog"
    sheets["Play"][f"C{SETTINGS_ROW + 3}"] = 3
    place = default_book("cat-sat").places["blocks.0.attn.h0.W_K"]
    row, col = place.cell(0, 0)
    sheets[place.sheet].cell(row + 1, col + 1).value = "=1+1"


def test_weight_formula_without_a_value(three) -> None:
    done = cli("diff", three)
    assert done.code == 2
    assert "formula without a value" in done.err


def test_diff_prints_the_edits_and_what_they_did(office) -> None:
    code, out, _ = cli("diff", office["three"].path)
    assert code == 0
    assert "the cat sat" in out and "the dog sat" in out and "top_k" in out
    assert "blocks.0.attn.h0.W_K[0,0]" in out and "next word" in out


@pytest.mark.parametrize(
    ("name", "i", "j", "formula"),
    [("choice.before", 1, 0, False), ("choice.before", 1, 3, True), ("choice.order", 2, 1, True)],
)
def test_formulas_and_starting_numbers_of_a_table(
    built, tmp_path, name: str, i: int, j: int, formula: bool
) -> None:
    at = default_book("cat-sat").cell(name, i, j)
    found = edited.read(typed(built["cat-sat"], tmp_path / "edited.xlsx", {at: 7.0}))
    changed, other = (found.overwritten, found.inputs)[:: 1 if formula else -1]
    assert [(c.name, c.now) for c in changed] == [(f"{name}[{i},{j}]", 7.0)] and other == []


def test_overwritten_formula_is_not_imported(built, tmp_path) -> None:
    at = default_book("cat-sat").cell("blocks.0.attn.h0.scores", 1, 0)
    path = typed(built["cat-sat"], tmp_path / "edited.xlsx", {at: 0.5})
    found = edited.read(path)
    assert [c.name for c in found.overwritten] == ["blocks.0.attn.h0.scores[1,0]"]
    assert found.live()["blocks.0.attn.h0.scores"][1, 0] == 0.5
    done = cli("import", path, "-o", tmp_path / "model")
    assert done.code == 2
    assert "a checkpoint cannot store this change" in done.err
    assert not (tmp_path / "model").exists()


WEIGHT = ("Weights 1", (8, 1))  # sheet, row and column from 0


def deleted_sheet(sheets: Any) -> None:
    del sheets["Weights 1"]


def deleted_source(sheets: Any) -> None:
    del sheets["Source"]


def inserted_row(sheets: Any) -> None:
    sheets["Weights 1"].insert_rows(12)


def deleted_row(sheets: Any) -> None:
    sheets["Weights 1"].delete_rows(12)


def inserted_column(sheets: Any) -> None:
    sheets["Block 0"].insert_cols(3)


BAD = [
    (deleted_sheet, "sheet 'Weights 1' is missing; restore the sheet's name"),
    (deleted_source, "no sheet Source"),
    (inserted_row, "a row was inserted in sheet 'Weights 1' near row 12"),
    (deleted_row, "a row was deleted in sheet 'Weights 1' near row 12"),
    (inserted_column, "a column was inserted in sheet 'Block 0' near column 5"),
]
TYPED_BADLY: list[tuple[CellAt, float | str, str]] = [
    (("Source", 7, 0), "UEsDBBQAAAAIAAAAIVxa", "the checkpoint in the workbook is damaged"),
]


@pytest.fixture(scope="module")
def two_layers(tmp_path_factory) -> Path:
    """A workbook of two small layers."""
    model = random_model(ModelSpec(3, 3, 4, n_layers=2, n_heads=1, d_head=2, d_mlp=2))
    book = model_workbook.build("two-layers", model, passage(model, [1, 2]))
    place = book.places["blocks.1.attn.h0.W_Q"]
    assert (place.sheet, place.cell(1, 0)) == WEIGHT
    return write(book, tmp_path_factory.mktemp("two") / "two-layers.xlsx")


@pytest.mark.parametrize(("change", "fact"), BAD)
def test_unreadable_workbook_is_one_line(change, fact: str, two_layers, tmp_path: Path) -> None:
    assert_refused(edit(two_layers, tmp_path / "edited.xlsx", change), fact, tmp_path)


@pytest.mark.parametrize(("cell", "value", "fact"), TYPED_BADLY)
def test_damaged_source_is_one_line(
    cell: CellAt, value: float | str, fact: str, two_layers, tmp_path: Path
) -> None:
    assert_refused(typed(two_layers, tmp_path / "edited.xlsx", {cell: value}), fact, tmp_path)


def assert_refused(path: Path, fact: str, tmp_path: Path) -> None:
    for args in (("diff", path), ("import", path, "-o", tmp_path / "model")):
        code, out, err = cli(*args)
        assert code == 2
        assert out == "" and err.count("\n") == 1
        assert fact in err and "edited.xlsx" in err
    assert not (tmp_path / "model").exists()


def test_workbook_of_another_program(tmp_path: Path) -> None:
    import openpyxl

    openpyxl.Workbook().save(tmp_path / "theirs.xlsx")
    done = cli("diff", tmp_path / "theirs.xlsx")
    assert done.code == 2
    assert "no sheet Source" in done.err


def test_model_without_checkpoint_layout(built, tmp_path: Path) -> None:
    """final-step searches for a posited query: it is found by its name, and cannot be saved."""
    path = edit(built["final-step"], tmp_path / "edited.xlsx", lambda sheets: None)
    assert cli("diff", path).code == 0
    done = cli("import", path, "-o", tmp_path / "model")
    assert done.code == 2
    assert "its architecture has no checkpoint format" in done.err


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
MODELS |= golden_models()
WITH_BIAS = ("with biases", "MLP only", "gpt2", "gpt2-untied", "gpt_neo", "gpt_neox")
WITH_BIAS += ("bloom", "falcon-rw", "opt", "opt-350m", "phi")
FIXED_EPS = (
    "opt",
    "opt-350m",
    "distilbert",
    "olmo",
    "rwkv",
    "bart",
    "mbart",
    "marian",
    "m2m_100",
    "blenderbot",
    "pegasus",
    "marian-two",
    "biogpt",
    "xglm",
    "falcon_mamba",
    "lfm2_moe",
)  # no field of their config has it, or not of every eps
BOUNDED = ("olmo", "mpt", "llama4")  # queries; weights cannot hold another divisor of scores


IDS = [3, 5, 2, 6]  # without 1, which is RoBERTa's padding


@cache
def averaged(name: str) -> tuple[Model, Graph]:
    """A model with averages, and its graph, which the seeds of a test share."""
    model = ablation.averaged(MODELS[name], [[2, 3, 4, 5]])
    return model, model.graph(IDS)


@pytest.mark.parametrize("layer", [0, 1])
def test_a_part_of_layers_that_share_weights_is_not_folded(layer: int) -> None:
    with pytest.raises(InputError, match="layers share its weights"):
        folded(averaged("albert")[0], {(f"blocks.{layer}.attn.h0.switch", 0, 0): 0.0})


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", [name for name in MODELS if name != "albert"])
def test_folding_keeps_every_logit(name: str, seed: int, tmp_path: Path) -> None:
    model, graph = averaged(name)
    rng = np.random.default_rng(seed)
    change: dict[tuple[str, int, int], float] = {}
    for block in graph:
        kept = name in BOUNDED and block.leaf == "sqrt_d_head"
        if block.leaf in ("switch", "sqrt_d_head") and not kept:
            change[block.name, 0, 0] = float(rng.choice([0.0, 1.0, 0.25, 1.5]) or 0.5)
        if block.leaf == "switch" and rng.random() < 0.3:
            change[block.name, 0, 0] = 0.0
        if block.leaf == "eps" and name not in FIXED_EPS:
            change[block.name, 0, 0] = 0.01
    if name in WITH_BIAS and "mean_ablation" in graph.blocks:
        change["mean_ablation", 0, 0] = 1.0
    weight = next(b for b in graph if b.kind == "weight")
    change[weight.name, 0, 0] = 0.123
    live = Evaluator(graph)
    for cell, value in change.items():
        live.set(*cell, value)
    checkpoint.save(folded(model, change), tmp_path)
    again = checkpoint.load(tmp_path).graph(IDS)
    read_out = "vector" if model.spec.gives == "sentence" else "logits"
    np.testing.assert_allclose(again.values[read_out], live[read_out], atol=1e-9)


def test_folding_refuses_different_eps() -> None:
    with pytest.raises(InputError, match="eps is always 1e-05 in a model of type opt; undo that"):
        folded(MODELS["opt"], {("ln_final.eps", 0, 0): 0.01})


def test_folding_refuses_some_edits() -> None:
    llama = ablation.averaged(MODELS["llama"], [[1, 2, 3]])
    off = {("mean_ablation", 0, 0): 1.0, ("blocks.0.attn.h0.switch", 0, 0): 0.0}
    with pytest.raises(InputError, match="no bias that could store the average"):
        folded(llama, off)
    with pytest.raises(InputError, match="a checkpoint cannot store that change"):
        folded(llama, {("rotary.frequency", 0, 0): 2.0})
    with pytest.raises(InputError, match="different eps"):
        folded(llama, {("blocks.0.ln1.eps", 0, 0): 0.1})
    with pytest.raises(InputError, match="is 0"):
        folded(llama, {("blocks.0.attn.sqrt_d_head", 0, 0): 0.0})


@pytest.mark.parametrize("name", SPECS)
def test_every_model_s_workbook_can_be_read_back(name: str, tmp_path: Path) -> None:
    """Those of golden models are read back in test_checkpoints, which has them."""
    model = MODELS[name]
    book = model_workbook.build("any", model, passage(model, [1, 2, 3], 4))
    path = write(book, tmp_path / "any.xlsx")
    edits = random_edits(book, 5, 1)
    cells = {book.cell(*cell): value for cell, value in edits.items()}
    assert_read_back(typed(path, tmp_path / "edited.xlsx", cells), edits, [1, 2, 3])


def test_model_too_large_to_be_carried_is_named(tmp_path: Path) -> None:
    folder = corner("gpt2", tmp_path / "gpt2")
    model = checkpoint.load(folder)
    book = model_workbook.build("big", model, passage(model, [1, 2]), limits=Limits(carried=10))
    path = write(book, tmp_path / "big.xlsx")
    done = cli("diff", path)
    assert done.code == 2
    assert "--model" in done.err
    done = cli("diff", path, "--model", folder)
    assert done.code == 0
    assert "nothing differs" in done.out
