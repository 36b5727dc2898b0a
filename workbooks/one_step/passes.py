"""The formulas of one step: the forward pass, which is made twice, the backward pass, and the
update.

Tables are those of `blocks`: words run down, a vector's numbers to the right. The last word's query
is the only one, since the loss is that of its next word.
"""

from collections.abc import Mapping

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import (
    EXP,
    IF,
    INDEX,
    LN,
    MATCH,
    MAX,
    SQRT,
    SUM,
    SUMPRODUCT,
    dot,
)
from cellformer.exporters.compose.composer import Formula
from cellformer.workbooks.one_step.blocks import LAST, D

Tables = Mapping[str, Area]  # by the names of `blocks`


def forward(t: Tables, words: Area, following: Area) -> dict[str, Formula]:
    """The formulas of a forward pass over its own tables, block by block."""
    x, q, k, v, z, h = (t[name] for name in ("x", "q", "k", "v", "z", "h"))
    score, e_score, share = t["score"], t["e_score"], t["share"]
    logit, e_logit = t["logit"], t["e_logit"]
    said = INDEX(logit, MATCH(following, words, 0))  # the logit of the word that comes
    return {
        "q": lambda _, c: dot(x[LAST, :], t["W_Q"][:, c]),
        "k": lambda i, c: dot(x[i, :], t["W_K"][:, c]),
        "v": lambda i, c: dot(x[i, :], t["W_V"][:, c]),
        "score": lambda i, _: SUMPRODUCT(q, k[i, :]) / SQRT(D),
        "e_score": lambda i, _: EXP(score[i] - MAX(score)),
        "share": lambda i, _: e_score[i] / SUM(e_score),
        "z": lambda _, c: SUMPRODUCT(share, v[:, c]),
        "out": lambda _, c: dot(z, t["W_O"][:, c]),
        "h": lambda _, c: x[LAST, c] + t["out"][c],
        "logit": lambda w, _: SUMPRODUCT(h, t["W_U"][w, :]),
        "e_logit": lambda w, _: EXP(logit[w] - MAX(logit)),
        "p": lambda w, _: e_logit[w] / SUM(e_logit),
        "loss": lambda *_: LN(SUM(e_logit)) - (said - MAX(logit)),
    }


def backward(t: Tables, d: Tables, words: Area, following: Area) -> dict[str, Formula]:
    """The formulas of the gradients `d` over the tables of the forward pass."""
    x, q, k, v = (t[name] for name in ("x", "q", "k", "v"))
    share, h = t["share"], t["h"]
    d_score, d_share = d["score"], d["share"]

    def of_x(i: int, c: int) -> Expression:
        """The gradient of a word's vector: through key and value; for the last word also through
        the query, and directly."""
        total = SUMPRODUCT(d["k"][i, :], t["W_K"][c, :]) + SUMPRODUCT(d["v"][i, :], t["W_V"][c, :])
        return total if i < LAST else total + SUMPRODUCT(d["q"], t["W_Q"][c, :]) + d["h"][c]

    return {
        "loss": lambda *_: 1,
        "p": lambda w, _: IF(words[w] == following, 1, 0),  # what it should have been
        "logit": lambda w, _: (t["p"][w] - d["p"][w]) * d["loss"],
        "W_U": lambda w, c: d["logit"][w] * h[c],
        "h": lambda _, c: SUMPRODUCT(d["logit"], t["W_U"][:, c]),
        "out": lambda _, c: d["h"][c],
        "W_O": lambda r, c: t["z"][r] * d["out"][c],
        "z": lambda _, r: SUMPRODUCT(d["out"], t["W_O"][r, :]),
        "share": lambda i, _: SUMPRODUCT(d["z"], v[i, :]),
        "v": lambda i, c: share[i] * d["z"][c],
        "score": lambda i, _: share[i] * (d_share[i] - SUMPRODUCT(share, d_share)),
        "q": lambda _, c: SUMPRODUCT(d_score, k[:, c]) / SQRT(D),
        "k": lambda i, c: d_score[i] * q[c] / SQRT(D),
        "W_Q": lambda r, c: x[LAST, r] * d["q"][c],
        "W_K": lambda r, c: SUMPRODUCT(x[:, r], d["k"][:, c]),
        "W_V": lambda r, c: SUMPRODUCT(x[:, r], d["v"][:, c]),
        "x": of_x,
    }


def step(w: Area, gradient: Area, rate: Area) -> Formula:
    """The formula of a weight after the step."""
    return lambda i, j: w[i, j] - rate * gradient[i, j]
