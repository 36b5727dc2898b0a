"""Why: the score of a head, split by the parts that wrote the query and the key, live.

Five cells name a head, the token that looks, the one that it looks at, and a rival key. With the
divisors of norms held at their values, a score is a sum over pairs of writers: the table. What all
keys share cancels in the difference to the rival, as in softmax. Below it is what each head does
on random words that are said twice: constants, since they are of another text.
"""

from collections.abc import Callable
from dataclasses import astuple

from cellformer.engine import Evaluator, InputError
from cellformer.engine.cells.expression import Area, Expression, Function, Nth, expression
from cellformer.engine.cells.functions import MATCH, MAX, SUM
from cellformer.engine.studies import heads as habits
from cellformer.engine.studies import scores
from cellformer.engine.studies.part_names import said
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import entry, product_sum
from cellformer.exporters.compose.sentences import percent, rounded, sentence
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.asked_score import DIALS, HEAD, SIDES, TOKENS, AskedScore
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.score_parts import beside

SHEET = "Why"
PURPOSE = (
    "why a head looks at a token: the score is split by the parts that wrote the query and the key"
)
AFTER = "Trajectory"
CONCEPT = "why a head looks there"  # on the tour
SUMS, DIFFERENCE = "why.sum", "why.difference"
TOP, SUMMARY = 5, 5  # the row of the cells to type, the column of the sums' labels
TITLES = {
    "key": "The score with the key",
    "rival": "The score with the rival key",
    "difference": "The difference: the score with the key minus the score with the rival key",
}
HABITS = ("head", "previous token", "duplicate token", "induction", "entropy", "distance")
CONSTANTS = (
    "constants, measured with the weights as built, on a text of random words that appear twice"
)


def wanted(book: ModelBook) -> bool:
    """Whether the workbook was built with --why."""
    return "why" in book.plan.studies


def add(book: ModelBook) -> None:
    """Add the cells to type, the sums, three suggested edits, the tables, each head's habits, and
    the workings."""
    page = layout.page(book, SHEET, widths={0: 22} | dict.fromkeys(range(1, 24), 12))
    page.sheet.put(TOP - 1, 0, "Choose a score", "heading")
    asked = AskedScore(book, page, TOP)
    suggested = TOP + len(DIALS) + 3  # rows: of the edits, the tables, the habits, the workings
    tables = suggested + 6
    below = tables + len(TITLES) * (asked.shape[0] + 5)
    asked.follow(below + book.model.spec.n_layers * book.model.spec.n_heads + 5)
    _tables(asked, tables)
    _sums(asked)
    page.cursor = suggested - 1
    page.suggest(*suggestions(asked), at=(0, 2, 4))
    _habits(book, page, below)


# --- the tables and their sums --------------------------------------------------------------


def _tables(asked: AskedScore, row: int) -> None:
    """Add the difference to the rival, and the tables of both keys."""
    page, shape = asked.page, asked.shape
    graph, query, scale = asked.book.graph, asked.parts["query"], asked.scale[0, 0]

    def product(name: str) -> Callable[[int, int], Expression]:
        keys = asked.parts[name]
        return lambda i, j: product_sum(query[:, i], keys[:, j]) * scale

    def difference(i: int, j: int) -> Expression:
        return graph["why.to.key"][i, j] - graph["why.to.rival"][i, j]

    for k, (name, title) in enumerate(TITLES.items()):
        top = row + (k + 1) % 3 * (shape[0] + 5)  # the difference comes first
        page.sheet.put(top, 0, title, "heading")
        page.sheet.put(top + 1, 0, "query from ↓ key from →", "note")
        page.heads_at((top + 1, 1), *asked.of_key, "sum", style="label fitted")
        page.sheet.down(top + 2, 0, (*asked.of_query, "sum"), "row label")
        block = DIFFERENCE if name == "difference" else f"why.to.{name}"
        cells = difference if name == "difference" else product(name)
        area = page.computed_at(block, (top + 2, 1), shape, cells, "change", dress="diverging")
        ends = top + 2 + shape[0], 1 + shape[1]
        across = _along(page, f"{name}_by_query", (top + 2, ends[1]), area, SUM, 1)
        _along(page, f"{name}_by_key", (ends[0], 1), area, SUM, 0)
        page.show(f"{name}_sum", ends, SUM(across), "change")
    top = row + 2
    page.sheet.put(top - 1, shape[1] + 2, "largest", "label")
    page.sheet.put(top + shape[0] + 1, 0, "largest", "row label")
    table = graph[DIFFERENCE].area
    _along(page, "largest_of_query", (top, shape[1] + 2), table, MAX, 1)
    _along(page, "largest_of_key", (top + shape[0] + 1, 1), table, MAX, 0)


def _along(
    page: Composer, name: str, at: tuple[int, int], table: Area, of: Function, axis: int
) -> Area:
    """A function of each row of a table (axis 1), or of each column (axis 0)."""
    rows, cols = table.shape
    if axis:
        return page.show(name, at, lambda i, _: of(table[i, :]), "change", (rows, 1))
    return page.show(name, at, lambda _, j: of(table[:, j]), "change", (1, cols))


def _sums(asked: AskedScore) -> None:
    """Add the sums, beside the scores and the shares of attention that the layer's sheet has."""
    page, book = asked.page, asked.book
    outside = [scores.OUTSIDE[b.op.name] for b in asked.first.after if b.op]
    lines = ["sum of the table", *outside, "whole score", "score in the layer", "attention"]
    page.heads_at((TOP - 1, SUMMARY + 1), "with the key", "with the rival", "difference")
    page.sheet.down(TOP, SUMMARY, lines, "row label")
    n = len(lines) - 2

    def total(k: int, c: int) -> Expression:
        here = book.graph[SUMS]
        if c == 2:
            return here[k, 0] - here[k, 1]
        if k == 0:
            return SUM(book.graph[f"why.to.{SIDES[c + 1]}"].area)
        if k == n - 1:
            return SUM(here[: n - 1, c])
        sides = asked.sides["query"], asked.sides[SIDES[c + 1]]
        return asked.choose(
            [beside(head.after, here[0, c], *sides)[k - 1][1] for head in asked.heads]
        )

    page.computed_at(SUMS, (TOP, SUMMARY + 1), (n, 3), total, "change plain")
    _read(asked, "scores", TOP + n, "change plain")
    _read(asked, "pattern", TOP + n + 1, "live percent")
    page.show("verdict", (TOP + len(DIALS) + 1, 0), verdict(asked), "block")


def _read(asked: AskedScore, leaf: str, row: int, style: str) -> None:
    """Add the scores of both keys on the layer's sheet, and the difference."""
    book, (query, *keys) = asked.book, (asked.used[k, 0] + 1 for k in range(1, 4))
    found = asked.page.table(leaf, (row, SUMMARY + 1), (1, 3))
    blocks = [book.graph[f"{head.name}.{leaf}"] for head in asked.heads]
    for c, key in enumerate(keys):
        found.put(0, c, asked.choose([entry(block.area, query, key) for block in blocks]), style)
    found.put(0, 2, found.area[0, 0] - found.area[0, 1], style)


def verdict(asked: AskedScore) -> Expression:
    """The sentence about the token that the head looks at, and the pair of writers that
    contributes most."""
    shown, sums = asked.book.shown, asked.book.graph[SUMS]
    words = [shown[f"why.word_{side}"].block[0, 0] for side in SIDES]
    shares = shown["why.pattern"].block
    return sentence(
        "With {head}, ‘{query}’ gives ‘{key}’ {share} of its attention, and ‘{rival}’ {other}. "
        "The score of ‘{key}’ is higher by {lead}. Most of this comes from {one} in the query "
        "and {two} in the key.",
        head=asked.choose([expression(said(head.name)) for head in asked.heads]),
        query=words[0],
        key=words[1],
        rival=words[2],
        share=percent(shares[0, 0]),
        other=percent(shares[0, 1]),
        lead=rounded(sums[sums.shape[0] - 1, 2], 3),
        one=pair(asked, "query"),
        two=pair(asked, "key"),
    )


def explained(book: ModelBook) -> Expression:
    """The text of its stop on the tour."""
    return sentence(
        "A head looks where its query fits a key. The model multiplies the query and "
        "the key number by number, and adds the products: this sum is the score. The "
        "key with the highest score gets the most attention. Every part that wrote "
        "into the stream before adds a part to the query and a part to the key. So "
        "the score is the sum of a table. Each row of the table is a part of the "
        "query, and each column is a part of the key. {verdict} Type another token, "
        "or another head.",
        verdict=book.shown["why.verdict"].block[0, 0],
    )


def pair(asked: AskedScore, which: str) -> Expression:
    """The name of the writer with the largest entry of the difference."""
    place, sheet = asked.book.shown[f"why.largest_of_{which}"], asked.page.sheet
    largest, (n_query, n_key) = place.block.area, asked.shape
    down = sheet[place.top : place.top + n_query, 0]
    texts = down if which == "query" else sheet[place.top - n_query - 2, 1 : 1 + n_key]
    return Nth(texts, MATCH(MAX(largest), largest, 0)) if texts.rect.size > 1 else texts


# --- what to try, and what each head does ---------------------------------------------------


def suggestions(asked: AskedScore) -> list[Suggestion]:
    """Three edits: another rival, another key, and another head, layer or query."""
    book, live, begun = asked.book, Evaluator(asked.book.graph), asked.begun()
    last = book.graph[SUMS].shape[0] - 1

    def suggestion(text: str, dial: tuple[str, int], value: int, col: int) -> Suggestion:
        return Suggestion.tried(live, text, (*dial, 0), float(value), (SUMS, last, col), n=value)

    query, key, rival = begun[TOKENS]
    other = [key, *(k for k in range(query + 1) if k not in (key, rival))][-1]
    tried = [
        (
            "Type ‘{n}’ as the rival key. The lead over this rival key is {becomes:.3f}.",
            (TOKENS, 2),
            other,
            2,
        ),
        ("Type ‘{n}’ as the key: the score with this key is {becomes:.3f}.", (TOKENS, 1), rival, 0),
    ]
    layer, head, spec = *begun[HEAD], book.model.spec
    if len(asked.heads) == 1:
        text = "Type ‘{n}’ for the token that looks: the score becomes {becomes:.3f}."
        tried.append((text, (TOKENS, 0), (query + 1) % len(book.passage.ids), 0))
    elif spec.n_heads > 1:
        text = "Type ‘{n}’ as the head: the lead becomes {becomes:.3f}."
        tried.append((text, (HEAD, 1), (head + 1) % spec.n_heads, 2))
    else:
        text = "Type ‘{n}’ as the layer: the lead of its head is {becomes:.3f}."
        tried.append((text, (HEAD, 0), (layer + 1) % spec.n_layers, 2))
    return [suggestion(*one) for one in tried]


def _habits(book: ModelBook, page: Composer, row: int) -> None:
    """Add the habits of each head on random words that come twice: constants."""
    page.sheet.put(row, 0, "Every head, tested on random words that appear twice", "heading")
    try:
        found = habits.habits(book.model)
    except InputError as reason:
        page.sheet.put(row + 1, 0, str(reason), "note")
        return
    page.sheet.put(row + 1, 0, CONSTANTS, "note")
    page.heads_at((row + 2, 0), *HABITS, style="label fitted")
    for k, (name, *numbers) in enumerate(map(astuple, found), row + 3):
        page.sheet.link(k, 0, said(name), book.address(book.graph[f"{name}.pattern"].area))
        page.sheet.across(k, 1, numbers, "constant")
