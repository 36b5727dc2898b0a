"""attention-by-columns: the same pattern twice, queries as rows and queries as columns.

Code writes a query's shares along a row; drawings often run them down a column. The numbers are the
same, transposed; each query's shares sum to 1. Look at the sums.
"""

from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.functions import EXP, MAX, SUM
from cellformer.exporters.assemble.worksheets import Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story

TOPIC, AFTER, LEVEL = "Attention", "cat-sat", 2
TITLE = "attention-by-columns: one pattern, queries as rows and as columns"
WORDS = ("a", "fluffy", "blue", "creature")
N = len(WORDS)
SCORES = (
    (0.5, 0.0, 0.0, 0.0),
    (1.0, 1.5, 0.0, 0.0),
    (0.2, 2.0, 1.0, 0.0),
    (-0.5, 1.8, 1.6, 0.4),
)
QUERIES_DOWN, KEYS_DOWN = "queries ↓   keys →", "keys ↓   queries →"


def book() -> Book:
    """The workbook."""
    w = Workbook("attention-by-columns")
    ws = w.sheet("Pattern", "one pattern: above with queries as rows, below as columns")
    ws.heading(
        "Scores: how well each key fits each query",
        "A query does not see later keys: cells above the diagonal have no effect.",
    )
    scores = ws.typed("scores", SCORES, WORDS, WORDS, QUERIES_DOWN)

    ws.heading("Exponentials of the visible scores, after subtracting the largest score of the row")
    exps = ws.computed(
        "exps",
        (N, N),
        lambda i, j: EXP(scores[i, j] - MAX(scores[i, : i + 1])) if j <= i else 0,
        WORDS,
        WORDS,
        QUERIES_DOWN,
    )
    ws.heading(
        "In code, a query is a row, and the row sums to 1",
        "pattern[i, j] = exp(scores[i, j]) / sum of row i's exponentials",
        style="equation",
    )
    rows = ws.computed(
        "by_rows",
        (N, N),
        lambda i, j: exps[i, j] / SUM(exps[i, :]),
        WORDS,
        WORDS,
        QUERIES_DOWN,
        "attention",
    )
    across = ws.computed(
        "row_sums", (N, 1), lambda i, j: SUM(rows[i, :]), cols=["sum →"], beside=rows
    )
    down = ws.computed("rows_down", (1, N), lambda i, j: SUM(rows[:, j]), ["sum ↓"])
    ws.heading("In the drawing, a query is a column, and the column sums to 1")
    cols = ws.computed(
        "by_columns", (N, N), lambda i, j: rows[j, i], WORDS, WORDS, KEYS_DOWN, "attention"
    )
    received = ws.computed(
        "columns_across", (N, 1), lambda i, j: SUM(cols[i, :]), cols=["sum →"], beside=cols
    )
    ones = ws.computed("column_sums", (1, N), lambda i, j: SUM(cols[:, j]), ["sum ↓"])
    for table in (rows, cols):
        ws.dress(table, "scale")
    ws.text(
        "The sums over all queries show how much attention each key gets. These sums need not be 1."
    )
    w.checks([
        ("by rows, every row sums to 1", near(across.fixed)),
        ("by columns, every column sums to 1", near(ones.fixed)),
        ("the sum of all shares is the number of queries", near(SUM(down.fixed), N)),
    ])  # fmt: skip
    return w.done(story(w, scores, rows, cols, received))


def story(w: Workbook, scores: Area, rows: Area, cols: Area, received: Area) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="Based on lecture notes on transformers, the figure of the attention pattern.",
        about=[
            "An attention pattern is a table. It shows how much each word looks at each other "
            "word. The word that looks is the query.",
            "The word that gets the attention is the key. You can draw this table in two ways.",
            "In code and in the other workbooks, every query is a row. In the drawing of the "
            "lecture notes, every query is a column.",
            "Why it matters: if you read the table the wrong way, you answer another question. "
            "The shares of one query sum to 1, in a row or in a column.",
            "The sums over all queries show how much attention a word gets from all words. These "
            "sums need not be 1.",
            "The words are four of the eight words in the notes' drawing. The notes print no "
            "scores, so the scores were chosen for this workbook.",
        ],
        look=[
            "On the sheet Pattern, type scores. Below, you see the same shares twice: with "
            "queries as rows, and with queries as columns.",
            "The sheet Check shows statements that stay true when you change the scores.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘4’: blue now gives fluffy {then:.0%} of its attention, not "
                "{rows.now:.0%}. See the row above and the column below.",
                {scores[2, 1]: 4.0},
                cols[1, 2],
                rows=rows[2, 1],
            ),
            w.suggestion(
                "Type ‘4’: the key blue now gets attention weights of {then:.2f} in total, not "
                "{now:.2f}. The weights of the query creature still sum to 1.",
                {scores[3, 2]: 4.0},
                received[2, 0],
            ),
            w.suggestion(
                "Type ‘9’ in this cell above the diagonal. The key comes after its query, so nothing changes: ‘a’ still gives itself {then:.0%}.",
                {scores[0, 3]: 9.0},
                rows[0, 0],
            ),
        ],
    )
