"""Random models of the shipped ones' shapes and words, with narrow vectors, and smaller workbooks.

These have the sheets of the shipped ones, every kind of formula (`test_workbooks` holds them to
that), and fewer and shorter ones: 31,000 in place of 181,000. What is asked of programs many times
is asked of them.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import random_model

import workbooks
from engine import Model, ModelSpec, WordList
from engine.models import checkpoint
from engine.models.generate import passage
from engine.studies import ablation
from engine.text.tokenizer import Tokenizer
from exporters.compose.book import Book
from workbooks import (
    dialogue_game,
    learn,
    one_head,
    sampling,
    semantic_tiny,
    superposition,
    unrolled,
)
from workbooks.dialogue_game import game
from workbooks.one_head import scale
from workbooks.semantic_tiny import probes, semantics
from workbooks.superposition import autoencoder, examples, measured, room

N_CTX = 16


def thinned(spec: ModelSpec, vocabulary: Tokenizer) -> Model:
    """A random model of a shape, with narrow vectors. A number alone in a head, or in a layer of an
    MLP, would be written otherwise than a sum is."""
    narrow = replace(spec, d_model=4, d_head=2, d_mlp=min(spec.d_mlp, 2))
    return replace(random_model(narrow), vocabulary=vocabulary)


def narrowed(name: str) -> Book:
    """The workbook of a model that reads its own prompt, and goes on with a word, with narrow
    vectors in place of its own."""
    workbook = workbooks.find(name)
    shipped = workbook.model()
    ids = shipped.vocabulary.encode(workbook.PROMPT)
    model = ablation.averaged(thinned(shipped.spec, shipped.vocabulary), [ids])
    return workbook.build(model, passage(model, ids, len(ids) + 1))


@cache
def thin_game(n_ctx: int = N_CTX) -> Model:
    """The dialogue game's model: two layers of four heads and an MLP."""
    model = thinned(replace(dialogue_game.SPEC, n_ctx=n_ctx), WordList(game.WORDS))
    games = game.games(np.random.default_rng(82), 4)[:, :n_ctx]
    return ablation.averaged(model, games.tolist())


def thin_book(n_tokens: int = dialogue_game.N_TOKENS) -> Book:
    """Its workbook with the prompt of the shipped one."""
    model = thin_game()
    ids = model.vocabulary.encode(dialogue_game.PROMPT)
    return dialogue_game.build(model, passage(model, ids, n_tokens))


def thin_words() -> Book:
    """The workbook of forty words wired by hand, which reads the first two words of its prompt; its
    study holds a model as narrow beside. It has two numbers more than the probes as built use."""
    model = thinned(semantics.spec(), WordList(semantics.WORDS))
    texts = semantics.sentences(np.random.default_rng(0), 4)
    model = ablation.averaged(model, [ids[ids >= 0][:-1].tolist() for ids in texts])
    ids = model.vocabulary.encode(semantic_tiny.PROMPT)[:2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(semantics, "spec", lambda: model.spec)
        patch.setattr(probes, "N_PARTS", model.spec.d_model)
        patch.setattr(probes, "BUILT", model.spec.d_model - 2)
        patch.setattr(checkpoint, "load", lambda folder: model)
        return semantic_tiny.build(model, passage(model, ids))


def thin_learner() -> Book:
    """The workbook of a model that learns, from one sentence at a time."""
    narrow = replace(learn.SPEC, d_model=2, d_head=2, d_mlp=2)
    return learn.built(narrow, 1, learn.step.RATE)


def unrolled_twice() -> Book:
    """The workbook of steps that follow one another, with two of them, of a narrower model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unrolled, "N_STEPS", 2)
        patch.setattr(unrolled, "SPEC", replace(unrolled.SPEC, d_model=2, d_head=2, d_mlp=2))
        return unrolled.book()


def drawn_seldom() -> Book:
    """The workbook of a thousand draws, with twenty of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "NUMBERS", sampling.NUMBERS[:20])
        return sampling.book()


def heads_asked_seldom() -> Book:
    """The workbook of an attention head, with ten random queries and keys in place of a hundred."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scale, "N", scale.KEYS)
        patch.setattr(scale, "Q", scale.Q[: scale.KEYS])
        patch.setattr(scale, "K", scale.K[: scale.KEYS])
        return one_head.book()


def superposed_seldom() -> Book:
    """The workbook of features in superposition, with every ninth of its examples, and with six
    random directions."""
    few = examples.drawn(np.random.default_rng(measured.SEED))[::9]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measured, "drawn", lambda rng: few)
        for sheet in (measured, autoencoder):
            patch.setattr(sheet, "N_EXAMPLES", len(few))
        patch.setattr(room, "N", 6)
        patch.setattr(room, "KEPT", room.KEPT[:6])
        patch.setattr(room, "VECTORS", room.VECTORS[:, :6])
        return superposition.book()


THIN: dict[str, Callable[[], Book]] = {
    "dialogue-game": lambda: thin_book(4),
    "induction": lambda: narrowed("induction"),
    "learn": thin_learner,
    "one-head": heads_asked_seldom,
    "sampling": drawn_seldom,
    "semantic-tiny": thin_words,
    "superposition": superposed_seldom,
    "two-layers": lambda: narrowed("two-layers"),
    "unrolled": unrolled_twice,
}
