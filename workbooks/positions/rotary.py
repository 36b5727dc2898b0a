"""The sheet Rotary: a query and a key, rotated by their positions; their scores at many
positions."""

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import COS, SIN, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.positions.hands import D_MODEL, DIMS

M, N = 5.0, 2.0  # the places of the query and the key
GRID = 10  # how many places of each, one after another
Q_K = np.random.default_rng(3).normal(size=(2, D_MODEL)).round(1)  # d_head is d_model: one head
QUERIES = [f"q, m + {s}" for s in range(GRID)]
KEYS = [f"k, n + {s}" for s in range(GRID)]


def add(w: Workbook) -> None:
    """Add the sheet, which reads the frequencies of the hands."""
    ws = w.sheet(
        "Rotary",
        "places rotate q and k, so a score depends only on the distance of q and k",
        widths={0: 14, **dict.fromkeys(range(1, 12), 7.5)},
    )
    turned = turn(
        ws, ws.typed("m_n", [M, N], ["places m, n"], style="input setting"), w["frequencies"]
    )
    ws.heading(
        "Scores of the query at every place (rows) with the key at every place (columns)",
        "score = (q rotated by m) · (k rotated by n) = q · (k rotated by n - m)",
        style="equation",
    )
    scores = ws.computed(
        "scores",
        (GRID, GRID),
        lambda i, j: SUMPRODUCT(turned[i, :], turned[GRID + j, :]),
        QUERIES,
        KEYS,
        style="attention",
        dress="diverging",
    )
    ws.text(
        "Along the diagonal, q and k both move s places forward. Their distance stays the same."
    )
    ws.computed("diagonal", (1, GRID), lambda _, s: scores[s, s], ["score, s places on"])


def turn(ws: Composer, places: Area, frequencies: Area) -> Area:
    """Add the query and then the key, each pair rotated by the position: [queries and keys,
    d_head]."""
    x = ws.typed("q_k", Q_K, ["q   [d_head]", "k   [d_head]"], DIMS)
    ws.text("pair (a, b) → (a cos - b sin, a sin + b cos) of place × frequency", style="equation")
    at = ws.computed(
        "turned_places",
        (2 * GRID, 1),
        lambda i, _: places[i // GRID] + i % GRID,
        QUERIES + KEYS,
        ["place"],
        style="count",
    )

    def entry(i: int, j: int) -> Expression:
        pair = j // 2
        a, b = x[i // GRID, 2 * pair], x[i // GRID, 2 * pair + 1]
        angle = at[i] * frequencies[pair]
        return a * SIN(angle) + b * COS(angle) if j % 2 else a * COS(angle) - b * SIN(angle)

    return ws.computed("turned", (2 * GRID, D_MODEL), entry, cols=DIMS, beside=at)
