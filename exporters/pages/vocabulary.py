"""Words: three maps of the vocabulary, as the readout knows it.

Concept directions (the plane of Trajectory): the reader brings the meaning. Principal components:
the data brings the directions of greatest spread; the basis is the engine's, a constant, the
projection live, and how much of the spread is shown is stated. t-SNE: the data brings
neighbourhoods; constants, and no projection at all.
"""

import numpy as np

from engine.cells.access import Rect
from engine.studies.tsne import tsne
from exporters import layout
from exporters.address import a1, quoted
from exporters.book import Chart, Series, Sheet
from exporters.model_book import ModelBook, cell, span
from exporters.pages.trajectory import basis, defaults, dot, gram_schmidt, word_vectors

SHEET = "Words"
PURPOSE = "three maps of the vocabulary, and how much each leaves out"
AFTER = "Trajectory"
TOP = 26
MOST = 256  # words on the map
LABELLED = 64  # points that a chart can label
SEED, PERPLEXITY = 0, 5.0
MAPS = (  # title, column of x, column that the chart starts in, its width in pixels
    ("concept directions", 1, 0, 405),
    ("principal components", 5, 5, 370),
    ("principal components, cosine", 9, 10, 370),
    ("t-SNE: neighbours only", 11, 15, 370),
)


def wanted(book: ModelBook) -> bool:
    """In workbooks that show every word at every token."""
    return not book.large


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
    _concepts(book, sheet, x, shown)
    _components(book, sheet, x, shown, work)
    _neighbours(sheet, x)
    texts = [words[v] for v in shown] if len(shown) <= LABELLED else []
    for title, left, at, width in MAPS if len(shown) > 3 else ():
        x_cells = Rect(TOP, end, left, left + 1)
        y_cells = x_cells._replace(left=left + 1, right=left + 2)
        series = [Series("words", x_cells, y_cells, texts)]
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


def word_vector(book: ModelBook, v: int) -> str:
    """One word's vector: a column of the readout's table."""
    place, vectors = word_vectors(book)
    d_model = vectors.shape[1]
    by_rows = place.block.axes[1] == "d_model"
    rect = place.rect(Rect(v, v + 1, 0, d_model) if by_rows else Rect(0, d_model, v, v + 1))
    return f"{quoted(place.sheet)}!{a1(rect)}"


def _heads(sheet: Sheet, col: int, title: str, heads: tuple[str, ...]) -> None:
    sheet.put(TOP - 2, col, title, "block")
    for k, head in enumerate(heads):
        sheet.put(TOP - 1, col + k, head, "label")


def _concepts(book: ModelBook, sheet: Sheet, x: np.ndarray, shown: list[int]) -> None:
    """Coordinates in the plane that is chosen on Trajectory."""
    _, vectors = word_vectors(book)
    (a, _), (b, _) = defaults(book)
    plane = gram_schmidt(vectors[a], vectors[b])
    _heads(sheet, 1, "concept directions", ("along 1", "along 2"))
    d_model = x.shape[1]
    for k, v in enumerate(shown):
        for col, name, direction in ((1, "e1", plane.e1), (2, "e2", plane.e2)):
            formula = dot(word_vector(book, v), basis(book, name, d_model, SHEET), d_model)
            sheet.calc(TOP + k, col, formula, float(x[k] @ direction), "live")


def _components(book: ModelBook, sheet: Sheet, x: np.ndarray, shown: list[int], work: int) -> None:
    """Two principal components of the words, raw, and of their directions alone (cosine)."""
    d_model = x.shape[1]
    lengths = np.maximum(np.sqrt((x * x).sum(axis=1)), 1e-12)  # [n_shown]
    end = TOP + len(shown)
    sheet.put(work, 0, "bases: principal components of the words as built, constants", "heading")
    for k in range(d_model):
        sheet.put(work + 2 + k, 0, k, "label number")
    for col, title, rows in (
        (3, "principal components", x),
        (7, "principal components, cosine", x / lengths[:, None]),
    ):
        axes, share = principal(rows)  # [2, d_model]
        cosine = col == 7
        _heads(sheet, col, title, ("raw 1", "raw 2", "PC 1", "PC 2"))
        sheet.put(TOP - 3, col, share, "constant percent")
        sheet.put(TOP - 3, col + 1, "of the variance, as built", "note")
        for c in range(2):
            sheet.put(work + 1, col + c, f"PC {c + 1}", "label")
            for d in range(d_model):
                sheet.put(work + 2 + d, col + c, float(axes[c, d]), "basis")
            direction = a1(Rect(work + 2, work + 2 + d_model, col + c, col + c + 1))
            raw = rows @ axes[c]  # [n_shown]
            column = span(Rect(TOP, end, col + c, col + c + 1))
            for k, v in enumerate(shown):
                own = word_vector(book, v)
                formula = dot(own, direction, d_model)
                if cosine:
                    length = f"SQRT({dot(own, own, d_model)})"
                    formula = f"IF({length}>0,{formula}/{length},0)"
                sheet.calc(TOP + k, col + c, formula, float(raw[k]), "live")
                centred = f"{cell(TOP + k, col + c)}-AVERAGE({column})"
                sheet.calc(TOP + k, col + 2 + c, centred, float(raw[k] - raw.mean()), "step")


def principal(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Two principal components of rows x [n, d], as rows [2, d], and the variance they hold."""
    _, spread, axes = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    axes, spread = np.vstack([axes, np.zeros((2, x.shape[1]))])[:2], spread**2
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
    for k, text in enumerate((
        "t-SNE keeps neighbours together and nothing else: no axes, no directions, no arithmetic;",
        "distances between groups and their sizes mean nothing, and another seed or perplexity",
        "draws another picture. Read it for who is near whom, never for how far.",
    )):  # fmt: skip
        sheet.put(TOP - 2 + k, 14, text, "note")
