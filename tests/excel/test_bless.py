"""The workbook of all forms: what it has, and what is told of a program that saved it."""

import zipfile
from pathlib import Path

import pytest
from conftest import cli, needs, told, typed
from forms import of_workbook

from cellformer.engine.cells.values import CellError
from cellformer.exporters.checking import bless
from cellformer.exporters.checking.programs import (
    XLSX,
    convert_in_libreoffice,
    recompute_in_gnumeric,
)
from cellformer.exporters.file.reading import WorkbookFile


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bless") / "forms.xlsx"
    assert cli("bless", "-o", path).code == 0
    return path


@pytest.fixture(scope="module")
def saved(written: Path) -> Path:
    """As IronCalc saves it."""
    needs("ironcalc")
    import ironcalc

    model = ironcalc.load_from_xlsx(str(written), "en", "UTC", "en")
    model.evaluate()
    target = written.with_name("saved.xlsx")
    model.save_to_xlsx(str(target))
    return target


def row_of(form: str) -> int:
    return next(one.row for one in bless.examples() if one.form == form)


def test_workbook_has_every_form(written: Path) -> None:
    forms = set(bless.FORMS.read_text("utf-8").splitlines())
    assert set(of_workbook(WorkbookFile(written), most=10_000)) == forms


def test_only_one_example_is_an_error() -> None:
    """Errors tell little: a program that lacks a function has one, too."""
    found = [x.form for x in bless.examples() if any(isinstance(y, CellError) for y in x.ours)]
    assert found == ["IFERROR(error, error)"]


def test_forms_have_the_same_bytes(written: Path, tmp_path: Path) -> None:
    bless.write(tmp_path / "again.xlsx")
    assert (tmp_path / "again.xlsx").read_bytes() == written.read_bytes()


def test_ironcalc_agrees(saved: Path) -> None:
    found = told("bless", "--read", saved)
    assert found["program"].startswith("IronCalc")
    assert (found["differ"], found["cells"] > 450, found["largest"] < 1e-9) == ([], True, True)


def test_libreoffice_agrees(written: Path, tmp_path: Path, libreoffice) -> None:
    (path,) = convert_in_libreoffice([written], XLSX, tmp_path)
    found = told("bless", "--read", path)
    assert found["program"].startswith("LibreOffice")
    assert found["differ"] == []


def test_gnumeric_agrees(written: Path, tmp_path: Path, gnumeric) -> None:
    recompute_in_gnumeric(written, tmp_path / "saved.xlsx")
    assert told("bless", "--read", tmp_path / "saved.xlsx")["differ"] == []


def test_what_differs_is_told(saved: Path, tmp_path: Path) -> None:
    """Of a program that lacks ERF and keeps its cached value, and has another RANK."""
    erf, rank = row_of("ERF(number)"), row_of("RANK(number, [number])")
    cells = {(bless.SHEET, erf, bless.THEIRS): bless.WRONG, (bless.SHEET, rank, bless.THEIRS): 9.0}
    path = typed(saved, tmp_path / "other.xlsx", cells)
    done = cli("bless", "--read", path)
    lines = [line for line in done.out.splitlines() if line.startswith("DISAGREES")]
    assert done.code == 1
    assert [("ERF(" in x, "not computed" in x) for x in lines] == [(True, True), (False, False)]
    assert "RANK(" in lines[1] and "cellformer 3.0, this program 9.0" in lines[1]


def test_what_was_not_recomputed_is_refused(written: Path) -> None:
    done = cli("bless", "--read", written)
    assert done.code == 2 and "was not recomputed" in done.err


def test_changed_input_is_refused(saved: Path, tmp_path: Path) -> None:
    cell = bless.SHEET, row_of("SQRT(number)"), bless.GIVEN
    done = cli("bless", "--read", typed(saved, tmp_path / "changed.xlsx", {cell: 3.0}))
    assert done.code == 2 and "differs from what this version of cellformer writes" in done.err


def test_other_files_are_refused(built, tmp_path: Path) -> None:
    other = cli("bless", "--read", built["cat-sat"])
    assert other.code == 2 and "has no sheet Forms" in other.err
    (tmp_path / "text.xlsx").write_text("no workbook")
    for given in ([], ["-o", "a.xlsx", "--read", "b.xlsx"], ["--read", tmp_path / "text.xlsx"]):
        assert cli("bless", *given, cwd=tmp_path).code == 2
    assert cli("bless", "-o", "forms.csv", cwd=tmp_path).code == 2
    assert cli("bless", "-o", tmp_path / "no" / "forms.xlsx").code == 2


def test_odd_names_of_programs_are_printed_plainly(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.xlsx"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for part in old.namelist():
            data = old.read(part)
            odd = b"<Application>[red]\xff\x1b]0;x\x07</Application>"
            new.writestr(part, odd if part == "docProps/app.xml" else data)
    done = cli("bless", "--read", path)
    assert done.code == 0 and "\x1b" not in done.out and "[red]" in done.out
