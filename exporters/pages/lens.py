"""Lens: what the model would predict if it stopped after each sublayer (nostalgebraist 2020).

One column per stage of the residual stream, at the position that Play looks at: the stream is read
out through the final norm, as at the end. Above, the most likely words and the target's probability
at each stage, with a chart; below, the steps.
"""

from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.functions import LARGE
from cellformer.engine.cells.language import AsIs, worded
from cellformer.exporters.compose.book import Chart, Place, Series, Sheet
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import nth, place_of_rank
from cellformer.exporters.model import layout, words
from cellformer.exporters.model.block_sheets import LENS
from cellformer.exporters.model.model_book import ModelBook

SHEET = LENS
PURPOSE = "what the model answers if it stops after each sublayer"
AFTER = "Heads"
TOP, LEFT = 5, 2
WORDS_SHOWN = 3
CHART_ROWS = 17
CHART_SIZE = (620, 240)  # pixels: whole in the first screen
FEW_STAGES = 3  # no line is drawn through so few points


def wanted(book: ModelBook) -> bool:
    """Whether the workbook explains answers."""
    return book.plan.explains


def add(book: ModelBook) -> None:
    """Add a summary, a chart, and the steps of every stage's readout."""
    stages, last = book.views.stages, LEFT + len(book.views.stages)
    widths = {0: 15, 1: 15} | {LEFT + n: 13 for n in range(len(stages))}
    page = layout.page(book, SHEET, widths=widths)
    sheet = page.sheet
    row = TOP + 4 + 2 * WORDS_SHOWN + CHART_ROWS
    leaves = [n.removeprefix("lens.0.") for n in book.graph.blocks if n.startswith("lens.0.")]
    for leaf in leaves:
        row = _steps(book, sheet, leaf, row)
    for n, (stage, name) in enumerate(zip(stages, stage_names(book), strict=True)):
        sheet.link(TOP, LEFT + n, name, book.address(stage.area))
    chances = _summary(book, page)
    ranks = [worded("likeliest {n}", n=k + 1) for k in range(WORDS_SHOWN)]
    sheet.down(
        TOP + 3, LEFT - 1, [text for rank in ranks for text in (rank, "probability")], "row label"
    )
    sheet.down(TOP, LEFT - 1, ("after", "probability of"), "row label")
    page.show("target", (TOP + 2, LEFT - 1), book.graph["look.target"][0, 0], "word")
    page.dress(chances, "scale")
    sheet.charts.append(
        Chart(
            TOP + 4 + 2 * WORDS_SHOWN,
            LEFT - 1,
            "line" if len(stages) > FEW_STAGES else "column",
            "Probability of the target word after each stage",
            [Series("target", sheet[TOP, LEFT:last], chances)],
            size=CHART_SIZE,
            shares=True,
        )
    )


def stage_names(book: ModelBook) -> list[str]:
    """Short names of the stages, for narrow columns: `embedding`, `0 attention`, `0 MLP`."""
    return words.stage_names(book.graph, book.views.stages)


def _steps(book: ModelBook, sheet: Sheet, leaf: str, row: int) -> int:
    """Add one step of the readout for every stage, side by side; returns the row below."""
    block, n_stages = book.graph[f"lens.0.{leaf}"], len(book.views.stages)
    text = "the stream at the chosen position" if leaf == "x" else words.meaning(block)
    sheet.lines(row, [(AsIs(leaf), text)], {0: "block", LEFT: "note"})
    at, numbers = (row + 1, LEFT - 1), range(block.shape[1])
    layout.labels(book, sheet, f"lens.{leaf}", at, block.axes[1], numbers, "row label")
    for n in range(n_stages):
        layout.settle(
            book, sheet, Place(book.graph[f"lens.{n}.{leaf}"], LENS, row + 1, LEFT + n, True)
        )
    return row + block.shape[1] + 2


def _summary(book: ModelBook, page: Composer) -> Area:
    """Add the target's (given) probability at each stage, and the most likely words."""
    stages, target = len(book.views.stages), book.graph["target"][0, 0]
    n_words = book.graph["logits"].shape[1]
    n_shown = min(WORDS_SHOWN, n_words)
    texts, ids = layout.labels_of(book, "logits", 1, n_words), book.graph["choice.ids"].area
    chance = page.table("chance", (TOP + 2, LEFT), (1, stages))
    likeliest = page.table("likeliest", (TOP + 3, LEFT), (2 * n_shown, stages))
    for n in range(stages):
        scores = book.graph[f"lens.{n}.logits"].area.as_range
        chances = book.graph[f"lens.{n}.probs"].area.as_range
        chance.put(0, n, nth(chances, target + 1), "percent")
        for k in range(n_shown):
            where = place_of_rank(scores, ids, k + 1, LARGE(scores, k + 1))
            for row, area, style in ((0, texts, "word"), (1, chances, "percent")):
                likeliest.put(2 * k + row, n, nth(area, where), style, array=k > 0)
    return chance.area
