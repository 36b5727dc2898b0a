"""Sampling: from logits to the next word, for every position, step by step. The workings of Play.

For the word at a position, down its column, the tables of `engine.models.choosing`: the word of
position t + 1 is chosen in column t, from what position t's logits say, so nothing reads a column
to its right. Below them the sentence that was typed, in words (`engine.models.prompt`).
"""

from exporters import layout
from exporters.book import Place
from exporters.layout import PROMPT_COL
from exporters.model_book import ModelBook

SHEET = "Sampling"
PURPOSE = "how each next word is chosen, step by step: ranks, top-k, top-p, random number"
OF_EACH = "what a word would be chosen by at each position: ranks, top-k, top-p, random number"
AFTER = "Check"
LABELS_ROW, TOP = 3, 5

# tables with a row for every word or rank: name, heading, style
STEPS = (
    ("choice.keys", "logits; ties go to the lower id", "step green"),
    ("choice.order", "ids by rank", "id"),
    (
        "choice.weight",
        "exponentials of (logit − largest) / temperature; none beyond top-k",
        "step green",
    ),
    ("choice.before", "share of the ranks before", "step"),
    ("choice.kept", "shares that top-p keeps: ranks that less than top-p stands before", "step"),
)
# tables of one row: name, label, style; a gap before the sentence
CHOICE = (
    ("choice.rank", "rank drawn", "id"),
    ("choice.greedy", "greedy id", "id"),
    ("choice.drawn", "drawn id", "id"),
    ("choice.chosen", "chosen id", "id"),
)
SENTENCE = (
    ("prompt.rest", "sentence from here", "word"),
    ("prompt.word", "its first word", "word"),
    ("prompt.typed", "typed or picked", "word"),
    ("prompt.given", "1: given", "id"),
    ("prompt.id", "its id", "id"),
    ("prompt.words", "every word, to be found", "clipped"),
    ("look.words", "every word with a logit", "clipped"),
)


def wanted(book: ModelBook) -> bool:
    """In workbooks that show every word at every token."""
    return not book.large


def add(book: ModelBook) -> None:
    """The workings of every choice, one column per position."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {0: 14, 1: 14}
    if not book.plan.continues:
        sheet.purpose = OF_EACH
    words = book.labels[book.graph["logits"].axes[1]]
    for t in range(len(book.passage.ids)):
        layout.label(book, sheet, LABELS_ROW, PROMPT_COL + t, "token", t, "label")
    for v, word in enumerate(words):
        sheet.put(TOP + v, 0, v, "label number")
        sheet.put(TOP + v, 1, word, "row label")
    row = TOP
    for name, heading, style in STEPS:
        sheet.put(row - 1, 0, heading, "heading")
        n_rows = _lay(book, name, row, style)
        for rank in range(n_rows if name != "choice.keys" else 0):
            sheet.put(row + rank, 1, rank + 1, "label number")
        row += n_rows + 2
    _line(book, "choice.total", "kept in all", row - 2, "step")  # under what is kept
    for k, line in enumerate(CHOICE):
        _line(book, *line[:2], row + k, line[2])
    there = [line for line in SENTENCE if line[0] in book.graph.blocks]  # some split no words
    for k, line in enumerate(there, len(CHOICE) + 1):
        _line(book, *line[:2], row + k, line[2])


def _line(book: ModelBook, name: str, label: str, row: int, style: str) -> None:
    """A table of one number for each token, and its label."""
    book.sheet(SHEET).put(row, 1, label, "row label")
    _lay(book, name, row, style)


def _lay(book: ModelBook, name: str, row: int, style: str) -> int:
    """Lay out a table with its tokens across; returns how many rows it takes."""
    block = book.graph[name]
    place = Place(block, SHEET, row, PROMPT_COL, turned=True, named=False)
    book.lay(place, style)
    return block.shape[1]
