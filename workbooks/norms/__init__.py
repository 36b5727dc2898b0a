"""norms: LayerNorm and RMSNorm on the same vector, step by step, and before or after a sublayer.

LayerNorm ignores a vector's scale and an offset of all its entries; RMSNorm ignores only the scale.
Look at what changes in each, and at the size of the stream in a stack. Try a scale of 0.001.
"""

from cellformer.engine.cells.functions import MAX, SQRT
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.assemble.worksheets import Comparison, Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story
from cellformer.workbooks.norms import stack, vectors
from cellformer.workbooks.norms.stack import LAYERS, NONE, POST, PRE

TOPIC, AFTER, LEVEL = "Inside a block", "fact-lookup", 2
TITLE = "norms: LayerNorm and RMSNorm, before and after a sublayer"


def book() -> Book:
    """The workbook."""
    w = Workbook("norms")
    vectors.add(w)
    stack.add(w)
    compare(w)
    square, after = w["rms_square"][0], w["rms_after"]
    largest = MAX(*(w["sizes"][n + 1, POST] for n in range(LAYERS)))
    w.checks([
        ("LayerNorm: the entries of every row have mean 0", near(w["layer_after"][:, 0], 0)),
        (
            "RMSNorm: new mean square = mean square / (mean square + eps)",
            near(after[0, 1] + after[0, 0] ** 2, square / (square + w["settings"][2])),
        ),
        ("LayerNorm ignores the offset", near(w["layer_moved"][1, :], 0)),
        ("post-norm: no vector is longer than sqrt(d)", largest < SQRT(stack.D) + NEAR),
    ])  # fmt: skip
    return w.done(story(w))


def compare(w: Workbook) -> None:
    """Compare the sources' statements about a norm's results."""
    mean, variance = (w["layer_after"][0, k] for k in range(2))
    w.compare([
        Comparison("mean of the entries after LayerNorm, before gain and bias", 0, mean, decimals=0),
        Comparison("their variance", 1, variance, decimals=0),
    ], "Slides, RMSNorm")  # fmt: skip


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    none, pre, post = (w["sizes"][LAYERS, kind] for kind in (NONE, PRE, POST))
    return Story(
        title=TITLE,
        source="Based on M. Sinclair, Transformers (lecture slides), and A Gentle Introduction to "
        "Transformers. Pre-norm and post-norm are from Xiong et al. 2020.",
        about=[
            "Every sublayer adds to a word's vector, so the size of the vector changes. A norm "
            "gives each sublayer an input of the same size.",
            "LayerNorm subtracts the mean and divides by the root of the variance. RMSNorm divides by the root of the mean square and keeps the mean.",
            "Why it matters: LayerNorm ignores the size of a vector and an offset of all its "
            "entries. RMSNorm ignores only the size.",
            "The second thing to try makes the difference between LayerNorm and RMSNorm large.",
            "After the division, a norm multiplies each entry by its own gain γ and adds its own "
            "shift β. A small number, eps, is added under the root.",
            "A pre-norm stands before a sublayer: the stream itself is never divided, and can "
            "grow. A post-norm stands after a sublayer.",
        ],
        errata=[
            "The slides say that both norms do essentially the same. But only LayerNorm "
            "subtracts the mean.",
            "The introduction says that the result has mean β and standard deviation "
            "γ. In fact, each entry has its own β and γ. The introduction omits eps.",
            "The introduction's table omits the norm before the logits.",
        ],
        look=[
            "The sheet Norms shows one vector as typed, scaled and offset, with both norms of "
            "each version. The rows ‘change’ show which changes remain after a norm.",
            "The sheet Stack shows eight layers. Without norms, each layer multiplies the stream "
            "by a factor. With pre-norm, each layer adds a vector of about the same size.",
            "With post-norm, the stream keeps its size, the root of d.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘0.001’, a scale that makes the variance as small as eps: LayerNorm gives {then:.3f} for x4, not {now:.3f}.",
                {w["settings"][0]: 0.001},
                w["layer_out"][1, 3],
            ),
            w.suggestion(
                "Type ‘100’: RMSNorm gives {then:.3f} for x2, not {now:.3f}. This value is "
                "nearly the gain of x2, and a larger x2 hardly changes it. The rows of "
                "LayerNorm do not change.",
                {w["settings"][1]: 100},
                w["rms_out"][2, 1],
            ),
            w.suggestion(
                "Type ‘3’: the pre-norm stream ends at {then:.1f}, not {now:.1f}. The stream "
                "without norms ends at {none.then:.0f}, not {none.now:.0f}. The post-norm stream "
                "stays at {post.then:.1f}.",
                {w["strength"]: 3},
                pre,
                none=none,
                post=post,
            ),
        ],
    )
