"""one-layer's sheet Tables: the document's activations and parameters, counted and linked."""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from exporters.by_hand import Comparison, Table, Worksheet

HERE = {"n_vocab": 5, "d_model": 4, "H": 2, "n": 4, "n_layers": 1, "d_head": 2, "d_mlp": 6}
GPT2 = {"n_vocab": 50257, "d_model": 768, "H": 12, "n": 1024, "n_layers": 12}
DERIVED = {"d_head": GPT2["d_model"] // GPT2["H"], "d_mlp": 4 * GPT2["d_model"]}


class Line(NamedTuple):
    """A line of the document's tables; `tables` are the cells that it is about."""

    name: str
    expression: str
    rows: str  # a size, or a number
    cols: str
    tables: tuple[str, ...]
    times: tuple[str, ...] = ()  # so many of them
    simplified: str = ""  # its shape in the attention-only model, for the last word alone


ACTIVATIONS = (
    Line("Input tokens", "t, one-hot", "n_vocab", "n", ("t",), (), "n_vocab × n"),
    Line("Embedding", "x_0 = W_E t + W_pos", "d_model", "n", ("x_0",), (), "d_model × n"),
    Line("LayerNorm", "x_0_LN = LayerNorm(x_0)", "d_model", "n", ("x_0_LN",)),
    Line("Queries", "q = W_Q x_0_LN", "d_head", "n", ("q_h1", "q_h2"), ("H",), "d_head × 1"),
    Line("Keys", "k = W_K x_0_LN", "d_head", "n", ("k_h1", "k_h2"), ("H",), "d_head × n"),
    Line("Values", "v = W_V x_0_LN", "d_head", "n", ("v_h1", "v_h2"), ("H",), "d_head × n"),
    Line("Attention scores", "S = qᵀ k / √d_head", "n", "n", ("S_h1", "S_h2"), ("H",), "n"),
    Line("Attention weights", "A = softmax*(S)", "n", "n", ("A_h1", "A_h2"), ("H",), "n"),
    Line("Attention result", "r = v Aᵀ", "d_head", "n", ("r_h1", "r_h2"), ("H",), "d_head × 1"),
    Line("Attention output", "o = W_O r", "d_model", "n", ("o_h1", "o_h2"), ("H",), "d_model × 1"),
    Line("After attention", "x_1 = x_0 + Σ o", "d_model", "n", ("x_1",), (), "d_model × 1"),
    Line("LayerNorm", "x_1_LN = LayerNorm(x_1)", "d_model", "n", ("x_1_LN",)),
    Line("MLP hidden layer", "z = ReLU(W_1 x_1_LN + b_1)", "d_mlp", "n", ("z",)),
    Line("MLP output", "m = W_2 z + b_2", "d_model", "n", ("m",)),
    Line("After the MLP", "x_2 = x_1 + m", "d_model", "n", ("x_2",)),
    Line("Logits", "logits = W_U x_2", "n_vocab", "n", ("logits",), (), "n_vocab × 1"),
    Line("Probabilities", "p = softmax(logits)", "n_vocab", "n", ("p",), (), "n_vocab × 1"),
)
L, LH, LN = ("n_layers",), ("n_layers", "H"), ("n_layers", "2")
PARAMETERS = (
    Line("Embedding", "W_E", "d_model", "n_vocab", ("W_E",), (), "the same"),
    Line("Embedding", "W_pos", "d_model", "n", ("W_pos",), (), "the same"),
    Line("Attention head", "W_Q", "d_head", "d_model", ("W_Q_h1", "W_Q_h2"), LH, "the same"),
    Line("Attention head", "W_K", "d_head", "d_model", ("W_K_h1", "W_K_h2"), LH, "the same"),
    Line("Attention head", "W_V", "d_head", "d_model", ("W_V_h1", "W_V_h2"), LH, "the same"),
    Line("Attention head", "W_O", "d_model", "d_head", ("W_O_h1", "W_O_h2"), LH, "the same"),
    Line("Unembedding", "W_U", "n_vocab", "d_model", ("W_U",), (), "the same"),
    Line("LayerNorm", "γ of each", "d_model", "1", ("gamma_0", "gamma_1"), LN),
    Line("LayerNorm", "β of each", "d_model", "1", ("beta_0", "beta_1"), LN),
    Line("MLP", "W_1", "d_mlp", "d_model", ("W_1",), L),
    Line("MLP", "b_1", "d_mlp", "1", ("b_1",), L),
    Line("MLP", "W_2", "d_model", "d_mlp", ("W_2",), L),
    Line("MLP", "b_2", "d_model", "1", ("b_2",), L),
)
ATTENTION_ONLY = 7  # so many lines of the parameters are of the attention-only model
HEAD = ("name", "expression", "shape", "attention-only", "rows", "columns", "times", "count",
        "GPT-2 small", "", "cells", "cells")  # fmt: skip
PADDED = np.array([[1.0, 2.0, -1000.0]])  # two scores, and a hidden one's
NUMBERS = 4  # the column in which the numbers of a line begin
LINKS = 10


class Sizes(NamedTuple):
    """The sizes of a model by symbol, and the cell of each."""

    values: Mapping[str, int]
    cells: Mapping[str, str]

    def product(self, symbols: Sequence[str]) -> tuple[int, str]:
        """The product of some sizes, and its formula; a number is itself."""
        numbers = [self.values[s] if s in self.values else int(s) for s in symbols]
        return prod(numbers), "*".join(self.cells.get(s, s) for s in symbols) or "1"


def fill(ws: Worksheet, at: Mapping[str, Table]) -> list[Comparison]:
    """Fill the sheet, with links to the tables `at`; returns what is printed of GPT-2 small."""
    ws.widths({0: 18, 1: 27, 2: 19, 3: 15, 4: 9, 5: 9, 6: 9, 7: 9, 8: 15, 9: 2, 10: 9, 11: 9})
    ws.heading("Sizes: of this model and of GPT-2 small")
    ws.text("They are for counting; the tables of this workbook do not grow with them.")
    typed = ws.table("sizes", column(HERE.values()), None, list(HERE), ["here"],
                     style="input setting", left=NUMBERS)  # fmt: skip
    gpt2 = ws.table("sizes_GPT_2", column(GPT2.values()), cols=["GPT-2"], style="input setting",
                    beside=typed)  # fmt: skip
    ws.cursor = gpt2.rect.bottom
    derived = ws.table("derived_GPT_2", column(DERIVED.values()),
                       lambda i, j: f"4*{gpt2.at(1)}" if i else f"{gpt2.at(1)}/{gpt2.at(2)}",
                       style="thousands", left=gpt2.rect.left)  # fmt: skip
    here = Sizes(HERE, {s: typed.at(i, 0, fixed=True) for i, s in enumerate(HERE)})
    other = Sizes(GPT2 | DERIVED, {s: gpt2.at(i, 0, fixed=True) for i, s in enumerate(GPT2)}
                  | {s: derived.at(i, 0, fixed=True) for i, s in enumerate(DERIVED)})  # fmt: skip
    ws.heading("Activations, of one layer")
    listed(ws, "activations", ACTIVATIONS, at, here, other)
    ws.heading("Parameters, of all layers")
    rest = GPT2["n_layers"] * 4 * GPT2["d_model"] + 2 * GPT2["d_model"]
    ws.text(f"GPT-2 has {rest:,} more, which the document leaves out: biases of attention, and a "
            "last LayerNorm.")  # fmt: skip
    counts = listed(ws, "parameters", PARAMETERS, at, here, other)
    return compared(ws, gpt2, derived, totals(ws, counts))


def column(numbers: Iterable[float]) -> np.ndarray:
    """A column of numbers: [n, 1]."""
    return np.array(list(numbers), float)[:, None]


def listed(ws: Worksheet, name: str, lines: Sequence[Line], at: Mapping[str, Table], here: Sizes,
           gpt2: Sizes) -> Table:  # fmt: skip
    """A table of the document: names, shapes in symbols and in numbers, counts, links."""
    for col, text in enumerate(HEAD):
        ws.sheet.put(ws.cursor, col, text, "head" if NUMBERS <= col < LINKS else "block")
    ws.cursor += 1
    for row, line in enumerate(lines, ws.cursor):
        shape = line.rows if line.cols == "1" else f"{line.rows} × {line.cols}"
        for col, text in enumerate((line.name, line.expression, shape, line.simplified or "none")):
            ws.sheet.put(row, col, text)
        for col, table in enumerate(line.tables, LINKS):
            target = at[table].at()
            ws.sheet.link(row, col, target.partition("!")[2], target)
    factors = [((x.rows,), (x.cols,), x.times, (x.rows, x.cols, *x.times)) for x in lines]
    cells = [[*map(here.product, f), gpt2.product(f[-1])] for f in factors]
    values = [[value for value, _ in row] for row in cells]
    return ws.table(name, values, lambda i, j: cells[i][j][1], style="thousands", left=NUMBERS)


def totals(ws: Worksheet, counts: Table) -> Table:
    """Sums of the parameters, here and for GPT-2: attention-only, full, and with W_U = W_Eᵀ."""
    n = np.array(counts.values[:, 3:], float)
    W_U = ATTENTION_ONLY - 1
    sums = [n[:ATTENTION_ONLY].sum(axis=0), n.sum(axis=0), n.sum(axis=0) - n[W_U]]

    def cell(i: int, j: int) -> str:
        first, last = counts.at(0, 3 + j), counts.at(len(n) - 1 if i else W_U, 3 + j)
        return f"SUM({first}:{last.partition('!')[2]})" + f"-{counts.at(W_U, 3 + j)}" * (i == 2)

    labels = ["attention-only", "full", "full, with W_U = W_Eᵀ"]
    return ws.table("totals", sums, cell, labels, style="thousands", left=NUMBERS + 3)


def compared(ws: Worksheet, gpt2: Table, derived: Table, sums: Table) -> list[Comparison]:
    """What the document prints of GPT-2 small, its running example."""
    separate, tied = sums.values[1:, 1] / 1e6
    millions = ws.table("millions", tied, f"{sums.at(2, 1)}/1000000", ["in millions"],
                        left=sums.rect.right - 1)  # fmt: skip
    cut = tied - (GPT2["n_vocab"] - 5025) * GPT2["d_model"] / 1e6
    return [
        Comparison("GPT-2 small: d_head = d_model / H", 64, derived, decimals=0),
        Comparison("GPT-2 small: d_mlp = 4 d_model", 3072, derived, 1, decimals=0),
        Comparison("GPT-2 small: n_vocab, in the table of key figures", 5025, gpt2, decimals=0,
                   note="printed 5025; the text has 50,257: a digit was lost. With 5025 the total "
                   f"would be {cut:.0f} million"),
        Comparison("GPT-2 small: parameters in millions, W_U being W_E turned", 124, millions,
                   decimals=0, note="printed 124; the document's parameter table counts W_U "
                   f"apart, which gives {separate:.0f} million: GPT-2 shares it with W_E"),
    ]  # fmt: skip


def padded(ws: Worksheet) -> list[Comparison]:
    """The document's example of softmax*: a hidden score's share is 0."""
    ws.heading("softmax*: a hidden score counts as minus infinity, here -1000")
    scores = ws.table("padded", PADDED, title="scores", style="dial")
    e = np.exp(PADDED - PADDED.max())
    exps = ws.table("padded_exp", e, lambda i, j: f"EXP({scores.at(0, j)}-MAX({scores.row(0)}))",
                    title="exponentials", beside=scores)  # fmt: skip
    shares = ws.table("padded_share", e / e.sum(),
                      lambda i, j: f"{exps.at(0, j)}/SUM({exps.row(0)})", title="shares",
                      style="attention", beside=exps)  # fmt: skip
    what = "softmax of 1, 2 and a hidden score, share"
    return [Comparison(f"{what} {j + 1}", share, shares, 0, j, decimals=3)
            for j, share in enumerate((0.269, 0.731, 0.0))]  # fmt: skip
