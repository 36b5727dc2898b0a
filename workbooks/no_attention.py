"""no-attention: one model three times: whole, its attention transparent, its attention deleted.

Look at the three streams side by side: without attention no word hears of another. Suggestion the
switches: head by head they turn the transparent model into the whole one, and say what a head does.
"""

import numpy as np

from exporters.book import Book, Chart, Series
from exporters.by_hand import Comparison, Workbook, Worksheet, near
from exporters.story import Story, Suggestion
from workbooks import _no_attention as three
from workbooks import _two_layers as fitted
from workbooks._matrices import times
from workbooks._no_attention import LAST, LEFT, MODELS, Inputs, Tables, Values
from workbooks._two_layers import PROMPT, WORDS, Layer

TOPIC = "Attention"
TITLE = "no-attention: one model whole, with transparent attention, and without attention"
DOG = WORDS.index("dog")  # what the whole model says next
GAPS = (("whole", "deleted"), ("transparent", "deleted"), ("whole", "transparent"))


def book() -> Book:
    """The workbook."""
    given, w = three.inputs(), Workbook("no-attention")
    ws = w.sheet("Streams", "three streams side by side: what attention brings to each word")
    sheets = [w.sheet(f"Layer {n}", f"layer {n} of the three models, step by step") for n in (1, 2)]
    weights = w.sheet("Weights", "what all three models share; blue: type over any of them")
    for sheet in (ws, *sheets, weights):
        sheet.widths({0: 20} | dict.fromkeys(range(1, 27), 7))
    found = {model: three.stream(given, model) for model in MODELS}
    at = typed(ws, weights, given)
    for n, sheet in enumerate(sheets, 1):
        three.layer(sheet, at, n, {model: found[model][n - 1] for model in MODELS})
    compare_streams(ws, at, found)
    read_out(ws, at, three.last_word(given))
    copy(ws, at, given.h0)
    w.compare([
        *(Comparison(f"whole model: h² of the last word, number {j + 1}", float(x), at["whole_h_2"], LAST, j)
          for j, x in enumerate(fitted.POST[1][LAST])),
        *(Comparison(f"whole model: probability of {word}", float(p), at["probs"], 0, j,
                     "the printed logit, -0.48, gives 0.0348 too" if word == "the" else "")
          for j, (word, p) in enumerate(zip(WORDS, fitted.PROBS, strict=True))),
    ])  # fmt: skip
    on = at["switches"]
    rows = ",".join([on.row(0), on.row(1)] * 2)
    patterns = [at[f"transparent_pattern_{n}"] for n in (1, 2)]
    w.checks([
        ("while no head is on in both rows of switches, the transparent stream is the deleted one",
         f"OR(SUMPRODUCT({rows})>0,{near(at['gap_transparent_deleted'].all(), 0)})"),
        ("with all eight switches at 1, the transparent stream is the whole one",
         f"OR(COUNTIF({on.all()},1)<8,{near(at['gap_whole_transparent'].all(), 0)})"),
        ("in the transparent model too, the rows of patterns sum to 1, the six of a layer to 6",
         f"AND({','.join(near(f'SUM({t.all()})', 6) for t in patterns)})"),
    ])  # fmt: skip
    return w.done(story())


def typed(ws: Worksheet, weights: Worksheet, given: Inputs) -> Tables:
    """The inputs: switches and h⁰ on top of the streams, weights on their own sheet."""
    at = {}
    ws.text("whole: attention as it is.   transparent: it runs, and each head's rows of W_O and columns "
            "of W_V are multiplied by its switches.   deleted: no attention at all.")  # fmt: skip
    ws.heading("Type here: the transparent model's switches (1 on, 0 off), the words' vectors")
    top = ws.cursor
    at["switches"] = ws.table("switches", given.switches, None, ("W_O times", "W_V times"),
                              three.HEAD_NAMES, "switches, layer.head", "switch")  # fmt: skip
    ws.cursor = top
    at["h0"] = ws.table(
        "h_start", given.h0, rows=PROMPT, title="h⁰: embedding + position", left=LEFT[1]
    )
    for n, values in enumerate(given.layers, 1):
        weights.heading(f"Layer {n}")
        for names in (Layer._fields[:3], Layer._fields[3:]):
            top = weights.cursor
            for left, name in zip(LEFT, names, strict=True):
                weights.cursor, value = top, getattr(values, name)
                name, title = f"{name}_{n}", f"{name}: {len(value)} × {len(value[0])}"
                at[name] = weights.table(name, value, title=title, style="weight", left=left)
    weights.heading("Unembedding")
    at["U"] = weights.table("U", given.U, cols=WORDS, title="U: 6 × 10", style="weight")
    return at


def compare_streams(ws: Worksheet, at: Tables, found: dict[str, list[Values]]) -> None:
    """The streams after each layer, and how far they are from each other at the end."""
    for n in (1, 2):
        ws.heading(f"The stream after layer {n}")
        top = ws.cursor
        for left, model in zip(LEFT, MODELS, strict=True):
            source, ws.cursor, name = at[f"{model}_h_{n}"], top, f"{model}_after_{n}"
            at[name] = ws.table(name, found[model][n - 1]["h"], lambda i, j, t=source: t.at(i, j),
                                PROMPT, title=model, left=left)  # fmt: skip
            ws.shade(at[name].rect, "diverging")
    ws.heading("Differences after layer 2, and their sizes")
    ws.text("size of a word's difference = square root of the sum of its squares", style="equation")
    top = ws.cursor
    for left, (a, b) in zip(LEFT, GAPS, strict=True):
        one, other, ws.cursor = at[f"{a}_after_2"], at[f"{b}_after_2"], top
        values = found[a][-1]["h"] - found[b][-1]["h"]
        at[f"gap_{a}_{b}"] = ws.table(
            f"gap_{a}_{b}", values, lambda i, j, x=one, y=other: f"{x.at(i, j)}-{y.at(i, j)}",
            PROMPT, title=f"{a} − {b}", left=left,
        )  # fmt: skip
    sizes = [np.linalg.norm(found[a][-1]["h"] - found[b][-1]["h"], axis=1) for a, b in GAPS]
    gaps = [at[f"gap_{a}_{b}"] for a, b in GAPS]
    ws.table("sizes", sizes, lambda i, j: f"SQRT(SUMPRODUCT({gaps[i].row(j)},{gaps[i].row(j)}))",
             [f"{a} − {b}" for a, b in GAPS], PROMPT, "sizes")  # fmt: skip


def read_out(ws: Worksheet, at: Tables, values: Values) -> None:
    """Logits, exponentials and probabilities after the last word: [models, d_vocab]."""
    ws.heading("After the last word: what comes next")
    ws.text("logits = last row of h² U; probability = exponential / row's sum", style="equation")
    last = [times(at[f"{model}_h_2"], at["U"]) for model in MODELS]
    at["logits"] = ws.table("logits", values["logits"], lambda i, j: last[i](LAST, j), MODELS, WORDS,
                            "logits", "readout")  # fmt: skip
    at["exps"] = ws.table("exps", values["exps"], lambda i, j: f"EXP({at['logits'].at(i, j)})",
                          MODELS, WORDS, "exponentials", "readout")  # fmt: skip
    probs = ws.table("probs", values["probs"],
                     lambda i, j: f"{at['exps'].at(i, j)}/SUM({at['exps'].row(i)})",
                     MODELS, WORDS, "probabilities", "readout")  # fmt: skip
    at["probs"] = probs
    words = probs.part(slice(0, 1))._replace(top=probs.rect.top - 1, bottom=probs.rect.top)
    series = [Series(MODELS[m], words, probs.part(slice(m, m + 1))) for m in range(2)]
    ws.chart(Chart(at["logits"].rect.top - 2, 12, "column", "Probabilities, next word", series))


def copy(ws: Worksheet, at: Tables, h0: np.ndarray) -> None:
    """What is not transparent: every word looks at itself alone, and its vector is copied."""
    ws.heading(
        "Not transparent: each word attends to itself alone, and values are copies (W_V W_O = I)"
    )
    ws.text(
        "h_mid = h⁰ + pattern h⁰ = 2 h⁰: the stream is doubled, not left alone", style="equation"
    )
    top = ws.cursor
    own = ws.table("copy_pattern", np.eye(len(h0)), None, PROMPT, title="pattern")
    ws.cursor, h = top, at["h0"]
    mixed = times(own, h)
    ws.table("copy_mid", 2 * h0, lambda i, j: f"{h.at(i, j)}+{mixed(i, j)}", PROMPT, title="h_mid",
             left=LEFT[1])  # fmt: skip


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    given = three.inputs()
    h0, (first, second), but_1, but_3 = given.h0.copy(), given.layers, *np.ones((2, 2, 4))
    h0[0, 0], but_1[0, 0], but_3[0, 2] = 0.9, 0.0, 0.0
    W_Q, moved = first.W_Q.copy(), given._replace(h0=h0)
    W_Q[0, 0] = 9.0
    asked = given._replace(layers=(first._replace(W_Q=W_Q), second))

    def h2(x: Inputs, model: str) -> np.ndarray:
        return three.stream(x, model)[-1]["h"][LAST]

    def lost(on: np.ndarray) -> float:
        off = given._replace(switches=on)
        return float(np.linalg.norm(h2(off, "whole") - h2(off, "transparent")))

    def cat(x: Inputs, model: str) -> float:
        return float(three.stream(x, model)[0]["pattern"][1, 0])

    whole, deleted = h2(given, "whole")[5], h2(given, "deleted")[5]
    stares = three.stream(given, "whole")[1]["pattern"][LAST, 1]
    return Story(
        title=TITLE,
        source="After L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), appendix A.",
        about=[
            "The model of two-layers on `the cat sat`. Deleted: h becomes h + MLP(h), each word by itself.",
            "Transparent: attention runs and adds zero, because W_O = 0 (or W_V = 0). Both give the same stream.",
            "A head that is off alone is an ablation: it tells what the head does. Its pattern tells only where it looks.",
            "The appendix prints no numbers: sheet Printed holds the whole model against section 6, where it is worked.",
            f"In layer 2 the patterns are chosen, not printed: head 2.1 stares at the word before ({stares:.2f}) and writes little.",
            "The appendix says that attending to oneself doubles the stream: so it does if W_V W_O is the identity, not in general.",
        ],
        look=[
            "Streams: as built, transparent and deleted agree in every number; the whole model is elsewhere.",
            "Layer 1, layer 2: the transparent model has scores and patterns like the whole one, and no effect of them.",
        ],
        tries=[
            Suggestion(f"Type 0.9: another `the`. In the whole model `sat` goes from {whole:.2f} to "
                f"{h2(moved, 'whole')[5]:.2f}; deleted, it stays {deleted:.2f}.",
                ("h_start", 0, 0), 0.9, ("deleted_after_2", LAST, 5), h2(moved, "deleted")[5]),
            Suggestion(f"Type 1, and for 1.2 and 2.2: with 2.1 off alone, `sat` is {lost(but_3):.2f} from the whole; "
                f"with 1.1 off alone, {lost(but_1):.2f}.",
                ("switches", 0, 0), 1.0, ("sizes", GAPS.index(("whole", "transparent")), LAST), lost(but_3),
                ((("switches", 0, 1), 1.0), (("switches", 0, 3), 1.0))),
            Suggestion(f"Type 9: in the transparent model `cat` looks at `the` with {cat(asked, 'transparent'):.2f} instead of "
                f"{cat(given, 'transparent'):.2f}, and its stream stays.",
                ("W_Q_1", 0, 0), 9.0, ("transparent_pattern_1", 1, 0), cat(asked, "transparent")),
        ],
    )  # fmt: skip
