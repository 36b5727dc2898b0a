"""The sheet Numbers: the keys and values themselves, kept from step to step and read again.

A prompt of three tokens, and two that are added one at a time. In every step the rows of earlier
tokens refer to the cells of the step before: nothing is computed again. Beside the last step is the
same head without a cache, computed from all tokens; the difference is 0.
"""

import numpy as np

from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import EXP, MAX, SQRT, SUM, SUMPRODUCT, dot
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer

TOKENS = ("the", "cat", "sat", "on", "mat")
PROMPT, N, D, D_HEAD = 3, 5, 4, 2
STEPS = ("Prefill: the whole prompt at once", "Step 1: one more token", "Step 2: one more token")
RNG = np.random.default_rng(6)
X = RNG.integers(-4, 5, (N, D)) / 2
WEIGHTS = {name: RNG.integers(-2, 3, (D, D_HEAD)) / 2 for name in ("W_Q", "W_K", "W_V")}
ALWAYS = expression(1) == 1
DIMS = [f"d{d}" for d in range(D_HEAD)]


def add(w: Workbook) -> None:
    """Add the sheet, with suggested edits."""
    ws = w.sheet(
        "Numbers",
        "the numbers in keys and values: computed once, kept, read again",
        "Numbers in italics are new in a step. Only the new numbers are computed with W_K and W_V.",
        "All other numbers come from the step before: these numbers are the cache. Each step "
        "uses its query once and then drops the query.",
        widths={0: 16, **dict.fromkeys(range(1, 26), 7.3)},
    )
    before = ws.typed("x", X, TOKENS, range(D), "x: the tokens' vectors   [5, d_model]")
    for name, values in WEIGHTS.items():
        before = ws.typed(
            name, values, (), DIMS, f"{name}   [d_model, d_head]", "weight", beside=before
        )
    for step in range(len(STEPS)):
        one_step(ws, step)
    without_cache(ws)
    suggest(w, ws)


def product(ws: Composer, weights: str, i: int, j: int) -> Expression:
    """The product of token i and a column of weights."""
    return dot(ws["x"][i, :], ws[weights][:, j])


def one_step(ws: Composer, step: int) -> None:
    """Add a step: the cache with its new rows, the last token's query, scores and result."""
    ws.heading(STEPS[step])
    n = PROMPT + step
    beside = None
    for name in "KV":

        def cell(i: int, j: int, name: str = name) -> Expression:
            kept = step and i < n - 1
            return ws[f"{name}_after_{step - 1}"][i, j] if kept else product(ws, f"W_{name}", i, j)

        beside = ws.computed(
            f"{name}_after_{step}",
            (n, D_HEAD),
            cell,
            TOKENS[:n],
            DIMS,
            f"{name}   [{n}, d_head]",
            beside=beside,
        )
        ws.mark(beside[n - 1, :] if step else beside, "generated", ALWAYS)
    attend(ws, step)


def attend(ws: Composer, step: int) -> None:
    """The last token's query, scores, shares and result over the cache."""
    keys, values = ws[f"K_after_{step}"], ws[f"V_after_{step}"]
    n = keys.shape[0]
    last = n - 1
    q = ws.computed(
        f"q_of_{step}",
        (1, D_HEAD),
        lambda _, j: product(ws, "W_Q", last, j),
        cols=DIMS,
        title=f"q of {TOKENS[last]}",
        beside=values,
    )
    scores = ws.computed(
        f"scores_of_{step}",
        (n, 1),
        lambda i, _: SUMPRODUCT(q, keys[i, :]) / SQRT(D_HEAD),
        cols=["score"],
        title="q · k / √d_head",
        beside=q,
    )
    shares = ws.computed(
        f"shares_of_{step}",
        (n, 1),
        lambda i, _: (
            EXP(scores[i] - MAX(scores)) / SUM(*(EXP(s - MAX(scores)) for s in scores.cells))
        ),
        cols=["share"],
        style="attention",
        beside=scores,
    )
    ws.computed(
        f"z_of_{step}",
        (1, D_HEAD),
        lambda _, j: SUMPRODUCT(shares, values[:, j]),
        cols=DIMS,
        title="z: shares · V",
        style="readout",
        beside=shares,
    )


def without_cache(ws: Composer) -> None:
    """The last step once more, every key and value computed anew."""
    ws.heading(
        "The last step without a cache: every key and value is computed again, with the same result"
    )
    beside = None
    for name in "KV":

        def cell(i: int, j: int, name: str = name) -> Expression:
            return product(ws, f"W_{name}", i, j)

        beside = ws.computed(f"{name}_anew", (N, D_HEAD), cell, TOKENS, DIMS, name, beside=beside)
    step = len(STEPS) - 1
    keys, values, q = ws["K_anew"], ws["V_anew"], ws[f"q_of_{step}"]
    exps = ws.computed(
        "exps_anew",
        (N, 1),
        lambda i, _: EXP(SUMPRODUCT(q, keys[i, :]) / SQRT(D_HEAD)),
        cols=["exp of score"],
        beside=values,
    )
    z = ws.computed(
        "z_anew",
        (1, D_HEAD),
        lambda _, j: SUMPRODUCT(exps, values[:, j]) / SUM(exps),
        cols=DIMS,
        title="z",
        style="readout",
        beside=exps,
    )
    cached = ws[f"z_of_{step}"]
    ws.computed(
        "z_gap",
        (1, D_HEAD),
        lambda _, j: cached[j] - z[j],
        cols=DIMS,
        title="difference",
        style="tiny",
        beside=z,
    )


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits: the first token, the last one, and the weights of queries."""
    x, step = w["x"], len(STEPS) - 1
    z, key = w[f"z_of_{step}"][0], w[f"K_after_{step}"][0, 0]
    ws.suggest(
        w.suggestion(
            "Type ‘3’ in the first token. The prefill computes the key of this token once, and "
            "every step reads this key. In the last step the key is {then:.2f}, not {now:.2f}.",
            {x[0, 1]: 3.0},
            key,
        ),
        w.suggestion(
            "Type ‘3’ in the last token: the kept key of the first token stays {then:.2f}. Later "
            "tokens do not change kept keys and values.",
            {x[N - 1, 1]: 3.0},
            key,
        ),
        w.suggestion(
            "Type ‘2’ in W_Q: keys and values stay the same. The last result goes from {now:.3f} "
            "to {then:.3f}.",
            {w["W_Q"][0, 0]: 2.0},
            z,
        ),
    )
