"""The cells that choose a layer, a head and a word on the sheet Attention, and the words that the
sheet then shows.

Three cells name a layer, a head and the query word. If a name is unknown, a line beside its cell
says so, and the rest of the sheet is blank. The sheet shows the words that the query word sees. If
they need too many columns, it shows the words with the largest shares, in the sentence's order.
"""

from collections.abc import Callable, Sequence

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import (
    AND,
    EXP,
    IF,
    IFERROR,
    INT,
    ISNUMBER,
    MATCH,
    ROUND,
    SUM,
    SUMPRODUCT,
)
from cellformer.engine.cells.language import worded
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.lookups import entry, one_of
from cellformer.exporters.compose.sentences import sentence
from cellformer.exporters.model import layout
from cellformer.exporters.model.attention_heads import Chosen, Step, keys_seen
from cellformer.exporters.model.model_book import ModelBook

CHOICES = "attention.choices"  # the layer, the head, the word
LABELS, OWN, WORDS = 0, 1, 2  # columns: labels, what is the word's own, the words that it sees
TOP = 3  # the row of the layer; then of the head, and of the word
HEADS = TOP + 4  # the row of the columns' heads
GAP = 8  # points: how high the row above the heads is
COLUMNS = 12  # at most, of words, of those left out, and of a sink
WORKINGS = 30  # the row from which on what has no room on the screen is computed
DECIMALS = 9  # that shares are ranked by: equal ones stay equal in every program
MOST_LISTED = 60  # choices of a cell's list


class Workings:
    """The rows below the screen, given out from top to bottom."""

    def __init__(self, page: Composer) -> None:
        self.page, self.below = page, WORKINGS + 1
        page.sheet.put(WORKINGS, LABELS, "Workings", "heading")

    def rows(self, n: int, label: str) -> int:
        """The first of n rows, below a row with a label."""
        row = self.below + 1
        self.page.sheet.put(self.below, LABELS, label, "note")
        self.below += n + 2
        return row


class Choice:
    """The cells to type in; the head and the words that they lead to."""

    def __init__(self, book: ModelBook, page: Composer, heads: Sequence[Step], begin: Step) -> None:
        self.book, self.page, self.heads = book, page, heads
        self.first = heads[0]
        self.n_tokens = self.first.k.shape[0]
        self.workings = Workings(page)
        room = COLUMNS - bool(self.first.sink)
        self.all_fit = self.n_tokens <= room
        self.n_words = self.n_tokens if self.all_fit else room - 1
        self._dials(begin)
        self._find_head()
        self.texts = layout.token_texts(book).fixed
        self.own_text = entry(self.texts, 1, self.word + 1)
        self._find_words()

    @property
    def n_columns(self) -> int:
        """The number of columns with a key or a value: one for each word, and one for all words
        left out."""
        return self.n_words + (not self.all_fit)

    def if_chosen(self, formula: object) -> Expression:
        """A formula; blank while the cells name nothing."""
        return IF(self.place == 0, "", formula)

    def if_word(self, c: int, formula: object) -> Expression:
        """A formula of the c-th word; blank if there is none."""
        return IF(self.at[c] == "", "", formula)

    def if_column(self, c: int, formula: object) -> Expression:
        """A formula of the c-th column, which is a word, the words left out, or a sink; or
        blank."""
        if c < self.n_words:
            return self.if_word(c, formula)
        return IF(self.n_left == 0, "", formula) if c < self.n_columns else self.if_chosen(formula)

    # --- the cells ---------------------------------------------------------------------------

    def _dials(self, begin: Step) -> None:
        """Add the cells to type in, each with its list."""
        layers = [*dict.fromkeys(step.layer for step in self.heads)]
        self.layers, self.per_layer = layers, len(self.heads) // len(layers)
        cells = self.page.typed_at(
            CHOICES,
            (TOP, OWN),
            [[begin.layer], [begin.number], [self.book.passage.n_prompt - 1]],
            "dial",
        )
        self.layer, self.head, self.word = (cell.fixed for cell in cells.cells)
        if len(layers) < self.book.model.spec.n_layers:
            text = worded(
                "Other layers have no heads of this kind, or their formula would be too long."
            )
            self.page.sheet.notes[TOP, OWN] = text
        numbers = (layers, range(self.per_layer), range(self.n_tokens))
        for k, label in enumerate(("layer", "head", "word")):
            self.page.sheet.put(TOP + k, LABELS, label, "row label")
            if len(numbers[k]) <= MOST_LISTED:
                source = [str(n) for n in numbers[k]]
                self.page.sheet.rules[TOP + k, OWN] = {"validate": "list", "source": source}

    def _find_head(self) -> None:
        """Add the place of each cell's entry in its list, from 1, or 0, and the head's place."""
        row = self.workings.rows(1, "layers with heads of this kind")
        self.page.sheet.across(row, OWN, self.layers, "constant")
        known = self.page.sheet[row, OWN : OWN + len(self.layers)].fixed.as_range
        found = [
            IF(ISNUMBER(self.layer), IFERROR(MATCH(self.layer, known, 0), 0), 0),
            _place(self.head, self.per_layer),
            _place(self.word, self.n_tokens),
        ]
        row = self.workings.rows(
            3,
            (
                "chosen layer, head and word (from 1; 0: invalid), and the head’s "
                "number among all heads"
            ),
        )
        self.valid = self.page.show("valid", (row, OWN), lambda k, _: found[k], "id", (3, 1))
        layer, head, word = self.valid.cells
        number = IF(AND(layer > 0, head > 0, word > 0), (layer - 1) * self.per_layer + head, 0)
        self.place = self.page.show("place", (row, WORDS), number, "id").fixed
        self.chosen = Chosen(self.book, self.heads, self.place)

    def say(self, head: Expression, check: Expression) -> None:
        """Add a line beside each cell. It says what is wrong with the entry; or else which word
        the head looks at, whether the model computes the same, and which word looks."""
        good = (
            self.if_chosen(head),
            self.if_chosen(check),
            sentence(
                "the query comes from the word ‘{word}’ (count words from 0)", word=self.own_text
            ),
        )
        lines = (
            ("‘{typed}’ is not a layer with heads: type {which}.", _listed(self.layers)),
            ("‘{typed}’ is not a head of this layer: type {which}.", _up_to(self.per_layer - 1)),
            ("‘{typed}’ is not the number of a word: type {which}.", _up_to(self.n_tokens - 1)),
        )

        def said(k: int, _: int) -> Expression:
            text, which = lines[k]
            typed = IFERROR(self.book.graph[CHOICES][k, 0] & "", "–")
            return IF(
                self.valid[k, 0] > 0, good[k], sentence(text, typed=typed, which=expression(which))
            )

        self.page.show("said", (TOP, WORDS), said, "text", (3, 1))

    # --- the words ---------------------------------------------------------------------------

    def _find_words(self) -> None:
        """Add the places of the words that are shown, and their texts, as heads of columns."""
        page, row = (
            self.page,
            self.workings.rows(1, "how many words this word can read at most, including itself"),
        )
        sees = [step.product.mask for step in self.heads]
        each = [keys_seen(mask, self.word, self.n_tokens) for mask in sees]
        self.window = page.show(
            "window",
            (row, OWN),
            self.if_chosen(each[0] if len({*sees}) == 1 else one_of(each, self.place)),
            "id",
        )
        if not self.all_fit:
            self._rank()
        row, shape = self.workings.rows(1, "places of the shown words, from 0"), (1, self.n_words)
        self.at = page.show("places", (row, WORDS), self._nth, "id", shape).cells
        page.sheet.heights[HEADS - 1] = GAP
        page.show(
            "looks",
            (HEADS, OWN),
            self.if_chosen(sentence("query of ‘{word}’", word=self.own_text)),
            "word fitted",
        )
        page.sheet.put(HEADS, LABELS, "query →", "row label")

        self.shown_texts = page.show(
            "word",
            (HEADS, WORDS),
            lambda _, c: self.if_word(c, entry(self.texts, 1, self.at[c] + 1)),
            "word fitted",
            shape,
        )

    def _nth(self, _: int, c: int) -> Expression:
        """The place of the c-th word that is shown."""
        if not self.all_fit:
            return IFERROR(MATCH(c + 1, self.numbers, 0) - 1, "")
        return self.if_chosen(IF(self._sees(c), c, ""))

    def _sees(self, k: int) -> Expression:
        """Whether the word that looks sees the word at a place."""
        if not self.first.product.mask.causal:
            return self.word >= 0
        return AND(self.word >= k, self.word - k < self.window.fixed)

    def _rank(self) -> None:
        """Add, for every word of the sentence, its share in the model, and whether the sheet
        shows it, as one of the largest."""

        def share(k: int) -> Expression:
            found = ROUND(self.chosen.at(lambda s: (s.pattern, k), self.word), DECIMALS)
            return IF(self.place == 0, -1, IF(self._sees(k), found, -1))

        def is_shown(k: int) -> Expression:
            before = SUMPRODUCT((shares > shares[k]) * 1)
            if k:
                before = before + SUMPRODUCT((shares[:k].as_range == shares[k]) * 1)
            return IF(AND(shares[k] >= 0, before < self.n_words), 1, 0)

        def score(k: int) -> Expression:
            found = self.chosen.at(lambda s: (s.scores, k), self.word)
            return IF(AND(shares[k] >= 0, shown[k] == 0), found, "")

        shares = self._of_every("model_share", "attention weight of each word", share)
        shown = self._of_every("is_shown", "1: the sheet shows this word", is_shown)
        self.numbers = self._of_every(
            "number",
            "place in the list of shown words",
            lambda k: IF(shown[k] == 1, SUM(shown[: k + 1].as_range), 0),
        )
        self.scores_left = self._of_every("score_left", "scores of the words not shown", score)
        left = SUMPRODUCT((shares >= 0) * 1) - SUM(shown)
        row = self.workings.rows(1, "number of words not shown")
        self.n_left = self.page.show("left_out", (row, OWN), left, "id").fixed
        self.page.show(
            "others",
            (HEADS, WORDS + self.n_words),
            IF(self.n_left == 0, "", sentence("the other {n}", n=self.n_left)),
            "word fitted",
        )

    def exps_left(self, largest: Area) -> Area:
        """Add e to the scores of the words that are left out, less the largest of all."""

        def exponential(k: int) -> Expression:
            score = self.scores_left[k]
            return IF(score == "", 0, EXP(score - largest))

        return self._of_every("exp_left", "e^(score) of each word that is not shown", exponential)

    def _of_every(self, name: str, label: str, cell: Callable[[int], Expression]) -> Area:
        """A number for every word of the sentence, in a row or a column, as values lie."""
        n, across = self.n_tokens, self.book.places[self.first.v.name].turned
        row, shape = self.workings.rows(1 if across else n, label), (1, n) if across else (n, 1)
        return self.page.show(name, (row, OWN), lambda i, j: cell(i + j), "step", shape).fixed


def _place(typed: Expression, n: int) -> Expression:
    """A number's place among 0, 1, ..., n - 1, from 1; 0 for anything else."""
    is_place = AND(typed >= 0, typed < n, INT(typed) == typed)
    return IF(ISNUMBER(typed), IF(is_place, typed + 1, 0), 0)


def _listed(layers: list[int]) -> str:
    """The layers that a reader may type."""
    if layers == [*range(len(layers))]:
        return _up_to(layers[-1])
    return worded("one of {numbers}", numbers=", ".join(map(str, layers)))


def _up_to(most: int) -> str:
    return worded("a whole number from 0 to {most}", most=most) if most else "0"
