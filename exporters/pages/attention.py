"""Attention: one attention step on one screen, for a layer, a head and a word that one chooses.

Words run across, the numbers of their vectors down. The word's query stands left of the keys. Below
a key are the product of both, scaled, e to that, its share, the value, and the value times the
share; the query's column has what is the same for all, and the sum. Each number reads those above
it on this sheet, so one that is typed over changes all that follows, and a line says so. What has
no room on the screen, a vector's further numbers and words with small shares, is computed below.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import (
    ABS,
    EXP,
    IF,
    IFERROR,
    MAX,
    MIN,
    SUM,
    SUMPRODUCT,
    TANH,
    added,
)
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.models import ops
from cellformer.engine.studies.lens import operands
from cellformer.exporters.compose.composer import Formula
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.compose.lookups import nth, place_of_largest, product_sum
from cellformer.exporters.compose.sentences import percent, sentence
from cellformer.exporters.model import attention_heads, layout
from cellformer.exporters.model.attention_choice import HEADS, LABELS, OWN, WORDS, Choice
from cellformer.exporters.model.attention_heads import Step
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import machine

SHEET = "Attention"
PURPOSE = "one attention step: choose a layer, a head and a word; type over any number"
OF_DECODER = (
    "one attention step of the decoder: choose a layer, a head and a word; type over any number"
)
AFTER = "Play"
MOST_WHOLE, FEW = 5, 4  # numbers of a vector that are all shown; of a longer one that are shown


def wanted(book: ModelBook) -> bool:
    """Whether the model has heads that compare queries and keys."""
    return bool(attention_heads.steps(book.graph))


def add(book: ModelBook) -> None:
    """Add the choices, and the step from above downwards."""
    step = _Sheet(book)
    step.keys()
    step.scores()
    step.shares()
    step.values()
    step.written()
    step.into_stream()
    step.told()


class Vectors(NamedTuple):
    """A table of vectors, one in each column: its rows on the screen, and those below."""

    parts: Sequence[Area]

    def column(self, c: int) -> list[Area]:
        """One vector, in parts."""
        return [part[:, c] for part in self.parts]

    def row(self, j: int) -> Area:
        """The j-th number of each vector."""
        few = self.parts[0].shape[0]
        return self.parts[0][j, :] if j < few else self.parts[1][j - few, :]

    def cell(self, j: int, c: int) -> Area:
        """One number."""
        return self.row(j)[c]


def _product(one: Sequence[Area], other: Sequence[Area]) -> Expression:
    """The dot product of two vectors, in parts."""
    return added(map(product_sum, one, other))


class _Sheet:
    """The sheet while it is made, from above downwards."""

    def __init__(self, book: ModelBook) -> None:
        widths = {LABELS: 30, OWN: 18, **dict.fromkeys(range(WORDS, WORDS + 12), 9)}
        purpose = OF_DECODER if book.plan.sources else ""
        self.book, self.page = book, layout.page(book, SHEET, purpose, widths=widths)
        self.sheet = self.page.sheet
        heads = attention_heads.alike(book)
        self.first = heads[0]
        self.d_head, self.d_value = self.first.k.shape[1], self.first.v.shape[1]
        self.choice = Choice(book, self.page, heads, self._begin(heads))
        self.chosen, self.at = self.choice.chosen, self.choice.at
        self.row = HEADS + 1  # the next one
        self.now: Area  # the row of scores so far

    def _begin(self, heads: Sequence[Step]) -> Step:
        """The head that the sheet begins with: one that looks at one word most."""
        if not self.book.plan.whole:
            return self.first
        patterns = [step.pattern for step in heads]
        return heads[patterns.index(machine.sharpest(self.book, patterns))]

    # --- how things are put ------------------------------------------------------------------

    def _few(self, d: int) -> int:
        """The number of entries of a vector of d on the screen."""
        plain = not self.first.after and not self.first.present
        return d if d <= (MOST_WHOLE if plain else FEW) else FEW

    def _label(self, row: int, text: str) -> None:
        self.sheet.put(row, LABELS, text, "row label")

    def _vectors(self, name: str, col: int, shape: tuple[int, int], cell: Formula) -> Vectors:
        """A table of vectors from the next row on: its first rows, and the others below."""
        d, n = shape
        few = self._few(d)
        style = {"taken": "vector here", "written": "written"}.get(name, "vector")
        parts = [self.page.show(name, (self.row, col), cell, style, (few, n))]
        if d > few:
            more = worded("{n} more numbers are below", n=d - few)
            self.sheet.put(self.row + few - 1, LABELS, more, "row label")
            label = worded("{name}: all numbers from {few} on", name=worded(name), few=few)
            below = self.page.show(
                f"{name}_below",
                (self.choice.workings.rows(d - few, label), col),
                lambda j, c: cell(j + few, c),
                style,
                (d - few, n),
            )
            parts.append(below)
        for part in parts:
            self.page.dress(part, When("empty", part[0, 0] == ""))
        return Vectors(parts)

    def _line(self, name: str, label: str, cell: Callable[[int], Expression]) -> Area:
        """The next row: a number for each word that is shown."""
        self._label(self.row, label)
        at, shape = (self.row, WORDS), (1, self.choice.n_words)
        self.row += 1
        line = self.page.show(name, at, lambda _, c: cell(c), "fit", shape)
        self.page.dress(line, When("empty", line[0, 0] == ""))
        return line

    def _next(self, name: str, label: str, change: Callable[[Area, int], Expression]) -> None:
        """The next row of scores, made of the one before it."""
        before = self.now

        self.now = self._line(
            name, label, lambda c: self.choice.if_word(c, change(before[0, c], c))
        )

    def _own(self, name: str, formula: Expression) -> Area:
        """The cell of the word that looks, in the next row."""
        return self.page.show(name, (self.row, OWN), self.choice.if_chosen(formula), "fit").fixed

    # --- how well words fit ------------------------------------------------------------------

    def keys(self) -> None:
        """Add the query, and the key of each word."""
        choice, chosen = self.choice, self.chosen
        self._label(self.row, "key of each word")
        if self.first.q.leaf.startswith("rot_"):
            self._label(self.row + 1, worded("keys, rotated by position (RoPE)"))

        def query(j: int, _: int) -> Expression:
            return choice.if_chosen(chosen.at(lambda s: (s.q, j), choice.word))

        def key(j: int, c: int) -> Expression:
            return choice.if_word(c, chosen.at(lambda s: (s.k, j), self.at[c]))

        self.query = self._vectors("query", OWN, (self.d_head, 1), query)
        self.key = self._vectors("key", WORDS, (self.d_head, choice.n_words), key)
        self.row += self._few(self.d_head)

    def scores(self) -> None:
        """Add the product of the query with each key, scaled, and the other terms of a score."""
        query = self.query.column(0)

        self.now = self._line(
            "score",
            "score: query × key",
            lambda c: self.choice.if_word(c, _product(query, self.key.column(c))),
        )
        scale = self._own("scale", self.chosen.cell(_divisor))
        self._next("scaled", "score divided by this →", lambda x, c: IFERROR(x / scale, 0))
        if self.first.present:
            self._next("present", worded("score; very low for padding"), self._if_present)
        for k, block in enumerate(self.first.after):
            if block.op is ops.soft_cap:
                self._cap(k)
            else:
                self._distance(k)

    def _if_present(self, x: Area, c: int) -> Expression:
        """A score, far below others for words that only pad the sentence."""
        present = self.chosen.at(lambda s: (s.present or s.k, 0), self.at[c])
        found: Expression = ops.or_far_below(x, present)
        return found

    def _cap(self, k: int) -> None:
        """Add the row of scores that stay within a cap."""
        cap = self._own("cap", self.chosen.cell(lambda s: operands(s.after[k])["cap"][0, 0]))
        self._next(
            "capped",
            worded("score limited to ± the cap →"),
            lambda x, c: IFERROR(TANH(x / cap) * cap, 0),
        )

    def _distance(self, k: int) -> None:
        """Add the row of the distance's share in a score, and of their sums."""
        choice, chosen = self.choice, self.chosen

        def place(word: Expression) -> Expression:
            return chosen.at(lambda s: (operands(s.after[k])["query"], s.number), word)

        def added(c: int) -> Expression:
            if self.first.after[k].op is ops.farther:
                return choice.if_word(c, place(self.at[c]) - place(choice.word))
            return choice.if_word(
                c, chosen.entry(lambda s: operands(s.after[k])["bias"], choice.word, self.at[c])
            )

        distance = self._line("distance", worded("distance adds"), added)
        self._next("placed", worded("score with distance"), lambda x, c: x + distance[0, c])

    # --- shares ------------------------------------------------------------------------------

    def shares(self) -> None:
        """Add e to each score, shifted so that the largest is 0, and each share."""
        choice, sink = self.choice, self._sink()
        n_all = choice.n_columns + (sink is not None)
        scores = [self.now, *([] if choice.all_fit else [choice.scores_left])]
        largest = self._own("largest", MAX(*scores, *([] if sink is None else [sink])))
        if not choice.all_fit:
            self.left = choice.exps_left(largest)

        def exponential(_: int, c: int) -> Expression:
            if choice.n_words <= c < choice.n_columns:
                return choice.if_column(c, SUM(self.left))
            score = self.now[0, c] if c < choice.n_words else sink
            assert score is not None
            return choice.if_column(c, IFERROR(EXP(score - largest), 0))

        self._label(self.row, "e^(score − largest), largest →")
        exps: Area = self.page.show("exp", (self.row, WORDS), exponential, "fit", (1, n_all))
        self.row += 1
        self._label(self.row, "share: e^(…) ÷ sum, sum →")
        total: Area = self._own("sum", SUM(exps))
        self.share = self.page.show(
            "share",
            (self.row, WORDS),
            lambda _, c: choice.if_column(c, IFERROR(exps[0, c] / total, 0)),
            "fit share",
            (1, n_all),
        )
        self.row += 1
        self.page.dress(exps, When("empty", exps[0, 0] == ""))
        self.page.dress(self.share, When("empty", self.share[0, 0] == ""), "scale")

    def _sink(self) -> Area | None:
        """The score that belongs to no word, beside the others."""
        if not self.first.sink:
            return None
        col = WORDS + self.choice.n_columns
        self.sheet.put(HEADS, col, worded("no word"), "block")
        self.sheet.notes[HEADS, col] = worded("A sink receives attention, but gives no value.")
        found = self.chosen.cell(lambda s: s.sink[0, 0] if s.sink else expression(0))
        return self.page.show("sink", (self.row - 1, col), self.choice.if_chosen(found), "fit")

    # --- what is taken, and written ----------------------------------------------------------

    def values(self) -> None:
        """Add the value of each word; of those left out, their mean by their shares."""
        choice, chosen = self.choice, self.chosen

        def value(j: int, c: int) -> Expression:
            if c < choice.n_words:
                return choice.if_word(c, chosen.at(lambda s: (s.v, j), self.at[c]))
            line = chosen.cell(lambda s: s.v.area[:, j])
            return choice.if_column(c, IFERROR(SUMPRODUCT(self.left, line) / SUM(self.left), 0))

        self._label(self.row, "value of each word")
        self.value = self._vectors("value", WORDS, (self.d_value, choice.n_columns), value)
        self.row += self._few(self.d_value)

    def written(self) -> None:
        """Add the value times the share, and their sum, which is the head's output."""
        shape = self.d_value, self.choice.n_columns
        on = self._switch()

        def taken(j: int, c: int) -> Expression:
            found = self.share[0, c] * self.value.cell(j, c)
            return self.choice.if_column(c, IFERROR(found, 0))

        def total(j: int, _: int) -> Expression:
            found: Expression = SUM(self.taken.row(j))
            return self.choice.if_chosen(found if on is None else found * on)

        self._label(self.row, "share × value of each word")
        if self._few(self.d_value) > 1:
            text = "sum: output of the head →"
            self._label(self.row + 1, worded("sum, before the gate →") if self._is_gated else text)
        self.taken = self._vectors("taken", WORDS, shape, taken)
        self.sum = self._vectors("written", OWN, (self.d_value, 1), total)
        self.row += self._few(self.d_value)

    def _switch(self) -> Area | None:
        """Whether the head is on, if the switch multiplies its output."""
        if "on" not in operands(self.first.mix):
            return None
        on = self.chosen.cell(lambda s: operands(s.mix)["on"][0, 0])
        at = self.choice.workings.rows(1, "W_O: output weights"), OWN
        return self.page.show("switch", at, self.choice.if_chosen(on), "step green").fixed

    @property
    def _is_gated(self) -> bool:
        """Whether a gate multiplies the head's output. The gate is not on this sheet."""
        return self.first.mix.leaf == "mixed"

    def into_stream(self) -> None:
        """Add the first numbers that the head adds to the stream, where the model's blocks have
        them."""
        block = self.first.result
        if block is None or self._is_gated:
            return
        d, few = block.shape[1], self._few(self.d_value)
        n = min(self._few(d), self.choice.n_columns)

        def read(name: str, label: str, n_rows: int, n_columns: int = n) -> Area:
            """A weight or a switch of the chosen head, among the workings."""
            at, shape = (self.choice.workings.rows(n_rows, label), OWN), (n_rows, n_columns)

            def cell(i: int, j: int) -> Expression:
                found = self.chosen.cell(lambda s: operands(s.result or block)[name][i, j])
                return self.choice.if_chosen(found)

            return self.page.show(name, at, cell, "step green", shape)

        w = read("w", "W_O: into the stream", self.d_value)
        on = read("on", "W_O: output weights", 1, 1).fixed
        off = read("off", "replacement if the head is off", 1)

        def added(_: int, i: int) -> Expression:
            parts = [w[:few, i], *([w[few:, i]] if few < self.d_value else [])]
            found = _product(self.sum.column(0), parts) * on + off[0, i]
            return self.choice.if_chosen(found)

        self._label(self.row, "× W_O: added to the stream")
        self.page.show("stream", (self.row, WORDS), added, "written", (1, n))
        if d > n:
            self.sheet.put(self.row, WORDS + n, worded("and {n} more", n=d - n), "note")

    # --- in words ----------------------------------------------------------------------------

    def told(self) -> None:
        """Add the words that the head looks at, and whether the model computes the same."""
        choice, shares = self.choice, self.share[0, : self.choice.n_words]
        looks = sentence(
            "In head {layer}.{head} (layer {layer}, head {head}), ‘{own}’ gives ‘{word}’ {share} "
            "of its attention.",
            layer=choice.layer,
            head=choice.head,
            word=nth(choice.shown_texts, place_of_largest(shares)),
            share=percent(MAX(shares)),
            own=choice.own_text,
        )
        row = choice.workings.rows(
            self.d_value, "output of the same head in the model, and the difference"
        )

        def of_model(j: int, _: int) -> Expression:
            return choice.if_chosen(self.chosen.at(lambda s: (s.mix, j), choice.word))

        shape = (self.d_value, 1)
        model = self.page.show("model", (row, OWN), of_model, "step green", shape)
        gaps = self.page.show(
            "gap",
            (row, WORDS),
            lambda j, _: choice.if_chosen(IFERROR(ABS(self.sum.cell(j, 0) - model[j, 0]), 1)),
            "tiny",
            shape,
        )
        check = IF(
            MAX(gaps) <= NEAR * (1 + MAX(model) - MIN(model)),
            worded("Check: the model gets the same sum."),
            worded(
                "You typed over a number below. So this sum differs from the model’s result. "
                "Undo: Ctrl+Z."
            ),
        )
        choice.say(looks, check)


def _divisor(step: Step) -> Expression:
    """The divisor of scores."""
    scale = operands(step.product)["scale"]
    if scale.op is ops.reciprocal:
        return operands(scale)["x"][0, 0]
    return 1 / scale[0, 0]
