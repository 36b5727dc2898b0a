"""Digest: the page of the ranges of formulas that the verdict on Start is made from."""

from exporters.compose import digest
from exporters.model import layout
from exporters.model.model_book import ModelBook

SHEET, PURPOSE, AFTER = digest.SHEET, digest.PURPOSE, digest.AFTER


def wanted(book: ModelBook) -> bool:
    """In every workbook."""
    return True


def add(book: ModelBook) -> None:
    """The sheet; what it says is put there when every other sheet stands."""
    layout.dress(book, book.sheet(SHEET))
