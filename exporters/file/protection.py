"""Sheet protection: every sheet is locked except for its input cells.

There is no password: it prevents sorting, inserting, deleting and typing over formulas by mistake,
and anyone can remove it. Cells with a blue font are unlocked (`theme`); other cells by their
content.
"""

from collections.abc import Collection, Iterator

from cellformer.exporters.compose.book import Book, Sheet

OPEN = " open"  # what ends the name of a style whose cells are open though they are not blue
# what one may do with locked cells, besides selecting and copying them
ALLOWED = dict.fromkeys(
    ("format_cells", "format_columns", "format_rows", "autofilter", "objects", "scenarios"), True
)


def opened(book: Book, sheet: Sheet) -> tuple[Collection[str], Collection[tuple[int, int]]]:
    """The blocks of a sheet that are unlocked as regions, and its unlocked entries: typed values,
    and the cells of suggested edits."""
    places = [place for place in book.places.values() if place.sheet == sheet.name]
    typed = [
        place
        for place in places
        if place.block.name in book.graph.blocks
        and place.block.kind in ("setting", "ids")
        and not place.block.computed
    ]
    cells = {at for at in sheet.entries for place in typed if place.holds(*at)}
    here = {place.block.name: place for place in places}
    tried = [(name, at) for name, at in _tried(book) if name in here]
    cells |= {here[name].cell(*at) for name, at in tried}
    return {place.block.name for place in typed} | {name for name, _ in tried}, cells


def _tried(book: Book) -> Iterator[tuple[str, tuple[int, int]]]:
    """The blocks and cells of all suggested edits of a book."""
    for suggestion in (
        *book.suggestions,
        *(t for sheet in book.sheets.values() for t in sheet.suggestions),
    ):
        yield from (
            (cell[0], cell[1:])
            for cell in (suggestion.cell, *(cell for cell, _ in suggestion.also))
            if not isinstance(cell, int)
        )
