"""Training: steps a second by cells, in numpy, and by torch; and how far apart they end.

    python benchmarks/training.py [--large]

One thread, AdamW with the recipe's clipping and decay, batches as the gallery has them; numpy and
the second figure of torch are float64, torch's first, as it trains, float32. Prints processor time.
"""

import argparse
import os
from time import process_time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import torch

from cellformer.engine.learning import in_cells, in_torch, training
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.learning.text_training import TextRun
from cellformer.workbooks import dialogue_game, shakespeare
from cellformer.workbooks.dialogue_game import game
from cellformer.workbooks.semantic_tiny import semantics

N_WORDS, STEPS, FEW = 28, 100, 10
THOUSAND = TextRun(n_layers=1, n_heads=1, d_model=8, d_mlp=16, context=16, batch=16)
THOUSANDS = TextRun(n_layers=2, n_heads=2, d_model=32, d_mlp=96, context=16, batch=32)


def drawn(run: TextRun, n_words: int) -> tuple[Decoder, Recipe, training.Batches]:
    """A run over random words: what they are changes nothing of the time."""
    return (
        run.decoder(n_words),
        run.recipe,
        lambda rng, n: rng.integers(0, n_words, (n, run.context + 1)),
    )


def compare(
    name: str, decoder: Decoder, recipe: Recipe, batches: training.Batches, steps: int
) -> None:
    """One line: steps a second, as ratios, and the largest difference of a weight in the end."""
    rng = np.random.default_rng(0)
    weights = decoder.initial(recipe, rng)
    given = [batches(rng, recipe.batch) for _ in range(steps + 1)]
    learners = {
        "numpy": in_cells.Learner(decoder, recipe, weights),
        "torch": in_torch.Learner(decoder, recipe, weights),
        "torch float64": in_torch.Learner(decoder, recipe, weights, torch.float64),
    }
    found = {}
    for by, learner in learners.items():
        learner.step(0, given[0])
        start = process_time()
        for n, ids in enumerate(given[1:], 1):
            learner.step(n, ids)
        found[by] = steps / (process_time() - start)
    ours, theirs = learners["numpy"].weights, learners["torch float64"].weights
    gap = max(np.abs(ours[k] - theirs[k]).max() for k in ours)
    size = sum(w.size for w in weights.values())
    print(
        f"{name}, {size:,} weights, batch {recipe.batch}: numpy {found['numpy']:.0f} steps "
        f"a second; torch {found['torch'] / found['numpy']:.1f} x as many, in float64 "
        f"{found['torch float64'] / found['numpy']:.1f} x; after {steps + 1} steps {gap:.0e} apart"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="shakespeare's sizes as well")
    large = parser.parse_args().large
    compare("small", *drawn(THOUSAND, N_WORDS), STEPS)
    compare("medium", *drawn(THOUSANDS, N_WORDS), STEPS)
    semantic = semantics.decoder(), semantics.recipe(0.02), semantics.sentences
    compare("semantic-tiny", *semantic, FEW)
    compare("dialogue-game", dialogue_game.DECODER, dialogue_game.RECIPE, game.games, FEW)
    if large:
        compare("shakespeare", *drawn(shakespeare.RUN, 65), FEW // 3)
