"""Every page opens from disk in a browser, without an error and without asking for anything, is
small, and has the engine's values there, fresh and after edits."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from conftest import default_book
from in_node import call
from pages import differing
from test_page_values import BOOKS, drawn

import workbooks
from engine import Evaluator
from exporters.compose.book import Book
from exporters.web import data, page

pytestmark = pytest.mark.slow

N_EDITS = 20
MOST_BESIDES = 150 << 10  # bytes of a page besides its weights
IN_FIREFOX = ("cat-sat", "dialogue-game", "tokenization", "superposition", "learn", "golden-gemma3")


@pytest.fixture(scope="module")
def in_chromium(chromium: str) -> Iterator[None]:
    call("browsers.mjs", "begin", "chromium", chromium)
    yield
    call("browsers.mjs", "end")


@pytest.fixture(scope="module")
def in_firefox(firefox: str) -> Iterator[None]:
    call("browsers.mjs", "begin", "firefox", firefox)
    yield
    call("browsers.mjs", "end")


def assert_opens(name: str, folder: Path) -> None:
    """Open a page in the browser that has begun."""
    book = BOOKS[name]() if name in BOOKS else default_book(name)
    live = Evaluator(book.graph)
    edits = list(islice(drawn(book, live, 7), N_EDITS))
    page.write(book, folder / "x.html")
    said = call("browsers.mjs", "open", str(folder / "x.html"), edits, str(folder / "values"))
    assert said["wrong"] == [] and said["asked"] == []
    assert (folder / "x.html").stat().st_size <= most_bytes(book)
    assert_values(folder / "values.fresh.json", live)
    for edit in edits:
        live.set(*edit)
        live.recompute()
    assert_values(folder / "values.edited.json", live)


def most_bytes(book: Book) -> float:
    return len(data.of_book(book).weights) * 4 / 3 + MOST_BESIDES


def assert_values(path: Path, live: Evaluator) -> None:
    found: dict[str, Any] = dict(json.loads(path.read_text()))
    assert [*islice(differing(found, live), 5)] == []


@pytest.mark.parametrize("name", [*workbooks.names(), *BOOKS])
def test_opens_in_chromium(name: str, in_chromium, tmp_path: Path) -> None:
    assert_opens(name, tmp_path)


@pytest.mark.parametrize("name", IN_FIREFOX)
def test_opens_in_firefox(name: str, in_firefox, tmp_path: Path) -> None:
    assert_opens(name, tmp_path)
