"""sampling: from logits to one word, a step per column, and a thousand draws beside the shares.

What is kept of the shares lies end to end from 0 to 1, and a random number falls on a word. Look at
what each step drops. Suggestion a high temperature, then 0, then neither top-k nor top-p.
"""

from collections.abc import Sequence

import numpy as np

from engine.models.choosing import Sampling
from exporters.book import Book, Chart, Series
from exporters.by_hand import Comparison, Table, Workbook, near
from exporters.story import Story, Suggestion
from workbooks import cat_sat
from workbooks._columns import columns

TOPIC = "The last step"
TITLE = "sampling: from logits to one word, and a thousand draws"
WORDS, LOGITS = np.array(cat_sat.WORDS), np.array(cat_sat.PRINTED_LOGITS)
HOW, R = Sampling(temperature=1.0, top_k=10, top_p=0.9), 0.66  # R: the random number, in [0, 1)
NUMBERS = np.random.default_rng(0).integers(0, 10_000, 1000) / 10_000
TEN_LOGITS = np.array([-0.48, 0.27, 2.01, -0.91, 0.35, -1.04, -1.80, 1.03, 0.60, 0.36])
TEN_PRINTED = (0.04, 0.07, 0.42, 0.02, 0.08, 0.02, 0.01, 0.16, 0.10, 0.08)


def steps(how: Sampling) -> dict[str, np.ndarray]:
    """What is made of the logits up to the draw, each [n_words], the likeliest first."""
    order, place = np.argsort(-LOGITS, kind="stable"), np.arange(1, len(LOGITS) + 1)
    scores = LOGITS[order]
    scaled = (scores - scores[0]) / (how.temperature or 1)
    exps = np.exp(scaled) if how.temperature else 1.0 * (place == 1)
    in_k = (place <= how.top_k) | (how.top_k == 0)
    shares = in_k * exps / (in_k * exps).sum()
    in_p = in_k & (shares.cumsum() - shares < how.top_p)
    kept = in_p * shares / (in_p * shares).sum()
    return {
        "words": WORDS, "logits": LOGITS, "ranks": place[np.argsort(order)], "places": place,
        "ranked": WORDS[order], "scores": scores, "scaled": scaled, "exps": exps,
        "probs": exps / exps.sum(), "in_k": 1 * in_k, "shares": shares, "sums": shares.cumsum(),
        "in_p": 1 * in_p, "kept": kept, "starts": kept.cumsum() - kept,
    }  # fmt: skip


def chosen(how: Sampling, *numbers: float) -> np.ndarray:
    """The words that the engine chooses with random numbers: the cells have to say the same."""
    return WORDS[[how.choose(LOGITS, r) for r in numbers]]


def choice(w: Workbook, t: dict[str, Table]) -> None:
    """The sheet that chooses one word."""
    ws, s = w.sheet("Choice", "one word is chosen: a column is a step, a row is a word"), steps(HOW)
    ws.widths({0: 12, 4: 6, **dict.fromkeys((1, 2, 3, *range(5, 16)), 9)})
    ws.text("exp = e^((logit - largest) / temperature)    prob = exp / sum of exps    "
            "share = exp / sum of the exps that top-k keeps",
            "top-p keeps a word if the shares before it sum to less than top-p    "
            "kept = share / sum of the kept shares    each [n_words]", style="equation")  # fmt: skip
    top, given = ws.cursor + 1, vars(HOW) | {"random": R}
    columns(ws, top, 0, t, given, *((x, x.replace("_", "-"), "", "input setting") for x in given))
    columns(ws, top + 3, 0, t, s, ("words", "word", "", "token"), ("logits", "logit", "", "input"),
            ("ranks", "rank", "RANK({logits},{logits_all})+COUNTIF({logits_down},{logits})-1", "id"))  # fmt: skip
    columns(
        ws, top + 3, 4, t, s,
        ("places", "rank", "", "row number"),
        ("ranked", "word", "INDEX({words_all},MATCH({places},{ranks_all},0))", "word"),
        ("scores", "logit", "INDEX({logits_all},MATCH({places},{ranks_all},0))", ""),
        ("scaled", "÷ T", "({scores}-{scores_top})/IF({temperature_top}>0,{temperature_top},1)", ""),
        ("exps", "exp", "IF({temperature_top}>0,EXP({scaled}),IF({places}=1,1,0))", ""),
        ("probs", "prob", "{exps}/SUM({exps_all})", "readout"),
        ("in_k", "in top-k", "IF(OR({top_k_top}<1,{places}<={top_k_top}),1,0)", "id"),
        ("shares", "share", "{in_k}*{exps}/SUMPRODUCT({in_k_all},{exps_all})", ""),
        ("sums", "sum", "SUM({shares_down})", ""),
        ("in_p", "in top-p", "IF(OR({places}=1,{sums}-{shares}<{top_p_top}),{in_k},0)", "id"),
        ("kept", "kept", "{in_p}*{shares}/SUMPRODUCT({in_p_all},{shares_all})", "readout"),
        ("starts", "from", "SUM({kept_down})-{kept}", ""),
    )  # fmt: skip
    found = "INDEX({ranked_all},MIN(MATCH(MAX({random},0),{starts_all},1),SUM({in_p_all})))"
    columns(ws, top, 5, t, {"chosen": chosen(HOW, R)}, ("chosen", "chosen", found, "word"))
    right, in_p = t["starts"].rect.right, t["in_p"].at().split("!")[1]
    ws.shade(t["ranked"].rect._replace(right=right), f"when stale =${in_p}=0")  # what is dropped


def draws(w: Workbook, t: dict[str, Table]) -> None:
    """A thousand random numbers, the words that they fall on, and how often each word came."""
    ws, s = w.sheet("Draws", "1,000 typed random numbers, their words, and the counts"), steps(HOW)
    ws.widths({0: 10, 1: 9, 2: 3, **dict.fromkeys(range(3, 8), 11)})
    ws.text("drawn = count / 1,000    spread = sqrt(kept · (1 - kept) / 1,000)", style="equation")
    top, n, found = ws.cursor + 1, len(NUMBERS), chosen(HOW, *NUMBERS)
    count, kept = (found == s["ranked"][:, None]).sum(axis=1), s["kept"]
    s |= {"numbers": NUMBERS, "draws": found, "names": s["ranked"], "targets": kept, "counts": count,
          "drawn": count / n, "spreads": np.sqrt(kept * (1 - kept) / n)}  # fmt: skip
    columns(ws, top, 0, t, s, ("numbers", "number", "", "input setting"),
            ("draws", "word", "INDEX({ranked_all},MATCH({numbers},{starts_all},1))", "word"))  # fmt: skip
    columns(
        ws, top, 3, t, s,
        ("names", "word", "{ranked}", "word"),
        ("targets", "kept", "{kept}", "readout"),
        ("counts", "count", "COUNTIF({draws_all},{names})", "id"),
        ("drawn", "drawn", "{counts}/SUM({counts_all})", "readout"),
        ("spreads", "spread", "SQRT({targets}*MAX(0,1-{targets})/SUM({counts_all}))", ""),
    )  # fmt: skip
    ws.chart(Chart(top + len(kept) + 3, 3, "column", "The shares kept, and those of the draws", [
        Series("kept", t["names"].rect, t["targets"].rect),
        Series("drawn", t["names"].rect, t["drawn"].rect)]))  # fmt: skip


def ten(w: Workbook, t: dict[str, Table]) -> None:
    """The ten logits that the essay prints for its other example."""
    ws, e = w.sheet("Ten words", "the essay's other logits, at temperature 1"), np.exp(TEN_LOGITS)
    ws.text("exp = e^logit    share = exp / sum of exps    each [10]", style="equation")
    ws.text("The essay calls them the first ten of more; its shares sum to 1 over these ten.")
    columns(ws, ws.cursor + 1, 0, t, {"names_10": WORDS[:10], "logits_10": TEN_LOGITS,
            "exps_10": e, "shares_10": e / e.sum()},
            ("names_10", "word", "", "token"), ("logits_10", "logit", "", "input"),
            ("exps_10", "exp", "EXP({logits_10})", ""),
            ("shares_10", "share", "{exps_10}/SUM({exps_10_all})", "readout"))  # fmt: skip


def beside(section: str, words: Table, shares: Table, printed: Sequence[float]) -> list[Comparison]:
    """What the essay prints for the first words, and why it differs where it does."""
    note = "printed {:.2f}; the softmax of the printed logits gives {:.4f}"
    return [
        Comparison(f"QKV Attention, {section}: {words.values[i, 0]}", p, shares, i,
                   note=note.format(p, share) if abs(p - share) > 0.005 else "")
        for i, (p, share) in enumerate(zip(printed, shares.values[:, 0], strict=False))
    ]  # fmt: skip


def book() -> Book:
    """The workbook."""
    w, t = Workbook("sampling"), dict[str, Table]()
    for sheet in (choice, draws, ten):
        sheet(w, t)
    w.compare(beside("section 5", t["ranked"], t["probs"], (0.32, 0.24, 0.16))
              + beside("section 6", t["names_10"], t["shares_10"], TEN_PRINTED))  # fmt: skip
    w.checks([
        ("the probabilities of all words sum to 1", near(f"SUM({t['probs'].all()})")),
        ("what is kept sums to 1", near(f"SUM({t['kept'].all()})")),
        ("every draw is counted once", f"SUM({t['counts'].all()})={len(NUMBERS)}"),
    ])  # fmt: skip
    return w.done(story())


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    hot, free = Sampling(2.0, HOW.top_k, HOW.top_p), Sampling(HOW.temperature)
    now, then, alike = steps(HOW), steps(hot), steps(free)["kept"][0]
    most, moved = (chosen(HOW, *NUMBERS) == "mat").sum(), str(chosen(hot, R)[0])
    return Story(
        title=TITLE,
        source="After L. Erzegovesi, QKV Attention and The Final Step (2026), and M. Sinclair, Transformers.",
        about=[
            "The last step of a language model: logits become shares, and one word is drawn. The logits are those",
            "that the essay on attention posits after `the cat sat`; it names the first eleven of the twenty words.",
            "Temperature divides the logits, so their order stays; 0 is greedy: the first of the likeliest has all.",
            "Top-p is nucleus sampling (Holtzman et al. 2020): the fewest words that hold the share p.",
        ],
        look=[
            "Choice: from left to right; `from` is where a word's share begins on the line from 0 to 1.",
            "Draws: a thousand random numbers. Two times in three a drawn share is less than `spread` off.",
        ],
        tries=[
            Suggestion(f"Type 2: {then['in_p'].sum()} words are kept, not {now['in_p'].sum()}, and the same random "
                f"number falls on `{moved}`, not on `{chosen(HOW, R)[0]}`.",
                ("temperature", 0, 0), hot.temperature, ("chosen", 0, 0), moved),
            Suggestion(f"Type 0, greedy: all {len(NUMBERS)} draws are `mat`, which was drawn {most} times.",
                ("temperature", 0, 0), 0.0, ("counts", 0, 0), float(len(NUMBERS))),
            Suggestion("Type 0 as top-k and 1 as top-p: no word is dropped, and `mat` keeps its probability of "
                f"{alike:.3f} instead of {now['kept'][0]:.3f}.",
                ("top_k", 0, 0), 0.0, ("kept", 0, 0), float(alike), ((("top_p", 0, 0), 1.0),)),
        ],
    )  # fmt: skip
