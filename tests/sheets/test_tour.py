"""The tour on Start, the glossary, and the notes on headers."""

import re
from functools import cache
from pathlib import Path

import openpyxl
import pytest
from conftest import GOLDEN, Built, default_book, random_model

from cellformer.engine import ModelSpec
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.exporters.assemble import model_workbook, tour
from cellformer.exporters.model.glossary import TERMS
from cellformer.exporters.model.model_book import ModelBook

NAMED_AT = {  # what a stop names: no stop before it may use the word
    "embedding": 2, "stream": 3, "attention": 4, "head": 4, "share": 4, "pattern": 4,
    "layer": 4, "MLP": 5, "hidden": 5, "logit": 6, "softmax": 7, "probabilit": 7, "temperature": 7,
}  # fmt: skip
STOPS = (  # a workbook's are those of what its model has
    ("tokens",), ("the embedding",), ("the residual stream",), ("attention and its heads",),
    ("the MLP",), ("logits", "the sentence's vector"),
    ("probability and temperature", "the cosine"), ("change it",),
)  # fmt: skip
LACKING = {"cat-sat": {5}, "no layer": {3, 4, 5}}  # an MLP; the stream and attention, too
MODELS = ("gpt2", "bert", "minilm", "falcon", "cat-sat", "no layer")


@cache
def book_of(name: str) -> ModelBook:
    """A workbook of a decoder, an encoder, a model by hand without MLP, one without layers."""
    if name == "cat-sat":
        book = default_book(name)
        assert isinstance(book, ModelBook)
        return book
    alone = ModelSpec(7, 3, 8, position="learned")
    model = checkpoint.load(GOLDEN / name) if name != "no layer" else random_model(alone)
    second = [4, 5] if model.spec.gives == "sentence" else ()
    return model_workbook.build(name, model, passage(model, [3, 1, 2], 4, second=second))


@pytest.mark.parametrize("name", MODELS)
def test_tour_names_concepts_before_use(name: str) -> None:
    book = book_of(name)
    told = tour.stops(book)
    numbers = [next(n for n, of in enumerate(STOPS, 1) if s.concept in of) for s in told]
    assert numbers == [n for n in range(1, 9) if n not in LACKING.get(name, ())]
    for k, (n, stop) in enumerate(zip(numbers, told, strict=True), 1):
        text = str(stop.text.value(book.clean))
        assert text[0].isupper() and text.endswith((".", "‘.", "’."))
        early = [word for word, at in NAMED_AT.items() if at > n and word in text.lower()]
        assert not early or (n, early) == (1, ["hidden"]), (n, early)
        following = told[k].target if k < len(told) else "Start!A1"
        sheet = book.sheets[stop.sheet]
        assert following in [target for (row, _), target in sheet.links.items() if row == 1]


@pytest.mark.parametrize("name", MODELS)
def test_glossary_links(name: str) -> None:
    book = book_of(name)
    sheet = book.sheets["Glossary"]
    shown = [e.value for (row, col), e in sheet.entries.items() if col == 0 and row > 4]
    assert len(shown) >= {"gpt2": 45, "minilm": 30, "no layer": 25}.get(name, 38)
    assert shown == sorted(shown, key=str.lower)
    for (row, _), target in sheet.links.items():
        if row > 4:
            where, _, cell = target.rpartition("!")
            column, number = openpyxl.utils.cell.coordinate_from_string(cell)
            at = int(number) - 1, openpyxl.utils.column_index_from_string(column) - 1
            assert book.clean.cell(where.strip("'"), *at) is not None, target


def test_terms_are_whole_and_short() -> None:
    assert len(TERMS) >= 45
    for term in TERMS:
        assert len(term.meaning) < 140 and term.meaning.endswith("."), term
        assert re.match(r"[A-Z]", term.meaning), term


def test_headers_say_what_they_mean(built: Built) -> None:
    """The notes are there for another program, on the first screens."""
    sheets = openpyxl.load_workbook(built["cat-sat"])
    noted: dict[str, dict[str, str]] = {"Play": {}, "Switches": {}}
    for name, notes in noted.items():
        for row in sheets[name].iter_rows(max_row=40):
            notes |= {cell.value: cell.comment.text for cell in row if cell.comment}
    meanings = {term.name: term.meaning for term in TERMS}
    assert noted["Play"]["temperature"] == meanings["temperature"]
    assert noted["Play"]["word"] == meanings["token"]
    assert len(noted["Play"]) >= 8 and noted["Switches"]


def test_live_part_has_no_tour(tmp_path: Path) -> None:
    model = checkpoint.load(GOLDEN / "gpt2")
    book = model_workbook.build("part", model, passage(model, [3, 1]), ["blocks.0"])
    assert not tour.stops(book)
    assert "Machine" not in book.sheets and "Glossary" in book.sheets
