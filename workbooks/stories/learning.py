"""The training of the model of the stories, and of its control, which reads the same stories with 34
words exchanged.

`python -m cellformer.workbooks.stories.learning` trains both and writes models/stories again, byte for
byte. Processors round last digits otherwise, and training would make this larger. So weights are
rounded before each step: the last digits of one step do not reach the next.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from cellformer.engine import Model, WordList
from cellformer.engine.learning import decoders, in_cells, training
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.learning.training import Batches, Progress
from cellformer.engine.models import checkpoint
from cellformer.workbooks.stories import grammar

FOLDER = Path(__file__).parent.parent / "models" / "stories"
OWN, CONTROL = "own", "control"
SIZES = {"d_model": 64, "n_layers": 1, "n_heads": 4, "d_mlp": 128}
DECODER = decoders.new("gpt2", d_vocab=len(grammar.WORDS), n_ctx=grammar.LENGTH, **SIZES)
RECIPE = Recipe(steps=1500, batch=32, embed_scale=0.02, learning_rate=5e-3, scale=0.1)
DECIMALS = 3  # of a trained weight
STEP_DECIMALS = 5  # of a weight before each step
WORDS = {OWN: grammar.sentences, CONTROL: grammar.exchanged}


def train(
    seed: int,
    embed_scale: float | None = None,
    steps: int | None = None,
    stories: Batches = grammar.sentences,
) -> Iterator[Progress | Model]:
    """Yield each step's progress and, last, the trained model."""
    recipe = replace(
        RECIPE,
        embed_scale=RECIPE.embed_scale if embed_scale is None else embed_scale,
        steps=steps or RECIPE.steps,
    )
    rng = np.random.default_rng(seed)
    learner = in_cells.Learner(DECODER, recipe, DECODER.initial(recipe, rng))
    for step in range(recipe.steps):
        for weight in learner.weights.values():
            np.round(weight, STEP_DECIMALS, out=weight)
        ids = stories(rng, recipe.batch)
        yield Progress(step, recipe.steps, learner.step(step, ids), ids, learner.weights)
    yield rounded(learner.weights)


def rounded(weights: Mapping[str, np.ndarray]) -> Model:
    """The model of trained weights, each rounded; -0 becomes 0."""
    return training.trained(
        DECODER,
        {name: w.round(DECIMALS) + 0.0 for name, w in weights.items()},
        WordList(grammar.WORDS),
    )


def remake(name: str, folder: Path) -> None:
    """Train one of the two models, and save it."""
    *_, model = train(0, stories=WORDS[name])
    assert isinstance(model, Model)
    checkpoint.save(model, folder / name, force=True)


if __name__ == "__main__":
    for model_name in WORDS:
        remake(model_name, FOLDER)
