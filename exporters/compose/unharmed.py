"""Unharmed: pages on which an error in a cell that is typed over leads to no other.

What blocks compute counts such a cell as nothing by itself (`ModelBook.formulas`, `Graph.table`);
here the single formulas of pages learn it that read typed cells directly, or that divide, or ask
for a root or a logarithm, of what may have become nothing.
"""

from engine.cells.block import Block
from engine.cells.expression import Area
from engine.cells.functions import harmless, may_fail
from exporters.compose.book import Book, Sheet, TableFormula


def make(book: Book) -> None:
    """Have every single formula of a book that reads typed cells, or that may fail at what others
    have come to, take an error as nothing."""
    if book.iterates:
        return
    for sheet in book.sheets.values():
        for at, entry in sheet.entries.items():
            formula = entry.formula
            if formula is None or isinstance(formula, TableFormula):
                continue
            if may_fail(formula) or any(_typed(book, area) for area in formula.areas()):
                sheet.entries[at] = entry._replace(formula=harmless(formula))


def _typed(book: Book, area: Area) -> bool:
    """Whether an area has cells that hold what is typed, of a block or of a page."""
    if isinstance(area.grid, Block):
        return not area.grid.computed
    if not isinstance(area.grid, Sheet):
        return False
    found = book.sheets[area.grid.name].entries.get(area.rect[::2])
    return found is not None and found.formula is None and not isinstance(found.value, str)
