"""The claims on the first screens of five workbooks are true, live, and visible.

This file computes each number anew, only from typed numbers. test_gallery.py tests that programs
show the same texts, as built and after every suggested edit.
"""

from collections.abc import Mapping
from math import exp, floor, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from conftest import Built, default_book
from libreoffice import places

from cellformer.exporters.compose.book import Book
from cellformer.workbooks.low_rank.example import TABLE

SCREEN = 1313, 586  # pixels of cells that LibreOffice's window of 1366 x 768 shows at 100 %
Cell = tuple[str, int, int]


class Claim(NamedTuple):
    """A claim: the sheet and the table of its text, an edit, and what it says before and after."""

    sheet: str
    table: str
    edit: Mapping[Cell, float | str]
    before: tuple[str, ...]
    after: tuple[str, ...]


def percent(x: float) -> str:
    return f"{100 * x:.0f} %"


def cost(heads: int) -> tuple[str, ...]:
    """kv-cache: gigabytes and dollars of the essay's 7B on a card of 80 GB for 2.50 an hour."""
    gigabytes = 2 * 32 * 32768 * heads * 128 * 2 / 1e9
    return f"{gigabytes:.1f} GB", f"{2.5 / floor((80 - 14) / gigabytes):.2f} dollars"


def kept(rank: int) -> tuple[str, ...]:
    """low-rank: how much of the table so many singular vectors rebuild, and how many numbers."""
    s = np.linalg.svd(TABLE, compute_uv=False)
    share = float((s[:rank] ** 2).sum() / (s**2).sum())
    return f"{rank} numbers", percent(share), f"{rank * sum(TABLE.shape)} numbers"


def found(times: float) -> tuple[str, ...]:
    """final-step: the word nearest to a query so many times as long, and its share."""
    words = {"Tarso": (1.2, 0.4, -0.1), "Cefa": (0.3, 1.0, 0.2), "Paolo": (-0.5, 0.2, 0.9)}
    scores = {w: times * float(np.dot((1.0, 0.5, -0.2), v)) for w, v in words.items()}
    best = max(scores, key=lambda word: scores[word])
    return f"‘{best}’", percent(exp(scores[best]) / sum(map(exp, scores.values())))


def rule(layers: int) -> tuple[str, ...]:
    """napkin: GPT-3's weights by the rule, and counted: tables, attention, MLPs, norms."""
    width = 12288
    inside = layers * (12 * width**2 + 13 * width)
    counted = inside + (50257 + 2048 + 2) * width
    billions = (round(x / 1e9, 1) for x in (12 * layers * width**2, counted))
    return tuple(f"{x:g} {unit}" for x, unit in zip(billions, ("of", "billion"), strict=True))


def says(kind: str, name: str) -> tuple[str, ...]:
    """one-layer: where head 0.0 looks from the last word, and what follows, from its rules."""
    look = exp(3 * 2 / sqrt(2))
    share = look / (look + 3)
    names = exp(2 * share + 2 * share), exp(2 * share)  # the place that is meant, and the other
    others = 4 + exp(4 * share - 8 * share)  # The, state, city, New; of
    return f"‘{kind}’", percent(share), f"‘{name}’", percent(names[0] / (sum(names) + others))


CLAIMS = {
    "kv-cache": Claim("Cache", "cache.claim", {("sizes", 2, 1): 8.0}, cost(32), cost(8)),
    "low-rank": Claim("Table", "table.claim", {("rank", 0, 0): 1.0}, kept(2), kept(1)),
    "final-step": Claim(
        "Two searches", "two_searches.claim", {("query_length", 0, 0): 3.0}, found(1), found(3)
    ),
    "napkin": Claim("Napkin", "napkin.claim", {("sizes", 2, 5): 48.0}, rule(96), rule(48)),
    "one-layer": Claim(
        "Model",
        "model.claim",
        {("tokens", 0, 1): "city"},
        says("state", "Jersey"),
        says("city", "Orleans"),
    ),
}


def text(book: Book, claim: Claim, edit: Mapping[Cell, float | str]) -> str:
    """What the claim says after an edit."""
    cells = {book.graph[name][i, j]: value for (name, i, j), value in edit.items()}
    shown = book.shown[claim.table]
    read = book.edited(cells) if cells else book.clean
    return str(read.cell(shown.sheet, shown.top, shown.left))


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_hold_and_follow_an_edit(name: str) -> None:
    book, claim = default_book(name), CLAIMS[name]
    for edit, said in (({}, claim.before), (claim.edit, claim.after)):
        shown = text(book, claim, edit)
        assert all(part in shown for part in said), (shown, said)


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_what_one_sees_first(name: str) -> None:
    """The file opens on its sheet, where it is one plain sentence with three edits below it."""
    book, claim = default_book(name), CLAIMS[name]
    assert book.opens_on == claim.sheet == book.shown[claim.table].sheet
    said = text(book, claim, {})
    assert said.endswith(".") and len(said.split()) <= 25
    assert len(book.sheets[claim.sheet].suggestions) == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_claim_and_edits_are_in_sight(
    libreoffice: None, built: Built, name: str, tmp_path: Path
) -> None:
    """Where LibreOffice has them: the claim, and the last of the three edits."""
    book, claim = default_book(name), CLAIMS[name]
    sheet = book.sheets[claim.sheet]
    heading = next(at for at, e in sheet.entries.items() if e.value == "Three things to try here")
    last = max(at for at in sheet.links if at[0] == heading[0] + 3)
    for row, col in ((book.shown[claim.table].top, 0), last):
        *_, (_, right, bottom) = places(built[name], (claim.sheet, row, col), tmp_path)
        assert right <= SCREEN[0] and bottom <= SCREEN[1]
