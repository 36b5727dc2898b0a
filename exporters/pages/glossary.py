"""Glossary: every term of the workbook in a plain sentence, with a link to where it appears."""

from cellformer.engine.cells.language import AsIs
from cellformer.exporters.compose.address import quoted
from cellformer.exporters.model import layout
from cellformer.exporters.model.glossary import TERMS, Term
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Glossary"
PURPOSE = "each term explained in one sentence, with a place that shows it"
AFTER = "Map"
TOP = 4
TERM, MEANING, SEEN = 0, 1, 2


def add(book: ModelBook) -> None:
    """Add a line for each term that appears in the workbook."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {TERM: 20, MEANING: 88, SEEN: 20}
    sheet.heads = TOP
    sheet.across(TOP, TERM, ("term", "meaning", "see cell"), "block")
    seen = [(term, target) for term in TERMS if (target := shown_at(book, term))]
    for row, (term, target) in enumerate(seen, TOP + 1):
        sheet.lines(row, [(term.name, term.meaning)], {TERM: "block", MEANING: "text"})
        sheet.link(row, SEEN, AsIs(target.replace("'", "").removesuffix("!A1")), target)


def shown_at(book: ModelBook, term: Term) -> str:
    """The address where a term appears, of a sheet or a block; "" if nowhere."""
    for name in term.where:
        sheet = next((s for s in book.sheets if s == name or s.startswith(f"{name} ")), "")
        if sheet:
            return f"{quoted(sheet)}!A1"
        for block in book.graph:
            if block.leaf == name and block.name in book.places:
                return book.address(block[0, 0])
    return ""
