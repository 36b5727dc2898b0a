"""The sheet Reliability: how often the model's first word comes, against how sure it was, before and
after it was rewarded for being right (see `rewarded`).

The expected calibration error (ECE; Naeini et al. 2015) is the mean distance between the two, over
all words: 0 for a model whose shares can be taken at their word.
"""

from typing import Any

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import ABS, SUM, SUMPRODUCT
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.dialogue_game import rewarded

SHEET = "Reliability"
PURPOSE = (
    "how often is the model right when it is 30 %, 60 % or 90 % sure? Before and after a reward"
)
ABOUT = (
    "The sheet groups the model's likeliest words by their probability. Each of these words "
    "counts once. A word with a probability of 20 % should come 20 % of the time. Its point "
    "then lies on the diagonal.",
    "Training with the log loss brings the points to the diagonal. Then the model was trained "
    "for 200 more steps with another reward: the probability of the word that came.",
    "This reward is largest if the model gives all probability to one word (see the linear "
    "rule of the workbook ‘loss’). The model is right as often as before the reward, but much "
    "more sure.",
    "A temperature above 1, fitted on other games, makes the model less sure of everything. The "
    "temperature repairs only a part of the error.",
)
HEADS = ("words", "from", "to", "on average", "right", "words × gap")
LOW, HIGH, SAID, RIGHT = range(4)  # columns of a table of bins, which stand after the words
GAP = len(HEADS) - 1
FIGURES = ("share of right answers", "mean probability", "ECE", "loss, nats", "temperature")
TABLE_ROW, CHART_ROW, CHART_COL, ROOM = 9, 9, 8, 14  # rows that a table takes


def add(book: ModelBook) -> None:
    """Add a table for each training, with its figures, and the diagram of all."""
    page = layout.page(
        book,
        SHEET,
        PURPOSE,
        *ABOUT,
        widths={0: 21} | dict.fromkeys(range(1, len(HEADS) + 1), 10) | {7: 3},
    )
    found = rewarded.stored()["sets"]
    tables = [_table(page, one, n) for n, one in enumerate(found)]
    _figures(page, found, tables)
    _chart(page, found, tables)


def _table(page: Composer, found: dict[str, Any], n: int) -> Area:
    """Add one model's bins as constants, and the share of each in its ECE; returns the bins."""
    top, bins = TABLE_ROW + len(FIGURES) + 4 + n * ROOM, found["bins"]  # below the figures
    page.sheet.put(top - 1, 0, found["name"], "block")
    page.heads_at((top, 1), *HEADS, style="label")
    counts = page.typed_at(
        f"reliability.{n}.words", (top + 1, 1), [[count] for _, _, count, _, _ in bins], "count"
    )
    cells = page.typed_at(
        f"reliability.{n}",
        (top + 1, 2),
        [[low, high, said, right] for low, high, _, said, right in bins],
        "basis",
    )

    page.computed_at(
        f"reliability.{n}.gap",
        (top + 1, 1 + GAP),
        (len(bins), 1),
        lambda k, _: counts[k, 0] * ABS(cells[k, SAID] - cells[k, RIGHT]),
        "step",
    )
    return cells


def _figures(page: Composer, found: list[dict[str, Any]], tables: list[Area]) -> None:
    """Add how often each is right, how sure it is, the ECE, the loss and the temperature."""
    page.heads_at((TABLE_ROW, 1), "trained", "rewarded", "rescaled", style="label")
    page.sheet.down(TABLE_ROW + 1, 0, FIGURES, "row label")

    def figure(row: int, n: int) -> Expression:
        cells, gaps = tables[n], page.book.graph[f"reliability.{n}.gap"]
        counts = page.book.graph[f"reliability.{n}.words"].area
        sums = (
            SUMPRODUCT(counts, cells[:, RIGHT]),
            SUMPRODUCT(counts, cells[:, SAID]),
            SUM(gaps.area),
        )
        return sums[row] / SUM(counts)

    page.computed_at(
        "reliability.figures", (TABLE_ROW + 1, 1), (3, len(found)), figure, "live here"
    )
    page.sheet.across(TABLE_ROW + 4, 1, (one["loss"] for one in found), "basis")
    page.sheet.across(TABLE_ROW + 5, 1, (one["temperature"] for one in found), "basis")


def _chart(page: Composer, found: list[dict[str, Any]], tables: list[Area]) -> None:
    """Add the reliability diagram: the model's probability against the share of right words, and
    the diagonal."""
    row = TABLE_ROW + len(FIGURES) + 1
    ends = page.typed_at("reliability.diagonal", (row, 1), [[0, 1]], "basis", label="diagonal")
    series = [Series("perfect calibration", ends, ends, joined=True)]
    series += [
        Series(one["name"], cells[:, SAID], cells[:, RIGHT])
        for one, cells in zip(found, tables, strict=True)
    ]
    page.sheet.charts.append(
        Chart(
            CHART_ROW,
            CHART_COL,
            "scatter",
            "Calibration before and after a reward for being right",
            series,
            size=(560, 390),
            axes=(
                "probability of the model's likeliest word",
                "how often the likeliest word comes",
            ),
            across="0%",
        )
    )
