"""Training the models of the workbook recurrence, in cells: the same sentences, the same steps.

The loss counts only words that follow from the words before them. A run with the same seed repeats
the included file on any processor. Last bits that another processor rounds otherwise change the
weights by 1e-12, and weights are kept with two decimals.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cellformer.engine import ModelSpec
from cellformer.engine.cells.files import read_json, replacing_folder
from cellformer.engine.learning import in_cells
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.learning.training import Progress
from cellformer.engine.models.architectures import decoder, mamba
from cellformer.workbooks.recurrence import sentences
from cellformer.workbooks.recurrence.sentences import MOST_PEOPLE, N_WORDS, WORDS

FOLDER = Path(__file__).parent.parent / "models" / "recurrence"
FILE = "recurrence.json"
TRANSFORMER, MAMBA, LARGER = "transformer", "mamba", "larger mamba"
SPEC = ModelSpec(
    d_vocab=len(WORDS), d_model=12, n_ctx=N_WORDS, n_layers=2, n_heads=1, d_head=12,
    position="learned",
)  # fmt: skip
MAMBA_SPEC = mamba.MambaSpec(
    d_vocab=len(WORDS), d_model=16, n_ctx=N_WORDS, n_layers=1, d_state=2, activation="silu",
    norm="rms", final_norm=True, d_inner=16, d_step=1, d_conv=2,
)  # fmt: skip
DECODERS = {
    TRANSFORMER: Decoder(decoder.forward, SPEC, {}),
    MAMBA: Decoder(mamba.forward, MAMBA_SPEC, {}),
    LARGER: Decoder(mamba.forward, replace(MAMBA_SPEC, d_state=8), {}),
}
RECIPE = Recipe(
    steps=2000, batch=32, embed_scale=0.5, learning_rate=0.01, warmup=50, betas=(0.9, 0.98),
    weight_decay=0.0, scale=0.3, residual_scale=0.3,
)  # fmt: skip
DECIMALS = 2  # of a trained weight
N_QUESTIONS = 500  # for each number of people and of filler words
SHOWN = (0, 1, 2, 3, 5, 7, 9, 20, 50, 100)  # numbers of filler words
RIGHT = "right"  # in the file, before a model's name: its right answers

Weights = Mapping[str, np.ndarray]  # by name
Learned = Mapping[str, Weights]  # by model


class Learner(in_cells.Learner):
    """A model in training on words that follow from the words before."""

    def counted(self, ids: np.ndarray) -> np.ndarray:
        return sentences.known(ids)


def learn(seed: int, steps: int | None = None) -> Iterator[Progress | Learned]:
    """Each step's progress and, last, the trained weights of all models."""
    recipe = replace(RECIPE, steps=steps or RECIPE.steps)
    total, learned = len(DECODERS) * recipe.steps, dict[str, Weights]()
    for k, (name, model) in enumerate(DECODERS.items()):
        rng = np.random.default_rng(seed)
        learner = Learner(model, recipe, model.initial(recipe, rng))
        for n in range(recipe.steps):
            ids = sentences.batch(rng, recipe.batch)
            yield Progress(k * recipe.steps + n, total, learner.step(n, ids), ids, learner.weights)
        learned[name] = {w: x.round(DECIMALS) + 0.0 for w, x in learner.weights.items()}
    yield learned


def right(name: str, weights: Weights, n_people: int, n_fillers: int) -> int:
    """The number of questions, of N_QUESTIONS fresh ones, that a model answers rightly."""
    ids, accounts = sentences.questions(
        np.random.default_rng([n_people, n_fillers]), n_people, n_fillers, N_QUESTIONS
    )
    logits = in_cells.reader(DECODERS[name], weights)(ids)[:, -1]
    return int((logits.argmax(axis=1) == accounts).sum())


def measured(name: str, weights: Weights) -> list[list[int | None]]:
    """The right answers by number of people and of filler words; None where the transformer has
    no position for the last word."""
    return [
        [
            None if name == TRANSFORMER and 2 * k + f >= N_WORDS else right(name, weights, k, f)
            for f in SHOWN
        ]
        for k in range(1, MOST_PEOPLE + 1)
    ]


def save(learned: Learned, folder: Path, force: bool) -> None:
    """Write the trained weights as `recurrence.json`. Raises InputError."""
    with replacing_folder(folder, is_part, force) as path:
        rows = {
            f"{m}.{name}": w.tolist() for m, held in learned.items() for name, w in held.items()
        }
        rows |= {f"{RIGHT}.{m}": measured(m, held) for m, held in learned.items()}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        (path / FILE).write_text(f"{{\n{lines}\n}}\n")


def load(folder: Path = FOLDER) -> Learned:
    """The weights that `save` wrote. Raises InputError."""
    held = read_json(folder / FILE)
    return {
        model: {
            name.removeprefix(f"{model}."): np.array(w)
            for name, w in held.items()
            if name.startswith(f"{model}.")
        }
        for model in DECODERS
    }


def answers() -> Mapping[str, list[list[int | None]]]:
    """The right answers that `save` measured, by model."""
    held = read_json(FOLDER / FILE)
    return {model: held[f"{RIGHT}.{model}"] for model in DECODERS}


def share(name: str, n_people: int | None = None) -> float:
    """The measured share of right answers in sentences of at most N_WORDS; of so many people, or
    of any number."""
    return mean(answers()[name], n_people)


def far(n_fillers: int) -> float:
    """The measured share of right answers of the Mamba about one person, after so many fillers."""
    return (answers()[MAMBA][0][SHOWN.index(n_fillers)] or 0) / N_QUESTIONS


def mean(rows: Sequence[Sequence[int | None]], n_people: int | None = None) -> float:
    """The same of measured rows."""
    counts = [
        n
        for k, row in enumerate(rows, 1)
        for f, n in zip(SHOWN, row, strict=True)
        if n is not None and 2 * k + f < N_WORDS and n_people in (None, k)
    ]
    return sum(counts) / len(counts) / N_QUESTIONS


def is_part(name: str) -> bool:
    """Whether `save` wrote a file of this name."""
    return name == FILE
