"""The sheet Exchanged: a second model, whose stories have 34 words in exchanged roles.

Its vectors are typed constants, as trained; cosines, nearest words and counts are live.
"""

from collections.abc import Callable

from cellformer.engine.cells.expression import Area, Expression, Nth, expression
from cellformer.engine.cells.functions import EXACT, IF, IFERROR, LARGE, MATCH, SQRT, SUM
from cellformer.engine.cells.language import AsIs
from cellformer.engine.models import checkpoint
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import entry, product_sum
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.stories import grammar, learning, neighbours

SHEET = "Exchanged"
PURPOSE = "meaning or grammar: a second model, whose stories have 34 words in other roles"
ABOUT = (
    "‘dog’ stands near other animals. Because of its meaning, or because of its role in the "
    "stories? In the first model’s stories, meaning and role agree.",
    "A second model read stories in which 34 words had exchanged their roles: ‘dog’ takes the "
    "role of ‘moon’. If meaning decides, ‘dog’ is still near animals.",
    "The result was certain before the training. A model reads numbers for words, so it cannot "
    "know that number 4 means ‘dog’. It only sees where number 4 stands.",
)
STORY = "the sad girl and the cat walk to the river . but she and the cat cry with a bird ."
N, MOVED = neighbours.N, grammar.MOVED
IDS = [grammar.CONTENT.index(word) for word in MOVED]
COUNTS_ROW, STORY_ROW, TRIES_ROW, WORDS_ROW = 10, 17, 20, 28
NEAREST, SAME, ASKED_COL, MATRIX_COL = 4, 6, 7, 14
KINDS_COL = MATRIX_COL + N + 2  # words, meanings, roles, and one over their lengths
VECTORS_COL = KINDS_COL + 5
N_NEAREST = 5


def add(book: ModelBook) -> None:
    """Add the counts, a word to choose, a story in both forms, three suggested edits, the words."""
    widths = dict.fromkeys(range(VECTORS_COL + learning.SIZES["d_model"]), 9.3)
    widths |= {0: 24, ASKED_COL - 1: 13} | dict.fromkeys(range(1, ASKED_COL - 1), 11)
    widths |= dict.fromkeys(range(KINDS_COL, VECTORS_COL), 14)
    page = layout.page(book, SHEET, PURPOSE, *ABOUT, widths=widths)
    _vectors(page)
    _counts(book, page, _words(book, page))
    _asked(book, page)
    page.sheet.put(STORY_ROW - 1, 0, (
        "A story of the first model, and the same story for the second model"
    ), "heading")  # fmt: skip
    told = " ".join(grammar.PLAYER.get(word, word) for word in STORY.split())
    page.sheet.down(STORY_ROW, 0, (AsIs(STORY), AsIs(told)), "equation")
    Composer(book, SHEET, TRIES_ROW - 1).suggest(*_suggestions(), at=(0, 1, 3))


def _vectors(page: Composer) -> None:
    """Add the second model's vectors [84, 64], and one over their lengths [84, 1]."""
    own = checkpoint.load(learning.FOLDER / learning.CONTROL).weights["W_E"][grammar.ROWS]
    top, left, words = WORDS_ROW, VECTORS_COL, grammar.CONTENT
    page.sheet.put(top - 2, KINDS_COL, "The second model’s vectors, as trained", "heading")
    page.heads_at(
        (top - 1, KINDS_COL), "word", "used as", "meaning", "role", "1 / length", style="label"
    )
    roles = [(word, grammar.PLAYED.get(word, word)) for word in words]
    page.typed_at(
        "exchanged.kind",
        (top, KINDS_COL),
        [[word, role, grammar.GROUP[word], grammar.GROUP[role]] for word, role in roles],
        "symbol typed",
    )
    vectors = page.typed_at("exchanged.vectors", (top, left), own.tolist(), "weight blue")

    def inverse(k: int, _: int) -> Expression:
        squared = product_sum(vectors[k, :], vectors[k, :])
        return IF(squared > 0, 1 / SQRT(squared), 0)

    page.computed_at("exchanged.inverse", (top, left - 1), (N, 1), inverse, "step")


def _words(book: ModelBook, page: Composer) -> Area:
    """Add the 34 words with their meaning, role and nearest word; returns 1 where the nearest word
    has the same meaning, and where it has the same role [34, 2]."""
    top, n, vectors = WORDS_ROW, len(MOVED), book.graph["exchanged.vectors"].area
    inverse = book.graph["exchanged.inverse"].area
    page.sheet.put(
        top - 2, 0, "The 34 words, and their nearest words in the second model", "heading"
    )
    heads = ("word", "used as", "meaning", "role", "nearest", "cosine", "meaning?", "role?", "row")
    page.heads_at((top - 1, 0), *heads, style="label")
    roles = [(word, grammar.PLAYED[word]) for word in MOVED]
    own = page.typed_at(
        "exchanged.word",
        (top, 0),
        [[word, role, grammar.GROUP[word], grammar.GROUP[role]] for word, role in roles],
        "symbol typed",
    )

    def cosine(i: int, j: int) -> Expression:
        along = product_sum(vectors[IDS[i], :], vectors[j, :])
        return expression("") if IDS[i] == j else along * inverse[IDS[i], 0] * inverse[j, 0]

    page.sheet.put(top - 2, MATRIX_COL, "Cosines in the second model", "heading")
    page.sheet.across(top - 1, MATRIX_COL, map(AsIs, grammar.CONTENT), "word")
    page.sheet.down(top, MATRIX_COL - 1, map(AsIs, MOVED), "row label")
    cosines = page.computed_at(
        "exchanged.cosine", (top, MATRIX_COL), (n, N), cosine, "step", dress="scale"
    )

    kind = book.graph["exchanged.kind"].area
    words = kind[:, 0].fixed
    places = page.computed_at(
        "exchanged.place",
        (top, SAME + 2),
        (n, 1),
        lambda k, _: MATCH(LARGE(cosines[k, :], 1), cosines[k, :], 0),
        "id",
    )
    page.computed_at("exchanged.nearest", (top, NEAREST), (n, 1), lambda k, _: Nth(words, places[k, 0]), "word")  # fmt: skip
    page.computed_at("exchanged.value", (top, NEAREST + 1), (n, 1), lambda k, _: LARGE(cosines[k, :], 1), "step")  # fmt: skip
    return page.computed_at(
        "exchanged.same",
        (top, SAME),
        (n, 2),
        lambda k, c: EXACT(Nth(kind[:, 2 + c].fixed, places[k, 0]), own[k, 2 + c]) + 0,
        "symbol",
    )


def _counts(book: ModelBook, page: Composer, same: Area) -> None:
    """Add, for both models, the share of the 34 words whose nearest word has the same meaning, and
    the same role."""
    row, of_first = COUNTS_ROW, book.graph["near.same"].area
    page.heads_at((WORDS_ROW - 1, SAME + 3), "first model?", style="label")
    first = page.computed_at(
        "exchanged.first",
        (WORDS_ROW, SAME + 3),
        (len(MOVED), 1),
        lambda k, _: expression(of_first[IDS[k], 0]),
        "symbol",
    )
    page.sheet.put(row - 2, 0, "Does the nearest word of the 34 words have the same ...", "heading")
    page.heads_at((row - 1, 1), "meaning", "role", style="label")
    page.sheet.down(row, 0, ("first model", "second model", "by chance"), "row label")

    page.computed_at(
        "exchanged.share",
        (row, 1),
        (2, 2),
        lambda k, c: SUM(same[:, c] if k else first) / len(MOVED),
        "percent",
    )
    sizes = [len(grammar.GROUPS[grammar.GROUP[word]]) for word in MOVED]
    chance = (sum(sizes) / len(MOVED) - 1) / (N - 1)
    page.sheet.across(row + 2, 1, (chance, chance), "constant percent")


def _asked(book: ModelBook, page: Composer) -> None:
    """Add a word to choose, and its nearest words in both models."""
    row, col, kind = COUNTS_ROW, ASKED_COL, book.graph["exchanged.kind"].area
    page.sheet.put(row - 2, col - 1, "A word that you choose, and its nearest words", "heading")
    page.heads_at(
        (row - 1, col), "first model", "cosine", "second", "used as", "cosine", style="label"
    )
    asked = page.typed_at("exchanged.asked", (row, col - 1), [["dog"]], "token")
    page.sheet.lists[row, col - 1] = page.sheet[WORDS_ROW : WORDS_ROW + N, KINDS_COL].fixed
    place = page.computed_at(
        "exchanged.asked_place",
        (row + 1, col - 1),
        (1, 1),
        lambda *_: IFERROR(MATCH(asked, kind[:, 0], 0), 1),
        "id",
        label="row",
    )
    cosines = _asked_cosines(book, page, place)

    def ranked(names: Area, column: Area) -> Callable[[int, int], Expression]:
        return lambda k, _: Nth(names.fixed, MATCH(LARGE(column, k + 1), column, 0))

    first, second = (cosines[:, c].fixed for c in range(2))
    columns: dict[str, tuple[Callable[[int, int], Expression], str]] = {
        "first": (ranked(kind[:, 0], first), "word"),
        "first_cosine": (lambda k, _: LARGE(first, k + 1), "step"),
        "second": (ranked(kind[:, 0], second), "word"),
        "second_role": (ranked(kind[:, 1], second), "row label"),
        "second_cosine": (lambda k, _: LARGE(second, k + 1), "step"),
    }
    for c, (name, (formula, style)) in enumerate(columns.items(), col):
        page.computed_at(f"exchanged.{name}_near", (row, c), (N_NEAREST, 1), formula, style)


def _asked_cosines(book: ModelBook, page: Composer, place: Area) -> Area:
    """Add the cosines of the chosen word with all others, in both models [84, 2]."""
    vectors, inverse = (book.graph[f"exchanged.{x}"].area for x in ("vectors", "inverse"))
    first, d = book.graph["near.cosine"].area, vectors.shape[1]
    own = page.computed_at(
        "exchanged.own",
        (WORDS_ROW + N + 2, VECTORS_COL),
        (1, d),
        lambda _, k: Nth(vectors[:, k].fixed, place.fixed),
        "step",
    )

    def cosine(k: int, c: int) -> Expression:
        if not c:
            return entry(first.fixed, place.fixed, k + 1)
        along = product_sum(vectors[k, :], own.fixed) * inverse[k, 0]
        return IF(place.fixed == k + 1, "", along * Nth(inverse.fixed, place.fixed))

    return page.computed_at(
        "exchanged.asked_cosine", (WORDS_ROW, VECTORS_COL + d + 1), (N, 2), cosine, "step"
    )


def _suggestions() -> list[Suggestion]:
    """Three words to choose."""
    return [
        Suggestion(
            (
                "Type ‘fish’: in the second model, the nearest word is ‘{then}’. There, "
                "‘{then}’ has the role of ‘{role.then}’, and ‘fish’ has the role of ‘eat’."
            ),
            ("exchanged.asked", 0, 0), "fish", ("exchanged.second_near", 0, 0),
            others={"role": ("exchanged.second_role_near", 0, 0)},
        ),
        Suggestion(
            "Type ‘happy’: the nearest word is ‘{first.then}’ in the first model, and ‘{then}’ in the second.",
            ("exchanged.asked", 0, 0), "happy", ("exchanged.second_near", 0, 0),
            others={"first": ("exchanged.first_near", 0, 0)},
        ),
        Suggestion(
            "Type ‘they’, which keeps its role: the nearest word is ‘{first.then}’ in the first model, and ‘{then}’ in the second.",
            ("exchanged.asked", 0, 0), "they", ("exchanged.second_near", 0, 0),
            others={"first": ("exchanged.first_near", 0, 0)},
        ),
    ]  # fmt: skip
