"""The small picture of a sheet: its colours are those of the cells, and its bytes the same."""

import re
from xml.etree import ElementTree

import pytest
from conftest import default_book, in_tiers

from cellformer import names, release, workbooks
from cellformer.engine.cells.graph import Graph
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.file import miniature

MOST_BYTES = 16_000


def boxes(svg: str, colour: str) -> list[list[int]]:
    """The rectangles of a colour: left, top, width, height."""
    found = re.findall(rf'fill="{colour}" d="([^"]*)"', svg)
    parts = [part for path in found for part in path.split("z") if part]
    return [[int(x) for x in re.split(r"[M hv]+", part)[1:5]] for part in parts]


def test_a_cell_has_the_colour_of_its_value() -> None:
    book = Book("one", Graph())
    sheet = book.sheet("One")
    sheet.across(4, 1, (0.0, 0.5, 1.0), "percent")
    sheet.dress(sheet[4, 1:4], "scale")
    sheet.put(6, 0, "abc", "token")
    svg, width = miniature.svg(book, "One"), round(theme.pixels(theme.COLUMN_WIDTH))
    assert boxes(svg, theme.FULL) == [[3 * width, 20, width, 20]]
    assert boxes(svg, "#FAD0AC") == [[2 * width, 20, width, 20]]
    assert boxes(svg, theme.FILLS["input"]) == [[0, 60, width, 20]]
    assert boxes(svg, theme.BLUE) == [[3, 67, 3 * miniature.LETTER, miniature.THICK]]


def test_a_chart_has_its_points() -> None:
    book = Book("one", Graph())
    sheet = book.sheet("One")
    for k, y in enumerate((0.0, 4.0, 1.0)):
        sheet.across(k + 4, 12, (k, y), "percent")
    series = Series("y", sheet[4:7, 12], sheet[4:7, 13])
    sheet.charts.append(Chart(4, 0, "scatter", "", [series], size=(300, 200)))
    points = boxes(miniature.svg(book, "One"), theme.ONE_SERIES[0])
    assert [x for x, *_ in points] == sorted(x for x, *_ in points)
    (first, highest, last) = (y for _, y, *_ in points)
    assert highest < last < first


@pytest.mark.parametrize("name", in_tiers(workbooks.names()))
def test_every_workbook_has_a_picture(name: str) -> None:
    book = default_book(name)
    sheet = release.SHEETS.get(name, list(book.sheets)[1])
    svg = miniature.svg(book, sheet)
    assert len(ElementTree.fromstring(svg)) > 3 and len(svg) < MOST_BYTES


def test_the_same_workbook_has_the_same_picture() -> None:
    assert miniature.svg(names.book("adder"), "Looks") == miniature.svg(
        default_book("adder"), "Looks"
    )


def test_pictured_sheets_are_of_workbooks() -> None:
    assert release.SHEETS.keys() <= {*workbooks.names()}
