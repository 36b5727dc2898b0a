"""Training the weights of superposition: a toy model, and a sparse autoencoder for it.

The toy model (Elhage et al. 2022, *Toy Models of Superposition*) maps five features x to two hidden
numbers, h = W x, and back: ReLU(Wᵀ h + b). Its loss is the squared error, weighted by each
feature's importance. The autoencoder (Bricken et al. 2023, *Towards Monosemanticity*) sees only the
hidden numbers, f = ReLU(h E + b), and reconstructs them as f D; its loss is the squared error plus
a penalty on activations. Both are graphs of the engine's ops, with the engine's own gradients and
Adam (Kingma & Ba 2015), from several random starts at once.

`cellformer train superposition -o DIR` trains them again.
"""

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from math import cos, pi
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.files import read_json, replacing_folder
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.graph import Graph
from cellformer.engine.learning import optimizers
from cellformer.engine.learning.training import Progress
from cellformer.engine.models import ops
from cellformer.workbooks.superposition.examples import N_EXAMPLES, N_FEATURES, drawn, shares

FOLDER = Path(__file__).parent.parent / "models" / "superposition"
FILE = "superposition.json"
DECAYS = (0.7, 0.9, 1.0)  # each feature is so many times as important as the one before
PROBABILITIES = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)  # that a feature is present
PENALTIES = (0.03, 0.1, 0.2)  # of the autoencoder, on what is active
SEEN = 0.05  # the probability at which the autoencoder sees the model of equal importance
D_HIDDEN, N_LATENTS = 2, 5
STARTS, STEPS, CHECKS = 6, 1500, 20
RATE, BETAS = 0.02, (0.9, 0.99)  # of Adam
MOMENTS = ("velocity_before", "second_before")  # what it remembers of each weight
DECIMALS = 4  # of a weight, so that it can be typed

NO_IDS = np.zeros((0, 0), int)  # no step reads words

Weights = dict[str, np.ndarray]  # by name


class Learned(NamedTuple):
    """All trained weights, as they are typed into cells."""

    W: np.ndarray  # [decays, probabilities, hidden, features]
    b: np.ndarray  # [decays, probabilities, features]
    encoder: np.ndarray  # [penalties, hidden, latents]
    encoder_bias: np.ndarray  # [penalties, latents]
    decoder: np.ndarray  # [penalties, latents, hidden], of length 1


def toy_model() -> Graph:
    """The toy model over examples, and its loss [1, 1]."""
    g = Graph()
    x = g.input("x", np.zeros((N_EXAMPLES, N_FEATURES)), ("example", "feature"))
    share = g.input("share", np.zeros((N_EXAMPLES, 1)), ("example", ""))
    importance = g.input("importance", np.ones((1, N_FEATURES)), ("", "feature"))
    W = g.input("W", np.zeros((D_HIDDEN, N_FEATURES)), ("hidden", "feature"), "weight")
    b = g.input("b", np.zeros((1, N_FEATURES)), ("", "feature"), "weight")
    h = g.block("h", ops.linear_tied, x, W)  # [examples, hidden]
    out = g.block("out", ops.relu, g.block("pre", ops.linear, h, W, b))  # [examples, features]
    gap = g.block("gap", ops.less, out, x)
    error = g.block("error", ops.along, gap, g.block("weighed", ops.affine, gap, importance))
    g.block("loss", ops.pooled, error, share)
    return g


def autoencoder() -> Graph:
    """The sparse autoencoder over hidden numbers, and its loss [1, 1]. An activation is penalized
    times the length of its output, so that small activations with large outputs gain nothing."""
    g = Graph()
    h = g.input("h", np.zeros((N_EXAMPLES, D_HIDDEN)), ("example", "hidden"))
    share = g.input("share", np.zeros((N_EXAMPLES, 1)), ("example", ""))
    penalty = g.input("penalty", 0.0)
    E = g.input("E", np.zeros((D_HIDDEN, N_LATENTS)), ("hidden", "latent"), "weight")
    b = g.input("b", np.zeros((1, N_LATENTS)), ("", "latent"), "weight")
    D = g.input("D", np.zeros((N_LATENTS, D_HIDDEN)), ("latent", "hidden"), "weight")
    f = g.block("f", ops.relu, g.block("pre", ops.linear, h, E, b))  # [examples, latents]
    gap = g.block("gap", ops.less, g.block("out", ops.linear, f, D), h)
    error = g.block("error", ops.along, gap, gap)  # [examples, 1]
    active = g.block("active", ops.linear, f, g.block("size", ops.length, D))  # [examples, 1]
    total = g.block("total", ops.add, [error, g.block("price", ops.stretch, active, penalty)])
    g.block("loss", ops.pooled, total, share)
    return g


def learn(seed: int, steps: int = STEPS) -> Iterator[Progress | Learned]:
    """Each step's progress and, last, all trained weights: first the toy models, of every
    importance and probability, then the autoencoders. Of several starts, the one with the least
    loss."""
    rng = np.random.default_rng(seed)
    W, b = yield from _toy_models(rng, steps)
    yield Learned(W, b, *(yield from _autoencoders(rng, _seen(W), steps)))


def _toy_models(
    rng: np.random.Generator, steps: int
) -> Generator[Progress, None, tuple[np.ndarray, np.ndarray]]:
    """Train W and b, of every case and from every start at once."""
    n, m = len(DECAYS), len(PROBABILITIES)
    importance = np.power.outer(DECAYS, np.arange(N_FEATURES))  # [decays, features]
    given = {
        "importance": np.repeat(importance, m, axis=0)[:, None, None],
        "share": np.tile([shares(p) for p in PROBABILITIES], (n, 1))[:, None, :, None],
    }
    start = {
        "W": rng.normal(0, 0.5, (n * m, STARTS, D_HIDDEN, N_FEATURES)),
        "b": np.zeros((n * m, STARTS, 1, N_FEATURES)),
    }
    best = yield from minimized(toy_model(), given, lambda: {"x": drawn(rng)}, start, steps)
    W = best["W"].reshape(n, m, D_HIDDEN, N_FEATURES)
    return W.round(DECIMALS), best["b"].reshape(n, m, N_FEATURES).round(DECIMALS)


def _autoencoders(
    rng: np.random.Generator, W: np.ndarray, steps: int
) -> Generator[Progress, None, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Train an autoencoder for each penalty on the hidden numbers of a toy model; finally each
    latent's output is scaled to length 1, and its activation by the inverse."""
    given = {"penalty": np.reshape(PENALTIES, (-1, 1, 1, 1)), "share": shares(SEEN)[:, None]}
    writes = rng.normal(size=(len(PENALTIES), STARTS, N_LATENTS, D_HIDDEN))
    writes /= np.linalg.norm(writes, axis=-1, keepdims=True)
    start = {
        "E": writes.swapaxes(-1, -2).copy(),
        "b": np.zeros((len(PENALTIES), STARTS, 1, N_LATENTS)),
        "D": writes,
    }
    best = yield from minimized(
        autoencoder(), given, lambda: {"h": drawn(rng) @ W.T}, start, steps, done=steps
    )
    size = np.linalg.norm(best["D"], axis=-1)  # [penalties, latents]
    encoder, bias = best["E"] * size[:, None], best["b"][:, 0] * size
    decoder = best["D"] / size[..., None]
    return encoder.round(DECIMALS), bias.round(DECIMALS), decoder.round(DECIMALS)


def minimized(
    graph: Graph,
    given: Mapping[str, np.ndarray],
    draw: Callable[[], Mapping[str, np.ndarray]],
    start: Weights,
    steps: int,
    done: int = 0,
) -> Generator[Progress, None, Weights]:
    """Minimize the `loss` of a graph with Adam, from weights [cases, starts, rows, columns] by
    name; returns those of the start with the lowest loss, [cases, rows, columns].

    `given` are inputs that stay, [cases, 1, rows, columns]; `draw` gives those of a step, [rows,
    columns]; `done` counts the steps of the training before it, of two that are as long.
    """
    moves = _moves(graph, start)
    at = dict(start)  # of the moments, 0

    def values(at: Weights) -> Weights:
        return filled(graph, {**given, **draw(), **at})

    for step in range(steps):
        rate = RATE * (1 + cos(pi * step / steps)) / 2
        found = values(at | {"rate": np.array([[rate]]), "step": np.array([[step + 1.0]])})
        at = {name: found[after] for name, after in moves.items()}
        yield Progress(done + step, 2 * steps, float(found["loss"].mean()), NO_IDS, at)
    losses = np.mean([values(at)["loss"] for _ in range(CHECKS)], axis=0)[..., 0, 0]
    best = losses.argmin(axis=1)  # [cases]
    return {name: at[name][np.arange(len(best)), best] for name in start}


def _moves(g: Graph, start: Weights) -> dict[str, str]:
    """Add a step of Adam to a graph: for each of its inputs, the value after the step."""
    gradients = backward(g, g["loss"])
    shared = optimizers.settings(g, beta1=BETAS[0], beta2=BETAS[1])
    moves = {}
    for name in start:
        speed, size = (g.input(f"{what}.{name}", np.zeros(g[name].shape)) for what in MOMENTS)
        after = optimizers.updated(g, g[name], gradients[name], speed, size, shared, False)
        moves[name] = after.weight.name
        moves |= {speed.name: after.velocity.name, size.name: after.second.name}
    return moves


def cosines(learned: Learned) -> np.ndarray:
    """The cosines of each latent's output with the arrow of each feature that the autoencoders saw:
    [penalties, latents, features]."""
    W = _seen(learned.W)
    lengths = np.linalg.norm(learned.decoder, axis=-1, keepdims=True)
    return np.asarray(learned.decoder @ (W / np.linalg.norm(W, axis=0)) / lengths)


def _seen(W: np.ndarray) -> np.ndarray:
    """The W [hidden, features] of the toy model for the autoencoders: features of equal importance,
    and rare."""
    return np.asarray(W[DECAYS.index(1.0), PROBABILITIES.index(SEEN)])


def save(learned: Learned, folder: Path, force: bool) -> None:
    """Write the trained weights as `superposition.json`. Raises InputError."""
    with replacing_folder(folder, is_part, force) as path:
        rows = {name: array.tolist() for name, array in learned._asdict().items()}
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        (path / FILE).write_text(f"{{\n{lines}\n}}\n")


def load(folder: Path = FOLDER) -> Learned:
    """The weights that `save` wrote. Raises InputError."""
    held = read_json(folder / FILE)
    return Learned(*(np.array(held[name]) for name in Learned._fields))


def is_part(name: str) -> bool:
    """Whether `save` wrote a file of this name."""
    return name == FILE
