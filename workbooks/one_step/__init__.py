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
            ("what sat looks at are shares of one attention", near(SUM(w["share"]))),
            ("no score can grow but at the others' cost", near(SUM(w["gradient_score"]), 0)),
            ("no logit can grow but at the others' cost", near(SUM(w["gradient_logit"]), 0)),
        ]
    )
    return w.done(story(w))


def weights(model: Model) -> dict[str, np.ndarray]:
    """A model's weights, by the names of the tables; the unembedding has a row for each word."""
    found = dict(model.graph(model.vocabulary.encode(" ".join(PROMPT))).values)
    return {name: found[of].T if name == "W_U" else found[of] for name, of in WEIGHTS.items()}


def story(w: Workbook) -> Story:
    """The start sheet's texts, and suggested edits with their computed effects."""
    rate, following, falls = w["rate"], w["next_word"], w["falls"]
    loss, share = w["outcome"][0, :], w["outcome"][1, :]
    small, likely = 0.01, "mat"
    far: dict[Area, float | str] = {rate: 2.0, following: "the"}
    return Story(
        title=TITLE,
        source="The model is that of L. Erzegovesi, Transformers and QKV Attention: A Primer (2026), section 5; here it learns.",
        about=[
            "A language model learns by one small step, made over and over: it reads a sentence, is told which word came next, and every",
            "weight moves a little, so that this word would have been less of a surprise. This workbook is one such step, whole.",
            "Why it matters: all that a large model knows came to it in this way, and the step is sums, products, quotients, e^x and ln.",
            "The surprise is the loss, -ln of the share that the model gave the word that came. For each number, the gradient says by how",
            "much the loss would grow if the number grew by 1. It is found from the loss backwards, one rule for each kind of formula: the",
            "chain rule, called backpropagation. A step takes from every weight the rate times its gradient.",
            "The model is that of cat-sat: it has read ‘the cat sat’, and the word that came is ‘on’. To keep to one page, it is asked only",
            "for the word after the last; so ‘sat’ alone has a query.",
        ],
        look=[
            "Step, left: the model from the word vectors down to the loss, as in cat-sat.",
            "Step, middle: begin at the bottom, with ‘share - should be’, and go up: above each table stands the rule in plain words.",
            "Step, right: every weight after the step, and the model once more. The loss is lower.",
            "At its top: which weights the fall comes from. Here the readout learns most, and the queries next to nothing, since the",
            "shares of the attention hardly matter to the answer.",
        ],
        suggestions=[
            w.suggestion(
                f"Type ‘{small}’: so small a step does what the gradients predict. The loss should fall by {{foretold.then:.4f}}, and falls by {{then:.4f}}. "
                f"At {sheet.RATE} it should fall by {{foretold.now:.3f}}, and falls by {{now:.3f}}.",
                {rate: small},
                falls[1],
                foretold=falls[0],
            ),
            w.suggestion(
                f"Choose ‘{likely}’, which the model held likeliest: the surprise is smaller from the start. One step makes its "
                "share {then:.0%}, not {before.then:.0%}.",
                {following: likely},
                share[1],
                before=share[0],
            ),
            w.suggestion(
                "Type ‘2’, and choose ‘the’ as the next word: gradients hold for small steps "
                "only, and this step goes too far. The loss rises from {loss.then:.1f} to "
                "{then:.1f}.",
                far,
                loss[1],
                loss=loss[0],
            ),
        ],
    )
