"""The sheets Room and Directions: how many nearly orthogonal directions a space has room for.

Only d directions in d dimensions are orthogonal. Many more are nearly so. At most a share of exp(-d
ε² / 2) of a sphere has a cosine of ε or more with a direction (Ball 1997, *An Elementary
Introduction to Modern Convex Geometry*, lemma 2.2). So among N random directions, fewer than N²
exp(-d ε² / 2) pairs are expected to have an absolute cosine of ε or more. For N = exp(d ε² / 4)
that is less than one pair, so that some N directions have none. (Johnson and Lindenstrauss 1984 is
the same count for distances.)
"""

import numpy as np

from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import (
    ABS,
    COUNTIF,
    EXP,
    IF,
    IFERROR,
    INT,
    LN,
    MAX,
    MIN,
    SQRT,
    SUM,
    SUMIF,
    SUMPRODUCT,
)
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import between

N, D_MOST = 20, 64  # random directions, and how many numbers each has
SAMPLED = (2.0, 16.0, 64.0)  # dimensions of the sample
SPACES = (768.0, 2048.0, 4096.0, 12288.0)  # the first is GPT-2 small's, the last GPT-3's
BELOW = np.arange(1, 10) / 10  # cosines below which pairs are counted
NEAR = 0.3  # a cosine below this counts as nearly at right angles
VECTORS = np.random.default_rng(3).normal(size=(D_MOST, N)).round(2)
SMALL = between(0, 1, "Type a number from 0 to 1.", "Not a cosine")
MANY = f"Type a whole number from 1 to {D_MOST}."
WIDTHS = between(1, D_MOST, MANY, "Not that many", whole=True)
KEPT = [f"v{k}" for k in range(1, N + 1)]


def add(w: Workbook) -> None:
    """Add the sheets, with suggested edits."""
    ws = w.sheet(
        "Room",
        "how many nearly orthogonal directions fit into a space",
        "In a plane, five arrows already disturb each other. In many dimensions, two random "
        "directions are nearly at right angles.",
        "A model of 12,288 dimensions has room for far more directions, if these directions "
        "may overlap a little.",
        widths={0: 40, **dict.fromkeys(range(1, 12), 12)},
    )
    ws.cursor += 1
    ws.typed(
        "near",
        NEAR,
        ["nearly orthogonal: cosine below ε ="],
        style="input setting",
        rule=SMALL,
    )
    sample(w, ws)
    large(ws)
    suggest(w, ws)
    spread(ws)


def sample(w: Workbook, ws: Composer) -> None:
    """Add random directions in cells: how many of them fit, beside the formulas."""
    ws.heading(
        "A random direction is kept if it is nearly at right angles to all directions kept before",
        "The sheet Directions has the vectors and every cosine. Only the first d "
        "numbers of a vector are used.",
        style="note",
    )
    n, near = (1, len(SAMPLED)), ws["near"]
    typed = ws.typed("widths", SAMPLED, ["dimensions d, up to 64"], style="input setting")
    ws.sheet.areas.append((ws.rect(typed), WIDTHS))
    widths = ws.computed(
        "counted",
        n,
        lambda _, k: MIN(D_MOST, MAX(1, IFERROR(INT(typed[k]), 1))),
        [f"d in use, from 1 to {D_MOST}"],
        style="count",
        tight=True,
    )
    fit = ws.promised("fit", n, [f"directions kept, of {N}"], tight=True)
    typical = ws.promised("typical", n, ["typical cosine (root mean square)"], tight=True)
    ws.computed(
        "expected_cosine", n, lambda _, k: 1 / SQRT(widths[k]), ["by formula: 1 / √d"], tight=True
    )
    share = ws.promised("share", n, ["pairs with a cosine of ε or more"], tight=True)
    ws.computed(
        "bound",
        n,
        lambda _, k: MIN(1, 2 * EXP(-widths[k] * near**2 / 2)),
        ["limit by formula: 2 exp(-d ε² / 2)"],
        style="percent",
        tight=True,
    )
    directions(w)
    cosines, kept = ([ws[f"{name}_{k}"] for k in range(n[1])] for name in ("cosines", "kept"))
    pairs = N * (N - 1)
    ws.fill(fit, lambda _, k: SUM(kept[k]), "readout count")
    ws.fill(typical, lambda _, k: SQRT(MAX(0, SUMPRODUCT(cosines[k], cosines[k]) - N) / pairs))
    ws.fill(share, lambda _, k: MAX(0, COUNTIF(cosines[k], ">=" & near) - N) / pairs, "percent")


def directions(w: Workbook) -> None:
    """Add the vectors, and for each sample's dimensions every absolute cosine [N, N], and the
    directions that are kept [1, N]."""
    ws = w.sheet(
        "Directions",
        f"{N} random vectors, and the absolute cosine of every pair",
        widths={0: 20, **dict.fromkeys(range(1, N + len(SAMPLED) + 2), 7)},
    )
    ws.heading(
        "Cosines: a direction is kept (1) if its cosines with all kept directions are below ε"
    )
    top, widths = ws.cursor, w["counted"]
    ws.cursor += len(SAMPLED) * (N + 5)
    ws.heading("The vectors in columns, drawn from the normal distribution, and the numbers in use")
    vectors = ws.typed("vectors", VECTORS, range(1, D_MOST + 1), KEPT)
    ws.computed(
        "used",
        (D_MOST, len(SAMPLED)),
        lambda i, k: IF(widths[k] > i, 1, 0),
        cols=[f"in {k}" for k in range(1, len(SAMPLED) + 1)],
        style="activation count",
        beside=vectors,
    )
    for k in range(len(SAMPLED)):
        _cosines(ws, top + k * (N + 5), k)


def _cosines(ws: Composer, top: int, k: int) -> None:
    """Add the cosines [N, N] for the k-th number of dimensions, and which directions are kept [1,
    N]."""
    vectors, used, near = ws["vectors"], ws["used"][:, k].fixed, ws["near"]
    lengths = ws.computed(
        f"sizes_{k}",
        (1, N),
        lambda _, j: SQRT(SUMPRODUCT(vectors[:, j], vectors[:, j], used)),
        [f"sample {k + 1}: length"],
        KEPT,
        top=top,
    )
    kept = ws.promised(f"kept_{k}", (1, N), ["kept"], tight=True)

    def cosine(i: int, j: int) -> Expression:
        product = SUMPRODUCT(vectors[:, i], vectors[:, j], used)
        return ABS(product) / (lengths[i] * lengths[j])

    cosines = ws.computed(f"cosines_{k}", (N, N), cosine, KEPT, tight=True, dress="scale")

    def is_kept(_: int, j: int) -> Expression | int:
        if not j:
            return 1
        return IF(SUMIF(cosines[j, :j], ">=" & near, kept[0, :j]) > 0, 0, 1)

    ws.fill(kept, is_kept, "readout count")


def spread(ws: Composer) -> None:
    """Add how many pairs have a cosine below each of several values, as lines."""
    ws.heading("Share of pairs with a cosine below each limit")
    top, widths = ws.cursor, ws["counted"]
    limits = ws.typed("limits", BELOW[:, None], cols=["cosine"], style="input setting")
    shares = ws.computed(
        "below",
        (len(BELOW), len(SAMPLED)),
        lambda i, k: COUNTIF(ws[f"cosines_{k}"].fixed, "<" & limits[i]) / (N * (N - 1)),
        cols=[widths[k] for k in range(len(SAMPLED))],
        style="percent",
        left=2,
        top=top,
    )
    place = ws.rect(shares)
    heads = [ws.sheet[place.top - 1, place.left + k] for k in range(len(SAMPLED))]
    ws.chart(
        Chart(
            6,
            6,
            "scatter",
            "Pairs with a cosine below x, by dimensions",
            [Series(head, limits, shares[:, k]) for k, head in enumerate(heads)],
            size=(430, 360),
            axes=("x", "pairs"),
            joined=True,
            number="0.0",
            shares=True,
        )
    )


def large(ws: Composer) -> None:
    """Add the bound for spaces as large as models have."""
    ws.heading(
        "By formula: in larger spaces, at least exp(d ε² / 4) directions are nearly at right angles",
        "the number of directions has about d ε² / 4 / ln 10 digits",
        style="equation",
    )
    n, near = (1, len(SPACES)), ws["near"]
    spaces = ws.typed("spaces", SPACES, ["dimensions d"], style="input setting")
    digits = ws.computed(
        "digits",
        n,
        lambda _, k: spaces[k] * near**2 / 4 / LN(10),
        ["directions: 10 to the power of"],
        style="readout",
        tight=True,
    )
    ws.computed(
        "times",
        n,
        lambda _, k: digits[k] - LN(spaces[k]) / LN(10),
        ["per dimension: 10 to the power of"],
        tight=True,
    )


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits: more interference, fewer dimensions, a smaller model."""
    near, fit, most = w["near"], w["fit"], w["digits"][-1]
    ws.suggest(
        w.suggestion(
            "Type ‘0.5’: more interference is allowed, so there is more room. "
            f"In {SAMPLED[1]:.0f} dimensions {{then:.0f}} of {N} directions fit, not {{now:.0f}}.",
            {near: 0.5},
            fit[1],
        ),
        w.suggestion(
            f"Type ‘32’: in half the dimensions, {{then:.0f}} of {N} directions fit, not "
            "{now:.0f}.",
            {w["widths"][2]: 32.0},
            fit[2],
        ),
        w.suggestion(
            "Type ‘0.1’: in the 12,288 dimensions of GPT-3, the number of directions that fit "
            "is 10 to the power of {then:.1f}, not {now:.1f}.",
            {near: 0.1},
            most,
        ),
    )
