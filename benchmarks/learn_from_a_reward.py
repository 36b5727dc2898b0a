"""A model learns from a reward alone that books must balance: as many debits (D) as credits (C).

The model first imitates random books. Then it writes 8 texts in each of 200 steps, and each right
text gets a reward. With a small KL penalty, the model ends with one text; a larger one keeps more.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cellformer.engine import ModelSpec
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.learning import optimizers, policy
from cellformer.engine.learning.decoders import Decoder
from cellformer.engine.learning.in_cells import Learner
from cellformer.engine.learning.recipe import IGNORED, Recipe
from cellformer.engine.models.architectures import decoder
from cellformer.engine.models.forward import Forward, Readout

DEBIT, CREDIT, END = range(3)  # END also begins a text
TEXTS, WORDS, STEPS = 8, 7, 200
SPEC = ModelSpec(
    d_vocab=3, d_model=8, n_ctx=WORDS, n_layers=1, n_heads=2, d_head=4, d_mlp=16,
    activation="relu", position="learned", norm="rms", norm_gain=False,
)  # fmt: skip
IMITATION = Recipe(
    steps=600, batch=64, embed_scale=0.3, learning_rate=0.01, warmup=20, betas=(0.9, 0.999),
    weight_decay=0.0, scale=0.3, residual_scale=0.3,
)  # fmt: skip
Weights = dict[str, np.ndarray]


def lengths(ids: np.ndarray) -> np.ndarray:
    """The words of each text up to its first end, with the end."""
    found: np.ndarray = np.where((ids == END).any(1), (ids == END).argmax(1) + 1, WORDS)
    return found


def rewards(kind: str, ids: np.ndarray) -> np.ndarray:
    """The reward of each text, 1 or 0."""
    n, ended = lengths(ids), (ids == END).any(1)
    if kind == "ends with a credit":
        last = ids[np.arange(len(ids)), np.maximum(n - 2, 0)]
        return np.asarray(ended & (n > 1) & (last == CREDIT), float)
    counts = np.arange(WORDS) < n[:, None]
    debits, credits = (((ids == word) & counts).sum(1) for word in (DEBIT, CREDIT))
    return np.asarray(ended & (debits == credits) & (debits > 0), float)


def imitator(seed: int) -> Weights:
    """The weights of a model that imitates random books."""
    rng, kind = np.random.default_rng(seed), Decoder(decoder.forward, SPEC, {})
    learner = Learner(kind, IMITATION, kind.initial(IMITATION, rng))
    for k in range(IMITATION.steps):
        ids = rng.integers(0, 2, (IMITATION.batch, WORDS))
        ends = rng.random(ids.shape) < 0.25
        ends[:, 0], ends[:, -1] = False, True
        ids[np.cumsum(ends, 1) > 0] = END
        hidden = np.arange(WORDS) >= lengths(ids)[:, None]
        learner.step(k, np.insert(np.where(hidden, IGNORED, ids), 0, END, axis=1))
    return {name: w.round(2) for name, w in learner.weights.items()}


def probabilities(g: Forward, weights: Weights, ids: np.ndarray) -> np.ndarray:
    """The probability of every word at each place of some texts: [texts, places, words]."""
    tokens = np.insert(ids[:, :-1], 0, END, axis=1)[..., None].astype(float)
    return filled(g, weights | {"tokens": tokens})["probs"]


def one_text() -> Forward:
    """The graph of a forward pass over one text."""
    g = Forward(SPEC, None, Readout(by_head=False))
    decoder.forward(g, [END] * WORDS)
    return g


def random_numbers(seed: int) -> np.ndarray:
    """The random numbers of all steps, with four decimals: [steps, texts, words]."""
    size = STEPS, TEXTS, WORDS
    return np.random.default_rng(seed).integers(0, 10_000, size) / 10_000


def step(weights: Weights, beta: float) -> tuple[Forward, dict[str, optimizers.Updated]]:
    """One step of GRPO with Adam, as blocks; and the next values of each weight."""
    g = Forward(SPEC, weights, Readout(by_head=False, sentence=WORDS))
    decoder.forward(g, [END] * TEXTS * WORDS)
    owned = [block for block in g if block.kind == "weight"]
    blank = np.full((TEXTS, WORDS), END)
    found = policy.gradients(g, policy.loss(g, blank, [WORDS] * TEXTS, beta, policy.CLIP))
    shared, moved = optimizers.settings(g, rate=0.01), {}
    for w in owned:
        zeros = np.zeros(w.shape)
        speed, size = (g.input(f"{what}.{w.name}", zeros, w.axes) for what in ("speed", "size"))
        moved[w.name] = optimizers.updated(g, w, found[w.name], speed, size, shared, False)
    return g, moved


def learn(
    weights: Weights, numbers: np.ndarray, kind: str, beta: float
) -> Iterator[tuple[np.ndarray, float, Weights]]:
    """Each step's texts, its loss, and the weights after it."""
    reads, (g, moved) = one_text(), step(weights, beta)
    after: dict[str, Block] = {}
    for name, new in moved.items():
        after |= {name: new.weight}
        after |= {f"speed.{name}": new.velocity, f"size.{name}": new.second}
    state = {name: g.inputs[name] for name in after}
    for n, chance in enumerate(numbers, 1):
        ids = np.full((TEXTS, WORDS), END)
        for t in range(WORDS):
            ends = probabilities(reads, {k: state[k] for k in moved}, ids)[:, t].cumsum(1)
            ids[:, t] = (chance[:, t, None] * ends[:, -1:] >= ends[:, :-1]).sum(1)
        advantage = policy.advantages(rewards(kind, ids))
        given = {
            "tokens": np.insert(ids[:, :-1], 0, END, axis=1),
            "loss.targets": ids,
            "loss.share": policy.shares(ids.shape, lengths(ids).tolist()),
            "advantage": np.repeat(advantage, WORDS),
        }
        columns = {name: x.reshape(-1, 1).astype(float) for name, x in given.items()}
        values = filled(g, state | columns | {"step": np.array([[float(n)]])})
        state = {name: values[block.name] for name, block in after.items()}
        yield ids, float(values["policy.loss"][0, 0]), {name: state[name] for name in moved}


class Measured(NamedTuple):
    """What a model writes, from the exact probability of each of its 255 texts."""

    right: float  # probability of a balanced text
    variety: float  # entropy, in nats
    favourite: str


def measured(weights: Weights) -> Measured:
    """The result of a model."""
    every = [
        [k >> t & 1 for t in range(n)] + [END] * (WORDS - n)
        for n in range(WORDS + 1)
        for k in range(2**n)
    ]
    ids = np.array(every)
    given = probabilities(one_text(), weights, ids)
    of_word = np.take_along_axis(given, ids[..., None], 2)[..., 0]
    p = np.where(np.arange(WORDS) < lengths(ids)[:, None], of_word, 1).prod(1)
    right = float(p @ rewards("balanced", ids))
    variety = float(-(p * np.log(np.maximum(p, 1e-300))).sum())
    return Measured(right, variety, "".join("DC."[i] for i in ids[p.argmax()]).rstrip("."))


def main() -> None:
    """The table of benchmarks/README.md."""
    for seed in range(3):
        start = imitator(seed)
        print(f"seed {seed}, before: {measured(start).right:.1%} right")
        for penalty in (0.02, 0.2, 0.5):
            *_, last = learn(start, random_numbers(seed), "balanced", penalty)
            right, variety, favourite = measured(last[2])
            print(f"beta {penalty}: {right:.1%} right, entropy {variety:.2f}, {favourite}")


if __name__ == "__main__":
    main()
