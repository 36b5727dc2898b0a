"""The sheet Autoencoder: a sparse autoencoder that recovers the features from two numbers.

It never saw the features: it was trained only on the two hidden numbers of sheet Toy model, to
reconstruct them through five latents, few of which are active. Each latent's output is then
compared with the arrows of the features.
"""

from typing import NamedTuple

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
from cellformer.workbooks.superposition.measured import Examples
from cellformer.workbooks.superposition.sparsity import SHARE, expected
from cellformer.workbooks.superposition.toy import Toy, quotient
from cellformer.workbooks.superposition.trained import Trained

FOUND = 0.95  # the cosine from which a feature counts as found
LATENTS = [f"latent {k}" for k in range(1, N_LATENTS + 1)]
MIX = (0.0, 0.0, 0.8, 0.0, 0.0)
ASKED, MIXED, CODED = 6, 12, 21  # rows: settings and results, heads of two tables
PICTURE = (7, 9)


class Coder(NamedTuple):
    """An autoencoder in cells, a row for each latent."""

    E: Area  # [latents, 2]
    b: Area  # [latents, 1]
    D: Area  # [latents, 2]


class Autoencoder(NamedTuple):
    """The tables that edits are made in or seen at, and that checks read."""

    penalty: Area
    p: Area
    mix: Area  # [features, 1]
    active: Area  # [latents, 1]
    cosines: Area  # [latents, features]
    found: Area  # [1, 1]: how many features are
    unexplained: Area  # [1, 1]
    n_active: Area  # [1, 1]
    coder: Coder


def add(w: Workbook, trained: Trained, toy: Toy, examples: Examples, last: Area) -> Autoencoder:
    """The sheet, with what to try on it; `last` is the last column of sheet Examples."""
    ws = w.sheet(
        "Autoencoder",
        "five features found again in two numbers, without being told of any",
        "Who looks into a model sees h alone. The autoencoder was trained to give h back through five latents, few of them active. It was",
        "never told what was present; yet each latent has learned the arrow of one feature. That is how features are looked for in real models.",
        widths={0: 22, **dict.fromkeys(range(1, 8), 11), 8: 2},
    )
    penalty = ws.typed(
        "penalty", PENALTIES[-1], ["penalty on what is active"], style="input setting", top=ASKED
    )
    p = ws.typed("p_seen", SEEN, ["present with probability"], style="input setting", tight=True)
    ws.show("trained", (ASKED, 2), trained.encoders.said(0, penalty[0]), "note")
    for row in (ASKED, ASKED + 1):
        ws.sheet.rules[row, 1] = SHARE
    h, mix = mixed(ws, toy)
    coder, active = coded(ws, trained, penalty, h)
    cosines, found = matched(ws, toy, coder)
    answers(ws, toy, coder)
    unexplained, n_active = measured(ws, examples, toy, coder, last, p)
    made = Autoencoder(penalty, p, mix, active, cosines, found, unexplained, n_active, coder)
    suggest(w, ws, made)
    both = [Arrows(toy.W, NAMES, GROUPS[0]), Arrows(coder.D, (), GROUPS[1])]
    title = "Blue: the features. Orange: what latents write"
    draw(ws, PICTURE, title, both, (400, 410), 1.5)
    return made


def mixed(ws: Composer, toy: Toy) -> tuple[Area, Area]:
    """Add the present features, and the two numbers that the toy model makes of them: [1, 2]."""
    mix = ws.typed("mix", [[x] for x in MIX], NAMES, ["present: x"], top=MIXED)
    h = ws.computed(
        "mix_h",
        (1, D_HIDDEN),
        lambda _, k: SUMPRODUCT(mix[:, 0], toy.W[:, k]),
        ["h: what the model keeps"],
        tight=True,
    )
    return h, mix


def coded(ws: Composer, trained: Trained, penalty: Area, h: Area) -> tuple[Coder, Area]:
    """Add the latents: their weights, their activations at h, and the sum of their outputs."""
    ws.cursor = CODED - 1
    ws.text("f = ReLU(E h + b)   [5 latents]          h again = f D   [2]", style="equation")
    row = trained.encoders.row(penalty.fixed)

    def part(name: str, first: int, heads: tuple[str, ...], left: int) -> Area:
        return ws.computed(
            name,
            (N_LATENTS, len(heads)),
            lambda k, j: trained.encoders.number(row, 5 * k + first + j),
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
    return Coder(E, b, D), active


def matched(ws: Composer, toy: Toy, coder: Coder) -> tuple[Area, Area]:
    """Add the cosine of each latent's output with each feature's arrow, and how many features are
    found."""
    ws.heading("Cosines of what the latents write with the features' arrows")
    W, D = toy.W, coder.D

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
    names, below = ws.sheet[MIXED + 1 : MIXED + 1 + N_FEATURES, 0].fixed, ws.cursor
    ws.sheet.put(CODED, 7, "points to", "label")

    def nearest(k: int, _: int) -> Expression:
        return INDEX(names, MATCH(MAX(cosines[k, :]), cosines[k, :], 0))

    ws.show("points_to", (CODED + 1, 7), nearest, "word", (N_LATENTS, 1))
    found = ws.computed(
        "found",
        (1, 1),
        COUNTIF(best, f">={FOUND}"),
        [f"features found, of {N_FEATURES}"],
        style="readout count",
        top=ASKED + 2,
    )
    ws.cursor = below
    return cosines, found


def answers(ws: Composer, toy: Toy, coder: Coder) -> None:
    """Add the value of each hidden number, and of each latent, for each feature alone."""
    ws.heading("What the two numbers, and the latents, answer to each feature alone: strength 1")
    numbers = [f"number {k + 1}" for k in range(D_HIDDEN)]
    W, E = toy.W, coder.E
    alone = ws.computed("alone", (D_HIDDEN, N_FEATURES), lambda k, i: W[i, k] + 0, numbers, NAMES)
    latents = ws.computed(
        "latents_alone",
        (N_LATENTS, N_FEATURES),
        lambda k, i: MAX(0, SUMPRODUCT(E[k, :], W[i, :]) + coder.b[k]),
        LATENTS,
        style="readout",
        tight=True,
    )
    for table in (alone, latents):
        ws.dress(table, "diverging")
    ws.text("Each number answers to every feature, and means none. Each latent answers to one.")


def measured(
    ws: Composer, examples: Examples, toy: Toy, coder: Coder, last: Area, p: Area
) -> tuple[Area, Area]:
    """The share of h that is lost, and how many latents are active, over sheet Examples."""
    columns = through(examples, toy, coder, last)
    ws.heading("Over sheet Examples: sums of the subsets of 0 to 5 features")
    sums = ws.computed(
        "coded_by_number",
        (N_FEATURES + 1, len(columns)),
        lambda n, k: SUMIF(examples.present.fixed, n, columns[k].fixed) / DRAWS[n],
        [f"{n} present" for n in range(N_FEATURES + 1)],
        ["h, squared", "lost of it", "active"],
    )
    below = ws.cursor
    whole, lost, count = (expected(p, sums[:, k]) for k in range(len(columns)))
    unexplained = ws.computed(
        "unexplained",
        (1, 1),
        quotient(lost, whole),
        ["lost of h, on average"],
        style="percent",
        top=ASKED + 3,
    )
    n_active = ws.computed("n_active", (1, 1), count, ["latents active, on average"], tight=True)
    ws.cursor = below
    return unexplained, n_active


def through(examples: Examples, toy: Toy, coder: Coder, last: Area) -> tuple[Area, Area, Area]:
    """Each example through the toy model and the autoencoder: the square of h, the squared error,
    and how many latents are active: [examples, 1] each."""
    ws, x, n = examples.ws, examples.x, (N_EXAMPLES, 1)
    h = ws.computed(
        "examples_h",
        (N_EXAMPLES, D_HIDDEN),
        lambda r, k: dot(x[r, :], toy.W[:, k].fixed),
        cols=["h 1", "h 2"],
        title="through the autoencoder",
        beside=last,
    )
    f = ws.computed(
        "examples_f",
        (N_EXAMPLES, N_LATENTS),
        lambda r, k: MAX(0, SUMPRODUCT(h[r, :], coder.E[k, :].fixed) + coder.b[k].fixed),
        cols=LATENTS,
        beside=h,
    )

    def error(r: int, _: int) -> Expression:
        back = (dot(f[r, :], coder.D[:, j].fixed) for j in range(D_HIDDEN))
        return added([(again - h[r, j]) ** 2 for j, again in enumerate(back)])

    whole = ws.computed(
        "h_squared", n, lambda r, _: SUMPRODUCT(h[r, :], h[r, :]), cols=["h, squared"], beside=f
    )
    lost = ws.computed("h_lost", n, error, cols=["lost of it"], style="readout", beside=whole)
    active = ws.computed(
        "f_active",
        n,
        lambda r, _: COUNTIF(f[r, :], ">0"),
        cols=["active"],
        style="activation count",
        beside=lost,
    )
    return whole, lost, active


def suggest(w: Workbook, ws: Composer, made: Autoencoder) -> None:
    """Another feature, a smaller penalty, features that are not rare."""
    tax = NAMES.index("tax")
    other = {made.mix[tax]: 1.0}
    k = int(w.now(made.cosines)[:, tax].argmax())
    ws.suggest(
        w.suggestion(
            f"Type 1: tax is present too, and {LATENTS[k]} becomes active, with "
            f"{w.edited(other)(made.active[k]):.2f} instead of {w.now(made.active[k]):.2f}.",
            other,
            made.active[k],
        ),
        w.suggestion(
            "Type 0.03: with a small penalty {unexplained.then:.1%} of h is lost instead of {unexplained.now:.1%}, but {then:.0f} of 5 features are found.",
            {made.penalty: 0.03},
            made.found,
            unexplained=made.unexplained,
        ),
        w.suggestion(
            "Type 0.5: features often meet, and {then:.2f} latents are active on average instead of {now:.2f}.",
            {made.p: 0.5},
            made.n_active,
        ),
    )
