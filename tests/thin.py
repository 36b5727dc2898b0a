"""Random models of the shipped ones' shapes and words, with narrow vectors.

Their workbooks have the shipped ones' sheets, and shorter formulas: the dialogue game's 23,620 in
place of 78,860. What is asked of programs many times is asked of them.
"""

from dataclasses import replace
from functools import cache

import numpy as np
from conftest import random_model

from engine import Model, ModelSpec, WordList
from engine.models.generate import passage
from engine.models.tokenizer import Tokenizer
from engine.studies import ablation
from exporters.book import Book
from workbooks import dialogue_game
from workbooks.dialogue_game import game

N_CTX = 16


def thinned(spec: ModelSpec, vocabulary: Tokenizer) -> Model:
    """A random model of a shape, with narrow vectors."""
    narrow = replace(spec, d_model=8, d_head=2, d_mlp=8)
    return replace(random_model(narrow), vocabulary=vocabulary)


@cache
def thin_game(n_ctx: int = N_CTX) -> Model:
    """The dialogue game's model: two layers of four heads and an MLP."""
    model = thinned(replace(dialogue_game.SPEC, n_ctx=n_ctx), WordList(game.WORDS))
    games = game.games(np.random.default_rng(82), 4)[:, :n_ctx]
    return ablation.averaged(model, games.tolist())


def thin_book() -> Book:
    """Its workbook with the prompt and the columns of the shipped one."""
    model = thin_game()
    ids = model.vocabulary.encode(dialogue_game.PROMPT)
    return dialogue_game.build(model, passage(model, ids, dialogue_game.N_TOKENS))
