"""loss: entropy, cross-entropy and perplexity; why log loss; and the loss of a short sentence.

Every sum has its terms beside it, in bits and in nats. Look at which reports the three scoring
rules reward. Try a word that the model gives probability 0, another belief, another next word.
"""

from collections.abc import Callable
from typing import NamedTuple

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import (
    ABS,
    AVERAGE,
    EXP,
    INDEX,
    LN,
    MATCH,
    MAX,
    MIN,
    SUM,
    SUMIF,
    SUMPRODUCT,
)
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.assemble.worksheets import Comparison, Workbook
from cellformer.exporters.compose.book import Book, Chart, Series
from cellformer.exporters.compose.composer import Columns, Composer
from cellformer.exporters.compose.story import Story, Suggestion

TOPIC, AFTER, LEVEL = "The next word", "sampling", 1
TITLE = "loss: cross-entropy, perplexity, and the reason for the logarithm"
OUTCOMES = ("mat", "floor", "on", "ran", "sat")
COUNTS, WEIGHTS = (8, 4, 2, 1, 1), (4, 4, 4, 2, 2)  # P, Q, not yet shares
LOG_LOSS, ALIKE = 4.087, 17  # the slides' loss, and the number of words that it is like
BELIEF, DOUBT = 0.7, 0.55
REPORTS = [k / 20 for k in range(21)]
VOCABULARY = ("fluffy", "blue", "creature", "forest")
CHANCES = {
    "fluffy": (0.332751, 0.001746, 0.332751, 0.332751),
    "blue": (0.162080, 0.047138, 0.756035, 0.034747),
    "creature": (0.324218, 0.003566, 0.424714, 0.247501),
}
TARGETS = ("blue", "creature", "forest")  # what does come after fluffy, blue, creature
LEAST = 1e-12  # LN(0) has no value: a probability of 0 counts as this
SETTING = "input setting"


class Rule(NamedTuple):
    """A scoring rule: the cost of a report q if the word comes and if not, as formula and as
    text."""

    name: str
    if_it_comes: Callable[[Area], Expression]
    if_not: Callable[[Area], Expression]
    heads: tuple[str, str]


def nats(p: Expression) -> Expression:
    """The log loss for a probability p, in nats."""
    return -LN(MAX(p, LEAST))


RULES = (
    Rule("linear", lambda q: 1 - q, lambda q: q, ("1 - q", "q")),
    Rule("quadratic", lambda q: 2 * (1 - q) ** 2, lambda q: 2 * q**2, ("2(1-q)²", "2q²")),
    Rule("log", nats, lambda q: nats(1 - q), ("-ln q", "-ln(1 - q)")),
)
RULE_NAMES = [rule.name for rule in RULES]


def book() -> Book:
    """The workbook."""
    w = Workbook("loss")
    ws = w.sheet("Entropy", "the bits per word of P, with the codewords of P or of Q")
    entropy(ws)
    alike(ws)
    scoring(
        w.sheet(
            "Scoring", "a word comes with probability p: which reported probability q costs least?"
        )
    )
    sentence(w.sheet("Sentence", "the cost of each next word, and the mean cost"))
    in_nats = w.now(w["as_nats"])
    note = (
        "the slides use bits. A loss of 4.087 nats (the unit of PyTorch) gives a perplexity of "
        f"{in_nats:.1f}"
    )
    w.compare(
        [
            Comparison("perplexity of a log loss of 4.087", ALIKE, w["as_bits"], note, 0),
            Comparison("log loss of a guess among 17 words", LOG_LOSS, w["in_bits"], decimals=3),
        ],
        "Slides, Perplexity",
    )
    counts, cross, divergence = w["counts"], w["bits"][1], w["bits"][2]
    mean_loss = SUMPRODUCT(counts, w["code_Q"]) / SUM(counts)
    w.checks(
        [
            ("P's own codewords are the shortest, so KL(P|Q) is never below 0", divergence > -NEAR),
            (
                "H(P, Q) is the mean log loss over all words that really came",
                ABS(mean_loss - cross) < NEAR,
            ),
        ]
    )
    return w.done(story(w))


# --- entropy --------------------------------------------------------------------------------


def entropy(ws: Composer) -> None:
    """Add P and Q over five words, and the cost of Q."""
    ws.widths(dict.fromkeys(range(10), 11))
    ws.text(
        "H(P, Q) = sum of P · -log2 Q    H(P) = H(P, P)    KL(P|Q) = H(P, Q) - H(P)    P, Q: [5]",
        "nats = bits · ln 2    perplexity = 2^bits = e^nats",
        style="equation",
    )
    columns = ws.columns(len(OUTCOMES), ws.cursor + 1)
    words = columns.typed("outcomes", "word", OUTCOMES, "token")
    counts = columns.typed("counts", "came", COUNTS, SETTING)
    weights = columns.typed("weights", "weight", WEIGHTS, SETTING)
    P = columns.computed("true_P", "P", lambda i: counts[i] / SUM(counts.fixed), "readout")
    Q = columns.computed("model_Q", "Q", lambda i: weights[i] / SUM(weights.fixed), "readout")
    code_P = columns.computed("code_P", "-log2 P", lambda i: nats(P[i]) / LN(2))
    code_Q = columns.computed("code_Q", "-log2 Q", lambda i: nats(Q[i]) / LN(2))
    terms_P = columns.computed("terms_P", "P·-log2 P", lambda i: P[i] * code_P[i])
    terms_Q = columns.computed("terms_Q", "P·-log2 Q", lambda i: P[i] * code_Q[i])

    ws.cursor += 1
    H, cross = SUM(terms_P), SUM(terms_Q)
    sums = {"H(P)": H, "H(P, Q)": cross, "KL(P|Q)": cross - H}
    shape, terms, heads = (1, len(sums)), list(sums.values()), list(sums)
    ws.chart(
        Chart(
            6,
            10,
            "column",
            "True shares P, and a model’s shares Q",
            [Series("P", words, P), Series("Q", words, Q)],
            size=(410, 300),
            shares=True,
        )
    )
    bits = ws.computed("bits", shape, lambda _, j: terms[j], ["bits"], heads, style="readout")
    ws.computed("nats", shape, lambda _, j: bits[j] * LN(2), ["nats"])
    ws.computed("power", shape, lambda _, j: 2 ** bits[j], ["2^bits"])


def alike(ws: Composer) -> None:
    """A loss as an equivalent number of equally likely words."""
    ws.heading("A loss as a number of equally likely words: from bits, and from nats")
    columns = ws.columns(1, ws.cursor)
    loss = columns.typed("loss", "a loss", [LOG_LOSS], SETTING)
    columns.computed("as_bits", "2^loss", lambda _: 2**loss, "readout")
    columns.computed("as_nats", "e^loss", lambda _: EXP(loss), "readout")
    n = columns.typed("alike", "n words", [ALIKE], SETTING)
    columns.computed("in_bits", "log2 n", lambda _: LN(n) / LN(2))
    columns.computed("in_nats", "ln n", lambda _: LN(n))


# --- scoring --------------------------------------------------------------------------------


def scoring(ws: Composer) -> None:
    """Add the expected cost of each report under three rules, and which report costs least."""
    ws.widths(dict.fromkeys(range(10), 12))
    ws.text("expected loss = p · if it comes + (1 - p) · if not    [n_reports]", style="equation")
    belief = ws.typed("belief", BELIEF, ["belief p"], style=SETTING)
    top = ws.cursor
    columns = ws.columns(len(REPORTS), top + 18)
    reports = columns.typed("reports", "report q", REPORTS, SETTING)
    costs = [expected_cost(columns, rule, belief, reports) for rule in RULES]

    ws.cursor, shape = top - 1, (1, len(RULES))
    least = ws.computed("least", shape, lambda _, j: MIN(costs[j]), ["least"], RULE_NAMES)
    ws.computed(
        "best",
        shape,
        lambda _, j: INDEX(reports, MATCH(least[j], costs[j], 0)),
        ["at report"],
        style="readout",
    )
    for k, (rule, cost) in enumerate(zip(RULES, costs, strict=True)):
        # what the log rule has at 0 and 1 is far above the picture
        shown = slice(1, -1) if rule.name == "log" else slice(None)
        series = Series(rule.name, reports[shown], cost[shown])
        ws.chart(
            Chart(
                top + 4,
                3 * k,
                "scatter",
                f"{rule.name}: expected loss of each report",
                [series],
                size=(255, 240),
                joined=True,
                number="0.0",
            )
        )


def expected_cost(columns: Columns, rule: Rule, belief: Area, reports: Area) -> Area:
    """Add the cost of each report if the word comes, if not, and the expected cost."""
    p = belief.fixed
    yes = columns.computed(
        f"{rule.name}_yes", rule.heads[0], lambda i: rule.if_it_comes(reports[i])
    )
    no = columns.computed(f"{rule.name}_no", rule.heads[1], lambda i: rule.if_not(reports[i]))
    return columns.computed(rule.name, rule.name, lambda i: p * yes[i] + (1 - p) * no[i], "readout")


# --- a sentence -----------------------------------------------------------------------------


def sentence(ws: Composer) -> None:
    """Add the loss of the words that come, and the perplexity of their mean."""
    ws.widths({0: 14, **dict.fromkeys(range(1, 9), 11)})
    ws.text("loss = -ln p    [n_tokens]    perplexity = e^mean of the losses", style="equation")
    top = ws.cursor + 1
    words = ws.typed("next_words", [VOCABULARY], style="label", top=top)
    ws.cursor = top + 1  # the words head the table
    after = ws.typed("after", list(CHANCES.values()), [f"after {word}" for word in CHANCES])
    columns = ws.columns(len(TARGETS), top, left=5)
    targets = columns.typed("targets", "next word", TARGETS, "token")

    chances = columns.computed(
        "chances", "p", lambda i: MAX(SUMIF(words.fixed, targets[i], after[i, :]), LEAST)
    )
    losses = columns.computed("losses", "loss", lambda i: -LN(chances[i]), "readout")
    inverses = columns.computed("inverses", "1 / p", lambda i: 1 / chances[i])
    columns = ws.columns(1, ws.cursor + 1, left=1)
    columns.computed("total", "sum", lambda _: SUM(losses.fixed))
    mean = columns.computed("mean", "mean", lambda _: AVERAGE(losses.fixed))
    columns.computed("mean_bits", "in bits", lambda _: mean / LN(2))
    columns.computed("even", "perplexity", lambda _: EXP(mean), "readout")
    columns.computed("plain_mean", "mean of 1 / p", lambda _: AVERAGE(inverses.fixed))
    ws.chart(
        Chart(
            top + 8,
            6,
            "column",
            "Cost of each word",
            [Series("loss", targets, losses)],
            size=(520, 260),
            number="0.0",
        )
    )


# --- the start sheet ------------------------------------------------------------------------


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="Based on M. Sinclair, Transformers (slides), and lecture notes on transformers.",
        about=[
            "Training reduces one number, the loss. The loss is minus the logarithm of the "
            "probability that the model gave to the actual next word.",
            "The loss is 0 if the model was certain and right. The loss is large if the model "
            "gave the actual word almost no probability.",
            "Why the logarithm? Think of a forecaster whose pay depends on the result.",
            "If a reported probability q cost 1 - q, the cheapest report would be 1 for the "
            "likeliest word, even for an unsure forecaster. With the logarithm, or a squared "
            "error (Brier's rule), honesty is cheapest.",
            "Why it matters: a model trained with this loss learns more than the most likely "
            "word. The model also learns how sure to be.",
            "You can choose the unit: bits (logarithms to base 2) or nats (to base e). This "
            "workbook shows both.",
            "Perplexity turns a loss into a number of words: a guess among so many equally "
            "likely words has the same loss.",
            "If each word had a code of 0s and 1s, the best code would have -log2 P digits.",
        ],
        errata=[
            "The slides use bits, and the notes use nats. The notes write a sum over the words, "
            "but their code computes the mean.",
        ],
        look=[
            "The sheet Entropy shows the bits per word with the true shares P, and the "
            "additional bits with a model's shares Q.",
            "The sheet Scoring shows three rules. For each rule, you see the expected cost of "
            "each report, and the cheapest report.",
            "The sheet Sentence shows the cost of every next word, and the mean cost. A single "
            "unlikely word can cause most of the cost.",
            "A probability of 0 has an infinite cost. LN(0) is an error in a spreadsheet, so a "
            f"probability of 0 counts as {LEAST:g} here.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: a word with probability 0, a weaker belief, another next word."""
    cross, perplexity = w["bits"][1], w["even"][0]
    linear, _, log = (w["best"][k] for k in range(len(RULES)))
    doubtful = {w["belief"][0]: DOUBT}
    doubt = w.edited(doubtful)
    return [
        w.suggestion(
            "Type ‘0’: the model now gives ‘mat’ no probability, although ‘mat’ comes half the "
            "time. H(P, Q) rises from {now:.3f} to {then:.1f} bits.",
            {w["weights"][0]: 0.0},
            cross,
        ),
        w.suggestion(
            f"Type ‘{DOUBT}’: under the linear rule the best report is still "
            f"{doubt(linear):.0f}. Under the log rule the best report is {{then:.2f}}, not "
            "{now:.2f}.",
            doubtful,
            log,
        ),
        w.suggestion(
            "Type ‘creature’: perplexity falls from {now:.1f} to {then:.1f}. The old perplexity "
            f"was worse than a guess among {len(VOCABULARY)} words.",
            {w["targets"][0]: "creature"},
            perplexity,
        ),
    ]
