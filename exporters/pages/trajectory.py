"""Trajectory: the residual stream walks across a plane that the reader chooses.

Two concept directions, each a word or a difference of two, made orthonormal by Gram-Schmidt in
cells; the stream at the position that Play looks at, stage by stage, as a path in their plane. How
much of the path's spread the plane holds is stated, beside the best that any plane could.
Coordinates have no meaning by themselves (scale the stream, divide the last norm's gain: the same
logits), so read directions and shares.
"""

import numpy as np

from engine.cells.expression import Area, Expression
from engine.cells.functions import IF, INDEX, SQRT, SUM, VARP, N
from engine.cells.rounding import NEAR
from engine.studies.lens import scoring
from engine.text import word_lookup
from exporters.compose.book import Chart, Place, Series, Sheet
from exporters.compose.lookups import product_sum
from exporters.model import layout
from exporters.model.layout import LENS
from exporters.model.model_book import ModelBook
from exporters.pages.lens import stage_names

SHEET = "Trajectory"
PURPOSE = "the residual stream walking across a plane that you choose"
AFTER = "Attribution"
WORDS_ROW, TABLE_ROW = 5, 10
CHART_COL = 6  # right of the table
STEPS = ("u", "v", "e1", "v − (v·e1) e1", "e2", "variance of the stages")
U, V, E1, REST, E2, VARIANCE = range(1, 7)  # the columns of the workings


def word_vectors(book: ModelBook) -> tuple[Place, np.ndarray]:
    """The table that the readout scores words with, and its vectors [n_words, d_model]."""
    scored = scoring(book.graph)
    values = book.values[scored.words.name]
    return book.places[scored.words.name], values if scored.by_rows else values.T


def wanted(book: ModelBook) -> bool:
    """In workbooks that show every word at every token, of models whose words' vectors are as long
    as the stream's: it walks among them."""
    return book.plan.explains and scoring(book.graph).x.shape[1] == book.model.spec.d_model


def add(book: ModelBook) -> None:
    """The words, the path, the chart, the shares; the workings below."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    sheet.widths = {0: 22} | dict.fromkeys(range(1, 6), 13) | {6: 19}
    _words(book, sheet)
    _workings(book, sheet)
    _table(book, sheet)
    _shares(book, sheet)
    stages = book.views.stages
    if len(stages) == 1:
        text = "this model has no layers: the stream stands where the embedding put it"
        sheet.put(WORDS_ROW - 1, CHART_COL, text, "note")
        return
    rows = slice(TABLE_ROW + 1, TABLE_ROW + 1 + len(stages))
    series = [Series("residual stream", sheet[rows, 1], sheet[rows, 2], stage_names(book))]
    title = "The residual stream, stage by stage"
    axes = ("along direction 1", "along direction 2")
    chart = Chart(WORDS_ROW - 1, CHART_COL, "scatter", title, series, (520, 420), axes, True, "0.0")
    sheet.charts.append(chart)


def defaults(book: ModelBook) -> list[tuple[int, int | None]]:
    """The words that the plane starts with: the target, and the last word of the prompt."""
    target, rival = int(book.value("target", 0, 0)), int(book.value("rival", 0, 0))
    last = book.passage.ids[book.passage.n_prompt - 1]
    same = book.graph["logits"].axes[1] == "vocab"
    return [(target, None), (last if same and last != target else rival, None)]


def _words(book: ModelBook, sheet: Sheet) -> None:
    """Four cells with words to choose, and their ids: -1 where there is none."""
    texts = book.graph["outputs"].area.fixed.as_range
    words = book.labels[book.graph["logits"].axes[1]]
    for col, head in ((1, "word"), (2, "minus"), (3, "id"), (4, "minus id")):
        sheet.put(WORDS_ROW - 1, col, head, "label")
    for k, (plus, _) in enumerate(defaults(book)):
        row = WORDS_ROW + k
        sheet.put(row, 0, f"direction {k + 1}", "row label")
        for col, text in ((1, words[plus]), (2, "")):
            sheet.put(row, col, text, "token")
            sheet.lists[row, col] = texts
            ident = word_lookup.place_of(sheet[row, col], book.graph, "look.words")
            sheet.formula(row, col + 2, ident, "id")
    text = "choose words; leave ‘minus’ empty for the word’s own direction"
    sheet.put(WORDS_ROW + 2, 1, text, "note")


# --- the workings -------------------------------------------------------------------------


def column(book: ModelBook, step: int) -> Area:
    """The d_model cells of one step of the workings."""
    top = TABLE_ROW + max(len(book.views.stages), 14) + 8
    return book.sheet(SHEET)[top : top + book.model.spec.d_model, step]


def basis(book: ModelBook) -> tuple[Area, Area]:
    """The plane's two directions: columns of d_model cells."""
    return column(book, E1), column(book, E2)


def _workings(book: ModelBook, sheet: Sheet) -> None:
    """Gram-Schmidt, and how far the stages spread: six columns of d_model numbers."""
    rect = column(book, U).rect
    text = "Gram-Schmidt in cells: e1 = u / |u|; e2 = what is left of v without e1, over its length"
    sheet.put(rect.top - 3, 0, text, "heading")
    for step, name in enumerate(STEPS, U):
        sheet.put(rect.top - 1, step, name, "label")
    lens, n_stages = book.places["lens.0.x"], len(book.views.stages)
    for d, row in enumerate(range(rect.top, rect.bottom)):
        sheet.put(row, 0, d, "label number")
        for k, step in enumerate((U, V)):
            plus, minus = (_feature_of(book, d, sheet[WORDS_ROW + k, col]) for col in (3, 4))
            sheet.formula(row, step, plus - minus, "step green")
        stages = book.sheets[LENS][lens.top + d, lens.left : lens.left + n_stages]
        sheet.formula(row, VARIANCE, VARP(stages.as_range), "step green")
    orthonormal(sheet, rect.top, rect.bottom)


def _feature_of(book: ModelBook, d: int, ident: Area) -> Expression:
    """Feature d of a word that was chosen; 0 where none was."""
    return IF(ident.fixed < 0, 0, feature(book, d, ident.fixed))


def orthonormal(sheet: Sheet, top: int, end: int) -> None:
    """Gram-Schmidt: u and v made orthonormal, the first kept; zero where there is no direction."""
    v, e1, rest = (sheet[top:end, step].fixed for step in (V, E1, REST))
    for row in range(top, end):
        sheet.formula(row, E1, _over_length(sheet[row, U], sheet[top:end, U].fixed), "step")
        without = sheet[row, V] - product_sum(v, e1) * sheet[row, E1]
        sheet.formula(row, REST, without, "step")
        sheet.formula(row, E2, _over_length(sheet[row, REST], rest), "step")


def _over_length(x: Area, vector: Area) -> Expression:
    length = SQRT(product_sum(vector, vector))
    return IF(length > NEAR, x / length, 0)


def feature(book: ModelBook, d: int, ident: Expression) -> Expression:
    """Feature d of the word with that id."""
    place, vectors = word_vectors(book)
    by_rows = place.block.axes[1] == "d_model"
    words = (place.block[:, d] if by_rows else place.block[d, :]).as_range
    if by_rows != place.turned and len(vectors) > 1:
        return N(INDEX(words, ident + 1, 1))
    return N(INDEX(words, 1, ident + 1))


# --- the path -----------------------------------------------------------------------------


def _table(book: ModelBook, sheet: Sheet) -> None:
    """The path's coordinates, and how far each sublayer moved it."""
    for col, head in enumerate(("after", "along 1", "along 2", "step along 1", "step along 2")):
        sheet.put(TABLE_ROW, col, head, "label" if col else "row label")
    stages = book.views.stages
    for k, (stage, name) in enumerate(zip(stages, stage_names(book), strict=True)):
        row = TABLE_ROW + 1 + k
        sheet.link(row, 0, name, book.address(stage.area))
        x = book.graph[f"lens.{k}.x"].area
        for col, direction in enumerate(basis(book), 1):
            along = sheet.formula(row, col, product_sum(x, direction), "live")
            if k:
                sheet.formula(row, col + 2, along - sheet[row - 1, col], "change plain")
    if len(stages) > 1:
        steps = sheet[TABLE_ROW + 2 : TABLE_ROW + 1 + len(stages), 3:5]
        sheet.dress(steps, "diverging")


def _shares(book: ModelBook, sheet: Sheet) -> None:
    """How much of the path's spread the plane holds, and the best that a plane could."""
    n = len(book.views.stages)
    row, spread = TABLE_ROW + n + 2, column(book, VARIANCE)
    along = [sheet[TABLE_ROW + 1 : TABLE_ROW + 1 + n, col].as_range for col in (1, 2)]
    held = (VARP(along[0]) + VARP(along[1])) / SUM(spread)
    sheet.put(row, 0, "spread in the plane", "row label")
    sheet.formula(row, 1, IF(SUM(spread) > 0, held, 0), "percent")
    sheet.put(row, 2, "share of the path’s variance that these two directions hold; live", "note")
    sheet.put(row + 1, 0, "best possible", "row label")
    path = np.array([book.values[f"lens.{k}.x"][0] for k in range(n)])  # [n_stages, d_model]
    squares = np.linalg.svd(path - path.mean(axis=0), compute_uv=False) ** 2
    best = float(squares[:2].sum() / squares.sum()) if squares.sum() else 0.0
    sheet.put(row + 1, 1, best, "constant percent")
    book.named_cells |= {
        "share of the path": (SHEET, row, 1),
        "best of the path": (SHEET, row + 1, 1),
    }
    sheet.put(row + 1, 2, "two principal components of the path as built; a constant", "note")
