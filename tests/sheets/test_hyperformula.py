"""HyperFormula as an engine of the tests: what it gets of a file, and where it ends."""

from pathlib import Path

import hyperformula
import pytest
import xlsxwriter
from hyperformula import Limits

from cellformer.exporters.checking.verify import compare, read
from cellformer.exporters.file.reading import WorkbookFile

pytestmark = pytest.mark.usefixtures("hyperformula")

TEXTS = ['say "so"', "back\\", '\\"', "'quoted'", "3", "=A1", "TRUE", "#N/A", "é", ""]


@pytest.fixture(scope="module")
def others(tmp_path_factory) -> Path:
    """A workbook that another program wrote: texts of every kind, in cells and in formulas."""
    path = tmp_path_factory.mktemp("others") / "others.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet, other = book.add_worksheet("it's"), book.add_worksheet('a"b')
        for k, text in enumerate(TEXTS):
            sheet.write_string(k, 1, text)
            quoted = text.replace('"', '""')
            sheet.write_formula(k, 0, f'="{quoted}"&LEN("{quoted}")', None, f"{text}{len(text)}")
            sheet.write_formula(k, 2, f"=EXACT(B{k + 1},LEFT(A{k + 1},{len(text)}))", None, True)
        other.write_formula(0, 20, "=SUMPRODUCT('it''s'!D1:D3-3,D1:D3+1)", None, -9)
        other.write_formula(2, 0, '=_xlfn.UNICODE("é")+\'a"b\'!U1', None, 233 - 9)
    return path


def test_workbook_of_another_program_in_hyperformula(others: Path) -> None:
    (found,), book = hyperformula.recompute([WorkbookFile(others)]), read(others)
    report = compare("hyperformula", book, found.values)
    assert report.agrees and report.n_cells == 2 * len(TEXTS) + 2, report
    assert found.values.keys() == book.formulas.keys()


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("=ASC(1)+PHONETIC(B1)", "it has no function ASC, PHONETIC"),
        ("=1E-3*1000", "it cannot parse =1E-3*1000"),
    ],
)
def test_what_hyperformula_lacks(formula: str, said: str, tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "b.xlsx") as book:
        book.add_worksheet().write_formula(0, 0, formula, None, 1)
    (answer,) = hyperformula.recompute([WorkbookFile(tmp_path / "b.xlsx")])
    assert answer == ({}, said)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(formulas=5), "22 formula cells are too many for this program; the limit is 5"),
        (Limits(cells=40), "cells are too many for this program; the limit is 40"),
        (Limits(rows=3), "a sheet has more than 3 rows"),
        (Limits(memory=3), "it takes more than 3 MB"),
    ],
)
def test_limits(limits: Limits, said: str, others: Path) -> None:
    (answer,) = hyperformula.recompute([WorkbookFile(others)], limits)
    assert said in answer.fault
