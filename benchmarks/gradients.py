"""Gradients: what they cost, and how far they are from torch's and from finite differences.

    python benchmarks/gradients.py [--specs 100] [--weights 50]

Prints the processor time of a forward pass with and without its backward pass, as a ratio; the
largest relative difference from torch, over weights and activations of random models; and that of
`gradient --json` from finite differences through `run --set`, over random weights of dialogue-game.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import numpy as np  # noqa: E402
from by_torch import gradients  # noqa: E402
from conftest import cli, random_model  # noqa: E402

from cellformer import workbooks  # noqa: E402
from cellformer.engine import Evaluator, Model, ModelSpec  # noqa: E402
from cellformer.engine.cells.gradient import backward  # noqa: E402
from cellformer.engine.learning import objective  # noqa: E402

N, STEP, SHARE = 15, 1e-4, 1e-2
WIDE = ModelSpec(
    d_vocab=512, d_model=256, n_ctx=64, n_layers=4, n_heads=4, d_head=64, d_mlp=1024,
    activation="gelu_tanh", position="learned", norm="layer", final_norm=True, tied=True, bias=True,
)  # fmt: skip


def seconds(work: Callable[[], object]) -> float:
    """The median processor time of one call."""
    times = []
    for _ in range(N):
        start = process_time()
        work()
        times.append(process_time() - start)
    return median(times)


def cost(title: str, model: Model, ids: list[int]) -> None:
    """A forward pass, and the same with the gradient of all weights."""
    forward = seconds(Evaluator(model.graph(ids)).run)
    graph = model.graph(ids)
    n_words = graph["logits"].shape[1]
    backward(graph, objective.loss(graph, [k % n_words for k in range(len(ids))]))
    both = seconds(Evaluator(graph).run)
    print(f"{title}: forward {forward * 1e3:.2f} ms; with all gradients {both / forward:.1f} x")


def drawn(rng: np.random.Generator) -> ModelSpec:
    """A random decoder."""
    d_head = 2 * int(rng.integers(1, 4))
    return ModelSpec(
        d_vocab=int(rng.integers(2, 12)),
        d_model=int(rng.integers(1, 10)),
        n_ctx=8,
        n_layers=int(rng.integers(0, 4)),
        n_heads=int(rng.integers(1, 4)),
        d_head=d_head,
        d_mlp=int(rng.integers(0, 9)),
        activation=rng.choice(["relu", "gelu", "gelu_tanh", "silu"]).item(),
        position=rng.choice(["none", "learned", "sinusoidal", "rotary"]).item(),
        norm=rng.choice(["none", "layer", "rms"]).item(),
        norm_after=bool(rng.integers(2)),
        final_norm=bool(rng.integers(2)),
        tied=bool(rng.integers(2)),
        bias=bool(rng.integers(2)),
        causal=bool(rng.integers(2)),
    )


def from_torch(n: int) -> None:
    """The largest difference, relative to the largest gradient of each block; where that has
    cancelled to rounding (a softmax that sees one key alone), to a share of the largest of all."""
    worst = 0.0
    for seed in range(n):
        rng = np.random.default_rng(seed)
        spec = drawn(rng)
        ids = rng.integers(0, spec.d_vocab, int(rng.integers(1, 9))).tolist()
        graph = random_model(spec, seed).graph(ids)
        of = objective.loss(graph, rng.integers(0, spec.d_vocab, len(ids)).tolist())
        found, reference = backward(graph, of), gradients(graph, of.name)
        largest = max(float(x.abs().max()) for x in reference.values())
        for name, block in found.items():
            if name in reference:
                expected = reference[name].numpy()
                size = max(float(np.abs(expected).max()), SHARE * largest)
                gap = float(np.abs(graph.values[block.name] - expected).max())
                worst = max(worst, gap / size)
    print(f"{n} random models: largest relative difference from torch {worst:.1e}")


def from_differences(n: int) -> None:
    """The largest difference for random weights, relative to the largest gradient."""
    found = json.loads(cli("gradient", "dialogue-game", "--json", "--top", 1).out)["gradient"]
    weights = workbooks.find("dialogue-game").model().weights
    largest = max(np.abs(g).max() for g in found.values())
    target = int(np.argmax(logits()))
    rng, worst = np.random.default_rng(0), 0.0
    for name in rng.choice(sorted(found), n):
        values = np.atleast_2d(weights[name])
        i, j = (int(rng.integers(k)) for k in values.shape)
        up, down = (
            logits("--set", f"{name}[{i},{j}]={values[i, j] + sign * STEP:.17g}")[target]
            for sign in (1, -1)
        )
        worst = max(worst, abs((up - down) / (2 * STEP) - found[name][i][j]) / largest)
    print(f"{n} weights of dialogue-game: largest difference from finite differences {worst:.1e}")


def logits(*change: str) -> np.ndarray:
    """The last token's logits, as `run` prints them."""
    done = cli("run", "dialogue-game", "--json", "--show", "logits", *change)
    return np.array(json.loads(done.out)["logits"][-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", type=int, default=100)
    parser.add_argument("--weights", type=int, default=50)
    given = parser.parse_args()
    for name in ("cat-sat", "dialogue-game"):
        found = workbooks.find(name)
        model = found.model()
        cost(name, model, model.vocabulary.encode(found.PROMPT))
    cost("4 layers, d=256, 64 tokens", random_model(WIDE), list(range(64)))
    from_torch(given.specs)
    from_differences(given.weights)
