"""A workbook in Italian: texts from the catalogue, formulas and numbers as in English."""

import re
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from conftest import cli, script

import cellformer as cf
from cellformer import workbooks
from cellformer.engine import InputError
from cellformer.engine.cells import language
from cellformer.exporters.compose import digest
from cellformer.exporters.compose.book import Book

LITERAL = re.compile(r'"(?:[^"]|"")*"')  # a text in a formula
ADDRESS = re.compile(r"(?:'[^']+'!|\w+!)?\$?[A-Z]{1,3}\$?\d+")
LENGTH = re.compile(r"\b(LEFT|RIGHT)\(([^(),]*),\d+\)")  # as many characters as a text has
TITLE = 3  # rows of a sheet whose links and legend stand where the texts beside them end
LARGE = "shakespeare"  # takes as long as all others: of it, the texts of its Start


def codes() -> list[str]:
    """The languages besides English."""
    return [code for code in language.codes() if code != "en"]


def catalogue(code: str) -> Catalog:
    with (language.FOLDER / f"{code}.po").open("rb") as file:
        return read_po(file, locale=code)


def braces(text: str) -> set[str]:
    """What stands in a text's braces; a text that is no template has none."""
    try:
        return {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError:
        return set()


def numbers(book: Book) -> dict[tuple[str, int, int], object]:
    """Every cell of a book but for its texts: values and formulas of numbers, and the cells that
    formulas of texts read. Digest is left out: it holds texts, and compares them."""
    found: dict[tuple[str, int, int], object] = {}
    for sheet in book.sheets.values():
        for at, entry in sheet.entries.items():
            if sheet.name == digest.SHEET or at[0] < TITLE:
                continue
            value = book.clean.cell(sheet.name, *at)
            formula = book.text(entry.formula, sheet.name) if entry.formula is not None else ""
            formula = LENGTH.sub(r"\1(\2)", LITERAL.sub('""', formula))
            read = sorted({*ADDRESS.findall(formula)})
            found[sheet.name, *at] = read if isinstance(value, str) else (formula, value)
    return found


@pytest.mark.parametrize("code", codes())
def test_a_translation_has_the_braces_of_its_text(code: str) -> None:
    wrong = [m.id for m in catalogue(code) if m.string and braces(m.id) != braces(m.string)]
    assert wrong == []


@pytest.mark.slow
def test_every_text_of_the_gallery_is_in_every_catalogue() -> None:
    names = [name for name in workbooks.path() if name != LARGE]
    asked = script("languages").asked_for(names, studies=False)
    story = workbooks.find(LARGE).STORY
    asked |= {text: [LARGE] for text in (story.title, story.source, *story.about, *story.look)}
    for code in codes():
        known = language.language(code).texts
        lacking = [f"{found[0]}: {text}" for text, found in asked.items() if text not in known]
        assert lacking == [], f"{code}: python docs/scripts/languages.py"


@pytest.mark.parametrize("name", ["cat-sat", "zero-layer"])
def test_only_texts_differ_in_italian(name: str) -> None:
    english, italian = cf.build(name), cf.build(name, lang="it")
    assert numbers(english) == numbers(italian)
    texts = {entry.value for sheet in italian.sheets.values() for entry in sheet.entries.values()}
    assert "Di che si tratta" in texts and "What this is" not in texts
    assert [*english.sheets] == [*italian.sheets]


@pytest.mark.slow
def test_an_italian_workbook_is_read_back(tmp_path: Path) -> None:
    cells = {"cat-sat": ("blocks.0.attn.h0.W_V", 2, 2), "zero-layer": ("corpus", 0, 0)}
    for name, cell in cells.items():
        book = cf.build(name, lang="it")
        typed = "Z" if name == "zero-layer" else 3.0
        path = cf.write(book, tmp_path / f"{name}.xlsx", edits={cell: typed})
        found = cf.read(path)
        assert [edit.name for edit in found.inputs] == [f"{cell[0]}[{cell[1]},{cell[2]}]"]
        assert found.overwritten == [] and found.labels == [] and found.added == []
    assert "blocks.0.attn.h0.W_V[2,2]" in cli("diff", str(tmp_path / "cat-sat.xlsx")).out


def test_an_unknown_language_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="there is no translation into 'xx'; known: en, it"):
        cf.build("zero-layer", lang="xx")


def test_a_number_in_a_text_has_a_decimal_comma() -> None:
    italian = language.Language("it", {"{x:.2f} of {n:,}": "{x:.2f} di {n:,}"}, comma=True)
    with language.speaking(italian):
        assert language.worded("{x:.2f} of {n:,}", x=0.5, n=1234) == "0,50 di 1.234"
    assert language.worded("{x:.2f} of {n:,}", x=0.5, n=1234) == "0.50 of 1,234"
