"""Sheets and cells of a page: nothing of a sheet is missing, every suggested edit keeps its
promise, and a keyboard is enough."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain, repeat
from typing import Any

import pytest
from conftest import default_book, in_tiers
from in_node import call

from cellformer import workbooks
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import START, Book
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.web.page import write
from cellformer.exporters.web.sheets import ONLY_IN_A_FILE, TOP, sheets
from cellformer.exporters.web.wording import said

WORKSHEETS = [name for name in workbooks.names() if not hasattr(workbooks.find(name), "PROMPT")]
PER_CENT = 100


def cells_of(data: dict[str, Any], book: Book) -> dict[tuple[int, int], Any]:
    """What a sheet's data say of each cell: its classes, and a value, or a formula or block."""
    found: dict[tuple[int, int], Any] = {}
    for row, cells in data.get("texts", ()):
        for col, style, value in zip(cells[::3], cells[1::3], cells[2::3], strict=True):
            found[row, col] = style, value
    for row, col, style, _ in data.get("formulas", ()):
        found[row, col] = style, None
    for name, *_, styles in data.get("regions", ()):
        place = book.places[name]
        for cell, style in zip(place.block.whole.cells(), spread(styles), strict=False):
            if style >= 0:
                found[place.cell(*cell)] = style, None
    return {at: (data["styles"][style][0], value) for at, (style, value) in found.items()}


def spread(styles: int | list[int]) -> Iterator[int]:
    """The style of each cell of a block."""
    if isinstance(styles, int):
        return repeat(styles)
    return chain.from_iterable(map(repeat, styles[::2], styles[1::2]))


@pytest.mark.parametrize("name", in_tiers(workbooks.names()))
def test_each_cell_of_a_sheet_is_on_its_page(name: str) -> None:
    """With its value or its formula, blue where it is typed; but for title, links and ledger, and
    what Start and Check tell of sheets that the page lacks."""
    book = default_book(name)
    largest = book.shown.get("check.largest")
    shown = sheets(book, lambda formula: 0)
    if not isinstance(book, ModelBook):
        assert {data["name"] for data in shown} == set(book.sheets) - set(ONLY_IN_A_FILE)
    for data in shown:
        found = cells_of(data, book)
        for (row, col), entry in book.sheets[data["name"]].entries.items():
            if row < TOP or (data["name"] == START and (row, col) not in found):
                continue
            if largest and largest.sheet == data["name"] and row >= largest.top:
                continue
            classes, value = found[row, col]
            is_blue = theme.STYLES[entry.style].get("font_color") == theme.BLUE
            assert ("typed" in classes.split()) == is_blue, (data["name"], row, col)
            wanted = said(entry.value) if isinstance(entry.value, str) else entry.value
            assert value is None or value == wanted, (data["name"], row, col)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Pages of workbooks, written when they are asked for."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def page(name: str) -> str:
        path = folder / f"{name}.html"
        write(default_book(name), path)
        return str(path)

    return page


@pytest.mark.slow
def test_suggested_edits_of_worksheets(chromium: str, pages: Callable[[str], str]) -> None:
    """Each does what it promises when its button is pressed: the list of suggestions shows it, and
    the cell itself; and everything is back when it is pressed again."""
    said = call("inside.mjs", "suggested", chromium, [pages(name) for name in WORKSHEETS])
    assert not said["errors"]
    for name, done in zip(WORKSHEETS, said["found"], strict=True):
        book = default_book(name)
        suggestions = [*book.suggestions, *chain(*(s.suggestions for s in book.sheets.values()))]
        assert len(done) == len(suggestions) >= 3
        for suggestion, shown in zip(suggestions, done, strict=True):
            assert shown["again"] == shown["before"], (name, shown)
            assert_same(suggestion.becomes, shown["value"], 1e-11)
            assert_same(suggestion.becomes, shown["after"], 0.0)


def assert_same(value: Any, text: str, near: float) -> None:
    """A text tells a value: to within `near`, or half of its last decimal."""
    if isinstance(value, str):
        assert text == value
        return
    number = float(text.rstrip("%").replace(",", "")) / (PER_CENT if text.endswith("%") else 1)
    decimals = len(text.rstrip("%").partition(".")[2]) + 2 * text.endswith("%")
    tolerance = near * max(1, abs(value)) if near else 0.5001 * 10**-decimals
    assert abs(number - value) <= tolerance, (value, text)


def test_a_sheet_by_keyboard(chromium: str, pages: Callable[[str], str]) -> None:
    """Arrows move, what breaks a cell's rule is refused with the rule, Delete puts back, Ctrl+Z
    and Ctrl+Y undo and redo, and few rows of many are in the document."""
    steps = ["Control+Home", "PageDown ArrowRight", "Control+Home ArrowDown ArrowDown"]
    steps += ["ArrowRight", "2 Enter", "Escape", "0 . 5 Enter", "ArrowUp", "Delete"]
    steps += ["Control+z", "Control+z", "Control+y"]
    said = call("inside.mjs", "typed", chromium, pages("superposition"), "Sparsity", steps)
    assert not said["errors"]
    told = said["found"][0]
    cells = [step["cell"] for step in told]
    assert cells[0] == "Sparsity!A5"
    assert cells[3] == "p[0,0]"
    assert told[4]["fault"] == "Type a number from 0 to 1."
    assert [step["text"] for step in told[5:]] == ["0.2", "0.9", "0.5", "0.2", "0.5", "0.2", "0.5"]
    assert all(step["rows"] < 60 for step in told)


VIEWS = [
    ("superposition", {}),
    ("digits", {}),
    ("digits", {"colorScheme": "dark"}),
    ("one-step", {"width": 390, "height": 844}),
    ("one-step", {"colorScheme": "dark"}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "view"), VIEWS, ids=str)
def test_sheets_are_accessible(
    chromium: str, pages: Callable[[str], str], name: str, view: dict[str, Any]
) -> None:
    """axe finds nothing against WCAG 2 A and AA."""
    said = call("inside.mjs", "violations", chromium, pages(name), view)
    assert not said["errors"]
    assert not said["found"][0]


FORMATS = [
    (1.23456, "0.000", "1.235"),
    (1.2345, "0.0##", "1.235"),
    (2, "0.0##", "2.0"),
    (0.0, "0;-0;", ""),
    (-3, "0;-0;", "-3"),
    (12345678, '[>=10000000]"·";0', "·"),
    (0.1, "[>=0.0005]+0.0%;[<=-0.0005]-0.0%;0.0%", "+10.0%"),
    (-0.1, "[>=0.0005]+0.000;[<=-0.0005]-0.000;0.000", "-0.100"),
    (-0.0001, "[>=0.0005]+0.000;[<=-0.0005]-0.000;0.000", "0.000"),
    (3.2e-9, '"± "0E+00', "± 3E-09"),
    (1234567, "#,##0", "1,234,567"),
    (5, '"sentence, "0" given"', "sentence, 5 given"),
    (4, ";;;", ""),
]


@pytest.mark.parametrize(("value", "pattern", "text"), FORMATS)
def test_number_formats(node: str, value: float, pattern: str, text: str) -> None:
    """As spreadsheets show them."""
    assert call("format.js", "formatted", value, pattern) == text
