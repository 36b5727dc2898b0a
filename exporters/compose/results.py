"""A link to a sheet's first result, on a sheet whose results stand outside the first screen."""

from collections.abc import Iterator

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.language import worded
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.address import of_cell, quoted
from cellformer.exporters.compose.book import Sheet

ROW = 3  # blank, below the sheet's purpose
ROWS, PIXELS = 26, 1100  # that a first screen shows at least


def lead_to(sheet: Sheet) -> None:
    """Add the link, unless a result is seen at once."""
    found = sorted(_results(sheet))
    if found and (ROW, 0) not in sheet.entries and not any(_seen(sheet, at) for at in found):
        cell = of_cell(*found[0])
        sheet.link(
            ROW, 0, worded("result in cell {cell} ↓", cell=cell), f"{quoted(sheet.name)}!{cell}"
        )


def _results(sheet: Sheet) -> Iterator[Span]:
    """The cells, and the first cells of blocks, that are filled as results."""
    yield from (
        at
        for at, entry in sheet.entries.items()
        if at[0] > ROW and theme.STYLES[entry.style].get("bg_color") == theme.FILLS["readout"]
    )
    yield from (
        (place.top, place.left)
        for place, style in sheet.regions
        if theme.STYLES[style].get("bg_color") == theme.FILLS["readout"]
    )


def _seen(sheet: Sheet, at: Span) -> bool:
    row, col = at
    widths = (sheet.widths.get(k, theme.COLUMN_WIDTH) for k in range(col + 1))
    return row < ROWS and sum(map(theme.pixels, widths)) < PIXELS
