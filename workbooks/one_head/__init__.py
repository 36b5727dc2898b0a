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
TITLE = "one-head: a head tensor by tensor: softmax by an axis, slices of Q, the root of d_head"


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
                "the heads' scores, slice by slice, are those of the einsum",
                near(w["einsum_gap"].fixed, 0),
            ),
        ]
    )
    return w.done(story(w))


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    return Story(
        title=TITLE,
        source="After lecture notes on transformers, sections 4 and 5, and A Gentle Introduction to Transformers.",
        about=[
            "Programs compute all heads of a layer at once, on tables that are stacked in a third direction: tensors. This workbook takes one such",
            "computation apart, and shows three places where it goes wrong: along which direction softmax runs, how the table of queries is cut",
            "into heads, and what the scores are divided by.",
            "Why it matters: each of the three mistakes runs without an error, and gives numbers of the right shape.",
            "Scores are divided by √d_head because of the softmax. Without the division, scores spread more the longer the queries are: one key",
            "takes all of the weight, and training can hardly move the others.",
        ],
        errata=[
            "The notes divide the scores by √d_head ‘for numerical stability’. The reason is the softmax: see sheet Scale.",
            "The notes print two softmaxes of one table, and the second row of one repeats its first, which neither direction gives; and they print",
            "a table of weights that no softmax of its scores gives. Sheet Printed holds both.",
        ],
        look=[
            "Tables stand as in the notes: a row for each word.",
            "Softmax: one table of scores, divided by the sums of its rows, or of its columns.",
            "Tensors: Q cut into heads by columns, which is right, and by a reshape that mixes the tokens, which is not.",
            "Layers and heads are counted from 0: head 0.1 is number 1 in layer 0.",
            "Scale: a hundred random q and k, and the variance of their products. The table of scores grows with T².",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘2’, and ‘4’ and ‘6’ beside it: the first row now equals the second, and "
                "its largest share goes from {now:.1%} to {then:.1%}.",
                {w["scores"][0, k]: 2 * softmax.SCORES[0][k] for k in range(3)},
                w["by_rows"][0, 2],
            ),
            w.suggestion(
                "Type ‘3’, a feature of fluffy: the wrong reshape puts it into the query of "
                "blue, which goes from {now:.2f} to {then:.2f}.",
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
