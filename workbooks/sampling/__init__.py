"""sampling: from logits to one word, a step per column, and a thousand samples beside the
probabilities.

The kept probabilities are laid end to end from 0 to 1, and a random number falls on a word. Look at
what each step drops. Try a high temperature, then 0, then neither top-k nor top-p.
"""

from collections.abc import Callable, Sequence

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import (
    COUNTIF,
    EXP,
    IF,
    IFERROR,
    INDEX,
    MATCH,
    MAX,
    MIN,
    OR,
    RANK,
    SQRT,
    SUM,
    SUMPRODUCT,
)
from cellformer.exporters.assemble.worksheets import Comparison, Workbook, near
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Columns, Composer
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.cat_sat import weights
from cellformer.workbooks.sampling import last_row

TOPIC, AFTER, LEVEL = "The next word", "final-step", 1
TITLE = "sampling: from logits to one word, and a thousand draws"
WORDS, LOGITS = weights.WORDS, weights.PRINTED_LOGITS
NUMBERS = np.random.default_rng(0).integers(0, 10_000, 1000) / 10_000
TEN_LOGITS = (-0.48, 0.27, 2.01, -0.91, 0.35, -1.04, -1.80, 1.03, 0.60, 0.36)
TEN_PRINTED = (0.04, 0.07, 0.42, 0.02, 0.08, 0.02, 0.01, 0.16, 0.10, 0.08)
FIRST_PRINTED = (0.32, 0.24, 0.16)


def book() -> Book:
    """The workbook."""
    w = Workbook("sampling")
    choice(w.sheet("Choice", "how one word is chosen: each column is a step, each row a word"))
    draws(
        w.sheet(
            "Draws", "1,000 random numbers, the word for each number, and the count of each word"
        )
    )
    ten_words(w.sheet("Ten words", "the essay's second list of logits, at temperature 1"))
    last_row.add(w.sheet(last_row.SHEET, last_row.PURPOSE))
    w.compare(
        [
            *last_row.printed(w),
            *comparisons(w, "section 5", w["ranked"], w["probs"], FIRST_PRINTED),
            *comparisons(w, "section 6", w["names_10"], w["shares_10"], TEN_PRINTED),
        ],
        "QKV Attention",
    )
    w.checks(
        [
            ("the probabilities of all words sum to 1", near(SUM(w["probs"].fixed))),
            ("the shares of the kept words sum to 1", near(SUM(w["kept"].fixed))),
            ("every draw is counted once", SUM(w["counts"].fixed) == len(NUMBERS)),
        ]
    )
    return w.done(story(w))


# --- one word is chosen ---------------------------------------------------------------------


def choice(ws: Composer) -> None:
    """Add the sheet that chooses one word."""
    ws.widths({0: 12, 4: 6, **dict.fromkeys((1, 2, 3, *range(5, 16)), 9)})
    ws.text(
        "exp = e^((logit - largest) / temperature)    prob = exp / sum of exps    "
        "share = exp / sum of the exps that top-k keeps",
        "top-p keeps a word if the shares before it sum to less than top-p    "
        "kept = share / sum of the kept shares    each [n_words]",
        style="equation",
    )
    top, n = ws.cursor + 1, len(WORDS)
    one = ws.columns(1, top)
    for name, value in {"temperature": 1.0, "top_k": 10, "top_p": 0.9, "random": 0.66}.items():
        one.typed(name, name.replace("_", "-"), [value], "input setting")
    ranking(ws.columns(n, top + 3))
    steps = ws.columns(n, top + 3, left=4)
    by_rank(steps)
    exponentials(steps)
    top_k(steps)
    top_p(steps)

    words, flags, starts = ws["ranked"], ws["in_p"], ws["starts"]
    found = MATCH(MAX(ws["random"], 0), starts.fixed, 1)
    word = INDEX(words.fixed, MIN(found, SUM(flags.fixed)))
    ws.columns(1, top, left=5).computed("chosen", "chosen", lambda i: word, "word")
    all_steps = ws.rect(words)._replace(right=ws.rect(starts).right)
    ws.mark(Area(ws.sheet, all_steps), "stale", flags[0].fixed_cols == 0)  # what is dropped


def ranking(columns: Columns) -> None:
    """Add the words, their logits, and their ranks: each [n_words, 1]."""
    columns.typed("words", "word", WORDS, "token")
    logits = columns.typed("logits", "logit", LOGITS)

    def rank(i: int) -> Expression:
        """The rank of a logit; the first of equal ones comes first."""
        return RANK(logits[i], logits.fixed) + COUNTIF(logits[: i + 1].fixed_first, logits[i]) - 1

    columns.computed("ranks", "rank", rank, "id")


def by_rank(columns: Columns) -> None:
    """Add the words and logits again, most likely first."""
    ws, places = columns.ws, columns.typed("places", "rank", range(1, columns.n + 1), "row number")

    def ordered(column: Area) -> Callable[[int], Expression]:
        return lambda i: INDEX(column.fixed, MATCH(places[i], ws["ranks"].fixed, 0))

    columns.computed("ranked", "word", ordered(ws["words"]), "word")
    columns.computed("scores", "logit", ordered(ws["logits"]))


def exponentials(columns: Columns) -> None:
    """Add the exponentials of the logits over the temperature; at temperature 0, 1 for the first
    and 0 for others."""
    ws = columns.ws
    temperature, places, logits = ws["temperature"].fixed, ws["places"], ws["scores"]

    def exponential(i: int) -> Expression:
        is_first = IF(places[i] == 1, 1, 0)
        return IFERROR(IF(temperature > 0, EXP(scaled[i]), is_first), is_first)

    scaled = columns.computed(
        "scaled",
        "÷ T",
        lambda i: (logits[i] - logits[0].fixed) / IF(temperature > 0, temperature, 1),
    )
    exps = columns.computed("exps", "exp", exponential)
    columns.computed("probs", "prob", lambda i: exps[i] / SUM(exps.fixed), "readout")


def top_k(columns: Columns) -> None:
    """Add the words that top-k keeps, and their probabilities; 0 keeps all."""
    k, places, exps = (columns.ws[name] for name in ("top_k", "places", "exps"))

    in_k = columns.computed(
        "in_k",
        "in top-k",
        lambda i: IFERROR(IF(OR(k.fixed < 1, places[i] <= k.fixed), 1, 0), 1),
        "id",
    )
    columns.computed(
        "shares", "share", lambda i: in_k[i] * exps[i] / SUMPRODUCT(in_k.fixed, exps.fixed)
    )


def top_p(columns: Columns) -> None:
    """Add the words that top-p keeps, their probabilities, and the start of each between 0 and
    1."""
    ws = columns.ws
    p, places, in_k, shares = ws["top_p"].fixed, ws["places"], ws["in_k"], ws["shares"]

    def is_in(i: int) -> Expression:
        return IF(OR(places[i] == 1, sums[i] - shares[i] < p), in_k[i], 0)

    sums = columns.computed("sums", "sum", lambda i: SUM(shares[: i + 1].fixed_first))
    in_p = columns.computed("in_p", "in top-p", is_in, "id")
    kept = columns.computed(
        "kept",
        "kept",
        lambda i: in_p[i] * shares[i] / SUMPRODUCT(in_p.fixed, shares.fixed),
        "readout",
    )
    columns.computed("starts", "from", lambda i: SUM(kept[: i + 1].fixed_first) - kept[i])


# --- a thousand draws -----------------------------------------------------------------------


def draws(ws: Composer) -> None:
    """Add a thousand random numbers, the words that they fall on, and how often each word came."""
    ws.widths({0: 10, 1: 9, 2: 3, **dict.fromkeys(range(3, 8), 11)})
    ws.text("drawn = count / 1,000    spread = sqrt(kept · (1 - kept) / 1,000)", style="equation")
    top, n = ws.cursor + 1, len(WORDS)
    words, kept, starts = ws["ranked"], ws["kept"], ws["starts"]

    columns = ws.columns(len(NUMBERS), top)
    numbers = columns.typed("numbers", "number", NUMBERS, "input setting")
    drawn_words = columns.computed(
        "draws", "word", lambda i: INDEX(words.fixed, MATCH(numbers[i], starts.fixed, 1)), "word"
    )

    columns = ws.columns(n, top, left=3)
    names = columns.computed("names", "word", lambda i: words[i], "word")
    targets = columns.computed("targets", "kept", lambda i: kept[i], "readout")
    counts = columns.computed(
        "counts", "count", lambda i: COUNTIF(drawn_words.fixed, names[i]), "id"
    )
    drawn = columns.computed("drawn", "drawn", lambda i: counts[i] / SUM(counts.fixed), "readout")
    columns.computed(
        "spreads", "spread", lambda i: SQRT(targets[i] * MAX(0, 1 - targets[i]) / SUM(counts.fixed))
    )
    ws.chart(
        Chart(
            top - 1,
            9,
            "column",
            "Each word's kept share and share of draws",
            [Series("kept", names, targets), Series("drawn", names, drawn)],
            size=(560, 300),
            shares=True,
        )
    )
    ws.sheet.print_area = Rect(0, top + n + 3, 0, 18)  # not a thousand rows


# --- what the essay prints ------------------------------------------------------------------


def ten_words(ws: Composer) -> None:
    """The ten logits that the essay prints for its other example."""
    ws.text("exp = e^logit    share = exp / sum of exps    each [10]", style="equation")
    ws.text(
        "The essay calls these words the first ten of a longer list. But its printed shares of "
        "the ten words sum to 1."
    )
    columns = ws.columns(10, ws.cursor + 1)
    names = columns.typed("names_10", "word", WORDS[:10], "token")
    logits = columns.typed("logits_10", "logit", TEN_LOGITS)
    exps = columns.computed("exps_10", "exp", lambda i: EXP(logits[i]))
    shares = columns.computed("shares_10", "share", lambda i: exps[i] / SUM(exps.fixed), "readout")
    ws.chart(
        Chart(
            6,
            6,
            "column",
            "The shares of the ten words",
            [Series("share", names, shares)],
            size=(600, 320),
            shares=True,
        )
    )


def comparisons(
    w: Workbook, section: str, words: Area, shares: Area, printed: Sequence[float]
) -> list[Comparison]:
    """The essay's numbers for the first words, with the reasons for differences."""
    found = []
    for i, p in enumerate(printed):
        share = w.now(shares[i])
        note = f"printed {p:.2f}; the softmax of the printed logits gives {share:.4f}"
        found.append(
            Comparison(
                f"{section}, probability of {w.now(words[i])}",
                p,
                shares[i],
                note if abs(p - share) > 0.005 else "",
                2,
                f"QKV Attention, {section}",
            )
        )
    return found


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="Based on L. Erzegovesi, QKV Attention and The Final Step (2026), M. Sinclair, "
        "Transformers, and lecture notes on transformers.",
        about=[
            "A language model computes a number for each word, the logit. A word with a higher "
            "logit is more probable.",
            "This workbook turns twenty logits into one word. Each column is a step: "
            "temperature, softmax, top-k, top-p and a random number.",
            "The logits come from the essay's example: twenty words that may follow ‘the cat sat’.",
            "Why it matters: these four settings decide whether the same model writes dull or "
            "wild text.",
            "The model divides the logits by the temperature. Their order stays the same. "
            "Temperature 0 means greedy: the likeliest word always wins.",
            "Top-k keeps the k likeliest words. Top-p, or nucleus sampling (Holtzman et al. "
            "2020), keeps the fewest words with a total share of at least p.",
        ],
        look=[
            "Read the sheet Choice from left to right. On the line from 0 to 1, the column "
            "‘from’ gives the start of each word's share.",
            "The sheet Draws shows a thousand random numbers, and the count of each word. "
            "‘spread’ is the standard deviation: about two of three counts lie within one spread "
            "of the expected count.",
            "The sheet Last row shows the lecture notes' small model of ChatGPT, with every "
            "product up to the next word. The sizes of ChatGPT's tables stand below.",
            "The sheet Ten words shows the logits that the essay prints for its second example, "
            "and the shares of the ten words.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: a high temperature, temperature 0, and no word dropped."""
    temperature, chosen, counts = w["temperature"][0], w["chosen"][0], w["counts"][0]
    first_share = w["kept"][0]
    high = {temperature: 2.0}
    nothing_dropped = {w["top_k"][0]: 0.0, w["top_p"][0]: 1.0}
    now, hot = w.now, w.edited(high)
    return [
        w.suggestion(
            f"Type ‘2’: {hot(w['in_p']).sum():.0f} words remain, not {now(w['in_p']).sum():.0f}. "
            "The same random number now selects ‘{then}’, not ‘{now}’.",
            high,
            chosen,
        ),
        w.suggestion(
            "Type ‘0’ (greedy): ‘mat’ wins all {then:.0f} draws. Before, ‘mat’ won {now:.0f} "
            "draws.",
            {temperature: 0.0},
            counts,
        ),
        w.suggestion(
            "Type ‘0’ as top-k and ‘1’ as top-p: all words remain. The share of ‘mat’ is then "
            "{then:.1%}, not {now:.1%}.",
            nothing_dropped,
            first_share,
        ),
    ]
