"""Play of a sentence encoder: two sentences are typed, and how alike they are is the cosine of
their vectors. Baseline stands beside live: what the untouched workbook said, as constants."""

from engine.cells.expression import Area, Expression
from engine.cells.functions import ABS, MAX, SQRT, SUMPRODUCT
from engine.cells.name import SECOND
from exporters.compose.book import Sheet
from exporters.model import layout
from exporters.model.layout import PLAY, PROMPT_COL, SECOND_ROW, TEXTS_ROW
from exporters.model.model_book import ModelBook
from exporters.play import typed_sentence

SHEET = PLAY
PURPOSE = "type two sentences: how alike are they?"
AFTER = "Start"
COSINE_ROW, VECTORS_ROW = 20, 25
PREFIXES = ("", f"{SECOND}.")
LIVE, BUILT, CHANGE = range(3)  # columns of each sentence's vector


def wanted(book: ModelBook) -> bool:
    """Of an encoder that gives a vector for a sentence."""
    return book.plan.gives == "sentence" and not book.live


def place(book: ModelBook) -> None:
    """Say where the sentences stand, before other pages refer to them."""
    for prefix, row in zip(PREFIXES, (TEXTS_ROW, SECOND_ROW), strict=True):
        typed_sentence.place(book, prefix, row)


def add(book: ModelBook) -> None:
    """Both sentences, the cosine, both vectors."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {0: 13, 1: 16} | dict.fromkeys(range(2, 2 + len(book.passage.ids)), 12)
    typed_sentence.add(book, sheet, "", TEXTS_ROW, "Type a sentence")
    typed_sentence.add(book, sheet, PREFIXES[1], SECOND_ROW, "Type another one")
    _cosine(book, sheet)
    _vectors(book, sheet)


def _cosine(book: ModelBook, sheet: Sheet) -> None:
    """How alike the sentences are, live, as built, and the change."""
    row, col = COSINE_ROW, PROMPT_COL
    sheet.put(row, 0, "How alike they are", "heading")
    for k, head in enumerate(("live", "as built", "change")):
        sheet.put(row + 1, col + k, head, "label")
    sheet.put(row + 2, col - 1, "cosine", "row label")
    live = sheet.formula(row + 2, col + LIVE, book.graph["cosine"][0, 0], "live")
    sheet.put(row + 2, col + BUILT, book.value("cosine", 0, 0), "constant")
    sheet.formula(row + 2, col + CHANGE, live - sheet[row + 2, col + BUILT], "change")
    note = "1: their vectors point the same way; 0: at right angles; -1: opposite ways"
    sheet.put(row + 2, col + CHANGE + 1, note, "note")


def vectors(book: ModelBook, prefix: str, which: int) -> Area:
    """A sentence's vector on Play, or what it was as built, or the change."""
    n = book.graph["vector"].shape[1]
    col = PROMPT_COL + which + 4 * PREFIXES.index(prefix)
    return book.sheet(PLAY)[VECTORS_ROW + 2 : VECTORS_ROW + 2 + n, col]


def _vectors(book: ModelBook, sheet: Sheet) -> None:
    """Both vectors, feature by feature."""
    block = book.graph["vector"]
    sheet.put(VECTORS_ROW - 1, 0, "Their vectors, feature by feature", "heading")
    for prefix, title in zip(PREFIXES, ("the first sentence", "the other one"), strict=True):
        left = vectors(book, prefix, LIVE).rect.left
        sheet.put(VECTORS_ROW, left, title, "block")
        for k, head in enumerate(("live", "as built", "change")):
            sheet.put(VECTORS_ROW + 1, left + k, head, "label")
        vector = book.graph[prefix + "vector"]
        for d in range(block.shape[1]):
            row = VECTORS_ROW + 2 + d
            sheet.put(row, PROMPT_COL - 1, d, "label number")
            live = sheet.formula(row, left + LIVE, vector[0, d], "live")
            sheet.put(row, left + BUILT, book.value(vector.name, 0, d), "constant")
            sheet.formula(row, left + CHANGE, live - sheet[row, left + BUILT], "change")


def largest_change(book: ModelBook) -> Expression:
    """How far the vectors, and their cosine, are from the baseline, all in all."""
    gaps = [vectors(book, prefix, CHANGE) for prefix in PREFIXES]
    cosine = book.sheet(PLAY)[COSINE_ROW + 2, PROMPT_COL + CHANGE]
    return MAX(*(SQRT(SUMPRODUCT(gap, gap)) for gap in gaps), ABS(cosine))
