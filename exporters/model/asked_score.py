"""The score that a person asks for on Why: cells that name a head and three tokens, and the parts
of the query and of two keys.

The parts of every head are there, so that the head is a cell, too; if that would take too many
formulas, those of one head.
"""

import re
from collections.abc import Callable, Sequence

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import IFERROR, INT, MAX, MIN
from cellformer.engine.cells.language import worded
from cellformer.engine.studies import scores
from cellformer.engine.studies.lens import operands
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import between
from cellformer.exporters.compose.lookups import entry, one_of
from cellformer.exporters.model import layout
from cellformer.exporters.model.attention_heads import keys_seen
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.score_parts import Side
from cellformer.exporters.model.words import plain

HEAD, TOKENS, USED, SCALE = "why.head", "why.tokens", "why.used", "why.scale"
SIDES = ("query", "key", "rival")
DIALS = (
    ("layer", "Layer of the head, counted from 0."),
    ("head", "Number of the head in the layer, counted from 0."),
    ("query at", "Position of the query’s token, from 0."),
    ("key at", "Position of the key’s token, from 0."),
    ("rival key", "Position of the rival key’s token, to compare."),
)
ONE_HEAD = (
    "The sheet shows only this head. The parts of all {n} heads would need {m:,} formulas. "
    "Choose another head with --head."
)
OWN = "own "  # what begins the label of a bias of the head's own layer


def chosen(book: ModelBook) -> tuple[list[scores.Head], scores.Head]:
    """The heads among which the sheet chooses, and its first head: the requested one, or the one
    that leads most. If the parts of all are too many, it is the only one. Raises InputError for
    a model with layers without heads."""
    found = [scores.Head(book.graph, name) for name in scores.heads(book.graph)]
    if len(found) < book.model.spec.n_layers * book.model.spec.n_heads:
        raise InputError(
            "--why needs attention scores of queries and keys in every layer, and some layers of "
            "this model have none; use ‘cellformer why’ instead"
        )
    asked = book.plan.studies["why"]
    if asked:
        name = scores.head_of(book.graph, asked)
        first = next(head for head in found if head.name == name)
    else:
        first = max(found, key=lambda head: lead(head, book.passage.n_prompt - 1))
    return (found if size(found) <= book.plan.limits.parts else [first]), first


def size(heads: Sequence[scores.Head]) -> int:
    """About how many formulas the parts of these heads take, at three tokens."""
    n = 0
    for head in heads:
        q, k = (operands(head.product)[name] for name in "qk")
        n += sum(len(scores.path(head.graph, x).writers) * x.shape[1] for x in (q, k, k))
        if head.name.endswith(".h0"):  # what the heads of a layer share
            stream = head.graph[f"blocks.{head.product.layer}.resid_pre"]
            n += 3 * 2 * len(scores.path(head.graph, stream).writers) * stream.shape[1]
    return n


def lead(head: scores.Head, query: int) -> float:
    """By how much the score of a query with the key that it looks at leads the next one."""
    order = ranked(head, query)
    if len(order) < 2:
        return 0.0
    one, two = (head.graph.values[f"{head.name}.scores"][query, key] for key in order[:2])
    return float(one - two)


def ranked(head: scores.Head, query: int) -> list[int]:
    """The keys that a query sees, those with the most attention first."""
    seen = [k for k in range(head.product.shape[1]) if head.product.has(query, k)]
    return sorted(seen, key=lambda k: -head.pattern[query, k])


class AskedScore:
    """The cells that name a score, from a cell of the page on, and the results computed from
    them."""

    def __init__(self, book: ModelBook, page: Composer, top: int) -> None:
        self.book, self.page, self.top = book, page, top
        self.heads, self.first = chosen(book)
        self.of_query, self.of_key = (self._labels(which) for which in "qk")
        self._dials()
        self.used = self._counted()  # the head's place in the list, from 1; positions from 0

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the table of a score: parts that wrote the query by parts that wrote the
        key."""
        return len(self.of_query), len(self.of_key)

    def begun(self) -> dict[str, list[int]]:
        """The numbers that the cells begin with."""
        last = self.book.passage.n_prompt - 1
        key, rival = (ranked(self.first, last) * 2)[:2]
        return {
            HEAD: [int(n) for n in re.findall(r"\d+", self.first.name)],
            TOKENS: [last, key, rival],
        }

    # --- the cells to type ---------------------------------------------------------------

    def _dials(self) -> None:
        """Put the five cells; the cells of the head only if there is a choice."""
        sheet, row = self.page.sheet, self.top
        spec, last = self.book.model.spec, len(self.book.passage.ids) - 1
        most = (spec.n_layers - 1, spec.n_heads - 1, last, last, last)
        for k, (label, note) in enumerate(DIALS):
            sheet.put(row + k, 0, label, "row label")
            sheet.notes[row + k, 1] = worded(note)
            sheet.rules[row + k, 1] = between(
                0,
                most[k],
                worded("Type a whole number from 0 to {most}.", most=most[k]),
                whole=True,
            )
        begun = self.begun()
        if len(self.heads) > 1:
            self.page.typed_at(HEAD, (row, 1), [[n] for n in begun[HEAD]], "dial")
        else:
            sheet.down(row, 1, begun[HEAD], "built")
        heads = [scores.Head(self.book.graph, name) for name in scores.heads(self.book.graph)]
        if len(heads) > len(self.heads):
            sheet.put(row + len(DIALS), 0, worded(ONE_HEAD, n=len(heads), m=size(heads)), "note")
        self.page.typed_at(TOKENS, (row + 2, 1), [[n] for n in begun[TOKENS]], "dial")

    def _counted(self) -> Area:
        """The values that the typed numbers count as, with the words at the positions: [4, 1]."""
        row, texts = self.top + 1, layout.token_texts(self.book)
        self.page.sheet.notes[row, 3] = worded("Number of this head among all heads, from 1.")
        area = self.page.computed_at(
            USED, (row, 3), (4, 1), self._counts_as, "id", head="counts as"
        )
        for k, side in enumerate(SIDES, 1):
            self.page.show(f"word_{side}", (row + k, 2), entry(texts, 1, area[k, 0] + 1), "word")
        return area

    def _counts_as(self, k: int, _: int) -> Expression:
        graph, spec = self.book.graph, self.book.model.spec
        if k == 0:
            if len(self.heads) == 1:
                return expression(1)
            layer, head = graph[HEAD][0, 0], graph[HEAD][1, 0]
            n = _within(layer, 0, spec.n_layers - 1) * spec.n_heads
            return IFERROR(n + _within(head, 0, spec.n_heads - 1) + 1, 1)  # no text chooses
        typed = graph[TOKENS][k - 1, 0]
        if k == 1:
            return _within(typed, 0, len(self.book.passage.ids) - 1)
        return _within(typed, *self._seen(graph[USED][1, 0], graph[USED][0, 0]))

    def _seen(self, query: Expression, head: Expression) -> tuple[Expression, Expression]:
        """The first and the last key that a query sees."""
        masks, n = [head.product.mask for head in self.heads], len(self.book.passage.ids)
        if not masks[0].causal:
            return expression(0), expression(n - 1)
        if not any(mask.window or mask.sentence for mask in masks):
            return expression(0), query
        each = [keys_seen(mask, query, n) for mask in masks]
        return MAX(0, query + 1 - _nth(each, head)), query

    # --- heads ---------------------------------------------------------------------------

    def choose(self, each: Sequence[Expression]) -> Expression:
        """The expression of the chosen head, given one for each head."""
        return _nth(each, self.used[0, 0])

    def _labels(self, which: str) -> list[str]:
        """The writers of all heads' queries or keys; the writers of a head's own layer come
        last."""
        found = dict.fromkeys(
            label(head, block)
            for head in self.heads
            for block in scores.path(head.graph, operands(head.product)[which]).writers
        )
        return sorted(found, key=lambda text: text.startswith(OWN))

    # --- the workings --------------------------------------------------------------------

    def follow(self, row: int) -> None:
        """Add the parts of the query and of both keys from a row on: of every head, and of the
        chosen one."""
        page, width = self.page, max(self.shape) + 3
        page.sheet.put(row, 0, "Workings: parts of the queries and keys of these tokens", "heading")
        scale = self.choose([operands(head.product)["scale"][0, 0] for head in self.heads])
        self.scale = page.computed_at(
            SCALE, (row + 1, 1), (1, 1), lambda *_: scale, "step", label="score factor"
        )
        self.sides: dict[str, Side] = {}
        self.parts: dict[str, Area] = {}  # [d_head, n_writers] of the query, the key, the rival
        for k, name in enumerate(SIDES):
            self._side(name, self.used[k + 1, 0], (row + 3, 1 + k * width))

    def _side(self, name: str, position: Area, at: tuple[int, int]) -> None:
        """Add the tables of one token, one below the other."""
        page, (row, left) = self.page, at

        def lay(
            block: str, writers: Sequence[str], n: int, cell: Callable[[int, int], Expression]
        ) -> Area:
            nonlocal row
            page.sheet.put(
                row,
                left,
                worded("{block} of the {token}", block=block, token=worded(name)),
                "note",
            )
            page.heads_at((row + 1, left), *map(plain, writers), style="label fitted")
            row, top = row + n + 3, row + 2
            table, shape = f"why.{name}.{block}", (n, len(writers))
            return page.computed_at(table, (top, left), shape, cell, "step green")

        self.sides[name] = Side(self.book.graph, position, lay)
        which, labels = ("q", self.of_query) if name == "query" else ("k", self.of_key)
        laid = [self.sides[name].laid(operands(head.product)[which]) for head in self.heads]
        columns = [
            {label(head, head.graph[w]): part for w, part in parts.items()}
            for head, parts in zip(self.heads, laid, strict=True)
        ]

        def cell(d: int, w: int) -> Expression:
            each = [column.get(labels[w]) for column in columns]
            return self.choose([part.cell(d) if part else expression(0) for part in each])

        page.sheet.put(
            row,
            left,
            worded("the {token} of the chosen head", token=worded(name)),
            "block",
        )
        page.heads_at((row + 1, left), *labels, style="label fitted")
        shape = operands(self.first.product)[which].shape[1], len(labels)
        self.parts[name] = page.computed_at(f"why.{name}", (row + 2, left), shape, cell, "step")


def label(head: scores.Head, writer: Block) -> str:
    """A writer as rows and columns are labelled: the biases of each head's own layer alike."""
    if writer.computed or writer.layer != head.product.layer:
        return plain(writer.name)
    norm = "" if writer.head or writer.part == "attn" else f"{writer.part}."
    return f"{OWN}{norm}{writer.leaf}"


def _within(typed: Expression, low: object, high: object) -> Expression:
    """A typed number as a whole one from `low` to `high`."""
    return MIN(MAX(INT(typed), low), high)


def _nth(each: Sequence[Expression], n: Expression) -> Expression:
    return each[0] if len(each) == 1 else one_of(each, n)
