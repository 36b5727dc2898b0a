"""The sheet Calibration: are the model's probabilities right, and what does it predict for
nonsense?

The grammar of the game is known, so the exact probability of every next word is, too. A model is
calibrated if words that it gives 11 % come 11 % of the time (figure 8 of the GPT-4 report shows
this for a large model, and how further training spoils it). The temperature, a cell here, spoils it
as well. For a sentence that makes no sense a model still ranks next words, and may be sure of one.
"""

from collections.abc import Sequence
from math import log

import numpy as np

from cellformer.engine.cells.expression import Area, Expression, Nth
from cellformer.engine.cells.functions import EXP, IFERROR, LN, MATCH, MAX, SUM, SUMPRODUCT, N
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import between
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model import layout
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.dialogue_game import game, measured

SHEET = "Calibration"
COLDEST = 0.05  # a temperature
PURPOSE = "are the model's probabilities right, even after nonsense?"
SITUATIONS = (  # each with another choice that the grammar leaves
    "<BOS>",
    "<BOS> Pietro chiama",
    "<BOS> 3 chiama 7 <SEP> 7 chiama",
    "<BOS> 5 chiama Pietro capo <SEP> Pietro chiama",
)
NONSENSE = (
    "<BOS> banana banana banana",
    "<BOS> perde perde perde",
    "<BOS> Pietro Paolo Pietro Paolo",
    "<BOS> <EOS> 3 <PAD> chiama",
    "<BOS> vice chiama capo",
)
UNSURE = SITUATIONS[1]
N_WORDS = len(game.WORDS)
HEAT_ROW, CHART_ROW, TRIES_ROW, SHARES_ROW = 7, 9, 30, 37
END = SHARES_ROW + N_WORDS
DIAGONAL = 0.25  # where the chart's ends
LEFT, RIGHT = 1, 8  # columns: of the first situation; of what stands beside the chart
STEPS = ("grammar", "logit", "exp", "model")  # columns of a situation
TEXT = (
    "A grammar gives an exact probability to each possible next word, and 0 to all "
    "other words. The model saw only games. Does the model give the same numbers?",
    "After each of four sentences, several words can follow. At temperature 1 the points lie "
    "on the diagonal. At another temperature they leave the diagonal: the model is then too "
    "sure or too unsure.",
)


def add(book: ModelBook) -> None:
    """Add four situations, live in the temperature; counts over games; nonsense; three suggested
    edits."""
    page = layout.page(
        book, SHEET, PURPOSE, *TEXT, widths={0: 14} | dict.fromkeys(range(1, 17), 9.3) | {17: 3}
    )
    page.typed_at(
        "calibration.temperature",
        (HEAT_ROW, 1),
        [[1.0]],
        "dial",
        rule=between(COLDEST, 20, "A temperature from 0.05 to 20."),
        label="temperature",
    )
    _situations(book, page)
    _chart(book, page)
    _counted(page, _nonsense(book, page, HEAT_ROW))
    Composer(book, SHEET, TRIES_ROW - 1).suggest(*_suggestions(), at=(RIGHT + 1, RIGHT + 4, 0))


def _situations(book: ModelBook, page: Composer) -> None:
    """Add, for each situation, the grammar's probabilities and the model's logits as constants, and
    the model's probabilities, live."""
    page.sheet.put(SHARES_ROW - 1, 0, "word", "row label")
    page.sheet.down(SHARES_ROW, 0, game.WORDS, "row label")
    page.sheet.down(END, 0, ("sum; loss in nats", "lowest loss", "excess loss"), "row label")
    for n, text in enumerate(SITUATIONS):
        col = LEFT + n * len(STEPS)
        page.sheet.put(SHARES_ROW - 2, col, text, "block")
        page.heads_at((SHARES_ROW - 1, col), *STEPS, style="label")
        columns = np.column_stack([exact(text), logits(book, text)]).tolist()
        name, at = f"calibration.{n}", (SHARES_ROW, col)
        _situation(book, page, page.typed_at(name, at, columns, "basis"), col)


def _situation(book: ModelBook, page: Composer, given: Area, col: int) -> None:
    """One situation's softmax at the temperature, its loss under the grammar, and the floor."""
    typed, name = book.graph["calibration.temperature"][0, 0], given.grid.name
    heat = MAX(IFERROR(N(typed), 0), COLDEST)  # whatever is typed
    shares, said = given[:, 0], given[:, 1]  # [n_words, 1] each

    one = (N_WORDS, 1)
    exps = page.computed_at(
        f"{name}.exp",
        (SHARES_ROW, col + 2),
        one,
        lambda k, _: EXP((given[k, 1] - MAX(said)) / heat),
        "step",
    )
    total = SUM(exps)
    page.computed_at(f"{name}.model", (SHARES_ROW, col + 3), one, lambda k, _: exps[k, 0] / total, "live here")  # fmt: skip
    page.show(f"{name[-1]}.total", (END, col + 2), total, "total")

    def loss(*_: int) -> Expression:
        return LN(total) + (MAX(said) - SUMPRODUCT(shares, said)) / heat

    page.computed_at(f"{name}.loss", (END, col + 3), (1, 1), loss, "total")
    page.sheet.put(END + 1, col + 3, entropy(exact(SITUATIONS[int(name[-1])])), "basis")
    page.show(
        f"{name[-1]}.above",
        (END + 2, col + 3),
        page.sheet[END, col + 3] - page.sheet[END + 1, col + 3],
        "step",
    )


def exact(text: str) -> list[float]:
    """The grammar's probability of every word after a sentence."""
    return measured.shares(game.states(text.split())[-1])


def entropy(shares: Sequence[float]) -> float:
    """The lowest possible loss, in nats."""
    return -sum(p * log(p) for p in shares if p)


def logits(book: ModelBook, text: str) -> list[float]:
    """The model's logits after a sentence, as built."""
    model = book.model
    return list(map(float, model.graph(model.vocabulary.encode(text)).values["logits"][-1]))


def _chart(book: ModelBook, page: Composer) -> None:
    """Add the chart of the grammar's probability against the model's, a series for each situation,
    and the diagonal."""
    ends = page.typed_at(
        "calibration.diagonal", (HEAT_ROW, 4), [[0, DIAGONAL]], "basis", label="diagonal"
    )
    rows = slice(SHARES_ROW, END)
    series = [Series("right", ends, ends, joined=True)]
    for n, text in enumerate(SITUATIONS):
        col = LEFT + n * len(STEPS)
        series.append(Series(text, page.sheet[rows, col + 3], page.sheet[rows, col]))
    page.sheet.charts.append(
        Chart(
            CHART_ROW,
            0,
            "scatter",
            "Probability of each word: grammar and model",
            series,
            size=(520, 380),
            axes=("the model says", "the grammar's share"),
            across="0%",
        )
    )


def _counted(page: Composer, row: int) -> None:
    """Add the same over whole games, in bins of the model's probability: constants."""
    found, heads = (
        measured.stored(),
        ("sure from", "to", "words", "on average", "grammar", "came"),
    )
    page.sheet.put(row, RIGHT, "Counted over whole games", "heading")
    text = (
        f"The table groups the words of {found['games']} new games by the model's probability, "
        "beside the grammar's."
    )
    page.sheet.put(row + 1, RIGHT, text, "note")
    page.heads_at((row + 2, RIGHT), *heads, style="label")
    styles = dict.fromkeys(range(RIGHT, RIGHT + len(heads)), "basis") | {RIGHT + 2: "count"}
    page.sheet.lines(row + 3, found["bins"], styles)


def _nonsense(book: ModelBook, page: Composer, row: int) -> int:
    """Add the predictions after nonsense sentences as constants, and after the sentence on Play,
    live."""
    page.sheet.put(row, RIGHT, "The model always gives a ranking", "heading")
    text = (
        "The model also gives probabilities after impossible sentences, and may look sure even "
        "then."
    )
    page.sheet.put(row + 1, RIGHT, text, "note")
    page.heads_at(
        (row + 2, RIGHT), *("first word", "probability", "entropy", "after"), style="label"
    )
    styles = {RIGHT: "word", RIGHT + 1: "tiny", RIGHT + 2: "basis", RIGHT + 3: "text"}
    for k, words in enumerate(NONSENSE, row + 3):
        probs = softmax(logits(book, words))
        word = game.WORDS[int(probs.argmax())]
        page.sheet.lines(k, [(word, float(probs.max()), entropy(probs.tolist()), words)], styles)
    k = row + 3 + len(NONSENSE)
    probs_now = book.graph[f"lens.{len(book.views.stages) - 1}.probs"].area
    first = MATCH(MAX(probs_now), probs_now, 0)
    page.computed_at("nonsense.word", (k, RIGHT), (1, 1), lambda *_: Nth(book.graph["outputs"].area, first), "word")  # fmt: skip
    page.computed_at("nonsense.now", (k, RIGHT + 1), (1, 1), lambda *_: MAX(probs_now), "live")
    page.sheet.put(k, RIGHT + 3, "live, after your sentence on Play", "note")
    return k + 2


def softmax(scores: Sequence[float]) -> np.ndarray:
    """Probabilities of scores."""
    e = np.exp(np.array(scores) - max(scores))
    return np.asarray(e / e.sum())


def _suggestions() -> list[Suggestion]:
    """Three edits: a higher temperature, a sentence with several next words, nonsense."""
    heat, sentence = ("calibration.temperature", 0, 0), ("sentence", 0, 0)
    loss, now = ("calibration.1.loss", 0, 0), ("nonsense.now", 0, 0)
    return [
        Suggestion(
            "Type ‘3’: the loss rises from {now:.3f} to {then:.3f}. Rare words get too much probability, the others too little.",
            heat, 3, loss,
        ),
        Suggestion(
            f"Type ‘{UNSURE}’ as the sentence: the likeliest word has only {{then:.0%}}. Any of eight numbers may follow.",
            sentence, UNSURE, now,
        ),
        Suggestion(
            f"Type ‘{NONSENSE[0]}’ as the sentence: the likeliest next word has {{then:.3%}}. "
            "Tarso had {now:.3%}.",
            sentence, NONSENSE[0], now,
        ),
    ]  # fmt: skip
