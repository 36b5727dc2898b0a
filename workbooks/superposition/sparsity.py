"""The sheet Sparsity: the probability of features decides how many of them two numbers hold.

Three trained models stand side by side: for features that are always present, for the typed
settings, and for rare features. Each one's loss over the examples is computed. Since every subset
of the features is among these, the loss is a sum over the number of present features, for any typed
probability.
"""

from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import COUNTIF, SQRT, SUMIF, SUMPRODUCT, added
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import between
from cellformer.exporters.compose.theme import GROUPS
from cellformer.workbooks.superposition import measured
from cellformer.workbooks.superposition.arrows import Arrows, draw
from cellformer.workbooks.superposition.examples import DRAWS, N_FEATURES, NAMES
from cellformer.workbooks.superposition.learning import D_HIDDEN, DECAYS, PROBABILITIES
from cellformer.workbooks.superposition.trained import HELD, Shelf

P, DECAY = 0.2, 0.9  # the settings as built
KINDS = ("always", "as typed", "rare")
TITLES = ("features always present", "settings as typed", "features rare")
N_KINDS, TYPED = len(KINDS), KINDS.index("as typed")
CURVE = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
PANEL = 6  # columns of a model
COLUMNS, SIZE = (0, 5, 11), (375, 310)  # of the pictures
SETTINGS, RESULTS, PICTURES, CURVES, NUMBERS = 6, 9, 13, 30, 49  # rows
SHARE = between(0, 1, "Type a number from 0 to 1.", "Not a share")


def add(w: Workbook, toys: Shelf) -> Composer:
    """Add the sheet and its examples, with suggested edits; returns sheet Examples."""
    ws = w.sheet(
        "Sparsity",
        "if features are rarer, more features share the two numbers",
        "How many features should two numbers hold? Features that are always present disturb "
        "each other: the model keeps two, at right angles.",
        "Rare features seldom occur together. Then four features fit, in two opposite pairs. "
        "If features are even rarer, all five features fit, with a small error. Type other "
        "settings.",
        widths={
            0: 24,
            **dict.fromkeys(range(1, 19), 8),
            1: 11,
            PANEL: 9,
            PANEL + 1: 11,
            2 * PANEL: 9,
            2 * PANEL + 1: 11,
        },
    )
    settings(ws)
    for k, name in enumerate(("decay", "p")):
        place = ws.rect(w[name])
        ws.show(f"trained.{k}", (place.top, place.right), toys.said(k, w[name][0]), "note")
    grid(ws, toys)
    top = ws.cursor
    for k, p in enumerate((expression(PROBABILITIES[-1]), w["p"], expression(PROBABILITIES[0]))):
        panel(ws, toys, k, p, top)
    examples, last = measured.add(w), w["present"]
    for k, kind in enumerate(KINDS):
        last = measured.errors(examples, k, kind, last)
    by_number(ws)
    results(ws)
    pictures(ws)
    suggest(w, ws)
    return examples


def settings(ws: Composer) -> None:
    """Add the probability of a feature, and the importance of each: [1, features]."""
    ws.typed("p", P, ["present with probability"], style="input setting", top=SETTINGS, rule=SHARE)
    decay = ws.typed(
        "decay", DECAY, ["importance factor"], style="input setting", tight=True, rule=SHARE
    )
    ws.cursor = NUMBERS
    ws.heading("Weight of each feature's error: the previous weight times the importance factor")
    importance = ws.promised("importance", (1, N_FEATURES), ["importance"], NAMES)
    ws.fill(importance, lambda _, j: decay * importance[j - 1] if j else expression(1))


def grid(ws: Composer, toys: Shelf) -> None:
    """The number of features that each trained model holds: importance down, probability across."""
    held, (decays, odds), n = ws["held"], toys.settings, len(PROBABILITIES)
    ws.computed(
        "held_by_all",
        (len(DECAYS), n),
        lambda i, j: held[i * n + j],
        [decays[i] for i in range(len(DECAYS))],
        [odds[j] for j in range(n)],
        "Features held (of five) by each trained model. Rows: importance. Columns: probability",
        "readout count",
        left=PANEL + 1,
        top=SETTINGS,
    )


def panel(ws: Composer, toys: Shelf, k: int, p: Expression, top: int) -> None:
    """The k-th model: its arrows and biases, and the interference of its features."""
    left = 1 + k * PANEL
    ws.sheet.put(top, left - 1, KINDS[k], "block")
    row = ws.computed(
        f"row_{k}",
        (1, 1),
        toys.row(ws["decay"], p),
        cols=["row of Trained"],
        style="count",
        left=left,
        top=top,
    )
    numbers = ws.computed(
        f"arrows_{k}",
        (N_FEATURES, D_HIDDEN),
        lambda i, j: toys.number(row.fixed, 3 * i + j),
        NAMES,
        ["W 1", "W 2"],
        left=left,
        top=ws.rect(row).bottom + 1,
    )
    columns = ws.columns(N_FEATURES, ws.rect(numbers).top - 1, left + 2)
    columns.computed(f"bias_{k}", "b", lambda i: toys.number(row.fixed, 3 * i + 2))
    columns.computed(
        f"length_{k}", "length", lambda i: SQRT(SUMPRODUCT(numbers[i, :], numbers[i, :]))
    )
    ws.computed(
        f"interference_{k}",
        (N_FEATURES, N_FEATURES),
        lambda i, j: SUMPRODUCT(numbers[i, :], numbers[j, :]),
        NAMES,
        NAMES,
        left=left,
        top=ws.rect(numbers).bottom + 1,
        dress="diverging",
    )


def by_number(ws: Composer) -> None:
    """Add the summed errors of the subsets of 0, 1, .. 5 features: [features + 1, models]."""
    ws.heading("Summed errors of the subsets of 0 to 5 features, from the sheet Examples")
    present, errors = ws["present"].fixed, [ws[f"model_{k}_error"].fixed for k in range(N_KINDS)]
    ws.computed(
        "by_number",
        (N_FEATURES + 1, N_KINDS),
        lambda n, k: SUMIF(present, n, errors[k]) / DRAWS[n],
        [f"{n} present" for n in range(N_FEATURES + 1)],
        KINDS,
    )


def results(ws: Composer) -> None:
    """Add how many features each model holds, and its loss, the expected squared error weighed by
    importance: [1, models] each. Below, the loss for other probabilities, as lines."""
    below, sums = ws.cursor, ws["by_number"]
    ws.computed(
        "held_by",
        (1, N_KINDS),
        lambda _, k: COUNTIF(ws[f"length_{k}"], f">={HELD}"),
        ["features held"],
        KINDS,
        style="readout count",
        top=RESULTS,
    )
    ws.computed(
        "loss",
        (1, N_KINDS),
        lambda _, k: expected(ws["p"], sums[:, k]),
        ["loss: expected error"],
        style="readout",
        tight=True,
    )
    ws.cursor = CURVES - 1
    ws.heading("The loss of the three trained models, if features are more or less frequent")
    top, left = ws.cursor, 13
    odds = ws.typed("odds", [[x] for x in CURVE], cols=["p"], style="input setting", left=left)
    curves = ws.computed(
        "curves",
        (len(CURVE), N_KINDS),
        lambda i, k: expected(odds[i], sums[:, k].fixed),
        cols=KINDS,
        left=left + 1,
        top=top,
    )
    ws.chart(
        Chart(
            CURVES + 1,
            0,
            "scatter",
            "The best model depends on how rare features are",
            [Series(KINDS[k], odds, curves[:, k]) for k in range(N_KINDS)],
            size=(860, 320),
            axes=("probability", "loss"),
            joined=True,
            number="0.0",
            shares=True,
        )
    )
    ws.cursor = below


def expected(p: Expression, sums: Area) -> Expression:
    """The expected error: of n features, each subset has the probability p^n (1 - p)^(5 - n). 0^0
    is avoided, since programs differ over it."""

    def probability(n: int) -> Expression:
        present, absent = p**n, (1 - p) ** (N_FEATURES - n)
        if 0 < n < N_FEATURES:
            return present * absent
        return present if n else absent

    return added([probability(n) * sums[n] for n in range(N_FEATURES + 1)])


def pictures(ws: Composer) -> None:
    """The arrows of each model."""
    for k, kind in enumerate(TITLES):
        draw(
            ws,
            (PICTURES, COLUMNS[k]),
            f"Trained: {kind}",
            [Arrows(ws[f"arrows_{k}"], NAMES, GROUPS[0])],
            SIZE,
            1.5,
        )


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits: rarer features, more frequent ones, and equal importance."""
    p, loss, held = w["p"], w["loss"], w["held_by"][TYPED]
    ws.suggest(
        w.suggestion(
            "Type ‘0.05’: features are rare, and the model holds {then:.0f} features, not "
            "{now:.0f}. The loss is {loss.then:.3f}.",
            {p: 0.05},
            held,
            loss=loss[TYPED],
        ),
        w.suggestion(
            "Type ‘0.7’: features now often occur together. The loss of the model for rare "
            "features goes from {now:.2f} to {then:.2f}. The model for this case keeps only "
            "{held.then:.0f} features, and its loss is {loss.then:.2f}.",
            {p: 0.7},
            loss[2],
            held=held,
            loss=loss[TYPED],
        ),
        w.suggestion(
            "Type ‘1’: all features are now equally important. The model keeps {then:.0f} "
            "features, not {now:.0f}, because no feature is less important.",
            {w["decay"]: 1.0},
            held,
        ),
    )
