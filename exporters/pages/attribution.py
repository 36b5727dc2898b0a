"""Attribution: what each head, MLP and embedding adds to the target's logit, and to its lead over
a rival, at the position that Play looks at. The shares add up to the logit exactly.

Right of the table stands every share at every token. Each is one dot product: what was written,
along the direction that the readout scores the word by; the norm's divisor is taken as it is.
"""

from engine.cells.access import Rect
from exporters import layout
from exporters.address import a1
from exporters.book import Chart, Place, Series, Sheet
from exporters.layout import ATTRIBUTION
from exporters.model_book import ModelBook, cell, entry

SHEET = ATTRIBUTION
PURPOSE = "what each head, MLP and embedding adds to the target word’s logit"
AFTER = "Lens"
TOP = 6
CHART_COL, EVERY_COL = 6, 14


def wanted(book: ModelBook) -> bool:
    """In workbooks that show every word at every token."""
    return not book.large


def add(book: ModelBook) -> None:
    """The table, its sums, a chart; every share at every token; the directions."""
    sheet = book.sheet(ATTRIBUTION)
    layout.dress(book, sheet)
    sheet.widths = {0: 20} | dict.fromkeys(range(1, 9), 16)
    credits = book.views.credits
    writers = list(credits["target"])[::-1]
    n_tokens = len(book.passage.ids)
    for col, head in enumerate(("written by", "target", "rival", "target − rival")):
        sheet.put(TOP - 2, col, head, "head" if col else "block")
    for word, col in (("target", 1), ("rival", 2)):
        text = book.labels[book.graph["logits"].axes[1]][int(book.value(word, 0, 0))]
        sheet.calc(TOP - 1, col, book.spot(word), text, "word")
        left = EVERY_COL + (col - 1) * (n_tokens + 2)
        sheet.put(TOP - 2, left, f"{word}: share at every token", "block")
        for t in range(n_tokens):
            layout.label(book, sheet, TOP - 1, left + t, "token", t, "label")
        for k, writer in enumerate(writers):
            _place(book, sheet, credits[word][writer].name, TOP + k, left)
        area = Rect(TOP, TOP + len(writers), left, left + n_tokens)
        sheet.scales.append((area, "diverging"))
    for k, writer in enumerate(writers):
        sheet.link(TOP + k, 0, plain(writer), book.area(writer))
        for word, col in (("target", 1), ("rival", 2)):
            _share(book, sheet, credits[word][writer].name, TOP + k, col)
        _difference(sheet, TOP + k)
    _sums(book, sheet, TOP + len(writers))
    sheet.scales.append((Rect(TOP, TOP + len(writers), 1, 4), "diverging"))
    texts = Rect(TOP, TOP + len(writers), 0, 1)
    series = [
        Series("target", texts, Rect(TOP, TOP + len(writers), 1, 2)),
        Series("target − rival", texts, Rect(TOP, TOP + len(writers), 3, 4)),
    ]
    size = (640, max(320, 24 * len(writers)))
    title = "Shares of the target’s logit, and of its lead"
    chart = Chart(TOP - 2, CHART_COL - 1, "bar", title, series, size, number="0.0")
    sheet.charts.append(chart)
    _directions(book, sheet, max(TOP + len(writers) + 5, TOP + size[1] // 20 + 2))


def plain(writer: str) -> str:
    """A writer's name without what the reader knows."""
    short = writer.removeprefix("blocks.").removesuffix(".result")
    return "ln_final bias" if short == "ln_final.b" else short


def _place(book: ModelBook, sheet: Sheet, name: str, row: int, left: int) -> None:
    layout.settle(book, sheet, Place(book.graph[name], ATTRIBUTION, row, left, True))


def _share(book: ModelBook, sheet: Sheet, name: str, row: int, col: int) -> None:
    """One share at the position."""
    place, last = book.places[name], book.passage.n_prompt - 1
    n = place.block.shape[0]
    formula = entry(place.rect(place.block.whole), "1", f"{book.spot('position')}+1")
    value = book.value(name, last if n > 1 else 0, 0)
    sheet.calc(row, col, formula, value, "change plain")


def _difference(sheet: Sheet, row: int) -> None:
    value = float(sheet.entries[row, 1].value) - float(sheet.entries[row, 2].value)
    sheet.calc(row, 3, f"{cell(row, 1)}-{cell(row, 2)}", value, "change plain")


def _sums(book: ModelBook, sheet: Sheet, row: int) -> None:
    """The sum of the shares, the logit from the readout, and their difference."""
    last = book.passage.n_prompt - 1
    for k, text in enumerate(("sum", "logit", "sum − logit")):
        sheet.put(row + k, 0, text, "row label")
    place = book.places["logits"]
    cells = place.rect(place.block.whole)
    for word, col in (("target", 1), ("rival", 2)):
        area = a1(Rect(TOP, row, col, col + 1))
        total = sum(float(sheet.entries[r, col].value) for r in range(TOP, row))
        sheet.calc(row, col, f"SUM({area})", total, "total")
        ident = book.value(word, 0, 0)
        logit = book.value("logits", last, int(ident))
        at = book.at(word, 0, 0)
        formula = entry(cells, f"{at}+1", f"{book.spot('position')}+1", place.sheet)
        sheet.calc(row + 1, col, formula, logit, "live")
        gap = f"{cell(row, col)}-{cell(row + 1, col)}"
        sheet.calc(row + 2, col, gap, total - logit, "tiny")
    for r in (row, row + 1):
        _difference(sheet, r)
    book.spots["attribution gap"] = (ATTRIBUTION, row + 2, 1)


def _directions(book: ModelBook, sheet: Sheet, row: int) -> None:
    """What every share is read along: a column of d_model numbers per word, and how it came."""
    sheet.put(row, 0, "The directions that shares are read along", "heading")
    col = 1
    placed = {credit.name for credits in book.views.credits.values() for credit in credits.values()}
    for block in book.graph:
        if layout.sheet_of(block, book) == ATTRIBUTION and block.name not in placed:
            sheet.put(row + 1, col, block.name.replace("ln_final.", ""), "label")
            n = block.shape[1] if block.shape[0] == 1 else block.shape[0]
            for k in range(n if block.shape[1] > 1 and col == 1 else 0):
                sheet.put(row + 2 + k, 0, k, "label number")
            place = Place(block, ATTRIBUTION, row + 2, col, True)
            layout.settle(book, sheet, place)
            col += place.size[1]
