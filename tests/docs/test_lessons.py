"""Lessons: every cell that they name shows what they say, as built or after what they type."""

import re
from pathlib import Path

import pytest
from conftest import ROOT, default_book
from xlsxwriter.utility import xl_cell_to_rowcol

from cellformer import workbooks
from cellformer.engine.cells.expression import Area
from cellformer.exporters.compose.book import Book, Reading

LESSONS = sorted(p for p in (ROOT / "docs/teach").glob("*.md") if p.stem != "README")
ROW = re.compile(r"^\| ([\w-]+) \| (as built|`[^`]+`) \| `([^`]+)` \| (.+) \|$", re.MULTILINE)


def at(cell: str) -> tuple[str, int, int]:
    sheet, _, address = cell.rpartition("!")
    return sheet, *xl_cell_to_rowcol(address)


def area(book: Book, cell: str) -> Area:
    """The cell of a block that stands there."""
    sheet, row, col = at(cell)
    place = next(p for p in book.places.values() if p.sheet == sheet and p.holds(row, col))
    i, j = row - place.top, col - place.left
    return place.block[(j, i) if place.turned else (i, j)]


def after(book: Book, typed: str) -> Reading:
    if typed == "as built":
        return book.clean
    cell, _, text = typed.strip("`").partition(" = ")
    where = area(book, cell)
    is_text = isinstance(book.clean(where), str) or not re.fullmatch(r"-?[\d.]+", text)
    return book.edited({where: text if is_text else float(text)})


@pytest.mark.slow
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_cells_show_what_a_lesson_says(lesson: Path) -> None:
    rows = ROW.findall(lesson.read_text(encoding="utf-8"))
    assert len(rows) > 15
    for name, typed, cell, shows in rows:
        book = default_book(name)
        value = after(book, typed).cell(*at(cell))
        if isinstance(value, str):
            assert value == shows, (name, typed, cell)
            continue
        number = shows.replace(",", "").removesuffix(" %")
        unit = 0.51 * 10.0 ** -len(number.partition(".")[2])
        scale = 100 if shows.endswith("%") else 1
        assert abs(value * scale - float(number)) <= unit, (name, typed, cell, value)


def test_lessons_build_workbooks_of_the_gallery() -> None:
    known = set(workbooks.names())
    for lesson in LESSONS:
        names = set(re.findall(r"cellformer build ([\w-]+)", lesson.read_text(encoding="utf-8")))
        assert names and names <= known, lesson.name
