"""Heads: every attention pattern of the model side by side, as one picture.

Layers run down, heads across. In each square a column is a query and shows where that token looks;
its cells sum to 1. The squares read the patterns from the layers' own sheets.
"""

from exporters import layout
from exporters.model_book import ModelBook

SHEET = "Heads"
PURPOSE = "every attention pattern side by side: each column says where one token looks"
AFTER = "Readout"
TOP, LEFT = 4, 1
NARROW = 1.9  # width of a column: a cell is nearly square


def wanted(book: ModelBook) -> bool:
    """Where there are heads."""
    return any(block.leaf == "pattern" for block in book.graph)


def add(book: ModelBook) -> None:
    """A square per head; layers down, heads across."""
    found = [b for b in book.graph if b.leaf == "pattern" and b.kind == "computed"]
    patterns = [b for b in found if b.axes[0] == "token"]
    others = [b for b in found if b.axes[0] != "token"]
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    n = len(book.passage.ids)
    across = book.model.spec.n_heads
    sheet.widths = {0: 9} | {LEFT + k: NARROW for k in range(across * (n + 2))}
    sheet.widths |= {LEFT + h * (n + 2) + n + 1: 9 for h in range(across - 1)}  # token texts
    below = book.model.spec.n_layers * (n + 3)  # where those of a second sentence begin
    for block in (*patterns, *others):
        layer, _, head, _ = block.name.split(".")[-4:]
        top = TOP + int(layer) * (n + 3) + (below if block in others else 0)
        left = LEFT + int(head.removeprefix("h")) * (n + 2)
        sheet.link(top, left, f"layer {layer}, {head}", book.address(block.area))
        for k in range(n):
            layout.label(book, sheet, top + 1, left + k, block.axes[0], k, "upright")
            layout.label(book, sheet, top + 2 + k, left - 1, block.axes[0], k, "row label")
        for i, j in block.whole.cells():
            if block.has(i, j):
                sheet.formula(top + 2 + j, left + i, block[i, j], "tint")
        sheet.dress(sheet[top + 2 : top + 2 + n, left : left + n], "scale")
        sheet.heights[top + 1] = 52
