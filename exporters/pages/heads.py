"""Heads: every attention pattern of the model side by side, as one picture.

Layers run down, heads across. In each square a column is a query and shows where that token
attends; its cells sum to 1. The squares read the patterns on the layers' own sheets.
"""

from engine.cells.block import Block
from engine.cells.language import worded
from engine.cells.name import CLEAN, CUT, NUDGED, OTHER, PATH
from exporters.compose import theme
from exporters.compose.composer import Composer
from exporters.compose.sentences import sentence
from exporters.model import layout
from exporters.model.model_book import ModelBook
from exporters.pages import machine
from exporters.pages.machine import SAID

SHEET = "Heads"
PURPOSE = "every attention pattern side by side: where each token looks"
AFTER = "Readout"
TOP, LEFT = 4, 1
WIDTH = 1000  # pixels of all squares of a layer, as far as these let them: a cell is nearly square
NARROWEST, WIDEST = 18, 44


def wanted(book: ModelBook) -> bool:
    """In workbooks of models with heads."""
    return any(block.leaf == "pattern" for block in book.graph)


def add(book: ModelBook) -> None:
    """Add a square per head; layers down, heads across."""
    found = [b for b in book.graph if b.leaf == "pattern" and b.kind == "computed"]
    found = [b for b in found if not {NUDGED, OTHER, CLEAN, PATH, CUT} & {*b.passes}]
    patterns = [b for b in found if b.axes[0] == "token"]
    others = [b for b in found if b.axes[0] != "token"]
    page = layout.page(book, SHEET)
    sheet = page.sheet
    n = len(book.passage.ids)
    across = book.model.spec.n_heads
    pixels = max(NARROWEST, min(WIDEST, WIDTH // (across * (n + 2))))
    style = "tile number" if pixels >= machine.NUMBERED else "tint"
    sheet.widths = {0: 9} | dict.fromkeys(
        range(LEFT, LEFT + across * (n + 2)), theme.characters(pixels)
    )
    sheet.widths |= {LEFT + h * (n + 2) + n + 1: 9 for h in range(across - 1)}  # token texts
    below = book.model.spec.n_layers * (n + 3)  # where those of a second sentence begin
    for block in (*patterns, *others):
        layer, head = block.layer or 0, machine.head_number(block)
        top = TOP + layer * (n + 3) + (below if block in others else 0)
        left = LEFT + head * (n + 2)
        sheet.link(
            top,
            left,
            worded("layer {layer}, head {head}", layer=layer, head=head),
            book.address(block.area),
        )
        of, axis = range(n), block.axes[0]
        own = ".".join((*block.passes, f"{layer}", f"h{head}"))
        name = f"heads.{own}"
        layout.labels(book, sheet, f"{name}.columns", (top + 1, left), axis, of, "upright", True)
        layout.labels(book, sheet, f"{name}.rows", (top + 2, left - 1), axis, of, "row label")
        for k in of:
            sheet.heights[top + 2 + k] = 0.75 * max(pixels, 20)
        square = page.table(own, (top + 2, left), (n, n))
        for i, j in block.whole.cells():
            if block.has(i, j):
                at = (i, j) if book.plan.token_rows else (j, i)
                square.put(*at, block[i, j], style)
        page.dress(square.area, "scale")
        sheet.heights[top + 1] = 52
    if SAID in book.shown:
        _read_out(book, page, machine.sharpest(book, patterns))


def _read_out(book: ModelBook, page: Composer, head: Block) -> None:
    """Add a sentence that explains one line of a head's square."""
    text = (
        "Read a square so: a row is the token that looks, a column one that is looked at, and the "
        "shares of a row sum to 100 %. In layer {layer}, head {number}, {look}."
        if book.plan.token_rows
        else "Read a square so: a column is the token that looks, a row one that is looked at, and "
        "the shares of a column sum to 100 %. In layer {layer}, head {number}, {look}."
    )
    number = str(machine.head_number(head))
    told = sentence(text, layer=str(head.layer), number=number, look=machine.look(book, head))
    page.show("read_so", (TOP - 1, 0), told, "text")
