"""The sheet Training: the tokens, FLOP, hours and money to train a model.

A token takes about 2 FLOP per weight forward and 4 backward, so 6 · weights · tokens in total
(Kaplan et al. 2020, section 2.1).
"""

from collections.abc import Mapping

from cellformer.engine.cells.expression import Area, expression
from cellformer.exporters.assemble.worksheets import Comparison, Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.napkin.sizes import MODELS

TRAINED = ("GPT-1", "GPT-2 XL", "GPT-3")
CORPUS = (1.0, 8.0, 370.0)  # billions of tokens, as the slides print them
FLOP = (18.0, 1900.0, 310000.0)  # in 10^18: 1.8e19, 1.9e21, 3.1e23
PASSES = (1.0, 1.0, 1.0)
CHIP, BUSY, CHIPS, PRICE = 125.0, 0.3, 1000.0, 1.5  # 10^12 FLOP/s of a V100, share used, dollars
COSTS = (None, 50e3, 2.1e6)
SECONDS, TEN = 3600, expression(10)
FACTOR_NOTE = (
    "6 · weights · tokens is {ratio:.0f} times smaller. Either training read the corpus "
    "{ratio:.0f} times, or a printed number is wrong"
)


def add(w: Workbook, rows: Mapping[str, Area]) -> None:
    """Add the sheet, with suggested edits. `rows` are the counts by name: [1, models]."""
    ws = w.sheet(
        "Training",
        "the cost of training on a napkin: tokens, FLOP, days and dollars",
        "FLOP = 6 · weights · tokens: 2 per weight forwards, 4 backwards",
        style="equation",
        widths={0: 40, **dict.fromkeys(range(1, 5), 18)},
    )
    counted = [rows["total"][MODELS.index(model)] for model in TRAINED]
    n = (1, len(TRAINED))
    ws.computed(
        "trained",
        n,
        lambda _, j: counted[j],
        ["weights (from sheet Count)"],
        TRAINED,
        style="thousands",
    )
    ws.typed("corpus", [CORPUS], ["printed corpus, 10^9 tokens"], style="input setting")
    ws.typed("passes", [PASSES], ["passes over the corpus"], style="input setting")
    price(ws, n, work(ws, n))
    suggest(w, ws)


def work(ws: Composer, n: tuple[int, int]) -> Area:
    """Add FLOP by the rule, beside the slides' numbers."""
    weights, corpus, passes = (ws.book.graph[name].area for name in ("trained", "corpus", "passes"))
    flop = ws.computed(
        "training_flop",
        n,
        lambda _, j: 6 * weights[j] * corpus[j] * passes[j] / TEN**9,
        ["6 · weights · tokens, 10^18 FLOP"],
        style="readout",
    )
    printed = ws.typed(
        "flop_printed", [FLOP], ["printed in the slides, 10^18 FLOP"], style="input setting"
    )
    ws.computed(
        "flop_ratio",
        n,
        lambda _, j: printed[j] / flop[j],
        ["printed FLOP / rule FLOP"],
        style="live",
    )
    ws.computed(
        "tokens_a_weight",
        n,
        lambda _, j: corpus[j] * TEN**9 / weights[j],
        ["tokens for each weight"],
    )
    return flop


def price(ws: Composer, n: tuple[int, int], flop: Area) -> None:
    """Chips, days, dollars."""
    ws.heading(
        "The cost of training: type the numbers of your own chips",
        "chip hours = FLOP / (FLOP/s · share used) / 3600;   days = chip hours / chips / 24",
        style="equation",
    )
    chip = ws.typed(
        "chip",
        [[CHIP], [BUSY], [CHIPS], [PRICE]],
        ["10^12 FLOP/s per chip (V100: 125)", "share of FLOP/s used", "chips", "dollars an hour"],
        style="input setting",
    )
    hours = ws.computed(
        "chip_hours",
        n,
        lambda _, j: flop[j] * TEN**6 / (chip[0] * chip[1]) / SECONDS,
        ["chip hours"],
        TRAINED,
        style="thousands",
    )
    ws.computed("days", n, lambda _, j: hours[j] / chip[2] / 24, ["days"])
    ws.computed("dollars", n, lambda _, j: hours[j] * chip[3], ["dollars"], style="thousands")
    ws.text(
        "The slides also estimate GPT-4: about 1T weights, 1-4e25 FLOP and about $50M, without a "
        "corpus."
    )


def comparisons(w: Workbook) -> list[Comparison]:
    """The slides' table of training: corpus, FLOP and cost."""
    rows = []
    for j, model in enumerate(TRAINED):
        flop, dollars = w["training_flop"][j], w["dollars"][j]
        what = f"slides: corpus of {model}, 10^9 tokens"
        rows.append(Comparison(what, CORPUS[j], w["corpus"][j], "", 0))
        ratio = w.now(w["flop_ratio"][j])
        note = (
            FACTOR_NOTE.format(ratio=ratio)
            if ratio > 1
            else ("the rule gives a quarter more FLOP than the slides")
        )
        rows.append(Comparison(f"slides: FLOP of {model}, 10^18", FLOP[j], flop, note, 0))
        if cost := COSTS[j]:
            note = "for the typed chips and price; the slides mention no chips"
            what = f"slides: cost of {model}, thousands of dollars"
            other = Comparison(what, cost / 1e3, dollars / 1000, note, 0, other="other settings")
            rows.append(other)
    return rows


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits: several passes over the corpus, a newer chip, and a larger corpus."""
    ws.suggest(
        w.suggestion(
            "Type ‘26’, for 26 passes of GPT-1 over the corpus: the printed FLOP is {then:.2f} "
            "times the FLOP by the rule, not {now:.1f} times.",
            {w["passes"][0]: 26.0},
            w["flop_ratio"][0],
        ),
        w.suggestion(
            "Type ‘312’, the speed of an A100: training GPT-3 takes {then:.0f} days on 1,000 "
            "chips, not {now:.0f}. At the same price per hour, training costs less than half.",
            {w["chip"][0]: 312.0},
            w["days"][2],
        ),
        w.suggestion(
            "Type ‘3500’: GPT-3 has {then:.0f} tokens for each weight, not {now:.1f}. Hoffmann "
            "et al. (2022) advise 20 tokens per weight. FLOP, days and dollars grow by the same "
            "factor.",
            {w["corpus"][2]: 3500.0},
            w["tokens_a_weight"][2],
        ),
    )
