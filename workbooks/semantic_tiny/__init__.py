"""semantic-tiny: forty words placed by hand along six axes, and the vectors that a model learns for
them.

Look at sheet Study: the table, an analogy of your own in it and in the learned vectors, and every
measure of every run. The weights are included in `models/semantic-tiny`; `semantics` made them.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cellformer.engine import Model
from cellformer.engine.learning import training
from cellformer.engine.learning.training import Progress
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import Passage
from cellformer.engine.studies import ablation
from cellformer.exporters.assemble.transformer import assemble
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import LAST, Chosen, Story, Suggestion
from cellformer.exporters.model.model_book import ModelBook
from cellformer.workbooks.semantic_tiny import models, printed, probes, semantics, study

TOPIC, AFTER, LEVEL = "Words and positions", "gram-schmidt", 3
PROMPT = "<BOS> queen is"
N_TOKENS = 9
N_REFERENCES = 32  # sentences over which each part's average is measured
SCALE = 0.02  # the shipped model that the workbook shows

STORY = Story(
    title="semantic-tiny: forty word vectors set by hand, and vectors that a model learns",
    source=
        "Based on L. Erzegovesi, Embeddings and the Maps We Draw of Them (2026), section 2: the "
        "cautionary tale. Weights trained for this workbook.",
    about=[
        "Can you give words their meaning by hand? A table here places forty words on six axes: "
        "gender, age, power, size, animacy, mobility.",
        "The table gives true sentences: definitions (‘queen is female adult strong "
        "...’) and comparisons (‘lion is stronger than mouse’).",
        "A small model reads only the sentences, never the table. Do its learned word vectors "
        "show the six axes again?",
        "The model was trained twice on the same sentences. Only the length of its random "
        "vectors before training was different.",
        "Long vectors stay near their random start: king − man + woman is not queen. From short "
        "vectors, a probe can read five of the six axes.",
        "With short vectors, king − man + woman is nearest to queen.",
        "Why it matters: both models do their task equally well. A map of a model's vectors may "
        "not show what the model knows.",
        "This workbook shows the second model, trained from short vectors. Three sheets compare "
        "the second model with the first model.",
    ],
    errata=[
        "The essay's model failed. The essay concludes that nobody can set meaning by hand. But "
        "that model started its training with long vectors.",
    ],
    examples=(PROMPT, "<BOS> mouse is", "<BOS> king is older than"),
    look=[
        "On the sheet Study, edit the table, choose an analogy, and compare the answers of the "
        "table and both models. The sheet also measures every training run.",
        "The sheet Two models shows maps of the table and of both models, side by side. The "
        "sheet Probes tests the vectors for axes, and shows a misleading measure.",
        "The sheet Printed shows the essay's figures and three tests, beside the results here. "
        "The sheet Words shows the same words along directions that you choose.",
    ],
    suggestions=[
        Suggestion(
            "Choose ‘king’ instead of ‘queen’: ‘male’ rises from {now:.1%} to {then:.0%} and "
            "replaces ‘female’. The rest of the sentence stays the same.",
                   1, "king", ("probs", LAST, semantics.ID["male"])),
        Suggestion(
            "On the sheet Switches, type ‘0’ beside MLP 0: ‘<EOS>’ rises from {now:.1%} to "
            "{then:.0%}. The model ends the sentence and says nothing about the queen.",
                   ("blocks.0.mlp.switch", 0, 0), 0.0, ("probs", LAST, semantics.ID["<EOS>"])),
        Suggestion("Type ‘3’: the model becomes less sure. ‘female’ falls from {now:.0%} to {then:.0%}.",
                   ("temperature", 0, 0), 3.0, ("probs", LAST, semantics.ID["female"])),
    ],
    words=[
        "<BOS> begins a sentence, and <EOS> ends a sentence. <PAD> fills empty places in the "
        "training data."],
)  # fmt: skip

_id = semantics.ID.__getitem__
CHOSEN = Chosen(
    groups={kind: semantics.ROWS[first:end] for kind, (first, end) in semantics.KINDS.items()},
    directions=[([_id("man"), _id("king"), _id("lion")], [_id("woman"), _id("queen"), _id("lioness")]),
                ([_id("giant"), _id("mountain")], [_id("mouse"), _id("pebble")])],
    nearest=_id("queen"),
)  # fmt: skip


def model() -> Model:
    """The model with narrow initial word vectors, seed 0, with each part's average."""
    loaded = checkpoint.load(semantics.FOLDER / f"scale-{SCALE}")
    references = semantics.sentences(np.random.default_rng(0), N_REFERENCES)
    return ablation.averaged(loaded, [ids[ids >= 0][:-1].tolist() for ids in references])


def build(model: Model, passage: Passage) -> Book:
    """The workbook of a sentence and its continuation, with the study beside."""
    return assemble("semantic-tiny", model, passage, STORY, study=_studies, chosen=CHOSEN)


def _studies(book: ModelBook) -> None:
    """Add the workbook's own sheets."""
    study.table(book)
    models.vectors(book)
    for page in (study, models, probes, printed):
        page.add(book)


def train(
    seed: int, embed_scale: float | None = None, steps: int | None = None
) -> Iterator[Progress | Model]:
    """Each step's progress and, last, the trained model."""
    recipe = semantics.recipe(SCALE if embed_scale is None else embed_scale)
    recipe = replace(recipe, steps=steps or recipe.steps)
    yield from (
        step if isinstance(step, Progress) else semantics.model(step)
        for step in training.train(semantics.decoder(), recipe, semantics.sentences, seed)
    )


def floor(ids: np.ndarray) -> float:
    """The lowest possible loss, of a model that knows the corpus exactly, averaged over
    sentences."""
    return semantics.loss_floor()


def figures(model: Model) -> list[tuple[str, str]]:
    """The measures of a model's word vectors, as in the report."""
    measured = semantics.row("", None, model.weights["W_E"][semantics.ROWS], None)
    found = [
        ("variance in 2 components", f"{measured['share_of_2']:.1%}"),
        ("variance in 6 components", f"{measured['share_of_6']:.1%}"),
    ]
    found += [
        (f"R² of {axis}, on held-out words", f"{r2['held_out']:.2f}")
        for axis, r2 in measured["r2"].items()
    ]
    found += [(a["asked"], ", ".join(a["nearest"])) for a in measured["analogies"]]
    return found
