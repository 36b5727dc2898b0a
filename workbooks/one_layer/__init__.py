"""one-layer: one transformer layer, attention-only first, then with LayerNorm and the MLP.

Look at the document's two tables, each line a link to its cells, and at the heads: summed, and
concatenated. Try the switches: LayerNorm and MLP turn the attention-only model into the full one.
"""

from engine.cells.functions import AND, MAX, OR
from exporters.book import Book
from exporters.matrices import MatrixSheet
from exporters.story import Story, Suggestion
from exporters.tables import Workbook, near
from workbooks.one_layer import model, tables
from workbooks.one_layer.weights import HEADS, VOCABULARY, N, typed

TOPIC = "A whole model"
TITLE = "one-layer: one transformer layer, attention-only first, then LayerNorm and MLP"
NEW, YORK = VOCABULARY.index("New"), VOCABULARY.index("York")


def book() -> Book:
    """The workbook."""
    w = Workbook("one-layer")
    listing = w.sheet("Tables", "the document's tables of activations and parameters, with links")
    ws = w.sheet("Model", "the whole model; a word is a column: W times x")
    ws.widths(dict.fromkeys(range(1, 24), 7))
    page = MatrixSheet(ws, typed())
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
    return w.done(story(w, page))


def check(w: Workbook, page: MatrixSheet) -> None:
    """What holds whatever is typed."""
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


def story(w: Workbook, page: MatrixSheet) -> Story:
    """What the start sheet says; what its edits do is computed by making them."""
    return Story(
        title=TITLE,
        source="After A Gentle Introduction to Transformers: its activations and parameters.",
        about=[
            "Five words, vectors of four numbers, two heads, an MLP of six cells; untrained.",
            "As built it is the attention-only model; two switches make it the full one.",
            "The document's simplified model follows the last word alone: here, the last column.",
            "It says stacking forces d_head = d_model / H. It does not: W_O takes any H d_head.",
            "It gives a whole vector a mean of beta: each entry is moved by its own beta_i.",
        ],
        look=[
            "Tables: the document's names, shapes and counts, and where the numbers stand.",
            "Model, the heads together: added, or stacked times one W_O: the same.",
            "Model, Head 1: later words have scores too, and the mask gives them no weight.",
        ],
        tries=[*switched_on(w, page), unmasked(w, page)],
    )


def switched_on(w: Workbook, page: MatrixSheet) -> list[Suggestion]:
    """LayerNorm on, and then the MLP too."""
    norm, mlp = page["switches"][0, 0], page["switches"][1, 0]
    york, spread = page["next"][YORK, 0], w.now(page["sigma_0"][0, model.LAST])
    before = w.now(york)
    normed = w.edited({norm: 1.0})(york)
    full = w.edited({norm: 1.0, mlp: 1.0})(york)
    return [
        Suggestion(
            f"Type 1: LayerNorm. After New, York goes from {before:.2f} to {normed:.2f}: heads "
            f"read vectors of spread 1; that of New has {spread:.2f} by itself.",
            ("switches", 0, 0),
            1.0,
            ("next", YORK, 0),
            normed,
        ),
        Suggestion(
            f"Type 1 here and for LayerNorm: the full model. York goes from {before:.2f} to "
            f"{full:.2f}.",
            ("switches", 1, 0),
            1.0,
            ("next", YORK, 0),
            full,
            ((("switches", 0, 0), 1.0),),
        ),
    ]


def unmasked(w: Workbook, page: MatrixSheet) -> Suggestion:
    """The mask off."""
    p, after = page["p"], w.edited({page["switches"][2, 0]: 0.0})
    then = after(p[NEW, 0])
    return Suggestion(
        "Type 0: the mask is off, and the first word sees what follows. After it, New goes "
        f"from {w.now(p[NEW, 0]):.2f} to {then:.2f}; after the last word it stays "
        f"{after(p[NEW, model.LAST]):.2f}.",
        ("switches", 2, 0),
        0.0,
        ("p", NEW, 0),
        then,
    )
