"""Attribution: what each head, MLP and embedding adds to the target's logit, and to its lead over a
rival, at the position that Play looks at. The shares add up to the logit exactly.

To the right is every share at every token. Each is a dot product of what was written with the
direction that the readout scores the word by, divided by the norm's divisor.
"""

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import SUM
from cellformer.engine.cells.language import worded
from cellformer.exporters.compose.book import Chart, Place, Series, Sheet
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import entry
from cellformer.exporters.model import block_sheets, layout
from cellformer.exporters.model.block_sheets import ATTRIBUTION
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.words import plain

SHEET = ATTRIBUTION
PURPOSE = "how much each head, MLP and embedding adds to the target word’s logit"
WITHOUT_HEADS = "how much each sublayer and the embedding add to the target word’s logit"
AFTER = "Lens"
TOP = 6
HEADS = ("written by", "target", "rival", "target − rival")
DRAWN = {"target": 1, "target − rival": 3}  # columns
WORDS = ("target", "rival")  # a column each
CHART, EVERY_TOKEN = 4, 14  # columns: of the chart, of the shares at every token


def wanted(book: ModelBook) -> bool:
    """Whether the workbook explains answers."""
    return book.plan.explains


def add(book: ModelBook) -> None:
    """Add the table, its sums and a chart; every share at every token; the directions."""
    purpose = "" if book.model.spec.n_heads else WITHOUT_HEADS
    page = layout.page(book, SHEET, purpose, widths={0: 20} | dict.fromkeys(range(1, 9), 16))
    sheet = page.sheet
    credits = book.views.credits
    writers = list(credits["target"])[::-1]
    end = TOP + len(writers)
    sheet.lines(TOP - 2, [HEADS], {0: "block", 1: "head", 2: "head", 3: "head"})
    page.show(
        "word", (TOP - 1, 1), lambda _, k: book.graph[f"look.{WORDS[k]}"][0, 0], "word", (1, 2)
    )
    for word in WORDS:
        _at_every_token(book, sheet, word, [credits[word][writer] for writer in writers])
    for row, writer in enumerate(writers, TOP):
        sheet.link(row, 0, plain(writer), book.address(book.graph[writer].area))
    position = book.graph["position"][0, 0] + 1

    found = page.show(
        "share",
        (TOP, 1),
        lambda i, k: entry(credits[WORDS[k]][writers[i]].area, 1, position),
        "change plain",
        (len(writers), 2),
    )
    _sums(book, page, found)
    sheet.dress(sheet[TOP:end, 1:4], "diverging")
    height = max(320, 24 * len(writers))  # pixels
    series = [Series(text, sheet[TOP:end, 0], sheet[TOP:end, col]) for text, col in DRAWN.items()]
    page.chart(
        Chart(
            TOP - 2,
            CHART,
            "bar",
            "Shares of the target’s logit and lead",
            series,
            size=(640, height),
            number="0.0",
        )
    )
    _directions(book, sheet, max(end + 5, TOP + height // 20 + 2))


def leads(book: ModelBook) -> tuple[Area, Area]:
    """The writers, and their shares of the target's lead over its rival: two columns."""
    rows = slice(TOP, TOP + len(book.views.credits["target"]))
    sheet = book.sheet(ATTRIBUTION)
    return sheet[rows, 0].as_range, sheet[rows, HEADS.index("target − rival")].as_range


def _at_every_token(book: ModelBook, sheet: Sheet, word: str, credits: list[Block]) -> None:
    """Add every share of a word's logit at every token, a row for each writer."""
    n_tokens = len(book.passage.ids)
    left = EVERY_TOKEN + WORDS.index(word) * (n_tokens + 2)
    sheet.put(TOP - 2, left, worded("{word}: share at every token", word=worded(word)), "block")
    name, at = f"attribution.{word}", (TOP - 1, left)
    layout.labels(book, sheet, name, at, "token", range(n_tokens), "label", across=True)
    for row, credit in enumerate(credits, TOP):
        layout.settle(book, sheet, Place(credit, ATTRIBUTION, row, left, turned=True))
    sheet.dress(sheet[TOP : TOP + len(credits), left : left + n_tokens], "diverging")


def _sums(book: ModelBook, page: Composer, shares: Area) -> None:
    """Add the sum of the shares, the logit from the readout, and their difference; each for the
    target's logit and for its lead."""
    n, _ = shares.shape
    page.sheet.down(TOP + n, 0, ("sum", "logit", "sum − logit"), "row label")
    logits, position = book.graph["logits"].area, book.graph["position"][0, 0]
    sums = page.table("sum", (TOP + n, 1), (3, 2))
    for k, word in enumerate(WORDS):
        total = sums.put(0, k, SUM(shares[:, k]), "total")
        at = book.graph[word][0, 0] + 1, position + 1
        logit = sums.put(
            1, k, entry(logits, *(at if book.places["logits"].turned else at[::-1])), "live"
        )
        sums.put(2, k, total - logit, "tiny")

    def ahead(i: int, _: int) -> Expression:
        table, row = (shares, i) if i < n else (sums.area, i - n)
        return table[row, 0] - table[row, 1]

    page.show("ahead", (TOP, 3), ahead, "change plain", (n + 2, 1))


def gap(book: ModelBook) -> Area:
    """The difference between the sum of the target's shares and its logit."""
    return book.shown["attribution.sum"].block[2, 0]


def _directions(book: ModelBook, sheet: Sheet, row: int) -> None:
    """Add the directions that shares are read along: a column of d_model numbers per word, with the
    steps."""
    sheet.put(row, 0, "The directions that define the shares", "heading")
    col = 1
    placed = {credit.name for credits in book.views.credits.values() for credit in credits.values()}
    for block in book.blocks:
        if block_sheets.sheet_of(block, book).kind == ATTRIBUTION and block.name not in placed:
            sheet.hold(row + 1, col, block.name.replace("ln_final.", ""), "label")
            n = block.shape[1] if block.shape[0] == 1 else block.shape[0]
            if block.shape[1] > 1 and col == 1:
                sheet.down(row + 2, 0, range(n), "label number")
            place = Place(block, ATTRIBUTION, row + 2, col, turned=True)
            layout.settle(book, sheet, place)
            col += place.size[1]
