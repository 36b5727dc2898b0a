"""The files of examples/ready: as fresh builds are, and a first sum without any command."""

import base64
import re
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, default_book, script
from libreoffice import watched_while_typed

from cellformer.exporters.checking.javascript import PART

READY = ROOT / "examples" / "ready"
MOST = 8_000_000  # bytes of all files
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
FIRST_LINK = re.compile(r"(?<!!)\[[^]!]*\]\((examples/[^)]*)\)")


def parts(path: Path) -> dict[str, str]:
    """The texts that a file holds: the parts of a workbook, the data of a page."""
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as file:
            return {name: file.read(name).decode("utf-8", "replace") for name in file.namelist()}
    html = path.read_text(encoding="utf-8")
    found = {name: re.search(PART.format(name), html) for name in ("data", "weights")}
    return {
        name: zlib.decompress(base64.b64decode(part[1])).decode("latin-1")
        for name, part in found.items()
        if part
    }


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """The parts that differ: in a text, or in a number by more than 1e-12."""
    assert one.keys() == other.keys()
    found = []
    for name in one:
        numbers = [np.array(NUMBER.findall(text), float) for text in (one[name], other[name])]
        same = NUMBER.sub("#", one[name]) == NUMBER.sub("#", other[name])
        if not (same and np.allclose(*numbers, rtol=1e-12, atol=1e-12)):
            found.append(name)
    return found


@pytest.mark.slow
def test_ready_files_are_as_built_now(tmp_path: Path) -> None:
    ready_files = script("ready_files")
    made = ready_files.build(tmp_path)
    assert {path.name for path in made} == {path.name for path in READY.iterdir()}
    assert sum(path.stat().st_size for path in READY.iterdir()) < MOST
    for path in made:
        assert differences(parts(READY / path.name), parts(path)) == [], (
            f"{path.name} is of an earlier version: python docs/scripts/ready_files.py"
        )


def test_another_number_is_noticed() -> None:
    other = {"sheet": "<v>0.25000000001</v>"}
    assert differences({"sheet": "<v>0.25</v>"}, other) == ["sheet"]
    assert differences({"sheet": "<v>0.25</v>"}, {"sheet": "<v>0.25000000000000001</v>"}) == []


def test_the_first_link_of_the_readme_adds(libreoffice: None, tmp_path: Path) -> None:
    """Opened in LibreOffice; two numbers are typed, and the model's sum is read."""
    link = FIRST_LINK.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert link and link[1] == "examples/ready/adder.xlsx"
    book = default_book("adder")
    sheet, row, col = book.cell("typed", 0, 0)
    typed = {(sheet, row, col): 2745.0, book.cell("typed", 1, 0): 1066.0}
    watched = [book.cell("sums", 0, 0)]
    assert watched_while_typed(ROOT / link[1], [typed], watched, tmp_path, 0) == [["", "3,811"]]
