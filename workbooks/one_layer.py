"""one-layer: one transformer layer, attention-only first, then with LayerNorm and the MLP.

Look at the document's two tables, each line a link to its cells, and at the heads: summed, and
concatenated. Suggestion the switches: LayerNorm and MLP turn the attention-only model into the full one.
"""

from exporters.book import Book, Chart, Series
from exporters.by_hand import Workbook, near
from exporters.story import Story, Suggestion
from workbooks import _one_layer_tables
from workbooks._matrices import Page, times
from workbooks._one_layer import D_HEAD, HEADS, SWITCHES, TOKENS, VOCABULARY, edited

TOPIC = "A whole model"
TITLE = "one-layer: one transformer layer, attention-only first, then LayerNorm and MLP"
NEW, YORK, LAST = VOCABULARY.index("New"), VOCABULARY.index("York"), len(TOKENS) - 1


def book() -> Book:
    """The workbook."""
    w = Workbook("one-layer")
    tables = w.sheet("Tables", "the document's tables of activations and parameters, with links")
    ws = w.sheet("Model", "the whole model; a word is a column: W times x")
    ws.widths(dict.fromkeys(range(1, 24), 7))
    page = Page(ws, edited())
    embed(page)
    norm(page, 0, "before attention")
    for h in HEADS:
        attend(page, h)
    add_heads(page)
    norm(page, 1, "before the MLP")
    mlp(page)
    unembed(page)
    w.compare([*_one_layer_tables.padded(ws), *_one_layer_tables.fill(tables, page.at)])
    at, mask = page.at, page.at["switches"].at(2)
    upper = [(i, j) for i in range(len(TOKENS)) for j in range(i + 1, len(TOKENS))]
    ahead = ",".join(at[f"A_h{h}"].at(i, j) for h in HEADS for i, j in upper)
    w.checks([
        ("in each head, a word's attention weights sum to 1",
         f"AND({','.join(near(at[f'A_sums_h{h}'].all()) for h in HEADS)})"),
        ("with the mask on, no word looks at a later one", f"OR({mask}<>1,MAX({ahead})=0)"),
        ("heads added with their own W_O equal the concatenation times the stacked W_O",
         near(at["o_difference"].all(), 0)),
        ("after each word, the probabilities sum to 1", near(at["p_sums"].all())),
    ])  # fmt: skip
    return w.done(story())


def embed(page: Page) -> None:
    """The words, the switches, and x_0 = W_E t + W_pos; the prediction goes beside them later."""
    page.ws.heading("What to type: words of the vocabulary, and switches (1 is on, 0 off)")
    tokens = page.put("tokens", style="token", rows=["words"])
    page.put("switches", style="switch", rows=SWITCHES)
    vocabulary = page.put("vocabulary", beside="switches", style="token")
    page.section("Embedding", "x_0 = W_E t + W_pos    [d_model × n], t one-hot [n_vocab × n]")
    W_E = page.put("W_E")
    t = page.put("t", lambda i, j: f"IF({tokens.at(0, j)}={vocabulary.at(i)},1,0)", "W_E")
    W_pos = page.put("W_pos", beside="t")
    embedded = times(W_E, t)
    page.put("x_0", lambda i, j: f"{embedded(i, j)}+{W_pos.at(i, j)}", "W_pos")


def norm(page: Page, k: int, where: str) -> None:
    """LayerNorm of x_k, or with its switch at 0 x_k as it is."""
    page.section(f"LayerNorm {where}", f"x_{k}_LN = (x_{k} - mu) / sigma * gamma + beta    "
                 f"[d_model × n]; with its switch off, x_{k}_LN = x_{k}")  # fmt: skip
    page.ws.text("Entry i of every word is stretched by gamma_i and moved by beta_i.")
    x = page.at[f"x_{k}"]
    mu = page.put(f"mu_{k}", lambda i, j: f"AVERAGE({x.column(j)})")
    sigma = page.put(f"sigma_{k}", lambda i, j: f"SQRT(VARP({x.column(j)}))", f"mu_{k}")
    gamma = page.put(f"gamma_{k}")
    beta = page.put(f"beta_{k}", beside=f"gamma_{k}")
    unit = page.put(f"unit_{k}", lambda i, j: (
        f"IF({sigma.at(0, j)}>0.000000001,({x.at(i, j)}-{mu.at(0, j)})/{sigma.at(0, j)},0)"
    ), f"beta_{k}")  # fmt: skip
    page.put(f"x_{k}_LN", lambda i, j: (
        f"IF({page.at['switches'].at()}=1,{unit.at(i, j)}*{gamma.at(i)}+{beta.at(i)},{x.at(i, j)})"
    ), f"unit_{k}")  # fmt: skip


def attend(page: Page, h: int) -> None:
    """One head: queries, keys, values, scores, attention weights, result, output."""
    page.section(f"Head {h}", "q = W_Q x_0_LN,  k = W_K x_0_LN,  v = W_V x_0_LN    [d_head × n]",
                 "S = qᵀ k / √d_head,  A = softmax*(S), a row per query    [n × n]",
                 "r = v Aᵀ    [d_head × n],  o = W_O r    [d_model × n]")  # fmt: skip
    x, mask = page.at["x_0_LN"], page.at["switches"].at(2)
    W_Q = page.put(f"W_Q_h{h}")
    q = page.put(f"q_h{h}", times(W_Q, x), f"W_Q_h{h}")
    W_K = page.put(f"W_K_h{h}", beside=f"q_h{h}")
    k = page.put(f"k_h{h}", times(W_K, x), f"W_K_h{h}")
    W_V = page.put(f"W_V_h{h}")
    v = page.put(f"v_h{h}", times(W_V, x), f"W_V_h{h}")
    S = page.put(f"S_h{h}", lambda i, j: (
        f"SUMPRODUCT({q.column(i)},{k.column(j)})/SQRT({D_HEAD})"), f"v_h{h}")  # fmt: skip

    def exponential(i: int, j: int) -> str:
        seen = ",".join(S.at(i, k) for k in range(i + 1))
        e = f"EXP({S.at(i, j)}-IF({mask}=1,MAX({seen}),MAX({S.row(i)})))"
        return f"IF({mask}=1,0,{e})" if j > i else e

    e = page.put(f"exp_S_h{h}", exponential, f"S_h{h}")
    A = page.put(f"A_h{h}", lambda i, j: f"{e.at(i, j)}/SUM({e.row(i)})", style="attention")
    page.ws.shade(A.rect, "scale")
    page.put(f"A_sums_h{h}", lambda i, j: f"SUM({A.row(i)})", f"A_h{h}")
    r = page.put(f"r_h{h}", lambda i, j: f"SUMPRODUCT({v.row(i)},{A.row(j)})", f"A_sums_h{h}")
    W_O = page.put(f"W_O_h{h}", beside=f"r_h{h}")
    page.put(f"o_h{h}", times(W_O, r), f"W_O_h{h}")


def add_heads(page: Page) -> None:
    """The heads' outputs added, and once more as one product; then x_1."""
    at = page.at
    page.section("The heads together, in two ways",
                 "one by one: o_sum = Σ W_O_h r_h;   at once: o_concat = W_O R, R = all r stacked",
                 "x_1 = x_0 + o_sum    [d_model × n]")  # fmt: skip
    W_O = page.put("W_O", lambda i, j: at[f"W_O_h{j // D_HEAD + 1}"].at(i, j % D_HEAD),
                   style="weight")  # fmt: skip
    R = page.put("R_all", lambda i, j: at[f"r_h{i // D_HEAD + 1}"].at(i % D_HEAD, j), "W_O")
    one = page.put("o_concat", times(W_O, R), "R_all")
    added = page.put("o_sum", lambda i, j: "+".join(at[f"o_h{h}"].at(i, j) for h in HEADS))
    page.put("o_difference", lambda i, j: f"{added.at(i, j)}-{one.at(i, j)}", "o_sum")
    x_0 = at["x_0"]
    page.put("x_1", lambda i, j: f"{x_0.at(i, j)}+{added.at(i, j)}", "o_difference")


def mlp(page: Page) -> None:
    """The MLP of each word by itself; its switch says whether x_2 has it."""
    page.section("MLP", "z = ReLU(W_1 x_1_LN + b_1)    [d_mlp × n]",
                 "m = W_2 z + b_2,  x_2 = x_1 + switch * m    [d_model × n]")  # fmt: skip
    W_1, b_1 = page.put("W_1"), page.put("b_1", beside="W_1")
    hidden = times(W_1, page.at["x_1_LN"], b_1)
    z = page.put("z", lambda i, j: f"MAX({hidden(i, j)},0)", "b_1")
    W_2, b_2 = page.put("W_2"), page.put("b_2", beside="W_2")
    m = page.put("m", times(W_2, z, b_2), "b_2")
    x_1, switch = page.at["x_1"], page.at["switches"].at(1)
    page.put("x_2", lambda i, j: f"{x_1.at(i, j)}+{switch}*{m.at(i, j)}", "m")


def unembed(page: Page) -> None:
    """Logits and probabilities after each word; the last word's again at the top."""
    page.section(
        "Unembedding", "logits = W_U x_2,  p = softmax(logits), a column per word    [n_vocab × n]"
    )
    W_U = page.put("W_U")
    logits = page.put("logits", times(W_U, page.at["x_2"]), "W_U")
    e = page.put("exp_logits", lambda i, j: f"EXP({logits.at(i, j)}-MAX({logits.column(j)}))",
                 "logits")  # fmt: skip
    p = page.put("p", lambda i, j: f"{e.at(i, j)}/SUM({e.column(j)})", "exp_logits", "readout")
    page.put("p_sums", lambda i, j: f"SUM({p.column(j)})")
    bottom = page.ws.cursor
    found = page.put("next", lambda i, j: p.at(i, LAST), "vocabulary", "readout")
    page.ws.cursor = bottom
    page.ws.chart(Chart(4, 10, "column", "After the last word", [
        Series("p", page.at["vocabulary"].rect, found.rect)], (560, 260)))  # fmt: skip


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    norm, mlp, unmasked = ((("switches", k, 0), on) for k, on in enumerate((1.0, 1.0, 0.0)))
    before, after = edited()["p"], edited(unmasked)["p"]
    york, normed, full = (edited(*e)["p"][YORK, LAST] for e in ((), (norm,), (norm, mlp)))
    spread = edited()["sigma_0"][0, LAST]
    return Story(
        title=TITLE,
        source="After A Gentle Introduction to Transformers: its activations and parameters.",
        about=[
            "Five words, vectors of four numbers, two heads, an MLP of six cells; untrained.",
            "As built it is the attention-only model; two switches make it the full one.",
            "The document's simplified model follows the last word alone: here, the last column.",
            "It says stacking forces d_head = d_model / H. It does not: W_O takes any H d_head.",
            "It gives a whole vector a mean of beta: each entry is moved by its own beta_i.",
        ],
        look=[
            "Tables: the document's names, shapes and counts, and where the numbers stand.",
            "Model, the heads together: added, or stacked times one W_O: the same.",
            "Model, Head 1: later words have scores too, and the mask gives them no weight.",
        ],
        tries=[
            Suggestion(f"Type 1: LayerNorm. After New, York goes from {york:.2f} to {normed:.2f}: heads "
                f"read vectors of spread 1; that of New has {spread:.2f} by itself.",
                *norm, ("next", YORK, 0), normed),
            Suggestion(f"Type 1 here and for LayerNorm: the full model. York goes from {york:.2f} to "
                f"{full:.2f}.", *mlp, ("next", YORK, 0), full, (norm,)),
            Suggestion("Type 0: the mask is off, and the first word sees what follows. After it, New goes "
                f"from {before[NEW, 0]:.2f} to {after[NEW, 0]:.2f}; after the last word it stays "
                f"{after[NEW, LAST]:.2f}.", *unmasked, ("p", NEW, 0), after[NEW, 0]),
        ],
    )  # fmt: skip
