"""one-head: a head of attention tensor by tensor, as in code: softmax along an axis, slices, the
root.

Look at the sums of softmax along each axis, at the slice of Q that belongs to a head, and at how
the variance of q · k grows with its length. Try the other axis, a wrong reshape, and a head of
another width.
"""

from cellformer.exporters.assemble.worksheets import Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story
from cellformer.workbooks.one_head import scale, softmax, tensors

TOPIC, AFTER, LEVEL = "Attention", "attention-by-columns", 2
TITLE = "one-head: a head in tensors, with softmax along an axis, slices of Q, the root of d_head"


def book() -> Book:
    """The workbook."""
    w = Workbook("one-head")
    softmax.add(w)
    tensors.add(w)
    scale.add(w)
    w.compare([*softmax.printed(w), *tensors.printed(w)], "Lecture notes, sections 4 and 5")
    w.checks(
        [
            ("softmax by rows: every row sums to 1", near(w["row_totals"].fixed)),
            ("softmax by columns: every column sums to 1", near(w["column_totals"].fixed)),
            (
                "the scores from slices equal the scores from einsum",
                near(w["einsum_gap"].fixed, 0),
            ),
        ]
    )
    return w.done(story(w))


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="Based on lecture notes on transformers, sections 4 and 5, and A Gentle Introduction "
        "to Transformers.",
        about=[
            "Programs compute all heads of a layer at once. To do this, programs stack tables in "
            "a third direction. Such stacks are called tensors.",
            "This workbook shows a computation with tensors, and three possible mistakes. "
            "Softmax can run in a wrong direction. The heads can get wrong parts of Q.",
            "A third mistake: a program can divide the scores by a wrong number.",
            "Why it matters: a program with one of these three mistakes runs without an error. "
            "The tables have the correct shape, but wrong numbers.",
            "Scores are divided by √d_head because of the softmax. Without the division, longer "
            "queries make the spread of the scores larger.",
            "If the spread of the scores is large, one key gets all of the weight. Training "
            "can then hardly change the other scores.",
        ],
        errata=[
            "The notes divide the scores by √d_head ‘for numerical stability’. The real reason "
            "is the softmax: see the sheet Scale.",
            "The notes print two softmaxes of one table. In one softmax, the second row repeats "
            "the first row. No direction of the softmax gives this result.",
            "The notes also print weights that are not a softmax of the scores. The sheet "
            "Printed shows these weights and the two softmaxes.",
        ],
        look=[
            "The tables have one row for each word, as in the notes.",
            "The sheet Softmax shows one table of scores, with softmax along the rows and along "
            "the columns.",
            "The sheet Tensors shows two ways to cut Q into heads. The cut by columns is "
            "correct. The cut by reshape mixes the tokens, and is wrong.",
            "Layers and heads are counted from 0: head 0.1 is number 1 in layer 0.",
            "The sheet Scale shows a hundred random pairs of q and k, and the variance of their "
            "products. With T tokens, each head has T² scores.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘2’, then ‘4’ and ‘6’ in the next two cells. The first row now equals the "
                "second row. The largest share in the first row goes from {now:.1%} to "
                "{then:.1%}.",
                {w["scores"][0, k]: 2 * softmax.SCORES[0][k] for k in range(3)},
                w["by_rows"][0, 2],
            ),
            w.suggestion(
                "Type ‘3’ for this feature of ‘fluffy’. The wrong reshape moves the feature into "
                "the query of ‘blue’. In that query, a number changes from {now:.2f} to "
                "{then:.2f}.",
                {w["X"][0, 3]: 3.0},
                w["reshaped"][1, 1],
            ),
            w.suggestion(
                "Type ‘32’: the variance of q · k falls from {now:.1f} to {then:.1f}, to about "
                "half.",
                {w["widths"][2]: 32.0},
                w["variances"][2],
            ),
        ],
    )
