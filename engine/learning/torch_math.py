"""The torch interpreter: a graph's ops over whole batches, under torch's autograd.

Every array has four axes: sentence of the batch, block of a stack (see `stacks`), row, column. An
axis along which all values are equal has length 1, and broadcasts. Views of operands and functions
are written separately from numpy's, so that tests can compare the two.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import torch

from cellformer.engine.cells.access import ALONG, partners, shift
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Constant, Read
from cellformer.engine.cells.graph import Graph
from cellformer.engine.learning.stacks import Pattern, Step, stacks

Tensor = torch.Tensor
F = torch.nn.functional


# --- signs and functions ------------------------------------------------------------------------


@dataclass(slots=True)
class Line:
    """The cells that a cell reads along an axis, for every row (i) or column (j) of the output at
    once.

    Masked cells hold neutral values: -inf for a maximum, 0 for a sum.
    """

    values: Tensor  # [batch, stack, n_lines, n_read]
    along: str  # 'i': one line per output row; 'j': one per column

    def oriented(self, x: Tensor) -> Tensor:
        """A result per line, [batch, stack, n_lines], as rows or columns."""
        return x[..., None] if self.along == "i" else x[..., None, :]


def product_sum(a: Line, b: Line) -> Tensor:
    """Sum of products along both lines."""
    if a.along == b.along:
        return a.oriented(torch.einsum("bslr,bslr->bsl", a.values, b.values))
    return torch.einsum(f"bs{a.along}r,bs{b.along}r->bsij", a.values, b.values)


def variance(line: Line) -> Tensor:
    """Variance along each line, of a whole population; torch's own takes ten times as long."""
    centred = line.values - line.values.mean(-1, keepdim=True)
    return line.oriented((centred * centred).mean(-1))


def largest(x: Any, *others: Any) -> Any:
    """The maximum of a line, or of cells; of equal ones the last gets the gradient."""
    if not others:
        return x.oriented(x.values.amax(-1))
    return reduce(lambda found, y: torch.where(found > y, found, y), others, x)


def smallest(x: Any, *others: Any) -> Any:
    """The minimum of a line, or of cells, in the same way."""
    if not others:
        return x.oriented(x.values.amin(-1))
    return reduce(lambda found, y: torch.where(found < y, found, y), others, x)


def lookup(table: Line, ids: Tensor) -> Tensor:
    """Entry `ids` of each line of a table that all sentences share; if each cell of the output has
    an id, its entry of the line of its row or column."""
    if ids.shape[-1] > 1:
        ids = ids.mT if table.along == "j" else ids
        rows = table.values.expand(-1, -1, ids.shape[-2], -1)
        found = torch.gather(rows, -1, ids.long().expand(*rows.shape[:3], -1))
        return found.mT if table.along == "j" else found
    n = max(table.values.shape[1], ids.shape[1])
    tables, entries = table.values[0].expand(n, -1, -1), ids[..., 0].long().expand(-1, n, -1)
    return torch.stack([F.embedding(entries[:, k], tables[k].T) for k in range(n)], 1)


def rank(x: Tensor, line: Line, place: Tensor, places: Line) -> Tensor:
    """The number of cells of each line before a cell: larger ones, or equal ones at earlier
    places."""
    here, others = x[..., None], line.values[..., None, :]
    earlier = (others == here) & (places.values[..., None, :] < place[..., None])
    return ((others > here) | earlier).sum(-1).to(x.dtype)


TORCH: dict[str, Callable[..., Any]] = {  # signs and functions, by their names
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "<": lambda x, y: (x < y).to(x.dtype),
    "=": lambda x, y: (x == y).to(x.dtype),
    "held": torch.detach,
    "negative": operator.neg,
    "nth": lookup,
    "AVERAGE": lambda line: line.oriented(line.values.mean(-1)),
    "COS": torch.cos,
    "ERF": torch.erf,
    "EXP": torch.exp,
    "IF": lambda condition, x, y: torch.where(condition > 0, x, y).to(condition.dtype),
    "LN": torch.log,
    "MAX": largest,
    "MIN": smallest,
    "ORDER": rank,
    "SIN": torch.sin,
    "SQRT": torch.sqrt,
    "SUM": lambda line: line.oriented(line.values.sum(-1)),
    "SUMPRODUCT": product_sum,
    "TANH": torch.tanh,
    "VARP": variance,
}


def run(block: Block, views: Mapping[Any, Any]) -> Any:
    """The value of a block's formula, given views of its operands."""
    found: list[Any] = []
    for part, of in block.steps:
        if isinstance(part, Read):
            found.append(views[part.key])
        elif isinstance(part, Constant):
            found.append(part.number)
        else:
            if part.name not in TORCH:
                raise NotImplementedError(
                    f"torch cannot compute {part.name} of {block.name}: add a line to TORCH of"
                    " engine/learning/torch_math.py"
                )
            found.append(TORCH[part.name](*[found[k] for k in of]))
    return found[-1]


# --- what torch computes in one go ------------------------------------------------------------


def layer_norm(x: Tensor, eps: Tensor) -> Tensor:
    """Every row with a mean of 0 and a deviation of 1."""
    return F.layer_norm(x, x.shape[-1:], eps=float(eps.flatten()[0]))


def rms_norm(x: Tensor, eps: Tensor) -> Tensor:
    """Every row divided by its root mean square."""
    return F.rms_norm(x, x.shape[-1:], eps=float(eps.flatten()[0]))


E = ("exp", "x", ("row_max", "x"))
KERNELS: dict[Pattern, Callable[..., Tensor]] = {
    ("relu", "x"): F.relu,
    ("gelu", "x"): F.gelu,
    ("gelu_tanh", "x"): partial(F.gelu, approximate="tanh"),
    ("silu", "x"): F.silu,
    ("fraction", E, ("row_sum", E)): partial(torch.softmax, dim=-1),
    ("normalize", "x", ("mean", "x"), ("deviation", "x", "eps")): layer_norm,
    ("divide_rows", "x", ("root_mean_square", "x", "eps")): rms_norm,
}


# --- graphs -----------------------------------------------------------------------------------


class Place(NamedTuple):
    """The place of a block's values in memory."""

    stack: Tensor  # [batch, stack, rows, columns]
    k: int  # which of the stack

    @property
    def values(self) -> Tensor:
        """[batch, rows, columns]"""
        return self.stack[:, self.k]


class Pass:
    """Computes one block of a graph for any values of the inputs that are `given`: op by op, except
    for the patterns of `kernels`."""

    def __init__(
        self,
        graph: Graph,
        of: str,
        given: Iterable[str],
        dtype: torch.dtype,
        kernels: Mapping[Pattern, Callable[..., Tensor]] = KERNELS,
    ) -> None:
        given = set(given)
        self._stacks, self._kernels = stacks(graph, of, given, kernels), kernels
        steps = [step for stack in self._stacks for step in stack]
        read = {b.name for step in steps for b in step.operands}
        self._still = {
            name: Place(torch.tensor(graph.values[name], dtype=dtype)[None, None], 0)
            for name in read - {step.block.name for step in steps} - given
        }
        by_op = [stack[0].block for stack in self._stacks if stack[0].pattern is None]
        self._seen = {
            block.name: torch.tensor(block.mask.seen(block.whole))
            for block in by_op
            if block.partial and not leaves_blanks(block)
        }

    def __call__(self, given: Mapping[str, Tensor]) -> dict[str, Place]:
        """The values of all blocks on the way, of inputs [rows, columns] or, for a batch, [batch,
        rows, columns]."""
        places = dict(self._still)
        for name, x in given.items():
            places[name] = Place(x[:, None] if x.ndim > 2 else x[None, None], 0)
        for stack in self._stacks:
            x = self._computed(stack, places)
            places |= {step.block.name: Place(x, k) for k, step in enumerate(stack)}
        return places

    def _computed(self, stack: list[Step], places: Mapping[str, Place]) -> Tensor:
        """The values of alike blocks: [batch, stack, rows, columns]."""
        block, pattern, _ = stack[0]
        read = zip(*(step.operands for step in stack), strict=True)
        arrays = [gathered([places[b.name] for b in blocks]) for blocks in read]
        if pattern is not None:
            x = self._kernels[pattern](*arrays)
        else:
            reads = zip(block.operands, arrays, strict=True)
            views = {(b, at): view(x, at) for (_, at, b), x in reads}
            x = row_by_row(block, views) if block.recurs else run(block, views)
        if block.op and block.name in self._seen:
            x = torch.where(self._seen[block.name], x, block.op.blank)
        return x.expand(-1, len(stack), *block.shape)


def row_by_row(block: Block, views: Mapping[Any, Tensor]) -> Tensor:
    """The value of a recurrence, each of whose rows reads the row before it."""
    own = next((b, at) for _, at, b in block.sources if b is block)
    n_rows, n_cols = block.shape
    rows = [torch.zeros(1, 1, 1, n_cols, dtype=next(iter(views.values())).dtype)]
    for i in range(n_rows):
        here = {
            key: x[..., i : i + 1, :] if x.shape[-2] == n_rows else x for key, x in views.items()
        }
        rows.append(run(block, here | {own: rows[-1]}))
    return torch.cat([row.expand(*rows[-1].shape[:2], -1, -1) for row in rows[1:]], -2)


def gathered(places: Sequence[Place]) -> Tensor:
    """The operands of a stack's blocks as one array: [batch, stack, rows, columns]. Without a copy
    if they are one block, or evenly spaced in one stack."""
    stack, ks = places[0].stack, [place.k for place in places]
    if any(place.stack is not stack for place in places):
        batch = max(len(x) for x, _ in places)
        return torch.cat([x[:, k : k + 1].expand(batch, -1, -1, -1) for x, k in places], 1)
    first, last, step = ks[0], ks[-1], ks[1] - ks[0] if len(ks) > 1 else 1
    if len(set(ks)) == 1:
        return stack[:, first : first + 1]
    if step > 0 and ks == [*range(first, last + 1, step)]:
        return stack[:, first : last + 1 : step]
    return stack.index_select(1, torch.tensor(ks))


def view(x: Tensor, at: tuple[str, str]) -> Any:
    """An op's view of an operand: its axes in the output's order."""
    rows, cols = at
    if cols in ALONG:
        return Line(x, "j" if rows == "j" else "i")
    if rows in ALONG:
        x = x[..., int(cols[1:]), None] if cols[0] == "@" else x
        return Line(x.mT, "j" if cols == "j" else "i")
    if cols[0] == "@":
        x = x[..., int(cols[1:]), None]
    elif cols[0] == "~":
        x = x[..., partners(cols, 0, x.shape[-1])]
    if rows[0] == "@":
        x = x[..., int(rows[1:]), None, :]
    elif back := -shift(rows):  # rows before the first are 0
        x = F.pad(x, (0, 0, max(back, 0), max(-back, 0)))
        x = x[..., : x.shape[-2] - back, :] if back > 0 else x[..., -back:, :]
    return x.mT if rows == "j" or cols == "i" else x


def leaves_blanks(block: Block) -> bool:
    """Whether an op turns its operands' blanks into its own, as the exponential of -inf is 0.
    Nothing then needs to be hidden."""
    assert block.op is not None
    if any(code in ALONG for _, at, _ in block.operands for code in at):
        return False
    blanks = {b: b.op.blank if b.op and b.partial else 1.0 for _, _, b in block.operands}
    cells = {(b, at): torch.tensor(blanks[b]) for _, at, b in block.operands}
    return bool(run(block, cells) == block.op.blank)
