"""The verdict on Start: that a program computes as cellformer did, or which cell is wrong first."""

from collections.abc import Iterator

import pytest
from conftest import (
    CellAt,
    InIronCalc,
    Value,
    default_book,
    libreoffice_after,
    needs,
)
from libreoffice import Formula

from cellformer import workbooks
from cellformer.engine.cells.access import Rect
from cellformer.exporters.compose import digest
from cellformer.exporters.compose.address import a1, quoted
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.digest import AGREES, EDITED
from cellformer.exporters.compose.ranges import Range, of_formulas
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import ledger

NAME = "cat-sat"
SHEETS = (
    *("Machine", "Embedding", "Block 0", "Readout", "Heads", "Lens", "Attribution"),
    *("Switches", "Sampling", "Printed", "Text", "Index"),
)
VERDICT = "Start", 3, 0
OF_BLOCKS = {  # of words that are given: one that is wrong in the words after changes these
    "Embedding": ("embed", 1, 2),
    "Block 0": ("blocks.0.attn.h0.scores", 2, 1),
    "Readout": ("logits", 1, 3),
}
WRONG = tuple(map(Formula, ("=1/0", "=2+40.5", "=12345.5", '="a text"')))


def plants(file: WorkbookFile) -> list[tuple[CellAt, Formula]]:
    """A formula of each sheet, and another one that stands there instead: as in a program that
    computes it otherwise. What is typed over it is reported otherwise (test_typed_over.py)."""
    found = []
    for k, sheet in enumerate(SHEETS):
        cells = sorted(file[sheet].formulas)
        cell = sheet, *cells[len(cells) // 4]
        if sheet in OF_BLOCKS:
            cell = default_book(NAME).cell(*OF_BLOCKS[sheet])
        found.append((cell, WRONG[k % len(WRONG)]))
    return found


def ranges_of(book: Book) -> list[Range]:
    own = digest.SHEET, Rect(digest.SUMMARY, digest.END, 0, digest.END)
    line = [ledger.watch(book).line] if ledger.SHEET in book.sheets else []
    return of_formulas(book, [own, *line])


def address(at: CellAt) -> str:
    sheet, row, col = at
    return f"{quoted(sheet)}!{a1(Rect(row, row + 1, col, col + 1))}"


@pytest.fixture(scope="module")
def sheet(built) -> Iterator[InIronCalc]:
    needs("ironcalc")
    yield InIronCalc(built[NAME])


def verdict(sheet: InIronCalc, wrong: dict[CellAt, Value]) -> str:
    """What Start says while cells hold something wrong."""
    at = {cell: (sheet.number[cell[0]], cell[1] + 1, cell[2] + 1) for cell in wrong}
    before = {cell: sheet.model.get_cell_content(*at[cell]) for cell in wrong}
    for cell, value in wrong.items():
        sheet.model.set_user_input(*at[cell], str(value))
    sheet.model.evaluate()
    said = sheet[VERDICT]
    for cell, held in before.items():
        sheet.model.set_user_input(*at[cell], held)
    sheet.model.evaluate()
    return str(said)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cat-sat", "loss", "learn", "gram-schmidt", "semantic-tiny"])
def test_as_built_every_formula_is_counted(name: str) -> None:
    """All but those of Digest itself, and those that depend on it: one on Start, and, with a
    ledger, its line and what shows that, once on Digest; on Check of a model three gaps and
    statuses, and two claims, of worksheets one gap."""
    book = default_book(name)
    on_it = sum(e.formula is not None for e in book.sheets[digest.SHEET].entries.values())
    of_lines = sum(shown.endswith(".ledger") for shown in book.shown)
    of_it = 1 + of_lines + (8 if isinstance(book, ModelBook) else "check.largest" in book.shown)
    n = book.n_formulas - on_it - of_it
    said = book.clean.cell(*VERDICT)
    assert said == f"{AGREES} ({n:,} formulas)."
    told = [book.clean.cell("Check", row, 0) for row in range(60)] if "Check" in book.sheets else []
    assert not told or any(
        str(text).startswith(f"The sheet Start checks {n:,} formulas in ") for text in told
    )


def test_wrong_formulas_are_named(sheet: InIronCalc, built) -> None:
    assert verdict(sheet, {}).startswith(AGREES)
    for cell, wrong in plants(built.file(NAME)):
        said = verdict(sheet, {cell: wrong})
        assert f"The first such cell is {address(cell)}. " in said, (cell, wrong, said)
    assert verdict(sheet, {}).startswith(AGREES)


def test_wrong_formulas_are_named_in_libreoffice(built, tmp_path, libreoffice) -> None:
    tried = plants(built.file(NAME))
    edits = [{}, *({cell: wrong} for cell, wrong in tried), {}]
    first, *shown, last = libreoffice_after(built[NAME], edits, tmp_path / "office")
    assert all(str(s["Start"][3, 0]).startswith(AGREES) for s in (first, last))
    for (cell, wrong), after in zip(tried, shown, strict=True):
        said = str(after["Start"][3, 0])
        assert f"The first such cell is {address(cell)}. " in said, (cell, wrong, said)
        assert after["Check"][10, 2] == "look"


def test_errors_of_a_column_name_the_first(sheet: InIronCalc, built) -> None:
    """As a program shows them that lacks a function: here of 20 cells."""
    book = default_book(NAME)
    ranges = [r for r in ranges_of(book) if r.sheet == "Sampling" and not r.texts]
    found = max(ranges, key=lambda r: r.rect.bottom - r.rect.top)
    cells = [(found.sheet, row, found.rect.left) for row in range(*found.rect[:2])]
    said = verdict(sheet, dict.fromkeys(cells, "=1/0"))
    first = address((found.sheet, found.rect.top, found.rect.left))
    assert len(cells) > 10 and f"The first such cell is {first}" in said, said


def test_only_wrong_cells_are_named(sheet: InIronCalc) -> None:
    """Both by as much: what the sums are off by would tell the cell between them."""
    book = default_book(NAME)
    place, logits = book.cell("logits", 0, 4), book.values["logits"]
    wrong = {book.cell("logits", 0, 4 + k): f"={float(logits[0, 4 + k]) + 1}" for k in (0, 2)}
    said = verdict(sheet, wrong)
    assert address(book.cell("logits", 0, 5)) + "." not in said
    assert f"The first such cell is {place[0]}!" in said
    assert ":" in said.partition("such cell is ")[2].split()[0]


def test_edits_turn_the_digest_into_a_comparison(sheet: InIronCalc, built) -> None:
    book = default_book(NAME)
    typed = {"W_E": (book.cell("W_E", 0, 0), 5.0), "sentence": (book.cell("sentence", 0, 0), "cat")}
    for what, (cell, value) in typed.items():
        with sheet.typed({cell: value}):
            assert str(sheet[VERDICT]).startswith(EDITED), what
    table, plain = default_book("loss"), InIronCalc(built["loss"])
    largest = table.shown["check.largest"]
    gap = largest.sheet, largest.top, largest.left
    with plain.typed({table.cell("weights", 0, 0): 7.0}):
        assert str(plain[VERDICT]).startswith(EDITED)
        assert plain[gap] == "", "how far edits lead is no gap of the program's"
    plain.model.evaluate()
    assert str(plain[VERDICT]).startswith(AGREES)
    assert 0 <= float(plain[gap]) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in workbooks.names() if n != "shakespeare"])
def test_each_workbook_has_its_verdict(name: str) -> None:
    book = default_book(name)
    assert str(book.clean.cell(*VERDICT)).startswith(AGREES)
    ranges = ranges_of(book)
    cells = [(r.sheet, at) for r in ranges for at in r.rect.cells()]
    assert len(cells) == len(set(cells)), "no cell is of two ranges"
