"""What a page says of itself: not of sheets that it shows otherwise."""

import re
from collections.abc import Iterator

import pytest
from conftest import default_book, in_tiers
from test_page_values import with_study

from cellformer import workbooks
from cellformer.engine.cells.expression import Constant, Expression, steps
from cellformer.exporters.assemble import tour
from cellformer.exporters.compose.book import Book
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.web import data, sheets, wording

OF_A_WORKBOOK = re.compile(
    r"\b[Oo]n (Play|Switches|Machine)\b|\bF9 down|\bblue number|of this workbook"
)

OF_A_PROGRAM = re.compile(r"Excel|in LibreOffice|Unprotect|\bRibbon\b|\bUnhide\b")


def texts(formula: Expression) -> str:
    """The texts in a formula, one after another."""
    found = (part for part, _ in steps(formula) if isinstance(part, Constant))
    return " ".join(part.number for part in found if isinstance(part.number, str))


def told(book: Book) -> list[str]:
    """What a page tells: its tour, what it suggests."""
    found = [sheets.suggestion(book, one)["text"] for one in book.suggestions]
    found += [
        sheets.suggestion(book, x)["text"] for s in book.sheets.values() for x in s.suggestions
    ]
    if isinstance(book, ModelBook):
        found += [texts(wording.live(stop.text)) for stop in tour.stops(book)]
    return found


def strings(found: object) -> Iterator[str]:
    """All texts in the data of a page."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, dict | list | tuple):
        for part in found.values() if isinstance(found, dict) else found:
            yield from strings(part)


@pytest.mark.parametrize("name", in_tiers(workbooks.names()))
def test_a_page_gives_no_instructions_for_spreadsheet_programs(name: str) -> None:
    found = strings(data.of_book(default_book(name)).data)
    assert [text for text in found if OF_A_PROGRAM.search(text)] == []


MODELS = [name for name in workbooks.names() if hasattr(workbooks.find(name), "PROMPT")]


@pytest.mark.parametrize("name", in_tiers(MODELS))
def test_a_page_speaks_of_what_it_shows(name: str) -> None:
    assert [text for text in told(default_book(name)) if OF_A_WORKBOOK.search(text)] == []


def test_a_phrase_is_said_otherwise() -> None:
    text = "Type ‘0’ on Switches for this head: Tarso is no longer called."
    assert wording.said(text) == "Switch off this head: Tarso is no longer called."


def test_the_tour_comes_with_the_names_of_blocks() -> None:
    """Longer names of parts come first, because `head 1.2` begins `head 1.23`."""
    found = data.of_book(default_book("dialogue-game")).data
    lengths = [len(name) for name, _ in found["parts"]]
    assert lengths == sorted(lengths, reverse=True)
    assert ["head 1.2", "blocks.1.attn.h2.pattern"] in map(list, found["parts"])
    places = {stop["concept"]: stop["place"] for stop in found["tour"]}
    assert places["tokens"] == {"id": "sentence"}
    assert places["logits"] == {"block": "logits"}


@pytest.mark.slow
def test_each_picture_has_gradients() -> None:
    """A block whose only reader passes it on shares that reader's gradient: the stream does."""
    blocks = {b["n"]: b for b in data.of_book(with_study("gpt2", "gradient")).data["blocks"]}
    for name in ("blocks.0.resid_mid", "blocks.0.resid_post", "resid_final", "logits"):
        assert name not in blocks or blocks[name].get("g", f"gradient.{name}") in blocks
