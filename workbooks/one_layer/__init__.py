"""one-layer: one transformer layer whose weights are wired by hand, so that each part does something.

Look at where the last word looks, and what it says for it; then at the document's two tables, each
line a link to its cells. Try ‘city’, and the switches: LayerNorm and MLP make the full model.
"""

from functools import partial

from cellformer.engine.cells.functions import AND, MAX, OR
from cellformer.exporters.assemble.matrices import MatrixSheet
from cellformer.exporters.assemble.worksheets import Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.story import Story, Suggestion
from cellformer.workbooks.one_layer import model, tables
from cellformer.workbooks.one_layer.weights import FEATURES, HEADS, VOCABULARY, N, typed

TOPIC, AFTER, LEVEL = "A whole model", "", 3
TITLE = "one-layer: a transformer layer with weights that you can read"
JERSEY, ORLEANS = VOCABULARY.index("Jersey"), VOCABULARY.index("Orleans")


def book() -> Book:
    """The workbook."""
    w = Workbook("one-layer")
    w.book.opens_on = "Model"
    ws = w.sheet(
        "Model",
        "the whole model, with one column for each word (W times x)",
        widths={1: 8} | dict.fromkeys(range(2, 24), 7),
    )
    listing = w.sheet("Tables", "the source's tables of activations and parameters, with links")
    page = MatrixSheet(ws, typed(), partial(model.labels, w))
    model.embed(page)
    model.norm(page, 0, "before attention")
    for h in HEADS:
        model.attend(page, h)
    model.add_heads(page)
    model.norm(page, 1, "before the MLP")
    model.mlp(page)
    model.unembed(page)
    model.claim(page)
    printed = [*tables.padded(ws), *tables.fill(w, listing)]
    suggest(w, ws)
    w.compare(printed, "Introduction, its examples and key figures")
    check(w, page)
    return w.done(story(w))


def check(w: Workbook, page: MatrixSheet) -> None:
    """Claims that hold for any entry, for the sheet Check."""
    mask = page["switches"][2, 0]
    later = [(i, j) for i in range(N) for j in range(i + 1, N)]
    ahead = [page[f"A_h{h}"][i, j] for h in HEADS for i, j in later]
    ones = [near(page[f"A_sums_h{h}"].area.fixed) for h in HEADS]
    w.checks(
        [
            ("in each head, a word's attention weights sum to 1", AND(*ones)),
            ("with the mask on, no word looks at a later word", OR(mask != 1, MAX(*ahead) == 0)),
            (
                "(each head times its own W_O), added up, equals the stacked heads "
                "times the stacked W_O",
                near(page["o_difference"].area.fixed, 0),
            ),
            ("after each word, the probabilities sum to 1", near(page["p_sums"].area.fixed)),
        ]
    )


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="Based on the activations and parameters of A Gentle Introduction to Transformers.",
        about=[
            "In ‘The state of New’, one head looks back at ‘state’, so the model says ‘Jersey’. "
            "Type ‘city’ instead, and the model says ‘Orleans’.",
            "The model is one transformer layer: seven words, vectors of six numbers, two heads, "
            "an MLP of two cells. The weights are set by hand.",
            "So you can say what each weight does. Head 0.0 looks for the kind of place, head "
            "0.1 for ‘of’. The MLP has a cell for each rule.",
            "Why it matters: you see every table of a layer, with its shape. GPT-3 stores and "
            "computes the same tables in larger sizes.",
            "As built, the model is the first model of the introduction, with attention only. "
            "Two switches add LayerNorm and the MLP.",
            "The introduction follows only the last word, which predicts the next word. Here, "
            "the last word is the last column.",
        ],
        errata=[
            "The source says that heads side by side need d_head = d_model / H. In fact, W_O can "
            "have any number of columns.",
            "The source also says that after LayerNorm the mean of a vector equals beta. In "
            "fact, each number is moved by its own beta.",
        ],
        look=[
            "The sheet Model shows the sentence, the attention of the last word, and the next "
            "word. All steps with their weights stand below.",
            "The sheet Tables lists all activations and parameters of the introduction, with "
            "their shapes and counts, and links to their cells.",
            "The sheet Model joins the heads in two ways: add the heads one by one, or stack the "
            "heads and multiply by one W_O. Both ways give the same result.",
            "Layers and heads are counted from 0: head 0.1 is number 1 in layer 0.",
            "On the sheet Model, later words also have scores in head 0.0, but the mask gives "
            "these scores no weight.",
        ],
        suggestions=suggestions(w),
    )


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits of the first screen: another word, the MLP, a head that looks nowhere."""
    after = w["next"]
    ws.cursor = ws.rect(w["vocabulary"]).bottom
    ws.suggest(
        w.suggestion(
            "Type ‘city’: head 0.0 now looks at ‘city’. Orleans rises from {now:.0%} to "
            "{then:.0%}.",
            {w["tokens"][0, 1]: "city"},
            after[ORLEANS],
        ),
        w.suggestion(
            "Type ‘1’ to switch on the MLP. One MLP cell reacts to ‘New’ and ‘state’ together. "
            "Jersey rises from {now:.0%} to {then:.0%}.",
            {w["switches"][1, 0]: 1.0},
            after[JERSEY],
        ),
        w.suggestion(
            "Type ‘0’ to remove what ‘New’ looks for: head 0.0 now looks at all words equally. "
            "Jersey falls from {now:.0%} to {then:.0%}.",
            {w["W_Q_h1"][0, FEATURES.index("New")]: 0.0},
            after[JERSEY],
        ),
        at=(0, 2, 4),
    )


def suggestions(w: Workbook) -> list[Suggestion]:
    """Three edits: LayerNorm on, the MLP added, the mask off."""
    norm, mlp, jersey = w["switches"][0, 0], w["switches"][1, 0], w["next"][JERSEY, 0]
    return [
        w.suggestion(
            "Type ‘1’ to switch on LayerNorm: after New, Jersey goes from {now:.0%} to "
            "{then:.0%}. The heads now read vectors with spread 1. Before, the vector of New had "
            "spread {spread.now:.2f}.",
            {norm: 1.0},
            jersey,
            spread=w["sigma_0"][0, model.LAST],
        ),
        w.suggestion(
            "Type ‘1’ here and for LayerNorm to run the full model: Jersey goes from {now:.0%} "
            "to {then:.0%}.",
            {mlp: 1.0, norm: 1.0},
            jersey,
        ),
        w.suggestion(
            "Type ‘0’ to remove the mask: the first word now sees the later words. After the "
            "first word, Jersey goes from {now:.0%} to {then:.0%}. After the last word, Jersey "
            "stays {last.then:.0%}.",
            {w["switches"][2, 0]: 0.0},
            w["p"][JERSEY, 0],
            last=w["p"][JERSEY, model.LAST],
        ),
    ]
