"""A formula that was replaced by another one, a word that was renamed: told, and never imported."""

from pathlib import Path

import pytest
from conftest import cli, default_book, saved, typed
from corners import corner
from openpyxl import load_workbook

import cellformer as cf
from cellformer import names
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.programs import recompute_in_gnumeric
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import edited
from cellformer.exporters.edits.formula_diff import alike
from cellformer.exporters.file.xlsx import write

pytestmark = pytest.mark.slow

HEAD = "blocks.0.attn.h0"


@pytest.mark.parametrize(
    "spelt",
    [
        "SUMPRODUCT(B$2:B$9, 'Weights 1'!F2:F9) * 0.7978845608028654+MAX(C3:C3)",
        "sumproduct($B2:$B9,'Weights 1'!$F$2:$F$9)*0.797884560802865+MAX(C3)",
        "SUMPRODUCT('Block 0'!B2:B9,'Weights 1'!F2:F9)*.7978845608028654+_xlfn.MAX(C3)",
        "SUMPRODUCT(B2:B9,'Weights 1'!F2:F9)*7.978845608028654E-1+MAX(C3)",
    ],
)
def test_another_spelling_is_the_same_formula(spelt: str) -> None:
    built = "SUMPRODUCT(B$2:B$9,'Weights 1'!F2:F9)*0.7978845608028654+MAX(C3:C3)"
    assert alike(built, spelt, "Block 0")


@pytest.mark.parametrize(
    ("built", "now"),
    [
        ("B2*C2", "B2*C3"),
        ("B2*C2", "B2*C2*1"),
        ("B2*C2", "'Block 1'!B2*C2"),
        ("'Block 1'!B2", "'Block 2'!B2"),
        ("B2:B9", "B2,B9"),
        ("EXP(B2-B3)", "EXP(B2)-B3"),
        ("B2*0.5", "B2*0.50000001"),
        ('IF(B2="a b",1,0)', 'IF(B2="ab",1,0)'),
        ('IF(B2="$A",1,0)', 'IF(B2="A",1,0)'),
        ("IF(B2,TRUE,1)", "IF(B2,FALSE(),1)"),
    ],
)
def test_another_formula_is_another_one(built: str, now: str) -> None:
    assert not alike(built, now, "Block 0")


@pytest.fixture(scope="module")
def books(tmp_path_factory) -> dict[str, Book]:
    """Of words, of a worksheet, of an encoder."""
    encoder = checkpoint.load(corner("distilbert", tmp_path_factory.mktemp("m")))
    return {
        "cat-sat": default_book("cat-sat"),
        "loss": cf.build("loss"),
        "distilbert": model_workbook.build("distilbert", encoder, passage(encoder, [1, 2])),
    }


@pytest.fixture(scope="module")
def files(books, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("built")
    return {name: write(book, folder / f"{name}.xlsx") for name, book in books.items()}


# of each book: cells by their names, and what is put there
PUT: dict[str, dict[tuple[str, int, int], float | str]] = {
    "cat-sat": {
        (f"{HEAD}.scores", 1, 0): "=1-1",
        ("logits", 2, 4): "=50",
        ("choice.chosen", 2, 0): "=MAX(3,4)",
        ("vocabulary", 3, 0): "elephant",
        ("choice.order", 1, 0): 7.0,
    },
    "loss": {("weights", 0, 0): 5.0, ("code_P", 0, 0): "=1+2"},
    "distilbert": {(f"{HEAD}.pattern", 1, 1): "=0.5+0", (f"{HEAD}.W_Q", 1, 1): 0.25},
}


@pytest.fixture(scope="module")
def put_files(books, files, tmp_path_factory) -> dict[str, Path]:
    """Copies with things typed into them; the values of formulas are not there yet."""
    folder, found = tmp_path_factory.mktemp("put"), {}
    for name, book in books.items():
        cells = {book.cell(*cell): value for cell, value in PUT[name].items()}
        found[name] = typed(files[name], folder / f"{name}.xlsx", cells)
    return found


def told(path: Path) -> dict[str, tuple]:
    found = edited.read(path, worksheets=names.book)
    changes = [*found.inputs, *found.overwritten, *found.labels]
    return {change.name: (change.was, change.now) for change in changes}


def assert_told(name: str, path: Path) -> None:
    found = told(path)
    assert set(found) == {f"{block}[{i},{j}]" for block, i, j in PUT[name]}
    for (block, i, j), value in PUT[name].items():
        was, now = found[f"{block}[{i},{j}]"]
        assert now == value
        assert isinstance(value, float) or not value.startswith("=") or str(was).startswith("=")


def test_other_spellings_are_no_edits(put_files, tmp_path, libreoffice) -> None:
    """As LibreOffice saves it."""
    paths = saved(put_files, tmp_path / "out")
    for name, path in paths.items():
        assert_told(name, path)
    done = cli("diff", paths["cat-sat"])
    assert done.code == 0
    for text in ("=1-1", "=50", "SUMPRODUCT(", f"{HEAD}.scores[1,0]", "elephant", "next word"):
        assert text in done.out
    refused = cli("import", paths["distilbert"], "-o", tmp_path / "model")
    assert refused.code == 2 and "pattern[1,1]" in refused.err and "=0.5+0" in refused.err
    assert not (tmp_path / "model").exists()


def test_gnumeric_spellings(put_files, tmp_path, gnumeric) -> None:
    for name in ("cat-sat", "distilbert"):
        saved = recompute_in_gnumeric(put_files[name], tmp_path / f"{name}.xlsx")
        assert_told(name, saved.path)


def test_openpyxl_drops_values(files, put_files, tmp_path) -> None:
    load_workbook(files["cat-sat"]).save(tmp_path / "cat-sat.xlsx")
    assert told(tmp_path / "cat-sat.xlsx") == {}
    done = cli("diff", put_files["distilbert"])
    assert done.code == 2
    assert f"({HEAD}.pattern[1,1]) has a formula without a value, =0.5+0" in done.err


@pytest.mark.parametrize(
    ("cell", "value"),
    [(("vocabulary", 3, 0), "elephant"), (("choice.chosen", 2, 0), 4.0), (("logits", 0, 1), 50.0)],
)
def test_settings_outside_a_checkpoint_are_named(files, tmp_path, cell, value) -> None:
    path = typed(
        files["cat-sat"], tmp_path / "t.xlsx", {default_book("cat-sat").cell(*cell): value}
    )
    done = cli("import", path, "-o", tmp_path / "model")
    assert done.code == 2
    assert f"({cell[0]}[{cell[1]},{cell[2]}])" in done.err
    assert "a checkpoint cannot store this change" in done.err
    assert not (tmp_path / "model").exists()


def test_edited_texts_of_pages_are_listed(built, tmp_path) -> None:
    book = default_book("two-layers")
    word, label = ("Trajectory", 5, 1), ("Words", 0, 0)  # a word that is asked for, a title
    found = edited.read(
        typed(built["two-layers"], tmp_path / "t.xlsx", {word: "mat", label: "My words"})
    )
    assert [(c.name, c.now) for c in found.inputs] == [("Trajectory!B6", "mat")]
    assert [(c.where, c.was, c.now) for c in found.labels] == [
        ("Words!A1", book.sheets["Words"].entries[0, 0].value, "My words")
    ]
    assert cli("import", tmp_path / "t.xlsx", "-o", tmp_path / "model").code == 0
