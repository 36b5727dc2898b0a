"""Printed: a source's tables three times, side by side: printed, recomputed, difference."""

from exporters import layout
from exporters.book import Sheet
from exporters.dressing import Beyond
from exporters.model_book import ModelBook
from exporters.story import Printed

SHEET = "Printed"
PURPOSE = "the source’s tables: printed, recomputed (it follows your edits), difference"
AFTER = "Vocabulary"


def wanted(book: ModelBook) -> bool:
    """Where the source prints tables."""
    return bool(book.printed)


def add(book: ModelBook) -> None:
    """Every table that the source prints, held against the cells that recompute it."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    text = "Recomputed follows your edits. Orange: further from the printed figure than rounding."
    sheet.put(2, 0, text, "note")
    row = 4
    for table in book.printed:
        row = _printed_table(book, sheet, table, row)


def _printed_table(book: ModelBook, sheet: Sheet, table: Printed, row: int) -> int:
    block = book.graph[table.block]
    rows = list(range(block.shape[0]) if table.rows is None else table.rows)
    cols = list(range(block.shape[1]) if table.cols is None else table.cols)
    sheet.put(row, 0, f"{table.title}   ({table.block})", "heading")
    if table.note:
        sheet.put(row + 1, 0, table.note, "note")
    down = len(rows) == 1  # a single printed row is easier to compare as a column
    top = row + (2 if down else 3) + bool(table.note)
    height, width = (len(cols), 1) if down else (len(rows), len(cols))
    lefts = [1 + k * (width + (0 if down else 2)) for k in range(3)]
    for left, head in zip(lefts, ("printed", "recomputed", "difference"), strict=True):
        sheet.put(top - (1 if down else 2), left, head, "head" if down else "block")
        for c in range(0 if down else width):
            layout.label(book, sheet, top - 1, left + c, block.axes[1], cols[c], "label")
    for r in range(height):
        axis, k = (block.axes[1], cols[r]) if down else (block.axes[0], rows[r])
        layout.label(book, sheet, top + r, 0, axis, k, "row label")
    for r, i in enumerate(rows):
        for c, j in enumerate(cols):
            if block.has(i, j):
                at, offset = (top + c, 0) if down else (top + r, c)
                printed, live, difference = (left + offset for left in lefts)
                sheet.put(at, printed, table.printed[r][c], "printed")
                sheet.formula(at, live, block[i, j], "live")
                sheet.formula(at, difference, sheet[at, live] - sheet[at, printed], "change")
    differences = sheet[top : top + height, lefts[2] : lefts[2] + width]
    sheet.dress(differences, Beyond(0.5 * 10.0**-table.decimals + 1e-9))
    return top + height + 1
