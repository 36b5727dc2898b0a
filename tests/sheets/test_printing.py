"""Workbooks as they print: how many pages, none of them nearly blank, and what is left out."""

import re
import zlib
from pathlib import Path

import pytest
from conftest import Built, default_book
from libreoffice import printed

NAMES = ("zero-layer", "sampling", "one-step")
OF_A_CLASS = 25  # pages of dialogue-game: no weights, and of its tables one head
LESSONS = Path(__file__).parents[2] / "docs" / "teach"
COUNTED = re.compile(r"<!--printed ([\w-]+)-->(\d+)<!--/-->")
MOST = 9  # pages of each
FEW = 12  # pieces of text: a title, a footer, and little else
PAGE = re.compile(rb"/Type\s*/Page\b[^s].*?/Contents (\d+) 0 R", re.DOTALL)
BY_PROGRAMS = ("Source", "Text", "Built", "Digest")


def test_small_workbooks_print_on_few_pages(
    libreoffice: None, built: Built, tmp_path: Path
) -> None:
    pages = {}
    for name in NAMES:
        data = printed(built[name], tmp_path / f"{name}.pdf").read_bytes()
        pages[name] = [texts(data, int(number)) for number in PAGE.findall(data)]
    assert all(3 < len(found) <= MOST for found in pages.values())
    assert min(min(found) for found in pages.values()) > FEW


def test_lessons_say_on_how_many_pages_a_workbook_prints(
    libreoffice: None, built: Built, tmp_path: Path
) -> None:
    said = [found for page in LESSONS.glob("*.md") for found in COUNTED.findall(page.read_text())]
    found = {name: printed(built[name], tmp_path / f"{name}.pdf").read_bytes() for name, _ in said}
    pages = {name: len(PAGE.findall(data)) for name, data in found.items()}
    assert pages == {name: int(count) for name, count in said}
    assert pages["dialogue-game"] <= OF_A_CLASS


def texts(pdf: bytes, number: int) -> int:
    """How many pieces of text a page's stream of commands shows."""
    start = pdf.index(b"stream", pdf.index(b"\n%d 0 obj" % number)) + len(b"stream")
    commands = zlib.decompressobj().decompress(pdf[start:].lstrip(b"\r\n"))
    return len(re.findall(rb"T[jJ]\b", commands))


@pytest.mark.parametrize("name", ["cat-sat", "sampling"])
def test_sheets_that_only_programs_read_are_hidden(name: str) -> None:
    """No visible sheet leads to them: a link to a hidden sheet goes nowhere in Excel."""
    sheets = default_book(name).sheets
    assert {s for s in sheets if sheets[s].hidden} == {s for s in BY_PROGRAMS if s in sheets}
    targets = {t.split("!")[0].strip("'") for s in sheets.values() for t in s.links.values()}
    assert not targets & {*BY_PROGRAMS}
