"""Whatever is typed into a worksheet leads to no error elsewhere, nor is its verdict one."""

from pathlib import Path

import pytest
from conftest import InIronCalc, default_book, needs

from cellformer.exporters.compose.book import Book
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.file.xlsx import write

NAMES = ("attention-by-columns", "kv-cache", "loss", "low-rank", "napkin", "norms", "positions")
BAD = ("hello", "", "=1/0", "=NA()")
ERRORS = ("#DIV/0!", "#N/A", "#NUM!", "#VALUE!", "#REF!")
N_CELLS = 30  # of a worksheet


def inputs(book: Book) -> list[tuple[str, int, int]]:
    """The cells of numbers that are typed."""
    given = book.graph.inputs
    blocks = [p.block for name, p in book.places.items() if name in given]
    return [
        book.cell(block.name, i, j)
        for block in blocks
        if given[block.name].dtype == float
        for i, j in block.whole.cells()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_typed_value_makes_an_error(name: str, tmp_path: Path) -> None:
    needs("ironcalc")
    book = default_book(name)
    path = write(book, tmp_path / f"{name}.xlsx")
    sheet, file, typed = InIronCalc(path), WorkbookFile(path), inputs(book)
    formulas = [(on, *at) for on in file for at in file[on].formulas]
    for on, row, col in typed[:: -(-len(typed) // N_CELLS)]:
        was, at = sheet[on, row, col], (sheet.number[on], row + 1, col + 1)
        for text in BAD:
            sheet.model.set_user_input(*at, text)
            sheet.model.evaluate()
            wrong = [cell for cell in formulas if str(sheet[cell]).startswith(ERRORS)]
            assert not wrong, (on, row, col, text, wrong[:3])
        sheet.model.update_cell_with_number(*at, float(str(was)))


def test_huge_number_makes_no_error(tmp_path: Path) -> None:
    book = default_book("loss")
    sheet = InIronCalc(write(book, tmp_path / "loss.xlsx"))
    for cell in inputs(book)[:12]:
        with sheet.typed({cell: 1e308}):
            for at in (("Start", 3, 0), ("Digest", 4, 0), ("Digest", 5, 0)):
                assert not str(sheet[at]).startswith(ERRORS), (cell, at)
