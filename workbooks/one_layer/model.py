"""one-layer's sheet Model: embedding, two heads, MLP, unembedding; LayerNorm before both."""

from functools import reduce
from operator import and_

from cellformer.engine.cells.access import Span
from cellformer.engine.cells.expression import Expression
from cellformer.engine.cells.functions import AVERAGE, EXP, IF, MAX, SQRT, SUM, VARP
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.studies.part_names import said
from cellformer.exporters.assemble.matrices import (
    Cells,
    Matrix,
    MatrixSheet,
    hstack,
    numbered,
    shares_of_rows,
    sums_of_rows,
    vstack,
)
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Texts
from cellformer.exporters.compose.sentences import percent, quote, sentence
from cellformer.workbooks.one_layer import tables
from cellformer.workbooks.one_layer.weights import (
    D_HEAD,
    FEATURES,
    HEADS,
    N_VOCAB,
    RULES,
    SWITCHES,
    N,
)

LAST = N - 1  # the last word
NAMES = {"d_model": FEATURES, "d_mlp": RULES}
WIRED = (
    "The weights are set by hand. Head 0.0 looks for the kind of place. Head 0.1 looks for ‘of’, "
    "because a name follows ‘of’. The MLP has a cell for each rule."
)
CHART = 10  # the column in which the chart begins


def labels(w: Workbook, name: str, shape: Span) -> tuple[Texts, Texts]:
    """The row and column labels of a matrix: typed words, the vocabulary's, or numbers, by its
    shape in the document's tables."""
    axes, found = tables.AXES.get(name, ("", "")), [*numbered(name, shape)]
    for k, axis in enumerate(axes):
        if axis == "n":
            found[k] = [w["tokens"][0, j] for j in range(N)]
        elif axis == "n_vocab":
            found[k] = [w["vocabulary"][i, 0] for i in range(N_VOCAB)]
        elif axis in NAMES:
            found[k] = NAMES[axis]
    rows, cols = found
    return rows, cols


def embed(page: MatrixSheet) -> None:
    """Add the words, the switches, and x_0 = W_E t + W_pos; the prediction is added beside them
    later."""
    page.ws.cursor += 2  # the claim
    page.ws.heading("What to type: words of the vocabulary, and switches (1 is on, 0 off)")
    tokens = page.given("tokens", style="token", rows=["words"])
    vocabulary = page.given(
        "vocabulary", page.given("switches", style="switch", rows=SWITCHES), "token"
    )
    page.ws.cursor += 4  # three edits
    page.section("Embedding", "x_0 = W_E t + W_pos    [d_model × n], t one-hot [n_vocab × n]")
    W_E = page.given("W_E")

    def one_hot(i: int, j: int) -> Expression:
        return IF(tokens[0, j] == vocabulary[i, 0], 1, 0)

    t = page.computed("t", Matrix((vocabulary.shape[0], N), one_hot), W_E)
    W_pos = page.given("W_pos", t)
    page.computed("x_0", W_E @ t + W_pos, W_pos)


def claim(page: MatrixSheet) -> None:
    """Add where the last word looks, beside the words; and on top the claim, in a sentence."""
    ws, tokens, following = page.ws, page["tokens"], page["next"]
    place = ws.rect(tokens.area)
    looks = ws.computed(
        "looks",
        (len(HEADS), N),
        lambda h, j: page[f"A_h{HEADS[h]}"][LAST, j] + 0,
        [said(f"blocks.0.attn.h{h - 1}") for h in HEADS],
        [tokens[0, j] for j in range(N)],
        "where the last word looks",
        "live percent",
        left=place.right + 2,
        top=place.top - 2,
        dress="scale",
    )
    words = [IF(looks[0, j] == MAX(looks[0, :]), tokens[0, j], "") for j in range(N)]
    found = [
        IF(following[i, 0] == MAX(following.area), page["vocabulary"][i, 0], "")
        for i in range(N_VOCAB)
    ]
    told = sentence(
        "Head 0.0 gives {word} {share} of the attention of {last}, so the model says {next} "
        "({chance}).",
        last=quote(tokens[0, LAST]),
        word=quote(reduce(and_, words)),
        share=percent(MAX(looks[0, :]), 0),
        next=quote(reduce(and_, found)),
        chance=percent(MAX(following.area), 0),
    )
    top = place.top - 6
    ws.show("claim", (top, 0), told, "heading")
    ws.sheet.put(top + 1, 0, WIRED, "text")


def norm(page: MatrixSheet, k: int, where: str) -> None:
    """LayerNorm of x_k, or x_k itself if its switch is 0."""
    page.section(
        f"LayerNorm {where}",
        f"x_{k}_LN = (x_{k} - mu) / sigma * gamma + beta    [d_model × n]; if LayerNorm is off, "
        f"x_{k}_LN = x_{k}",
    )
    page.ws.text("Entry i of every word is multiplied by gamma_i, then beta_i is added.")
    x, switch = page[f"x_{k}"], page["switches"][0, 0]
    means = Matrix((1, N), lambda i, j: AVERAGE(x[:, j]))
    spreads = Matrix((1, N), lambda i, j: SQRT(VARP(x[:, j])))
    mu = page.computed(f"mu_{k}", means)
    sigma = page.computed(f"sigma_{k}", spreads, mu)
    gamma = page.given(f"gamma_{k}")
    beta = page.given(f"beta_{k}", gamma)

    def normalized(i: int, j: int) -> Expression:
        return IF(sigma[0, j] > NEAR, (x[i, j] - mu[0, j]) / sigma[0, j], 0)

    unit = page.computed(f"unit_{k}", Matrix(x.shape, normalized), beta)

    def stretched(i: int, j: int) -> Expression:
        return IF(switch == 1, unit[i, j] * gamma[i, 0] + beta[i, 0], x[i, j])

    page.computed(f"x_{k}_LN", Matrix(x.shape, stretched), unit)


def attend(page: MatrixSheet, h: int) -> None:
    """One head: queries, keys, values, scores, attention weights, result, output."""
    page.section(
        f"Head 0.{h - 1}",
        "q = W_Q x_0_LN,  k = W_K x_0_LN,  v = W_V x_0_LN    [d_head × n]",
        "S = qᵀ k / √d_head,  A = softmax*(S), a row per query    [n × n]",
        "r = v Aᵀ    [d_head × n],  o = W_O r    [d_model × n]",
    )
    x = page["x_0_LN"]
    W_Q = page.given(f"W_Q_h{h}")
    q = page.computed(f"q_h{h}", W_Q @ x, W_Q)
    W_K = page.given(f"W_K_h{h}", q)
    k = page.computed(f"k_h{h}", W_K @ x, W_K)
    W_V = page.given(f"W_V_h{h}")
    v = page.computed(f"v_h{h}", W_V @ x, W_V)
    S = page.computed(f"S_h{h}", (q.T @ k) / SQRT(D_HEAD), v)
    A = page.computed(
        f"A_h{h}",
        shares_of_rows(page.computed(f"exp_S_h{h}", masked_exponentials(page, S), S)),
        style="attention",
    )
    page.ws.dress(A.area, "scale")
    sums = page.computed(f"A_sums_h{h}", sums_of_rows(A), A)
    r = page.computed(f"r_h{h}", v @ A.T, sums)
    W_O = page.given(f"W_O_h{h}", r)
    page.computed(f"o_h{h}", W_O @ r, W_O)


def masked_exponentials(page: MatrixSheet, S: Cells) -> Matrix:
    """The exponentials of the scores minus their row's largest; with the mask on, up to the
    diagonal."""
    masked = page["switches"][2, 0] == 1

    def exponential(i: int, j: int) -> Expression:
        seen = [S[i, k] for k in range(i + 1)]
        e = EXP(S[i, j] - IF(masked, MAX(*seen), MAX(S[i, :])))
        return IF(masked, 0, e) if j > i else e

    return Matrix(S.shape, exponential)


def add_heads(page: MatrixSheet) -> None:
    """Add the sum of the heads' outputs, the same as one product, and x_1."""
    page.section(
        "All heads together, in two ways",
        "one by one: o_sum = Σ W_O_h r_h;   at once: o_concat = W_O R, R = all r stacked",
        "x_1 = x_0 + o_sum    [d_model × n]",
    )
    o_1, o_2 = (page[f"o_h{h}"] for h in HEADS)
    W_O = page.computed("W_O", hstack([page[f"W_O_h{h}"] for h in HEADS]), style="weight")
    R = page.computed("R_all", vstack([page[f"r_h{h}"] for h in HEADS]), W_O)
    at_once = page.computed("o_concat", W_O @ R, R)
    added = page.computed("o_sum", o_1 + o_2)
    difference = page.computed("o_difference", added - at_once, added)
    page.computed("x_1", page["x_0"] + added, difference)


def mlp(page: MatrixSheet) -> None:
    """Add the MLP of each word by itself; its switch says whether x_2 includes it."""
    page.section(
        "MLP",
        "z = ReLU(W_1 x_1_LN + b_1)    [d_mlp × n]",
        "m = W_2 z + b_2,  x_2 = x_1 + switch * m    [d_model × n]",
    )
    x_1, switch = page["x_1"], page["switches"][1, 0]
    W_1 = page.given("W_1")
    b_1 = page.given("b_1", W_1)
    hidden = W_1 @ page["x_1_LN"] + b_1
    z = page.computed("z", Matrix(hidden.shape, lambda i, j: MAX(hidden[i, j], 0)), b_1)
    W_2 = page.given("W_2")
    b_2 = page.given("b_2", W_2)
    m = page.computed("m", W_2 @ z + b_2, b_2)
    page.computed("x_2", Matrix(x_1.shape, lambda i, j: x_1[i, j] + switch * m[i, j]), m)


def unembed(page: MatrixSheet) -> None:
    """Add logits and probabilities after each word; the last word's also at the top."""
    page.section(
        "Unembedding", "logits = W_U x_2,  p = softmax(logits), a column per word    [n_vocab × n]"
    )
    W_U = page.given("W_U")
    logits = page.computed("logits", W_U @ page["x_2"], W_U)

    def exponential(i: int, j: int) -> Expression:
        return EXP(logits[i, j] - MAX(logits[:, j]))

    e = page.computed("exp_logits", Matrix(logits.shape, exponential), logits)
    shares = Matrix(e.shape, lambda i, j: e[i, j] / SUM(e[:, j]))
    p = page.computed("p", shares, e, "readout")
    page.computed("p_sums", Matrix((1, N), lambda i, j: SUM(p[:, j])))
    vocabulary = page["vocabulary"]
    found = page.computed(
        "next", Matrix(vocabulary.shape, lambda i, j: p[i, LAST]), vocabulary, "readout"
    )
    series = Series("p", vocabulary.area, found.area)
    page.ws.chart(
        Chart(
            12,
            CHART,
            "column",
            "Probabilities after the last word",
            [series],
            size=(560, 200),
            shares=True,
        )
    )
