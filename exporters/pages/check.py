"""Check: whether the workbook is consistent. Sums are 1, there are no errors, two ways give one
number, and live equals baseline until the first edit."""

from collections.abc import Iterator

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Expression, Rounded
from cellformer.engine.cells.functions import ABS, IF, IFERROR, MAX, MIN, SQRT, SUM, SUMPRODUCT
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.compose import digest
from cellformer.exporters.compose.dressing import Unlike
from cellformer.exporters.model import layout, word_columns
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import attribution, index
from cellformer.exporters.play import vectors

SHEET = "Check"
PURPOSE = "checks of the workbook: every line should say ok until you edit something"
AFTER = "Index"
OK = "ok"  # in every language
MOST_TOGETHER = 100  # sums in a formula: one takes 255 arguments and 8,192 characters


def add(book: ModelBook) -> None:
    """Add a line per check: its name, the largest difference, ok or look."""
    page = layout.page(book, SHEET, widths={0: 78, 1: 12, 2: 12})
    page.sheet.prints = "nothing"
    page.heads("check", "largest gap", "status")
    claims, gaps = zip(*checks(book), strict=True)
    one = (len(claims), 1)
    gap = page.show(
        "gap", (page.cursor, 1), lambda i, _: IFERROR(gaps[i], worded("an error")), "tiny", one
    )

    def status(i: int, _: int) -> Expression:
        return IF(gap[i, 0] < NEAR, OK, worded("look"))

    page.dress(page.show("status", (page.cursor, 2), status, "status", one), Unlike(OK))
    told = page.table("claims", (page.cursor, 0), one)
    for k, claim in enumerate(claims):
        if isinstance(claim, Expression):
            told.put(k, 0, claim, "text")
        else:
            page.sheet.put(page.cursor + k, 0, claim)


def checks(book: ModelBook) -> Iterator[tuple[str | Expression, Expression]]:
    """Every claim, and the largest deviation from it."""
    for block in book.blocks:
        if (block.leaf == "pattern" and block.kind == "computed") or block.name == "probs":
            yield from _sums(book, block)
    expected = sum(block.n_cells for block in book.blocks)
    yield (
        "every cell of every block contains a number, not an error or a text",
        ABS(SUM(index.counts(book)) - expected),
    )
    if book.plan.explains:
        yield from _two_ways(book)
    yield (
        "every formula gives the same number as cellformer (before any edit)",
        digest.largest(book),
    )
    found = book.sheet(digest.SHEET)
    yield from (
        (found[claim, 0] & "", found[gap, 0])
        for _, gap, claim in (digest.FUNCTIONS, digest.TYPED_OVER)
    )
    text = "live logits equal the baseline (after an edit, the two should differ)"
    if book.live:
        text = "the last live block equals the baseline (after an edit, the two should differ)"
    elif book.plan.gives == "sentence":
        text = "live vectors equal the baseline (after an edit, the two should differ)"
    yield text, _largest_change(book)


def _sums(book: ModelBook, block: Block) -> Iterator[tuple[str, Expression]]:
    """Checks that the shares of each token sum to 1, some tokens at a time: its row of a pattern,
    its column of probabilities."""
    n = block.shape[0]
    whole, some = "every row of {block} sums to 1", "rows {first} to {last} of {block} sum to 1"
    if book.places[block.name].turned:
        whole = "every column of {block} sums to 1"
        some = "columns {first} to {last} of {block} sum to 1"
    for first in range(0, n, MOST_TOGETHER):
        end = min(first + MOST_TOGETHER, n)
        text = some if n > MOST_TOGETHER else whole
        yield (
            worded(text, first=first, last=end - 1, block=block.name),
            MAX(*(ABS(SUM(block[i, :]) - 1) for i in range(first, end))),
        )


def _two_ways(book: ModelBook) -> Iterator[tuple[str, Expression]]:
    """Checks of two ways to one number: attribution's sum, and the lens's last stage, equal the
    readout."""
    yield (
        "the shares on the sheet Attribution add up to the target’s logit",
        ABS(attribution.gap(book)) / _size(book),
    )
    last = book.graph[f"lens.{len(book.views.stages) - 1}.logits"].area
    live = word_columns.words(book).logits
    gap = ABS(MAX(last) - MAX(live)) + ABS(MIN(last) - MIN(live))
    yield "the last stage on the sheet Lens equals the readout", gap / _size(book)


def _largest_change(book: ModelBook) -> Expression:
    """The largest difference of the readout, or of the last live block, from its baseline."""
    if book.live:
        last = [block for block in book.graph if block.op][-1]
        squares = Rounded(float((book.values[last.name] ** 2).sum()), 15)
        return ABS(SUMPRODUCT(last.area, last.area) / squares - 1)
    if book.plan.gives == "sentence":
        names = (f"{prefix}vector" for prefix in vectors.PREFIXES)
        gaps = [book.shown[f"play.{name}.change"].block.area for name in names]
        cosine = book.shown["play.cosine.change"].block.area
        return MAX(*(SQRT(SUMPRODUCT(gap, gap)) for gap in gaps), ABS(cosine))
    if book.plan.readout.one_token:
        words = word_columns.words(book)
        gap = words.probs - words.baseline
        return SQRT(SUMPRODUCT(gap, gap))
    moved = book.shown["play.logits.change"].block.area
    return MAX(MAX(moved), -MIN(moved)) / _size(book)


def _size(book: ModelBook) -> Expression:
    """The largest logit, or 1: gaps between large logits are large."""
    logits = word_columns.words(book).logits
    return MAX(1, MAX(logits), -MIN(logits))
