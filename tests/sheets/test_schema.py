"""Microsoft's Open XML SDK finds nothing wrong with any kind of workbook that we write."""

import re
import zipfile
from pathlib import Path

import pytest
from every_kind import KINDS
from validator import OFFICES

BROKEN = {  # a part, what is replaced in it, and by what
    "unknown attribute": ("xl/workbook.xml", b"<sheet ", b'<sheet colour="red" '),
    "wrong order": ("xl/worksheets/sheet1.xml", b"<sheetData>", b"<mergeCells/><sheetData>"),
    "wrong value": ("xl/styles.xml", b'patternType="solid"', b'patternType="blue"'),
    "no such style": ("xl/worksheets/sheet1.xml", rb'(<c r="A1" s=)"\d+"', rb'\1"9999"'),
}


@pytest.mark.parametrize("kind", KINDS)
def test_sdk_finds_no_fault(kind: str, validator, tmp_path: Path) -> None:
    assert validator(KINDS[kind](tmp_path)) == []


@pytest.mark.parametrize("office", OFFICES)
def test_sdk_finds_no_fault_for_older_excel(office: str, validator, built) -> None:
    assert validator(built["cat-sat"], office) == []


@pytest.mark.parametrize("broken", BROKEN)
def test_sdk_finds_what_is_broken(broken: str, validator, built, tmp_path: Path) -> None:
    changed, old, new = BROKEN[broken]
    path = tmp_path / "broken.xlsx"
    with zipfile.ZipFile(built["cat-sat"]) as whole, zipfile.ZipFile(path, "w") as copy:
        for part in whole.namelist():
            data = whole.read(part)
            if part == changed:
                data, n = re.subn(old, new, data, count=1)
                assert n
            copy.writestr(part, data)
    assert validator(path)
