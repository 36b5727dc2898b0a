"""Training the vision transformer on drawings of digits, by cells, in numpy alone.

The forward pass, its loss and every gradient are one graph, as for any model that is trained by
cells (`cellformer.engine.learning.in_cells`); only what a step reads differs: a drawing, and its digit. Each
drawing is moved by up to a pixel whenever it is read, so that 1,437 drawings are more, and what a
reader draws need not stand in the middle.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.graph import Graph
from cellformer.engine.learning import in_cells, objective
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.recipe import Recipe
from cellformer.engine.learning.training import Progress
from cellformer.engine.models.architectures import vit
from cellformer.engine.models.foreign import Config
from cellformer.engine.models.forward import ONE_TOKEN, Forward
from cellformer.workbooks.digits.drawings import MOST, N_DIGITS, SIDE, Drawings, split

PATCH = 2
MOVES = (0.25, 0.5, 0.25)  # how often a drawing is moved down, not, and up; and likewise across
FULL = 0.3  # how often its pixels are full or empty,
FULL_FROM = (4, 11)  # of values from a random one of these on
CONFIG = {
    "model_type": "vit",
    "architectures": ["ViTForImageClassification"],
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "hidden_act": "relu",
    "layer_norm_eps": 1e-5,
    "image_size": SIDE,
    "patch_size": PATCH,
    "num_channels": 1,
    "qkv_bias": True,
    "rescale_factor": 1 / MOST,
    "do_normalize": False,
    "id2label": {str(k): str(k) for k in range(N_DIGITS)},
}
RECIPE = Recipe(
    steps=8000, batch=64, embed_scale=0.3, learning_rate=0.01, warmup=100, weight_decay=0.01,
    scale=0.2, residual_scale=0.1,
)  # fmt: skip
DECIMALS = 3  # of a trained weight, so that a sheet shows all of it
NO_IDS = np.zeros((0, 0), int)  # no step reads words


def decoder() -> Decoder:
    """The transformer, without weights."""
    return Decoder(vit.forward, vit.read_config(Config(Path("config.json"), dict(CONFIG))), CONFIG)


def learn(seed: int, steps: int) -> Iterator[Progress | dict[str, np.ndarray]]:
    """Each step's progress and, last, the trained weights by name."""
    recipe, rng, shape = replace(RECIPE, steps=steps), np.random.default_rng(seed), decoder()
    learner = Learner(shape, recipe, shape.initial(recipe, rng))
    learnt, _ = split()
    for n in range(steps):
        chosen = rng.integers(0, len(learnt.digits), recipe.batch)
        loss = learner.on(
            n, Drawings(drawn_otherwise(learnt.pixels[chosen], rng), learnt.digits[chosen])
        )
        yield Progress(n, steps, loss, NO_IDS, learner.weights)
    yield {name: w.round(DECIMALS) for name, w in learner.weights.items()}


def drawn_otherwise(pixels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Drawings [n, SIDE, SIDE], each moved by up to a pixel down or up, right or left; some with
    all pixels full or empty, as a reader draws."""
    n = len(pixels)
    full = MOST * (pixels >= rng.integers(*FULL_FROM, (n, 1, 1)))
    inked = np.where(rng.random((n, 1, 1)) < FULL, full, pixels)
    room = np.pad(inked, ((0, 0), (1, 1), (1, 1)))
    by = rng.choice(3, (n, 2), p=MOVES)
    return np.array([x[i : i + SIDE, j : j + SIDE] for x, (i, j) in zip(room, by, strict=True)])


def in_patches(pixels: np.ndarray) -> np.ndarray:
    """Drawings [n, SIDE, SIDE] as the model's input: [n, n_patches, d_patch]."""
    spec = decoder().spec
    assert isinstance(spec, vit.VitSpec)
    return np.take(pixels.reshape(len(pixels), -1).astype(np.float64), vit.places(spec), axis=1)


class Learner(in_cells.Learner):
    """A model in training, whose steps read drawings."""

    def on(self, n: int, drawings: Drawings) -> float:
        """Make step n, counted from 0; returns the mean loss before it, in nats."""
        weights = {name: np.atleast_2d(w) for name, w in self.weights.items()}
        graph, gradients = self._pass(1, weights)
        digits = drawings.digits[:, None, None].astype(np.float64)
        batch = {
            "tokens": in_patches(drawings.pixels),
            "loss.targets": digits,
            "loss.share": np.full(digits.shape, 1 / len(digits)),
        }
        values = filled(graph, weights | batch)
        self._move(
            n, {name: in_cells.summed(values[block.name]) for name, block in gradients.items()}
        )
        return float(values["loss"].sum())

    def _pass(
        self, n_tokens: int, weights: Mapping[str, np.ndarray]
    ) -> tuple[Graph, dict[str, Block]]:
        if n_tokens not in self._passes:
            graph = blank(self._decoder, weights)
            gradients = backward(graph, objective.loss(graph, [0], [1.0]))
            self._passes[n_tokens] = graph, {k: x for k, x in gradients.items() if k in weights}
        return self._passes[n_tokens]


def blank(shape: Decoder, weights: Mapping[str, np.ndarray]) -> Forward:
    """The pass over an empty drawing, with the logits of its class alone."""
    graph = Forward(shape.spec, weights, ONE_TOKEN)
    shape.forward(graph, [])
    graph.fill("position", np.zeros((1, 1)))
    return graph


def guesses(shape: Decoder, weights: Mapping[str, np.ndarray], pixels: np.ndarray) -> np.ndarray:
    """The likeliest digit of each drawing: [n]."""
    rows = {name: np.atleast_2d(w) for name, w in weights.items()}
    logits = filled(blank(shape, rows), {"tokens": in_patches(pixels)})["logits"]
    return np.asarray(logits[:, 0].argmax(axis=-1))
