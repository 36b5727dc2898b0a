"""The sheet Probes of semantic-tiny: can an axis of the table be read from the words' vectors?

A probe is a linear function: a coefficient for each principal component of the vectors, fitted by
least squares to the table's values of an axis. Fitted to all forty words and tested on the same
forty it looks good whatever the vectors are, if it may use many components; holding out each word
in turn shows whether there is anything to read. With orthonormal components both are sums: the
explained share is that of the squared coefficients, and a held-out word's error is its error in the
fit over 1 minus its leverage (Allen's PRESS, 1974).

The components themselves are of all forty words, including the one held out: they are found without
the table, but not without the word. The result of finding them again without each word stands
below, as constants.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import COUNTIF, IF, ISNUMBER, SUM, SUMPRODUCT
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import between
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.semantic_tiny import semantics

SHEET = "Probes"
PURPOSE = "do word vectors contain the axes? Probes test this on fitted words and on held-out words"
N_WORDS, N_AXES, N_PARTS = (
    len(semantics.CONTENT),
    len(semantics.AXES),
    semantics.spec().d_model,
)
ASKED_ROW, TABLE_ROW, CHART_ROW, ANEW_ROW, TRIES_ROW, WORK_ROW = 7, 9, 9, 27, 38, 46
BUILT = 10  # components that a probe may use, as built
PASSES = 0.8  # the essay's bar
SIZE, CHART_COLS = (316, 360), (9, 14)
WAYS = ("for fitted words", "for held-out words")
ABOUT = (
    "A probe fits a straight line through the vectors, for example from female to "
    "male. R² is 1 if the line predicts the axis exactly. R² is 0 if the line is no "
    "better than a guess.",
    "A probe with many numbers can fit its own words even if the axis is not there. Only a "
    "correct answer for a word outside the fit shows a real axis.",
)
SETS = (
    "untrained: random vectors before any training",
    "‘wide’ and ‘narrow’ are the two models of the sheet Two models",
    "held out: the probe is fitted to 39 words and tested on the remaining word.",
    "The components still use all 40 words. In the table below, they leave the tested word out.",
    "live: the results follow the table on Study and the setting above. The vectors are as built",
)


def add(book: ModelBook) -> None:
    """Add the setting, the explained shares, two charts, three suggested edits; the computations
    below."""
    page = layout.page(
        book, SHEET, PURPOSE, *ABOUT, widths={0: 11} | dict.fromkeys(range(1, N_PARTS + 20), 8.5)
    )
    _dial(book, page)
    _axes(book, page)
    probed = _probed(book)
    for n, (name, vectors) in enumerate(probed.items()):
        _probe(book, page, name, vectors, n)
    _results(book, page, list(probed))
    _anew(page, probed)
    _charts(page, list(probed))
    Composer(book, SHEET, TRIES_ROW - 1).suggest(*_suggestions(), at=(13, 15, 0))


def _probed(book: ModelBook) -> dict[str, np.ndarray]:
    """The vectors to probe [n_words, d] by name: untrained ones, vectors of the model with wide
    initial vectors, and vectors of this model."""
    rng = np.random.default_rng(semantics.SEEDS[0])
    untrained = semantics.decoder().initial(semantics.recipe(1.0), rng)["W_E"][semantics.ROWS]
    return {"untrained": untrained} | {
        name: np.array(book.values[f"models.{name}"], dtype=np.float64)
        for name in ("wide", "narrow")
    }


def _dial(book: ModelBook, page: Composer) -> None:
    """Add the setting: how many components a probe may use."""
    page.typed_at(
        "probes.components",
        (ASKED_ROW, 1),
        [[BUILT]],
        "dial",
        rule=between(1, N_PARTS, f"Type a whole number from 1 to {N_PARTS}.", whole=True),
        label="components",
    )
    text = (
        f"number of principal components that a probe may use (1 to {N_PARTS}), starting with "
        "the largest variance"
    )
    page.sheet.put(ASKED_ROW, 2, text, "note")
    given = book.graph["probes.components"][0, 0]
    used = IF(ISNUMBER(given), given, BUILT)

    page.computed_at(
        "probes.on",
        (WORK_ROW + 3, 1),
        (1, N_PARTS),
        lambda _, k: IF(used > k, 1, 0),
        "id",
        label="1: used",
    )


def _axes(book: ModelBook, page: Composer) -> None:
    """Add the table's values of each axis: their mean and variance."""
    table = book.graph["study.table"]
    page.sheet.put(WORK_ROW - 1, 0, "axis", "block")
    page.heads_at((WORK_ROW - 1, 1), *semantics.AXES, style="label")
    mean = page.computed_at("probes.mean", (WORK_ROW, 1), (1, N_AXES), lambda _, a: SUM(table[:, a]) / N_WORDS, "step", label="mean")  # fmt: skip

    page.computed_at(
        "probes.spread",
        (WORK_ROW + 1, 1),
        (1, N_AXES),
        lambda _, a: SUMPRODUCT(table[:, a], table[:, a]) - N_WORDS * mean[0, a] ** 2,
        "step",
        label="spread",
    )


def _probe(book: ModelBook, page: Composer, name: str, vectors: np.ndarray, n: int) -> None:
    """Add one set's components, coefficients of the six probes, leverages, held-out errors."""
    table, mean, on = (book.graph[x] for x in ("study.table", "probes.mean", "probes.on"))
    top, right = WORK_ROW + 5 + n * (N_WORDS + N_AXES + 5), 2 + N_PARTS
    page.sheet.put(top, 0, f"{name}: coefficients", "block")
    page.sheet.down(top + 1, 0, semantics.AXES, "row label")
    first = top + 2 + N_AXES
    text = "constants: coordinates of the words along each component, scaled to length 1"
    page.sheet.put(first - 1, 1, text, "note")
    page.heads_at((first - 1, right), *("leverage", *semantics.AXES), style="label")
    page.sheet.put(first - 2, right + 1, "error for a held-out word", "block")
    centred = vectors - vectors.mean(axis=0)
    unit = np.linalg.svd(centred, full_matrices=False)[0]  # [n_words, N_PARTS]
    unit = unit * np.sign(unit[np.abs(unit).argmax(axis=0), range(N_PARTS)])
    page.sheet.down(first, 0, semantics.CONTENT, "row label")
    name = f"probes.{name}"
    parts = page.typed_at(f"{name}.unit", (first, 1), unit.tolist(), "basis")

    shape = (N_AXES, N_PARTS)
    slopes = page.computed_at(
        f"{name}.slope",
        (top + 1, 1),
        shape,
        lambda a, k: on[0, k] * SUMPRODUCT(parts[:, k], table[:, a]),
        "step",
    )

    pulls = page.computed_at(
        f"{name}.leverage",
        (first, right),
        (N_WORDS, 1),
        lambda i, _: 1 / N_WORDS + SUMPRODUCT(parts[i, :], parts[i, :], on.area.fixed),
        "step",
    )

    def error(i: int, a: int) -> Expression:
        left = table[i, a] - mean[0, a] - SUMPRODUCT(parts[i, :], slopes[a, :])
        return left / (1 - pulls[i, 0])

    shape = (N_WORDS, N_AXES)
    page.computed_at(f"{name}.error", (first, right + 1), shape, error, "step")


def _results(book: ModelBook, page: Composer, probed: Sequence[str]) -> None:
    """Add the explained share of each axis, for the words fitted to and for words held out; and how
    many of the six pass."""
    spread = book.graph["probes.spread"]
    for way, text in enumerate(WAYS):
        first = 1 + way * len(probed)
        page.sheet.put(TABLE_ROW, first, text, "block")
        page.heads_at((TABLE_ROW + 1, first), *probed, style="label")
    page.sheet.down(TABLE_ROW + 2, 0, semantics.AXES, "row label")

    def explained(a: int, col: int) -> Expression:
        name = f"probes.{probed[col % len(probed)]}"
        if col < len(probed):
            slopes = book.graph[f"{name}.slope"][a, :]
            share = SUMPRODUCT(slopes, slopes) / spread[0, a]
        else:
            errors = book.graph[f"{name}.error"][:, a]
            share = 1 - SUMPRODUCT(errors, errors) / spread[0, a]
        return IF(spread[0, a] > 0, share, 0)

    shape, at = (N_AXES, 2 * len(probed)), (TABLE_ROW + 2, 1)
    found = page.computed_at("probes.explained", at, shape, explained, "live")

    row = TABLE_ROW + 2 + N_AXES
    page.computed_at(
        "probes.passed",
        (row, 1),
        (1, shape[1]),
        lambda _, col: COUNTIF(found[:, col], f">{PASSES}"),
        "count",
        label=f"above {PASSES}",
    )
    page.sheet.down(row + 2, 1, SETS, "note")
    page.dress(page.sheet[at[0] : row, 1 : 1 + shape[1]], "scale")


def _anew(page: Composer, probed: Mapping[str, np.ndarray]) -> None:
    """Add the results if components, too, are found without the held-out word: constants."""
    text = (
        f"constants: R² for held-out words, with {BUILT} components computed without the "
        "held-out word"
    )
    page.sheet.put(ANEW_ROW, 1, text, "block")
    page.heads_at((ANEW_ROW + 1, 1), *probed, style="label")
    for col, vectors in enumerate(probed.values(), 1):
        page.sheet.down(ANEW_ROW + 2, col, held_out_anew(vectors, BUILT).tolist(), "constant")
    page.sheet.down(ANEW_ROW + 2, 0, semantics.AXES, "row label")


def held_out_anew(vectors: np.ndarray, n_parts: int) -> np.ndarray:
    """R² of each axis [n_axes] if a word is left out of everything: of the principal components of
    `vectors` [n_words, d] and of the fit along the first of them."""
    wanted = semantics.TABLE
    errors = np.empty_like(wanted)
    for i in range(len(vectors)):
        rest = np.delete(vectors, i, axis=0)
        known = np.delete(wanted, i, axis=0)
        middle, mean = rest.mean(axis=0), known.mean(axis=0)
        parts = np.linalg.svd(rest - middle, full_matrices=False)[2][:n_parts]  # [n_parts, d]
        slopes = np.linalg.lstsq((rest - middle) @ parts.T, known - mean, rcond=None)[0]
        errors[i] = wanted[i] - mean - (vectors[i] - middle) @ parts.T @ slopes
    spread = ((wanted - wanted.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(1 - (errors**2).sum(axis=0) / spread)


def _charts(page: Composer, probed: Sequence[str]) -> None:
    """Add the two halves of the table as charts, side by side."""
    rows = slice(TABLE_ROW + 2, TABLE_ROW + 2 + N_AXES)
    for way, text in enumerate(WAYS):
        series = [
            Series(name, page.sheet[rows, 0], page.sheet[rows, 1 + way * len(probed) + n])
            for n, name in enumerate(probed)
        ]
        page.sheet.charts.append(
            Chart(CHART_ROW, CHART_COLS[way], "column", f"R², {text}", series, SIZE, number="0.0")
        )


def _suggestions() -> list[Suggestion]:
    """Three edits: all components, one component, another value in the table."""
    components, last = ("probes.components", 0, 0), len(semantics.AXES) - 1
    return [
        Suggestion(
            "Type ‘32’: with all words in the fit, untrained vectors explain {then:.0%} of "
            "gender, not {now:.0%}. For held-out words, they explain nothing. So this R² "
            "misleads.",
            components, N_PARTS, ("probes.explained", 0, 0),
        ),
        Suggestion(
            "Type ‘2’, the number of components in a map: in the narrow model, two components "
            "explain mobility (R² {then:.2f}), but not gender ({gender.then:.2f}).",
            components, 2, ("probes.explained", last, 5), others={"gender": ("probes.explained", 0, 5)},
        ),
        Suggestion(
            "On the sheet Study, type ‘-1’ as the mobility of ‘horse’. No sentence says this, so "
            "the probe is wrong about ‘horse’. R² of mobility falls from {now:.2f} to {then:.2f}.",
            ("study.table", semantics.CONTENT.index("horse"), last), -1, ("probes.explained", last, 5),
        ),
    ]  # fmt: skip
