"""one-head's sheet Softmax: the same scores, softmax over rows (dim=1) and over columns (dim=0)."""

from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.functions import EXP, MAX, SUM
from cellformer.exporters.assemble.worksheets import Comparison, Workbook
from cellformer.exporters.compose.composer import Composer

SCORES = ((1.0, 2.0, 3.0), (2.0, 4.0, 6.0))
RIGHT = ((0.0900, 0.2447, 0.6652), (0.0159, 0.1173, 0.8668))  # that the notes' code prints
OTHER = ((3.2, 1.1, 0.4), (0.9, 0.8, 2.0))  # "visual intuition"
OTHER_PRINTED = ((0.82, 0.13, 0.05), (0.19, 0.17, 0.64))
SUMS_DOWN, SUM_ACROSS = (0.1800, 0.4894, 1.3304), 0.9999
QUERIES, KEYS = ("query 1", "query 2"), ("key 1", "key 2", "key 3")
SHAPE = (len(QUERIES), len(KEYS))


def add(w: Workbook) -> None:
    """Add the sheet."""
    ws = w.sheet(
        "Softmax",
        "one table of scores, with softmax by rows and softmax by columns",
        "A score says how well a key fits a query. A query must spread a weight of 1 over the "
        "keys.",
        "So softmax runs along the keys, the last axis of the table (dim=-1, here dim=1). Each "
        "row sums to 1.",
        "Softmax along the queries (dim=0) is different: each key spreads its weight over the "
        "queries. Then no row sums to 1.",
        widths={0: 16, **dict.fromkeys(range(1, 18), 10)},
    )
    scores = ws.typed("scores", SCORES, QUERIES, KEYS, "scores   [T, T]")
    by_rows(ws, scores, "", "Softmax along the keys (dim=1), as in attention")
    ws.heading(
        "Softmax along the queries (dim=0): the same shape, but wrong numbers",
        "share = exp(score - column maximum) / sum of exp in the column",
        style="equation",
    )
    exps = ws.computed(
        "column_exps", SHAPE, lambda i, j: EXP(scores[i, j] - MAX(scores[:, j])), QUERIES, KEYS
    )
    shares = ws.computed(
        "by_columns",
        SHAPE,
        lambda i, j: exps[i, j] / SUM(exps[:, j]),
        cols=KEYS,
        style="attention",
        beside=exps,
    )
    ws.computed(
        "column_rows", (2, 1), lambda i, _: SUM(shares[i, :]), cols=["row's sum"], beside=shares
    )
    ws.computed("column_totals", (1, 3), lambda _, j: SUM(shares[:, j]), ["column's sum"])
    ws.heading(
        "A second table in the notes: the printed weights are not the softmax of the printed scores"
    )
    other = ws.typed("other", OTHER, ("Token 1", "Token 2"), KEYS, "scores")
    by_rows(ws, other, "other_", "Softmax of the second table, dim=1")
    sums(ws)
    suggest(w, ws, scores)


def sums(ws: Composer) -> None:
    """Add the sums of a table along each axis; the notes' table has one row twice."""
    ws.heading("Sums along an axis: dim=0 gives one number per column, dim=1 one number per row")
    listed = ws.typed("listed", (RIGHT[0],) * 2, ("row 1", "row 2"), KEYS, "a table")
    ws.computed(
        "sums_across", (2, 1), lambda i, _: SUM(listed[i, :]), cols=["dim=1"], beside=listed
    )
    ws.computed("sums_down", (1, 3), lambda _, j: SUM(listed[:, j]), ["dim=0"])


def by_rows(ws: Composer, scores: Area, name: str, heading: str) -> None:
    """Softmax of the rows: exponentials, shares, sums."""
    ws.heading(
        heading, "share = exp(score - row maximum) / sum of exp in the row", style="equation"
    )

    exps = ws.computed(
        f"{name}row_exps", SHAPE, lambda i, j: EXP(scores[i, j] - MAX(scores[i, :])), QUERIES, KEYS
    )
    shares = ws.computed(
        f"{name}by_rows",
        SHAPE,
        lambda i, j: exps[i, j] / SUM(exps[i, :]),
        cols=KEYS,
        style="attention",
        beside=exps,
        dress="scale",
    )
    ws.computed(
        f"{name}row_totals",
        (2, 1),
        lambda i, _: SUM(shares[i, :]),
        cols=["row's sum"],
        beside=shares,
    )


def suggest(w: Workbook, ws: Composer, scores: Area) -> None:
    """Edits: a number added to a row, to a column, and a hidden score."""
    own, crosswise = w["by_rows"][0, 0], w["by_columns"][0, 0]
    row = {scores[0, k]: SCORES[0][k] + 5 for k in range(3)}
    ws.suggest(
        w.suggestion(
            "Type ‘6’, then ‘7’ and ‘8’ in the next two cells: the whole row grows by 5. The "
            "shares by rows do not change: the first share stays {then:.1%}.",
            row,
            own,
        ),
        w.suggestion(
            "The same edit (type ‘6’, ‘7’, ‘8’) changes the shares by columns, even for other "
            "queries. The first share goes from {now:.1%} to {then:.1%}.",
            row,
            crosswise,
        ),
        w.suggestion(
            "Type ‘-1000’ to mask a key: its share becomes 0, and the first share rises from "
            "{now:.1%} to {then:.1%}.",
            {scores[0, 2]: -1000.0},
            own,
        ),
    )


def printed(w: Workbook) -> list[Comparison]:
    """The notes' numbers of softmax: two listings, sums, and a table."""
    rows = []
    again = "the notes’ second listing repeats row 1 as row 2; the first has 0.0159, 0.1173, 0.8668"
    for i, j in ((i, j) for i in range(2) for j in range(3)):
        cell, what = w["by_rows"][i, j], f"query {i + 1}, key {j + 1}"
        rows.append(Comparison(f"softmax, dim=-1, {what}", RIGHT[i][j], cell, "", 4))
        note = again if i else ""
        rows.append(Comparison(f"softmax, printed again, {what}", RIGHT[0][j], cell, note, 4))
    wrong = "the softmax of the printed scores gives other weights"
    rows += [
        Comparison(
            f"‘visual intuition’: token {i + 1}, weight {j + 1}",
            value,
            w["other_by_rows"][i, j],
            wrong,
        )
        for i, line in enumerate(OTHER_PRINTED)
        for j, value in enumerate(line)
    ]
    rows += [
        Comparison(f"x.sum(dim=0), {j}", total, w["sums_down"][j], "", 4)
        for j, total in enumerate(SUMS_DOWN)
    ]
    return rows + [
        Comparison(f"x.sum(dim=1), {i}", SUM_ACROSS, w["sums_across"][i], "", 4) for i in range(2)
    ]
