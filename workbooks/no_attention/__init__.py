"""no-attention: one model three times: whole, its attention transparent, its attention deleted.

Look at the three streams side by side: without attention no word hears of another. Try the
switches: head by head they turn the transparent model into the whole one, and say what a head does.
"""

import numpy as np

from engine.cells.expression import Area, Expression
from engine.cells.functions import AND, COUNTIF, EXP, OR, SQRT, SUM, SUMPRODUCT, added, dot
from exporters.book import Book, Chart, Series
from exporters.story import Story, Suggestion
from exporters.tables import Comparison, Formula, Workbook, Worksheet, near
from workbooks.no_attention.layers import (
    DELETED,
    LEFT,
    MODELS,
    N_TOKENS,
    TRANSPARENT,
    WHOLE,
    Tables,
    layer,
    side_by_side,
)
from workbooks.two_layers import fitting
from workbooks.two_layers.fitting import D_MODEL, N_HEADS, PROMPT, WORDS

TOPIC = "Attention"
TITLE = "no-attention: one model whole, with transparent attention, and without attention"
LAST = N_TOKENS - 1
HEAD_NAMES = ("1.1", "1.2", "2.1", "2.2")  # layer and number
MUTE = ((0,) * len(HEAD_NAMES), (1,) * len(HEAD_NAMES))  # the switches as built: W_O = 0
GAPS = ((WHOLE, DELETED), (TRANSPARENT, DELETED), (WHOLE, TRANSPARENT))
GAP_NAMES = [f"{a} − {b}" for a, b in GAPS]
Streams = dict[str, Area]  # of each model: [n_tokens, d_model]


def book() -> Book:
    """The workbook."""
    w = Workbook("no-attention")
    ws = w.sheet("Streams", "three streams side by side: what attention brings to each word")
    sheets = [w.sheet(f"Layer {n}", f"layer {n} of the three models, step by step") for n in (1, 2)]
    weights = w.sheet("Weights", "what all three models share; blue: type over any of them")
    for sheet in (ws, *sheets, weights):
        sheet.widths({0: 20} | dict.fromkeys(range(1, 27), 7))
    switches, h0 = inputs(ws)
    by_layer, U = shared_weights(weights)

    streams = [dict.fromkeys(MODELS, h0)]  # before layer 1, between the layers, after layer 2
    for n, sheet in enumerate(sheets):
        of_layer = switches[:, n * N_HEADS : (n + 1) * N_HEADS]
        tables = layer(sheet, n + 1, streams[n], by_layer[n], of_layer)
        streams.append({model: found["h"] for model, found in tables.items()})

    streams_after(ws, 1, streams[1])
    after = streams_after(ws, 2, streams[2])
    differences(ws, after)
    read_out(ws, streams[-1], U)
    copies(ws, h0)
    w.compare(compared(w))
    w.checks(checked(w))
    return w.done(story(w))


def inputs(ws: Worksheet) -> tuple[Area, Area]:
    """What is typed on top of the streams: the switches, and h⁰."""
    ws.text(
        "whole: attention as it is.   transparent: it runs, and each head's rows of W_O and columns "
        "of W_V are multiplied by its switches.   deleted: no attention at all."
    )
    ws.heading("Type here: the transparent model's switches (1 on, 0 off), the words' vectors")
    top, rows = ws.cursor, ("W_O times", "W_V times")
    switches = ws.typed("switches", MUTE, rows, HEAD_NAMES, "switches, layer.head", "switch")
    ws.cursor = top
    title = "h⁰: embedding + position"
    h0 = ws.typed("h_start", fitting.H0, PROMPT, title=title, left=LEFT[1])
    return switches, h0


def shared_weights(ws: Worksheet) -> tuple[list[Tables], Area]:
    """The fitted weights of both layers, by name, and the unembedding."""
    found = []
    for n, fitted in enumerate(fitting.layers()[0], 1):
        ws.heading(f"Layer {n}")
        tables, matrices = Tables(), list(fitted._asdict().items())
        for line in (matrices[:3], matrices[3:]):
            for left, (name, matrix) in side_by_side(ws, line):
                height, width = matrix.shape
                title = f"{name}: {height} × {width}"
                tables[name] = ws.typed(
                    f"{name}_{n}", matrix, title=title, style="weight", left=left
                )
        found.append(tables)
    ws.heading("Unembedding")
    W_U = fitting.unembedding(fitting.embeddings(N_TOKENS)[0])
    return found, ws.typed("U", W_U, cols=WORDS, title="U: 6 × 10", style="weight")


def copied(x: Area) -> Formula:
    """Another table's cells."""
    return lambda i, j: x[i, j]


def difference(x: Area, y: Area) -> Formula:
    """x - y, cell by cell."""
    return lambda i, j: x[i, j] - y[i, j]


def streams_after(ws: Worksheet, n: int, streams: Streams) -> Streams:
    """The three streams after layer n, side by side."""
    ws.heading(f"The stream after layer {n}")
    found = {}
    for left, (model, stream) in side_by_side(ws, streams.items()):
        found[model] = ws.computed(
            f"{model}_after_{n}",
            stream.shape,
            copied(stream),
            PROMPT,
            title=model,
            left=left,
        )
        ws.shade(found[model], "diverging")
    return found


def differences(ws: Worksheet, after: Streams) -> None:
    """How far the streams are from each other at the end: their differences, and the sizes."""
    ws.heading("Differences after layer 2, and their sizes")
    ws.text("size of a word's difference = square root of the sum of its squares", style="equation")
    gaps = []
    for left, (a, b) in side_by_side(ws, GAPS):
        gap = ws.computed(
            f"gap_{a}_{b}",
            (N_TOKENS, D_MODEL),
            difference(after[a], after[b]),
            PROMPT,
            title=f"{a} − {b}",
            left=left,
        )
        gaps.append(gap)

    def size(gap: int, word: int) -> Expression:
        row = gaps[gap][word, :]
        return SQRT(SUMPRODUCT(row, row))

    ws.computed("sizes", (len(GAPS), N_TOKENS), size, GAP_NAMES, PROMPT, "sizes")


def read_out(ws: Worksheet, streams: Streams, U: Area) -> None:
    """Logits, exponentials and probabilities after the last word: [models, d_vocab]."""
    ws.heading("After the last word: what comes next")
    ws.text("logits = last row of h² U; probability = exponential / row's sum", style="equation")
    last = [streams[model][LAST, :] for model in MODELS]

    def table(name: str, title: str, cell: Formula) -> Area:
        shape = (len(MODELS), len(WORDS))
        return ws.computed(name, shape, cell, MODELS, WORDS, title, "readout")

    logits = table("logits", "logits", lambda m, j: dot(last[m], U[:, j]))
    exps = table("exps", "exponentials", lambda m, j: EXP(logits[m, j]))
    probs = table("probs", "probabilities", lambda m, j: exps[m, j] / SUM(exps[m, :]))
    first_row = ws.rect(probs[0, :])
    words = first_row._replace(top=first_row.top - 1, bottom=first_row.top)
    series = [Series(MODELS[m], words, probs[m, :]) for m in range(2)]
    row = ws.rect(logits).top - 2
    ws.chart(Chart(row, 12, "column", "Probabilities, next word", series))


def copies(ws: Worksheet, h0: Area) -> None:
    """What is not transparent: every word looks at itself alone, and its vector is copied."""
    ws.heading(
        "Not transparent: each word attends to itself alone, and values are copies (W_V W_O = I)"
    )
    ws.text(
        "h_mid = h⁰ + pattern h⁰ = 2 h⁰: the stream is doubled, not left alone", style="equation"
    )
    top = ws.cursor
    own = ws.typed("copy_pattern", np.eye(N_TOKENS), PROMPT, title="pattern")
    ws.cursor = top

    def doubled(i: int, j: int) -> Expression:
        mixed = [own[i, word] * h0[word, j] for word in range(N_TOKENS)]
        return added([h0[i, j], *mixed])

    ws.computed("copy_mid", h0.shape, doubled, PROMPT, title="h_mid", left=LEFT[1])


def compared(w: Workbook) -> list[Comparison]:
    """The whole model's last word, as section 6 of the source prints it."""
    stream, probs = w["whole_h_2"], w["probs"]
    rows = [
        Comparison(f"whole model: h² of the last word, number {j + 1}", float(x), stream[LAST, j])
        for j, x in enumerate(fitting.POST[1][LAST])
    ]
    for j, (word, p) in enumerate(zip(WORDS, fitting.PROBS, strict=True)):
        note = "the printed logit, -0.48, gives 0.0348 too" if word == "the" else ""
        what = f"whole model: probability of {word}"
        rows.append(Comparison(what, float(p), probs[0, j], note))
    return rows


def checked(w: Workbook) -> list[tuple[str, Expression]]:
    """What should hold whatever is typed."""
    on, patterns = w["switches"], [w[f"transparent_pattern_{n}"] for n in (1, 2)]
    both_rows = (on[0, :], on[1, :])
    return [
        (
            "while no head is on in both rows of switches, the transparent stream is the deleted one",
            OR(SUMPRODUCT(*both_rows * 2) > 0, near(w["gap_transparent_deleted"].fixed, 0)),
        ),
        (
            "with all eight switches at 1, the transparent stream is the whole one",
            OR(COUNTIF(on.fixed, 1) < 8, near(w["gap_whole_transparent"].fixed, 0)),
        ),
        (
            "in the transparent model too, the rows of patterns sum to 1, the six of a layer to 6",
            AND(*(near(SUM(pattern.fixed), 6) for pattern in patterns)),
        ),
    ]


def story(w: Workbook) -> Story:
    """What the start sheet says; what its edits do is computed by making them."""
    switches = w["switches"]
    whole, deleted = (w[f"{model}_after_2"][LAST, 5] for model in (WHOLE, DELETED))
    moved = w.edited({w["h_start"][0, 0]: 0.9})
    lost = w["sizes"][GAPS.index((WHOLE, TRANSPARENT)), LAST]

    def all_but(off: int) -> dict[Area, float]:
        """Every head's write-back on but one's."""
        return {switches[0, head]: 1.0 for head in range(len(HEAD_NAMES)) if head != off}

    third, first = w.edited(all_but(2))(lost), w.edited(all_but(0))(lost)
    cat = w["transparent_pattern_1"][1, 0]
    asked = w.edited({w["W_Q_1"][0, 0]: 9.0})(cat)
    stares = w.now(w["whole_pattern_2"][LAST, 1])
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
            Suggestion(
                f"Type 0.9: another `the`. In the whole model `sat` goes from {w.now(whole):.2f} to "
                f"{moved(whole):.2f}; deleted, it stays {w.now(deleted):.2f}.",
                ("h_start", 0, 0),
                0.9,
                ("deleted_after_2", LAST, 5),
                moved(deleted),
            ),
            Suggestion(
                f"Type 1, and for 1.2 and 2.2: with 2.1 off alone, `sat` is {third:.2f} from the whole; "
                f"with 1.1 off alone, {first:.2f}.",
                ("switches", 0, 0),
                1.0,
                ("sizes", GAPS.index((WHOLE, TRANSPARENT)), LAST),
                third,
                ((("switches", 0, 1), 1.0), (("switches", 0, 3), 1.0)),
            ),
            Suggestion(
                f"Type 9: in the transparent model `cat` looks at `the` with {asked:.2f} instead of "
                f"{w.now(cat):.2f}, and its stream stays.",
                ("W_Q_1", 0, 0),
                9.0,
                ("transparent_pattern_1", 1, 0),
                asked,
            ),
        ],
    )
