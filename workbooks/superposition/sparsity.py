"""The sheet Sparsity: the probability of features decides how many of them two numbers hold.

Three trained models stand side by side: for features that are always present, for the typed
settings, and for rare features. Each one's loss over the examples is computed. Since every subset
of the features is among these, the loss is a sum over the number of present features, for any typed
probability.
"""

from typing import NamedTuple

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
from cellformer.workbooks.superposition.measured import Examples, Toy
from cellformer.workbooks.superposition.trained import HELD, Trained

P, DECAY = 0.2, 0.9  # the settings as built
KINDS = ("always", "as typed", "rare")
TITLES = ("features always present", "settings as typed", "features rare")
N_KINDS, TYPED = len(KINDS), KINDS.index("as typed")
CURVE = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
PANEL = 6  # columns of a model
COLUMNS, SIZE = (0, 5, 11), (375, 310)  # of the pictures
SETTINGS, RESULTS, PICTURES, CURVES, NUMBERS = 6, 9, 13, 30, 49  # rows
SHARE = between(0, 1, "Type a number from 0 to 1.", "Not a share")


class Sparsity(NamedTuple):
    """The tables that edits and checks refer to."""

    p: Area
    decay: Area
    held: Area  # [1, models]
    loss: Area  # [1, models]: the expected squared error, weighed by importance
    examples: Examples
    last: Area  # the last column of sheet Examples


def add(w: Workbook, trained: Trained) -> Sparsity:
    """Add the sheet and its examples, with suggested edits."""
    ws = w.sheet(
        "Sparsity",
        "the rarer features are, the more of them share the two numbers",
        "How many features should two numbers hold? Those that are always present always disturb each other: only two are kept, at right",
        "angles. Rare ones seldom meet: four fit, as two pairs of opposites, and in the end all five, for a small price. Type other settings.",
        widths={0: 24, **dict.fromkeys(range(1, 19), 8), PANEL: 9, 2 * PANEL: 9},
    )
    p, decay, importance = settings(ws)
    for k, setting in enumerate((decay, p)):
        place = ws.rect(setting)
        said = trained.toys.said(k, setting[0])
        ws.show(f"trained.{k}", (place.top, place.right), said, "note")
    grid(ws, trained)
    odds = (expression(PROBABILITIES[-1]), p, expression(PROBABILITIES[0]))
    toys = [panel(ws, trained, k, odds[k], decay) for k in range(N_KINDS)]
    examples = measured.add(w)
    errors, last = [], examples.present
    for k, toy in enumerate(toys):
        last = measured.errors(examples, f"model_{k}", toy, importance, last)
        errors.append(last)
    held, loss = results(ws, toys, by_number(ws, examples, errors), p)
    pictures(ws, toys)
    found = Sparsity(p, decay, held, loss, examples, last)
    suggest(w, ws, found)
    return found


def settings(ws: Composer) -> tuple[Area, Area, Area]:
    """Add the probability of a feature, and the importance of each: [1, features]."""
    p = ws.typed("p", P, ["present with probability"], style="input setting", top=SETTINGS)
    decay = ws.typed(
        "decay", DECAY, ["importance of next, times"], style="input setting", tight=True
    )
    for cell in (p, decay):
        place = ws.rect(cell)
        ws.sheet.rules[place.top, place.left] = SHARE
    ws.cursor = NUMBERS
    ws.heading("How much a feature's error counts: each so many times as much as the one before")

    def counts(_: int, j: int) -> Expression:
        return decay * importance[j - 1] if j else expression(1)

    importance = ws.promised("importance", (1, N_FEATURES), ["importance"], NAMES)
    ws.fill(importance, counts)
    return p, decay, importance


def grid(ws: Composer, trained: Trained) -> None:
    """How many features each trained model holds: importance down, probability across."""
    below, n = ws.cursor, len(PROBABILITIES)
    ws.cursor = SETTINGS
    decays, odds = trained.toys.settings
    ws.computed(
        "held_by_all",
        (len(DECAYS), n),
        lambda i, j: trained.held[i * n + j],
        [decays[i] for i in range(len(DECAYS))],
        [odds[j] for j in range(n)],
        "Features held, of five, by every trained model: importance down, probability across",
        "readout count",
        left=PANEL + 1,
    )
    ws.cursor = below


def panel(ws: Composer, trained: Trained, k: int, p: Expression, decay: Area) -> Toy:
    """The k-th model: its arrows and biases, and the interference of its features."""
    top, left = ws.cursor, 1 + k * PANEL
    ws.sheet.put(top, left - 1, KINDS[k], "block")
    row = ws.computed(
        f"row_{k}",
        (1, 1),
        trained.toys.row(decay, p),
        cols=["row of Trained"],
        style="count",
        left=left,
        top=top,
    )
    numbers = ws.computed(
        f"arrows_{k}",
        (N_FEATURES, D_HIDDEN),
        lambda i, j: trained.toys.number(row.fixed, 3 * i + j),
        NAMES,
        ["W 1", "W 2"],
        left=left,
    )
    ws.cursor = ws.rect(numbers).top - 1
    columns = ws.columns(N_FEATURES, ws.cursor, left + 2)
    b = columns.computed(f"bias_{k}", "b", lambda i: trained.toys.number(row.fixed, 3 * i + 2))
    lengths = columns.computed(
        f"length_{k}", "length", lambda i: SQRT(SUMPRODUCT(numbers[i, :], numbers[i, :]))
    )
    table = ws.computed(
        f"interference_{k}",
        (N_FEATURES, N_FEATURES),
        lambda i, j: SUMPRODUCT(numbers[i, :], numbers[j, :]),
        NAMES,
        NAMES,
        left=left,
        dress="diverging",
    )
    ws.cursor = top if k < N_KINDS - 1 else ws.cursor
    return Toy(KINDS[k], numbers, b, lengths, table)


def by_number(ws: Composer, examples: Examples, errors: list[Area]) -> Area:
    """Add the summed errors of the subsets of 0, 1, .. 5 features: [features + 1, models]."""
    ws.heading("The errors of the subsets of 0 to 5 features, added: sums over sheet Examples")
    return ws.computed(
        "by_number",
        (N_FEATURES + 1, N_KINDS),
        lambda n, k: SUMIF(examples.present.fixed, n, errors[k].fixed) / DRAWS[n],
        [f"{n} present" for n in range(N_FEATURES + 1)],
        KINDS,
    )


def results(ws: Composer, toys: list[Toy], sums: Area, p: Area) -> tuple[Area, Area]:
    """Add how many features each model holds, and its loss: [1, models] each. Below, the loss for
    other probabilities, as lines."""
    below = ws.cursor
    held = ws.computed(
        "held_by",
        (1, N_KINDS),
        lambda _, k: COUNTIF(toys[k].lengths, f">={HELD}"),
        ["features held"],
        KINDS,
        style="readout count",
        top=RESULTS,
    )
    loss = ws.computed(
        "loss",
        (1, N_KINDS),
        lambda _, k: expected(p, sums[:, k]),
        ["loss: expected error"],
        style="readout",
        tight=True,
    )
    ws.cursor = CURVES - 1
    ws.heading("The loss of the same three models where features are present more or less often")
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
    lines = [Series(KINDS[k], odds, curves[:, k]) for k in range(N_KINDS)]
    title, axes = "The best model depends on how rare features are", ("probability", "loss")
    chart = Chart(CURVES + 1, 0, "scatter", title, lines, (860, 320), axes, True, "0.0", True)
    ws.chart(chart)
    ws.cursor = below
    return held, loss


def expected(p: Expression, sums: Area) -> Expression:
    """The expected error: of n features, each subset has the probability p^n (1 - p)^(5 - n). 0^0
    is avoided, since programs differ over it."""

    def probability(n: int) -> Expression:
        present, absent = p**n, (1 - p) ** (N_FEATURES - n)
        if 0 < n < N_FEATURES:
            return present * absent
        return present if n else absent

    return added([probability(n) * sums[n] for n in range(N_FEATURES + 1)])


def pictures(ws: Composer, toys: list[Toy]) -> None:
    """The arrows of each model."""
    for k, toy in enumerate(toys):
        arrows, title = [Arrows(toy.W, NAMES, GROUPS[0])], f"Trained: {TITLES[k]}"
        draw(ws, (PICTURES, COLUMNS[k]), title, arrows, SIZE, 1.5)


def suggest(w: Workbook, ws: Composer, found: Sparsity) -> None:
    """Three edits: rarer features, more frequent ones, and equal importance."""
    p, loss, held = found.p, found.loss, found.held[TYPED]
    ws.suggest(
        w.suggestion(
            "Type 0.05: features are rare, and {then:.0f} are held instead of {now:.0f}. The loss is {loss.then:.3f}.",
            {p: 0.05},
            held,
            loss=loss[TYPED],
        ),
        w.suggestion(
            "Type 0.7: features often meet, and {held.then:.0f} are held. The model of rare ones would have a loss of {then:.2f}; this one has {loss.then:.2f}.",
            {p: 0.7},
            loss[2],
            held=held,
            loss=loss[TYPED],
        ),
        w.suggestion(
            "Type 1: with all features equally important, {then:.0f} are held, not {now:.0f}: none of them is worth giving up.",
            {found.decay: 1.0},
            held,
        ),
    )
