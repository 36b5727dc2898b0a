"""Check: whether the workbook holds together. Sums to 1, no error, two ways to one number, and
live equals baseline until somebody edits."""

import numpy as np

from engine.cells.access import Rect
from exporters import layout
from exporters.address import a1, quoted
from exporters.book import Sheet
from exporters.large import play as large
from exporters.model_book import ModelBook, cell
from exporters.pages import index, play

SHEET = "Check"
PURPOSE = "whether the workbook holds together: all should say ok until you edit"
AFTER = "Index"
TOP = 5


def wanted(book: ModelBook) -> bool:
    """In every workbook."""
    return True


def add(book: ModelBook) -> None:
    """One line per check: what, the largest gap, ok or look."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {0: 66, 1: 12, 2: 12}
    for col, head in enumerate(("check", "largest gap", "status")):
        sheet.put(TOP - 1, col, head, "block")
    row = TOP
    for block in book.graph:
        if block.leaf == "pattern" or block.name == "probs":
            text = f"every column of {block.name} sums to 1"
            row = _line(sheet, row, text, *_sums(book, block.name))
    counts = a1(Rect(index.TOP, index.TOP + len(index.blocks(book)), 6, 7))
    expected = sum(block.n_cells for block in book.graph)
    text = "every cell of every block holds a number: no error, no text"
    row = _line(sheet, row, text, f"ABS(SUM(Index!{counts})-{expected})", 0.0)
    if not book.large:
        row = _views(book, sheet, row)
    what = "the last live block equals" if book.live else "live logits equal"
    text = f"{what} the baseline (they should not, once you edit something)"
    change = large.largest_change(book) if book.large else play.largest_change(book)
    _line(sheet, row, text, change, 0.0)


def _views(book: ModelBook, sheet: Sheet, row: int) -> int:
    """Two ways to one number: attribution's sum and the lens's last stage are the readout."""
    text = "the shares on Attribution add up to the target’s logit"
    gap = book.spot("attribution gap")
    where, r, c = book.spots["attribution gap"]
    value = abs(float(book.sheets[where].entries[r, c].value))
    row = _line(sheet, row, text, f"ABS({gap})", value)
    last = f"lens.{len(book.views.stages) - 1}.logits"
    text = "the last stage of Lens is the readout itself"
    return _line(sheet, row, text, *_lens(book, last))


def _sums(book: ModelBook, name: str) -> tuple[str, float]:
    """A formula for how far any row of a block is from summing to 1, and its value."""
    place, n = book.places[name], book.graph[name].shape
    rows = [a1(place.rect(Rect(i, i + 1, 0, n[1]))) for i in range(n[0])]
    gaps = [f"ABS(SUM({quoted(place.sheet)}!{row})-1)" for row in rows]
    return f"MAX({','.join(gaps)})", float(np.abs(book.values[name].sum(axis=1) - 1).max())


def _lens(book: ModelBook, name: str) -> tuple[str, float]:
    """How far the lens's last logits are from those on Play: the largest and the smallest."""
    top, n = play.by_id_row(book), book.graph["logits"].shape[1]
    live = f"{layout.PLAY}!{a1(Rect(top, top + n, 3, 4))}"
    area = book.area(name)
    last = book.passage.n_prompt - 1
    a, b = book.values[name][0], book.values["logits"][last]
    gap = abs(a.max() - b.max()) + abs(a.min() - b.min())
    return f"ABS(MAX({area})-MAX({live}))+ABS(MIN({area})-MIN({live}))", float(gap)


def _line(sheet: Sheet, row: int, text: str, formula: str, gap: float) -> int:
    sheet.put(row, 0, text)
    sheet.calc(row, 1, formula, gap, "tiny")
    status = f'IF({cell(row, 1)}<{index.TOLERANCE},"ok","look")'
    sheet.calc(row, 2, status, "ok", "status")
    sheet.scales.append((Rect(row, row + 1, 2, 3), "unlike ok"))
    return row + 1
