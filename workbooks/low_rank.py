"""low-rank: a head's two large matrices, each a product of two thin ones.

Look at the scores through Q and K and through QK = W_Q W_Kᵀ, at what a head writes through V and
W_O and through OV = W_V W_O, and at the rank: d_head. Suggestion to take one away, and what it costs.
"""

from itertools import combinations

from exporters.book import Book
from exporters.by_hand import Workbook, near
from exporters.story import Story, Suggestion
from workbooks import _low_rank_sizes
from workbooks._low_rank import D_HEAD, D_MODEL, HEADS, RANKED, edited
from workbooks._low_rank_sizes import BUILT, GPT_3, MISPRINTED, counts, misprinted
from workbooks._matrices import Page, across, times

TOPIC = "Inside a block"
TITLE = "low-rank: the QK and OV circuits of a head, and why their rank is d_head"


def book() -> Book:
    """The workbook."""
    w = Workbook("low-rank")
    ws = w.sheet("Heads", "two heads, each in two ways; a word is a row: x W")
    ws.widths(dict.fromkeys(range(1, 22), 7))
    page = Page(ws, edited())
    ws.heading("Three words")
    page.put("x", style="input")
    for h in HEADS:
        match(page, h)
        write(page, h)
    add_heads(page)
    ws = w.sheet("Rank", "a rank is the size of the largest minor that is not 0")
    ranks = Page(ws, page.values)
    ws.widths(dict.fromkeys(range(1, 22), 7))
    outer(ranks, page)
    for name in RANKED:
        rank(ranks, page, name)
    ws = w.sheet("Sizes", "what two thin matrices save: numbers of a head and of all")
    w.compare(_low_rank_sizes.fill(ws))
    at = page.at
    w.checks([
        ("scores from Q and K equal x QK xᵀ",
         f"AND({','.join(near(at[f'S_difference_h{h}'].all(), 0) for h in HEADS)})"),
        ("what a head writes from V and W_O equals pattern x OV",
         f"AND({','.join(near(at[f'out_difference_h{h}'].all(), 0) for h in HEADS)})"),
        ("the heads added equal all z concatenated times the stacked W_O",
         near(at["out_difference"].all(), 0)),
        ("the rank of QK and of OV is at most d_head",
         f"MAX({ranks.at['rank_QK_h1'].at()},{ranks.at['rank_OV_h1'].at()})<={D_HEAD}"),
    ])  # fmt: skip
    return w.done(story())


def match(page: Page, h: int) -> None:
    """The scores of a head, through queries and keys and through QK; then its pattern."""
    page.section(f"Head {h}: where it looks", "Q = x W_Q,  K = x W_K    [n × d_head]",
                 "S = Q Kᵀ / √d_head    [n × n],  A = softmax of each row up to its own word",
                 "QK = W_Q W_Kᵀ    [d_model × d_model];  S = x QK xᵀ / √d_head")  # fmt: skip
    x, root = page.at["x"], f"SQRT({D_HEAD})"
    W_Q, W_K = page.put(f"W_Q_h{h}"), page.put(f"W_K_h{h}", beside=f"W_Q_h{h}")
    QK = page.put(f"QK_h{h}", across(W_Q, W_K), f"W_K_h{h}")
    Q = page.put(f"Q_h{h}", times(x, W_Q))
    K = page.put(f"K_h{h}", times(x, W_K), f"Q_h{h}")
    S = page.put(f"S_h{h}", lambda i, j: f"SUMPRODUCT({Q.row(i)},{K.row(j)})/{root}", f"K_h{h}")
    x_QK = page.put(f"x_QK_h{h}", times(x, QK), f"S_h{h}")
    other = page.put(f"S_circuit_h{h}", lambda i, j: f"SUMPRODUCT({x_QK.row(i)},{x.row(j)})/{root}",
                     f"x_QK_h{h}")  # fmt: skip
    page.put(f"S_difference_h{h}", lambda i, j: f"{S.at(i, j)}-{other.at(i, j)}")

    def exponential(i: int, j: int) -> str:
        seen = ",".join(S.at(i, k) for k in range(i + 1))
        return f"EXP({S.at(i, j)}-MAX({seen}))" if j <= i else "0"

    e = page.put(f"exp_S_h{h}", exponential, f"S_difference_h{h}")
    A = page.put(
        f"A_h{h}", lambda i, j: f"{e.at(i, j)}/SUM({e.row(i)})", f"exp_S_h{h}", "attention"
    )
    page.ws.shade(A.rect, "scale")


def write(page: Page, h: int) -> None:
    """What a head writes, through values and W_O and through OV."""
    page.section(f"Head {h}: what it writes", "V = x W_V,  z = A V    [n × d_head]",
                 "out = z W_O    [n × d_model]",
                 "OV = W_V W_O    [d_model × d_model];  out = A x OV, the same")  # fmt: skip
    page.ws.text("W_V is value-down, and W_O value-up: down to d_head numbers, and up again.")
    x, A = page.at["x"], page.at[f"A_h{h}"]
    W_V, W_O = page.put(f"W_V_h{h}"), page.put(f"W_O_h{h}", beside=f"W_V_h{h}")
    OV = page.put(f"OV_h{h}", times(W_V, W_O), f"W_O_h{h}")
    V = page.put(f"V_h{h}", times(x, W_V))
    z = page.put(f"z_h{h}", times(A, V), f"V_h{h}")
    out = page.put(f"out_h{h}", times(z, W_O), f"z_h{h}")
    Ax = page.put(f"A_x_h{h}", times(A, x), f"out_h{h}")
    other = page.put(f"out_circuit_h{h}", times(Ax, OV), f"A_x_h{h}")
    page.put(f"out_difference_h{h}", lambda i, j: f"{out.at(i, j)}-{other.at(i, j)}")


def add_heads(page: Page) -> None:
    """The heads added, and as one product with the stacked W_O."""
    at = page.at
    page.section("The heads together, in two ways", "out_sum = Σ z_h W_O_h    [n × d_model]",
                 "out_all = z_all W_O_all,  z_all = [z_h1 | z_h2]    [n × heads · d_head]",
                 "OV_all = W_V_all W_O_all = Σ OV_h    [d_model × d_model]")  # fmt: skip
    z = page.put("z_all", lambda i, j: at[f"z_h{j // D_HEAD + 1}"].at(i, j % D_HEAD))
    W_O = page.put("W_O_all", lambda i, j: at[f"W_O_h{i // D_HEAD + 1}"].at(i % D_HEAD, j), "z_all")
    one = page.put("out_all", times(z, W_O), "W_O_all")
    added = page.put("out_sum", lambda i, j: "+".join(at[f"out_h{h}"].at(i, j) for h in HEADS),
                     "out_all")  # fmt: skip
    page.put("out_difference", lambda i, j: f"{added.at(i, j)}-{one.at(i, j)}")
    W_V = page.put("W_V_all", lambda i, j: at[f"W_V_h{j // D_HEAD + 1}"].at(i, j % D_HEAD),
                   "out_difference")  # fmt: skip
    page.put("OV_all", times(W_V, W_O), "W_V_all")


def outer(ranks: Page, page: Page) -> None:
    """OV of head 1 as a sum of d_head outer products, each of rank 1."""
    ranks.section("OV of head 1: d_head products of a column and a row, each of rank 1",
                  "OV = Σ_k W_V[:, k] W_O[k, :]; each has rows that are multiples")  # fmt: skip
    W_V, W_O = page.at["W_V_h1"], page.at["W_O_h1"]
    first = ranks.put("outer_1", lambda i, j: f"{W_V.at(i, 0)}*{W_O.at(0, j)}")
    second = ranks.put("outer_2", lambda i, j: f"{W_V.at(i, 1)}*{W_O.at(1, j)}", "outer_1")
    ranks.put("outer_sum", lambda i, j: f"{first.at(i, j)}+{second.at(i, j)}", "outer_2")


def rank(ranks: Page, page: Page, name: str) -> None:
    """The minors of a matrix [d_model, d_model], its own entries first, and the rank they show."""
    ranks.ws.heading(f"The rank of {name}")
    ranks.put(f"minors1_{name}", page.at[name].at, title=f"{name}: {D_MODEL} × {D_MODEL}")
    for k in range(2, D_MODEL + 1):
        minors(ranks, name, k)
    areas = [ranks.at[f"minors{k + 1}_{name}"].all() for k in range(D_MODEL)]
    largest = ranks.put(f"largest_{name}", lambda i, j: f"MAX(MAX({areas[i]}),-MIN({areas[i]}))",
                        title="largest", cols=["minor"])  # fmt: skip
    shown = "0"
    for k in range(1, D_MODEL + 1):
        rounding = f"0.000000001*{largest.at()}^{k}"
        shown = f"IF({largest.at(k - 1)}>{rounding},{k},{shown})"
    ranks.put(f"rank_{name}", shown, f"largest_{name}", "readout count", title="rank")


def minors(ranks: Page, name: str, k: int) -> None:
    """The k × k minors of a matrix, expanded along their first row: from those of k - 1."""
    entries, smaller = ranks.at[f"minors1_{name}"], ranks.at[f"minors{k - 1}_{name}"]
    chosen = list(combinations(range(D_MODEL), k))
    place = {rest: i for i, rest in enumerate(combinations(range(D_MODEL), k - 1))}

    def cell(i: int, j: int) -> str:
        (top, *below), cols, text = chosen[i], chosen[j], ""
        for n, col in enumerate(cols):
            rest = smaller.at(place[tuple(below)], place[tuple(c for c in cols if c != col)])
            text += f"{'-' if n % 2 else '+'}{entries.at(top, col)}*{rest}"
        return text[1:]

    labels = ["".join(str(c + 1) for c in these) for these in chosen]
    title = f"minors {k} × {k}" if k < D_MODEL else "determinant"
    ranks.put(f"minors{k}_{name}", cell, f"minors{k - 1}_{name}", rows=labels, cols=labels,
              title=title)  # fmt: skip


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    thinner, key = (("W_V_h1", 2, 1), 0.0), (("W_K_h1", 0, 0), 3.0)
    before, flat, moved = edited(), edited(thinner), edited(key)
    rank, score = "rank_OV_h1", "S_circuit_h1"
    d_head, wrong = (counts(sizes)["d_head"][0, GPT_3] for sizes in (BUILT, misprinted()))
    return Story(
        title=TITLE,
        source="After lecture slides (output matrix) and A Gentle Introduction to Transformers.",
        about=[
            "A head reads and writes d_model numbers through a bottleneck of d_head.",
            "So W_Q and W_K act as one matrix QK, W_V and W_O as one matrix OV, of rank d_head.",
            "The slides say the thin ones approximate a full V. There is none: they are learned.",
            "Their vectors are columns, value-up times value-down; here a word is a row: W_V W_O.",
        ],
        look=[
            "Heads: S and S_circuit, out and out_circuit: the same by thin and by large matrices.",
            "Rank: 3 × 3 minors of a head's QK and OV are 0; OV of both heads added has rank 4.",
            "Sizes: what the thin matrices save in GPT-3, and that they save nothing in a toy.",
        ],
        tries=[
            Suggestion("Type 0: both columns of W_V now read the same direction, and the rank of OV goes "
                f"from {before[rank][0, 0]:.0f} to {flat[rank][0, 0]:.0f}.",
                *thinner, (rank, 0, 0), flat[rank][0, 0]),
            Suggestion("Type 3: a whole column of QK moves, and the score of the third word for the first "
                f"goes from {before[score][2, 0]:.3f} to {moved[score][2, 0]:.3f}, both ways.",
                *key, (score, 2, 0), moved[score][2, 0]),
            Suggestion(f"Type 12888, as the slides print once: d_head goes from {d_head:.0f} to "
                f"{wrong:.2f}: 96 heads do not divide it, so it is a slip.",
                ("sizes", 0, GPT_3), MISPRINTED, ("d_head", 0, GPT_3), wrong),
        ],
    )  # fmt: skip
