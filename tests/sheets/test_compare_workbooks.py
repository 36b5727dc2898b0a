"""Comparing workbooks before and after a change: whatever differs is told, rounding is let pass."""

import re
import runpy
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

from cellformer.exporters.file.reading import WorkbookFile

NAME = "cat-sat"
CELL = rb'(<c r="[A-Z]+\d+" s="'
ALTERED = {  # by what is told: a sheet or a part, what stands there, what is put in its place
    "formula": ("Block 0", rb"<f>SUMPRODUCT", rb"<f>2*SUMPRODUCT", "=2*SUMPRODUCT"),
    "value": ("Block 0", rb"(</f><v>)[^<]*", rb"\g<1>0.125", "0.125"),
    "value of another type": ("Block 0", CELL + rb'\d+")(><v>)', rb'\1 t="str"\2', "value: 1"),
    "style": ("Block 0", CELL + rb')\d+"', rb'\g<1>0"', "style: 1"),
    "look of a row": ("Block 0", rb'<row r="9"', rb'<row r="9" ht="30"', "Block 0!9"),
    "a cell in one alone": ("Play", CELL + rb'\d+"/>)', b"", "True  ->  False"),
    "around the cells": ("Play", rb'(<col min="1" max="1" width=")[^"]*', rb"\g<1>33", "33"),
    "shared text": ("xl/sharedStrings.xml", rb"<t>greedy<", rb"<t>greedily<", "greedily"),
    "part of the file": ("docProps/app.xml", rb"<Application>", rb"<Application>A", "docProps/app"),
    "order or names of sheets": ("xl/workbook.xml", rb'name="Map"', rb'name="Maps"', "Maps"),
}


def altered(path: Path, target: Path, part: str, old: bytes, new: bytes) -> None:
    """A copy of a workbook with the first place in a part (or a sheet) written otherwise."""
    part = WorkbookFile(path).parts.get(part, part)
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as copy:
        for name in source.namelist():
            data = source.read(name)
            if name == part:
                data, n = re.subn(old, new, data, count=1)
                assert n == 1
            copy.writestr(name, data)


@pytest.fixture
def compared(built, tmp_path: Path, monkeypatch, capsys):
    """Compares the workbook with an altered copy: the exit code, and what is printed."""
    folders = [tmp_path / "before", tmp_path / "after"]
    for folder in folders:
        folder.mkdir()
    shutil.copy(built[NAME], folders[0])

    def compare(part: str, old: bytes, new: bytes, *options: str) -> tuple[int, str]:
        altered(built[NAME], folders[1] / f"{NAME}.xlsx", part, old, new)
        monkeypatch.setattr(sys, "argv", ["compare_workbooks.py", *map(str, folders), *options])
        with pytest.raises(SystemExit) as stopped:
            runpy.run_path(str(ROOT / "benchmarks" / "compare_workbooks.py"), run_name="__main__")
        return stopped.value.code, capsys.readouterr().out

    return compare


def test_repacked_workbook_is_the_same(compared) -> None:
    assert compared("Play", rb"<row", rb"<row") == (0, f"{NAME}.xlsx: same\n1 same\n")


@pytest.mark.parametrize("kind", ALTERED)
def test_differences_are_reported(kind: str, compared) -> None:
    *change, told = ALTERED[kind]
    code, printed = compared(*change)
    assert code == 1
    assert f"{NAME}.xlsx: DIFFERENT" in printed and told in printed
    assert f"  {kind}: " in printed or kind not in ("formula", "style", "look of a row")


def test_rounding_is_accepted(compared) -> None:
    code, printed = compared("Block 0", rb"(</f><v>-?0\.\d{14})\d+", rb"\1")
    assert code == 0
    assert "value, by rounding: 1 (Block 0: 1)" in printed


def test_missing_workbook_is_reported(compared, tmp_path: Path) -> None:
    shutil.copy(tmp_path / "before" / f"{NAME}.xlsx", tmp_path / "after" / "other.xlsx")
    code, printed = compared("Play", rb"<row", rb"<row")
    assert code == 1 and "other.xlsx: only in" in printed


def test_ranges_are_followed_by_their_names(compared) -> None:
    """One that moves is let pass; one with another value is not."""
    name = rb'(<definedName name="blocks.0.attn.scale">)[^<]*'
    code, printed = compared("xl/workbook.xml", name, rb"\1'Block 0'!$E$19", "--moved")
    assert code == 1 and "blocks.0.attn.scale" in printed and "  moved: 1 (Block 0: 1)" in printed
    code, printed = compared("Readout", rb"(=?</f><v>)-?0[^<]*", rb"\g<1>0.125", "--moved")
    assert code == 1 and "  value: 1 (Readout: 1)" in printed
    code, printed = compared("Play", rb"<row", rb"<row", "--moved")
    assert (code, printed) == (0, f"{NAME}.xlsx: same\n1 same\n")
