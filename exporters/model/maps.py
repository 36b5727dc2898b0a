"""The computations of the sheet Words: chosen words, and their places on three maps, all in cells.

The words are typed, and their vectors looked up in the readout's table; with a large vocabulary,
words can only be removed from those that the workbook was built with. Two directions, each the mean
of some words minus the mean of others, span a plane by Gram-Schmidt. Four principal components of
the words as built are constants, and so are two components of their directions (cosine);
coordinates and shares of the variance are live. The mean and some components may be removed before
others are drawn and neighbours are counted: All-but-the-Top (Mu & Viswanath 2018, algorithm 1).

Every table is a block, so an edited word reaches them all. Tables with a row for each word are
beside the list; those with a row for each feature are below, words across.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.expression import Area, Expression, Nth, expression
from cellformer.engine.cells.functions import (
    COUNTIF,
    EXACT,
    IF,
    IFERROR,
    INT,
    ISNUMBER,
    LARGE,
    MATCH,
    MAX,
    MIN,
    ROUND,
    SQRT,
    SUM,
)
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.studies.lens import scoring
from cellformer.engine.studies.planes import principal
from cellformer.engine.text import word_lookup
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import over_length, product_sum
from cellformer.exporters.compose.story import Chosen
from cellformer.exporters.model.model_book import ModelBook

N_COMPONENTS, N_TERMS, N_NEAREST = 4, 3, 6  # N_TERMS: words of each side of a direction
DECIMALS = 9  # of a cosine: programs agree to so many
FINER = 1e12  # one part of so many: words that are as near stand in their order
N_OUT = 2  # components that may be left out
TOP = 5  # the row of the list, and of tables with a row for each word
PANEL = (4, 4)  # the cell of the settings
TABLES, FEATURES = 27, 4  # columns of tables with a row for each word, and for each feature
N_BEFORE = 22  # columns of the features' tables before the words' vectors
MAPS = ("concept", "component", "cosine")
Formula = Callable[[int, int], Expression]


class Maps:
    """The tables for one list of words, in the order in which they read each other."""

    def __init__(self, book: ModelBook, page: Composer, chosen: Chosen, below: int, x: np.ndarray):
        """Tables with a row for each feature begin in row `below`; `x` [n_words, d_model] are the
        words' vectors as built."""
        self.book, self.page, self.chosen, self.features = book, page, chosen, below
        self.n, self.d = x.shape
        self.any_word = "look.words" in book.graph.blocks  # is found; else those as built alone
        self.right, self.below = TABLES, FEATURES  # the next free columns
        self.bases = principal(x, N_COMPONENTS)  # axes [4, d], shares [4]
        self._list()
        self._panel()
        self._vectors()
        self._middle()
        self._plane()
        self._components()
        self._leave_out()
        self._cosines(np.vstack([directions(x, self.bases[0][:n]) for n in range(N_OUT + 1)]))
        self._shares()
        self._neighbours()

    def __getitem__(self, name: str) -> Area:
        """One of the tables."""
        return self.book.graph[f"map.{name}"].area

    # --- what is typed --------------------------------------------------------------------

    def _list(self) -> None:
        """Add the words, and their ids: -1 for a blank or unknown word."""
        texts = self.book.labels[self.book.graph["logits"].axes[1]]
        words = [[texts[v]] for v in self.chosen.ids]
        self._typed("word", (TOP, 1), words, "token")
        if not self.any_word:
            self._typed("built", self._down("as built", 1), words, "basis")

        def ident(k: int, _: int) -> Expression:
            word = self["word"][k, 0]
            if not self.any_word:
                return IF(EXACT(word, self["built"][k, 0]), self.chosen.ids[k], -1)
            return word_lookup.place_of(word, self.book.graph, "look.words")

        self._per_word("id", "id", ident, style="id")

    def _panel(self) -> None:
        """Add the settings: two directions, the word whose neighbours are shown, the components to
        remove."""
        row, col = PANEL
        texts = self.book.labels[self.book.graph["logits"].axes[1]]
        terms = [
            [*_filled([texts[v] for v in plus]), *_filled([texts[v] for v in minus])]
            for plus, minus in self.chosen.directions
        ]
        self._typed("terms", (row + 1, col + 1), terms, "token")
        self._typed("near", (row + 4, col + 1), [[texts[self.chosen.nearest]]], "token")
        given = self._typed("left_out", (row + 6, col + 1), [[0]], "dial")
        self.page.sheet.rules[row + 6, col + 1] = {"validate": "list", "source": ["0", "1", "2"]}
        self._scalar(
            "out", "left out", IF(ISNUMBER(given), MIN(N_OUT, MAX(0, INT(given))), 0), "id"
        )

    # --- vectors --------------------------------------------------------------------------

    def _vectors(self) -> None:
        """Add the words' vectors [d_model, n_words], and the words in the settings [5, n_words]:
        each side of each direction, and the word with neighbours."""
        top, left, ids = self.features, FEATURES, self["id"]
        sides = slice(N_TERMS), slice(N_TERMS, 2 * N_TERMS)
        named = [self["terms"][k, side] for k in range(2) for side in sides]

        def hit(row: int, k: int) -> Expression:
            texts = [*named, self["near"]][row].cells
            same = [EXACT(text, self["word"][k, 0]) for text in texts]
            return IF(ids[k, 0] < 0, 0, reduce(add, same) + 0)

        at = (top, left + N_BEFORE)
        self._computed("hits", (top - 7, left + N_BEFORE), (5, self.n), hit, "id")
        self._computed("vectors", at, (self.d, self.n), self._feature, "step green")

    def _feature(self, d: int, k: int) -> Expression:
        """Feature d of the k-th word: looked up by its id, or, with a large vocabulary, its own
        cell; 0 for a blank word."""
        (words, by_rows), ident = scoring(self.book.graph)[1:3], self["id"][k, 0]
        if self.any_word:
            column = (words[:, d] if by_rows else words[d, :]).fixed
            found: Expression = Nth(column, ident + 1)
        else:
            v = self.chosen.ids[k]
            found = expression(words[v, d] if by_rows else words[d, v])
        return IF(ident < 0, 0, found)

    def _middle(self) -> None:
        """Add lengths, the mean of the words, and their variance."""
        vectors = self["vectors"]
        length = self._per_word("length", "length", lambda k, _: SQRT(_squared(vectors[:, k])))
        count = self._scalar("count", "words", MAX(1, COUNTIF(self["id"], ">=0")))
        mean = self._per_feature("mean", "mean", lambda d, _: SUM(vectors[d, :]) / count)
        self._scalar("spread", "spread", _squared(length) / count - _squared(mean))

    # --- three maps -----------------------------------------------------------------------

    def _plane(self) -> None:
        """Add the two directions made orthonormal, keeping the first; zero for an empty one."""
        hits, vectors = self["hits"], self["vectors"]

        def side(d: int, row: int) -> Expression:
            return product_sum(vectors[d, :], hits[row, :]) / MAX(1, SUM(hits[row, :]))

        u = self._per_feature("u", "u", lambda d, _: side(d, 0) - side(d, 1))
        v = self._per_feature("v", "v", lambda d, _: side(d, 2) - side(d, 3))
        e1 = self._per_feature("e1", "e1", lambda d, _: over_length(u[d, 0], u))
        along = product_sum(v, e1)
        rest = self._per_feature("rest", "rest of v", lambda d, _: v[d, 0] - along * e1[d, 0])
        self._per_feature("e2", "e2", lambda d, _: over_length(rest[d, 0], rest))

    def _components(self) -> None:
        """Add coordinates along the two directions, and along four components from the mean."""
        vectors, ids, ends = self["vectors"], self["id"], (self["e1"], self["e2"])
        self._per_word("concept", "along", lambda k, c: product_sum(vectors[:, k], ends[c]), 2)
        basis = self._basis("component", self.bases[0])
        middle = self._along("component", self["mean"], basis)

        def component(k: int, c: int) -> Expression:
            return IF(ids[k, 0] < 0, 0, product_sum(vectors[:, k], basis[:, c]) - middle[0, c])

        self._per_word("component", "PC", component, N_COMPONENTS)

    def _leave_out(self) -> None:
        """Add the vectors without the mean and the removed components (unchanged if none is
        removed); one over their lengths, 0 for zero vectors; and the mean of their directions."""
        vectors, out, mean, count = (self[name] for name in ("vectors", "out", "mean", "count"))
        basis, component, ids = self["component_basis"], self["component"], self["id"]
        top, left = self.features, FEATURES + N_BEFORE

        def rest(d: int, k: int) -> Expression:
            gone = [(out > c) * component[k, c] * basis[d, c] for c in range(N_OUT)]
            return vectors[d, k] - (out > 0) * (ids[k, 0] >= 0) * reduce(add, gone, mean[d, 0])

        def inverted(_: int, k: int) -> Expression:
            length = SQRT(_squared(kept[:, k]))
            return IF(length > NEAR, 1 / length, 0)

        self.page.sheet.put(top + self.d + 2, left, "without removed directions", "label")
        kept = self._computed("kept", (top + self.d + 3, left), (self.d, self.n), rest)
        inverse = self._computed("inverse", (top - 2, left), (1, self.n), inverted)
        unit_mean = self._per_feature(
            "unit_mean", "unit mean", lambda d, _: product_sum(kept[d, :], inverse) / count
        )
        there = COUNTIF(inverse, ">0") / count
        self._scalar("unit_spread", "unit spread", there - _squared(unit_mean))

    def _cosines(self, axes: np.ndarray) -> None:
        """Add coordinates along two components of the words' directions, from their mean: from
        `axes` [2 for each, d], the components for that many removed ones."""
        bases, out = self._basis("cosine", axes), self["out"]
        kept, inverse = self["kept"], self["inverse"]
        unit = self._computed(
            "cosine_axes",
            (self.features, self._across("drawn", 2)),
            (self.d, 2),
            lambda d, c: Nth(bases[d, :], 2 * out + (c + 1)),
        )
        middle = self._along("cosine", self["unit_mean"], unit)

        def cosine(k: int, c: int) -> Expression:
            along = product_sum(kept[:, k], unit[:, c]) * inverse[0, k]
            return IF(inverse[0, k] > 0, along - middle[0, c], 0)

        self._per_word("cosine", "cosine", cosine, 2)

    def _basis(self, name: str, axes: np.ndarray) -> Area:
        """Add components as built, constants [d_model, n]."""
        return self._typed(
            f"{name}_basis",
            (self.features, self._across(worded("1 to {n}", n=len(axes)), len(axes))),
            axes.T.tolist(),
            "basis",
        )

    def _along(self, name: str, mean: Area, axes: Area) -> Area:
        """Add the coordinate of a mean along each axis, above the axes."""
        at, n = (self.features - 2, self.page.rect(axes).left), axes.shape[1]

        return self._computed(
            f"{name}_middle", at, (1, n), lambda _, c: product_sum(mean, axes[:, c])
        )

    def _shares(self) -> None:
        """Add shares of the variance: of the two directions' plane, each component, the cosine
        plane."""
        count, spread, unit, out = (self[x] for x in ("count", "spread", "unit_spread", "out"))

        def varies(x: Area) -> Expression:
            return (_squared(x) - SUM(x) ** 2 / count) / count

        def of_plane(name: str, whole: Area) -> Expression:
            held = varies(self[name][:, 0]) + varies(self[name][:, 1])
            return IF(whole > 0, held / whole, 0)

        self._scalar("plane_share", "directions", of_plane("concept", spread))
        each = [varies(self["component"][:, c]) for c in range(N_COMPONENTS)]
        shares = [IF(spread > 0, one / spread, 0) for one in each]
        share = self._computed(
            "share",
            self._down("PCs' share", N_COMPONENTS),
            (1, N_COMPONENTS),
            lambda _, c: shares[c],
            "percent",
        )
        self._scalar("shown_share", "two shown", Nth(share, out + 1) + Nth(share, out + 2))
        self._scalar("four_share", "of all four", SUM(share))
        self._scalar("cosine_share", "cosine", of_plane("cosine", unit))

    # --- neighbours -----------------------------------------------------------------------

    def _neighbours(self) -> None:
        """Add the cosine of every word with the named one, after removal; and the nearest words."""
        kept, hits, inverse, ids = (self[name] for name in ("kept", "hits", "inverse", "id"))
        n_named = MAX(1, SUM(hits[4, :]))

        own = self._per_feature(
            "own", "named", lambda d, _: product_sum(kept[d, :], hits[4, :]) / n_named
        )
        length = self._scalar("own_length", "named", SQRT(_squared(own)))

        def cosine(k: int, _: int) -> Expression:
            along = product_sum(kept[:, k], own) * inverse[0, k]
            value = IF(length > NEAR, ROUND(along / length, DECIMALS), 0)
            return IF((ids[k, 0] < 0) + (hits[4, k] > 0) > 0, "", value - k / FINER)

        self._per_word("near_cosine", "cosine", cosine)
        self._ranked()

    def _ranked(self) -> None:
        """Add the nearest words, with their cosines."""
        n, (row, col) = min(N_NEAREST, self.n - 1), PANEL
        cosines, found = self["near_cosine"], SUM(self["hits"][4, :])

        def nearest(_: int, k: int) -> Expression:
            word = Nth(self["word"], MATCH(LARGE(cosines, k + 1), cosines, 0))
            return IF(found > 0, IFERROR(word, ""), "" if k else worded("not on the list"))

        def value(_: int, k: int) -> Expression:
            return IF(found > 0, IFERROR(ROUND(LARGE(cosines, k + 1), DECIMALS), ""), "")

        if n > 0:
            self._computed("near_word", (row + 4, col + 2), (1, n), nearest, "word")
            self._computed("near_value", (row + 5, col + 2), (1, n), value, "step")

    # --- points to draw -------------------------------------------------------------------

    def points(self, flags: np.ndarray) -> None:
        """Add the points of the charts: one for each word on each map (a blank word's point is
        the previous one's), and its label if `flags` [n_words, 3] is 1."""
        ids, out, component = self["id"], self["out"], self["component"]

        def at(k: int, c: int) -> Expression:
            kind, which = MAPS[c // 2], c % 2
            moves = kind == "component"  # along with what is left out
            shown = Nth(component[k, :], out + 1 + which) if moves else self[kind][k, which]
            return IF(ids[k, 0] < 0, self["point"][k - 1, c] if k else expression(0), shown)

        self._per_word("point", "points", at, 6)
        labelled = self._typed(
            "labelled", self._down("1: label, 0: none", 3), flags.astype(float).tolist(), "dial"
        )

        def label(k: int, c: int) -> Expression:
            there = (labelled[k, c] == 1) * (ids[k, 0] >= 0)
            return IF(there > 0, self["word"][k, 0], " ")

        self._per_word("label", "labels", label, 3, "word")

    # --- where tables stand ---------------------------------------------------------------

    def _typed(self, name: str, at: Span, values: Sequence[Any], style: str) -> Area:
        return self.page.typed_at(f"map.{name}", at, values, style)

    def _computed(
        self, name: str, at: Span, shape: Span, formula: Formula, style: str = "step"
    ) -> Area:
        return self.page.computed_at(f"map.{name}", at, shape, formula, style)

    def _per_word(
        self, name: str, head: str, formula: Formula, width: int = 1, style: str = "step"
    ) -> Area:
        return self._computed(name, self._down(head, width), (self.n, width), formula, style)

    def _per_feature(self, name: str, head: str, formula: Formula) -> Area:
        return self._computed(name, (self.features, self._across(head, 1)), (self.d, 1), formula)

    def _scalar(self, name: str, head: str, value: Expression, style: str = "step") -> Area:
        return self._computed(name, self._down(head, 1), (1, 1), lambda *_: value, style)

    def _down(self, head: str, width: int) -> Span:
        """The next free columns for tables with a row for each word."""
        self.page.sheet.put(TOP - 1, self.right, head, "label")
        self.right += width
        return TOP, self.right - width

    def _across(self, head: str, width: int) -> int:
        """The next free columns for tables with a row for each feature."""
        self.page.sheet.put(self.features - 1, self.below, head, "label")
        self.below += width
        return self.below - width


def directions(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Two components [2, d] of the directions of words x [n_words, d], after removing the mean and
    the components `out` [n, d]; without `out`, of the unchanged words."""
    if len(out):
        x = x - x.mean(axis=0)
        x = x - x @ out.T @ out
    lengths = np.sqrt((x * x).sum(axis=1, keepdims=True))
    return principal(np.where(lengths > NEAR, x / np.maximum(lengths, NEAR), 0.0), 2)[0]


def _filled(texts: Sequence[str]) -> list[str]:
    return [*texts, *[""] * N_TERMS][:N_TERMS]


def _squared(x: Area) -> Expression:
    return product_sum(x, x)
