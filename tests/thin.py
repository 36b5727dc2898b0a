"""A model of the dialogue game's shape and words with narrow vectors.

Its workbook has the shipped one's sheets, and shorter formulas: 23,620 in place of 78,860. What is
asked of programs many times is asked of it.
"""

from dataclasses import replace

import numpy as np
from conftest import random_model

from engine import Model
from engine.models.generate import passage
from engine.studies import ablation
from exporters.book import Book
from workbooks import dialogue_game
from workbooks.dialogue_game import game

N_CTX = 16


def _model() -> Model:
    """Random weights: two layers of four heads and an MLP."""
    spec = replace(dialogue_game.SPEC, d_model=8, d_head=2, d_mlp=8, n_ctx=N_CTX)
    model = replace(random_model(spec), vocabulary=dialogue_game.model().vocabulary)
    games = game.games(np.random.default_rng(82), 4)[:, :N_CTX]
    return ablation.averaged(model, games.tolist())


THIN = _model()


def thin_book() -> Book:
    """Its workbook with the prompt and the columns of the shipped one."""
    ids = THIN.vocabulary.encode(dialogue_game.PROMPT)
    return dialogue_game.build(THIN, passage(THIN, ids, dialogue_game.N_TOKENS))
