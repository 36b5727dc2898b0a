"""Index: every block with its address, shape and meaning, its number of cells, and whether it was
edited."""

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, Rounded
from cellformer.engine.cells.functions import ABS, COUNT, IF, IFERROR, SUM, N
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.rounding import NEAR, NEAR_LARGE
from cellformer.exporters.compose.dressing import Unlike
from cellformer.exporters.compose.lookups import product_sum
from cellformer.exporters.model import layout, words
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Index"
PURPOSE = "every block with its place, shape and meaning, and whether you edited it"
AFTER = "Map"
EDITED = "edited"


def add(book: ModelBook) -> None:
    """Add a line per block."""
    page = layout.page(
        book,
        SHEET,
        "" if book.plan.compares_blocks else "every block with its place, shape and meaning",
        widths={0: 36, 1: 15, 2: 17, 3: 33, 4: 9, 5: 54, 6: 9, 7: 9},
    )
    sheet = page.sheet
    sheet.prints = "nothing"
    sheet.heads = page.cursor
    page.heads("block", "sheet", "cells", "shape", "rows run", "meaning", "numbers", "edited?")
    found, top = blocks(book), page.cursor
    numbers = page.table("numbers", (top, 6), (len(found), 1))
    changed = page.table("edited", (top, 7), (len(found), 1))
    for k, block in enumerate(found):
        place = book.places[block.name]
        sheet.link(top + k, 0, AsIs(block.name), book.address(block.area))
        told = (
            AsIs(place.sheet),
            AsIs(book.address(block.area, place.sheet)),
            words.shape(block, place.turned),
            "across" if place.turned else "down",
            words.meaning(block, book.plan.gradient_of),
        )
        sheet.across(top + k, 1, told, "text")
        numbers.put(k, 0, COUNT(block.area), "count")
        if not block.computed and block.kind != "ids" and book.plan.compares_blocks:
            page.dress(changed.put(k, 0, edited(book, block), "label"), Unlike(worded("no")))


def counts(book: ModelBook) -> Area:
    """The number of cells of each block."""
    return book.shown["index.numbers"].block.area


def blocks(book: ModelBook) -> list[Block]:
    """Every block of the graph, or the pieces of a split one."""
    found = []
    for block in book.blocks:
        pieces = book.pieces.get(block.name)
        found += [book.places[name].block for name in pieces.names] if pieces else [block]
    return found


def edited(book: ModelBook, block: Block) -> Expression:
    """Whether a block's sum or sum of squares has changed by more than rounding."""
    area, values = block.area, book.values[block.name]
    if area.rect.size == 1:
        gap: Expression = ABS(N(area) - Rounded(float(values[0, 0])))
        within = NEAR
    else:
        total, squares = float(values.sum()), float((values**2).sum())
        gap = ABS(SUM(area) - Rounded(total)) + ABS(product_sum(area, area) - Rounded(squares))
        within = max(NEAR, NEAR_LARGE * max(float(np.abs(values).sum()), squares))
    differs = gap > float(f"{within:.0e}")
    return IFERROR(IF(differs, worded(EDITED), worded("no")), worded(EDITED))
