"""Trajectory: the residual stream walks across a plane that the reader chooses.

Two concept directions, each a word or a difference of two, made orthonormal by Gram-Schmidt in
cells; the stream at the position that Play looks at, stage by stage, as a path in their plane. How
much of the path's spread the plane holds is stated, beside the best that any plane could.
Coordinates have no meaning by themselves (scale the stream, divide the last norm's gain: the same
logits), so read directions and shares.
"""

from dataclasses import dataclass

import numpy as np

from engine.cells.access import Rect
from engine.studies.lens import scoring
from exporters import layout
from exporters.address import a1, quoted
from exporters.book import Chart, Place, Series, Sheet
from exporters.layout import LENS
from exporters.model_book import ModelBook, cell, span
from exporters.pages.lens import stage_name
from exporters.pages.play import readout_words

SHEET = "Trajectory"
PURPOSE = "the residual stream walking across a plane that you choose"
AFTER = "Attribution"
WORDS_ROW, TABLE_ROW = 5, 10
WORK_COL = 1  # columns of the workings: u, v, e1, what is left of v, e2
STEPS = ("u", "v", "e1", "v − (v·e1) e1", "e2")


@dataclass(frozen=True)
class Plane:
    """Two orthonormal directions, and how they came: each [d_model]."""

    u: np.ndarray
    v: np.ndarray
    e1: np.ndarray
    rest: np.ndarray
    e2: np.ndarray


def gram_schmidt(u: np.ndarray, v: np.ndarray) -> Plane:
    """Two directions made orthonormal, the first kept; zero where there is none."""
    e1 = _unit(u)
    rest = v - (v @ e1) * e1
    return Plane(u, v, e1, rest, _unit(rest))


def _unit(x: np.ndarray) -> np.ndarray:
    length = np.sqrt(x @ x)
    return x / length if length > 1e-9 else x * 0


def word_vectors(book: ModelBook) -> tuple[Place, np.ndarray]:
    """The table that the readout scores words with, and its vectors [n_words, d_model]."""
    scored = scoring(book.graph)
    values = book.values[scored.words.name]
    return book.places[scored.words.name], values if scored.by_rows else values.T


def wanted(book: ModelBook) -> bool:
    """In workbooks that show every word at every token."""
    return not book.large


def add(book: ModelBook) -> None:
    """The words, the path, the chart, the shares; the workings below."""
    sheet = book.sheet(SHEET)
    layout.dress(book, sheet)
    n = len(book.views.stages)
    sheet.widths = {0: 22} | dict.fromkeys(range(1, 6), 13) | {6: 19}
    chosen = _words(book, sheet)
    work = TABLE_ROW + max(n, 14) + 5
    _, vectors = word_vectors(book)
    u, v = (vectors[a] - (vectors[b] if b is not None else 0) for a, b in chosen)
    plane = gram_schmidt(u, v)
    book.spots["e1"] = (SHEET, work + 3, WORK_COL + 2)
    book.spots["e2"] = (SHEET, work + 3, WORK_COL + 4)
    _workings(book, sheet, work, plane)
    path = np.array([book.values[f"lens.{k}.x"][0] for k in range(n)])  # [n_stages, d_model]
    _table(book, sheet, path, plane)
    _shares(book, sheet, path, plane, work)
    area = Rect(TABLE_ROW + 1, TABLE_ROW + 1 + n, 1, 2)
    texts = [stage_name(stage.name) for stage in book.views.stages]
    series = [Series("residual stream", area, area._replace(left=2, right=3), texts)]
    title = "The residual stream, stage by stage"
    axes = ("along direction 1", "along direction 2")
    chart = Chart(WORDS_ROW - 1, 7, "scatter", title, series, (620, 420), axes, True, "0.0")
    sheet.charts.append(chart)


def defaults(book: ModelBook) -> list[tuple[int, int | None]]:
    """The words that the plane starts with: the target, and the last word of the prompt."""
    target, rival = int(book.value("target", 0, 0)), int(book.value("rival", 0, 0))
    last = book.passage.ids[book.passage.n_prompt - 1]
    same = book.graph["logits"].axes[1] == "vocab"
    return [(target, None), (last if same and last != target else rival, None)]


def _words(book: ModelBook, sheet: Sheet) -> list[tuple[int, int | None]]:
    """Four cells with words to choose, and their ids."""
    chosen = defaults(book)
    texts, words = readout_words(book), book.labels[book.graph["logits"].axes[1]]
    for col, head in ((1, "word"), (2, "minus"), (3, "id"), (4, "minus id")):
        sheet.put(WORDS_ROW - 1, col, head, "label")
    for k, (plus, _) in enumerate(chosen):
        row = WORDS_ROW + k
        sheet.put(row, 0, f"direction {k + 1}", "row label")
        for col, text, ident in ((1, words[plus], float(plus)), (2, "", -1.0)):
            sheet.put(row, col, text, "token")
            sheet.lists[row, col] = texts
            match = f"MATCH(TRUE(),EXACT({texts},{cell(row, col)}),0)-1"
            sheet.calc(row, col + 2, f"IFERROR({match},-1)", ident, "id", array=True)
    text = "choose words; leave ‘minus’ empty for the word’s own direction"
    sheet.put(WORDS_ROW + 2, 1, text, "note")
    return chosen


def _workings(book: ModelBook, sheet: Sheet, row: int, plane: Plane) -> None:
    """Gram-Schmidt: five columns of d_model numbers."""
    d_model = word_vectors(book)[1].shape[1]
    text = "Gram-Schmidt in cells: e1 = u / |u|; e2 = what is left of v without e1, over its length"
    sheet.put(row, 0, text, "heading")
    top, end = row + 3, row + 3 + d_model
    for k, name in enumerate((*STEPS, "variance of the stages")):
        sheet.put(row + 2, WORK_COL + k, name, "label")

    def column(k: int) -> str:
        return a1(Rect(top, end, WORK_COL + k, WORK_COL + k + 1), "all")

    for d in range(d_model):
        at = top + d
        sheet.put(at, 0, d, "label number")
        words = feature(book, d)
        for k, value in enumerate((plane.u, plane.v)):
            plus, minus = cell(WORDS_ROW + k, 3, True), cell(WORDS_ROW + k, 4, True)
            first = f"IF({plus}<0,0,{words.format(plus)})"
            formula = f"{first}-IF({minus}<0,0,{words.format(minus)})"
            sheet.calc(at, WORK_COL + k, formula, float(value[d]), "step green")
        u, v, e1, rest = (cell(at, WORK_COL + k) for k in range(4))
        unit = _over_length(u, column(0), d_model)
        sheet.calc(at, WORK_COL + 2, unit, float(plane.e1[d]), "step")
        along = dot(column(1), column(2), d_model)
        sheet.calc(at, WORK_COL + 3, f"{v}-{along}*{e1}", float(plane.rest[d]), "step")
        unit = _over_length(rest, column(3), d_model)
        sheet.calc(at, WORK_COL + 4, unit, float(plane.e2[d]), "step")


def dot(a: str, b: str, n: int) -> str:
    """The sum of products of two columns of n cells."""
    return f"SUMPRODUCT({a},{b})" if n > 1 else f"{a}*{b}"


def _over_length(x: str, column: str, n: int) -> str:
    length = f"SQRT({dot(column, column, n)})"
    return f"IF({length}>0.000000001,{x}/{length},0)"


def feature(book: ModelBook, d: int) -> str:
    """A formula for feature d of a word, whose id goes where the braces are."""
    table, vectors = word_vectors(book)
    n_words = len(vectors)
    by_rows = table.block.axes[1] == "d_model"
    rect = table.rect(Rect(0, n_words, d, d + 1) if by_rows else Rect(d, d + 1, 0, n_words))
    words = f"{quoted(table.sheet)}!{span(rect)}"
    down = rect.bottom - rect.top == n_words > 1
    return f"INDEX({words},{{}}+1,1)" if down else f"INDEX({words},1,{{}}+1)"


def basis(book: ModelBook, name: str, d_model: int, sheet: str) -> str:
    """The range of e1 or e2."""
    where, row, col = book.spots[name]
    text = a1(Rect(row, row + d_model, col, col + 1))
    return text if where == sheet else f"{quoted(where)}!{text}"


def _table(book: ModelBook, sheet: Sheet, path: np.ndarray, plane: Plane) -> None:
    """The path's coordinates, and how far each sublayer moved it."""
    d_model = path.shape[1]
    for col, head in enumerate(("after", "along 1", "along 2", "step along 1", "step along 2")):
        sheet.put(TABLE_ROW, col, head, "label" if col else "row label")
    for k, stage in enumerate(book.views.stages):
        row = TABLE_ROW + 1 + k
        sheet.link(row, 0, stage_name(stage.name), book.area(stage.name))
        x = book.area(f"lens.{k}.x")
        for col, name, direction in ((1, "e1", plane.e1), (2, "e2", plane.e2)):
            formula = dot(x, basis(book, name, d_model, SHEET), d_model)
            sheet.calc(row, col, formula, float(path[k] @ direction), "live")
            if k:
                step = float((path[k] - path[k - 1]) @ direction)
                moved = f"{cell(row, col)}-{cell(row - 1, col)}"
                sheet.calc(row, col + 2, moved, step, "change plain")
    n = len(path)
    if n > 1:
        sheet.scales.append((Rect(TABLE_ROW + 2, TABLE_ROW + 1 + n, 3, 5), "diverging"))


def _shares(book: ModelBook, sheet: Sheet, path: np.ndarray, plane: Plane, work: int) -> None:
    """How much of the path's spread the plane holds, and the best that a plane could."""
    n, d_model = path.shape
    row = TABLE_ROW + n + 2
    col = WORK_COL + len(STEPS)
    for d in range(d_model):
        at = work + 3 + d
        first = book.places["lens.0.x"]
        stages = Rect(first.top + d, first.top + d + 1, first.left, first.left + n)
        formula = f"VARP({LENS}!{span(stages)})"
        sheet.calc(at, col, formula, float(path[:, d].var()), "step green")
    spread = a1(Rect(work + 3, work + 3 + d_model, col, col + 1))
    along = [span(Rect(TABLE_ROW + 1, TABLE_ROW + 1 + n, k, k + 1)) for k in (1, 2)]
    held = f"(VARP({along[0]})+VARP({along[1]}))/SUM({spread})"
    formula = f"IF(SUM({spread})>0,{held},0)"
    total = float(path.var(axis=0).sum())
    plane_spread = float((path @ plane.e1).var() + (path @ plane.e2).var())
    sheet.put(row, 0, "spread in the plane", "row label")
    sheet.calc(row, 1, formula, plane_spread / total if total else 0.0, "percent")
    sheet.put(row, 2, "share of the path’s variance that these two directions hold; live", "note")
    sheet.put(row + 1, 0, "best possible", "row label")
    best = np.linalg.svd(path - path.mean(axis=0), compute_uv=False)[:2] ** 2
    value = float(best.sum() / (total * n)) if total else 0.0
    sheet.put(row + 1, 1, value, "constant percent")
    sheet.put(row + 1, 2, "two principal components of the path as built; a constant", "note")
