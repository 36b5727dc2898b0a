"""A model of two layers in three versions: whole, its attention transparent, or deleted; its values
by numpy, and the formulas of its cells."""

from typing import NamedTuple

import numpy as np

from exporters.by_hand import Formula, Table, Worksheet
from workbooks import _two_layers as fitted
from workbooks._matrices import times
from workbooks._two_layers import D_HEAD, HEADS, N_HEADS, PROMPT, Layer

MODELS = ("whole", "transparent", "deleted")
LEFT = (1, 10, 19)  # the column that each model's tables begin in
HEAD_NAMES = ("1.1", "1.2", "2.1", "2.2")  # layer and number
LAST = len(PROMPT) - 1
# Switches: what W_O's rows (first line) and W_V's columns of each head are multiplied by.
ON = np.ones((2, len(HEAD_NAMES)))
MUTE = np.array([[0.0] * 4, [1.0] * 4])  # W_O = 0
Values = dict[str, np.ndarray]
Tables = dict[str, Table]


class Inputs(NamedTuple):
    """What is typed."""

    h0: np.ndarray  # [n_tokens, d_model]
    layers: tuple[Layer, Layer]
    U: np.ndarray  # [d_model, d_vocab]
    switches: np.ndarray  # [2, heads of both layers]: of the transparent model


def inputs() -> Inputs:
    """As built: the fitted model of section 6, every head's write-back at 0."""
    U = fitted.unembedding(fitted.embeddings(len(PROMPT))[0])
    return Inputs(fitted.H0, fitted.layers()[0], U, MUTE)


def attention(x: np.ndarray, layer: Layer, on: np.ndarray) -> Values:
    """What two heads do with the stream x [n_tokens, d_model]; `on` [2, n_heads] their switches."""
    writes, carries = np.repeat(on, D_HEAD, axis=1)
    q, k, v = x @ layer.W_Q, x @ layer.W_K, x @ layer.W_V * carries
    scores = [q[:, lane] @ k[:, lane].T / np.sqrt(D_HEAD) for lane in HEADS]
    patterns = [fitted.softmax(s) for s in scores]
    z = np.hstack([p @ v[:, lane] for p, lane in zip(patterns, HEADS, strict=True)])
    seen = np.tile(np.tri(len(x)), N_HEADS)
    s = np.hstack(scores) * seen
    attn = z * writes @ layer.W_O
    return {"q": q, "k": k, "v": v, "scores": s, "exps": np.exp(s) * seen,
            "pattern": np.hstack(patterns), "z": z, "attn": attn, "mid": x + attn}  # fmt: skip


def stream(given: Inputs, model: str) -> list[Values]:
    """Everything that one of MODELS computes, a dict for each layer."""
    found, x = [], given.h0
    switches = given.switches if model == "transparent" else ON
    for n, layer in enumerate(given.layers):
        on = switches[:, n * N_HEADS : (n + 1) * N_HEADS]
        values = {} if model == "deleted" else attention(x, layer, on)
        mid = values.get("mid", x)
        pre = mid @ layer.W_1
        mlp = np.maximum(pre, 0) @ layer.W_2
        values |= {"pre": pre, "act": np.maximum(pre, 0), "mlp": mlp, "h": mid + mlp}
        found.append(values)
        x = values["h"]
    return found


def last_word(given: Inputs) -> Values:
    """Logits, exponentials, probabilities after the last word: [models, d_vocab] each."""
    last = np.array([stream(given, model)[-1]["h"][LAST] for model in MODELS])
    exps = np.exp(last @ given.U)
    probs = exps / exps.sum(axis=1, keepdims=True)
    return {"logits": last @ given.U, "exps": exps, "probs": probs}


# --- the formulas ------------------------------------------------------------------------------

STEPS = (  # name, equation and shape
    ("q", "Q = h W_Q    [3 × 6: head 1 in columns 1 to 3, head 2 in 4 to 6]"),
    ("k", "K = h W_K    [3 × 6]"),
    ("v", "V = h W_V    [3 × 6]; transparent: each head's columns times its switch"),
    ("scores", "scores = Q Kᵀ / √3    [queries × keys, for each head]; a later key is not seen"),
    ("exps", "exponentials of the scores that are seen"),
    ("pattern", "pattern = exponentials / their sum in the row    [queries × keys, for each head]"),
    ("z", "z = pattern V    [3 × 6: the two heads side by side]"),
    ("attn", "write-back = z W_O    [3 × 6]; transparent: each head's share times its switch"),
    ("mid", "h_mid = h + write-back    [3 × 6]"),
    ("pre", "pre = h_mid W_1    [3 × 8]; deleted: h W_1"),
    ("act", "act = max(0, pre)    [3 × 8]"),
    ("mlp", "mlp = act W_2    [3 × 6]"),
    ("h", "h = h_mid + mlp    [3 × 6]; deleted: h + mlp"),
)


def _lane(j: int) -> range:
    """The columns of the head that column j belongs to."""
    return range(j - j % D_HEAD, j - j % D_HEAD + D_HEAD)


def _score(q: Table, k: Table, i: int, j: int) -> str:
    products = "+".join(f"{q.at(i, c)}*{k.at(j % D_HEAD, c)}" for c in _lane(j))
    return f"({products})/SQRT({D_HEAD})"


def _share(z: Table, W_O: Table, i: int, j: int, lane: slice) -> str:
    """What one head writes into row i and column j."""
    return "+".join(f"{z.at(i, c)}*{W_O.at(c, j)}" for c in range(lane.start, lane.stop))


def _before_mlp(at: Tables, model: str, n: int) -> Table:
    """What the MLP reads: h_mid, or without attention the stream as it comes."""
    if model != "deleted":
        return at[f"{model}_mid_{n}"]
    return at["h0"] if n == 1 else at[f"{model}_h_{n - 1}"]


def formula(at: Tables, model: str, n: int, step: str) -> Formula:
    """The cells of one step of layer n: [n_tokens, columns], each head in its lane of columns."""
    x = at["h0"] if n == 1 else at[f"{model}_h_{n - 1}"]

    def of(name: str) -> Table:
        return at[f"{model}_{name}_{n}"]

    def switched(row: int, head: int, text: str) -> str:
        switch = at["switches"].at(row, (n - 1) * N_HEADS + head, fixed=True)
        return f"{switch}*({text})" if model == "transparent" else text

    match step:
        case "q" | "k":
            return times(x, at[f"W_{step.upper()}_{n}"])
        case "v":
            values = times(x, at[f"W_V_{n}"])
            return lambda i, j: switched(1, j // D_HEAD, values(i, j))
        case "scores":
            return lambda i, j: _score(of("q"), of("k"), i, j) if j % D_HEAD <= i else "0"
        case "exps":
            return lambda i, j: f"EXP({of('scores').at(i, j)})" if j % D_HEAD <= i else "0"
        case "pattern":
            e = of("exps")
            return lambda i, j: f"{e.at(i, j)}/({'+'.join(e.at(i, k) for k in _lane(j))})"
        case "z":
            p, v = of("pattern"), of("v")
            return lambda i, j: "+".join(
                f"{p.at(i, k)}*{v.at(t, j)}" for t, k in enumerate(_lane(j))
            )
        case "attn":
            return lambda i, j: "+".join(
                switched(0, h, _share(of("z"), at[f"W_O_{n}"], i, j, lane))
                for h, lane in enumerate(HEADS)
            )
        case "mid":
            return lambda i, j: f"{x.at(i, j)}+{of('attn').at(i, j)}"
        case "pre":
            return times(_before_mlp(at, model, n), at[f"W_1_{n}"])
        case "act":
            return lambda i, j: f"MAX(0,{of('pre').at(i, j)})"
        case "mlp":
            return times(of("act"), at[f"W_2_{n}"])
        case _:
            before = _before_mlp(at, model, n)
            return lambda i, j: f"{before.at(i, j)}+{of('mlp').at(i, j)}"


def layer(ws: Worksheet, at: Tables, n: int, values: dict[str, Values]) -> None:
    """One layer: every step of the three models side by side; [n_tokens, columns] each."""
    ws.sheet.put(ws.cursor + 1, LEFT[2], "deleted: no attention, so nothing down to pre", "note")
    for step, equation in STEPS:
        ws.text(equation, style="equation")
        top = ws.cursor
        for left, model in zip(LEFT, MODELS, strict=True):
            if step in values[model]:
                ws.cursor, name = top, f"{model}_{step}_{n}"
                cols = PROMPT * 2 if step in ("scores", "exps", "pattern") else ()
                style = "attention" if cols else "activation"
                at[name] = ws.table(name, values[model][step], formula(at, model, n, step), PROMPT,
                                    cols, f"{model}: {step}", style, left=left)  # fmt: skip
                if step == "pattern":
                    ws.shade(at[name].rect, "scale")
