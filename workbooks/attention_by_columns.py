"""attention-by-columns: the same pattern twice, queries as rows and queries as columns.

Code writes a query's shares along a row; drawings often run them down a column. The numbers are
the same, turned; what sums to 1 is always a query's own line. Look at the sums.
"""

import numpy as np

from exporters.book import Book
from exporters.story import Story, Try
from exporters.tables import Workbook, near

TOPIC = "Attention"
TITLE = "attention-by-columns: one pattern, queries as rows and as columns"
WORDS = ("a", "fluffy", "blue", "creature")
SCORES = np.array([
    [0.5, 0.0, 0.0, 0.0],
    [1.0, 1.5, 0.0, 0.0],
    [0.2, 2.0, 1.0, 0.0],
    [-0.5, 1.8, 1.6, 0.4],
])  # fmt: skip
QUERIES_DOWN, KEYS_DOWN = "queries ↓   keys →", "keys ↓   queries →"


def exponentials(scores: np.ndarray) -> np.ndarray:
    """Of the scores that are seen, less the largest of each query: [queries, keys]."""
    seen = np.where(np.tri(len(scores)), scores, -np.inf)
    return np.exp(seen - seen.max(axis=1, keepdims=True))


def pattern(scores: np.ndarray) -> np.ndarray:
    """The softmax of each query's scores over the keys that it sees: [queries, keys]."""
    e = exponentials(scores)
    return e / e.sum(axis=1, keepdims=True)


def book() -> Book:
    """The workbook."""
    w = Workbook("attention-by-columns")
    ws = w.sheet("Pattern", "the same pattern: queries as rows above, as columns below")
    p = pattern(SCORES)
    ws.heading("Scores: how well each key fits each query")
    ws.text("A key that comes after its query is not seen: cells above the diagonal do nothing.")
    scores = ws.table("scores", SCORES, None, WORDS, WORDS, QUERIES_DOWN)

    ws.heading("Exponentials of the scores that are seen, less the largest of their row")
    seen = [f"{scores.at(i, 0)}:{scores.at(i, i).partition('!')[2]}" for i in range(len(WORDS))]
    exps = ws.table("exps", exponentials(SCORES),
                    lambda i, j: f"EXP({scores.at(i, j)}-MAX({seen[i]}))" if j <= i else "0",
                    WORDS, WORDS, QUERIES_DOWN)  # fmt: skip
    ws.heading("As code has it: a query is a row, and its row sums to 1")
    ws.text("pattern[i, j] = exp(scores[i, j]) / sum of row i's exponentials", style="equation")
    rows = ws.table("by_rows", p, lambda i, j: f"{exps.at(i, j)}/SUM({exps.row(i)})", WORDS, WORDS,
                    QUERIES_DOWN, "attention")  # fmt: skip
    across = ws.table("row_sums", p.sum(axis=1)[:, None], lambda i, j: f"SUM({rows.row(i)})",
                      cols=["sum →"], beside=rows)  # fmt: skip
    down = ws.table("rows_down", p.sum(axis=0), lambda i, j: f"SUM({rows.column(j)})", ["sum ↓"])

    ws.heading("As the drawing has it: a query is a column, and its column sums to 1")
    cols = ws.table("by_columns", p.T, lambda i, j: rows.at(j, i), WORDS, WORDS, KEYS_DOWN,
                    "attention")  # fmt: skip
    ws.table("columns_across", p.sum(axis=0)[:, None], lambda i, j: f"SUM({cols.row(i)})",
             cols=["sum →"], beside=cols)  # fmt: skip
    ones = ws.table("column_sums", p.sum(axis=1), lambda i, j: f"SUM({cols.column(j)})", ["sum ↓"])
    for table in (rows, cols):
        ws.shade(table.rect, "scale")
    ws.text("The other sums say how much a key is looked at by all: nothing makes them 1.")
    w.checks([
        ("by rows, every row sums to 1", near(across.all())),
        ("by columns, every column sums to 1", near(ones.all())),
        ("all shares together are as many as there are queries",
         near(f"SUM({down.all()})", len(WORDS))),
    ])  # fmt: skip
    return w.done(story())


def story() -> Story:
    """What the start sheet says; what its edits do is computed here."""
    p = pattern(SCORES)
    more, other, ahead = SCORES.copy(), SCORES.copy(), SCORES.copy()
    more[2, 1], other[3, 2], ahead[0, 3] = 4.0, 4.0, 9.0
    fluffy, blue = pattern(more)[2, 1], pattern(other)[3].sum()
    looked = pattern(other)[:, 2].sum()
    return Story(
        title=TITLE,
        source="After lecture notes on transformers, the figure of the attention pattern.",
        about=[
            "The notes ask: in masked attention, does a row sum to 1, or a column?",
            "A query's line does. Code writes it as a row; the notes' drawing turns the table.",
        ],
        look=[
            "Pattern: one table, twice; the sums beside and below each.",
            "Check: what holds however you change the scores.",
        ],
        tries=[
            Try(f"Type 4: blue looks at fluffy with {fluffy:.2f} instead of {p[2, 1]:.2f}, in a row "
                "above and in a column below.",
                ("scores", 2, 1), 4.0, ("by_columns", 1, 2), fluffy),
            Try(f"Type 4: as a key, blue is looked at with {looked:.2f} in all instead of "
                f"{p[:, 2].sum():.2f}. The sum of creature's own line stays {blue:.0f}.",
                ("scores", 3, 2), 4.0, ("columns_across", 2, 0), looked),
            Try("Type 9, in a cell above the diagonal: the key comes after its query, and nothing "
                f"changes; `a` looks at itself with {pattern(ahead)[0, 0]:.0f}.",
                ("scores", 0, 3), 9.0, ("by_rows", 0, 0), pattern(ahead)[0, 0]),
        ],
    )  # fmt: skip
