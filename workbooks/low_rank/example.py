"""low-rank's first sheet: a table of eight words, rebuilt from a few numbers for each.

The factors are the singular vectors of the table as built, each scaled by the root of its singular
value. They are typed, as a model's weights are: how much of the table they rebuild is a formula.
"""

import numpy as np

from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import IF, SUMPRODUCT, added
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import between
from cellformer.exporters.compose.sentences import percent, rounded, sentence
from cellformer.workbooks.low_rank.sizes import GPT_3

WORDS = ("loan", "bond", "share", "option", "deposit", "cash", "mortgage", "insurance")
SAID = ("risk", "return", "safety", "long term", "at once", "moves")
TABLE = np.array([  # how much each word has of each, from -3 to 3
    [0, 1, 0, 1, -1, 0], [-1, 0, 1, 2, -2, -1], [2, 2, -2, 0, 0, 2], [3, 2, -3, -1, 0, 3],
    [-2, -2, 2, -1, 1, -2], [-3, -3, 2, -3, 3, -3], [0, 1, 1, 3, -3, -1], [-1, 0, 1, 2, -2, -1],
], float)  # fmt: skip
FACTORS, RANK = 3, 2  # that are stored, and that are used as built
LEFT, MIDDLE, RIGHT = 1, 8, 12  # the columns of the table, of the words' factors, of the rebuilt
WIDTHS = {
    0: 20,
    **dict.fromkeys(range(LEFT, RIGHT + len(SAID)), 7.5),
    MIDDLE - 1: 10,
    RIGHT - 1: 10,
}
TOP = 9  # the row of the columns' factors, above the rebuilt table


def factors() -> tuple[np.ndarray, np.ndarray]:
    """The factors of the words [words, FACTORS] and of their attributes [FACTORS, columns], to
    two decimals; the larger end of each is positive."""
    u, s, v = np.linalg.svd(TABLE, full_matrices=False)
    root = np.sqrt(s) * np.sign([row[np.argmax(np.abs(row))] for row in v])
    return np.round(u * root, 2)[:, :FACTORS], np.round(v * root[:, None], 2)[:FACTORS]


def fill(w: Workbook, ws: Composer) -> None:
    """Fill the sheet: the claim, the rank to type, the table, its factors, the rebuilt table."""
    row = ws.cursor
    rank = ws.typed(
        "rank",
        [[RANK]],
        ["numbers for each word"],
        style="input setting",
        top=TOP,
        rule=between(0, FACTORS, "A whole number, 0 to 3.", whole=True),
    )
    of_words, of_columns = factors()
    top = TOP + FACTORS + 3
    down = ws.typed("down", of_words, WORDS, range(1, FACTORS + 1), "for each word", "weight",
                    left=MIDDLE, top=top - 2)  # fmt: skip
    up = ws.typed("up", of_columns, range(1, FACTORS + 1), SAID, "for each column", "weight",
                  left=RIGHT, top=TOP - 2)  # fmt: skip
    table = ws.typed("table", TABLE, WORDS, SAID, "the table: 8 words", left=LEFT, top=top - 2)

    def rebuilt(i: int, j: int) -> Expression:
        return added(IF(rank.fixed > k, down[i, k] * up[k, j], 0) for k in range(FACTORS))

    made = ws.computed("rebuilt", TABLE.shape, rebuilt, WORDS, SAID, "rebuilt from the factors",
                       left=RIGHT, top=top - 2, style="readout")  # fmt: skip
    for k in range(FACTORS):
        for area in (down[:, k], up[k, :]):
            ws.mark(area, "stale", rank.fixed <= k)
    for area in (table, made, down, up):
        ws.dress(area, "diverging")
    counted(ws, rank, table, made)
    ws.cursor = row
    claim(ws)
    ws.cursor = top + len(WORDS) - 1
    suggest(w, ws)


def counted(ws: Composer, rank: Area, table: Area, made: Area) -> None:
    """Add how many numbers there are, and how much of the table they rebuild."""
    n, m = TABLE.shape
    missed = [SUMPRODUCT(made[i, :] - table[i, :], made[i, :] - table[i, :]) for i in range(n)]
    share = 1 - added(missed) / SUMPRODUCT(table, table)
    rows, kept = ["numbers kept"], rank[0, 0] * (n + m)
    ws.computed("n_kept", (1, 1), kept, rows, style="thousands", top=TOP + 1)
    rows = ["share rebuilt"]
    ws.computed("share_kept", (1, 1), share, rows, style="live percent", top=TOP + 2)


def claim(ws: Composer) -> None:
    """Add the claim, and the use of low-rank matrices."""
    told = sentence(
        "{rank} numbers for each word rebuild {share} of this table: {kept} numbers replace {all}.",
        rank=ws["rank"][0, 0],
        share=percent(ws["share_kept"][0, 0], 0),
        kept=ws["n_kept"][0, 0],
        all=str(TABLE.size),
    )
    ws.show("claim", (ws.cursor, 0), told, "heading")
    ws.cursor += 1
    ws.text(
        "A low-rank matrix is a product of two thin matrices. The rank is the count of numbers "
        "kept for each row. Here each row is a word."
    )
    thin, full = ws["sums"][0, GPT_3], ws["parts"][0, GPT_3]
    told = sentence(
        "Each head of a transformer uses low-rank matrices. LoRA also uses such matrices, to "
        "adapt a model cheaply. In GPT-3 a head has {thin} million numbers, not {full} million.",
        thin=rounded(thin / 1000000, 1),
        full=rounded(full / 1000000, 0),
    )
    ws.show("heads", (ws.cursor, 0), told, "text")


def suggest(w: Workbook, ws: Composer) -> None:
    """Three edits: one number for each word, three, and a word's factor."""
    rank, share = w["rank"][0, 0], w["share_kept"][0, 0]
    option, risk = WORDS.index("option"), SAID.index("risk")
    ws.suggest(
        w.suggestion(
            "Type ‘1’: one number for each word still rebuilds {then:.0%} of the table, not {now:.0%}.",
            {rank: 1.0},
            share,
        ),
        w.suggestion(
            "Type ‘3’: {kept.then:.0f} numbers rebuild {then:.1%} of the table. The whole table "
            "has only a few more numbers.",
            {rank: 3.0},
            share,
            kept=w["n_kept"][0, 0],
        ),
        w.suggestion(
            "This cell is the first number of the word ‘option’. Type ‘0’: the whole row of "
            "‘option’ changes, and the risk of ‘option’ falls from {now:.1f} to {then:.1f}.",
            {w["down"][option, 0]: 0.0},
            w["rebuilt"][option, risk],
        ),
        at=(0, 1, 3),
    )
