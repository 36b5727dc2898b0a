"""The sheet Autoencoder: a sparse autoencoder that recovers the features from two numbers.

It never saw the features: it was trained only on the two hidden numbers of sheet Toy model, to
reconstruct them through five latents, few of which are active. Each latent's output is then
compared with the arrows of the features.
"""

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import (
    COUNTIF,
    INDEX,
    MATCH,
    MAX,
    SQRT,
    SUMIF,
    SUMPRODUCT,
    added,
    dot,
)
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.theme import GROUPS
from cellformer.workbooks.superposition.arrows import Arrows, draw
from cellformer.workbooks.superposition.examples import DRAWS, N_EXAMPLES, N_FEATURES, NAMES
from cellformer.workbooks.superposition.learning import D_HIDDEN, N_LATENTS, PENALTIES, SEEN
from cellformer.workbooks.superposition.sparsity import SHARE, expected
from cellformer.workbooks.superposition.toy import quotient
from cellformer.workbooks.superposition.trained import Shelf

FOUND = 0.95  # the cosine from which a feature counts as found
LATENTS = [f"latent {k}" for k in range(1, N_LATENTS + 1)]
MIX = (0.0, 0.0, 0.8, 0.0, 0.0)
ASKED, MIXED, CODED = 6, 12, 21  # rows: settings and results, heads of two tables
PICTURE = (7, 9)


def add(w: Workbook, encoders: Shelf, examples: Composer) -> None:
    """The sheet, with edits to try on it, and columns on the sheet Examples."""
    ws = w.sheet(
        "Autoencoder",
        "how an autoencoder finds five features in two numbers without labels",
        "Inside a model you see only h. The autoencoder was trained to reproduce h through five "
        "latents, with few latents active.",
        "The training did not use the features. Still, each latent learned the arrow of one "
        "feature. Researchers search real models in the same way.",
        widths={0: 22, **dict.fromkeys(range(1, 8), 11), 8: 2},
    )
    penalty = ws.typed(
        "penalty", PENALTIES[-1], ["penalty for active latents"], style="input setting", top=ASKED
    )
    ws.typed("p_seen", SEEN, ["present with probability"], style="input setting", tight=True)
    ws.show("trained", (ASKED, 2), encoders.said(0, penalty[0]), "note")
    ws.sheet.rules |= {(ASKED, 1): SHARE, (ASKED + 1, 1): SHARE}
    mixed(ws)
    coded(ws, encoders)
    matched(ws)
    answers(ws)
    through(examples)
    measured(ws)
    suggest(w, ws)
    both = [Arrows(w["W"], NAMES, GROUPS[0]), Arrows(w["D"], (), GROUPS[1])]
    title = "Blue: features. Orange: outputs of the latents"
    draw(ws, PICTURE, title, both, (400, 410), 1.5)


def mixed(ws: Composer) -> None:
    """Add the present features, and the two numbers that the toy model makes of them: [1, 2]."""
    W, mix = ws["W"], ws.typed("mix", [[x] for x in MIX], NAMES, ["present: x"], top=MIXED)
    ws.computed(
        "mix_h",
        (1, D_HIDDEN),
        lambda _, k: SUMPRODUCT(mix[:, 0], W[:, k]),
        ["h: the two numbers"],
        tight=True,
    )


def coded(ws: Composer, encoders: Shelf) -> None:
    """Add the latents: their weights, their activations at h, and the sum of their outputs."""
    ws.cursor = CODED - 1
    ws.text("f = ReLU(E h + b)   [5 latents]          h again = f D   [2]", style="equation")
    row, h = encoders.row(ws["penalty"].fixed), ws["mix_h"]

    def part(name: str, first: int, heads: tuple[str, ...], left: int) -> Area:
        return ws.computed(
            name,
            (N_LATENTS, len(heads)),
            lambda k, j: encoders.number(row, 5 * k + first + j),
            LATENTS if left == 1 else (),
            heads,
            left=left,
            top=CODED,
        )

    E, b = part("E", 0, ("E 1", "E 2"), 1), part("b_E", 2, ("bias: b",), 3)
    D = part("D", 3, ("D 1", "D 2"), 5)
    active = ws.computed(
        "active",
        (N_LATENTS, 1),
        lambda k, _: MAX(0, SUMPRODUCT(E[k, :], h[0, :].fixed) + b[k]),
        cols=["active: f"],
        style="readout",
        left=4,
        top=CODED,
    )
    ws.computed(
        "h_again",
        (1, D_HIDDEN),
        lambda _, j: SUMPRODUCT(active[:, 0].fixed, D[:, j]),
        ["h again"],
        left=5,
        top=ws.rect(D).bottom,
    )


def matched(ws: Composer) -> None:
    """Add the cosine of each latent's output with each feature's arrow, and how many features are
    found."""
    ws.heading("Cosines between the latents' outputs and the features' arrows")
    W, D = ws["W"], ws["D"]

    def cosine(k: int, i: int) -> Expression:
        sizes = SQRT(SUMPRODUCT(D[k, :], D[k, :])) * SQRT(SUMPRODUCT(W[i, :], W[i, :]))
        return quotient(SUMPRODUCT(D[k, :], W[i, :]), sizes)

    cosines = ws.computed(
        "matching", (N_LATENTS, N_FEATURES), cosine, LATENTS, NAMES, dress="diverging"
    )
    best = ws.computed(
        "best",
        (1, N_FEATURES),
        lambda _, i: MAX(cosines[:, i]),
        ["the largest"],
        style="readout",
        tight=True,
    )
    names = ws.sheet[MIXED + 1 : MIXED + 1 + N_FEATURES, 0].fixed

    ws.show(
        "points_to",
        (CODED + 1, 7),
        lambda k, _: INDEX(names, MATCH(MAX(cosines[k, :]), cosines[k, :], 0)),
        "word",
        (N_LATENTS, 1),
        head="points to",
    )
    ws.computed(
        "found",
        (1, 1),
        COUNTIF(best, f">={FOUND}"),
        [f"features found, of {N_FEATURES}"],
        style="readout count",
        top=ASKED + 2,
    )


def answers(ws: Composer) -> None:
    """Add the value of each hidden number, and of each latent, for each feature alone."""
    ws.heading("Response of the two numbers and of the latents to each single feature (strength 1)")
    numbers = [f"number {k + 1}" for k in range(D_HIDDEN)]
    W, E, b = ws["W"], ws["E"], ws["b_E"]
    ws.computed(
        "alone",
        (D_HIDDEN, N_FEATURES),
        lambda k, i: W[i, k] + 0,
        numbers,
        NAMES,
        dress="diverging",
    )
    ws.computed(
        "latents_alone",
        (N_LATENTS, N_FEATURES),
        lambda k, i: MAX(0, SUMPRODUCT(E[k, :], W[i, :]) + b[k]),
        LATENTS,
        style="readout",
        tight=True,
        dress="diverging",
    )
    ws.text(
        "Each number responds to every feature, so no number has one meaning. Each latent "
        "responds to one feature."
    )


def measured(ws: Composer) -> None:
    """The share of h that is lost, and how many latents are active, over sheet Examples."""
    present = ws["present"].fixed
    columns = [ws[name].fixed for name in ("h_squared", "h_lost", "f_active")]
    ws.heading("Sums over the sheet Examples, for subsets of 0 to 5 features")
    sums = ws.computed(
        "coded_by_number",
        (N_FEATURES + 1, len(columns)),
        lambda n, k: SUMIF(present, n, columns[k]) / DRAWS[n],
        [f"{n} present" for n in range(N_FEATURES + 1)],
        ["h, squared", "share lost", "active"],
    )
    whole, lost, count = (expected(ws["p_seen"], sums[:, k]) for k in range(len(columns)))
    ws.computed(
        "unexplained",
        (1, 1),
        quotient(lost, whole),
        ["average share of h lost"],
        style="percent",
        top=ASKED + 3,
    )
    ws.computed("n_active", (1, 1), count, ["active latents, on average"], tight=True)


def through(ws: Composer) -> None:
    """Each example through the toy model and the autoencoder: the square of h, the squared error,
    and how many latents are active: [examples, 1] each."""
    x, W, E, b, D = ws["examples"], ws["W"], ws["E"], ws["b_E"], ws["D"]
    n = (N_EXAMPLES, 1)
    h = ws.computed(
        "examples_h",
        (N_EXAMPLES, D_HIDDEN),
        lambda r, k: dot(x[r, :], W[:, k].fixed),
        cols=["h 1", "h 2"],
        title="through the autoencoder",
        beside=ws["model_2_error"],
    )
    f = ws.computed(
        "examples_f",
        (N_EXAMPLES, N_LATENTS),
        lambda r, k: MAX(0, SUMPRODUCT(h[r, :], E[k, :].fixed) + b[k].fixed),
        cols=LATENTS,
        beside=h,
    )

    def error(r: int, _: int) -> Expression:
        back = (dot(f[r, :], D[:, j].fixed) for j in range(D_HIDDEN))
        return added([(again - h[r, j]) ** 2 for j, again in enumerate(back)])

    whole = ws.computed(
        "h_squared", n, lambda r, _: SUMPRODUCT(h[r, :], h[r, :]), cols=["h, squared"], beside=f
    )
    lost = ws.computed("h_lost", n, error, cols=["share lost"], style="readout", beside=whole)
    ws.computed(
        "f_active",
        n,
        lambda r, _: COUNTIF(f[r, :], ">0"),
        cols=["active"],
        style="activation count",
        beside=lost,
    )


def suggest(w: Workbook, ws: Composer) -> None:
    """Another feature, a smaller penalty, features that are not rare."""
    tax = NAMES.index("tax")
    k = int(w.now(w["matching"])[:, tax].argmax())
    active = w["active"][k]
    ws.suggest(
        w.suggestion(
            f"Type ‘1’: the feature ‘tax’ is now present, too. {LATENTS[k].capitalize()} becomes "
            "active: its value is {then:.2f}, not {now:.2f}.",
            {w["mix"][tax]: 1.0},
            active,
        ),
        w.suggestion(
            "Type ‘0.03’, a small penalty: the autoencoder loses only {unexplained.then:.1%} of "
            "h, not {unexplained.now:.1%}. But it finds {then:.0f} of 5 features, not {now:.0f}.",
            {w["penalty"]: 0.03},
            w["found"],
            unexplained=w["unexplained"],
        ),
        w.suggestion(
            "Type ‘0.5’: features are often present together. On average, {then:.2f} latents are "
            "active, not {now:.2f}.",
            {w["p_seen"]: 0.5},
            w["n_active"],
        ),
    )
