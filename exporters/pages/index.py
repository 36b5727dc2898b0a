"""Index: every block, where it stands, its shape and meaning, how many numbers, whether edited."""

from engine.cells.access import Rect
from engine.cells.block import Block
from exporters import layout, words
from exporters.address import a1
from exporters.model_book import ModelBook

SHEET = "Index"
PURPOSE = "every block: where it stands, its shape, its meaning, whether it was edited"
AFTER = "Map"
TOP = 5
TOLERANCE = "0.000000001"  # 1e-9, as a plain decimal


def wanted(book: ModelBook) -> bool:
    """In every workbook."""
    return True


def add(book: ModelBook) -> None:
    """One line per block."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    if book.large:
        sheet.purpose = "every block: where it stands, its shape, its meaning"
    heads = ("block", "sheet", "cells", "shape", "rows run", "meaning", "numbers", "edited?")
    for col, head in enumerate(heads):
        sheet.put(TOP - 1, col, head, "block")
    sheet.widths = {0: 34, 1: 12, 2: 13, 3: 26, 4: 9, 5: 54, 6: 9, 7: 9}
    for row, block in enumerate(blocks(book), TOP):
        place = book.places[block.name]
        area = book.area(block.name)
        sheet.link(row, 0, block.name, area)
        sheet.put(row, 1, place.sheet)
        sheet.put(row, 2, a1(place.rect(block.whole)))
        sheet.put(row, 3, words.shape(block))
        sheet.put(row, 4, "across" if place.turned else "down")
        sheet.put(row, 5, words.meaning(block))
        sheet.calc(row, 6, f"COUNT({area})", float(block.n_cells), "count")
        if block.op is None and block.kind != "ids" and not book.large:
            sheet.scales.append((Rect(row, row + 1, 7, 8), "unlike no"))
            sheet.calc(row, 7, _edited(book, block), "no", "label")


def blocks(book: ModelBook) -> list[Block]:
    """Every block of the graph; the pieces of one that stands on several sheets."""
    found = []
    for block in book.graph:
        pieces = book.pieces.get(block.name)
        found += [book.places[name].block for name in pieces.names] if pieces else [block]
    return found


def _edited(book: ModelBook, block: Block) -> str:
    """A formula that says "edited" when a block's sum or sum of squares is no longer the same."""
    area = book.area(block.name)
    values = book.values[block.name]
    total, squares = values.sum(), (values**2).sum()
    square = f"{area}*{area}" if block.whole.size == 1 else f"SUMPRODUCT({area},{area})"
    distance = f"ABS(SUM({area})-({total:.12f}))+ABS({square}-{squares:.12f})"
    return f'IF({distance}>{TOLERANCE},"edited","no")'
