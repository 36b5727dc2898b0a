"""Torch as one more interpreter of ops: the same formulas under its autograd, in float64.

Views of operands and primitives are written here again, apart from the engine's.
"""

from dataclasses import dataclass
from typing import Any

import torch

from engine.cells.access import Mask, partners
from engine.cells.block import Block
from engine.cells.graph import Graph


@dataclass
class Line:
    """What a cell reads along an axis: [rows, columns, read], of which rows or columns may be 1."""

    values: torch.Tensor
    seen: torch.Tensor | None  # bool [rows, 1, read]


class Torch:
    """The primitives."""

    exp, log, sqrt, tanh, erf = torch.exp, torch.log, torch.sqrt, torch.tanh, torch.erf
    sin, cos, held = torch.sin, torch.cos, torch.detach

    def dot(self, a: Line, b: Line) -> torch.Tensor:
        return self._kept(a, b, a.values * b.values).sum(-1)

    def sum(self, x: Line) -> torch.Tensor:
        return self._kept(x, x, x.values).sum(-1)

    def mean(self, x: Line) -> torch.Tensor:
        return x.values.mean(-1)

    def varp(self, x: Line) -> torch.Tensor:
        return x.values.var(-1, unbiased=False)

    def max(self, x: Line) -> torch.Tensor:
        least = torch.full((), -torch.inf, dtype=torch.float64)
        return (x.values if x.seen is None else torch.where(x.seen, x.values, least)).amax(-1)

    def count(self, x: Line) -> int:
        return x.values.shape[-1]

    def maximum(self, x: torch.Tensor, y: torch.Tensor | float) -> torch.Tensor:
        return torch.where(x > y, x, torch.as_tensor(y, dtype=x.dtype))

    def lookup(self, table: Line, ids: torch.Tensor) -> torch.Tensor:
        where = torch.broadcast_tensors(ids.long()[..., None], table.values[..., :1])[0]
        return torch.take_along_dim(table.values, where, -1)[..., 0]

    def rank(self, x: Any, line: Line, place: Any, places: Line) -> torch.Tensor:
        larger = line.values > x[..., None]
        earlier = (line.values == x[..., None]) & (places.values < place[..., None])
        return (larger | earlier).double().sum(-1)

    def below(self, x: Any, y: Any) -> torch.Tensor:
        return (x < y).double()

    def equal(self, x: Any, y: Any) -> torch.Tensor:
        return (x == y).double()

    def _kept(self, a: Line, b: Line, x: torch.Tensor) -> torch.Tensor:
        """What is not seen counts nothing."""
        seen = a.seen if a.seen is not None else b.seen
        return x if seen is None else torch.where(seen, x, torch.zeros((), dtype=torch.float64))


def view(x: torch.Tensor, at: tuple[str, str], out: Block, mask: Mask) -> Any:
    """What the op sees of an operand: its axes where the output has them."""
    rows, cols = at
    if rows in (":", "≤i", "?"):
        x, rows, cols = x.T, cols, rows
    if cols in (":", "≤i", "?"):
        partly = cols == "≤i" and mask.causal
        seen = torch.tensor(mask.seen(out.whole._replace(right=x.shape[1]))) if partly else None
        return Line(x[None] if rows == "j" else x[:, None], seen if seen is None else seen[:, None])
    if cols[0] == "@":
        x = x[:, int(cols[1:])][:, None]
    elif cols[0] == "~":
        x = x[:, partners(cols, 0, x.shape[1])]
    return x.T if rows == "j" or cols == "i" else x


def weights_of(graph: Graph) -> dict[str, torch.Tensor]:
    """A graph's weights, by which gradients are taken: [rows, columns] each."""
    names = [block.name for block in graph if block.kind == "weight"]
    return {name: torch.tensor(graph.inputs[name]).requires_grad_() for name in names}


def values(graph: Graph, of: str, weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The values of all blocks up to one, for some weights: [rows, columns] each."""
    values = dict(weights)
    m: Any = Torch()
    for block in graph:
        if block.op is None and block.name not in weights:
            values[block.name] = torch.tensor(graph.values[block.name].astype(float))
        elif block.op is not None:
            pairs = [
                (p, view(values[b.name], at, block, block.mask)) for p, at, b in block.operands
            ]
            x = block.op.call(m, pairs)
            if block.partial:
                blank = torch.full((), block.op.blank, dtype=torch.float64)
                x = torch.where(torch.tensor(block.mask.seen(block.whole)), x, blank)
            x = torch.broadcast_to(x, block.shape)
            values[block.name] = x = x.clone()
            if x.requires_grad:
                x.retain_grad()
        if block.name == of:
            break
    return values


def gradients(graph: Graph, of: str) -> dict[str, torch.Tensor]:
    """The gradient of a single cell by every block that has one: [rows, columns]."""
    found = values(graph, of, weights_of(graph))
    found[of].backward()
    return {name: x.grad for name, x in found.items() if x.grad is not None}


def loss_after_step(graph: Graph, rate: float) -> float:
    """The `loss` of a graph after a step of torch's gradient descent."""
    weights = weights_of(graph)
    values(graph, "loss", weights)["loss"].backward()
    torch.optim.SGD(weights.values(), lr=rate).step()
    return float(values(graph, "loss", weights)["loss"].detach())
