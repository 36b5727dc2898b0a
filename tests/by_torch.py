"""Gradients of a graph by torch's autograd, in float64: op by op, none of torch's own kernels."""

import torch

from cellformer.engine import Graph
from cellformer.engine.learning.torch_math import Pass, Place


def computed(graph: Graph, of: str, weights: dict[str, torch.Tensor]) -> dict[str, Place]:
    return Pass(graph, of, weights, torch.float64, kernels={})(weights)


def weights_of(graph: Graph) -> dict[str, torch.Tensor]:
    """The weights, by which gradients are taken: [rows, columns] each."""
    names = [block.name for block in graph if block.kind == "weight"]
    return {name: torch.tensor(graph.inputs[name]).requires_grad_() for name in names}


def gradients(graph: Graph, of: str) -> dict[str, torch.Tensor]:
    """The gradient of a single cell by every block that it depends on: [rows, columns], 0 where a
    mask leaves no cell."""
    places = computed(graph, of, weights_of(graph))
    places = {name: place for name, place in places.items() if place.stack.requires_grad}
    stacks = [place.stack for place in places.values()]
    by = torch.autograd.grad(places[of].stack, stacks, materialize_grads=True)
    found = {}
    for (name, place), gradient in zip(places.items(), by, strict=True):
        block, x = graph[name], gradient[0, place.k]
        found[name] = x * torch.tensor(block.mask.seen(block.whole)) if block.partial else x
    return found


def loss_after_step(graph: Graph, rate: float) -> float:
    """The `loss` of a graph after a step of torch's gradient descent."""
    weights = weights_of(graph)
    computed(graph, "loss", weights)["loss"].stack.backward()
    torch.optim.SGD(weights.values(), lr=rate).step()
    return float(computed(graph, "loss", weights)["loss"].stack.detach())
