"""A step of training as cells, against `torch.optim` over the same random gradients."""

import numpy as np
import pytest

from cellformer.engine import Graph
from cellformer.engine.cells.batch import filled
from cellformer.engine.cells.block import Block
from cellformer.engine.learning import optimizers
from cellformer.engine.learning.optimizers import ADAM, DESCENT, MOMENTUM

SHAPES = {"matrix": (3, 4), "vector": (1, 5)}  # the vector does not decay
STEPS = 30


def rate(step: int) -> float:
    return 0.01 * (1 + step % 7)


def ours(method: int, start: dict, gradients: list[dict], clip: float | None) -> dict:
    """The weights after all steps, by the ops."""
    g = Graph()

    def blocks(name: str) -> dict[str, Block]:
        axes = {"matrix": ("rows", "columns"), "vector": ("", "entries")}
        zeros = {key: np.zeros(shape) for key, shape in SHAPES.items()}
        return {k: g.input(name.format(k), x, axes[k]) for k, x in zeros.items()}

    w, gradient, speed, size = map(blocks, ("{}", "gradient.{}", "was.{}", "was.second.{}"))
    clipping = optimizers.clip(g, gradient.values(), g.input("most", clip)) if clip else None
    shared = optimizers.settings(g, method, beta1=0.9, beta2=0.98, decay=0.05, clipping=clipping)
    after = {
        k: optimizers.updated(g, w[k], gradient[k], speed[k], size[k], shared, k == "matrix")
        for k in SHAPES
    }
    state = dict(start)
    for step, given in enumerate(gradients):
        settings = {"step": np.array([[step + 1.0]]), "rate": np.array([[rate(step)]])}
        values = filled(g, state | settings | {gradient[k].name: x for k, x in given.items()})
        for k, next_ in after.items():
            state[k] = values[next_.weight.name]
            state[speed[k].name] = values[next_.velocity.name]
            state[size[k].name] = values[next_.second.name]
    return {k: state[k] for k in SHAPES}


@pytest.mark.parametrize("clip", [None, 0.7])
@pytest.mark.parametrize("method", [DESCENT, MOMENTUM, ADAM])
def test_optimizers_equal_torch(method: int, clip: float | None, torch) -> None:
    rng = np.random.default_rng(method)
    start = {k: rng.normal(size=shape) for k, shape in SHAPES.items()}
    gradients = [{k: rng.normal(size=s) for k, s in SHAPES.items()} for _ in range(STEPS)]
    tensors = {k: torch.tensor(x, requires_grad=True) for k, x in start.items()}
    groups = [
        {"params": [tensors["matrix"]], "weight_decay": 0.05},
        {"params": [tensors["vector"]], "weight_decay": 0.0},
    ]
    if method == ADAM:
        optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98))
    else:
        optimizer = torch.optim.SGD(groups, momentum=0.9 if method else 0)
    for step, given in enumerate(gradients):
        for k, x in given.items():
            tensors[k].grad = torch.tensor(x)
        if clip:
            torch.nn.utils.clip_grad_norm_(tensors.values(), clip)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
    found = ours(method, start, gradients, clip)
    for k, x in tensors.items():
        np.testing.assert_allclose(found[k], x.detach().numpy(), rtol=0, atol=1e-13)
