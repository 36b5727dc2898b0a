"""Derivatives of formulas, as formulas again.

A function's derivatives are in its row of `functions`; those of operators follow from the algebra
here. It keeps formulas short: a product is a number times factors over others, with equal factors
cancelled; equal terms of a sum are one term with a coefficient.

Formulas over blocks use the subscripts of `access`, and one more: `r` is the index along a line
that a function reduces. Anything without a derivative counts as constant: ranks, comparisons,
picked ids, and whatever is wrapped in `Held`, such as a softmax's maximum, which cancels.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from typing import Any

from cellformer.engine.cells.access import Subscript
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import (
    Call,
    Constant,
    Expression,
    Negative,
    Nth,
    Operation,
    Read,
    ReadKey,
    expression,
    rebuilt,
    steps,
)
from cellformer.engine.cells.functions import IF, POWER, place

# --- a formula as a product, and as a sum -------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """factor × numerators / (divisor × denominators). The divisor is separate from the factor,
    since a third has no exact decimal in a formula."""

    factor: float
    over: tuple[Expression, ...]
    under: tuple[Expression, ...]
    divisor: float = 1


def product(x: Expression) -> Product:
    """A formula as a product."""
    over: list[Expression] = []
    under: list[Expression] = []
    factors, divisors = [1.0], [1.0]
    while isinstance(x, Operation) and x.sign in "*/":
        p = product(x.right)
        above, below = (over, under) if x.sign == "*" else (under, over)
        times_, by = (factors, divisors) if x.sign == "*" else (divisors, factors)
        above[:0], below[:0] = p.over, p.under
        times_.append(p.factor)
        by.append(p.divisor)
        x = x.left
    if isinstance(x, Constant):
        factors.append(x.number)
    else:
        over.insert(0, x)
    return Product(prod(factors), tuple(over), tuple(under), prod(divisors))


def formula(p: Product) -> Expression:
    """A product as a formula, after cancelling."""
    below, factor, divisor = [*p.under], p.factor, p.divisor
    above: list[Expression] = []
    for x in p.over:
        same = next((k for k, y in enumerate(below) if y.key == x.key), None)
        if same is None:
            above.append(x)
        else:
            del below[same]
    if factor and divisor != 1 and (factor / divisor).is_integer():
        factor, divisor = factor / divisor, 1
    if factor == 0:
        return Constant(0)
    found = reduce(partial(Operation, "*"), above) if above else number(factor)
    if above and factor != 1:
        found = Operation("*", number(factor), found)
    return reduce(partial(Operation, "/"), below + [number(divisor)] * (divisor != 1), found)


def number(x: float) -> Constant:
    """A number for formulas: a whole one without a decimal point."""
    return Constant(int(x) if float(x).is_integer() else float(x))


def times(*xs: Any) -> Expression:
    """A product of formulas and numbers."""
    ps = [product(expression(x)) for x in xs]
    over = tuple(x for p in ps for x in p.over)
    under = tuple(x for p in ps for x in p.under)
    return formula(Product(prod(p.factor for p in ps), over, under, prod(p.divisor for p in ps)))


def over(x: Any, y: Any) -> Expression:
    """A quotient of formulas and numbers."""
    p, q = product(expression(x)), product(expression(y))
    factor, divisor = q.divisor, p.divisor
    if float(q.factor).is_integer():
        divisor *= q.factor
    else:  # it stays a factor: 1 / 0.5
        factor /= q.factor
    factor *= p.factor
    return formula(Product(factor, p.over + q.under, p.under + q.over, divisor))


def terms(x: Expression) -> list[Expression]:
    """A formula as a list of terms."""
    found: list[Expression] = []
    while isinstance(x, Operation) and x.sign in "+-":
        more = terms(x.right)
        found[:0] = more if x.sign == "+" else [times(-1, term) for term in more]
        x = x.left
    return [x, *found]


def plus(*xs: Any) -> Expression:
    """A sum of formulas and numbers; equal terms are one with a coefficient. Subtracted terms come
    last."""
    constant, counted = 0.0, dict[Any, tuple[float, Product]]()
    for p in (product(term) for x in xs for term in terms(expression(x))):
        if not p.over and not p.under:
            constant += p.factor / p.divisor
            continue
        kind = tuple(x.key for x in p.over), tuple(x.key for x in p.under), p.divisor
        counted[kind] = counted.get(kind, (0.0, p))[0] + p.factor, p
    sizes = [
        Product(factor, p.over, p.under, p.divisor) for factor, p in counted.values() if factor
    ]
    if constant or not sizes:
        sizes.append(Product(constant, (), ()))
    first = next((p for p in sizes if p.factor >= 0), sizes[0])
    others = [p for p in sizes if p is not first]
    found = formula(first)
    for p in sorted(others, key=lambda p: p.factor < 0):
        size = Product(abs(p.factor), p.over, p.under, p.divisor)
        found = Operation("-" if p.factor < 0 else "+", found, formula(size))
    return found


def simplified(root: Expression) -> Expression:
    """A formula with its sums and products as short as possible."""

    def change(part: Expression) -> Expression:
        match part:
            case Operation("+", x, y):
                return plus(x, y)
            case Operation("-", x, y):
                return plus(x, times(-1, y))
            case Negative(x):
                return times(-1, x)
            case Operation("*", x, y):
                return times(x, y)
            case Operation("/", x, y):
                return over(x, y)
        return part

    return rebuilt(root, change)


# --- what a block's cells read --------------------------------------------------------------------


def own(block: Block) -> Subscript:
    """A cell's own index on an axis; an axis of one entry has none."""
    rows, cols = block.shape
    return "i" if rows > 1 else "0", "j" if cols > 1 else "0"


def shared(block: Block) -> Expression:
    """The simplified formula of a block's cells, over operands with as few indices as possible."""
    assert block.op is not None
    fewer = dict(zip("ij", own(block), strict=True)) | {"≤i": "≤i" if block.mask.causal else ":"}
    reads = [
        (name, Read(operand, (fewer.get(at[0], at[0]), fewer.get(at[1], at[1]))))
        for name, at, operand in block.sources
    ]
    return simplified(block.op.formula([*reads]))


def reads(root: Expression) -> Iterator[Read]:
    """Every cell and line that a formula reads."""
    return (part for part, _ in steps(root) if isinstance(part, Read))


# --- reverse mode ---------------------------------------------------------------------------------


def derivatives(
    root: Expression, known: Callable[[Expression], Expression]
) -> dict[ReadKey, Expression]:
    """The derivative of a value by each cell that its formula reads, and by the r-th cell of
    each line. If a part of the formula has a cell of its own, `known` gives that cell."""
    found: dict[ReadKey, Expression] = {}

    def back(part: Expression, slope: Expression) -> None:
        """Pass the derivative by a part of the formula on to its own parts."""
        if isinstance(part, Read):
            found[part.key] = plus(found.get(part.key, 0), slope)
        elif isinstance(part, Operation) and part.sign in "+-":
            for term in terms(part):
                back(term, slope)
        elif isinstance(part, Operation) and part.sign in "*/":
            p = product(part)
            for k, x in enumerate(p.over):
                others = Product(p.factor, p.over[:k] + p.over[k + 1 :], p.under, p.divisor)
                back(x, times(slope, formula(others)))
            for x in p.under:
                back(x, times(-1, slope, over(known(part), x)))
        else:
            for x, share in slopes(part, known(part)):
                back(x, times(slope, simplified(expression(share))))

    back(root, Constant(1))
    return {key: slope for key, slope in found.items() if product(slope).factor}


def slopes(part: Expression, y: Expression) -> list[tuple[Expression, Any]]:
    """The derivatives of a call, whose value is y, by its arguments."""
    if isinstance(part, Nth):
        k = part.k - part.first if part.first else part.k
        return [(part.line, IF(k == place(part.line), 1, 0))]
    if isinstance(part, Operation) and part.sign == "^":
        part = POWER(part.left, part.right)
    if isinstance(part, Call) and part.function.slopes:
        return list(part.function.slopes(y, *part.arguments))
    return []
