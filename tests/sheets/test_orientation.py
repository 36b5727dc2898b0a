"""Which way tables stand: the sentence across, a row of a pattern for the token that looks, and
weights as in their file, [in, out]; a weight that does not says so."""

import re

import numpy as np
import openpyxl
import pytest
from conftest import Built, default_book, in_tiers

from cellformer import workbooks
from cellformer.engine.models.encoding import TOKENS
from cellformer.exporters.compose.book import Book

NAMES = in_tiers(workbooks.names())
A_RANGE = re.compile(r"'?([^'!]+)'?!\$([A-Z]+)\$(\d+)(?::\$([A-Z]+)\$(\d+))?$")
ABOVE = 3  # rows above a table, of which one holds its heading
MODELS = [n for n in workbooks.names() if not hasattr(workbooks.find(n), "book")]


def patterns(book: Book) -> list[str]:
    """The tables of tokens by tokens, without the copies that say that they are transposed."""
    found = [b.name for b in book.graph if all(axis in TOKENS for axis in b.axes)]
    return [name for name in found if "turned" not in name.split(".") and name in book.places]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_of_a_pattern_is_the_token_that_looks(name: str) -> None:
    """On layers' sheets, and in the squares of Heads and Machine. Its shares sum to 1."""
    book = default_book(name)
    for pattern in patterns(book):
        assert not book.places[pattern].turned, pattern
    squares = [n for n in book.shown if re.match(r"(heads|machine\.tile)\.(\d+\.)", n)]
    for square in squares:
        block = book.shown[square].block
        shares = np.zeros(block.shape)
        for i, j in block.whole.cells():
            shares[i, j] = book.clean(block[i, j]) or 0  # no formula for words that come later
        np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-9)


@pytest.mark.parametrize("name", in_tiers(MODELS))
def test_the_sentence_runs_across(name: str) -> None:
    """In every model's workbook, each table with a row for each token stands on its side."""
    book, n = default_book(name), 0
    for block in book.graph:
        if block.axes[0] in TOKENS and block.axes[1] not in ("", *TOKENS):
            assert book.places[block.name].turned, block.name
            n += 1
    assert n > 3


@pytest.mark.parametrize("name", NAMES)
def test_weights_stand_as_in_their_file_or_say_that_they_are_transposed(
    name: str, built: Built
) -> None:
    """By the names of the workbook: row r, column c of a range is the engine's [r, c]."""
    book = default_book(name)
    file = openpyxl.load_workbook(built[name], data_only=True)
    weights = {b.name: b for b in book.graph if b.kind == "weight" and b.name in book.places}
    ranges = {n: A_RANGE.match(d.attr_text) for n, d in file.defined_names.items() if n in weights}
    for of, found in ranges.items():
        assert found, of
        sheet, left, top, right, bottom = found.groups()
        cells = file[sheet][f"{left}{top}:{right or left}{bottom or top}"]
        shown = np.array([[cell.value for cell in row] for row in cells], float)
        whole = np.asarray(book.graph.values[of])
        if shown.shape == whole.shape and np.allclose(shown, whole, atol=1e-12):
            continue
        np.testing.assert_allclose(shown.T, whole, atol=1e-12, err_msg=of)
        first = cells[0][0]
        above = [
            str(file[sheet].cell(first.row - k, col).value)
            for k in range(1, min(ABOVE, first.row - 1) + 1)
            for col in range(max(1, first.column - 1), first.column + len(cells[0]))
        ]
        assert any("transposed" in text for text in above), (of, above)
