"""one-head's sheet Tensors: Q and K of all heads, cut into heads; the scores of one head."""

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import SQRT, SUMPRODUCT
from cellformer.exporters.assemble.worksheets import Comparison, Workbook
from cellformer.exporters.compose.composer import Composer

T, HEADS, D_HEAD = 3, 2, 2
D = HEADS * D_HEAD
TOKENS = ("fluffy", "blue", "creature")
RNG = np.random.default_rng(4)
X = RNG.integers(-4, 5, (T, D)) / 2
W_Q, W_K = (RNG.integers(-2, 3, (D, D)) / 2 for _ in range(2))
Q_EXAMPLE, K_EXAMPLE = (2.0, 4.0, 6.0), (1.0, 3.0, 5.0)
COLUMNS = [f"h{h}, d{d}" for h in range(HEADS) for d in range(D_HEAD)]
SCORES = (T, HEADS * T)  # the two heads side by side
PAIRS = [f"h{h}: {token}" for h in range(HEADS) for token in TOKENS]


def add(w: Workbook) -> None:
    """Add the sheet."""
    ws = w.sheet(
        "Tensors",
        "Q of all heads in one table, with a right and a wrong cut into heads",
        "One product gives the queries of all heads side by side: Q = X W_Q, [T, n_heads · d_head].",
        "view(T, n_heads, d_head) cuts Q by columns: for every token, head h gets d_head columns "
        "from column h · d_head on.",
        widths={0: 16, **dict.fromkeys(range(1, 26), 9)},
    )
    x = ws.typed("X", X, TOKENS, range(D), "X   [T, d_model]")
    wq = ws.typed("W_Q", W_Q, range(D), COLUMNS, "W_Q   [d_model, n_heads · d_head]", "weight", x)
    wk = ws.typed("W_K", W_K, range(D), COLUMNS, "W_K", "weight", wq)

    def product(weights: Area, i: int, j: int) -> Expression:
        terms = [x[i, k] * weights[k, j] for k in range(D)]
        return terms[0] + terms[1] + terms[2] + terms[3]

    q = ws.computed("Q", (T, D), lambda i, j: product(wq, i, j), TOKENS, COLUMNS, "Q = X W_Q")
    k = ws.computed("K", (T, D), lambda i, j: product(wk, i, j), (), COLUMNS, "K", beside=q)
    cut(ws, q)
    scores(ws, q, k)
    example(ws)
    suggest(w, ws)


def cut(ws: Composer, q: Area) -> None:
    """Add head 0's queries by a slice, which is permute(1, 0, 2) of the view; and by a plain
    reshape."""
    ws.heading(
        "The queries of head 0.0, cut in two ways: view with permute, and reshape without permute",
        "right: Q.view(T, n_heads, d_head).permute(1, 0, 2)[0]   [T, d_head]: the first d_head columns",
        "wrong: Q.reshape(n_heads, T, d_head)[0]   [T, d_head]: the first T · d_head numbers, row by row",
        style="equation",
    )
    shape = (T, D_HEAD)
    right = ws.computed("head_0", shape, lambda i, j: q[i, j], TOKENS, ("d0", "d1"), "right")

    wrong = ws.computed(
        "reshaped",
        shape,
        lambda i, j: q[divmod(i * D_HEAD + j, D)],
        (),
        ("d0", "d1"),
        "wrong",
        beside=right,
    )
    places = [[f"{TOKENS[n // D]} {n % D}"] for n in range(T * D_HEAD)]
    ws.typed(
        "from",
        [[places[i * D_HEAD + j][0] for j in range(D_HEAD)] for i in range(T)],
        (),
        ("d0", "d1"),
        "where the wrong numbers come from: token, column",
        "label",
        wrong,
    )


def scores(ws: Composer, q: Area, k: Area) -> None:
    """Add every head's scores by slices, and by the sum in the einsum's notation."""
    ws.heading(
        "Scores of both heads [n_heads, T, T], side by side: queries in rows, keys in columns",
        "einsum('thd,Thd->htT', Q, K)[h, t, T] = sum over d of Q[t, h, d] K[T, h, d];   / √d_head",
        style="equation",
    )

    def by_slice(i: int, j: int) -> Expression:
        lane = slice(j // T * D_HEAD, (j // T + 1) * D_HEAD)
        return SUMPRODUCT(q[i, lane], k[j % T, lane]) / SQRT(D_HEAD)

    def by_einsum(i: int, j: int) -> Expression:
        first = j // T * D_HEAD
        return (q[i, first] * k[j % T, first] + q[i, first + 1] * k[j % T, first + 1]) / SQRT(
            D_HEAD
        )

    slices = ws.computed("by_slices", SCORES, by_slice, TOKENS, PAIRS, "by slices")
    sums = ws.computed("by_einsum", SCORES, by_einsum, (), PAIRS, "by the einsum", beside=slices)
    ws.dress(slices, "diverging")
    ws.computed(
        "einsum_gap",
        SCORES,
        lambda i, j: slices[i, j] - sums[i, j],
        TOKENS,
        title="difference: 0",
        style="tiny",
    )


def example(ws: Composer) -> None:
    """The notes' small example of a product of three numbers."""
    ws.heading(
        "The notes' example: one query, one key, d_head = 3",
        "score = q · k / √3. The notes divide by √3 in one place, and omit √3 in another place.",
        style="equation",
    )
    q = ws.typed("q_example", [Q_EXAMPLE], ["q"], ("d0", "d1", "d2"))
    k = ws.typed("k_example", [K_EXAMPLE], ["k"])
    formulas = (SUMPRODUCT(q, k), SUMPRODUCT(q, k) / SQRT(3))
    ws.computed(
        "score_example", (1, 2), lambda _, j: formulas[j], ["score"], ("q · k", "q · k / √3")
    )


def suggest(w: Workbook, ws: Composer) -> None:
    """Edits: the other head's slice, the example's root, a key."""
    wq, k, scores = w["W_Q"], w["k_example"], w["by_slices"]
    ws.suggest(
        w.suggestion(
            "Type ‘2’ in a column of head 0.1. In head 0.0, the score of the query ‘creature’ "
            "with the key ‘fluffy’ stays {then:.3f}.",
            {wq[0, 2]: 2.0},
            scores[2, 0],
        ),
        w.suggestion(
            "Type ‘2’ in a key column of head 0.0. The score of the query ‘creature’ with the "
            "key ‘fluffy’ goes from {now:.3f} to {then:.3f}.",
            {w["W_K"][0, 0]: 2.0},
            scores[2, 0],
        ),
        w.suggestion(
            "Type ‘0’ as the last number of k: 44 / √3 = {now:.3f} becomes 14 / √3 = {then:.3f}.",
            {k[0, 2]: 0.0},
            w["score_example"][1],
        ),
    )


def printed(w: Workbook) -> list[Comparison]:
    """The notes' example."""
    dot, divided = w["score_example"][0], w["score_example"][1]
    note = (
        "section 5.4 first divides the score by √3, but ends with scores = 44, without the division"
    )
    return [
        Comparison("q · k of (2, 4, 6) and (1, 3, 5)", 44, dot, "", 0),
        Comparison("score of q and k: 44/√3", 44 / 3**0.5, divided, "", 3),
        Comparison("score of q and k at the end of section 5.4", 44, divided, note, 0),
    ]
