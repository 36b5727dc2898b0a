"""Layout: where every block of a graph stands. No input or output.

One convention for three words by hand and for GPT-2: **every dot product runs down two columns**.
From it follows which way each block lies: an activation that is read along its features has its
tokens across and its features down; values, which are mixed over tokens, have tokens down; weights
keep [in, out]; a tied embedding lies features down, as the unembedding needs it.

And three rules say where blocks stand, so that a page reads input, weight, product:
- what is computed cell by cell from a block stands to its right, in the same band;
- what sums up a block's columns (a maximum, a sum, a mean) stands under it, as a total;
- a product opens a new band below, its weights before it. It stays beside its input where that
  stands alone, and further products of the same input go below the first.
"""

from dataclasses import dataclass, field

from engine.access import Rect
from engine.block import Block
from engine.formula import equation
from engine.graph import Graph
from exporters import theme, words
from exporters.book import Book, Place, Sheet, a1, one, quoted

MARGIN = 0  # the leftmost label column
TITLE_ROWS = 3  # title, links, blank; frozen
WIDE = 16  # columns; where a band is wider already, the next result stands below it
PROMPT_ROW, PROMPT_COL = 5, 2  # on Play: where the first token's text stands
PLAY = "Play"


def page(block: Block, graph: Graph) -> str:
    """The sheet of a block: its layer's, or the part of the model before or after the layers."""
    if block.kind == "computed":
        head, _, rest = block.name.partition(".")
        if head == "blocks":
            return f"Block {rest.partition('.')[0]}"
        return "Embedding" if head in ("embed", "pos_embed", "rotary") else "Readout"
    if on_play(block):
        return PLAY
    return page(graph.readers[block.name][0][0], graph)


def on_play(block: Block) -> bool:
    """Whether a block is one of the model's controls: the prompt, a setting of the whole model."""
    dial = block.kind == "setting" and block.shape == (1, 1)
    return "." not in block.name and (block.name == "tokens" or dial)


def turned(block: Block, graph: Graph) -> bool:
    """Whether a block lies with its rows across the sheet, so that dot products run down."""
    axes = set()
    for _, subscript in graph.readers[block.name]:
        for axis, code in enumerate(subscript):
            if code in (":", "≤i") and block.shape[axis] > 1:
                axes.add(axis)
    if len(axes) > 1:
        raise ValueError(f"{block.name} is read along both axes: no column holds every product")
    if axes:
        return axes == {1}
    readers = graph.readers[block.name]
    if block.kind == "weight" and block.shape[0] == 1 and readers:
        return turned(readers[0][0], graph)  # a bias or gain lies along what it is added to
    return block.kind in ("computed", "ids")


@dataclass
class Band:
    """A row of blocks: (block, left column) side by side, and totals under them."""

    across: list[tuple[Block, int]] = field(default_factory=list)
    totals: dict[str, list[Block]] = field(default_factory=dict)  # under the block of that name
    right: int = MARGIN

    def holds(self, block: Block) -> bool:
        return any(b is block for b, _ in self.across)

    def add(self, block: Block, n_cols: int) -> None:
        self.across.append((block, self.right))
        self.right += n_cols + 2  # a label column before, a gap after


def bands(graph: Graph, name: str) -> list[Band]:
    """The blocks of one sheet, in bands by the three rules."""
    found: list[Band] = []
    beside: dict[str, int] = {}  # a block that opens its band -> the column right of it
    done: set[str] = set()
    for block in graph:
        if block.op is None or page(block, graph) != name:
            continue
        fresh = [
            b
            for _, _, b in block.operands
            if b.op is None and b.name not in done and page(b, graph) == name and not on_play(b)
        ]
        _, _, first = block.operands[0]
        band = found[-1] if found else Band()
        cellwise = any(s == ("i", "j") and band.holds(b) for _, s, b in block.operands)
        continues = len(band.across) == 1 and band.holds(first)
        total = block.shape[1] == 1 and block.axes[1] == "" and band.holds(first)
        if not found or not (cellwise or continues or total):
            band = Band(right=beside.get(first.name, MARGIN) if fresh else MARGIN)
            found.append(band)
        for member in fresh + ([] if total else [block]):
            if member is block and band.right > WIDE:
                band = Band()
                found.append(band)
            band.add(member, member.shape[0 if turned(member, graph) else 1])
            if len(band.across) == 1:
                beside[member.name] = band.right
            done.add(member.name)
        if total:
            band.totals.setdefault(first.name, []).append(block)
    return found


def lay_out(book: Book) -> None:
    """Give every block of the book's graph its place, with titles, equations and labels."""
    graph = book.graph
    for block in graph:
        if block.op:
            sheet = book.sheet(page(block, graph))
            if not sheet.entries:
                dress(book, sheet)
                row = TITLE_ROWS
                for band in bands(graph, sheet.name):
                    row = _place(book, sheet, band, row)


def _place(book: Book, sheet: Sheet, band: Band, row: int) -> int:
    """Place a band from `row` on; returns the row below it."""
    graph = book.graph
    for block in graph:
        inside = band.holds(block) or any(block in under for under in band.totals.values())
        if inside and block.name in book.headings:
            sheet.put(row, MARGIN, book.headings[block.name], "heading")
            row += 1
        if inside and block.op:
            text = f"{block.name} = {equation(block)}   {words.shape(block)}   "
            sheet.put(row, MARGIN, text + words.meaning(block), "equation")
            row += 1
    bottom = row
    for block, left in band.across:
        place = Place(block, sheet.name, row + 2, left + 1, turned(block, graph))
        _settle(book, sheet, place)
        sheet.put(row, left + 1, _caption(block), "block")
        below = place.top + place.size[0]
        for total in band.totals.get(block.name, ()):
            _settle(book, sheet, Place(total, sheet.name, below, left + 1, True))
            sheet.put(below, left, total.leaf, "row label")
            below += 1
        bottom = max(bottom, below)
        label_columns(book, sheet, place)
        label_rows(book, sheet, place)
    return bottom + 1


def _caption(block: Block) -> str:
    """A block's name on its sheet: the leaf, with the head or norm that it belongs to."""
    *path, leaf = block.name.split(".")
    part = path[-1] if path else ""
    return f"{part}.{leaf}" if (part[-1:].isdigit() and len(path) > 2) or part[:2] == "ln" else leaf


def _settle(book: Book, sheet: Sheet, place: Place) -> None:
    book.places[place.block.name] = place
    elsewhere = any(page(b, book.graph) != sheet.name for _, _, b in place.block.operands)
    sheet.regions.append((place, theme.region_style(place.block, elsewhere)))
    rows, cols = place.size
    area = Rect(place.top, place.top + rows, place.left, place.left + cols)
    if place.block.leaf in ("pattern", "probs"):
        sheet.scales.append((area, "scale"))


def label_columns(book: Book, sheet: Sheet, place: Place) -> None:
    """The texts above a block: tokens (live), words, or feature numbers."""
    axis = place.block.axes[0 if place.turned else 1]
    for k in range(place.size[1]):
        label(book, sheet, place.top - 1, place.left + k, axis, k, "label")


def label_rows(book: Book, sheet: Sheet, place: Place) -> None:
    """The texts left of a block."""
    axis = place.block.axes[1 if place.turned else 0]
    for k in range(place.size[0]):
        label(book, sheet, place.top + k, place.left - 1, axis, k, "row label")


def label(book: Book, sheet: Sheet, row: int, col: int, axis: str, k: int, style: str) -> None:
    """Put the text of index k of an axis: a token (live), a word, or the number itself."""
    if axis == "token" and "tokens" in book.graph.blocks:
        cell = f"{quoted(PLAY)}!{a1(one(PROMPT_ROW, PROMPT_COL + k))}"
        sheet.calc(row, col, cell, prompt_text(book, k), "word" if style == "label" else style)
    elif axis in book.labels:
        sheet.put(row, col, book.labels[axis][k], style)
    elif axis:
        sheet.put(row, col, k, "label number" if style == "label" else style)


def prompt_text(book: Book, k: int) -> str:
    """The text of the prompt's token k."""
    table = book.graph.readers["tokens"][0][0].operands[1][2]
    return book.labels[table.axes[0]][int(book.values["tokens"][k, 0])]


def dress(book: Book, sheet: Sheet) -> None:
    """The top of a sheet: its title, the ways to Start and Play, frozen."""
    sheet.put(0, 0, f"{book.title} · {sheet.name}", "title")
    sheet.link(1, 0, "← Start", "Start!A1")
    if sheet.name != PLAY:
        sheet.link(1, 1, "Play", f"{PLAY}!A1")
    sheet.frozen = (TITLE_ROWS - 1, 0)
