"""The sheet Neighbours: for each of the 84 words the nearest one, and how often it is of the same
group or of the same role.

The cosines read the vectors of the sheet Words, so they follow its list and its left-out components.
"""

from collections.abc import Callable
from itertools import accumulate

import numpy as np

from cellformer.engine.cells.expression import Area, Expression, Nth, expression
from cellformer.engine.cells.functions import (
    COUNT,
    EXACT,
    IF,
    IFERROR,
    LARGE,
    MATCH,
    MAX,
    SUM,
)
from cellformer.engine.cells.language import worded
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import entry, product_sum
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.stories import grammar

SHEET = "Neighbours"
PURPOSE = "the nearest word of each of the 84 words, and what both words have in common"
ABOUT = (
    "Do words of one group stand together? Each group is a kind of meaning. A role is the task "
    "of a word in the grammar of the stories.",
    "Words of one role can replace each other in every story: the grammar does not tell them "
    "apart. ‘cat’ and ‘dog’ are such words, and so are ‘big’ and ‘small’.",
)
N = len(grammar.CONTENT)
GROUPS_ROW, TRIES_ROW, WORDS_ROW = 9, 20, 28
PAIRS_COL, MATRIX_COL = 7, 14
WORD, GROUP, ROLE, PLACE, NEAREST, COSINE, SAME_GROUP, SAME_ROLE = range(8)
PAIRS = (
    ("cat", "dog"), ("cat", "fish"), ("fish", "frog"), ("boy", "girl"), ("mom", "mother"),
    ("mom", "queen"), ("big", "small"), ("happy", "sad"), ("hot", "cold"), ("cold", "blue"),
)  # fmt: skip
NO_ROLE = "–"


def add(book: ModelBook) -> None:
    """Add groups, pairs, three suggested edits, every word's nearest one, all cosines."""
    widths = {0: 15, GROUP: 14, ROLE: 10, PLACE: 8, PAIRS_COL: 10, MATRIX_COL - 1: 12}
    page = layout.page(
        book, SHEET, PURPOSE, *ABOUT, widths=dict.fromkeys(range(MATRIX_COL + N), 9.3) | widths
    )
    cosines = _cosines(book, page)
    _groups(page, cosines, _words(book, page, cosines))
    _pairs(book, page, cosines)
    Composer(book, SHEET, TRIES_ROW - 1).suggest(*_suggestions(), at=(0, 2, 4))


def _cosines(book: ModelBook, page: Composer) -> Area:
    """Add the cosine of each pair of words [84, 84]; blank for a word and itself."""
    g = book.graph
    word, vectors, inverse = (g[f"map.{name}"].area for name in ("word", "kept", "inverse"))

    def cosine(i: int, j: int) -> Expression:
        along = product_sum(vectors[:, i], vectors[:, j])
        return IF(EXACT(word[i, 0], word[j, 0]), "", along * inverse[0, i] * inverse[0, j])

    page.sheet.put(WORDS_ROW - 2, MATRIX_COL, "All cosines", "heading")
    at = (WORDS_ROW - 1, MATRIX_COL)
    page.computed_at("near.across", at, (1, N), lambda _, j: expression(word[j, 0]), "word")
    at = (WORDS_ROW, MATRIX_COL - 1)
    page.computed_at("near.down", at, (N, 1), lambda i, _: expression(word[i, 0]), "word")
    found = page.computed_at(
        "near.cosine", (WORDS_ROW, MATRIX_COL), (N, N), cosine, "step green", dress="scale"
    )
    return found


def _words(book: ModelBook, page: Composer, cosines: Area) -> Area:
    """Add each word's nearest one; returns 1 where both have the same group, and role [84, 2]."""
    word, top = book.graph["map.word"].area, WORDS_ROW
    page.sheet.put(top - 2, 0, "Each word, and the word with the largest cosine", "heading")
    heads = ("word", "group", "role", "row", "nearest", "cosine", "same group", "same role")
    page.heads_at((top - 1, 0), *heads, style="label")
    kind = page.typed_at(
        "near.kind",
        (top, GROUP),
        [[grammar.GROUP[x], grammar.ROLE.get(x, NO_ROLE)] for x in grammar.CONTENT],
        "symbol typed",
    )

    def column(name: str, col: int, formula: Callable[[int], Expression], style: str) -> Area:
        return page.computed_at(name, (top, col), (N, 1), lambda k, _: formula(k), style)

    column("near.word", WORD, lambda k: expression(word[k, 0]), "word")
    place = column(
        "near.place",
        PLACE,
        lambda k: IFERROR(MATCH(LARGE(cosines[k, :], 1), cosines[k, :], 0), 1),
        "id",
    )
    column("near.nearest", NEAREST, lambda k: Nth(word, place[k, 0]), "word")
    column("near.value", COSINE, lambda k: IFERROR(LARGE(cosines[k, :], 1), 0), "step")

    def same(k: int, c: int) -> Expression:
        alike = EXACT(Nth(kind[:, c].fixed, place[k, 0]), kind[k, c]) + 0
        return IF(EXACT(kind[k, c], NO_ROLE), "", alike) if c else alike

    return page.computed_at("near.same", (top, SAME_GROUP), (N, 2), same, "symbol")


def _groups(page: Composer, cosines: Area, same: Area) -> None:
    """Add each group's share of words whose nearest word is of the group, and mean cosines."""
    row, sizes = GROUPS_ROW, [len(words) for words in grammar.GROUPS.values()]
    ends = [*accumulate(sizes)]
    page.sheet.put(row - 2, 0, "How often is the nearest word of the same kind?", "heading")
    heads = ("", "words", "same kind", "by chance", "cos inside", "to others")
    page.heads_at((row - 1, 0), *heads, style="label")
    rows = [*grammar.GROUPS, "all groups", "same role"]
    page.sheet.down(row, 0, rows, "row label")
    page.sheet.down(row, 1, [*sizes, N, len(grammar.ROLE)], "id")
    kinds = [slice(end - n, end) for n, end in zip(sizes, ends, strict=True)]

    def share(k: int, _: int) -> Expression:
        asked = same[:, k - len(kinds)] if k >= len(kinds) else same[kinds[k], 0]
        return SUM(asked) / COUNT(asked)

    page.computed_at("near.share", (row, 2), (len(rows), 1), share, "percent")
    chances = [(n - 1) / (N - 1) for n in sizes]
    whole = sum(n * x for n, x in zip(sizes, chances, strict=True)) / N
    roles = [len(words) for words in grammar.ROLES.values()]
    role = sum(n * (n - 1) for n in roles) / (N - 1) / sum(roles)
    page.sheet.down(row, 3, [*chances, whole, role], "constant percent")

    def mean(k: int, c: int) -> Expression:
        inside, every = cosines[kinds[k], kinds[k]], cosines[kinds[k], :]
        if not c:
            return SUM(inside) / MAX(1, COUNT(inside))
        return (SUM(every) - SUM(inside)) / MAX(1, COUNT(every) - COUNT(inside))

    page.computed_at("near.mean", (row, 4), (len(kinds), 2), mean, "step")


def _pairs(book: ModelBook, page: Composer, cosines: Area) -> None:
    """Add pairs of words to type over: their cosine, and what they have in common."""
    row, col = GROUPS_ROW, PAIRS_COL
    words, kind = book.graph["near.word"].area.fixed, book.graph["near.kind"].area
    page.sheet.put(row - 2, col, "Two words that you choose", "heading")
    page.heads_at((row - 1, col), "word", "word", "cosine", "in common", style="label")
    pairs = page.typed_at("near.pair", (row, col), [[*pair] for pair in PAIRS], "token")
    for i, j in np.ndindex(*pairs.shape):
        page.sheet.lists[row + i, col + j] = page.sheet[WORDS_ROW : WORDS_ROW + N, WORD].fixed
    page.heads_at((row - 1, col + 4), "row", "row", style="label")

    def common(i: int, _: int) -> Expression:
        role, group = (alike(i, kind[:, c].fixed) for c in (1, 0))
        plays = IF(EXACT(Nth(kind[:, 1].fixed, MAX(1, places[i, 0])), NO_ROLE), 0, 1)
        less = IF(group, worded("group"), worded("nothing"))
        return IF(known(i), IF(role * plays > 0, worded("role"), less), worded("unknown word"))

    def alike(i: int, kinds: Area) -> Expression:
        return EXACT(Nth(kinds, MAX(1, places[i, 0])), Nth(kinds, MAX(1, places[i, 1])))

    def known(i: int) -> Expression:
        return places[i, 0] * places[i, 1] > 0

    places = page.computed_at(
        "near.pair_place",
        (row, col + 4),
        pairs.shape,
        lambda i, j: IFERROR(MATCH(pairs[i, j], words, 0), 0),
        "id",
    )
    shape = (len(PAIRS), 1)
    page.computed_at(
        "near.pair_cosine",
        (row, col + 2),
        shape,
        lambda i, _: IF(known(i), entry(cosines.fixed, places[i, 0], places[i, 1]), ""),
        "step",
    )
    page.computed_at("near.common", (row, col + 3), shape, common, "word")


def _suggestions() -> list[Suggestion]:
    """Three edits: another pair, a pair of one role, components left out."""
    return [
        Suggestion(
            (
                "Type ‘moon’ instead of ‘dog’: the cosine with ‘cat’ falls from {now:.2f} to "
                "{then:.2f}. ‘moon’ and ‘cat’ share neither group nor role."
            ),
            ("near.pair", 0, 1), "moon", ("near.pair_cosine", 0, 0),
        ),
        Suggestion(
            (
                "Type ‘bad’ instead of ‘happy’: the cosine with ‘sad’ rises from {now:.2f} to "
                "{then:.2f}. Bad heroes cry, too."
            ),
            ("near.pair", 7, 0), "bad", ("near.pair_cosine", 7, 0),
        ),
        Suggestion(
            "On the sheet Words, type ‘2’ as the number of components left out: {then:.0%} of the nearest words are of the same group, not {now:.0%}.",
            ("map.left_out", 0, 0), 2, ("near.share", len(grammar.GROUPS), 0),
        ),
    ]  # fmt: skip
