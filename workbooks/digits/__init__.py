"""digits: draw a digit in cells, and a vision transformer says which one it is.

Draw in the 8 x 8 yellow cells, and watch the ten bars. Look at where [CLS] looks on the drawing, at
the patches that the drawing is cut into, and at held-out drawings, which training never saw. Erase
a stroke and see which digit it becomes.

`learning` trained it, on scikit-learn's drawings alone; `cellformer train digits` repeats that.
"""

from collections.abc import Iterator

from cellformer.engine import Model
from cellformer.engine.cells.functions import ABS, MAX, MIN, SUM
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.learning.training import Progress
from cellformer.engine.models import checkpoint
from cellformer.engine.models.forward import Forward
from cellformer.exporters.assemble.worksheets import Workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story
from cellformer.workbooks.digits import canvas, learning, sheets, trained
from cellformer.workbooks.digits.drawings import MOST, N_HELD_OUT, every

TOPIC, AFTER, LEVEL = "A whole model", "tool-call", 3
TITLE = "digits: draw a digit in cells, and a transformer reads it"
N_RIGHT = 354  # of the held-out drawings

save, is_part = checkpoint.save, checkpoint.is_part
transformer = trained.load


def book() -> Book:
    """The workbook."""
    g = canvas.build(transformer())
    w = Workbook("digits", g)
    sheets.draw_sheet(w, g, accuracy())
    sheets.looks_sheet(w, g)
    sheets.held_sheet(w, g)
    sheets.inside_sheets(w, g)
    checks(w, g)
    return w.done(story(w))


def accuracy() -> str:
    """A sentence with the number of held-out drawings that the included model gets right."""
    return worded(
        "Of {n} drawings outside the training set, the model reads {right} correctly: {share:.1%}.",
        n=N_HELD_OUT,
        right=N_RIGHT,
        share=N_RIGHT / N_HELD_OUT,
    )


def train(seed: int, steps: int | None = None) -> Iterator[Progress | Model]:
    """Each step's progress and, last, the trained model."""
    yield from (
        step if isinstance(step, Progress) else trained.model(step)
        for step in learning.learn(seed, steps or learning.RECIPE.steps)
    )


def figures(model: Model) -> list[tuple[str, str]]:
    """The number of held-out drawings that a model gets right, and its size."""
    right = trained.right(model)
    return [
        (f"of {len(right)} held-out drawings", f"{right.sum()} right, {right.mean():.1%}"),
        ("weights", f"{sum(w.size for w in model.weights.values()):,}"),
    ]


def checks(w: Workbook, g: Forward) -> None:
    """Claims that hold for any drawing."""
    patterns = [block.area for block in g.find("*.pattern")]
    rows = [SUM(pattern[0, :].as_range) for pattern in patterns]
    seen = g["seen"].area.as_range
    w.checks([
        ("the probabilities of the ten digits sum to 1", ABS(SUM(g["probs"].area.as_range) - 1) < NEAR),
        ("the attention weights of [CLS] sum to 1 in each head", MAX(*[ABS(row - 1) for row in rows]) < NEAR),
        ("every pixel counts as 0 or more", MIN(seen) > -NEAR),
        ("every pixel counts as 16 or less", MAX(seen) - MOST < NEAR),
    ])  # fmt: skip


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    typed, guess, sure = w["drawing"], w["guess"], w["sure"]
    return Story(
        title=TITLE,
        source="Based on Dosovitskiy et al., An Image is Worth 16x16 Words (2021). Trained for this "
        "workbook on scikit-learn's digits (Alpaydin and Kaynak 1998).",
        about=[
            "A transformer reads words. A transformer can also read a picture, if you first cut "
            "the picture into patches. Here you draw 8 x 8 pixels.",
            "The drawing is cut into 16 patches of 2 x 2. A small matrix turns the four pixels "
            "of a patch into a vector, like the embedding of a word.",
            "The model adds a vector for the place of the patch. All other steps are the same "
            "as for words: attention, MLP, and a score for each of ten digits.",
            worded(
                "The model has {weights:,} weights. It learned these weights from {n:,} drawings "
                "by 13 people. {accuracy}",
                n=len(every().digits) - N_HELD_OUT,
                weights=sum(x.size for x in transformer().weights.values()),
                accuracy=accuracy(),
            ),
            "Why it matters: nobody told the model about strokes, or about neighbouring pixels. "
            "Larger models of this kind read photographs.",
            "A chatbot reads your pictures in patches, too. Here you can find out where the "
            "model is wrong, and where the model looked.",
        ],
        look=[
            "The sheet Draw shows your drawing, the model's guess with ten bars, and a map of "
            "the attention. The model can also read a held-out drawing.",
            "The sheet Looks shows the attention of [CLS] to each patch, for each head. The "
            "model reads its guess from the token [CLS].",
            "The sheet Held out has fifty drawings that were not in the training set. Can you "
            "name all of these digits? The model can name most of these digits.",
            "The sheets Patches, Layer 0, Layer 1 and Readout show every formula from the pixels "
            "to the ten probabilities, and the model's weights.",
            "Layers and heads are counted from 0: head 1.0 is head number 0 in layer 1.",
        ],
        suggestions=[
            w.suggestion(
                "Type ‘16’ to add dark ink at the bottom: the model now reads {then:.0f}, not "
                "{now:.0f}.",
                {typed[7, 4]: 16.0},
                guess,
            ),
            w.suggestion(
                "Type ‘16’ to begin a bar across the 7. Many people write a 7 with this bar, but "
                "the model now reads {then:.0f}.",
                {typed[3, 2]: 16.0},
                guess,
            ),
            w.suggestion(
                "Type ‘4’ here, and ‘1’ beside ‘read it’ below. The model reads a held-out 4 as "
                "{then:.0f}, and is {sure.then:.0%} sure. Where did the model look?",
                {w["number"]: 4.0, w["reads_held_out"]: 1.0},
                guess,
                sure=sure,
            ),
        ],
    )
