"""Hidden attention: what a channel of a recurrence takes, at each token, of each token before, as a
table of weights (Ali et al. 2024, "The Hidden Attention of Mamba Models").

Cells name the layer, the head where states are in heads, and the channel. Below the table is what
the channel reads by it, beside what its layer has; then the steps and rates, and what tokens write
and read.
"""

from collections.abc import Callable, Sequence

import numpy as np

from cellformer.engine import Evaluator
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import (
    EXP,
    IF,
    IFERROR,
    INT,
    MAX,
    MIN,
    SUM,
    SUMPRODUCT,
)
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.studies import hidden_attention
from cellformer.engine.studies.hidden_attention import Recurrence
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import between
from cellformer.exporters.compose.lookups import nth, one_of, product_sum
from cellformer.exporters.compose.sentences import rounded, sentence
from cellformer.exporters.compose.story import Suggestion, outcome
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook

SHEET = "Hidden attention"
PURPOSE = "the attention hidden in a recurrence: how much each token reads from earlier tokens"
AFTER = "Heads"
ASKED, USED, WEIGHTS, READ = "hidden.asked", "hidden.used", "hidden.weights", "hidden.read"
GAP = "hidden.gap"
DIALS = {
    "layer": "Layer number, counted from 0.",
    "head": "Number of the head in the layer, counted from 0.",
    "channel": "Channel number, counted from 0.",
}
ONE_ALONE = "This number is fixed: a formula for all {n} numbers would be too long."
ABOUT = (
    "At each token, a channel reads a weighted sum over that token and all earlier tokens. Each "
    "of these tokens has a weight, which multiplies the channel’s input at the token.",
    "These weights are the channel’s hidden attention (Ali et al. 2024). Unlike attention "
    "weights, the weights of a channel can be below 0 (orange). Their sum need not be 1.",
)
READ_SO = "A row is a token that reads. A column is a token that is read."
LINES = ("weights × inputs", "D × token input", "sum", "z of the layer", "difference")
PARTS = (
    "B is what a token writes, C is what a token reads, and exp(rate × time) is the share that "
    "remains"
)
HOLDS = (
    "{channel}: these weights give the same result (z) as the layer. The largest difference is "
    "{gap}."
)
FAILS = (
    "{channel}: these weights do not give the result (z) of the layer. The largest difference is "
    "{gap}."
)
IN_LAYER = "Layer {layer}, channel {channel}"
IN_HEAD = "Head {layer}.{head}, channel {channel}"
WIDTH = 9  # characters of a token's column
OTHER = {
    "layer": "Type ‘{n:g}’ as the layer: the weight of token {key} for token {query} becomes "
    "{becomes:.3f}.",
    "head": "Type ‘{n:g}’ as the head: the weight of token {key} for token {query} becomes "
    "{becomes:.3f}.",
    "channel": "Type ‘{n:g}’ as the channel: the weight of token {key} for token {query} becomes "
    "{becomes:.3f}.",
}
FASTER = (
    "Type ‘{n:g}’: one number of the channel’s state fades fast. The weight of token {key} for "
    "token {query} becomes {becomes:.3f}."
)
ALL_FASTER = (
    "Type ‘{n:g}’: the head’s states fade fast. The weight of token {key} for token {query} "
    "becomes {becomes:.3f}."
)
MOST = 100  # recurrences that a formula chooses among: it has 255 arguments, and 8,192 characters
FAST = 5.0  # an A_log with which little is left after a token


def wanted(book: ModelBook) -> bool:
    """Whether the model has a recurrence, and all of it is live."""
    return not book.live and bool(hidden_attention.recurrences(book.graph))


def add(book: ModelBook) -> None:
    """Add the cells to type, the table with the channel's output, three suggested edits, and the
    parts of the weights."""
    n = len(book.passage.ids)
    widths = {0: 18} | dict.fromkeys(range(1, n + len(LINES) + 2), WIDTH)
    page = layout.page(book, SHEET, "", *ABOUT, widths=widths)
    asked = Asked(book, page)
    top = page.cursor + 4
    height = n + 1
    asked.make_parts(top + height + 10)
    asked.make_table(top)
    page.show("verdict", (top - 4, 0), asked.verdict(), "block")
    page.cursor = top + height
    page.suggest(*suggestions(asked), at=(0, 2, 4))


class Asked:
    """The cells that name a channel, and the results for that channel."""

    def __init__(self, book: ModelBook, page: Composer) -> None:
        self.book, self.page = book, page
        self.n = len(book.passage.ids)
        found = hidden_attention.recurrences(book.graph)
        self.n_heads = sum(one.layer == found[0].layer for one in found)  # in a layer
        k, channel = leading(book, found)
        self.first = found[k]
        self.among = found if len(found) <= MOST else [self.first]
        layer, head = divmod(k, self.n_heads)
        self.begun = {"layer": layer, "head": head, "channel": channel}
        self.most = {
            "layer": len(found) // self.n_heads - 1,
            "head": self.n_heads - 1,
            "channel": self.first.n_channels - 1,
        }
        self._dials(len(found))

    # --- the cells to type ---------------------------------------------------------------

    def _dials(self, n: int) -> None:
        """Put the cells, the cells of the layer and the head only if there is a choice among
        `n`, and the values that they count as."""
        page, top = self.page, self.page.cursor + 1
        shown = [name for name in DIALS if name != "head" or self.n_heads > 1]
        typed = shown if len(self.among) > 1 else shown[-1:]
        for row, name in enumerate(shown, top):
            page.sheet.put(row, 0, name, "row label")
            page.sheet.notes[row, 1] = worded(DIALS[name])
            if name not in typed:
                page.sheet.put(row, 1, self.begun[name], "built")
                continue
            page.sheet.rules[row, 1] = between(
                0,
                self.most[name],
                worded("Type a whole number from 0 to {most}.", most=self.most[name]),
                whole=True,
            )
        self.rows = {name: k for k, name in enumerate(typed)}
        at = top + len(shown) - len(typed)
        dials = page.typed_at(ASKED, (at, 1), [[self.begun[name]] for name in typed], "dial")

        def counts_as(k: int, _: int) -> Expression:
            # a text: the first
            return IFERROR(MIN(MAX(INT(dials[k, 0]), 0), self.most[typed[k]]), 0)

        self.used = page.computed_at(
            USED, (at, 2), (len(typed), 1), counts_as, "id", head="counts as"
        )
        if n > len(self.among):
            page.sheet.put(top, 3, worded(ONE_ALONE, n=n), "note")
        page.cursor = top + len(shown) + 1

    def _number(self, name: str) -> Expression:
        """The value that a cell counts as, or the number itself if there is no cell for it."""
        return self.used[self.rows[name], 0] if name in self.rows else expression(self.begun[name])

    def _of_asked(self, cell: Callable[[Recurrence], Expression]) -> Expression:
        """A cell of the layer, and of the head, that is asked for."""
        each = [cell(one) for one in self.among]
        if len(each) == 1:
            return each[0]
        place = self._number("layer")
        if self.n_heads > 1:
            place = place * self.n_heads + self._number("head")
        return one_of(each, place + 1)

    def _of_channel(self, block: Callable[[Recurrence], Block], row: int) -> Expression:
        """The cell in a row of a block, for the chosen channel."""
        return self._of_asked(lambda one: nth(block(one).area[row, :], self._number("channel") + 1))

    # --- tables --------------------------------------------------------------------------

    def _tokens(self, name: str, at: tuple[int, int], across: bool) -> None:
        """Put the labels of all tokens, across or down from a cell."""
        book, style = self.book, "label" if across else "row label"
        name, numbers = f"hidden.{name}", range(self.n)
        layout.labels(book, self.page.sheet, name, at, "token", numbers, style, across)

    def make_parts(self, top: int) -> None:
        """Add the steps and their sums, the vectors that tokens write and read, and the rates."""
        page, n, d_state = self.page, self.n, self.first.B.shape[1]
        first_B, first_C = top + 2, top + 2 + d_state
        page.sheet.put(top - 3, 0, "How the weights are computed", "heading")
        page.sheet.put(top - 2, 0, PARTS, "note")
        self._tokens("parts", (top - 1, 1), across=True)
        page.sheet.down(top, 0, ("step", "time: sum of steps"), "row label")
        for row, name in ((first_B, "B"), (first_C, "C")):
            page.sheet.down(row, 0, [AsIs(f"{name} {k}") for k in range(d_state)], "row label")

        self.step = page.computed_at(
            "hidden.step",
            (top, 1),
            (1, n),
            lambda _, t: self._of_channel(lambda one: one.step, t),
            "step green",
        )

        self.time = page.computed_at(
            "hidden.time",
            (top + 1, 1),
            (1, n),
            lambda _, t: SUM(self.step[0, : t + 1].fixed_first),
            "step",
        )

        def state(block: Callable[[Recurrence], Block]) -> Callable[[int, int], Expression]:
            return lambda k, t: self._of_asked(lambda one: block(one)[t, k])

        shape = d_state, n
        writes, reads = state(lambda one: one.B), state(lambda one: one.C)
        self.B = page.computed_at("hidden.B", (first_B, 1), shape, writes, "step green")
        self.C = page.computed_at("hidden.C", (first_C, 1), shape, reads, "step green")

        shared = self.first.rate.shape[0] == 1  # by all numbers of a state

        def rate(k: int, _: int) -> Expression:
            return self._of_channel(lambda one: one.rate, 0 if shared else k)

        self.rate = page.computed_at(
            "hidden.rate", (first_B, 1 + n), (d_state, 1), rate, "step green", head="rate"
        )

    def make_table(self, top: int) -> None:
        """Add the weights, the inputs below them, and the channel's output beside them."""
        page, n = self.page, self.n
        page.sheet.put(top - 2, 0, READ_SO, "note")
        self._tokens("columns", (top - 1, 1), across=True)
        self._tokens("rows", (top, 0), across=False)
        page.sheet.across(top - 1, 1 + n, LINES, "label")
        page.sheet.put(top + n, 0, "input", "row label")

        weights = page.computed_at(
            WEIGHTS,
            (top, 1),
            (n, n),
            lambda t, s: self._weight(s, t) if s <= t else expression(0),
            "change",
            dress="diverging",
        )

        inputs = page.computed_at(
            "hidden.input",
            (top + n, 1),
            (1, n),
            lambda _, s: self._of_channel(lambda one: one.x, s),
            "step green",
        )

        def column(k: int, name: str, cell: Callable[[int], Expression], style: str) -> Area:
            """Add the channel's output at each token, as a column beside the weights."""
            return page.computed_at(name, (top, 1 + n + k), (n, 1), lambda t, _: cell(t), style)

        def past(t: int) -> Expression:
            return self._of_channel(lambda one: one.D, 0) * inputs[0, t]

        taken = column(
            0, "hidden.by_weights", lambda t: product_sum(weights[t, :], inputs[0, :]), "step"
        )
        own = column(1, "hidden.past", past, "step")
        read = column(2, READ, lambda t: taken[t, 0] + own[t, 0], "step")
        z = column(3, "hidden.z", lambda t: self._of_channel(lambda one: one.z, t), "step green")
        gap = column(4, GAP, lambda t: read[t, 0] - z[t, 0], "step")
        self.z, self.gap = z.as_range, gap.as_range

    def _weight(self, s: int, t: int) -> Expression:
        """The weight of token s at token t."""
        passed = self.time[0, t] - self.time[0, s]
        reads, writes, rate = self.C[:, t], self.B[:, s], self.rate[:, 0]
        if rate.rect.size == 1:
            return reads * writes * EXP(rate * passed) * self.step[0, s]
        # gnumeric takes no EXP of a range here, but a power of one
        return SUMPRODUCT(reads, writes, EXP(1) ** (rate * passed)) * self.step[0, s]

    def verdict(self) -> Expression:
        """A sentence that says whether the table gives the channel's output."""
        gap = MAX(MAX(self.gap), -MIN(self.gap))
        size = MAX(1, MAX(self.z), -MIN(self.z))
        numbers = {name: self._number(name) for name in DIALS}
        channel = sentence(IN_HEAD if self.n_heads > 1 else IN_LAYER, **numbers)
        told = {"channel": channel, "gap": rounded(gap, 10)}
        return IF(gap < NEAR * size, sentence(HOLDS, **told), sentence(FAILS, **told))


def leading(book: ModelBook, among: Sequence[Recurrence]) -> tuple[int, int]:
    """The recurrence, by its place, and the channel that the sheet shows first: the one whose
    last token takes most from earlier tokens."""
    values, last = book.graph.values, book.passage.n_prompt - 1
    found = [np.abs(hidden_attention.taken(values, one, last)) for one in among]
    k = int(np.argmax([one.max() for one in found]))
    return k, int(np.argmax(found[k]))


def suggestions(asked: Asked) -> list[Suggestion]:
    """Three edits: another head or channel, another layer, and a state that fades fast."""
    live, first = Evaluator(asked.book.graph), asked.first
    query = asked.book.passage.n_prompt - 1
    key = int(np.argmax(np.abs(live[WEIGHTS][query, : max(query, 1)])))
    watch = (WEIGHTS, query, key)

    def suggestion(text: str, cell: tuple[str, int, int], value: float) -> Suggestion:
        becomes = outcome(live, cell, value, watch)
        shown = round(becomes, 3) + 0.0  # not -0
        return Suggestion(
            worded(text, n=value, query=query, key=key, becomes=shown), cell, value, watch, becomes
        )

    order = ("head", "layer", "channel") if first.shares else ("channel", "head", "layer")
    edits = [(name, n) for n in (1, 2, 0, 0) for name in order if name in asked.rows]
    edits = [(name, n) for name, n in edits if n <= asked.most[name]]
    found = [
        suggestion(
            OTHER[name],
            (ASKED, asked.rows[name], 0),
            float((asked.begun[name] + n) % (asked.most[name] + 1)),
        )
        for name, n in edits[:2]
    ]
    col = min(asked.begun["channel"], first.rate.shape[1] - 1)
    text = ALL_FASTER if first.shares else FASTER
    return [*found, suggestion(text, (f"{first.name}.A_log", 0, col), FAST)]
