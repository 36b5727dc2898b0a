"""one-layer: one transformer layer, attention-only first, then with LayerNorm and the MLP.

Look at the document's two tables, each line a link to its cells, and at the heads: summed, and
concatenated. Try the switches: LayerNorm and MLP turn the attention-only model into the full one.
"""

from functools import partial

from cellformer.engine.cells.functions import AND, MAX, OR
from cellformer.exporters.assemble.matrices import MatrixSheet
from cellformer.exporters.assemble.worksheets import Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.one_layer import model, tables
from cellformer.workbooks.one_layer.weights import HEADS, VOCABULARY, N, typed

TOPIC, AFTER, LEVEL = "A whole model", "", 3
TITLE = "one-layer: one transformer layer, attention-only first, then LayerNorm and MLP"
NEW, YORK = VOCABULARY.index("New"), VOCABULARY.index("York")


def book() -> Book:
    """The workbook."""
    w = Workbook("one-layer")
    listing = w.sheet("Tables", "the document's tables of activations and parameters, with links")
    ws = w.sheet(
        "Model",
        "the whole model; a word is a column: W times x",
        widths=dict.fromkeys(range(1, 24), 7),
    )
    page = MatrixSheet(ws, typed(), partial(model.labels, w))
    model.embed(page)
    model.norm(page, 0, "before attention")
    for h in HEADS:
        model.attend(page, h)
    model.add_heads(page)
    model.norm(page, 1, "before the MLP")
    model.mlp(page)
    model.unembed(page)
    printed = [*tables.padded(ws), *tables.fill(w, listing)]
    w.compare(printed, "Introduction, its examples and key figures")
    check(w, page)
    return w.done(story(w))


def check(w: Workbook, page: MatrixSheet) -> None:
    """Claims that hold whatever is typed, for the sheet Check."""
    mask = page["switches"][2, 0]
    later = [(i, j) for i in range(N) for j in range(i + 1, N)]
    ahead = [page[f"A_h{h}"][i, j] for h in HEADS for i, j in later]
    ones = [near(page[f"A_sums_h{h}"].area.fixed) for h in HEADS]
    w.checks(
        [
            ("in each head, a word's attention weights sum to 1", AND(*ones)),
            ("with the mask on, no word looks at a later one", OR(mask != 1, MAX(*ahead) == 0)),
            (
                "heads added with their own W_O equal the concatenation times the stacked W_O",
                near(page["o_difference"].area.fixed, 0),
            ),
            ("after each word, the probabilities sum to 1", near(page["p_sums"].area.fixed)),
        ]
    )


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="After A Gentle Introduction to Transformers: its activations and parameters.",
        about=[
            "One transformer layer, five words, vectors of four numbers, two heads and an MLP of six cells: the introduction's tables, live.",
            "Nothing was learned here. The weights are random, drawn so that the full model happens to end ‘The state of New’ with York: watch how",
            "the numbers flow, not what they say. (dialogue-game and shakespeare are trained.)",
            "Why it matters: every table of a layer is in view, with its shape. Whoever has seen these knows what GPT-3 stores and computes.",
            "As built it is the introduction's first model, of attention alone; two switches add LayerNorm and the MLP. That model follows the last",
            "word only, which alone is asked for what comes next: here it is the last column.",
        ],
        errata=[
            "The source says that heads side by side need d_head = d_model / H. They do not: W_O takes any number of columns. And it says that",
            "LayerNorm gives a vector the mean beta; in fact each number is moved by a beta of its own.",
        ],
        look=[
            "Tables: every activation and every parameter of the introduction, with its shape, its count, and a link to its cells.",
            "Model, the heads together: added one by one, or stacked and multiplied by one W_O, which is the same.",
            "Layers and heads are counted from 0: head 0.1 is number 1 in layer 0.",
            "Model, Head 0.0: later words have scores too, and the mask gives them no weight.",
        ],
        suggestions=suggestions(w),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: LayerNorm on, the MLP added, the mask off."""
    norm, mlp, york = w["switches"][0, 0], w["switches"][1, 0], w["next"][YORK, 0]
    return [
        w.suggestion(
            "Type 1: LayerNorm. After New, York goes from {now:.2f} to {then:.2f}: the heads now read vectors of spread 1, where that of New had {spread.now:.2f}.",
            {norm: 1.0},
            york,
            spread=w["sigma_0"][0, model.LAST],
        ),
        w.suggestion(
            "Type 1 here and for LayerNorm: the full model. York goes from {now:.2f} to {then:.2f}.",
            {mlp: 1.0, norm: 1.0},
            york,
        ),
        w.suggestion(
            "Type 0: the mask is off, and the first word sees what follows. After it, New goes from {now:.2f} to {then:.2f}; after the last word it stays {last.then:.2f}.",
            {w["switches"][2, 0]: 0.0},
            w["p"][NEW, 0],
            last=w["p"][NEW, model.LAST],
        ),
    ]
