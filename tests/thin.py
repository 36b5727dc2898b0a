"""The largest workbooks with narrow vectors and fewer words: what is asked of programs many
times is asked of these. They have every kind of formula of the shipped ones (a test holds that)."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from conftest import random_model

from cellformer.engine import Model, ModelSpec, WordList
from cellformer.engine.models.generate import passage
from cellformer.engine.studies import ablation
from cellformer.engine.text.tokenizer import Tokenizer
from cellformer.exporters.compose.book import Book
from cellformer.workbooks import dialogue_game, learn, microgpt, reward
from cellformer.workbooks.dialogue_game import game
from cellformer.workbooks.microgpt import program
from cellformer.workbooks.microgpt.program import Drawn

N_CTX = 16


def thinned(spec: ModelSpec, vocabulary: Tokenizer, d_head: int = 2) -> Model:
    """A random model of a shape, with narrow vectors. A number alone in a head, or in a layer of an
    MLP, would be written otherwise than a sum is."""
    narrow = replace(spec, d_model=4, d_head=d_head, d_mlp=min(spec.d_mlp, 2))
    return replace(random_model(narrow), vocabulary=vocabulary)


@cache
def thin_game(n_ctx: int = N_CTX, d_head: int = 2) -> Model:
    """The dialogue game's model: two layers of four heads and an MLP."""
    spec = replace(dialogue_game.DECODER.spec, n_ctx=n_ctx)
    model = thinned(spec, WordList(game.WORDS), d_head)
    games = game.games(np.random.default_rng(82), 4)[:, :n_ctx]
    return ablation.averaged(model, games.tolist())


def thin_book(n_tokens: int = dialogue_game.N_TOKENS, d_head: int = 2) -> Book:
    """Its workbook with the prompt of the shipped one."""
    model = thin_game(d_head=d_head)
    ids = model.vocabulary.encode(dialogue_game.PROMPT)
    return dialogue_game.build(model, passage(model, ids, n_tokens))


def beyond_the_screen() -> Book:
    """A workbook with more words, and longer vectors, than its sheet Attention shows."""
    return thin_book(13, d_head=6)


def thin_learner() -> Book:
    """The workbook of a model that learns, from one sentence at a time."""
    narrow = replace(learn.SPEC, d_model=2, d_head=2, d_mlp=14)  # a chain of latches ends in W_out
    return learn.built(narrow, 1, learn.step.RATE)


def thin_microgpt() -> Book:
    """The workbook of a model that learns to write names."""
    narrow = replace(program.SPEC, d_model=4, d_head=2, d_mlp=8)  # a chain of latches ends in W_U
    new, trained = random_model(narrow, 0), random_model(narrow, 1)
    return microgpt.built(Drawn(dict(new.weights), program.drawn().numbers), trained)


def thin_reward() -> Book:
    """The workbook of a model that learns from a reward."""
    narrow = replace(reward.learning.SPEC, d_model=4, d_head=2, d_mlp=2)
    models = (reward.learning.NEW, *reward.learning.TRAINED)
    return reward.built(
        {name: dict(random_model(narrow, k).weights) for k, name in enumerate(models)}
    )


THIN: dict[str, Callable[[], Book]] = {
    "dialogue-game": lambda: thin_book(4),
    "learn": thin_learner,
    "microgpt": thin_microgpt,
    "reward": thin_reward,
}
