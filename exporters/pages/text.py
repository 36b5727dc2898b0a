"""Text: the tokens as one line of text, as the tokenizer decodes them; Play's line comes from here.

A row for each token; the tables that they look up (the text of every id, and the bytes of ids that
are not texts) are to the right. See `cellformer.engine.text.decoded_text` for the columns.
"""

from cellformer.engine.text.detokenizing import FIELDS
from cellformer.exporters.compose.book import Place
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Text"
PURPOSE = "how token ids become the line of text on Play, token by token"
AFTER = "Sampling"
TOP, LINE_WIDTH = 5, 60
HEADS = {
    "seen": "token id; a hidden token gets an id without text",
    "row": "row in the right-hand table",
    "begun": "1: the text has begun",
    "takes": "bytes added to an open character",
    "filled": "bits with these bytes",
    "stays": "1: it stays open",
    "to_come": "bytes still to come",
    "open": "bits so far",
    "bits": "bits so far",
    "lowest": "next byte at least",
    "highest": "next byte at most",
    "sound": "1: the bytes so far are text",
    "run": "bytes in a row",
    "joined": "their text",
    "stands": "what they stand for",
    "text": "text of the token",
    "line": "text so far",
}
LOOKED_UP = {"later": "text of every id", "first": "text at start"}


def wanted(book: ModelBook) -> bool:
    """Whether the workbook decodes tokens in cells."""
    return "text.whole" in book.graph.blocks


def add(book: ModelBook) -> None:
    """Add the columns, then after a gap the tables that they look up: texts by id, and the bytes of
    ids that are not texts."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.hidden = True
    heads = {n: head for n, head in (HEADS | LOOKED_UP).items() if f"text.{n}" in book.graph.blocks}
    col = {name: k + (name in LOOKED_UP) for k, name in enumerate(heads, 1)}
    widths = {col[name]: max(10, len(head)) for name, head in heads.items()}
    sheet.widths = {0: 10} | widths | {col["line"]: LINE_WIDTH}
    sheet.put(TOP - 2, 0, "whole text", "row label")
    book.lay(Place(book.graph["text.whole"], SHEET, TOP - 2, 1, turned=False, named=False), "text")
    sheet.put(TOP - 1, 0, "token", "label")
    layout.labels(book, sheet, "text", (TOP, 0), "token", range(len(book.passage.ids)), "row label")
    for name, head in heads.items():
        sheet.put(TOP - 1, col[name], head, "label")
        book.lay(
            Place(book.graph[f"text.{name}"], SHEET, TOP, col[name], False, named=False),
            "text" if name == "line" or name in LOOKED_UP else "id",
        )
    if "text.odd" in book.graph.blocks:
        left = len(heads) + 3
        sheet.put(TOP - 2, left, "pieces that are not text by themselves", "heading")
        sheet.across(TOP - 1, left, FIELDS, "label")
        book.lay(Place(book.graph["text.odd"], SHEET, TOP, left, False, named=False), "id")
