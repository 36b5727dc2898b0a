"""Words: four maps of the vocabulary, as the readout knows it.

Concept directions (the plane of Trajectory): the reader brings the meaning. Principal components:
the data brings the directions of greatest spread; the basis is the engine's, a constant, the
projection live, and how much of the spread is shown is stated. t-SNE: the data brings
neighbourhoods; constants, and no projection at all. Words that lie on one line have one component:
the second is 0, and not the rounding that is left of it.
"""

import numpy as np

from engine.cells.expression import Area, Expression
from engine.cells.functions import AVERAGE, IF, SQRT
from engine.studies.tsne import tsne
from exporters import layout
from exporters.book import Chart, Series, Sheet
from exporters.lookups import product_sum
from exporters.model_book import ModelBook
from exporters.pages import trajectory
from exporters.pages.trajectory import basis, word_vectors

SHEET = "Words"
PURPOSE = "four maps of the vocabulary, and how much each leaves out"
AFTER = "Trajectory"
TOP = 26
MOST = 256  # words on the map
LABELLED = 64  # points that a chart can label
SEED, PERPLEXITY = 0, 5.0
NO_SPREAD = 1e-24  # a component with a smaller share of the variance is rounding
MAPS = (  # title, column of x, column that the chart starts in, its width in pixels
    ("concept directions", 1, 0, 405),
    ("principal components", 5, 5, 370),
    ("principal components, cosine", 9, 10, 370),
    ("t-SNE: neighbours only", 11, 15, 370),
)
CAUTION = (
    "t-SNE keeps neighbours together and nothing else: no axes, no directions, no arithmetic;",
    "distances between groups and their sizes mean nothing, and another seed or perplexity",
    "draws another picture. Read it for who is near whom, never for how far.",
)


def wanted(book: ModelBook) -> bool:
    """Where there is a Trajectory, whose plane it shows."""
    return trajectory.wanted(book)


def add(book: ModelBook) -> None:
    """The table of coordinates, four charts, what each holds of the spread."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    _, vectors = word_vectors(book)
    words = book.labels[book.graph["logits"].axes[1]]
    shown = which(book, len(words))
    sheet.widths = {0: 16} | dict.fromkeys(range(1, 15), 10)
    end = TOP + len(shown)
    for k, v in enumerate(shown):
        sheet.put(TOP + k, 0, words[v], "word")
    work = end + 3
    x = vectors[shown]  # [n_shown, d_model]
    _concepts(book, sheet, shown)
    _components(book, sheet, x, shown, work)
    _neighbours(sheet, x)
    texts = [words[v] for v in shown] if len(shown) <= LABELLED else []
    for title, left, at, width in MAPS if len(shown) > 3 else ():
        series = [Series("words", sheet[TOP:end, left], sheet[TOP:end, left + 1], texts)]
        chart = Chart(4, at, "scatter", title, series, (width, 380), number="0.0")
        sheet.charts.append(chart)


def which(book: ModelBook, n: int) -> list[int]:
    """The words on the map: all, or of a large vocabulary the prompt's and the likeliest."""
    if n <= MOST:
        return list(range(n))
    last = book.passage.n_prompt - 1
    likely = np.argsort(-book.values["logits"][last], kind="stable")[:MOST]
    given = book.passage.ids if book.graph["logits"].axes[1] == "vocab" else []
    return sorted({*given, *map(int, likely)})


def word_vector(book: ModelBook, v: int) -> Area:
    """One word's vector: a column of the readout's table."""
    block = word_vectors(book)[0].block
    return block[v, :] if block.axes[1] == "d_model" else block[:, v]


def _heads(sheet: Sheet, col: int, title: str, heads: tuple[str, ...]) -> None:
    sheet.put(TOP - 2, col, title, "block")
    for k, head in enumerate(heads):
        sheet.put(TOP - 1, col + k, head, "label")


def _concepts(book: ModelBook, sheet: Sheet, shown: list[int]) -> None:
    """Coordinates in the plane that is chosen on Trajectory."""
    _heads(sheet, 1, "concept directions", ("along 1", "along 2"))
    for row, v in enumerate(shown, TOP):
        for col, direction in enumerate(basis(book), 1):
            along = product_sum(word_vector(book, v), direction)
            sheet.formula(row, col, along, "live")


def _components(book: ModelBook, sheet: Sheet, x: np.ndarray, shown: list[int], work: int) -> None:
    """Two principal components of the words, raw, and of their directions alone (cosine)."""
    lengths = np.maximum(np.sqrt((x * x).sum(axis=1)), 1e-12)  # [n_shown]
    sheet.put(work, 0, "bases: principal components of the words as built, constants", "heading")
    for k in range(x.shape[1]):
        sheet.put(work + 2 + k, 0, k, "label number")
    for col, title, rows, along in (
        (3, "principal components", x, product_sum),
        (7, "principal components, cosine", x / lengths[:, None], _along_of_its_length),
    ):
        axes, share = principal(rows)  # [2, d_model]
        _heads(sheet, col, title, ("raw 1", "raw 2", "PC 1", "PC 2"))
        sheet.put(TOP - 3, col, share, "constant percent")
        sheet.put(TOP - 3, col + 1, "of the variance, as built", "note")
        for c in range(2):
            direction = _basis_vector(sheet, work, col + c, f"PC {c + 1}", axes[c])
            raw = sheet[TOP : TOP + len(shown), col + c].as_range
            for row, v in enumerate(shown, TOP):
                own = sheet.formula(row, col + c, along(word_vector(book, v), direction), "live")
                sheet.formula(row, col + 2 + c, own - AVERAGE(raw), "step")


def _basis_vector(sheet: Sheet, work: int, col: int, name: str, vector: np.ndarray) -> Area:
    """A direction as constants, down a column."""
    sheet.put(work + 1, col, name, "label")
    for d, value in enumerate(vector.tolist()):
        sheet.put(work + 2 + d, col, value, "basis")
    return sheet[work + 2 : work + 2 + len(vector), col]


def _along_of_its_length(vector: Area, direction: Area) -> Expression:
    """How far a vector goes along a direction, as a share of its own length; 0 if it has none."""
    length = SQRT(product_sum(vector, vector))
    return IF(length > 0, product_sum(vector, direction) / length, 0)


def principal(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Two principal components of rows x [n, d], as rows [2, d], and the variance they hold."""
    _, spread, axes = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    spread = spread**2
    axes[spread <= NO_SPREAD * spread.sum()] = 0
    axes = np.vstack([axes, np.zeros((2, x.shape[1]))])[:2]
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])  # a component has no sign
    total = spread.sum()
    share = float(spread[:2].sum() / total) if total else 0.0
    return axes * np.where(signs == 0, 1, signs)[:, None], share


def _neighbours(sheet: Sheet, x: np.ndarray) -> None:
    """t-SNE coordinates, with what they depend on and what they do not mean."""
    _heads(sheet, 11, "t-SNE, constants", ("x", "y"))
    if len(x) > 3:
        points = tsne(x, PERPLEXITY, SEED)  # [n_shown, 2]
        for k, (a, b) in enumerate(points):
            sheet.put(TOP + k, 11, float(a), "basis")
            sheet.put(TOP + k, 12, float(b), "basis")
    sheet.put(TOP - 3, 11, f"seed {SEED}, perplexity {PERPLEXITY:g}", "note")
    for k, text in enumerate(CAUTION):
        sheet.put(TOP - 2 + k, 14, text, "note")
