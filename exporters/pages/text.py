"""Text: the tokens as one line of text, as the tokenizer decodes them; what Play's line is computed
from.

A row for each token; the tables that they look up (the text of every id, and the bytes of ids that
are not texts) are to the right. See `cellformer.engine.text.decoded_text` for the columns.
"""

from collections.abc import Sequence

from cellformer.engine.text.detokenizing import FIELDS
from cellformer.exporters.compose.book import Place
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Text"
PURPOSE = "from token ids to the line of text that Play shows, token by token"
AFTER = "Sampling"
TOP, LINE_WIDTH = 5, 60
HEADS = {
    "seen": "id; without a text: beyond the vocabulary",
    "row": "its row among the odd",
    "begun": "1: text has begun",
    "takes": "bytes that it adds to an open character",
    "filled": "the bits of that, then",
    "stays": "1: it stays open",
    "to_come": "bytes still to come",
    "open": "bits so far",
    "bits": "bits so far",
    "lowest": "next byte at least",
    "highest": "next byte at most",
    "sound": "1: the bytes are text so far",
    "run": "bytes in a row",
    "joined": "their text",
    "stands": "what they stand for",
    "text": "the text that it adds",
    "line": "the line so far",
}
LOOKED_UP = {"later": "text of every id", "first": "of a first one"}


def wanted(book: ModelBook) -> bool:
    """In workbooks that decode tokens in cells."""
    return "text.whole" in book.graph.blocks


def add(book: ModelBook) -> None:
    """Add the columns, then the tables that they look up."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.hidden = True
    columns = [name for name in HEADS if f"text.{name}" in book.graph.blocks]
    tables = [name for name in LOOKED_UP if f"text.{name}" in book.graph.blocks]
    left = len(columns) + 2
    sheet.widths = (
        {0: 10}
        | {col: _width(HEADS[name]) for col, name in enumerate(columns, 1)}
        | {col: _width(LOOKED_UP[name]) for col, name in enumerate(tables, left)}
        | {1 + columns.index("line"): LINE_WIDTH}
    )
    sheet.put(TOP - 2, 0, "all of it", "row label")
    whole = Place(book.graph["text.whole"], SHEET, TOP - 2, 1, turned=False, named=False)
    book.lay(whole, "text")
    sheet.put(TOP - 1, 0, "token", "label")
    tokens = range(len(book.passage.ids))
    layout.labels(book, sheet, "text", (TOP, 0), "token", tokens, "row label")
    for col, name in enumerate(columns, 1):
        sheet.put(TOP - 1, col, HEADS[name], "label")
        style = "text" if name == "line" else "id"
        book.lay(Place(book.graph[f"text.{name}"], SHEET, TOP, col, False, named=False), style)
    _tables(book, tables, left)


def _width(head: str) -> int:
    """The width of a column whose heading fits."""
    return max(10, len(head))


def _tables(book: ModelBook, tables: Sequence[str], left: int) -> None:
    """Add what the columns look up: texts by id, and the bytes of ids that are not texts."""
    sheet = book.sheet(SHEET)
    for name in tables:
        sheet.put(TOP - 1, left, LOOKED_UP[name], "label")
        place = Place(book.graph[f"text.{name}"], SHEET, TOP, left, False, named=False)
        book.lay(place, "text")
        left += 1
    if "text.odd" in book.graph.blocks:
        sheet.put(TOP - 2, left + 1, "pieces that are no text by themselves", "heading")
        for col, head in enumerate(FIELDS, left + 1):
            sheet.put(TOP - 1, col, head, "label")
        book.lay(Place(book.graph["text.odd"], SHEET, TOP, left + 1, False, named=False), "id")
