"""fluffy-creature's printed tables, compared with their cells, and with the tables printed
before."""

from collections.abc import Callable, Mapping

from cellformer.engine import Graph
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import EXP, MATCH, MAX, SUM, added, dot
from cellformer.exporters.compose.story import Printed
from cellformer.workbooks.fluffy_creature.weights import BLOCK, HEAD, WEIGHTS, WORDS

QUERIES = "4. Q, which equals X: W_Q is the identity"
KEYS, VALUES = "4. K", "4. V"
SCORES, EXPS = "5. Scores, not divided by sqrt 2", "7. Exponentials of the scores"
SUMS, SHARES, MIXED = "7. Their sums", "7. Attention weights", "9. Attention times V"
TERMS, SUMMED = "Products with W_O", "Sums of the products"
WRITES, MIDDLE, HIDDEN = "Output of attention", "After attention", "The hidden layer, before ReLU"
MLP, AFTER = "Output of the MLP", "After the block"
LOGITS, TABLED = "Logits, computed by hand in the notes", "Logits again, in the notes' tables"
BELOW, BLUE_EXPS = "blue, by hand: logits minus largest logit", "blue, by hand: exponentials"
BLUE, N = 1, len(WORDS)
Tables = Mapping[str, Area]  # the printed cells of each table, by its title

# --- cells that no block of the model holds -------------------------------------------------------


def exponential(g: Graph, i: int, j: int) -> Expression | int:
    """The exponential of a score; the model first subtracts the largest of the row."""
    return EXP(g[f"{HEAD}.scores"][i, j]) if j <= i else 0


def below_largest(g: Graph, i: int, j: int) -> Expression:
    """A logit minus the largest of its row."""
    return g["logits"][i, j] - MAX(g["logits"][i, :])


# --- what the tables printed before give ----------------------------------------------------------


def times(title: str, matrix: str) -> Callable[[Tables, int, int], Expression]:
    """A printed table times a matrix of weights."""
    rows = WEIGHTS[matrix]
    return lambda t, i, j: added(t[title][i, k] * row[j] for k, row in enumerate(rows))


def plus(title: str, other: str) -> Callable[[Tables, int, int], Expression]:
    """Two printed tables added."""
    return lambda t, i, j: t[title][i, j] + t[other][i, j]


def logit_of_printed(t: Tables, i: int, j: int) -> Expression:
    """A printed vector after the block times a word's."""
    x, word = t[AFTER], WEIGHTS["W_E"][j]
    return x[i, 0] * word[0] + x[i, 1] * word[1]


def softmax_of_printed(t: Tables, i: int, j: int) -> Expression:
    """The softmax of those logits, as the notes' code computes it."""
    logits = [logit_of_printed(t, i, k) for k in range(N)]
    return 1 / added(EXP(logit - logits[j]) for logit in logits)


PRINTED = (
    Printed(QUERIES, [[1.0, 2.0], [2.0, 0.5], [1.5, 1.5], [0.5, 2.5]], f"{HEAD}.q", decimals=1),
    Printed(KEYS, [[1.5, -0.5], [1.25, 0.75], [1.5, 0.0], [1.5, -1.0]], f"{HEAD}.k"),
    Printed(VALUES, [[3.0, 1.0], [2.5, 2.0], [3.0, 1.5], [3.0, 0.5]], f"{HEAD}.v"),
    Printed(SCORES, [
        [0.5, 2.75, 1.5, -0.5], [2.75, 2.88, 3.0, 2.5], [1.5, 3.0, 2.25, 0.75], [-0.5, 2.25, 0.75, -1.25],
    ], f"{HEAD}.scores",
            cell=lambda g, i, j: dot(g[f"{HEAD}.q"][i, :], g[f"{HEAD}.k"][j, :]) / g[f"{BLOCK}.attn.sqrt_d_head"][0, 0],
            follows=lambda t, i, j: dot(t[QUERIES][i, :], t[KEYS][j, :]),
            note=
                "The notes print 2.25 for forest on blue, but 0.5 * 1.25 + 2.5 * 0.75 = 2.5. The "
                "notes print -1.25 for forest on itself, but 0.5 * 1.5 - 2.5 = -1.75."),
    Printed(EXPS, [
        [None] * N, [15.64, 17.79, None, None], [4.48, 20.09, 9.49, None], [0.61, 9.49, 2.12, 0.29],
    ], f"{HEAD}.scores", cell=exponential, follows=lambda t, i, j: EXP(t[SCORES][i, j]),
            note=
                "The sheets first subtract the largest score of a row. The shares "
                "stay the same. The printed 17.79 for blue on itself is e^2.8785, "
                "not e^2.875 or e^2.88."),
    Printed(SUMS, [[None], [33.43], [34.06], [12.51]], f"{HEAD}.row_sum",
            cell=lambda g, i, _: added(exponential(g, i, k) for k in range(i + 1)),
            follows=lambda t, i, _: added(t[EXPS][i, k] for k in range(i + 1)),
            note="Only the sum in the row of forest has the earlier errors."),
    Printed(SHARES, [
        [1.00, None, None, None], [0.47, 0.53, None, None], [0.13, 0.59, 0.28, None],
        [0.05, 0.76, 0.17, 0.02],
    ], f"{HEAD}.pattern", follows=lambda t, i, j: t[EXPS][i, j] / t[SUMS][i] if i else 1,
            note="The last row repeats two earlier errors, but adds no new error."),
    Printed(MIXED, [[3.00, 1.00], [2.74, 1.53], [2.71, 1.73], [2.62, 1.84]],
            f"{HEAD}.z",
            follows=lambda t, i, j: added(t[SHARES][i, k] * t[VALUES][k, j] for k in range(i + 1)),
            note=(
                "The notes use rounded weights. The row of forest also repeats the "
                "earlier errors."
            )),
    Printed(TERMS, [
        [2.4, 0.1, 0.6, 0.9], [2.192, 0.153, 0.548, 1.377], [2.168, 0.173, 0.542, 1.557],
        [2.096, 0.184, 0.524, 1.656],
    ], "logits", decimals=3,
            cell=lambda g, i, j: g[f"{HEAD}.z"][i, j % 2] * g[f"{HEAD}.W_O"][j % 2, j // 2],
            follows=lambda t, i, j: t[MIXED][i, j % 2] * WEIGHTS["W_O"][j % 2][j // 2],
            note=
                "The notes use the rounded sums of values. The row of forest also "
                "repeats the earlier errors."),
    Printed(SUMMED, [[2.5, 1.5], [2.345, 1.925], [2.341, 2.099], [2.280, 2.180]],
            f"{BLOCK}.attn_out", decimals=3,
            follows=lambda t, i, j: t[TERMS][i, 2 * j] + t[TERMS][i, 2 * j + 1],
            note="These sums add the products above, for example 2.192 + 0.153 = 2.345."),
    Printed(WRITES, [[2.5, 1.5], [2.35, 1.93], [2.34, 2.10], [2.28, 2.18]],
            f"{BLOCK}.attn_out", follows=times(MIXED, "W_O"),
            note="The differences of the earlier tables continue here."),
    Printed(MIDDLE, [[3.5, 3.5], [4.35, 2.43], [3.84, 3.60], [2.78, 4.68]],
            f"{BLOCK}.resid_mid", follows=plus(QUERIES, WRITES),
            note="The differences of the earlier tables continue here."),
    Printed(HIDDEN, [
        [3.5, 3.5, 3.5, 3.5], [4.35, 2.43, 2.43, 4.35], [3.84, 3.60, 3.60, 3.84],
        [2.78, 4.68, 4.68, 2.78],
    ], f"{BLOCK}.mlp.pre", follows=times(MIDDLE, "W_in"),
            note="All numbers are above 0, so ReLU changes nothing."),
    Printed(MLP, [[7.0, 7.0], [7.36, 6.20], [6.8, 6.5], [7.2, 6.9]],
            f"{BLOCK}.mlp_out", follows=times(HIDDEN, "W_out"),
            note=
                "The notes ‘summarised’ the rows of creature and forest: their numbers are "
                "estimates. Computed from the printed hidden layer, they are 7.512 and 7.368 "
                "for creature, and 6.890 and 8.030 for forest."),
    Printed(AFTER, [[10.5, 10.5], [11.71, 8.63], [10.64, 10.10], [9.98, 11.58]],
            f"{BLOCK}.resid_post", follows=plus(MIDDLE, MLP),
            note="The rows of creature and forest use the summarised output of the MLP."),
    Printed(LOGITS, [
        [31.5, 26.25, 31.5, 31.5], [28.97, 27.755, 30.51, 27.28],
        [30.84, 26.33, 31.11, 30.595], [33.14, 25.75, 32.34, 33.94],
    ], "logits", follows=logit_of_printed,
            note=
                "Three of sixteen numbers do not follow from the printed vectors. The correct "
                "values are 27.735 for blue on blue, 27.43 for blue on forest, and 30.57 for "
                "creature on forest."),
    Printed(TABLED, [
        [31.5, 26.25, 31.5, 31.5], [28.97, 28.64, 30.51, 28.49],
        [30.84, 26.80, 31.11, 31.16], [33.14, 24.65, 31.74, 33.21],
    ], "logits", follows=logit_of_printed,
            note=
                "The notes print the same cells again, with seven other numbers. In this table, "
                "and in the conclusion of the notes, forest (31.16) follows creature. In the "
                "notes' code and in this workbook, creature follows creature."),
    Printed("Probabilities, from the notes' code", [
        [0.3328, 0.0017, 0.3328, 0.3328], [0.1621, 0.0471, 0.7560, 0.0347],
        [0.3242, 0.0036, 0.4247, 0.2475], [0.2721, 0.0002, 0.1222, 0.6055],
    ], "probs", decimals=4, follows=softmax_of_printed,
            note="The code starts from the rounded vectors. The code itself computes correctly."),
    Printed("The likeliest word, from the notes' code", [[None], [2], [2], [3]], "tokens",
            decimals=0,
            cell=lambda g, i, _: MATCH(MAX(g["logits"][i, :]), g["logits"][i, :], 0) - 1,
            note=
                "In the code and in this workbook, ‘creature’ follows ‘creature’. In the "
                "conclusion of the notes, ‘forest’ follows ‘creature’. After ‘fluffy’, three words "
                "are equally likely. The code chooses the first of the three: word 0, ‘fluffy’."),
    Printed(BELOW, [[-1.54, -1.87, 0, -2.02]], "logits", rows=[BLUE], cell=below_largest,
            follows=lambda t, _, j: t[TABLED][BLUE, j] - MAX(t[TABLED][BLUE, :]),
            note="The notes use the second table of logits."),
    Printed(BLUE_EXPS, [[0.21, 0.15, 1.00, 0.13]], "logits", rows=[BLUE],
            cell=lambda g, i, j: EXP(below_largest(g, i, j)),
            follows=lambda t, _, j: EXP(t[BELOW][j]),
            note="The notes use the second table of logits."),
    Printed("blue, by hand: probabilities", [[0.14, 0.10, 0.67, 0.09]], "probs", rows=[BLUE],
            follows=lambda t, _, j: t[BLUE_EXPS][j] / SUM(t[BLUE_EXPS]),
            note=
                "The notes use the second table of logits. The notes print 1.49 as "
                "the sum of the exponentials."),
)  # fmt: skip
