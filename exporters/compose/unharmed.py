"""Making pages robust: an error typed into a cell leads to no error in others.

Formulas of blocks handle typed errors already (`ModelBook.formulas`, `Graph.table`); this is for
the single formulas of pages that read typed cells, or that divide by, or take a root or a logarithm
of, something that may have become 0.
"""

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.functions import harmless, may_fail
from cellformer.exporters.compose.book import Book, Sheet, TableFormula


def make(book: Book) -> None:
    """Wrap every single formula of a book that reads typed cells, or that may fail on their
    results, so that an error counts as 0."""
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
    """Whether an area contains input cells, of a block or of a page."""
    if isinstance(area.grid, Block):
        return not area.grid.computed
    if not isinstance(area.grid, Sheet):
        return False
    found = book.sheets[area.grid.name].entries.get(area.rect[::2])
    return found is not None and found.formula is None and not isinstance(found.value, str)
