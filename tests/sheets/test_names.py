"""Names: every formula cell of a workbook is a cell of a block or of a table of its sheet."""

import re
from collections.abc import Iterator
from itertools import combinations

import pytest
from conftest import default_book, golden_models, in_tiers

from cellformer import workbooks
from cellformer.engine.cells.access import Span
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.addition import Addition, Studies, additions
from cellformer.engine.studies.pair import Against
from cellformer.engine.studies.steering import contrast
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.compose.book import Book, TableFormula
from cellformer.exporters.model.plan import Limits

A_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)*")  # as `trace` reads it
Cell = tuple[str, Span]


def formulas(book: Book) -> Iterator[Cell]:
    """Every cell with a formula of its own, and not a block's."""
    for sheet in book.sheets.values():
        for at, entry in sheet.entries.items():
            if entry.formula is not None and not isinstance(entry.formula, TableFormula):
                yield sheet.name, at


def named(book: Book) -> dict[Cell, list[str]]:
    """The cells of blocks and tables, each with the names that it has."""
    found: dict[Cell, list[str]] = {}
    for name, place in (*book.places.items(), *book.shown.items()):
        for at in place.rect(place.block.whole).cells():
            found.setdefault((place.sheet, at), []).append(name)
    return found


def assert_named(book: Book) -> None:
    names = named(book)
    assert [cell for cell in formulas(book) if cell not in names] == []
    shared = {cell: found for cell, found in names.items() if len(found) > 1}
    assert shared == {}, "cells of two tables"
    assert not book.shown.keys() & {*book.graph.blocks, *book.places}
    assert [name for name in book.shown if not A_NAME.fullmatch(name)] == []


@pytest.mark.parametrize("name", in_tiers(workbooks.names()))
def test_every_formula_cell_has_one_name(name: str) -> None:
    assert_named(default_book(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "bert", "minilm", "mixtral"])
@pytest.mark.parametrize("studies", [{}, {"nudge": True}], ids=["plain", "nudge"])
def test_every_formula_cell_of_a_model_has_one_name(name: str, studies: Studies) -> None:
    model = golden_models()[name]
    if studies and model.spec.gives != "next word":
        pytest.skip("an encoder takes no step")
    second = [2, 1] if model.spec.gives == "sentence" else ()
    words = passage(model, [1, 2, 3], 4, second=second)
    assert_named(model_workbook.build(name, model, words, studies=studies))


@pytest.mark.slow
def test_every_formula_cell_that_says_why_has_one_name() -> None:
    model = golden_models()["mixtral"]
    words = passage(model, [1, 2, 3], 4)
    assert_named(model_workbook.build("why", model, words, studies={"why": ""}))


def test_every_formula_cell_of_many_words_has_one_name() -> None:
    model = golden_models()["llama"]
    given = passage(model, [1, 2], 3)
    assert_named(model_workbook.build("llama", model, given, limits=Limits(words=9)))


def asked(name: str) -> object:
    """What an addition may be asked for, of the golden Llama."""
    model = golden_models()["llama"]
    lists = {"one": [[1, 2], [3]], "other": [[4, 4], [2, 5, 6]]}
    some = {"against": Against((1, 4, 3)), "steer": contrast(model, lists), "quantize": {}}
    return (some | {"why": "", "words": {"words": list(range(8))}}).get(name, True)


def together() -> Iterator[tuple[Addition, Addition]]:
    """Every two additions that can be combined."""
    for one, other in combinations(additions(), 2):
        if one.name not in other.apart and other.name not in one.apart:
            yield one, other


@pytest.mark.slow
@pytest.mark.parametrize("names", [(a.name, b.name) for a, b in together()], ids="-".join)
def test_no_cell_is_of_two_tables_in_two_studies_together(names: tuple[str, str]) -> None:
    model, studies = golden_models()["llama"], {name: asked(name) for name in names}
    assert_named(model_workbook.build("both", model, passage(model, [1, 2, 3]), studies=studies))
