"""one-step: a model learns one word: every gradient of one backward pass, and the loss again.

Look at the way back, from the loss upwards, beside the way down. Try a rate that is too large,
another next word, a smaller step.
"""

import numpy as np

from engine.models import objective
from exporters.book import Book
from exporters.story import Story
from exporters.tables import Workbook, near
from workbooks import cat_sat
from workbooks.one_step import sheet
from workbooks.one_step.blocks import PROMPT, WEIGHTS

TOPIC, AFTER, LEVEL = "Learning", "", 2
TITLE = "one-step: how a model learns one word, every gradient in view"


def book() -> Book:
    """The workbook."""
    w = Workbook("one-step")
    step = sheet.add(w, weights())
    return w.done(story(w, step))


def weights() -> dict[str, np.ndarray]:
    """cat-sat's, by the names of the tables; of the unembedding a row for each word."""
    model = cat_sat.model()
    found = dict(model.graph(model.vocabulary.encode(" ".join(PROMPT))).values)
    return {name: found[of].T if name == "W_U" else found[of] for name, of in WEIGHTS.items()}


def story(w: Workbook, step: sheet.Step) -> Story:
    return Story(title=TITLE, source="", about=["a"], look=["b"], tries=[
        w.suggestion("x", {step.rate: 2.0}, step.outcome[0, 1]),
    ])
