"""The trace interpreter: an op as an expression over what it reads, and that one's derivatives.

An op that is run on `Read`s gives a `Node`. Its subscripts are those of `access`, and one more: `r`
is the place along a line that a reduction runs through. Beside every primitive stands its reverse
rule (`RULES`): what its arguments are answerable for of its value.

What has no derivative counts as constant: ranks, comparisons, picked ids. `held` is constant by
wish: a softmax's maximum, which cancels. Of a maximum each cell that reaches it gets all of its
gradient.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from engine.cells.access import ALONG, Subscript
from engine.cells.block import Block
from engine.cells.op import Math

ERF_SLOPE = 1.1283791670955126  # of erf at 0: 2 / sqrt(pi)


class Node:
    """An expression that is not computed yet; an operand of arithmetic is one, or a number."""

    def __add__(self, other: Any) -> Any:
        return plus(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return plus(self, times(-1, other))

    def __rsub__(self, other: Any) -> Any:
        return plus(other, times(-1, self))

    def __mul__(self, other: Any) -> Any:
        return times(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return over(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return over(other, self)


@dataclass(frozen=True)
class Read(Node):
    """One cell of a block, or a line of them: as a subscript says."""

    block: Block
    at: Subscript

    @property
    def axis(self) -> int | None:
        """The axis that it runs along; None: it is one cell."""
        return next((axis for axis, code in enumerate(self.at) if code in ALONG), None)


@dataclass(frozen=True)
class Place(Node):
    """Which entry of an axis of a block `r` is, counted from 0."""

    block: Block
    axis: int


@dataclass(frozen=True)
class Call(Node):
    """A primitive and its arguments."""

    name: str
    args: tuple[Any, ...]


@dataclass(frozen=True)
class Sum(Node):
    """Terms, at most one of them a number."""

    terms: tuple[Any, ...]


@dataclass(frozen=True)
class Product(Node):
    """factor × numerators / (divisor × denominators). The divisor is apart from the factor: a third
    is no number that a formula can spell."""

    factor: float
    over: tuple[Node, ...]
    under: tuple[Node, ...]
    divisor: float


def product(x: Any) -> Product:
    """Anything as a product."""
    if isinstance(x, Product):
        return x
    return Product(1, (x,), (), 1) if isinstance(x, Node) else Product(x, (), (), 1)


def _simple(factor: float, above: list[Node], below: list[Node], divisor: float) -> Any:
    """A product, without what cancels; a number or a single node where that is all."""
    for node in [*above]:
        if node in below:
            above.remove(node)
            below.remove(node)
    if factor and divisor != 1 and (factor / divisor).is_integer():
        factor, divisor = factor / divisor, 1
    if factor == 0 or not (above or below or divisor != 1):
        return float(factor)
    if factor == 1 and divisor == 1 and not below and len(above) == 1:
        return above[0]
    return Product(factor, tuple(above), tuple(below), divisor)


def times(*xs: Any) -> Any:
    """A product of nodes and numbers."""
    factor, divisor = 1.0, 1.0
    above: list[Node] = []
    below: list[Node] = []
    for p in map(product, xs):
        factor, divisor = factor * p.factor, divisor * p.divisor
        above += p.over
        below += p.under
    return _simple(factor, above, below, divisor)


def over(x: Any, y: Any) -> Any:
    """A quotient of nodes and numbers."""
    p = product(y)
    whole = float(p.factor).is_integer()  # else it stays a factor: 1 / 0.5
    inverse = Product(p.divisor, p.under, p.over, p.factor) if whole else None
    return times(x, inverse or Product(p.divisor / p.factor, p.under, p.over, 1))


def plus(*xs: Any) -> Any:
    """A sum of nodes and numbers; equal terms are one, taken so many times."""
    number, counted = 0.0, dict[tuple[Any, ...], float]()
    for x in xs:
        for term in x.terms if isinstance(x, Sum) else (x,):
            p = product(term)
            if not p.over and not p.under:
                number += p.factor / p.divisor
                continue
            kind = (p.over, p.under, p.divisor)
            counted[kind] = counted.get(kind, 0.0) + p.factor
    terms: list[Any] = [
        _simple(factor, [*above], [*below], divisor)
        for (above, below, divisor), factor in counted.items()
        if factor
    ]
    if number or not terms:
        terms.append(number)
    return terms[0] if len(terms) == 1 else Sum(tuple(terms))


# --- an op as an expression ---------------------------------------------------------------------


class _Tracer:
    """The `m` that ops call: a primitive is a call that is not made yet."""

    def count(self, line: Read) -> int:
        assert line.axis is not None
        return line.block.shape[line.axis]

    def __getattr__(self, name: str) -> Callable[..., Call]:
        return lambda *args: Call(name, args)


_TRACER = cast(Math, _Tracer())


def own(block: Block) -> Subscript:
    """How a cell's own place is written: an axis of one entry has no index."""
    rows, cols = block.shape
    return "i" if rows > 1 else "0", "j" if cols > 1 else "0"


def trace(block: Block) -> Any:
    """The expression of a computed block's cell at row i and column j."""
    assert block.op is not None
    pairs = [(name, reading(block, at, operand)) for name, at, operand in block.operands]
    return block.op.call(_TRACER, pairs)


def reading(block: Block, at: Subscript, operand: Block) -> Read:
    """What a cell of a block reads of an operand, in the fewest indices."""
    rows, cols = block.shape
    fewer = {"i": "i" if rows > 1 else "0", "j": "j" if cols > 1 else "0"}
    fewer |= {"≤i": "≤i" if block.mask.causal else ":"}
    return Read(operand, (fewer.get(at[0], at[0]), fewer.get(at[1], at[1])))


# --- reverse rules --------------------------------------------------------------------------------


def entry(line: Read) -> Read:
    """The r-th cell of a line."""
    at = ["r" if axis == line.axis else code for axis, code in enumerate(line.at)]
    return Read(line.block, (at[0], at[1]))


def _varp(y: Node, x: Read) -> list[tuple[Any, Any]]:
    n = _TRACER.count(x)
    return [(x, (entry(x) - Call("mean", (x,))) * 2 / n)]


def _lookup(y: Node, table: Read, ids: Read) -> list[tuple[Any, Any]]:
    assert table.axis is not None
    return [(table, Call("equal", (ids, Place(table.block, table.axis))))]


# A primitive's value and its arguments -> (argument, derivative); of a line, that of its r-th cell.
RULES: dict[str, Callable[..., Sequence[tuple[Any, Any]]]] = {
    "dot": lambda y, a, b: [(a, entry(b)), (b, entry(a))],
    "sum": lambda y, x: [(x, 1)],
    "mean": lambda y, x: [(x, over(1, _TRACER.count(x)))],
    "varp": _varp,
    "max": lambda y, x: [(x, Call("equal", (entry(x), y)))],
    "maximum": lambda y, x, z: [(x, Call("below", (z, x))), (z, Call("below", (x, z)))],
    "lookup": _lookup,
    "power": lambda y, x, n: [(x, n * y / x), (n, y * Call("log", (x,)))],
    "exp": lambda y, x: [(x, y)],
    "log": lambda y, x: [(x, 1 / x)],
    "sqrt": lambda y, x: [(x, 0.5 / y)],
    "tanh": lambda y, x: [(x, 1 - y * y)],
    "erf": lambda y, x: [(x, ERF_SLOPE * Call("exp", (-1 * x * x,)))],
    "sin": lambda y, x: [(x, Call("cos", (x,)))],
    "cos": lambda y, x: [(x, -1 * Call("sin", (x,)))],
    "rank": lambda y, *xs: [],
    "below": lambda y, *xs: [],
    "equal": lambda y, *xs: [],
    "held": lambda y, *xs: [],
}


def derivatives(root: Any, known: Callable[[Any], Any]) -> dict[Read, Any]:
    """What a value depends on, and how much: the derivative by each cell that it reads, by the r-th
    one of a line. `known` gives the cell where a part of the expression stands already."""
    found: dict[Read, Any] = {}

    def back(node: Any, slope: Any) -> None:
        """Add what a part of the expression is answerable for: its own slope is known."""
        if isinstance(node, Read):
            found[node] = plus(found.get(node, 0.0), slope)
        elif isinstance(node, Sum):
            for term in node.terms:
                back(term, slope)
        elif isinstance(node, Product):
            p = node
            for k, x in enumerate(p.over):
                others = replace(p, over=p.over[:k] + p.over[k + 1 :])
                back(x, times(slope, others))
            for x in p.under:
                back(x, times(-1, slope, over(known(p), x)))
        elif isinstance(node, Call):
            for x, share in RULES[node.name](known(node), *node.args):
                back(x, times(slope, share))

    back(root, 1)
    return {read: slope for read, slope in found.items() if slope != 0}


# --- an expression as an op ---------------------------------------------------------------------


def children(node: Any) -> tuple[Any, ...]:
    """What an expression is made of, one step down."""
    match node:
        case Sum(terms):
            return terms
        case Product(_, above, below, _):
            return above + below
        case Call(_, args):
            return args
    return ()


def rebuilt(node: Any, change: Callable[[Any], Any]) -> Any:
    """An expression of which every part is changed, from its leaves on."""
    match node:
        case Sum(terms):
            return change(plus(*(rebuilt(x, change) for x in terms)))
        case Product(factor, above, below, divisor):
            over_ = [rebuilt(x, change) for x in above]
            under = times(*(rebuilt(x, change) for x in below))
            return change(over(times(factor, *over_), times(divisor, under)))
        case Call(name, args):
            return change(Call(name, tuple(rebuilt(x, change) for x in args)))
    return change(node)


def reads(node: Any) -> Iterator[Read]:
    """Every cell and line that an expression reads, again and again."""
    if isinstance(node, Read):
        yield node
    for child in children(node):
        yield from reads(child)


# the interpreter, the operands, what the steps before came to -> what this one comes to
Step = Callable[[Math, dict[str, Any], list[Any]], Any]


class Formula:
    """An expression as the function of an op: its steps, each part once."""

    def __init__(self, root: Any, names: dict[Read, str]):
        self._steps: list[Step] = []
        self._at: dict[Any, int] = {}
        self._names = names
        self._add(root)

    def _add(self, node: Any) -> int:
        if node not in self._at:
            what = self._names.get(node, node)
            parts: Sequence[Any] = children(node)
            if isinstance(node, Sum):
                what, parts = _signed(node.terms)
            of = tuple(self._add(part) for part in parts)
            self._at[node] = len(self._steps)
            self._steps.append(_step(what, of))
        return self._at[node]

    def __call__(self, m: Math, **operands: Any) -> Any:
        values: list[Any] = []
        for step in self._steps:
            values.append(step(m, operands, values))
        return values[-1]


def _step(what: Any, of: tuple[int, ...]) -> Step:
    """One step: an operand by its name, a number, or a call, a sum, a product of earlier steps."""
    match what:
        case str():
            return lambda m, operands, values: operands[what]
        case Call(name, _):
            return lambda m, operands, values: getattr(m, name)(*[values[k] for k in of])
        case list():
            return lambda m, operands, values: _summed(what, [values[k] for k in of])
        case Product(factor, above, _, divisor):
            n, times_, by = len(above), spelt(factor), spelt(divisor)
            return lambda m, operands, values: _multiplied(
                times_, [values[k] for k in of[:n]], [values[k] for k in of[n:]], by
            )
    number = spelt(what)
    return lambda m, operands, values: number


def _signed(terms: tuple[Any, ...]) -> tuple[list[bool], list[Any]]:
    """Terms as they are spelt: which are taken away, and their sizes; the first never is."""
    less = [product(term).factor < 0 for term in terms]
    order = sorted(range(len(terms)), key=lambda k: less[k])
    first, *others = order
    taken = [False] + [less[k] for k in others]
    sizes = [times(-1, terms[k]) if less[k] else terms[k] for k in others]
    return taken, [terms[first], *sizes]


def _summed(taken: list[bool], xs: list[Any]) -> Any:
    """A sum of values, some of them taken away."""
    total = xs[0]
    for away, x in zip(taken[1:], xs[1:], strict=True):
        total = total - x if away else total + x
    return total


def _multiplied(factor: float, above: list[Any], below: list[Any], divisor: float) -> Any:
    """A product of values."""
    found = above[0] if above else factor
    for x in above[1:]:
        found = found * x
    if above and factor != 1:
        found = factor * found
    for x in below:
        found = found / x
    return found if divisor == 1 else found / divisor


def spelt(number: float) -> float:
    """A number as formulas spell it: a whole one without a point."""
    return int(number) if float(number).is_integer() else float(number)
