"""one-layer's sheet Tables: the document's activations and parameters, counted and linked."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import mul
from typing import NamedTuple

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import EXP, MAX, SUM
from cellformer.exporters.assemble.worksheets import Comparison, Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.workbooks.one_layer.weights import D_HEAD, D_MLP, D_MODEL, HEADS, N_VOCAB, N

HERE = {"n_vocab": N_VOCAB, "d_model": D_MODEL, "H": len(HEADS), "n": N, "n_layers": 1}
HERE |= {"d_head": D_HEAD, "d_mlp": D_MLP}
GPT2 = {"n_vocab": 50257, "d_model": 768, "H": 12, "n": 1024, "n_layers": 12}
MISPRINTED = 5025  # the document's n_vocab of GPT-2
Sizes = Mapping[str, Area]  # the cell of a size, by its symbol


class Line(NamedTuple):
    """A line of the document's tables."""

    name: str
    expression: str
    shape: str  # in symbols
    matrices: Sequence[str]  # of the sheet Model
    times: tuple[str, ...] = ()  # so many of them: sizes, or numbers
    simplified: str = "none"  # its shape in the attention-only model, for the last word alone

    @property
    def factors(self) -> tuple[str, str]:
        """Rows and columns; a vector has one column."""
        rows, _, cols = self.shape.partition(" × ")
        return rows, cols or "1"


def per_head(name: str) -> list[str]:
    """A matrix that each head has."""
    return [f"{name}_h{h}" for h in HEADS]


H = ("H",)
ACTIVATIONS = (
    Line("Input tokens", "t, one-hot", "n_vocab × n", ["t"], simplified="n_vocab × n"),
    Line("Embedding", "x_0 = W_E t + W_pos", "d_model × n", ["x_0"], simplified="d_model × n"),
    Line("LayerNorm", "x_0_LN = LayerNorm(x_0)", "d_model × n", ["x_0_LN"]),
    Line("Queries", "q = W_Q x_0_LN", "d_head × n", per_head("q"), H, "d_head × 1"),
    Line("Keys", "k = W_K x_0_LN", "d_head × n", per_head("k"), H, "d_head × n"),
    Line("Values", "v = W_V x_0_LN", "d_head × n", per_head("v"), H, "d_head × n"),
    Line("Attention scores", "S = qᵀ k / √d_head", "n × n", per_head("S"), H, "n"),
    Line("Attention weights", "A = softmax*(S)", "n × n", per_head("A"), H, "n"),
    Line("Attention result", "r = v Aᵀ", "d_head × n", per_head("r"), H, "d_head × 1"),
    Line("Attention output", "o = W_O r", "d_model × n", per_head("o"), H, "d_model × 1"),
    Line("After attention", "x_1 = x_0 + Σ o", "d_model × n", ["x_1"], simplified="d_model × 1"),
    Line("LayerNorm", "x_1_LN = LayerNorm(x_1)", "d_model × n", ["x_1_LN"]),
    Line("MLP hidden layer", "z = ReLU(W_1 x_1_LN + b_1)", "d_mlp × n", ["z"]),
    Line("MLP output", "m = W_2 z + b_2", "d_model × n", ["m"]),
    Line("After the MLP", "x_2 = x_1 + m", "d_model × n", ["x_2"]),
    Line("Logits", "logits = W_U x_2", "n_vocab × n", ["logits"], simplified="n_vocab × 1"),
    Line("Probabilities", "p = softmax(logits)", "n_vocab × n", ["p"], simplified="n_vocab × 1"),
)
LAYERS, HEADS_OF_LAYERS, NORMS_OF_LAYERS = ("n_layers",), ("n_layers", "H"), ("n_layers", "2")
ATTENTION_ONLY = (  # the parameters of the attention-only model
    Line("Embedding", "W_E", "d_model × n_vocab", ["W_E"], (), "the same"),
    Line("Embedding", "W_pos", "d_model × n", ["W_pos"], (), "the same"),
    *(
        Line("Attention head", W, shape, per_head(W), HEADS_OF_LAYERS, "the same")
        for W, shape in (
            ("W_Q", "d_head × d_model"),
            ("W_K", "d_head × d_model"),
            ("W_V", "d_head × d_model"),
            ("W_O", "d_model × d_head"),
        )
    ),
    Line("Unembedding", "W_U", "n_vocab × d_model", ["W_U"], (), "the same"),
)
PARAMETERS = (
    *ATTENTION_ONLY,
    Line("LayerNorm", "γ of each", "d_model", ["gamma_0", "gamma_1"], NORMS_OF_LAYERS),
    Line("LayerNorm", "β of each", "d_model", ["beta_0", "beta_1"], NORMS_OF_LAYERS),
    Line("MLP", "W_1", "d_mlp × d_model", ["W_1"], LAYERS),
    Line("MLP", "b_1", "d_mlp", ["b_1"], LAYERS),
    Line("MLP", "W_2", "d_model × d_mlp", ["W_2"], LAYERS),
    Line("MLP", "b_2", "d_model", ["b_2"], LAYERS),
)
NORM = {"mu": ("1", "n"), "sigma": ("1", "n"), "unit": ("d_model", "n")}  # of each of the two
HEAD = {"exp_S": ("n", "n"), "A_sums": ("n", "1")}  # of each head
BESIDES = {
    **{f"{name}_{k}": axes for k in (0, 1) for name, axes in NORM.items()},
    **{f"{name}_h{h}": axes for h in HEADS for name, axes in HEAD.items()},
    **dict.fromkeys(("o_sum", "o_concat", "o_difference"), ("d_model", "n")),
    "R_all": ("H d_head", "n"),
    "exp_logits": ("n_vocab", "n"),
    "p_sums": ("1", "n"),
    "next": ("n_vocab", "1"),
    "W_pos": ("d_model", "places"),
}
AXES = {  # what the rows and the columns of a matrix are
    matrix: line.factors for line in (*ACTIVATIONS, *PARAMETERS) for matrix in line.matrices
} | BESIDES
UNEMBEDDING = len(ATTENTION_ONLY) - 1  # the line of W_U
TEXTS = ("name", "expression", "shape", "attention-only")
NUMBERS = ("rows", "columns", "times", "count", "GPT-2 small")
LEFT = len(TEXTS)  # the column in which the numbers of a line begin
LINKS = LEFT + len(NUMBERS) + 1
COUNT = NUMBERS.index("count")  # the count for GPT-2 small follows it


def fill(w: Workbook, ws: Composer) -> list[Comparison]:
    """Fill the sheet, with links to the matrices; returns the printed numbers of GPT-2 small."""
    ws.widths({0: 18, 1: 27, 2: 19, 3: 15, 4: 9, 5: 9, 6: 9, 7: 9, 8: 15, 9: 2, 10: 9, 11: 9})
    ws.heading(
        "Sizes of this model and of GPT-2 small",
        "These sizes are only for counting. The tables here do not grow with the sizes.",
    )
    style = "input setting"
    here = ws.typed("sizes", column(HERE), list(HERE), ["here"], style=style, left=LEFT)
    gpt2 = ws.typed("sizes_GPT_2", column(GPT2), (), ["GPT-2"], style=style, beside=here)
    ws.cursor = ws.rect(gpt2).bottom
    derived = derived_sizes(ws, gpt2)
    sizes_here = {symbol: here[i].fixed for i, symbol in enumerate(HERE)}
    sizes_gpt2 = {symbol: gpt2[i].fixed for i, symbol in enumerate(GPT2)}
    sizes_gpt2 |= {"d_head": derived[0].fixed, "d_mlp": derived[1].fixed}

    ws.heading("Activations of one layer")
    listed(ws, "activations", ACTIVATIONS, sizes_here, sizes_gpt2)
    ws.heading("Parameters of all layers")
    rest = GPT2["n_layers"] * 4 * GPT2["d_model"] + 2 * GPT2["d_model"]
    ws.text(
        f"GPT-2 has {rest:,} more parameters: attention biases and a last LayerNorm. The "
        "document omits these parameters."
    )
    counts = listed(ws, "parameters", PARAMETERS, sizes_here, sizes_gpt2)
    return compared(w, ws, gpt2, derived, totals(ws, counts))


def column(sizes: Mapping[str, int]) -> list[list[int]]:
    """Sizes as a column: [n, 1]."""
    return [[size] for size in sizes.values()]


def derived_sizes(ws: Composer, gpt2: Area) -> Area:
    """d_head and d_mlp of GPT-2, below its other sizes."""
    d_model, heads = gpt2[1], gpt2[2]
    formulas = (d_model / heads, 4 * d_model)
    return ws.computed(
        "derived_GPT_2",
        (2, 1),
        lambda i, j: formulas[i],
        style="thousands",
        left=ws.rect(gpt2).left,
    )


def listed(ws: Composer, name: str, lines: Sequence[Line], here: Sizes, gpt2: Sizes) -> Area:
    """A table of the document: names, shapes in symbols and in numbers, counts, links."""
    for col, text in enumerate((*TEXTS, *NUMBERS, "", "cells", "cells")):
        ws.sheet.put(ws.cursor, col, text, "head" if LEFT <= col < LINKS else "block")
    ws.cursor += 1
    for row, line in enumerate(lines, ws.cursor):
        ws.heads_at((row, 0), line.name, line.expression, line.shape, line.simplified, style="text")
        for col, matrix in enumerate(line.matrices, LINKS):
            link_to(ws, row, col, matrix)

    def cell(i: int, j: int) -> Expression | int:
        (rows, cols), times = lines[i].factors, lines[i].times
        of_all = (rows, cols, *times)
        return product(here if j <= COUNT else gpt2, ((rows,), (cols,), times, of_all, of_all)[j])

    return ws.computed(name, (len(lines), len(NUMBERS)), cell, style="thousands", left=LEFT)


def link_to(ws: Composer, row: int, col: int, matrix: str) -> None:
    """A link to the first cell of a matrix."""
    first = ws.book.graph[matrix][0, 0]
    sheet, _ = ws.book.locate(first)
    ws.sheet.link(row, col, ws.book.address(first, sheet), ws.book.address(first))


def product(sizes: Sizes, symbols: Sequence[str]) -> Expression | int:
    """The product of some sizes; 1 for none."""
    factors = [sizes[s] if s in sizes else int(s) for s in symbols]
    return reduce(mul, factors) if factors else 1


def totals(ws: Composer, counts: Area) -> Area:
    """Sums of the parameters, here and for GPT-2: attention-only, full, and with W_U = W_Eᵀ."""

    def cell(i: int, j: int) -> Expression:
        column = counts[:, COUNT + j]
        return (SUM(column[: UNEMBEDDING + 1]), SUM(column), SUM(column) - column[UNEMBEDDING])[i]

    return ws.computed(
        "totals",
        (3, 2),
        cell,
        ["attention-only", "full", "full, with W_U = W_Eᵀ"],
        style="thousands",
        left=LEFT + COUNT,
    )


def compared(w: Workbook, ws: Composer, gpt2: Area, derived: Area, sums: Area) -> list[Comparison]:
    """The document's numbers for GPT-2 small, its running example."""
    separate, tied = sums[1, 1], sums[2, 1]
    right = ws.rect(sums).right
    millions = ws.computed("millions", (1, 1), tied / 1000000, ["in millions"], left=right - 1)
    n_vocab = gpt2[0]
    cut = w.edited({n_vocab: float(MISPRINTED)})(millions)
    return [
        Comparison("GPT-2 small: d_head = d_model / H", 64, derived[0], decimals=0),
        Comparison("GPT-2 small: d_mlp = 4 d_model", 3072, derived[1], decimals=0),
        Comparison(
            "GPT-2 small: n_vocab, in the table of key figures",
            MISPRINTED,
            n_vocab,
            "The table prints 5025, and the text 50,257: a digit was lost. 5025 gives only "
            f"{cut:.0f} million",
            decimals=0,
        ),
        Comparison(
            "GPT-2 small: parameters in millions, with W_U = W_Eᵀ",
            124,
            millions,
            "The text prints 124 million. The table counts W_U too: "
            f"{w.now(separate) / 1e6:.0f} million. GPT-2 has W_U = W_E",
            decimals=0,
        ),
    ]


def padded(ws: Composer) -> list[Comparison]:
    """The document's example of softmax*: a hidden score's share is 0."""
    ws.heading("softmax*: a hidden score is set to minus infinity, here to -1000")
    scores = ws.typed("padded", [[1.0, 2.0, -1000.0]], title="scores", style="dial")
    exps = ws.computed(
        "padded_exp",
        scores.shape,
        lambda i, j: EXP(scores[i, j] - MAX(scores[i, :])),
        title="exponentials",
        beside=scores,
    )
    shares = ws.computed(
        "padded_share",
        exps.shape,
        lambda i, j: exps[i, j] / SUM(exps[i, :]),
        title="shares",
        style="attention",
        beside=exps,
    )
    what = "softmax of 1, 2 and a hidden score, share"
    return [
        Comparison(f"{what} {j + 1}", share, shares[0, j], decimals=3)
        for j, share in enumerate((0.269, 0.731, 0.0))
    ]
