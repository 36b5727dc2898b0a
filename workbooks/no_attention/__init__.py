"""no-attention: one model three times: whole, with transparent attention, and without attention.

Look at the three streams side by side: without attention no word reads another. Try the switches:
head by head they turn the transparent model into the whole one, and show what a head does.
"""

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import AND, COUNTIF, MAX, OR, SUM, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Comparison, Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.no_attention.layers import (
    DELETED,
    LEFT,
    MODELS,
    N_TOKENS,
    TRANSPARENT,
    WHOLE,
    Tables,
    layer,
)
from cellformer.workbooks.no_attention.streams import (
    GAPS,
    LAST,
    compare_streams,
    copies,
    never_the_same,
    read_out,
)
from cellformer.workbooks.two_layers import fitting
from cellformer.workbooks.two_layers.fitting import N_HEADS, PROMPT, WORDS

TOPIC, AFTER, LEVEL = "A whole model", "two-layers", 3
TITLE = (
    "no-attention: one model in three forms: whole, with transparent attention, and without "
    "attention"
)
HEADS = [f"head {n}.{h}" for n in range(2) for h in range(N_HEADS)]  # layer and number
MUTE = ((0,) * len(HEADS), (1,) * len(HEADS))  # the switches as built: W_O = 0


def book() -> Book:
    """The workbook."""
    w = Workbook("no-attention")
    ws = w.sheet("Streams", "three streams side by side: what attention brings to each word")
    sheets = [w.sheet(f"Layer {n}", f"layer {n} of the three models, step by step") for n in (0, 1)]
    weights = w.sheet("Weights", "the weights of all three models; you can type over blue cells")
    for sheet in (ws, *sheets, weights):
        sheet.widths({0: 20} | dict.fromkeys(range(1, 27), 6.0))
    switches, h0 = inputs(ws)
    by_layer, U = shared_weights(weights)

    streams = [dict.fromkeys(MODELS, h0)]  # before the layers, between them, after both
    for n, sheet in enumerate(sheets):
        tables = layer(
            sheet, n, streams[n], by_layer[n], switches[:, n * N_HEADS : (n + 1) * N_HEADS]
        )
        streams.append({model: found["h"] for model, found in tables.items()})

    compare_streams(ws, streams)
    read_out(ws, streams[-1], U)
    copies(ws, h0)
    differ = w.sheet(
        "Must differ",
        "a rule that needs no attention",
        widths={0: 20},
    )
    never_the_same(differ)
    suggest(w, differ)
    w.compare(compared(w), "QKV Attention, section 6")
    w.checks(checked(w))
    return w.done(story(w))


def inputs(ws: Composer) -> tuple[Area, Area]:
    """Add the inputs at the top of the streams: the switches, and h⁰."""
    ws.text(
        "whole: normal attention.   transparent: attention runs, but switches multiply the rows "
        "of W_O and the columns of W_V of each head.   deleted: no attention."
    )
    ws.heading("Type here: switches of the transparent model (1 on, 0 off), and word vectors")
    top, rows = ws.cursor, ("W_O times", "W_V times")
    switches = ws.typed("switches", MUTE, rows, HEADS, "switches", "switch")
    title = "h⁰: embedding + position"
    return switches, ws.typed("h_start", fitting.H0, PROMPT, title=title, left=LEFT[1], top=top)


def shared_weights(ws: Composer) -> tuple[list[Tables], Area]:
    """The fitted weights of both layers, by name, and the unembedding."""
    found = []
    for n, fitted in enumerate(fitting.layers()[0]):
        ws.heading(f"Layer {n}")
        tables, matrices = Tables(), list(fitted._asdict().items())
        for line in (matrices[:3], matrices[3:]):
            top = ws.cursor
            for left, (name, matrix) in zip(LEFT, line, strict=False):
                height, width = matrix.shape
                tables[name] = ws.typed(
                    f"{name}_{n}",
                    matrix,
                    title=f"{name}: {height} × {width}",
                    style="weight",
                    left=left,
                    top=top,
                )
        found.append(tables)
    ws.heading("Unembedding")
    W_U = fitting.unembedding(fitting.embeddings(N_TOKENS)[0])
    return found, ws.typed("U", W_U, cols=WORDS, title="U: 6 × 10", style="weight")


def compared(w: Workbook) -> list[Comparison]:
    """The whole model's last word, compared with section 6 of the source."""
    stream, probs = w["whole_h_1"], w["probs"]
    of_stream = [
        Comparison(
            f"whole model: number {j + 1} of h² for the last word", float(x), stream[LAST, j]
        )
        for j, x in enumerate(fitting.POST[1][LAST])
    ]
    notes = {"the": "the printed logit -0.48 also gives 0.0348"}
    return of_stream + [
        Comparison(
            f"whole model: probability of {word}", float(p), probs[0, j], notes.get(word, "")
        )
        for j, (word, p) in enumerate(zip(WORDS, fitting.PROBS, strict=True))
    ]


def checked(w: Workbook) -> list[tuple[str, Expression]]:
    """Claims that should hold for any entry."""
    on, patterns = w["switches"], [w[f"transparent_pattern_{n}"] for n in (0, 1)]
    both_rows = (on[0, :], on[1, :])
    return [
        (
            (
                "if every head has at least one switch at 0, the transparent stream "
                "equals the deleted stream"
            ),
            OR(SUMPRODUCT(*both_rows * 2) > 0, near(w["gap_transparent_deleted"].fixed, 0)),
        ),
        (
            "with all eight switches at 1, the transparent stream equals the whole stream",
            OR(COUNTIF(on.fixed, 1) < 8, near(w["gap_whole_transparent"].fixed, 0)),
        ),
        (
            "in the transparent model, too, each pattern row sums to 1, and the six rows of a "
            "layer sum to 6",
            AND(*(near(SUM(pattern.fixed), 6) for pattern in patterns)),
        ),
        (
            "with ‘Must differ’, a word follows itself less than once in 10,000 times",
            MAX(w["repeats"].fixed) < 0.0001,
        ),
    ]


def story(w: Workbook) -> Story:
    """The start sheet's texts."""
    stares = w.now(w["whole_pattern_1"][LAST, 1])
    return Story(
        title=TITLE,
        source="Based on L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), appendix A.",
        about=[
            "What is lost without attention? This workbook runs the model of the workbook "
            "‘two-layers’ on ‘the cat sat’ in three forms. The first form is the whole model.",
            "In the transparent form, attention runs and adds zero (W_O = 0, or W_V = 0). In the "
            "deleted form, h becomes h + MLP(h).",
            "The transparent and the deleted form give the same stream. Without attention, no "
            "word gets information from another word.",
            "Why it matters: switch off one head, and leave all others on. The change shows what "
            "this head does. The method is called ablation.",
            "A pattern shows only where a head looks. For example, head 1.0 gives "
            f"{stares:.2f} of its attention to the previous word, but writes little.",
            "Layers and heads are counted from 0: head 1.0 is number 0 in layer 1. The essay counts from 1.",
        ],
        errata=[
            "The appendix prints no numbers. So the sheet Printed compares the whole model with "
            "section 6 of the source, which prints numbers.",
            "The source does not print the patterns of layer 1. This workbook chooses these "
            "patterns.",
            "The appendix says: a head that looks only at its own word doubles the "
            "word's vector. This holds only if W_V W_O leaves the vector unchanged.",
            "The appendix also says that ‘the next item must differ from the current "
            "one’ needs attention. This rule does not need attention: see the sheet "
            "Must differ.",
        ],
        look=[
            "The tables have one row for each word, as in the source.",
            "The sheet Streams compares the three models. As built, the transparent and the "
            "deleted model have the same numbers. The whole model has other numbers.",
            "On the sheets Layer 0 and Layer 1, the transparent model has scores and patterns, "
            "like the whole model. These scores and patterns have no effect.",
            "The appendix says that a certain rule needs attention. The sheet Must differ shows "
            "that a table of one word follows this rule.",
        ],
        suggestions=suggestions(w),
    )


def suggest(w: Workbook, ws: Composer) -> None:
    """Edits: the rule lifted for a word, a preference, and a limit of tables of one word."""
    logits, repeats, shares = w["next_logits"], w["repeats"], w["next_probs"]
    the, cat, sat = (WORDS.index(word) for word in ("the", "cat", "sat"))
    ws.suggest(
        w.suggestion(
            "Type ‘0’ to remove the rule for ‘the’: now ‘the’ can follow ‘the’, with {then:.0%}.",
            {logits[the, the]: 0.0},
            repeats[the],
        ),
        w.suggestion(
            "Type ‘3’: ‘sat’ follows ‘cat’ with {then:.0%}, not {now:.0%}. A table can forbid "
            "words, and can also prefer words.",
            {logits[cat, sat]: 3.0},
            shares[cat, sat],
        ),
        w.suggestion(
            "Type ‘-12’: after ‘sat’, ‘the’ falls from {now:.0%} to {then:.5%}. No cell of "
            "this table can make an exception for ‘dog sat’.",
            {logits[sat, the]: -12.0},
            shares[sat, the],
        ),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Suggested edits, with their computed effects."""
    switches, lost = w["switches"], w["sizes"][GAPS.index((WHOLE, TRANSPARENT)), LAST]
    whole, deleted = (w[f"{model}_after_1"][LAST, 5] for model in (WHOLE, DELETED))

    def all_but(off: int) -> dict[Area, float]:
        """The write-back of every head but one switched on."""
        return {switches[0, head]: 1.0 for head in range(len(HEADS)) if head != off}

    first = w.edited(all_but(0))(lost)
    return [
        w.suggestion(
            "Type ‘0.9’, which changes the vector of ‘the’. In the whole model, the last number "
            "of ‘sat’ goes from {whole.now:.2f} to {whole.then:.2f}. Without attention, this "
            "number stays {now:.2f}.",
            {w["h_start"][0, 0]: 0.9},
            deleted,
            whole=whole,
        ),
        w.suggestion(
            "Type ‘1’ here, and for heads 0.1 and 1.1. With only head 1.0 off, the distance of "
            "‘sat’ from the whole model is {then:.2f}. With only head 0.0 off, this distance is "
            f"{first:.2f}.",
            all_but(2),
            lost,
        ),
        w.suggestion(
            "Type ‘9’: in the transparent model, ‘cat’ gives ‘the’ {then:.0%} of its attention, "
            "not {now:.0%}. The stream of ‘cat’ does not change.",
            {w["W_Q_0"][0, 0]: 9.0},
            w["transparent_pattern_0"][1, 0],
        ),
    ]
