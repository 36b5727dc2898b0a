"""The model: it imitates random books, and then learns from a reward alone (see `policy`)."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cellformer.engine import ModelSpec
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.files import read_json, replacing_folder
from cellformer.engine.learning import optimizers, policy
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.in_cells import Learner
from cellformer.engine.learning.recipe import IGNORED, Recipe
from cellformer.engine.learning.training import Progress
from cellformer.engine.models.architectures import decoder
from cellformer.engine.models.forward import Forward, Readout
from cellformer.workbooks.learn import step as of_learn
from cellformer.workbooks.reward import game
from cellformer.workbooks.reward.game import END, LENGTH, TEXTS

Weights = dict[str, np.ndarray]
SPEC = ModelSpec(
    d_vocab=len(game.WORDS), d_model=8, n_ctx=LENGTH, n_layers=1, n_heads=2, d_head=4, d_mlp=16,
    activation="relu", position="learned", norm="rms", norm_gain=False,
)  # fmt: skip
IMITATION = Recipe(
    steps=600, batch=64, embed_scale=0.3, learning_rate=0.01, warmup=20, betas=(0.9, 0.999),
    weight_decay=0.0, scale=0.3, residual_scale=0.3,
)  # fmt: skip
RATE = 0.01
NEW = "books"  # the model that imitates books
TRAINED = {  # the others that are included: each after 200 steps, with this reward and beta
    "balanced": (game.BALANCED, 0.02),
    "beta 0.5": (game.BALANCED, 0.5),
    "credit": (game.CREDIT_LAST, 0.02),
    "long": (game.LONG, 0.02),
}
FOLDER, FILE = Path(__file__).parent.parent / "models" / "reward", "reward.json"
Trained = dict[str, Weights]  # by NEW and the names in TRAINED


# --- imitation ----------------------------------------------------------------------------------


def imitate(seed: int, steps: int = IMITATION.steps) -> Iterator[Progress | Weights]:
    """Each step's progress and, last, the weights of a model that imitates random books."""
    rng, kind = np.random.default_rng(seed), Decoder(decoder.forward, SPEC, {})
    learner = Learner(kind, IMITATION, kind.initial(IMITATION, rng))
    for k in range(steps):
        ids = game.books(rng, IMITATION.batch)
        hidden = np.arange(LENGTH) >= game.lengths(ids)[:, None]
        loss = learner.step(k, np.insert(np.where(hidden, IGNORED, ids), 0, END, axis=1))
        yield Progress(k, steps, loss, ids, learner.weights)
    yield {name: w.round(2) for name, w in learner.weights.items()}


def imitator(seed: int) -> Weights:
    """The weights of a model that imitates random books."""
    *_, found = imitate(seed)
    assert isinstance(found, dict)
    return found


# --- a step -------------------------------------------------------------------------------------


class Step(of_learn.Step):
    """A step of GRPO with Adam, as blocks of a graph."""

    @property
    def states(self) -> dict[str, Block]:
        """The state that a step passes to the next: the name of a block -> its next value."""
        return {"policy.kept": self.graph["policy.old"], **super().states}


def step(weights: Weights, counted: Block | None = None, g: Forward | None = None) -> Step:
    """One step, in a new graph or in one that has blocks. `counted` counts the steps from 1."""
    g = g or graph(weights)
    decoder.forward(g, [END] * TEXTS * LENGTH)
    owned = [block for block in g if block.kind == "weight"]
    loss = policy.loss(g, np.full((TEXTS, LENGTH), END), [LENGTH] * TEXTS)
    found = policy.gradients(g, loss)
    shared = optimizers.settings(g, rate=RATE, step=counted)
    return Step(g, loss, of_learn.updated(g, owned, found, shared, False), found)


def graph(weights: Weights) -> Forward:
    """The graph that a step is added to."""
    return Forward(shape(weights), weights, Readout(by_head=False, sentence=LENGTH))


def shape(weights: Weights) -> ModelSpec:
    """The spec of a model with these weights, which may be smaller."""
    d_model, d_mlp = weights["blocks.0.mlp.W_in"].shape
    return replace(
        SPEC, d_model=d_model, d_mlp=d_mlp, d_head=weights["blocks.0.attn.h0.W_Q"].shape[1]
    )


def probabilities(g: Forward, weights: Weights, ids: np.ndarray) -> np.ndarray:
    """The probability of every word at each place of some texts: [texts, places, words]."""
    tokens = np.insert(ids[:, :-1], 0, END, axis=1)[..., None].astype(float)
    return filled(g, weights | {"tokens": tokens})["probs"]


def one_text(weights: Weights) -> Forward:
    """The graph of a forward pass over one text."""
    g = Forward(shape(weights), weights, Readout(by_head=False))
    decoder.forward(g, [END] * LENGTH)
    return g


def written(g: Forward, weights: Weights, chance: np.ndarray) -> np.ndarray:
    """The texts that a model writes with some random numbers, END after their ends: each
    [texts, words]."""
    ids = np.full(chance.shape, END)
    going = np.ones(len(ids), bool)
    for t in range(LENGTH):
        ends = probabilities(g, weights, ids)[:, t].cumsum(1)
        ids[:, t] = np.where(going, (chance[:, t, None] >= ends[:, :-1]).sum(1), END)
        going &= ids[:, t] != END
    return ids


def inputs(ids: np.ndarray, kind: str, before: np.ndarray) -> dict[str, np.ndarray]:
    """The inputs of a step on some texts, each [n_tokens, 1]; `before` [texts, places, words] are
    the probabilities by the reference."""
    share = policy.shares(ids.shape, game.lengths(ids).tolist())
    own = np.take_along_axis(before, ids[..., None], 2)[..., 0]
    given = {
        "tokens": np.insert(ids[:, :-1], 0, END, axis=1),
        "loss.targets": ids,
        "loss.share": share,
        "advantage": np.repeat(policy.advantages(game.rewards(kind, ids)), LENGTH),
        "policy.reference": np.where(share > 0, -np.log(own), 0),
    }
    return {name: x.reshape(-1, 1).astype(float) for name, x in given.items()}


class Made(NamedTuple):
    """A step that was made."""

    ids: np.ndarray  # [texts, words]
    loss: float
    surprise: float  # mean cross-entropy of the texts, in nats
    weights: Weights  # after it


def learn(
    begun: Weights,
    numbers: np.ndarray,
    kind: str,
    beta: float,
    updates: int = 1,
    reference: Weights | None = None,
    rate: float = RATE,
) -> Iterator[Made]:
    """The steps of a run: so many `updates` of the weights for each batch of texts. The KL
    divergence is that from the weights `reference` (default: those that it begins with)."""
    reads, made = one_text(begun), step(begun)
    g, reference = made.graph, reference or begun
    state = {name: g.inputs[name] for name in made.states}
    ids = np.full((TEXTS, LENGTH), END)
    for n in range(len(numbers) * updates):
        fresh = n % updates == 0
        if fresh:
            ids = written(
                reads, {name: state[name] for name in made.updated}, numbers[n // updates]
            )
        columns = inputs(ids, kind, probabilities(reads, reference, ids))
        cells = {"step": n + 1.0, "policy.fresh": float(fresh), "beta": beta, "rate": rate}
        columns |= {name: np.array([[x]]) for name, x in cells.items()}
        values = filled(g, state | columns)
        state = {name: values[block.name] for name, block in made.states.items()}
        loss, surprise = (float(values[name][0, 0]) for name in (made.loss.name, "loss"))
        yield Made(ids, loss, surprise, {name: state[name] for name in made.updated})


# --- the result ---------------------------------------------------------------------------------


class Measured(NamedTuple):
    """The texts of a model, from the exact probability of each of its 255 texts."""

    right: float  # probability of a balanced text
    variety: float  # entropy, in nats
    favourite: str


def measured(weights: Weights) -> Measured:
    """The result of a model."""
    every = game.ids(game.EVERY)
    given = probabilities(one_text(weights), weights, every)
    of_word = np.take_along_axis(given, every[..., None], 2)[..., 0]
    p = np.where(np.arange(LENGTH) < game.lengths(every)[:, None], of_word, 1).prod(1)
    right = float(p @ game.rewards(game.BALANCED, every))
    variety = float(-(p * np.log(np.maximum(p, 1e-300))).sum())
    favourite = game.EVERY[p.argmax()]
    return Measured(right, variety, "".join(game.WORDS[i] for i in favourite if i != END))


def next_words(weights: Weights) -> np.ndarray:
    """The probability of each word after each beginning: [127, 3]."""
    given = probabilities(one_text(weights), weights, game.ids(game.BEGINNINGS))
    places = [len(begun) for begun in game.BEGINNINGS]
    return np.asarray(given[np.arange(len(places)), places])


# --- the included weights -----------------------------------------------------------------------


def train(seed: int, steps: int | None = None) -> Iterator[Progress | Trained]:
    """Each step's progress and, last, the included models: of 200 steps of GRPO each, or fewer."""
    n = min(steps or game.STEPS, game.STEPS)
    found: Trained = {}
    for made in imitate(seed):
        if isinstance(made, Progress):
            yield made
        else:
            found[NEW] = made
    numbers = game.random_numbers(seed)[:n]
    for name, (kind, beta) in TRAINED.items():
        for k, one in enumerate(learn(found[NEW], numbers, kind, beta)):
            yield Progress(k, n, one.surprise, one.ids, one.weights)
            found[name] = {w: x.round(3) for w, x in one.weights.items()}
    yield found


def figures(trained: Trained) -> list[tuple[str, str]]:
    """The texts of each model, in a line."""
    found = []
    for name, weights in trained.items():
        right, variety, favourite = measured(weights)
        told = f"{right:.1%} right, entropy {variety:.2f}, most often {favourite or 'END'}"
        found.append((name, told))
    return found


def save(trained: Trained, folder: Path, force: bool) -> None:
    """Write the weights as `reward.json`. Raises InputError."""
    rows = [
        f"{json.dumps(name)}: {json.dumps({w: x.tolist() for w, x in weights.items()})}"
        for name, weights in trained.items()
    ]
    with replacing_folder(folder, is_part, force) as path:
        (path / FILE).write_text("{\n" + ",\n".join(rows) + "\n}\n")


def load(folder: Path = FOLDER) -> Trained:
    """The weights that `save` wrote. Raises InputError."""
    held = read_json(folder / FILE)
    return {name: {w: np.array(x) for w, x in rows.items()} for name, rows in held.items()}


def is_part(name: str) -> bool:
    """Whether `save` wrote a file of this name."""
    return name == FILE
