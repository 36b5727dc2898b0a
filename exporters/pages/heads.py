"""Heads: every attention pattern of the model side by side, as one picture.

Layers run down, heads across. In each square a row is a query and shows where that token attends;
its cells sum to 1. The squares read the patterns on the layers' own sheets.
"""

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.name import CLEAN, CUT, NUDGED, OTHER, PATH, SECOND
from cellformer.engine.studies.part_names import head_of
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.sentences import sentence
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import machine
from cellformer.exporters.pages.machine import SAID

SHEET = "Heads"
PURPOSE = "every attention pattern side by side: where each token looks"
AFTER = "Readout"
TOP, LEFT = 4, 1
WIDTH = 1000  # pixels of all squares of a layer, as far as these let them: a cell is nearly square
NARROWEST, WIDEST = 18, 44


def wanted(book: ModelBook) -> bool:
    """Whether the model has heads, and their patterns are computed."""
    return any(block.leaf == "pattern" and block.kind == "computed" for block in book.graph)


def add(book: ModelBook) -> None:
    """Add a square per head; layers down, heads across."""
    patterns = [b for b in book.graph if _is_shown(b)]
    found = sorted(patterns, key=lambda b: b.passes == (SECOND,))  # a second sentence's below
    page = layout.page(book, SHEET)
    sheet = page.sheet
    n = max(block.shape[1] for block in found)
    across = 1 + max(map(machine.head_number, found))
    pixels = max(NARROWEST, min(WIDEST, WIDTH // (across * (n + 2))))
    style = "tile number" if pixels >= machine.NUMBERED else "tint"
    sheet.widths = {0: 9} | dict.fromkeys(
        range(LEFT, LEFT + across * (n + 2)), theme.characters(pixels)
    )
    sheet.widths |= {LEFT + h * (n + 2) + n + 1: 9 for h in range(across - 1)}  # token texts
    top, before = TOP, found[0]
    for block in found:
        if row_of(block) != row_of(before):
            top, before = top + before.shape[0] + 3, block
        head = machine.head_number(block)
        left = LEFT + head * (n + 2)
        sheet.link(top, left, head_of(block), book.address(block.area))
        down_axis, across_axis = block.axes
        height, width = block.shape
        own = ".".join((*block.passes, *[machine.CROSS] * crosses(block), f"{block.layer}"))
        own = f"{own}.h{head}"
        name, at = f"heads.{own}", (top + 1, left)
        layout.labels(
            book, sheet, f"{name}.columns", at, across_axis, range(width), "upright", across=True
        )
        at = top + 2, left - 1
        layout.labels(book, sheet, f"{name}.rows", at, down_axis, range(height), "row label")
        rows = range(top + 2, top + 2 + height)
        sheet.heights |= {top + 1: 52} | dict.fromkeys(rows, 0.75 * max(pixels, 20))
        machine.add_pattern(page, own, (top + 2, left), block, style)
    if SAID in book.shown:
        among_tokens = [b for b in patterns if b.axes == ("token", "token")]
        _read_out(book, page, machine.sharpest(book, among_tokens))


def _is_shown(block: Block) -> bool:
    """Whether a block is a pattern of the first pass."""
    computed = block.leaf == "pattern" and block.kind == "computed"
    return computed and not {NUDGED, OTHER, CLEAN, PATH, CUT} & {*block.passes}


def row_of(pattern: Block) -> tuple[object, ...]:
    """The common traits of patterns in one row."""
    return pattern.passes, pattern.layer, crosses(pattern)


def crosses(pattern: Block) -> bool:
    """Whether a pattern is of cross attention."""
    return pattern.part == machine.CROSS


def _read_out(book: ModelBook, page: Composer, head: Block) -> None:
    """Add a sentence that explains one line of a head's square."""
    text = (
        "Each square is a head. A row is the token that looks. A column is a token that gets "
        "attention. Each row sums to 100 %. In the square of {head}, {look}."
    )
    page.show(
        "read_so",
        (TOP - 1, 0),
        sentence(text, head=head_of(head), look=machine.look(book, head)),
        "text",
    )
