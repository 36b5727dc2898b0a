"""The sheet Examples: the output of several toy models for every example, and its error."""

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import COUNTIF, MAX, SUMPRODUCT, added
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.superposition.examples import DRAWS, N_EXAMPLES, N_FEATURES, NAMES, drawn

SEED = 117  # of 150 draws, that whose losses are nearest those of many: all models' to within 7 %
WEAKEST = 0.01  # strength of a feature that is present, which has two decimals


def add(w: Workbook) -> Composer:
    """The sheet, with the examples alone."""
    ws = w.sheet(
        "Examples",
        "every subset of the features, and each model's output",
        "A present feature has a strength between 0 and 1. This sheet contains all 32 subsets of "
        "the features.",
        f"A subset of 0, 1, 2, 3, 4 or 5 features has {', '.join(map(str, DRAWS[:-1]))} or "
        f"{DRAWS[-1]} examples, in this order.",
        widths={0: 8, **dict.fromkeys(range(1, 60), 8.5)},
    )
    x = drawn(np.random.default_rng(SEED))
    strengths = np.where(x > 0, x.round(2).clip(WEAKEST), 0.0)
    ws.cursor += 1
    table = ws.typed("examples", strengths, cols=NAMES, title="strengths")
    ws.computed(
        "present",
        (N_EXAMPLES, 1),
        lambda i, _: COUNTIF(table[i, :], ">0"),
        cols=["present"],
        style="activation count",
        beside=table,
    )
    return ws


def errors(ws: Composer, k: int, kind: str, beside: Area) -> Area:
    """Add the k-th toy model's output for each example, and, to the right, its squared error
    weighted by importance: [examples, 1]."""
    x, importance = ws["examples"], ws["importance"]
    interference, b = ws[f"interference_{k}"], ws[f"bias_{k}"]
    back = ws.computed(
        f"model_{k}_back",
        (N_EXAMPLES, N_FEATURES),
        lambda r, j: MAX(0, SUMPRODUCT(x[r, :], interference[j, :].fixed) + b[j].fixed),
        cols=NAMES,
        title=f"comes back: {kind}",
        beside=beside,
    )

    def error(r: int, _: int) -> Expression:
        return added([importance[j].fixed * (back[r, j] - x[r, j]) ** 2 for j in range(N_FEATURES)])

    return ws.computed(
        f"model_{k}_error", (N_EXAMPLES, 1), error, cols=["error"], style="readout", beside=back
    )
