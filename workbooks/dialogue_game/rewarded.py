"""The dialogue game's model trained further for being right, and how far its shares can be trusted
before and after.

The loss of training, minus the log of a share, is least for a model that says what it knows. Here
200 more steps reward the share itself of the word that came, as one rewards an answer for being
right. That is greatest for a model that gives all to one word. So it grows sure, and not better
(figure 8 of the GPT-4 report: arXiv:2303.08774). A temperature, fitted on other games, undoes a part
of it (Guo et al. 2017).

`python -m cellformer.workbooks.dialogue_game.rewarded` trains it and writes models/dialogue-game/
reliability.json again (about a minute, with torch); the workbook shows the stored results.
"""

import json
from itertools import pairwise
from typing import Any

import numpy as np

from cellformer.engine import Model
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.learning.training import Learner
from cellformer.engine.models import checkpoint
from cellformer.workbooks.dialogue_game import game, measured

FILE = measured.FOLDER / "reliability.json"
SEED, STEPS, BATCH = 1, 200, 64
RECIPE = Recipe(
    steps=STEPS, batch=BATCH, embed_scale=0, learning_rate=3e-4, warmup=10, last_rate=1, weight_decay=0
)  # fmt: skip
EDGES = [k / 10 for k in range(11)]  # of what the model says of its first word
TEMPERATURES = [k / 20 for k in range(10, 101)]
SETS = ("as trained", "rewarded for being right", "rewarded, at the best temperature")


def measure() -> dict[str, Any]:
    """The stored measurements: a set of bins for the model as trained, rewarded, and at a
    temperature."""
    from cellformer.engine.learning import in_torch

    model = checkpoint.load(measured.FOLDER)
    learner = learner_of(model)
    rng = np.random.default_rng(SEED)
    for step in range(STEPS):
        learner.step(step, game.games(rng, BATCH))
    fresh, others = (
        game.games(np.random.default_rng(measured.SEED + k), measured.N_GAMES) for k in range(2)
    )
    decoder, trained = Decoder.of(model), (model.weights, learner.weights)
    before, after = (in_torch.reader(decoder, weights) for weights in trained)
    guessed = after(others[:, :-1])
    fitted = min(TEMPERATURES, key=lambda t: reliability(guessed / t, others)["loss"])
    logits = before(fresh[:, :-1]), after(fresh[:, :-1])
    cases = zip(SETS, (*logits, logits[1]), (1.0, 1.0, fitted), strict=True)
    found = [{"name": n, "temperature": t} | reliability(x / t, fresh) for n, x, t in cases]
    return {"seed": measured.SEED, "games": measured.N_GAMES, "steps": STEPS, "sets": found}


def learner_of(model: Model) -> Learner:
    """A learner whose steps raise the mean probability of the word that comes."""
    import torch

    from cellformer.engine.learning import in_torch

    class Rewarded(in_torch.Learner):
        def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return -logits.softmax(-1)[torch.arange(len(targets)), targets].mean()

    return Rewarded(Decoder.of(model), RECIPE, model.weights)


def reliability(logits: np.ndarray, games: np.ndarray) -> dict[str, Any]:
    """The share of right first words, the model's probability for them, and the loss, over every
    token of the games [n, length] up to their end; by bins of that probability."""
    shares, came = _shares(logits, games)  # [n_cases, d_vocab], [n_cases]
    said, right = shares.max(axis=1), shares.argmax(axis=1) == came
    place = np.clip((said * (len(EDGES) - 1)).astype(int), 0, len(EDGES) - 2)
    bins = [
        [low, high, int(among.sum()), _mean(said[among]), _mean(right[among])]
        for k, (low, high) in enumerate(pairwise(EDGES))
        if (among := place == k).any()
    ]
    return {"loss": _mean(-np.log(shares[range(len(came)), came])), "bins": bins}


def _shares(logits: np.ndarray, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities before each word of the games, and the ids of the words."""
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    came = games[:, 1:]
    there = came != game.ID[game.PAD]
    return (e / e.sum(axis=-1, keepdims=True))[there], came[there]


def _mean(x: np.ndarray) -> float:
    return round(float(x.mean()), 9)


def stored() -> dict[str, Any]:
    """The stored results."""
    return dict(json.loads(FILE.read_text()))


if __name__ == "__main__":
    FILE.write_text(json.dumps(measure(), indent=1) + "\n")
