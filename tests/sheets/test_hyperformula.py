"""HyperFormula as an engine of `verify`: what it gets of a file, and where it ends."""

import subprocess
import sys
from pathlib import Path

import pytest
import xlsxwriter
from conftest import ROOT, cli

from exporters.checking import hyperformula
from exporters.checking.hyperformula import Limits
from exporters.checking.verify import compare, read
from exporters.file.reading import WorkbookFile

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


def written(path: Path, formula: str, value: float = 1) -> Path:
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet().write_formula(0, 0, formula, None, value)
    return path


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("=ASC(1)+PHONETIC(B1)", "skipped: it has no function ASC, PHONETIC"),
        ("=1E-3*1000", "skipped: it cannot parse =1E-3*1000"),
        ("=1+1", "DISAGREES 1 cells, largest difference 1.0e+00 at Sheet1!A1"),
        ("=A1", "DISAGREES"),
    ],
)
def test_hyperformula_verdicts(formula: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path / "b.xlsx", formula)
    done = cli("verify", path, "--engine", "hyperformula")
    assert said in done.out and done.code == (1 if "DISAGREES" in said else 3)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(formulas=5), "22 formula cells; it is asked up to 5"),
        (Limits(cells=40), "it is asked up to 40"),
        (Limits(rows=3), "more than 3 rows"),
        (Limits(memory=3), "more than 3 MB"),
    ],
)
def test_limits(limits: Limits, said: str, others: Path) -> None:
    (answer,) = hyperformula.recompute([WorkbookFile(others)], limits)
    assert said in answer.fault


def test_without_hyperformula(others: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cellformer", "verify", others, "--engine", "hyperformula"]
    nothing = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=nothing, capture_output=True, text=True)
    assert done.returncode == 3
    told = " ".join(done.stdout.split())
    assert "not installed; install Node.js, then: npm install --global hyperformula" in told
