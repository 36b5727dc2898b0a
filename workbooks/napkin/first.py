"""napkin's first sheet: the rule 12 · layers · width² for a model of your own and for all thirteen,
beside the count, with a sentence that explains each total."""

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import IF
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.sentences import percent, rounded, sentence
from cellformer.workbooks.napkin.counts import TEN, Model, Rows
from cellformer.workbooks.napkin.sizes import MODELS

YOURS = (12, 768)  # layers and width: GPT-2 small's
GPT_3 = MODELS.index("GPT-3")
HEADS = ("layers", "width", "rule, millions", "counted, millions", "rule / counted")
WORDS = "the parts of the total"


def fill(w: Workbook, ws: Composer, rows: Rows) -> None:
    """Fill the sheet, when everything is counted."""
    models = [Model(rows, j) for j in range(len(MODELS))]
    large = models[GPT_3]
    told = sentence(
        "Two sizes give the number of weights of a model: 12 · layers · width². For GPT-3: "
        "{rule} of {total} billion.",
        rule=rounded(large.rule / TEN**9, 1),
        total=rounded(large.billions, 1),
    )
    ws.show("claim", (ws.cursor, 0), told, "heading")
    ws.cursor += 1
    ws.text(
        "In each layer, attention has 4 · width² weights, and the MLP has 8 · width². The rule "
        "omits the table of words, which matters in small models."
    )
    yours(w, ws)
    listed(ws, models)


def yours(w: Workbook, ws: Composer) -> None:
    """Add two sizes to type, the rule's count, and three edits beside them."""
    top = ws.cursor
    ws.cursor += 2
    sizes = ws.typed("yours", [YOURS], ["your model"], HEADS[:2], style="input setting")
    ws.computed(
        "yours_rule",
        (1, 1),
        12 * sizes[0, 0] * sizes[0, 1] ** 2 / TEN**6,
        cols=["rule, millions"],
        style="readout",
        left=3,
        top=ws.rect(sizes).top - 1,
    )
    ws.cursor = top
    suggest(w, ws)


def listed(ws: Composer, models: list[Model]) -> None:
    """Add a row for each of the thirteen models."""
    ws.heading("Thirteen models: the rule beside the exact count of every part")

    def number(k: int, j: int) -> Expression:
        m = models[k]
        return (m.n_layers + 0, m.d_model + 0, m.rule / TEN**6, m.millions + 0)[j]

    n, top = len(models), ws.cursor
    counted = ws.computed("listed", (n, 4), number, MODELS, HEADS[:4], style="thousands")
    ws.computed(
        "listed_ratio",
        (n, 1),
        lambda k, _: models[k].r_total + 0,
        cols=HEADS[4:],
        style="live percent",
        left=5,
        top=top,
        dress="bar",
    )
    ws.sheet.put(ws.rect(counted).top - 1, 6, WORDS, "note")
    ws.show("words", (ws.rect(counted).top, 6), lambda k, _: made_of(models[k]), "text", (n, 1))


def made_of(m: Model) -> Expression:
    """A sentence with the parts of a model's total."""
    told = sentence(
        "{total}: {mlps} in MLPs, {attn} in attention, {words} in the table of words",
        total=IF(
            m.billions < 1,
            rounded(m.millions, 0) & sentence(" million"),
            rounded(m.billions, 1) & sentence(" billion"),
        ),
        mlps=percent(m.mlps_share, 0),
        attn=percent(m.attn_share, 0),
        words=percent(m.embed_share),
    )
    used = sentence("; a token uses {active} billion", active=rounded(m.active / TEN**9, 0))
    return told & IF(m.idle > 0, used, "") & "."


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits of your model: GPT-3's sizes, twice the width, twice the layers."""
    layers, width, weights = w["yours"][0, 0], w["yours"][0, 1], w["yours_rule"][0, 0]
    ws.suggest(
        w.suggestion(
            "Type ‘96’ for the layers and ‘12288’ for the width, as in GPT-3: the rule gives "
            "{then:,.0f} million weights.",
            {layers: 96.0, width: 12288.0},
            weights,
        ),
        w.suggestion(
            "Type ‘1536’, twice the width: the rule gives four times as many weights, {then:.1f} "
            "million, not {now:.1f}.",
            {width: 1536.0},
            weights,
        ),
        w.suggestion(
            "Type ‘24’, twice the layers: the rule gives twice as many weights, {then:.1f} "
            "million, not {now:.1f}.",
            {layers: 24.0},
            weights,
        ),
        at=(4, 5, 6),
    )
