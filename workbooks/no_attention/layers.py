"""One layer in three models: whole; transparent, where switches set how much of attention counts;
and without attention.

A step is a table, and a function gives the formula of its cell in row i and column j, over the
tables before it. The two heads stand side by side: the queries, keys and values of head 0 in
columns 1 to 3, of head 1 in 4 to 6, and their patterns likewise, a column for each key.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import EXP, MAX, SQRT, added, dot
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.two_layers.fitting import D_HEAD, D_MLP, D_MODEL, HEADS, N_HEADS, PROMPT

WHOLE, TRANSPARENT, DELETED = MODELS = ("whole", "transparent", "deleted")
LEFT = (1, 10, 19)  # the column that each model's tables begin in
N_TOKENS = len(PROMPT)
KEYS = [slice(h * N_TOKENS, (h + 1) * N_TOKENS) for h in range(N_HEADS)]  # a pattern's columns
W_O_TIMES, W_V_TIMES = range(2)  # the rows of the switches

# The tables of one model in one layer, by step; with the weights, the stream `x` that comes in,
# and of the transparent model the `switches` [2, n_heads].
Tables = dict[str, Area]


class Step(NamedTuple):
    """A table of a layer: [n_tokens, width]."""

    name: str
    equation: str  # with its shape
    cell: Callable[[Tables, int, int], Expression | int]
    width: int = D_MODEL


def switched(t: Tables, row: int, head: int, x: Expression) -> Expression:
    """A head's output times its switch, if the model has switches."""
    return t["switches"][row, head].fixed * x if "switches" in t else x


# --- attention: the formula of a cell ----------------------------------------------------------


def score(t: Tables, i: int, j: int) -> Expression | int:
    """The score of a visible key for a query."""
    head, at = divmod(j, N_TOKENS)
    lane = HEADS[head]
    return dot(t["q"][i, lane], t["k"][at, lane]) / SQRT(D_HEAD) if at <= i else 0


def share(t: Tables, i: int, j: int) -> Expression:
    """The share of a query's attention that a key gets."""
    return t["exps"][i, j] / added(t["exps"][i, KEYS[j // N_TOKENS]].cells)


def write_back(t: Tables, i: int, j: int) -> Expression:
    """The output of both heads, each times its own switch if there are switches."""
    z, W_O = t["z"], t["W_O"]
    if "switches" not in t:
        return dot(z[i, :], W_O[:, j])
    shares = [dot(z[i, lane], W_O[lane, j]) for lane in HEADS]
    return added(switched(t, W_O_TIMES, head, share) for head, share in enumerate(shares))


PATTERNS = ("scores", "exps", "pattern")  # queries down, each head's keys across
ATTENTION = (
    Step(
        "q",
        "Q = h W_Q    [3 × 6: the two heads side by side]",
        lambda t, i, j: dot(t["x"][i, :], t["W_Q"][:, j]),
    ),
    Step("k", "K = h W_K    [3 × 6]", lambda t, i, j: dot(t["x"][i, :], t["W_K"][:, j])),
    Step(
        "v",
        "V = h W_V    [3 × 6]; transparent: each head's columns times its switch",
        lambda t, i, j: switched(t, W_V_TIMES, j // D_HEAD, dot(t["x"][i, :], t["W_V"][:, j])),
    ),
    Step(
        "scores",
        "scores = Q Kᵀ / √3    [queries × keys, for each head]; later keys are hidden",
        score,
    ),
    Step(
        "exps",
        "exponentials of the visible scores",
        lambda t, i, j: EXP(t["scores"][i, j]) if j % N_TOKENS <= i else 0,
    ),
    Step(
        "pattern",
        "pattern = exponentials / their sum in the row    [queries × keys, for each head]",
        share,
    ),
    Step(
        "z",
        "z = pattern V    [3 × 6: the two heads side by side]",
        lambda t, i, j: dot(t["pattern"][i, KEYS[j // D_HEAD]], t["v"][:, j]),
    ),
    Step(
        "attn",
        "write-back = z W_O    [3 × 6]; transparent: each head's part times its switch",
        write_back,
    ),
    Step(
        "mid", "h_mid = h + write-back    [3 × 6]", lambda t, i, j: t["x"][i, j] + t["attn"][i, j]
    ),
)

# --- the MLP -----------------------------------------------------------------------------------


def mlp(t: Tables, i: int, j: int) -> Expression:
    """The output of the MLP."""
    return dot(t["act"][i, :], t["W_2"][:, j])


MLP = (
    Step(
        "pre",
        "pre = h_mid W_1    [3 × 8]; deleted: h W_1",
        lambda t, i, j: dot(t["mid"][i, :], t["W_1"][:, j]),
        D_MLP,
    ),
    Step("act", "act = max(0, pre)    [3 × 8]", lambda t, i, j: MAX(0, t["pre"][i, j]), D_MLP),
    Step("mlp", "mlp = act W_2    [3 × 6]", mlp),
    Step(
        "h",
        "h = h_mid + mlp    [3 × 6]; deleted: h + mlp",
        lambda t, i, j: t["mid"][i, j] + t["mlp"][i, j],
    ),
)

# --- a layer's sheet ---------------------------------------------------------------------------


def layer(
    ws: Composer, n: int, streams: dict[str, Area], weights: Tables, switches: Area
) -> dict[str, Tables]:
    """Add layer n of the three models, step by step, over the incoming streams; returns their
    tables."""
    tables = {model: {"x": stream} | weights for model, stream in streams.items()}
    tables[TRANSPARENT]["switches"] = switches
    tables[DELETED]["mid"] = streams[DELETED]  # nothing is added before the MLP
    ws.sheet.put(ws.cursor + 1, LEFT[2], "deleted: no steps before ‘pre’", "note")
    for step in ATTENTION:
        put(ws, n, step, {model: tables[model] for model in (WHOLE, TRANSPARENT)})
    for step in MLP:
        put(ws, n, step, tables)
    return tables


def put(ws: Composer, n: int, step: Step, tables: dict[str, Tables]) -> None:
    """Add one step of layer n, with the models side by side."""
    ws.text(step.equation, style="equation")
    by_key = step.name in PATTERNS
    top = ws.cursor
    for left, (model, before) in zip(LEFT, tables.items(), strict=False):
        before[step.name] = ws.computed(
            f"{model}_{step.name}_{n}",
            (N_TOKENS, step.width),
            partial(step.cell, before),
            PROMPT,
            PROMPT * N_HEADS if by_key else (),
            f"{model}: {step.name}",
            "attention" if by_key else "activation",
            left=left,
            top=top,
            dress="scale" if step.name == "pattern" else None,
        )
