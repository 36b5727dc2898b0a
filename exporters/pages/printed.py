"""Printed: a source's tables side by side: printed, recomputed, difference.

If a source computed by hand, slips propagate: a fourth copy is computed from the tables printed
before, which separates a step's own slips from those carried over.
"""

from collections.abc import Iterator

from cellformer.engine.cells.language import worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import Beyond
from cellformer.exporters.compose.story import Printed, PrintedNumber
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Printed"
PURPOSE = "the tables of the source: as printed, recomputed with your edits, and the difference"
AFTER = "Vocabulary"
COPIES = ("printed", "recomputed", "difference", "numbers from the tables above")


def wanted(book: ModelBook) -> bool:
    """Whether the workbook's source prints tables."""
    return bool(book.printed)


def add(book: ModelBook) -> None:
    """Add every table that the source prints, beside the recomputed cells."""
    page = layout.page(book, SHEET, widths=dict.fromkeys(range(1, 1 + len(COPIES)), 11))
    text = (
        "Recomputed numbers follow your edits. Orange: rounding alone does not "
        "explain the difference."
    )
    page.sheet.put(3, 0, text, "note")
    row = 5
    for n, table in enumerate(book.printed):
        here = OnSheet(book, page, table, row, str(n))
        here.put_labels()
        here.put_numbers()
        row = here.top + here.height + 1


class OnSheet:
    """A printed table on the sheet. A single printed row is shown as a column, which is easier to
    compare."""

    def __init__(self, book: ModelBook, page: Composer, table: Printed, row: int, name: str):
        self.book, self.page, self.table, self.row, self.name = book, page, table, row, name
        self.block = book.graph[table.block]
        n_rows, n_cols = len(table.printed), len(table.printed[0])
        self.rows = list(range(n_rows) if table.rows is None else table.rows)
        self.cols = list(range(n_cols) if table.cols is None else table.cols)
        self.down = len(self.rows) == 1
        self.top = row + (2 if self.down else 3) + bool(table.note)
        size = len(self.rows), len(self.cols)
        self.size = self.height, self.width = size[::-1] if self.down else size
        step = self.width + (0 if self.down else 2)
        self.lefts = [1 + k * step for k in range(4 if table.follows else 3)]

    def put_labels(self) -> None:
        """Add the title, the note, the heads of the copies, and the labels of rows and columns."""
        book, sheet, axes = self.book, self.page.sheet, self.block.axes
        name = "" if self.table.cell else f"   ({self.table.block})"
        sheet.hold(self.row, 0, f"{worded(self.table.title)}{name}", "heading")
        if self.table.note:
            sheet.put(self.row + 1, 0, self.table.note, "note")
        for left, copy in zip(self.lefts, COPIES, strict=False):
            short = self.down and copy != COPIES[-1]
            sheet.put(self.top - 2 + self.down, left, copy, "head" if short else "block")
            if not self.down:
                name, at = f"printed.{self.name}.{copy.split()[0]}", (self.top - 1, left)
                layout.labels(book, sheet, name, at, axes[1], self.cols, "label", across=True)
        axis, along = (axes[1], self.cols) if self.down else (axes[0], self.rows)
        layout.labels(
            book, sheet, f"printed.{self.name}.rows", (self.top, 0), axis, along, "row label"
        )

    def put_numbers(self) -> None:
        """Add the copies, entry by entry; the printed ones are kept for later tables."""
        sheet, table, printed = self.page.sheet, self.table, self.lefts[0]
        live, change, *chained = (
            self.page.table(f"{self.name}.{copy.split()[0]}", (self.top, left), self.size)
            for left, copy in list(zip(self.lefts, COPIES, strict=False))[1:]
        )
        region = sheet[self.top : self.top + self.height, printed : printed + self.width]
        self.book.printed_cells[table.title] = region
        for r, c, number in self.entries():
            at = (c, 0) if self.down else (r, c)
            typed = sheet[self.top + at[0], printed + at[1]]
            i, j = self.rows[r], self.cols[c]
            cell = table.cell(self.book.graph, i, j) if table.cell else self.block[i, j]
            sheet.put(typed.rect.top, typed.rect.left, number, "printed")
            found = live.put(*at, cell, "live")
            change.put(*at, found - typed, "change")
            before = None
            for followed in chained:
                assert table.follows is not None
                before = followed.put(*at, table.follows(self.book.printed_cells, r, c), "live")
            what, where = f"{table.title} [{i}, {j}]", self.book.section
            rest = table.decimals, table.note, table.other, before
            self.book.held.append(PrintedNumber(where, what, number, found, *rest))
        self.page.dress(change.area, Beyond(0.5 * 10.0**-table.decimals + NEAR))

    def entries(self) -> Iterator[tuple[int, int, float]]:
        """Row, column and value of each printed entry that has a cell to compare with."""
        for r, line in enumerate(self.table.printed):
            for c, number in enumerate(line):
                there = self.table.cell or self.block.has(self.rows[r], self.cols[c])
                if number is not None and there:
                    yield r, c, number
