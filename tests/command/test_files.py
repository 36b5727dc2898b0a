"""Workbooks' files where commands take a name: their cells explained, traced, run and swept, with
what was typed into them."""

from pathlib import Path
from random import Random

import pytest
from conftest import GOLDEN, Built, cli, default_book, told

import cellformer as cf
from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.values import CellError
from cellformer.exporters.compose.address import address
from cellformer.exporters.file.reading import WorkbookFile

N_CELLS = 67  # of each of three workbooks
EDITS = {("W_E", 1, 0): 0.5, ("blocks.0.attn.h0.W_V", 2, 2): 3.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("edited")
    cf.write(cf.build("cat-sat"), folder / "edited.xlsx", edits=EDITS)
    cf.write(cf.build("loss"), folder / "loss-edited.xlsx", edits={("counts", 0, 0): 5.0})
    return folder


def drawn(path: Path) -> dict[str, object]:
    """Formula cells of a workbook by their addresses, with the values in the file."""
    file = WorkbookFile(path)
    found = {
        address(sheet, Rect(i, i + 1, j, j + 1)): value
        for sheet in file
        for (i, j), value in file[sheet].computed.items()
        if not isinstance(value, CellError)
    }
    chosen = Random(2026).sample(sorted(found), N_CELLS)
    return {where: found[where] for where in chosen}


def assert_same(found: object, saved: object, where: str) -> None:
    if isinstance(saved, bool | str) or saved is None:
        assert found == ("" if saved is None else saved), where
    else:
        assert found == pytest.approx(saved, rel=1e-9, abs=1e-9), where


@pytest.mark.slow
@pytest.mark.parametrize("name", ["edited.xlsx", "loss-edited.xlsx", "adder"])
def test_random_formulas_are_explained_and_traced(name: str, folder: Path, built: Built) -> None:
    path = folder / name if name.endswith(".xlsx") else built[name]
    cells = drawn(path)
    explained = told("explain", path, *cells)["cells"]
    for (where, saved), one in zip(cells.items(), explained, strict=True):
        assert one["at"] == where and one["says"][0].startswith(f"{where} is ")
        assert_same(one["value"], saved, where)
        assert any(said.startswith("The cell's value is") for said in one["says"])
    traced = told("trace", path, *cells, "--depth", 0)["cells"]
    for one, other in zip(explained, traced, strict=True):
        assert other["cell"] in (one["cell"], one["at"])
        assert one["value"] == other["value"]
        assert bool(one["reads"]) <= bool(other["reads"]), one["at"]


def test_explain_says_which_edit_reaches_a_cell(folder: Path) -> None:
    done = cli("explain", "edited", "Play!C12", "W_E[1,0]", cwd=folder)
    assert "The cell's value is 4.27575. As built, the value was 3.07703." in done.out
    assert "Embedding!B11 (W_E[1,0]) was 0.3 as built and is 0.5 now. With only this" in done.out
    assert "Someone typed 0.5 into this cell. As built, the cell was 0.3." in done.out
    (kept,) = told("explain", "edited.xlsx", "embed[0,0]", cwd=folder)["cells"]
    assert kept["edits"] == [] and "none of them affects this cell" in kept["says"][-1]


def test_explain_takes_the_many_edits_of_a_block_as_one(tmp_path: Path) -> None:
    edits = {("W_E", i, j): 0.1 * i - 0.2 * j for i in range(12) for j in range(5)}
    cf.write(cf.build("cat-sat"), tmp_path / "many.xlsx", edits=edits)
    (one,) = told("explain", tmp_path / "many.xlsx", "logits[2,6]")["cells"]
    (group,) = one["edits"]
    assert (group["cell"], group["at"]) == ("W_E", default_book("cat-sat").area("W_E"))
    assert group["alone"] == one["value"] != one["was"] and group["n"] > 50
    assert "edits of W_E affect this cell. With only these edits" in one["says"][-1]


@pytest.mark.slow
def test_trace_run_and_sweep_take_an_edited_file(folder: Path) -> None:
    by_name = cli("run", "cat-sat", "--set", "W_E[1,0]=0.5", "--set", "Block 0!D44=3").out
    assert cli("run", folder / "edited.xlsx").out == by_name
    back = cli("run", folder / "edited.xlsx", "--set", "Embedding!B11=0.3", "--json").out
    assert '"rank": 1' in back
    tree = cli("trace", folder / "edited.xlsx", "embed[1,0]", "--depth", 1).out
    assert "typed: 0.5; as built: 0.3" in tree
    swept = told("sweep", folder / "edited.xlsx", "Embedding!B11", "--from", "0.5", "--to", "1")
    first = told("run", folder / "edited.xlsx")["words"][0]
    assert swept["rows"][0]["logit"] == pytest.approx(first["logit"], abs=1e-12)
    watched = ("--target", "Play!C12", "--from", "0.5", "--to", "1")
    seen = told("sweep", folder / "edited.xlsx", "W_E[1,0]", *watched)
    assert seen["rows"][0]["shows"] == pytest.approx(first["logit"], abs=1e-12)


@pytest.mark.slow
def test_worksheets_are_run_as_they_were_saved(folder: Path) -> None:
    changes = {one["cell"]: one for one in told("run", folder / "loss-edited.xlsx")["changes"]}
    assert changes["counts[0,0]"] == {"cell": "counts[0,0]", "was": 8.0, "now": 5.0}
    assert "true_P[0,0]" in changes
    swept = told("sweep", folder / "loss-edited.xlsx", "counts[0,0]", "--target", "bits[0,0]")
    assert len(swept["rows"]) == 21


@pytest.mark.slow
def test_other_commands_take_the_model_of_a_file(folder: Path) -> None:
    parts = told("ablate", folder / "edited.xlsx")
    assert parts["rows"][0]["before"] == pytest.approx(0.4190, abs=1e-4)
    assert told("generate", folder / "edited.xlsx", "-n", 2)["text"].startswith("the cat sat mat")
    assert "has no model" in cli("ablate", folder / "loss-edited.xlsx").err
    wrong = cli("run", folder / "edited.xlsx", "--prompt", "a")
    assert wrong.code == 2 and "leave out --prompt" in wrong.err


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("verify", "edite"), "nearest: edited.xlsx"),
        (("diff", "loss-edit"), "nearest: loss-edited.xlsx"),
        (("explain", "edited", "Plai!C12"), "nearest: Play"),
        (("explain", "edited", "logitz[0,0]"), "nearest: logits"),
        (("explain", "edited", "Z9"), "write a cell such as 'Play!C12' or logits[2,5]"),
        (("run", "cat-sat", "--show", "*.pattrn"), "no block has a name like '*.pattrn'"),
        (("explain", "nothing", "A!A1"), "there is no workbook 'nothing'"),
        (("trace", "cat-sad", "logits[0,0]"), "nearest: cat-sat"),
        (("run", "cat-sat", "--show", "logitz"), "nearest: logits"),
        (("run", "cat-sat", "--target", "matt"), "nearest: mat"),
        (("verify", "edited", "--engine", "ironcalk"), "nearest: ironcalc"),
        (("open", "edite.xlsx"), "nearest: edited.xlsx"),
        (("explane", "edited"), "explain"),
        (("run", "cat-sat", "--targett", "mat"), "--target"),
    ],
    ids=lambda text: " ".join(text) if isinstance(text, tuple) else "",
)
def test_a_wrong_guess_names_the_nearest(asked: tuple[str, ...], told: str, folder: Path) -> None:
    done = cli(*asked, cwd=folder)
    assert done.code == 2 and told in done.err and len(done.err.splitlines()) == 1


def test_verify_finds_the_workbook_of_a_name(folder: Path) -> None:
    assert "agrees" in cli("verify", "edited", "--engine", "ironcalc", cwd=folder).out


IN_WORDS = {  # what `explain` says of a cell first
    ("cat-sat", "Play!D12"): "the probability of ‘mat’, in the table ‘What comes after ‘sat’’",
    ("cat-sat", "Play!B12"): "the word of rank 1, in the table ‘What comes after ‘sat’’",
    ("cat-sat", "blocks.0.attn.h0.pattern[2,1]"): (
        "the attention weight that ‘sat’ (token 2) gives to ‘cat’ (token 1), in head 0.0"
    ),
    ("dialogue-game", "probs[3,7]"): ("the probability of ‘2’ as the word after ‘Paolo’ (token 3)"),
    ("cat-sat", "Machine!C9"): "the cell beside ‘attention 0’ on the sheet Machine",
}


@pytest.mark.parametrize("cell", IN_WORDS, ids=" ".join)
def test_explain_says_what_a_cell_is_for(cell: tuple[str, str]) -> None:
    first, formula, *_ = told("explain", *cell)["cells"][0]["says"]
    assert f" is {IN_WORDS[cell]}; the cell's name is " in first
    assert formula.startswith("It computes ")


def test_explain_does_not_take_an_encoder_for_a_decoder() -> None:
    (row,) = cf.explain(cf.build(str(GOLDEN / "bert"), ids=[1, 2, 3]), "probs[0,1]")
    assert "as the word after" not in row.says[0] and "probs[0,1]: " in row.says[0]
