"""Trajectory: the residual stream as a path on a plane that the user chooses.

Two concept directions, each a word or a difference of two, made orthonormal by Gram-Schmidt in
cells; the stream at the position that Play looks at, stage by stage, as a path in their plane. The
share of the path's variance in this plane is stated, beside the largest share of any plane.
Coordinates have no meaning by themselves (scaling the stream and dividing the last norm's gain
gives the same logits), so read directions and shares.
"""

from collections.abc import Callable

import numpy as np

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import IF, INDEX, SUM, VARP, N
from cellformer.engine.cells.language import worded
from cellformer.engine.studies.lens import scoring
from cellformer.engine.text import word_lookup
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import over_length, product_sum
from cellformer.exporters.model import layout
from cellformer.exporters.model.block_sheets import LENS
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages.lens import stage_names

SHEET = "Trajectory"
PURPOSE = "the path of the residual stream in a plane that you choose"
AFTER = "Attribution"
CHART = (4, 6)  # right of the words and the table
HEADS = ("after", "along 1", "along 2", "step along 1", "step along 2")
SHARES = (
    (
        "spread in the plane",
        "share of the path’s variance in the plane of these two directions; live",
    ),
    ("best possible", "share of variance in first two principal components as built; constant"),
)
STEPS = ("u", "v", "e1", "v − (v·e1) e1", "e2", "variance of the stages")


def wanted(book: ModelBook) -> bool:
    """Whether the workbook has maps of words, and a stream of several stages."""
    return len(book.views.stages) > 1 and spans_a_plane(book)


def spans_a_plane(book: ModelBook) -> bool:
    """Whether every word has a logit at every token, by a vector as long as the stream, and these
    vectors do not all lie on one line."""
    if not book.plan.explains or scoring(book.graph).x.shape[1] != book.model.spec.d_model:
        return False
    return bool(np.linalg.matrix_rank(book.values[scoring(book.graph).words.name]) > 1)


def add(book: ModelBook) -> None:
    """Add the words, the path, the chart, the shares; the intermediate steps below."""
    page = layout.page(book, SHEET, widths={0: 22} | dict.fromkeys(range(1, 6), 13) | {6: 19})
    sheet = page.sheet
    _workings(book, page, _words(book, page))
    path = _path(book, page)
    _shares(book, page, path)
    sheet.charts.append(
        Chart(
            *CHART,
            "scatter",
            "The residual stream, stage by stage",
            [Series("residual stream", path[:, 0], path[:, 1], stage_names(book))],
            size=(520, 420),
            axes=("along direction 1", "along direction 2"),
            joined=True,
            number="General",
        )
    )


def defaults(book: ModelBook) -> tuple[int, int]:
    """The initial words of the plane: the target, and the last word of the prompt."""
    target, rival = int(book.value("target", 0, 0)), int(book.value("rival", 0, 0))
    last = book.passage.ids[book.passage.n_prompt - 1]
    same = book.graph["logits"].axes[1] == "vocab"
    return target, last if same and last != target else rival


def _words(book: ModelBook, page: Composer) -> Area:
    """Add four cells with words to choose, and their (given) ids: -1 for none."""
    sheet, top, words = page.sheet, page.cursor + 1, book.labels[book.graph["logits"].axes[1]]
    page.heads_at((page.cursor, 1), "word", "minus", "id", "minus id", style="label")
    lines = [
        (worded("direction {n}", n=n), words[word], "") for n, word in enumerate(defaults(book), 1)
    ]
    sheet.lines(top, lines, {0: "row label", 1: "token", 2: "token"})
    texts = book.graph["outputs"].area.fixed.as_range
    sheet.lists |= dict.fromkeys(Rect(top, top + 2, 1, 3).cells(), texts)

    found = page.show(
        "ids",
        (top, 3),
        lambda k, j: word_lookup.place_of(sheet[top + k, 1 + j], book.graph, "look.words"),
        "id",
        (2, 2),
    )
    text = "choose words; if ‘minus’ is empty, the direction of the word is used"
    sheet.put(page.cursor + 3, 1, text, "note")
    page.cursor += 6
    return found


# --- the workings -------------------------------------------------------------------------


def basis(book: ModelBook) -> tuple[Area, Area]:
    """The plane's two directions: columns of d_model cells."""
    return book.shown["trajectory.e1"].block.area, book.shown["trajectory.e2"].block.area


def _workings(book: ModelBook, page: Composer, ids: Area) -> None:
    """Add Gram-Schmidt, and the variance of the stages: six columns of d_model numbers."""
    n_stages, d_model = len(book.views.stages), book.model.spec.d_model
    top = page.cursor + max(n_stages, 14) + 8
    text = (
        "Gram-Schmidt in cells: e1 = u / |u|. To get e2, subtract from v its part along e1, and "
        "divide by the length of the result"
    )
    page.sheet.put(top - 3, 0, text, "heading")
    page.sheet.across(top - 1, 1, STEPS, "label")
    page.sheet.down(top, 0, range(d_model), "label number")

    def direction(k: int) -> Callable[[int, int], Expression]:
        plus, minus = ids[k, 0], ids[k, 1]
        return lambda d, _: _feature_of(book, d, plus) - _feature_of(book, d, minus)

    one, lens = (d_model, 1), book.places["lens.0.x"]
    u, v = (page.show("uv"[k], (top, 1 + k), direction(k), "step green", one) for k in range(2))
    orthonormal(page, (top, 3), u, v)

    columns = slice(lens.left, lens.left + n_stages)

    page.show(
        "variance",
        (top, 6),
        lambda d, _: VARP(book.sheets[LENS][lens.top + d, columns].as_range),
        "step green",
        one,
    )


def _feature_of(book: ModelBook, d: int, ident: Area) -> Expression:
    """Feature d of a chosen word; 0 for a blank one."""
    return IF(ident.fixed < 0, 0, feature(book, d, ident.fixed))


def orthonormal(page: Composer, at: Span, u: Area, v: Area) -> None:
    """Add u and v made orthonormal by Gram-Schmidt, keeping the first's direction; zero for a zero
    vector. The tables e1, rest and e2 stand side by side."""
    (top, left), one = at, u.shape
    e1 = page.show("e1", at, lambda d, _: over_length(u[d, 0], u.fixed), "step", one)
    along = product_sum(v.fixed, e1.fixed)
    at = (top, left + 1)
    rest = page.show("rest", at, lambda d, _: v[d, 0] - along * e1[d, 0], "step", one)
    at = (top, left + 2)
    page.show("e2", at, lambda d, _: over_length(rest[d, 0], rest.fixed), "step", one)


def feature(book: ModelBook, d: int, ident: Expression) -> Expression:
    """Feature d of the word with that id."""
    place = book.places[scoring(book.graph).words.name]
    by_rows = place.block.axes[1] == "d_model"
    words = (place.block[:, d] if by_rows else place.block[d, :]).as_range
    if by_rows != place.turned and words.rect.size > 1:
        return N(INDEX(words, ident + 1, 1))
    return N(INDEX(words, 1, ident + 1))


# --- the path -----------------------------------------------------------------------------


def _path(book: ModelBook, page: Composer) -> Area:
    """Add the path's (given) coordinates, and how far each sublayer moved it."""
    page.sheet.lines(
        page.cursor, [HEADS], {0: "row label"} | dict.fromkeys(range(1, len(HEADS)), "label")
    )
    stages, directions = book.views.stages, basis(book)
    for k, (stage, name) in enumerate(zip(stages, stage_names(book), strict=True)):
        page.sheet.link(page.cursor + 1 + k, 0, name, book.address(stage.area))

    path = page.show(
        "along",
        (page.cursor + 1, 1),
        lambda k, way: product_sum(book.graph[f"lens.{k}.x"].area, directions[way]),
        "live",
        (len(stages), 2),
    )

    page.show(
        "step",
        (page.cursor + 2, 3),
        lambda k, way: path[k + 1, way] - path[k, way],
        "change plain",
        (len(stages) - 1, 2),
        dress="diverging",
    )
    page.cursor += len(stages) + 2
    return path


def _shares(book: ModelBook, page: Composer, path: Area) -> None:
    """Add the share of the path's variance in the plane, and the largest share of any plane."""
    sheet, n = page.sheet, len(book.views.stages)
    row, spread = page.cursor, book.shown["trajectory.variance"].block.area
    held = (VARP(path[:, 0].as_range) + VARP(path[:, 1].as_range)) / SUM(spread)
    sheet.lines(row, SHARES, {0: "row label", 2: "note"})
    page.show("share", (row, 1), IF(SUM(spread) > 0, held, 0), "percent")
    stream = np.array([book.values[f"lens.{k}.x"][0] for k in range(n)])  # [n_stages, d_model]
    squares = np.linalg.svd(stream - stream.mean(axis=0), compute_uv=False) ** 2
    best = float(squares[:2].sum() / squares.sum()) if squares.sum() else 0.0
    sheet.put(row + 1, 1, best, "constant percent")
    book.named_cells |= {
        "share of the path": (SHEET, row, 1),
        "best of the path": (SHEET, row + 1, 1),
    }
