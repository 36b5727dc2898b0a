"""Torch as one more interpreter of ops: the same formulas under its autograd, in float64.

Views of operands and primitives are written here again, apart from the engine's.
"""

import operator
from dataclasses import dataclass
from typing import Any

import torch

from engine.cells.access import Mask, partners
from engine.cells.block import Block
from engine.cells.expression import Constant, Read
from engine.cells.graph import Graph


@dataclass
class Line:
    """What a cell reads along an axis: [rows, columns, read], of which rows or columns may be 1."""

    values: torch.Tensor
    seen: torch.Tensor | None  # bool [rows, 1, read]


def product_sum(a: Any, b: Any) -> torch.Tensor:
    return kept(a, b, a.values * b.values).sum(-1)


def largest(*xs: Any) -> torch.Tensor:
    """Of a line, or of cells; of equal ones the last has the gradient."""
    if isinstance(xs[0], Line):
        (x,) = xs
        least = torch.full((), -torch.inf, dtype=torch.float64)
        return (x.values if x.seen is None else torch.where(x.seen, x.values, least)).amax(-1)
    x, y = xs
    return torch.where(x > y, x, torch.as_tensor(y, dtype=x.dtype))


def lookup(table: Line, ids: torch.Tensor) -> torch.Tensor:
    where = torch.broadcast_tensors(ids.long()[..., None], table.values[..., :1])[0]
    return torch.take_along_dim(table.values, where, -1)[..., 0]


def order(x: Any, line: Line, place: Any, places: Line) -> torch.Tensor:
    larger = line.values > x[..., None]
    earlier = (line.values == x[..., None]) & (places.values < place[..., None])
    return (larger | earlier).double().sum(-1)


def kept(a: Line, b: Line, x: torch.Tensor) -> torch.Tensor:
    """What is not seen counts nothing."""
    seen = a.seen if a.seen is not None else b.seen
    return x if seen is None else torch.where(seen, x, torch.zeros((), dtype=torch.float64))


TORCH = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "<": operator.lt,
    "=": operator.eq,
    "held": torch.detach,
    "nth": lookup,
    "AVERAGE": lambda x: x.values.mean(-1),
    "COS": torch.cos,
    "ERF": torch.erf,
    "EXP": torch.exp,
    "IF": lambda c, x, y: torch.where(c, float(x), float(y)).double(),
    "LN": torch.log,
    "MAX": largest,
    "ORDER": order,
    "SIN": torch.sin,
    "SQRT": torch.sqrt,
    "SUM": lambda x: kept(x, x, x.values).sum(-1),
    "SUMPRODUCT": product_sum,
    "TANH": torch.tanh,
    "VARP": lambda x: x.values.var(-1, unbiased=False),
}


def run(block: Block, views: dict) -> torch.Tensor:
    """What the formula of a block comes to."""
    found: list[Any] = []
    for part, of in block.steps:
        if isinstance(part, Read):
            found.append(views[part.key])
        elif isinstance(part, Constant):
            found.append(part.number)
        else:
            found.append(TORCH[part.name](*[found[k] for k in of]))
    return found[-1]


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
    for block in graph:
        if block.op is None and block.name not in weights:
            values[block.name] = torch.tensor(graph.values[block.name].astype(float))
        elif block.op is not None:
            views = {
                (b, at): view(values[b.name], at, block, block.mask) for _, at, b in block.operands
            }
            x = run(block, views)
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
