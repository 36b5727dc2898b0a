"""Sampling: from logits to the next word, for every position, step by step; Play uses the results.

For the word at a position, down its column, the tables of `cellformer.engine.models.choosing`: the
word of position t + 1 is chosen in column t, from the logits of position t, so nothing reads a
column to its right. Below them is the typed sentence, in words (`cellformer.engine.models.prompt`).
"""

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.language import AsIs
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.model import layout
from cellformer.exporters.model.block_sheets import PROMPT_COL
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Sampling"
PURPOSE = "how each next word is chosen, step by step: ranks, top-k, top-p, random number"
OF_EACH = "how a word would be chosen at each position: ranks, top-k, top-p, random number"
AFTER = "Check"
PENALIZED = "logits after the repetition penalty, which changes the logits of earlier words"
RELATIVE = (
    "probabilities; with a repetition penalty, each number is divided by the likeliest word’s "
    "probability"
)

# tables with a row for every rank: name, heading, style
STEPS = (
    ("choice.value", "logits by rank", "step green"),
    ("choice.order", "ids by rank; if two logits are equal, the lower id comes first", "id"),
    ("choice.weight", "probabilities by rank, for top-k words only", "step green"),
    ("choice.before", "sum over all earlier ranks", "step"),
    (
        "choice.kept",
        "probabilities that top-p and min-p keep; top-p keeps a rank if earlier "
        "ranks sum to less than top-p",
        "step",
    ),
)
ALIKE = (
    "equal letters at the start and at the end of both words, minus ¼ for each letter of "
    "difference in length"
)
FEW = 6  # columns
ROUNDED = (
    "logits, rounded because programs differ in the last digits; equal logits are ordered by id"
)
# the same with a row for every step by which a rank is found that is not laid out
HALVING = (
    ("choice.top_p", "Number of words with a total probability below top-p, by halving"),
    ("choice.draw", "Number of words with a total probability up to the random number, by halving"),
)
STEPS_OF_HALVING = (
    ("tried", "number of words tried", "id"),
    ("value", "logit of the last word tried", "step green"),
    ("holds", "probability that they hold", "step green"),
    ("count", "number of words within the limit", "id"),
)
# tables of one row: name, label, style; a gap before the sentence
CHOICE = (
    ("choice.k", "top-k used", "id"),
    ("choice.p", "top-p used", "step"),
    ("choice.m", "min-p used", "step"),
    ("choice.penalty", "penalty used", "step"),
    ("choice.top", "largest logit", "step"),
    ("choice.whole", "within top-k", "step"),
    ("choice.likely", "min-p keeps", "id"),
    ("choice.n_kept", "words kept", "id"),
    ("choice.held", "they hold", "step"),
    ("choice.total", "sum kept", "step"),
    ("choice.rank", "rank drawn", "id"),
    ("choice.drawn_value", "its logit", "step"),
    ("choice.greedy", "greedy id", "id"),
    ("choice.drawn", "drawn id", "id"),
    ("choice.chosen", "chosen id", "id"),
)
SENTENCE = (
    ("prompt.opened", "1: start added", "id"),
    ("prompt.rest", "sentence from here", "clipped"),
    ("prompt.word", "its first word", "word fitted"),
    ("prompt.typed", "typed or picked", "word fitted"),
    ("prompt.given", "1: given", "id"),
    ("prompt.exact", "place; -1: none", "id"),
    ("prompt.found", "ignoring case", "id"),
    ("prompt.id", "its id", "id"),
    ("prompt.unknown", "first unknown", "word fitted"),
    ("prompt.answered", "1: all known", "id"),
    ("prompt.ended", "1: text ended", "id"),
    ("prompt.nearest", "nearest word", "word fitted"),
    ("look.target.exact", "target’s place", "id"),
    ("look.target.id", "ignoring case", "id"),
    ("look.rival.exact", "rival’s place", "id"),
    ("look.rival.id", "ignoring case", "id"),
    ("prompt.words", "list of all words, to search", "clipped"),
    ("prompt.lowered", "in lower case", "clipped"),
    ("look.words", "every word, with its logit", "clipped"),
    ("look.lowered", "in lower case", "clipped"),
)


def wanted(book: ModelBook) -> bool:
    """Whether the workbook chooses a word after every token."""
    return book.plan.ranks_every_token


def add(book: ModelBook) -> None:
    """Add the steps of every choice, one column per position."""
    purpose = "" if book.plan.continues else OF_EACH
    page = layout.page(book, SHEET, purpose, widths={0: 14, 1: 14})
    page.sheet.prints = "nothing"
    page.cursor -= 1  # above the first heading
    at, tokens = (page.cursor, PROMPT_COL), range(len(book.passage.ids))
    layout.labels(book, page.sheet, "sampling", at, "token", tokens, "label", across=True)
    for name, heading, style in STEPS:
        page.heading(heading)
        _numbered(page, book.graph[name], style)
    for lines in (CHOICE, SENTENCE):
        page.cursor += 1
        for name, label, style in lines:
            if name in book.graph.blocks:
                page.sheet.put(page.cursor, 1, label, "row label")
                _lay(page, book.graph[name], style)
    for name, heading in HALVING if "choice.n_kept" in book.graph.blocks else ():
        page.heading(heading)
        for k, (leaf, label, style) in enumerate(STEPS_OF_HALVING):
            page.cursor += k > 0
            page.sheet.put(page.cursor, 0, label, "note")
            _numbered(page, book.graph[f"{name}.{leaf}"], style)
    top = _of_words(book, page, "choice.logits", ROUNDED)
    if "prompt.alike" in book.graph.blocks:
        _alike(book, page, top)
    for name, heading in (("choice.penalized", PENALIZED), ("choice.probs", RELATIVE)):
        if name in book.graph.blocks:
            _of_words(book, page, name, heading)


def _of_words(book: ModelBook, page: Composer, name: str, heading: str) -> int:
    """Add a table with a row for every word; returns its first row."""
    page.heading(heading)
    top = page.cursor
    words = enumerate(map(AsIs, book.labels[book.graph["logits"].axes[1]]))
    page.sheet.lines(top, words, {0: "label number", 1: "row label"})
    _lay(page, book.graph[name], "step green")
    return top


def _alike(book: ModelBook, page: Composer, row: int) -> None:
    """Add how similar each word is to an unknown one, to the right of the rounded logits."""
    col = PROMPT_COL + max(len(book.passage.ids), FEW) + 2  # beyond the heading of the logits
    page.sheet.put(row - 1, col - 1, ALIKE, "heading")
    page.sheet.down(row, col - 1, map(AsIs, book.labels["vocab"]), "row label")
    page.lay(book.graph["prompt.alike"], (row, col), "step", named=False)


def _numbered(page: Composer, block: Block, style: str) -> None:
    """Add a table with its tokens across and its rows numbered."""
    page.sheet.down(page.cursor, 1, range(1, block.shape[1] + 1), "label number")
    _lay(page, block, style)


def _lay(page: Composer, block: Block, style: str) -> None:
    """Place a table with its tokens across."""
    page.lay(block, (page.cursor, PROMPT_COL), style, turned=True, named=False)
    page.cursor += block.shape[1]
