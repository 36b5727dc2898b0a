"""The arithmetic of the sheet Words: chosen words, and where each lies on three maps, all in cells.

The words are typed, and their vectors looked up in the readout's table; of a vocabulary of many
words those that the workbook was built with can be taken off, and no others typed. Two directions,
each the mean of some words minus the mean of others, make a plane by Gram-Schmidt. Four principal
components of the words as built are constants, and so are two of the words' directions alone
(cosine); every coordinate and every share of the spread is live. Components may be left out,
together with the mean, before others are drawn and neighbours are counted: All-but-the-Top (Mu &
Viswanath 2018, algorithm 1).

Every table is a block, so an edit of a word reaches them all. The words' own tables run down beside
the list; what has a number for each feature stands below, words across.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from engine.cells.access import Span
from engine.cells.block import Block
from engine.cells.expression import Area, Expression, Nth, expression
from engine.cells.functions import (
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
from engine.models import finding
from engine.studies.lens import scoring
from engine.studies.planes import principal
from exporters import beside
from exporters.book import Sheet
from exporters.lookups import product_sum
from exporters.model_book import ModelBook
from exporters.story import Chosen

N_COMPONENTS, N_TERMS, N_NEAREST = 4, 3, 6  # N_TERMS: words of each side of a direction
DECIMALS = 9  # of a cosine: words that are as near stand in their order, whoever computes it
NONE = 1e-9  # a direction that is shorter is none
N_BEFORE = 16  # columns of the features' tables before the words' vectors
MAPS = ("concept", "component", "cosine")
Formula = Callable[[int, int], Expression]


@dataclass(frozen=True)
class Spots:
    """Where tables stand: their first cells on the sheet."""

    words: tuple[int, int]  # the list
    panel: tuple[int, int]  # directions, a word with its neighbours, components left out
    tables: tuple[int, int]  # a row for each word
    features: tuple[int, int]  # a row for each feature, with a column of their numbers before it


class Maps:
    """The tables of one list of words, made in the order in which they read each other."""

    def __init__(self, book: ModelBook, sheet: Sheet, chosen: Chosen, spots: Spots, x: np.ndarray):
        """`x` [n_words, d_model] are the words' vectors as built."""
        self.book, self.sheet, self.spots, self.chosen = book, sheet, spots, chosen
        self.n, self.d = x.shape
        self.right, self.below = spots.tables[1], spots.features[1]  # the next free columns
        lengths = np.sqrt((x * x).sum(axis=1, keepdims=True))
        self.bases = principal(x, N_COMPONENTS)  # axes [4, d], shares [4]
        self.cosine_bases = principal(x / np.maximum(lengths, 1e-300), 2)
        self._list()
        self._panel()
        self._vectors()
        self._middle()
        self._plane()
        self._coordinates()
        self._shares()
        self._neighbours()

    def __getitem__(self, name: str) -> Block:
        """One of the tables."""
        return self.book.graph[f"map.{name}"]

    # --- what is typed --------------------------------------------------------------------

    def _list(self) -> None:
        """The words, and their ids: -1 where there is none."""
        texts = self.book.labels[self.book.graph["logits"].axes[1]]
        words = [[texts[v]] for v in self.chosen.ids]
        self._typed("word", self.spots.words, words, "token")
        if self.book.large:
            self._typed("built", self._down("as built", 1), words, "basis")

        def ident(k: int, _: int) -> Expression:
            word = self["word"][k, 0]
            if self.book.large:
                return IF(EXACT(word, self["built"][k, 0]), self.chosen.ids[k], -1)
            return finding.place_of(word, self.book.graph, "look.words")

        self._computed("id", self._down("id", 1), (self.n, 1), ident, "id")

    def _panel(self) -> None:
        """Two directions, the word whose neighbours are shown, the components left out."""
        row, col = self.spots.panel
        texts = self.book.labels[self.book.graph["logits"].axes[1]]
        terms = [
            [*_filled([texts[v] for v in plus]), *_filled([texts[v] for v in minus])]
            for plus, minus in self.chosen.directions
        ]
        self._typed("terms", (row + 1, col + 1), terms, "token")
        self._typed("near", (row + 4, col + 1), [[texts[self.chosen.nearest]]], "token")
        self._typed("left_out", (row + 6, col + 1), [[0]], "dial")
        self.sheet.rules[row + 6, col + 1] = {"validate": "list", "source": ["0", "1", "2"]}
        given = self["left_out"][0, 0]
        inside = IF(ISNUMBER(given), MIN(2, MAX(0, INT(given))), 0)
        self._computed("out", self._down("left out", 1), (1, 1), lambda *_: inside, "id")

    # --- vectors --------------------------------------------------------------------------

    def _vectors(self) -> None:
        """The words' vectors [d_model, n_words]; which words the panel names [5, n_words]: those of
        each side of each direction, and the one with neighbours."""
        top, left = self.spots.features[0], self.spots.features[1] + N_BEFORE

        def hit(row: int, k: int) -> Expression:
            first, n = row * N_TERMS % (2 * N_TERMS), N_TERMS
            texts = [self["terms"][row // 2, first + t] for t in range(n)] if row < 4 else []
            same = [EXACT(text, self["word"][k, 0]) for text in texts or [self["near"][0, 0]]]
            return IF(self["id"][k, 0] < 0, 0, reduce(add, same) + 0)

        def entry(d: int, k: int) -> Expression:
            ident = self["id"][k, 0]
            return IF(ident < 0, 0, self._feature(d, k))

        self._computed("hits", (top - 7, left), (5, self.n), hit, "id")
        self._computed("vectors", (top, left), (self.d, self.n), entry, "step green")

    def _feature(self, d: int, k: int) -> Expression:
        """Feature d of the k-th word: looked up by its id, or of many words its own cell."""
        words, by_rows = scoring(self.book.graph)[1:3]
        if self.book.large:
            v = self.chosen.ids[k]
            return expression(words[v, d] if by_rows else words[d, v])
        column = (words[:, d] if by_rows else words[d, :]).fixed
        return Nth(column, self["id"][k, 0] + 1)

    def _middle(self) -> None:
        """Lengths, the mean of the words and of their directions, and how far they spread."""
        vectors, top = self["vectors"], self.spots.features[0]
        self._per_word("length", "length", lambda k, _: SQRT(_squared(vectors[:, k])))
        length = self["length"]

        def inverted(_: int, k: int) -> Expression:
            return IF(length[k, 0] > 0, 1 / length[k, 0], 0)

        at = (top - 2, self.spots.features[1] + N_BEFORE)
        self._computed("inverse", at, (1, self.n), inverted)
        self._scalar("count", "words", MAX(1, COUNTIF(self["id"].area, ">=0")))
        count = self["count"][0, 0]
        self._per_feature("mean", "mean", lambda d, _: SUM(vectors[d, :]) / count)
        inverse = self["inverse"][0, :]
        self._per_feature(
            "unit_mean", "unit mean", lambda d, _: product_sum(vectors[d, :], inverse) / count
        )
        mean, unit = self["mean"].area, self["unit_mean"].area
        self._scalar("spread", "spread", _squared(length.area) / count - _squared(mean))
        there = COUNTIF(length.area, ">0") / count
        self._scalar("unit_spread", "unit spread", there - _squared(unit))

    # --- three maps -----------------------------------------------------------------------

    def _plane(self) -> None:
        """The two directions made orthonormal, the first kept; zero where there is none."""
        hits, vectors = self["hits"], self["vectors"]

        def side(d: int, row: int) -> Expression:
            return product_sum(vectors[d, :], hits[row, :]) / MAX(1, SUM(hits[row, :]))

        self._per_feature("u", "u", lambda d, _: side(d, 0) - side(d, 1))
        self._per_feature("v", "v", lambda d, _: side(d, 2) - side(d, 3))
        u, v = self["u"], self["v"]
        self._per_feature("e1", "e1", lambda d, _: _over(u[d, 0], u.area))
        e1 = self["e1"]
        along = product_sum(v.area, e1.area)
        self._per_feature("rest", "rest of v", lambda d, _: v[d, 0] - along * e1[d, 0])
        rest = self["rest"]
        self._per_feature("e2", "e2", lambda d, _: _over(rest[d, 0], rest.area))

    def _coordinates(self) -> None:
        """Along the two directions; along four components, from the mean; along two of the words'
        directions alone, from theirs."""
        vectors, ids, length = self["vectors"], self["id"], self["length"]
        ends = (self["e1"].area, self["e2"].area)
        self._per_word("concept", "along", lambda k, c: product_sum(vectors[:, k], ends[c]), 2)
        basis, middle = self._basis("component", self.bases[0], self["mean"])
        unit, unit_middle = self._basis("cosine", self.cosine_bases[0], self["unit_mean"])

        def component(k: int, c: int) -> Expression:
            along = product_sum(vectors[:, k], basis[:, c])
            return IF(ids[k, 0] < 0, 0, along - middle[0, c])

        def cosine(k: int, c: int) -> Expression:
            along = product_sum(vectors[:, k], unit[:, c])
            return IF(length[k, 0] > 0, along / length[k, 0] - unit_middle[0, c], 0)

        self._per_word("component", "PC", component, N_COMPONENTS)
        self._per_word("cosine", "cosine", cosine, 2)

    def _basis(self, name: str, axes: np.ndarray, mean: Block) -> tuple[Block, Block]:
        """Components as built, constants [d_model, n]; and how far the mean lies along each."""
        n, top = len(axes), self.spots.features[0]
        col = self._across(f"1 to {n}", n)
        self._typed(f"{name}_basis", (top, col), axes.T.tolist(), "basis")
        basis = self[f"{name}_basis"]

        def along(_: int, c: int) -> Expression:
            return product_sum(mean.area, basis[:, c])

        self._computed(f"{name}_middle", (top - 2, col), (1, n), along)
        return basis, self[f"{name}_middle"]

    def _shares(self) -> None:
        """Of the spread: what the two directions' plane holds, each component, the cosine plane."""
        count, spread = self["count"][0, 0], self["spread"][0, 0]
        concept, unit = self["concept"], self["unit_spread"][0, 0]

        def varies(x: Area) -> Expression:
            return (_squared(x) - SUM(x) ** 2 / count) / count

        held = varies(concept[:, 0]) + varies(concept[:, 1])
        self._scalar("plane_share", "directions", IF(spread > 0, held / spread, 0))
        each = [varies(self["component"][:, c]) for c in range(N_COMPONENTS)]
        shares = [IF(spread > 0, one / spread, 0) for one in each]
        at = self._down("PCs' share", N_COMPONENTS)
        self._computed("share", at, (1, N_COMPONENTS), lambda _, c: shares[c], "percent")
        out = self["out"][0, 0]
        shown = [Nth(self["share"][0, :], out + k) for k in (1, 2)]
        self._scalar("shown_share", "two shown", shown[0] + shown[1])
        self._scalar("four_share", "of all four", SUM(self["share"].area))
        held = varies(self["cosine"][:, 0]) + varies(self["cosine"][:, 1])
        self._scalar("cosine_share", "cosine", IF(unit > 0, held / unit, 0))

    # --- neighbours -----------------------------------------------------------------------

    def _neighbours(self) -> None:
        """The cosine of every word with the one that was named, the mean and the components that
        are left out taken off both; and the nearest."""
        vectors, hits, mean, out = (self[x] for x in ("vectors", "hits", "mean", "out"))
        named = MAX(1, SUM(hits[4, :]))
        self._per_feature(
            "own", "named", lambda d, _: product_sum(vectors[d, :], hits[4, :]) / named
        )
        own, some, component = self["own"].area, out[0, 0] > 0, self["component"]
        self._scalar("middle", "mean · mean", _squared(mean.area))
        middle = self["middle"][0, 0]
        at = self._down("named: ·", 4)
        basis, of = self["component_basis"], self["component_middle"]
        facts = [_squared(own), product_sum(own, mean.area)]
        facts += [product_sum(own, basis[:, c]) - of[0, c] for c in range(2)]
        self._computed("facts", at, (1, 4), lambda _, c: facts[c])
        fact = [self["facts"][0, c] for c in range(4)]
        self._per_word("mean_along", "· mean", lambda k, _: product_sum(vectors[:, k], mean.area))
        self._per_word("dot", "· named", lambda k, _: product_sum(vectors[:, k], own))
        along, dot, length = self["mean_along"], self["dot"], self["length"]

        def left(x: Any, a: Any, b: Any, pairs: Iterable[tuple[Any, Any]]) -> Expression:
            gone = [(out[0, 0] > c) * p * q for c, (p, q) in enumerate(pairs)]
            return expression(x - some * (a + b - middle) - gone[0] - gone[1])

        def cosine(k: int, _: int) -> Expression:
            pcs = [component[k, c] for c in range(2)]
            product = left(dot[k, 0], along[k, 0], fact[1], zip(pcs, fact[2:], strict=True))
            mine = left(length[k, 0] ** 2, along[k, 0], along[k, 0], [(p, p) for p in pcs])
            its = left(fact[0], fact[1], fact[1], [(p, p) for p in fact[2:]])
            sizes = mine * its
            value = IF(sizes > 0, ROUND(product / SQRT(sizes), DECIMALS), 0)
            return IF((self["id"][k, 0] < 0) + (hits[4, k] > 0) > 0, "", value)

        self._per_word("near_cosine", "with named", cosine)
        self._ranked()

    def _ranked(self) -> None:
        """The nearest words, with their cosines."""
        n, (row, col) = min(N_NEAREST, self.n - 1), self.spots.panel
        cosines, found = self["near_cosine"].area, SUM(self["hits"][4, :])

        def nearest(_: int, k: int) -> Expression:
            word = Nth(self["word"].area, MATCH(LARGE(cosines, k + 1), cosines, 0))
            return IF(found > 0, IFERROR(word, ""), "" if k else "not on the list")

        def value(_: int, k: int) -> Expression:
            return IF(found > 0, IFERROR(LARGE(cosines, k + 1), ""), "")

        if n > 0:
            self._computed("near_word", (row + 4, col + 2), (1, n), nearest, "word")
            self._computed("near_value", (row + 5, col + 2), (1, n), value, "step")

    # --- points to draw -------------------------------------------------------------------

    def points(self, flags: np.ndarray) -> None:
        """What the charts draw: a point for each word on each map, that of a blank one on the one
        before it; and its label, where `flags` [n_words, 3] are 1."""
        ids, out, component = self["id"], self["out"][0, 0], self["component"]

        def at(k: int, c: int) -> Expression:
            before = self["point"][k - 1, c] if k else expression(0)
            kind, which = MAPS[c // 2], c % 2
            if kind == "component":
                shown: Expression = Nth(component[k, :], out + 1 + which)
            else:
                shown = expression(self[kind][k, which])
            return IF(ids[k, 0] < 0, before, shown)

        self._per_word("point", "points", at, 6)
        self._typed(
            "labelled", self._down("labels: 1 or 0", 3), flags.astype(float).tolist(), "dial"
        )

        def label(k: int, c: int) -> Expression:
            there = (self["labelled"][k, c] == 1) * (ids[k, 0] >= 0)
            return IF(there > 0, self["word"][k, 0], " ")

        self._per_word("label", "labels", label, 3, "word")

    # --- where tables stand ---------------------------------------------------------------

    def _typed(self, name: str, at: tuple[int, int], values: Sequence[Any], style: str) -> None:
        beside.typed(self.book, self.sheet, f"map.{name}", at, values, style)

    def _computed(
        self, name: str, at: tuple[int, int], shape: Span, formula: Formula, style: str = "step"
    ) -> None:
        beside.computed(self.book, self.sheet, f"map.{name}", at, shape, formula, style)

    def _per_word(
        self, name: str, head: str, formula: Formula, width: int = 1, style: str = "step"
    ) -> None:
        self._computed(name, self._down(head, width), (self.n, width), formula, style)

    def _per_feature(self, name: str, head: str, formula: Formula) -> None:
        at = (self.spots.features[0], self._across(head, 1))
        self._computed(name, at, (self.d, 1), formula)

    def _scalar(self, name: str, head: str, value: Expression) -> None:
        self._computed(name, self._down(head, 1), (1, 1), lambda *_: value)

    def _down(self, head: str, width: int) -> tuple[int, int]:
        """The next free columns of the tables with a row for each word."""
        row, col = self.spots.tables[0], self.right
        self.sheet.put(row - 1, col, head, "label")
        self.right += width
        return row, col

    def _across(self, head: str, width: int) -> int:
        """The next free columns of the tables with a row for each feature."""
        col = self.below
        self.sheet.put(self.spots.features[0] - 1, col, head, "label")
        self.below += width
        return col


def _filled(texts: Sequence[str]) -> list[str]:
    return [*texts, *[""] * N_TERMS][:N_TERMS]


def _squared(x: Area) -> Expression:
    return product_sum(x, x)


def _over(x: Area, vector: Area) -> Expression:
    """An entry of a vector over its length; 0 where it has none."""
    length = SQRT(_squared(vector))
    return IF(length > NONE, x / length, 0)
