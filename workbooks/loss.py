"""loss: entropy, cross-entropy and perplexity; why log loss; and the loss of a short sentence.

Every sum has its terms beside it, in bits and in nats. Look at which reports the three scoring rules
reward. Suggestion a word that the model holds impossible, another belief, another next word.
"""

import numpy as np

from exporters.book import Book, Chart, Series
from exporters.by_hand import Comparison, Table, Workbook
from exporters.story import Story, Suggestion
from workbooks._columns import columns

TOPIC = "The last step"
TITLE = "loss: cross-entropy, perplexity, and why the log of what came"
COUNTS, WEIGHTS = np.array([8, 4, 2, 1, 1]), np.array([4, 4, 4, 2, 2])  # P, Q, not yet shares
LOG_LOSS, ALIKE = 4.087, 17  # the slides' loss, and the number of words that it is like
BELIEF, DOUBT, REPORTS = 0.7, 0.55, np.linspace(0, 100, 21).round() / 100
RULES = ("linear", "quadratic", "log")
VOCABULARY = ("fluffy", "blue", "creature", "forest")
AFTER = np.array([[0.332751, 0.001746, 0.332751, 0.332751], [0.162080, 0.047138, 0.756035, 0.034747],
                  [0.324218, 0.003566, 0.424714, 0.247501]])  # fmt: skip
TARGETS = ("blue", "creature", "forest")  # what does come after fluffy, blue, creature
LEAST, LN2 = 1e-12, np.log(2)  # LN(0) has no value: a probability of 0 counts as this


def nats(p: np.ndarray) -> np.ndarray:
    """The log loss of what has probability p."""
    return -np.log(np.maximum(p, LEAST))


def coded(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Codewords for P and for Q, and what they cost where P is true, in bits; each [n_words]."""
    P, Q = COUNTS / COUNTS.sum(), weights / weights.sum()
    code_P, code_Q = nats(P) / LN2, nats(Q) / LN2
    bits = np.array([P @ code_P, P @ code_Q, P @ code_Q - P @ code_P])
    return {"counts": COUNTS, "weights": weights, "true_P": P, "model_Q": Q, "code_P": code_P,
            "code_Q": code_Q, "terms_P": P * code_P, "terms_Q": P * code_Q, "bits": bits}  # fmt: skip


def expected(belief: float) -> dict[str, np.ndarray]:
    """What a report [n_reports] costs if the word comes, if not, and what is to be expected."""
    q, found = REPORTS, {"reports": REPORTS}
    losses = ((1 - q, q), (2 * (1 - q) ** 2, 2 * q**2), (nats(q), nats(1 - q)))
    for rule, (yes, no) in zip(RULES, losses, strict=True):
        found |= {f"{rule}_yes": yes, f"{rule}_no": no, rule: belief * yes + (1 - belief) * no}
    return found


def costs(*targets: str) -> dict[str, np.ndarray]:
    """The losses of the words that come [n_tokens], and what they come to."""
    p = AFTER[range(len(targets)), [VOCABULARY.index(word) for word in targets]]
    mean = nats(p).mean()
    return {"targets": np.array(targets), "chances": p, "losses": nats(p), "inverses": 1 / p,
            "total": nats(p).sum(), "mean": mean, "mean_bits": mean / LN2, "even": np.exp(mean),
            "plain_mean": np.mean(1 / p)}  # fmt: skip


def entropy(w: Workbook, t: dict[str, Table]) -> None:
    """P and Q over five words, and what Q costs; a loss as a number of words."""
    ws = w.sheet("Entropy", "how many bits a word of P takes, with the codewords of P or of Q")
    ws.widths(dict.fromkeys(range(10), 11))
    ws.text("H(P, Q) = sum of P · -log2 Q    H(P) = H(P, P)    KL(P|Q) = H(P, Q) - H(P)    P, Q: [5]",
            "nats = bits · ln 2    perplexity = 2^bits = e^nats", style="equation")  # fmt: skip
    s = coded(WEIGHTS) | {"outcomes": np.array(["mat", "floor", "on", "ran", "sat"])}
    columns(
        ws, ws.cursor + 1, 0, t, s,
        ("outcomes", "word", "", "token"), ("counts", "came", "", "input setting"),
        ("weights", "weight", "", "input setting"),
        ("true_P", "P", "{counts}/SUM({counts_all})", "readout"),
        ("model_Q", "Q", "{weights}/SUM({weights_all})", "readout"),
        ("code_P", "-log2 P", f"-LN(MAX({{true_P}},{LEAST}))/LN(2)", ""),
        ("code_Q", "-log2 Q", f"-LN(MAX({{model_Q}},{LEAST}))/LN(2)", ""),
        ("terms_P", "P·-log2 P", "{true_P}*{code_P}", ""),
        ("terms_Q", "P·-log2 Q", "{true_P}*{code_Q}", ""),
    )  # fmt: skip
    H, cross = (f"SUM({t[x].column(0)})" for x in ("terms_P", "terms_Q"))
    sums, ws.cursor = (H, cross, f"{cross}-{H}"), ws.cursor + 1
    t["bits"] = total = ws.table("bits", s["bits"], lambda i, j: sums[j], ["bits"],
                                 ["H(P)", "H(P, Q)", "KL(P|Q)"], style="readout")  # fmt: skip
    ws.table("nats", s["bits"] * LN2, lambda i, j: f"{total.at(0, j)}*LN(2)", ["nats"])
    ws.table("power", 2 ** s["bits"], lambda i, j: f"2^{total.at(0, j)}", ["2^bits"])
    ws.heading("A loss is like guessing among so many words: read as bits, and as nats")
    columns(
        ws, ws.cursor, 0, t,
        {"loss": LOG_LOSS, "as_bits": 2**LOG_LOSS, "as_nats": np.exp(LOG_LOSS), "alike": ALIKE,
         "in_bits": np.log2(ALIKE), "in_nats": np.log(ALIKE)},
        ("loss", "a loss", "", "input setting"), ("as_bits", "2^loss", "2^{loss}", "readout"),
        ("as_nats", "e^loss", "EXP({loss})", "readout"), ("alike", "n words", "", "input setting"),
        ("in_bits", "log2 n", "LN({alike})/LN(2)", ""), ("in_nats", "ln n", "LN({alike})", ""),
    )  # fmt: skip


def scoring(w: Workbook, t: dict[str, Table]) -> None:
    """What each report is expected to cost under three rules, and which report costs least."""
    ws = w.sheet("Scoring", "a word comes with probability p: which report q costs least?")
    ws.widths(dict.fromkeys(range(10), 11))
    ws.text("loss to expect = p · if it comes + (1 - p) · if not    [n_reports]", style="equation")
    t["belief"] = ws.table("belief", BELIEF, None, ["belief p"], style="input setting")
    top, s, mean = ws.cursor, expected(BELIEF), "{belief_top}*{%s_yes}+(1-{belief_top})*{%s_no}"
    columns(
        ws, top + 18, 0, t, s,
        ("reports", "report q", "", "input setting"),
        ("linear_yes", "1 - q", "1-{reports}", ""), ("linear_no", "q", "{reports}", ""),
        ("linear", "linear", mean.replace("%s", "linear"), "readout"),
        ("quadratic_yes", "2(1-q)²", "2*(1-{reports})^2", ""), ("quadratic_no", "2q²", "2*{reports}^2", ""),
        ("quadratic", "quadratic", mean.replace("%s", "quadratic"), "readout"),
        ("log_yes", "-ln q", f"-LN(MAX({{reports}},{LEAST}))", ""),
        ("log_no", "-ln(1 - q)", f"-LN(MAX(1-{{reports}},{LEAST}))", ""),
        ("log", "log", mean.replace("%s", "log"), "readout"),
    )  # fmt: skip
    q, ws.cursor = t["reports"].column(0), top - 1
    t["least"] = ws.table("least", [min(s[x]) for x in RULES], lambda i, j:
                          f"MIN({t[RULES[j]].column(0)})", ["least"], RULES)  # fmt: skip
    t["best"] = ws.table("best", [REPORTS[s[x].argmin()] for x in RULES], lambda i, j:
                         f"INDEX({q},MATCH({t['least'].at(0, j)},{t[RULES[j]].column(0)},0))",
                         ["at report"], style="readout")  # fmt: skip
    for k, rule in enumerate(RULES):  # what the log rule has at 0 and 1 is far above the picture
        rows = slice(1, -1) if rule == "log" else slice(None)
        ws.chart(Chart(top + 4, 3 * k, "scatter", f"{rule}: loss to expect of each report", [
            Series(rule, t["reports"].part(rows), t[rule].part(rows))], (250, 240), joined=True,
            number="0.0"))  # fmt: skip


def sentence(w: Workbook, t: dict[str, Table]) -> None:
    """The loss of the words that do come, and what their mean is worth."""
    ws, s = w.sheet("Sentence", "what each next word costs, and the mean"), costs(*TARGETS)
    ws.widths({0: 14, **dict.fromkeys(range(1, 9), 11)})
    ws.text("loss = -ln p    [n_tokens]    perplexity = e^mean of the losses", style="equation")
    ws.cursor = top = ws.cursor + 1
    t["after"] = ws.table("after", AFTER, None, [f"after {x}" for x in VOCABULARY[:3]], VOCABULARY)
    words = f"{t['after'].at(-1, 0, True)}:{t['after'].at(-1, 3, True)}"
    columns(
        ws, top, 5, t, s,
        ("targets", "next word", "", "token"),
        ("chances", "p", f"MAX(SUMIF({words},{{targets}},{{after_row}}),{LEAST})", ""),
        ("losses", "loss", "-LN({chances})", "readout"), ("inverses", "1 / p", "1/{chances}", ""),
    )  # fmt: skip
    columns(
        ws, ws.cursor + 1, 1, t, s,
        ("total", "sum", "SUM({losses_all})", ""), ("mean", "mean", "AVERAGE({losses_all})", ""),
        ("mean_bits", "in bits", "{mean}/LN(2)", ""), ("even", "perplexity", "EXP({mean})", "readout"),
        ("plain_mean", "mean of 1 / p", "AVERAGE({inverses_all})", ""),
    )  # fmt: skip


def book() -> Book:
    """The workbook."""
    w, t = Workbook("loss"), dict[str, Table]()
    for sheet in (entropy, scoring, sentence):
        sheet(w, t)
    note = f"the slides take bits; in nats, as PyTorch has it, it would be {np.exp(LOG_LOSS):.1f}"
    w.compare([
        Comparison("perplexity of a log loss of 4.087", ALIKE, t["as_bits"], note=note, decimals=0),
        Comparison("log loss of guessing among 17 words", LOG_LOSS, t["in_bits"], decimals=3),
    ])  # fmt: skip
    counts, (cross, KL) = t["counts"].column(0), (t["bits"].at(0, j) for j in (1, 2))
    size = f"SUMPRODUCT({counts},{t['code_Q'].column(0)})/SUM({counts})"
    w.checks([
        ("P's own codewords are the shortest: KL(P|Q) is not below 0", f"{KL}>-0.000000001"),
        ("the mean log loss over all that came is H(P, Q)", f"ABS({size}-{cross})<0.000000001"),
    ])  # fmt: skip
    return w.done(story())


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    before, after = (coded(x)["bits"][1] for x in (WEIGHTS, WEIGHTS * (WEIGHTS.cumsum() > 4)))
    best = {x: [float(REPORTS[expected(p)[x].argmin()]) for p in (BELIEF, DOUBT)] for x in RULES}
    was, now = (costs(*words)["even"] for words in (TARGETS, ("creature", *TARGETS[1:])))
    return Story(
        title=TITLE, source="After M. Sinclair, Transformers (slides), and lecture notes on transformers.",
        about=[
            "Training makes the loss small: -log of the share that the model gave to what came. Why the log? If a report",
            "cost 1 - q, saying 1 for the likeliest would pay; with the log, or Brier's square, one's belief pays. The",
            "slides write log and take bits. The notes write a sum of losses; their PyTorch call takes the mean, in nats.",
            "Huffman codewords are -log2 P long, as the slides have it, only where these are whole, as built here.",
        ],
        look=[
            "Entropy: what a wrong Q costs. Scoring: three rules, and their best reports. Sentence: one dear word.",
            f"A probability of 0 counts as {LEAST:g}: its loss is without end, and LN(0) has no value.",
        ],
        tries=[
            Suggestion(f"Type 0: `mat`, which comes half the time, is held impossible; H(P, Q) rises from {before:.3f} "
                f"to {after:.1f} bits.",
                ("weights", 0, 0), 0.0, ("bits", 0, 1), float(after)),
            Suggestion(f"Type {DOUBT}: by the linear rule it still pays to report {best['linear'][1]:.0f}; by the log rule, "
                f"{best['log'][1]:.2f} instead of {best['log'][0]:.2f}.",
                ("belief", 0, 0), DOUBT, ("best", 0, 2), best["log"][1]),
            Suggestion(f"Type creature: perplexity falls from {was:.1f}, worse than a guess among {len(VOCABULARY)}, "
                f"to {now:.1f}.",
                ("targets", 0, 0), "creature", ("even", 0, 0), float(now)),
        ],
    )  # fmt: skip
