"""Digest: the page of formula ranges, from which Start makes its verdict."""

from cellformer.exporters.compose import digest
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook

SHEET, PURPOSE, AFTER = digest.SHEET, digest.PURPOSE, digest.AFTER


def add(book: ModelBook) -> None:
    """Add the sheet; it is filled when all other sheets are complete."""
    layout.dress(book, book.sheet(SHEET))
    book.sheet(SHEET).hidden = True
