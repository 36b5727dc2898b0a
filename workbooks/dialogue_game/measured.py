"""Measurements that take the engine seconds, stored: how often each rule is kept with each part
off, and how the model's probabilities compare with the grammar's.

`python -m cellformer.workbooks.dialogue_game.measured` plays the games and writes
models/dialogue-game/measured.json again (about 20 s); the workbook shows the stored results.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine import Model
from cellformer.engine.models import checkpoint
from cellformer.engine.studies import ablation
from cellformer.workbooks.dialogue_game import game

FOLDER = Path(__file__).parent.parent / "models" / "dialogue-game"
FILE = FOLDER / "measured.json"
SEED, N_GAMES = 10**9, 300  # of the games that a model is tried on
# edges of the bins of what the model says: each word after each token, by its share
EDGES = (0.0, 0.001, 0.03, 0.065, 0.09, 0.15, 0.3, 0.9, 1.0)
DIGITS = 6


class Bin(NamedTuple):
    """Words whose probability by the model is between two edges."""

    low: float
    high: float
    n: int
    said: float  # what the model says, on average
    grammar: float  # the exact share, on average
    happened: float  # how many of them came next


def measure(model: Model, seed: int = SEED, n_games: int = N_GAMES) -> dict[str, Any]:
    """Both tables, over fresh games that no seed of training draws."""
    games = game.games(np.random.default_rng(seed), n_games)
    parts = ablation.parts(model.graph([0]))
    changes = [{}, *({(f"{part}.switch", 0, 0): 0.0} for part in parts)]
    kept = game.accuracies(model, games, changes)  # [1 + n_parts, n_rules]
    names = ["", *parts]
    return {
        "seed": seed,
        "games": n_games,
        "rules": {n: np.round(row, DIGITS).tolist() for n, row in zip(names, kept, strict=True)},
        "bins": [list(found) for found in bins(model, games)],
    }


def bins(model: Model, games: np.ndarray) -> list[Bin]:
    """Bins over every word after every token of the games [n, length], up to the end of each."""
    said, exact, came = (np.concatenate(x) for x in zip(*_cases(model, games), strict=True))
    place = np.clip(np.searchsorted(EDGES, said, side="right") - 1, 0, len(EDGES) - 2)
    return [
        Bin(low, high, int(among.sum()), *(_mean(x, among) for x in (said, exact, came)))
        for k, (low, high) in enumerate(pairwise(EDGES))
        if (among := place == k).any()
    ]


def _cases(model: Model, games: np.ndarray) -> Any:
    """The cases of each game: the model's probabilities, the grammar's, and 1 for the word that
    came: [n_tokens * d_vocab]."""
    for row in games:
        probs = model.graph(row[:-1].tolist()).values["probs"]  # [length - 1, d_vocab]
        states = game.states([game.WORDS[i] for i in row])[:-1]
        live = np.array([state.next != "pad" for state in states])
        exact = np.array([shares(state) for state in states])
        came = np.eye(len(game.WORDS))[row[1:]]
        yield probs[live].ravel(), exact[live].ravel(), came[live].ravel()


def shares(state: game.State) -> list[float]:
    """The exact probability of every word that can come next, in the order of WORDS."""
    odds = game.odds(state)
    return [odds.get(word, 0.0) for word in game.WORDS]


def _mean(x: np.ndarray, among: np.ndarray) -> float:
    return round(float(x[among].mean()), 9)


def stored() -> dict[str, Any]:
    """The stored measurements."""
    return dict(json.loads(FILE.read_text()))


if __name__ == "__main__":
    FILE.write_text(json.dumps(measure(checkpoint.load(FOLDER)), indent=1) + "\n")
