"""one-step: a model learns one word: every gradient of one backward pass, and the loss after the
step.

Look at the backward pass, from the loss upwards, beside the forward pass. Try a rate that is too
large, another next word, a smaller step.
"""

import numpy as np

from cellformer.engine import Model
from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.functions import SUM
from cellformer.exporters.assemble.worksheets import Workbook, near
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import Story
from cellformer.workbooks import cat_sat
from cellformer.workbooks.one_step import sheet
from cellformer.workbooks.one_step.blocks import PROMPT, WEIGHTS

TOPIC, AFTER, LEVEL = "Learning", "", 2
TITLE = "one-step: how a model learns one word, every gradient in view"


def book() -> Book:
    """The workbook."""
    w = Workbook("one-step")
    sheet.add(w, weights(cat_sat.model()))
    w.checks(
        [
            ("the attention weights of sat sum to 1", near(SUM(w["share"]))),
            ("the gradients of the scores sum to 0", near(SUM(w["gradient_score"]), 0)),
            ("the gradients of the logits sum to 0", near(SUM(w["gradient_logit"]), 0)),
        ]
    )
    return w.done(story(w))


def weights(model: Model) -> dict[str, np.ndarray]:
    """A model's weights, by the names of the tables; the unembedding has a row for each word."""
    found = dict(model.graph(model.vocabulary.encode(" ".join(PROMPT))).values)
    return {name: found[of].T if name == "W_U" else found[of] for name, of in WEIGHTS.items()}


ABOUT = [
    "A language model learns by repeating one small step. In this step, the model reads "
    "a sentence and then gets the word that came next.",
    "Then every weight moves a little, to make the model less surprised by the word that came "
    "next. This workbook shows one whole step.",
    "Why it matters: a large model learns everything in this way. The step uses only "
    "sums, products, quotients, e^x and ln.",
    "The surprise is called the loss: -ln of the share that the model gave to the next word. "
    "Every number has a gradient.",
    "The gradient says how fast the loss grows when the number grows. The sheet computes "
    "gradients backwards from the loss, with one rule for each kind of formula.",
    "The method is the chain rule, called backpropagation. A step subtracts the rate times the "
    "gradient from every weight.",
    "This workbook uses the model of the workbook ‘cat-sat’. The model has read ‘the cat sat’, "
    "and the word that came next is ‘on’.",
    "To fit on one page, the model predicts only the word after ‘sat’. So only ‘sat’ has a query.",
]


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    rate, following, falls = w["rate"], w["next_word"], w["falls"]
    loss, share = w["outcome"][0, :], w["outcome"][1, :]
    small, likely = 0.01, "mat"
    far: dict[Area, float | str] = {rate: 2.0, following: "the"}
    return Story(
        title=TITLE,
        source="The model is from L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), "
        "section 5. Here the model learns.",
        about=ABOUT,
        look=[
            "The left part of the sheet Step shows the model from the word vectors down to the "
            "loss, as in the workbook ‘cat-sat’.",
            "In the middle of the sheet Step, begin at the bottom, with ‘share - should be’, and "
            "go up. The text above each table explains the rule in plain words.",
            "The right part of the sheet Step shows every weight after the step, and the model "
            "with these weights. The loss is now lower.",
            "The top left of the sheet Step shows which weights lower the loss. Here the readout "
            "learns most, and the queries learn almost nothing.",
            "The queries learn almost nothing because the attention weights hardly change the "
            "answer.",
        ],
        suggestions=[
            w.suggestion(
                f"Type ‘{small}’: with this small rate, the step does what the gradients "
                "predict. The predicted fall of the loss is {foretold.then:.4f}, and the real "
                f"fall is {{then:.4f}}. With the rate {sheet.RATE}, the predicted fall is "
                "{foretold.now:.3f}, and the real fall is {now:.3f}.",
                {rate: small},
                falls[1],
                foretold=falls[0],
            ),
            w.suggestion(
                f"Choose ‘{likely}’, the likeliest word of the model: the surprise is smaller "
                f"from the start. One step raises the share of ‘{likely}’ from "
                "{before.then:.0%} to {then:.0%}.",
                {following: likely},
                share[1],
                before=share[0],
            ),
            w.suggestion(
                "Type ‘2’, and choose ‘the’ as the next word. Gradients hold only for small "
                "steps, and this step is too large. The loss rises from {loss.then:.1f} to "
                "{then:.1f}.",
                far,
                loss[1],
                loss=loss[0],
            ),
        ],
    )
