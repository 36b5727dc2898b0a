"""What is seen: rows are high enough, colours mean what the legend says, scales are symmetric."""

import re
import zipfile

import pytest
from conftest import Built, default_book
from on_play import RANKS_ROW

from cellformer.exporters.compose import legend, theme
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.play import ranking

ROWS = re.compile(r'<row r="(\d+)"([^>]*)>')
SEEN = ("cat-sat", "attention-by-columns")
SCREEN, ROWS_SEEN = (1310, 565), 28  # pixels of cells, and rows, that a first screen has
WIDER, ROW_HEIGHT, PIXELS_A_POINT = 1.12, 15, 4 / 3  # of a column; points; pixels
FIRST_CHARTS = {"Play": 1, "Machine": 1, "Lens": 1, "Attribution": 1, "Trajectory": 1, "Words": 2}


@pytest.mark.parametrize("name", SEEN)
def test_no_title_is_cut(built: Built, name: str) -> None:
    """No program grows a row for a larger font: every such row says how high it is."""
    parts = WorkbookFile(built[name]).parts
    with zipfile.ZipFile(built[name]) as archive:
        for sheet in default_book(name).sheets.values():
            xml = archive.read(parts[sheet.name]).decode()
            high = {int(row) - 1: attributes for row, attributes in ROWS.findall(xml)}
            for (row, _), entry in sheet.entries.items():
                size = theme.STYLES[entry.style].get("font_size", 11)
                if size > 11:
                    (height,) = re.findall(r' ht="([\d.]+)"', high[row])
                    assert float(height) >= 1.25 * size, (sheet.name, row)


LARGE = pytest.param("dialogue-game", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [*SEEN, LARGE])
def test_scales_about_zero_are_symmetric(built: Built, name: str) -> None:
    """Their ends are one formula, with a minus before it and without."""
    n_found = 0
    with zipfile.ZipFile(built[name]) as archive:
        for part in archive.namelist():
            if part.startswith("xl/worksheets/sheet"):
                xml = archive.read(part).decode()
                for scale in re.findall(r"<colorScale>.*?</colorScale>", xml):
                    ends = re.findall(r'<cfvo type="(\w+)" val="([^"]*)"', scale)
                    if len(ends) == 3:
                        n_found += 1
                        assert ends == [("formula", f"-{ends[2][1]}"), ("num", "0"), ends[2]]
    assert n_found or name != "dialogue-game"


LARGE = pytest.param("dialogue-game", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [*SEEN, LARGE])
def test_sheets_have_a_legend(name: str) -> None:
    book = default_book(name)
    for sheet in list(book.sheets.values())[1:]:
        shown = {e.value for (row, col), e in sheet.entries.items() if row == legend.ROW and col}
        filled = [theme.STYLES[style].get("bg_color") for _, style in sheet.regions]
        for fill in set(filled) & set(legend.FILLS):
            assert legend.FILLS[fill][1] in shown, (sheet.name, fill)
        assert {text for _, text in legend.keys(sheet)} <= shown, sheet.name


def test_headers_have_room() -> None:
    """A header that cannot run into the next cell is no longer than its column."""
    for name in SEEN:
        for sheet in default_book(name).sheets.values():
            for (row, col), entry in sheet.entries.items():
                if entry.style == "label" and isinstance(entry.value, str):
                    room = sheet.widths.get(col, theme.COLUMN_WIDTH)
                    beside = {(row, col - 1), (row, col + 1)} & set(sheet.entries)
                    workings = sheet.name == "Words"  # far below its maps
                    fits = len(entry.value) <= 1.2 * room or not beside or workings
                    assert fits, (sheet.name, entry.value)


@pytest.mark.parametrize(
    "name", ["cat-sat", "two-layers", pytest.param("dialogue-game", marks=pytest.mark.slow)]
)
def test_answers_and_charts_stand_in_the_first_screen(name: str) -> None:
    """Of 1366 x 768 pixels at 100 %, in LibreOffice, whose columns are a little wider."""
    book = default_book(name)
    assert RANKS_ROW + ranking.n_ranks(book) <= ROWS_SEEN
    n_charts = 0
    for sheet, first in FIRST_CHARTS.items():
        if sheet not in book.sheets:  # whose words lie on one line
            assert name == "cat-sat"
            continue
        seen = book.sheets[sheet]
        for chart in seen.charts[:first]:
            n_charts += 1
            widths = (seen.widths.get(k, theme.COLUMN_WIDTH) for k in range(chart.col))
            right = WIDER * sum(map(theme.pixels, widths)) + chart.size[0]
            heights = (seen.heights.get(k, ROW_HEIGHT) for k in range(chart.row))
            bottom = sum(heights) * PIXELS_A_POINT + chart.size[1]
            assert right <= SCREEN[0] and bottom <= SCREEN[1], (sheet, right, bottom)
    assert n_charts == (4 if name == "cat-sat" else 7)
