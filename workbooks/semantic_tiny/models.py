"""The sheet Two models of semantic-tiny: one table, two trainings, three maps of the same words.

The essay has two pictures side by side, of its table and of its model, which failed. Here they
stand with a third, of the model with narrow initial vectors. Each is drawn along the two principal
components of its vectors as built, which are constants; the vectors, the points and the shares are
live.
"""

from dataclasses import dataclass

import numpy as np

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import IF, SUM
from cellformer.engine.models import checkpoint
from cellformer.engine.studies.lens import scoring
from cellformer.engine.studies.planes import principal
from cellformer.exporters.compose import label_placement, theme
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import product_sum
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.semantic_tiny import semantics

SHEET = "Two models"
PURPOSE = "one table and two models: three maps of the same forty words"
N_WORDS, WIDE = len(semantics.CONTENT), max(semantics.SCALES)
SHARE_ROW, CHART_ROW, TRIES_ROW, POINTS_ROW = 7, 8, 26, 34
VECTORS_ROW = POINTS_ROW + N_WORDS + 6
SIZE, CHART_COLS = (374, 325), (0, 6, 12)
MIDDLE_ROWS = 4  # above vectors: the mean, two components
ABOUT = (
    "The left map shows the table behind the sentences. Both models learned the same sentences "
    "equally well. Neither model saw the table.",
    "The two models differ only in the length of their vectors before training. Long vectors "
    "give a cloud, like the picture in the essay. Short vectors give an ordered map.",
)
OPENS = (
    "You can also build a workbook of the middle model: cellformer build "
    'workbooks/models/semantic-tiny/scale-1.0 --prompt "<BOS> queen is"'
)


@dataclass(frozen=True)
class Cloud:
    """Forty vectors, a table [n_words, d] of the graph, and the name of their map."""

    name: str
    title: str
    vectors: str
    told: str


CLOUDS = (
    Cloud("hand", "The table, set by hand", "study.table", "of the table's spread"),
    Cloud("wide", "Learned from wide vectors (1.0)", "models.wide", "of the spread of the wide vectors"),
    Cloud("narrow", "Learned from narrow vectors (0.02)", "models.narrow", "of this model's spread"),
)  # fmt: skip


def vectors(book: ModelBook) -> None:
    """Add the content words' vectors of both models: the other one's as typed constants, this one's
    looked up in its embedding."""
    page, left = Composer(book, SHEET), 2 + semantics.spec().d_model + 2
    own = checkpoint.load(semantics.FOLDER / f"scale-{WIDE}").weights["W_E"][semantics.ROWS]
    scored = scoring(book.graph)

    def entry(k: int, d: int) -> Expression:
        word = semantics.ROWS[k]
        return expression(scored.words[word, d] if scored.by_rows else scored.words[d, word])

    top = VECTORS_ROW + MIDDLE_ROWS
    page.typed_at("models.wide", (top, 2), own.tolist(), "weight blue")
    page.computed_at(
        "models.narrow", (top, left), (N_WORDS, book.model.spec.d_model), entry, "step green"
    )
    page.sheet.down(top, 1, semantics.CONTENT, "row label")
    page.sheet.down(top, left - 1, semantics.CONTENT, "row label")


def add(book: ModelBook) -> None:
    """Three maps, three edits; points and vectors below."""
    page = layout.page(
        book,
        SHEET,
        PURPOSE,
        *ABOUT,
        widths=dict.fromkeys(range(2 * semantics.spec().d_model + 24), 8.3),
    )
    page.sheet.put(
        POINTS_ROW - 2, 0, "The points of the maps, and the words shown on the maps", "heading"
    )
    page.sheet.down(POINTS_ROW, 0, semantics.CONTENT, "row label")
    for n, cloud in enumerate(CLOUDS):
        _map(book, page, cloud, n)
    page = Composer(book, SHEET, TRIES_ROW - 1)
    page.suggest(*_suggestions(), at=(14, 16, 0))
    page.text(OPENS, style="note")


def _map(book: ModelBook, page: Composer, cloud: Cloud, n: int) -> None:
    """Add one cloud's mean, components, points, share and chart."""
    table = book.graph[cloud.vectors]
    left = book.places[cloud.vectors].left if n else 2 * semantics.spec().d_model + 10
    top = VECTORS_ROW
    axes, _ = principal(np.array(book.values[cloud.vectors], dtype=np.float64), 2)  # [2, d]
    page.sheet.put(top - 1, left, cloud.title, "block")
    page.sheet.down(top, left - 1, ("mean", "component 1", "component 2"), "row label")
    mean = page.computed_at(f"models.mean_{cloud.name}", (top, left), (1, table.shape[1]), lambda _, d: SUM(table[:, d]) / N_WORDS, "step")  # fmt: skip
    basis = page.typed_at(f"models.basis_{cloud.name}", (top + 1, left), axes.tolist(), "basis")
    points = _points(book, page, cloud, mean, basis, 1 + 2 * n)
    share = _share(table, mean, points)
    col = CHART_COLS[n]
    page.computed_at(
        f"models.share_{cloud.name}", (SHARE_ROW, col), (1, 1), lambda *_: share, "percent"
    )
    page.sheet.put(SHARE_ROW, col + 1, f"{cloud.told} lies in this plane", "note")
    _chart(book, page, cloud, points, n)


def _points(
    book: ModelBook, page: Composer, cloud: Cloud, mean: Area, basis: Area, col: int
) -> Area:
    """Add each word's coordinates along the two components, from the mean."""
    table = book.graph[cloud.vectors]

    def along(k: int, c: int) -> Expression:
        middle = product_sum(mean.fixed, basis[c, :].fixed)
        return product_sum(table[k, :], basis[c, :].fixed) - middle

    return page.computed_at(
        f"models.point_{cloud.name}",
        (POINTS_ROW, col),
        (N_WORDS, 2),
        along,
        "step",
        head=cloud.name,
    )


def _share(table: Block, mean: Area, points: Area) -> Expression:
    """Add the share of the vectors' variance in the drawn plane; 0 if there is none."""
    spread = product_sum(table.area, table.area) - N_WORDS * product_sum(mean, mean)
    middle = (SUM(points[:, 0]) ** 2 + SUM(points[:, 1]) ** 2) / N_WORDS
    return IF(spread > 0, (product_sum(points, points) - middle) / spread, 0)


def _chart(book: ModelBook, page: Composer, cloud: Cloud, points: Area, n: int) -> None:
    """Add the map: a series for each word, named if there is room."""
    built = np.array(book.values[points.grid.name], dtype=np.float64)
    sides, series, col = label_placement.sides(built, semantics.CONTENT, SIZE), [], 8 + n
    page.sheet.put(POINTS_ROW - 1, col, f"on {cloud.name}", "label")
    colours = [
        theme.GROUPS[g] for g, (a, b) in enumerate(semantics.KINDS.values()) for _ in range(a, b)
    ]
    for k, (word, side) in enumerate(zip(semantics.CONTENT, sides, strict=True)):
        page.sheet.put(POINTS_ROW + k, col, word if side else " ", "word")
        x, y, name = points[k, 0], points[k, 1], page.sheet[POINTS_ROW + k, col]
        series.append(Series(name, x, y, colour=colours[k], bears=side or "right"))
    page.sheet.charts.append(
        Chart(
            CHART_ROW,
            CHART_COLS[n],
            "scatter",
            cloud.title,
            series,
            size=SIZE,
            axes=("component 1", "component 2"),
            number="0.0",
        )
    )


def _suggestions() -> list[Suggestion]:
    """Three edits: a word moved in the table, in this model's embedding, in the other's vectors."""
    row, queen = (semantics.CONTENT.index(word) for word in ("ship", "queen"))
    return [
        Suggestion(
            "On the sheet Study, type ‘1’ as the animacy of ‘ship’: the left map moves ‘ship’ to "
            "the living things, from {now:.2f} to {then:.2f}. The other maps do not use the "
            "table.",
            ("study.table", row, semantics.AXES.index("animacy")), 1, ("models.point_hand", row, 0),
        ),
        Suggestion(
            "Type ‘5’ as the first number of ‘queen’ in the embedding: on the right map, ‘queen’ "
            "moves away. The map shows {then:.0%} of the spread, not {now:.0%}.",
            ("W_E", semantics.ROWS[queen], 0), 5, ("models.share_narrow", 0, 0),
        ),
        Suggestion(
            "Type ‘20’ as the first number of king in the wide vectors: king moves away from the map's plane. The map shows {then:.0%} of the spread, not {now:.0%}.",
            ("models.wide", 0, 0), 20, ("models.share_wide", 0, 0),
        ),
    ]  # fmt: skip
