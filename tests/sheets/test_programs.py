"""What LibreOffice says of a workbook that openpyxl saved: in CSV, as in the workbook it saves."""

import os
from datetime import date
from pathlib import Path

import pytest
from conftest import libreoffice_after, libreoffice_shows
from openpyxl import Workbook

from cellformer.engine import InputError
from cellformer.engine.cells.values import CellError
from cellformer.exporters.checking import programs
from cellformer.exporters.checking.verify import poison
from cellformer.exporters.file.reading import WorkbookFile

FORMULAS = {
    "=1/3": 1 / 3,
    "=-2/3*10^-6": -2 / 3 * 1e-6,
    "=10^300/7": 1e300 / 7,
    "=10^-300/7": 1e-300 / 7,
    "=DATE(2020,1,2)": 43832,
    "=1=1": True,
    '="1"&"2"': "12",
    '="=1+1"': "=1+1",
    '="TRUE"': "TRUE",
    '="a""b,c"&CHAR(10)&"d"&CHAR(13)': 'a"b,c\nd\r',
    '=""': None,
    "=1/0": CellError("#DIV/0!"),
    "=NA()": CellError("#N/A"),
}
LOOKS = ("General", "0.0%", "yyyy-mm-dd", "# ?/?", '[Red]0.0" x"', "0.00E+00")
SHEETS = ("A & B", "größe - 2", "100%41", "it's #1")  # beside others: hidden, and empty


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A workbook of every formula in every look, and no computed value."""
    book = Workbook()
    book.active.title = "empty"
    for name in SHEETS:
        sheet = book.create_sheet(name)
        for i, formula in enumerate(FORMULAS, 1):
            for j, look in enumerate(LOOKS, 2):
                sheet.cell(i, j, formula).number_format = look
        sheet.append([None, date(2020, 1, 2), "typed"])
        sheet.sheet_state = "hidden" if name == SHEETS[1] else "visible"
    book.save(tmp_path / "looks.xlsx")
    return tmp_path / "looks.xlsx"


def kept(path: Path, folder: Path) -> programs.Recomputed:
    """As tests ask the LibreOffice that they keep."""
    return libreoffice_shows({"looks": path}, folder)["looks"]


def started(path: Path, folder: Path) -> programs.Recomputed:
    """As `verify` asks one that it starts."""
    folder.mkdir()
    poison(path, folder / "wrong.xlsx")
    return programs.recompute_in_libreoffice([folder / "wrong.xlsx"], folder / "out")[0]


@pytest.mark.parametrize("asked", [kept, started])
def test_csv_ignores_number_formats(asked, path: Path, tmp_path: Path, libreoffice) -> None:
    shown = asked(path, tmp_path / "office")
    assert list(shown) == ["empty", *SHEETS] and not shown["empty"].values
    for name in SHEETS:
        for i, value in enumerate(FORMULAS.values()):
            for j in range(len(LOOKS)):
                found = shown[name][i, j + 1]
                if isinstance(value, float):
                    assert found == pytest.approx(value, rel=1e-14, abs=0)
                else:
                    assert found == value
                    assert isinstance(found, CellError) == isinstance(value, CellError)
                assert isinstance(found, str) == isinstance(value, str)
        assert (shown[name]["B14"], shown[name]["C14"]) == (43832, "typed")
        assert len(shown[name].errors) == 2 * len(LOOKS)


def test_edits_do_not_leak(path: Path, tmp_path: Path, libreoffice) -> None:
    """A number in the place of a formula, a text that looks like one, a cell that is cleared."""
    sheet = SHEETS[0]
    cells = {(sheet, 0, 1): 7.5, (sheet, 13, 2): "=1+1\tand\nmore", (sheet, 13, 1): ""}
    first, edited, last = libreoffice_after(path, [{}, cells, {}], tmp_path / "office")
    assert {at: edited[at[0]][at[1:]] for at in cells} == cells | {(sheet, 13, 1): None}
    for name in (sheet, SHEETS[1]):
        assert first[name].values == last[name].values
    assert first[SHEETS[1]].values == edited[SHEETS[1]].values


def test_old_libreoffice_is_refused(path: Path, tmp_path: Path, monkeypatch) -> None:
    """A program that writes one sheet alone, as LibreOffice did up to its version 7.1."""
    soffice = tmp_path / "bin" / "soffice"
    soffice.parent.mkdir()
    soffice.write_text("#!/bin/sh\n")
    soffice.chmod(0o755)
    monkeypatch.setenv("PATH", f"{soffice.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(InputError, match=r"no values of the sheet empty; .* 7.2"):
        programs.recompute_in_libreoffice([path], tmp_path)
    assert list(WorkbookFile(path)) == ["empty", *SHEETS]
