"""Words: maps of chosen words by their vectors in the readout, and what each map leaves out.

Concept directions: the user chooses the axes. Principal components: the axes of greatest variance
of the words as built, with live projections. Cosine: the same for directions alone. t-SNE:
neighbourhoods without a projection; its positions are constants, four pictures of the same words
for two seeds and two perplexities.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.language import worded
from cellformer.engine.studies.lens import scoring
from cellformer.engine.studies.tsne import tsne
from cellformer.exporters.compose import label_placement, theme
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Chosen
from cellformer.exporters.model import layout
from cellformer.exporters.model.maps import MAPS, PANEL, TABLES, TOP, Maps
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import trajectory

SHEET = "Words"
PURPOSE = (
    "maps of chosen words, with their neighbours and directions, and the information that each "
    "map loses"
)
AFTER = "Trajectory"
FEW = 64  # words that are all shown
SOME = 40  # of many words, those that are shown unless others are chosen
TSNE = 80  # a column
CHART_ROWS, CHART_COLS, SIZE = (13, 30, 47, 64, 81), (4, 11), (450, 300)
TRIES = CHART_ROWS[-1]
RUNS = ((0, 5.0), (1, 5.0), (0, 15.0), (1, 15.0))  # of t-SNE: seed, perplexity
METHODS = (  # a column each: what it is asked, who brings the axes, what it keeps and destroys
    ("", "source of the axes", "linear projection?", "arithmetic?", "keeps", "destroys", "asks"),
    (
        "directions you choose", "you", "yes", "yes, as intended",
        "the contrasts you chose", "everything outside the plane", "where are words on these axes?",
    ),
    (
        "principal components", "the data", "yes", "along its axes",
        "the largest spread", "what spreads little", "where do words spread most?",
    ),
    (
        "All-but-the-Top", "the data", "yes", "along its axes",
        "the less visible spread", "the mean, the first PCs", "and without the largest PCs?",
    ),
    (
        "t-SNE", "none (no axes)", "no", "no",
        "close neighbours", "distances, sizes, density", "what lies together?",
    ),
)  # fmt: skip
CAUTION = (
    "t-SNE only keeps neighbours together. Distances between groups, and sizes of groups, mean "
    "nothing.",
    "The four pictures below show the same words. Their differences say nothing about the words.",
    "The positions are constants. For other words, build the workbook again.",
)
TAKEN_OFF = "number of components to remove besides the mean: 0, 1 or 2 (All-but-the-Top)"
LABELS = (  # of the cells to type in: rows down and columns right of the panel, a text, its style
    (1, 0, "direction 1", "row label"),
    (2, 0, "direction 2", "row label"),
    (4, 0, "nearest to", "row label"),
    (6, 0, "left out", "row label"),
    (0, 1, "mean of", "label"),
    (0, 4, "minus mean of", "label"),
    (0, 8, "one word per cell, or empty", "note"),
    (5, 1, "cosine", "row label"),
    (6, 2, TAKEN_OFF, "note"),
)
ANY_WORD = "replace any word of the list, or delete a word"
BUILT_WITH = "delete a word from the list to remove it"
ON_A_LINE = (
    "these words lie on one line, so the second component is only rounding noise, drawn as 0"
)
LONG_SPREAD = (
    "a large variance may mean little: a few long or rare vectors can dominate the first components"
)


def wanted(book: ModelBook) -> bool:
    """Whether the words do not all lie on one line, or a person chose words."""
    return book.chosen is not None or trajectory.spans_a_plane(book)


def add(book: ModelBook) -> None:
    """Add the list, the settings, the maps, the table of methods; the computations to the right and
    below."""
    page = layout.page(
        book, SHEET, widths={0: 14, 1: 13, 2: 3, 3: 2} | dict.fromkeys(range(4, TSNE), 9.3)
    )
    chosen = book.chosen or by_default(book)
    x = vectors_of(book, chosen.ids)
    end = max(TOP + len(x), TRIES) + 4
    below = end + 8
    page.sheet.print_area = Rect(0, end, 0, TABLES)
    maps = Maps(book, page, chosen, below, x)
    page.sheet.down(below, 1, range(x.shape[1]), "label number")
    _list(page, chosen)
    _panel(page, maps)
    as_built = (book.values[maps[name].grid.name][:, :2] for name in MAPS)  # [n_words, 2] each
    words = [texts(book)[v] for v in chosen.ids]
    sides = [label_placement.sides(points.astype(np.float64), words, SIZE) for points in as_built]
    maps.points(np.array([[side != "" for side in line] for line in sides]).T)
    _live_charts(page, maps, chosen, sides)
    _methods(page)
    if len(x) > 3:
        _neighbours(book, page, x, chosen)
    if chosen.suggestions:
        page.cursor = TRIES - 1
        page.suggest(*chosen.suggestions, at=(11, 14, 0))


def texts(book: ModelBook) -> Sequence[str]:
    """Every word that has a logit."""
    return book.labels[book.graph["logits"].axes[1]]


def by_default(book: ModelBook) -> Chosen:
    """The default words: a small vocabulary, or the sentence's and the most likely words;
    Trajectory's plane."""
    n, last = len(texts(book)), book.passage.n_prompt - 1
    same = book.graph["logits"].axes[1] == "vocab"
    given = list(dict.fromkeys(book.passage.ids[: last + 1])) if same else []
    others = [v for v in ranked(book.values["logits"][last]) if v not in given]
    others = sorted(others) if n <= FEW else others[: max(SOME - len(given), 8)]
    target, second = trajectory.defaults(book)
    groups = {"in the sentence": given[:SOME], "other words": others}
    directions: list[tuple[list[int], list[int]]] = [([target], []), ([second], [])]
    return Chosen({k: v for k, v in groups.items() if v}, directions, target)


def of_groups(groups: Mapping[str, Sequence[int]]) -> Chosen:
    """Chosen words from a list, by group; the first four make the directions."""
    a, b, c, d, *_ = (v for ids in groups.values() for v in ids)
    return Chosen(groups, [([a], [b]), ([c], [d])], a)


def vectors_of(book: ModelBook, ids: Sequence[int]) -> np.ndarray:
    """The vectors that the readout scores words with, as built: [n_words, d_model]."""
    scored = scoring(book.graph)
    values = book.values[scored.words.name]
    rows = [values[v, :] if scored.by_rows else values[:, v] for v in ids]
    return np.array(rows, dtype=np.float64).reshape(len(ids), -1)


def word_vector(book: ModelBook, v: int) -> Area:
    """One word's vector: a column of the readout's table."""
    scored = scoring(book.graph)
    return scored.words[v, :] if scored.by_rows else scored.words[:, v]


def _list(page: Composer, chosen: Chosen) -> None:
    """Add each group's name and colour beside its words."""
    page.heads_at((TOP - 1, 0), "group", "word", style="label")
    row = TOP
    for g, (name, ids) in enumerate(chosen.groups.items()):
        style = f"group {g % len(theme.GROUPS)}"
        page.sheet.put(row, 0, name, style)
        page.sheet.down(row, 2, ["●"] * len(ids), style)
        row += len(ids)


def _panel(page: Composer, maps: Maps) -> None:
    """Add labels for the cells to type in, and the shares above the maps."""
    row, col = PANEL
    list_of = (4, 9, ANY_WORD if maps.any_word else BUILT_WITH, "note")
    for down, right, text, style in (*LABELS, list_of):
        page.sheet.put(row + down, col + right, text, style)
    first, second = CHART_COLS
    for at, left, name, text in (
        (CHART_ROWS[0] - 1, first, "plane_share", "share of the words’ spread in this plane"),
        (CHART_ROWS[0] - 1, second, "shown_share", "share of spread along these two,"),
        (CHART_ROWS[0] - 1, second + 4, "four_share", "along four"),
        (CHART_ROWS[1] - 1, first, "cosine_share", "share of the spread that this map shows"),
    ):
        page.show(name, (at, left), maps[name][0, 0], "percent")
        page.sheet.put(at, left + 1, text, "note")
    if not maps.bases[1][1]:
        page.sheet.put(CHART_ROWS[0] + 15, second, ON_A_LINE, "note")


def _live_charts(
    page: Composer, maps: Maps, chosen: Chosen, sides: Sequence[Sequence[str]]
) -> None:
    """Add a chart for each live map: each word is a series, whose name is a cell and its label."""
    kinds = (
        ("Two directions that you choose", ("direction 1", "direction 2"), 0, 0),
        ("Principal components: where these words spread most", ("PC", "next PC"), 0, 1),
        ("Cosine: principal components of directions, without lengths", ("PC 1", "PC 2"), 1, 0),
    )
    colours = colours_of(chosen)
    for m, (title, axes, row, col) in enumerate(kinds):
        series = [
            Series(
                maps["label"][k, m], maps["point"][k, 2 * m], maps["point"][k, 2 * m + 1],
                colour=colours[k], bears=sides[m][k] or "right",
            )
            for k in range(maps.n)
        ]  # fmt: skip
        at = (CHART_ROWS[row], CHART_COLS[col])
        page.sheet.charts.append(Chart(*at, "scatter", title, series, SIZE, axes, number="General"))


def colours_of(chosen: Chosen) -> list[str]:
    """Each word's colour: its group's."""
    sizes = [len(ids) for ids in chosen.groups.values()]
    return [theme.GROUPS[g % len(theme.GROUPS)] for g, n in enumerate(sizes) for _ in range(n)]


def _methods(page: Composer) -> None:
    """Add the properties that each kind of map keeps and loses."""
    row, col = CHART_ROWS[1], CHART_COLS[1]
    page.sheet.put(row, col, "What each map keeps, and what each map loses", "heading")
    for c, column in enumerate(METHODS):
        for k, text in enumerate(column):
            page.sheet.put(row + 2 + k, col + 3 * c - (c > 0), text, "text" if c and k else "block")
    page.sheet.down(row + 3 + len(METHODS[0]), col, (LONG_SPREAD, *CAUTION), "note")


def _neighbours(book: ModelBook, page: Composer, vectors: np.ndarray, chosen: Chosen) -> None:
    """Add four pictures by t-SNE, constants: two seeds across, two perplexities down."""
    words, colours = [texts(book)[v] for v in chosen.ids], colours_of(chosen)
    drawn = [
        (
            worded("t-SNE {seed}, {perplexity:g}", seed=seed, perplexity=perplexity),
            worded(
                "t-SNE, seed {seed}, perplexity {perplexity:g}: neighbours only",
                seed=seed,
                perplexity=perplexity,
            ),
            points.round(3),  # a picture shows no more digits
        )
        for (seed, perplexity), points in zip(RUNS, tsne(vectors, RUNS), strict=True)
    ]
    named = TSNE + 2 * len(drawn)  # the words' own cells: in a chart wow!A1 would be a reference
    page.sheet.put(TOP - 1, named, "drawn", "label")
    page.sheet.down(TOP, named, words, "word")
    for n, (label, title, points) in enumerate(drawn):  # points: [n_words, 2]
        col = TSNE + 2 * n
        page.sheet.put(TOP - 1, col, label, "label")
        page.sheet.lines(TOP, points.tolist(), {col: "basis", col + 1: "basis"})
        series = []
        for k, side in enumerate(label_placement.sides(points, words, SIZE)):
            x, y = (page.sheet[TOP + k, c] for c in (col, col + 1))
            name = page.sheet[TOP + k, named] if side else " "
            series.append(Series(name, x, y, colour=colours[k], bears=side or "right"))
        at = (CHART_ROWS[2 + n // 2], CHART_COLS[n % 2])
        page.sheet.charts.append(Chart(*at, "scatter", title, series, SIZE, number="0"))
