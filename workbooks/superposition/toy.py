"""The sheet Toy model: five features through two numbers and back, and their interference."""

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import ACOS, IF, LARGE, MAX, MIN, PI, SQRT, SUMPRODUCT
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.theme import GROUPS
from cellformer.workbooks.superposition.arrows import Arrows, draw
from cellformer.workbooks.superposition.examples import N_FEATURES, NAMES
from cellformer.workbooks.superposition.learning import D_HIDDEN, Learned

PRESENT = (0.6, 0.0, 0.0, 0.0, 0.0)
TOP, PICTURE = 8, (7, 9)  # the row of the first table's heads; where the picture stands
ALL = (N_FEATURES, N_FEATURES)
DEGREES = 180


def add(w: Workbook, learned: Learned) -> None:
    """Add the sheet, with suggested edits."""
    ws = w.sheet(
        "Toy model",
        "five features stored in two numbers, and the features read back",
        "A text can have up to five features. The model keeps only two numbers, h. From h, the "
        "model must tell which features were present.",
        "Each feature has an arrow in a plane: the feature's row of W. The features "
        "that are present add their arrows to h. The output is how far h reaches "
        "along each arrow.",
        widths={0: 22, **dict.fromkeys(range(1, 8), 11), 8: 2},
    )
    ws.text(
        "h = Wᵀ x   [2]          comes back = ReLU(W h + b)   [5]          (the paper uses the "
        "transpose of W: h = W x)",
        style="equation",
    )
    typed(ws, learned)
    there_and_back(ws)
    disturbs(ws)
    geometry(ws)
    suggest(w, ws)
    draw(
        ws,
        PICTURE,
        "Each feature's arrow, and the two numbers h",
        [Arrows(w["W"], NAMES, GROUPS[0]), Arrows(w["h"], ["h"], GROUPS[1])],
        (400, 390),
        2.0,
    )


def typed(ws: Composer, learned: Learned) -> None:
    """Add the present features, and the weights of the model of equal importance and rare
    features."""
    W, b = learned.W[-1, 0].T, learned.b[-1, 0]  # [features, 2], [features]
    ws.typed("x", [[strength] for strength in PRESENT], NAMES, ["present: x"], top=TOP)
    ws.typed("W", W, cols=["W, number 1", "W, number 2"], style="weight", left=2, top=TOP)
    ws.typed("b", b[:, None], cols=["bias: b"], style="weight", left=4, top=TOP)


def there_and_back(ws: Composer) -> None:
    """Add the two numbers, under the columns of W that make them, and the features read from
    them."""
    x, W, b = ws["x"], ws["W"], ws["b"]
    h = ws.computed(
        "h",
        (1, D_HIDDEN),
        lambda _, k: SUMPRODUCT(x[:, 0], W[:, k]),
        ["kept: h"],
        left=2,
        top=ws.rect(W).bottom,
    )
    columns = ws.columns(N_FEATURES, TOP, left=5)
    before = columns.computed(
        "before", "W h + b", lambda i: SUMPRODUCT(W[i, :], h[0, :].fixed) + b[i]
    )
    back = columns.computed("back", "comes back", lambda i: MAX(before[i], 0), "readout")
    columns.computed("wrong", "too much", lambda i: back[i] - x[i])
    ws.cursor = ws.rect(h).bottom


def disturbs(ws: Composer) -> None:
    """Add the interference matrix [features, features], and the output computed with it."""
    x, W, b = ws["x"], ws["W"], ws["b"]
    ws.heading(
        "Interference, W Wᵀ: how much a row's feature adds to a column's feature",
        "The diagonal shows the effect of a feature on itself. Elsewhere, 0 means that two "
        "arrows are at right angles.",
    )
    table = ws.computed(
        "interference",
        ALL,
        lambda i, j: SUMPRODUCT(W[i, :], W[j, :]),
        NAMES,
        NAMES,
        dress="diverging",
    )
    ws.computed(
        "again",
        (1, N_FEATURES),
        lambda _, j: SUMPRODUCT(table[:, j], x[:, 0].fixed) + b[j],
        ["W h + b, from the table"],
        tight=True,
    )


def geometry(ws: Composer) -> None:
    """Add the length of each arrow, and the angle to the next one, in degrees."""
    interference = ws["interference"]
    lengths = ws.computed(
        "lengths", (1, N_FEATURES), lambda _, j: SQRT(interference[j, j]), ["length of the arrow"]
    )
    ws.heading(
        "Cosines: 1 for arrows that point the same way, 0 at right angles, -1 for opposite ones"
    )
    cosines = ws.computed(
        "cosines",
        ALL,
        lambda i, j: quotient(interference[i, j], lengths[i] * lengths[j]),
        NAMES,
        NAMES,
        dress="diverging",
    )
    nearest = ws.computed(
        "nearest",
        (1, N_FEATURES),
        lambda _, j: LARGE(cosines[:, j], 2),
        ["with the nearest"],
        tight=True,
    )
    ws.computed(
        "angles",
        (1, N_FEATURES),
        lambda _, j: ACOS(MAX(-1, MIN(1, nearest[j]))) * DEGREES / PI(),
        ["nearest angle, degrees"],
        style="readout",
        tight=True,
    )


def quotient(part: Expression, whole: Expression) -> Expression:
    """A quotient, 0 if the divisor is 0."""
    return IF(whole < NEAR, 0, part / whole)


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits: a neighbouring feature as well, the opposite one as well, and a bias that
    filters nothing."""
    bank, growth, tax = (NAMES.index(name) for name in ("bank", "growth", "tax"))
    x, b, back = w["x"], w["b"], w["back"]
    ws.suggest(
        w.suggestion(
            "Type ‘1’: the feature ‘tax’ is now present, too. The neighbouring arrows of ‘tax’ "
            "and ‘bank’ help each other. The output for ‘bank’ is {then:.2f}, not {now:.2f}.",
            {x[tax]: 1.0},
            back[bank],
        ),
        w.suggestion(
            "Type ‘1’: the feature ‘growth’ is now present, too. The arrow of ‘growth’ nearly "
            "cancels the arrow of ‘bank’. The output for ‘bank’ is {then:.2f}, not {now:.2f}.",
            {x[growth]: 1.0},
            back[bank],
        ),
        w.suggestion(
            "Type ‘0’ to remove the bias of ‘tax’: the output for ‘tax’ is {then:.2f}, although "
            "‘tax’ is absent. The bias and the ReLU normally remove this error.",
            {b[tax]: 0.0},
            back[tax],
        ),
    )
