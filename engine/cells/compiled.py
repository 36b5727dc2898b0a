"""Formulas compiled to Python functions over arrays and `Line`s (see `lines`).

Operators are numpy's own; functions are computed by the column `arrays` of their row in
`functions`, or else cell by cell. A part that occurs several times in a formula is computed once.
All other intermediate results are freed as soon as they are used, and numpy writes sums and
products into their memory, which for wide blocks takes a quarter of the time that keeping them
takes.

Formulas with the same text share a function, so that a graph of a thousand blocks compiles few.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from math import inf, nan
from typing import Any

import numpy as np

from cellformer.engine.cells import lines
from cellformer.engine.cells.expression import (
    ATOM,
    LEVELS,
    NEGATIVE,
    Call,
    Constant,
    Expression,
    Function,
    Held,
    Negative,
    Nth,
    Operation,
    Read,
    ReadKey,
    Spelt,
    steps,
)
from cellformer.engine.cells.lines import Line
from cellformer.engine.cells.values import NUMBERS, TRUTHS, FormulaError, no_error

Compute = Callable[..., Any]
ARITHMETIC = "+-*/"  # signs that Python has, too


def _comparison(holds: Compute) -> Compute:
    """1 or 0 for a comparison: numpy's truth values cannot be added."""
    return lambda x, y: holds(x, y).astype(np.float64)


SIGNS: dict[str, Compute] = {
    "^": np.power,
    "=": _comparison(np.equal),
    "<>": _comparison(np.not_equal),
    "<": _comparison(np.less),
    "<=": _comparison(np.less_equal),
    ">": _comparison(np.greater),
    ">=": _comparison(np.greater_equal),
}


def compiled(root: Expression, operands: Sequence[ReadKey]) -> Compute:
    """A formula as a function of its operands' views."""
    parts = steps(root)
    uses = Counter(k for _, of in parts for k in of)
    texts: list[Spelt] = []
    kept: list[str] = []
    computes: dict[Compute, str] = {}
    for k, (part, of) in enumerate(parts):
        spelt = _spelt(part, [texts[n] for n in of], operands, computes)
        if of and uses[k] > 1:
            kept.append(f"    y{k} = {spelt[0]}")
            spelt = f"y{k}", ATOM
        texts.append(spelt)
    arguments = ", ".join(f"x{k}" for k in range(len(operands)))
    source = [f"def formula({arguments}):", *kept, f"    return {texts[-1][0]}"]
    return _defined("\n".join(source), tuple(computes))


def _spelt(
    part: Expression, of: list[Spelt], operands: Sequence[ReadKey], computes: dict[Compute, str]
) -> Spelt:
    """A part of a formula as Python source, and how tightly its operator binds."""
    match part:
        case Read():
            return f"x{operands.index(part.key)}", ATOM
        case Constant():
            number = part.number
            return repr(float(number) if isinstance(number, float) else number), ATOM
        case Held():
            return of[0]
        case Negative():
            return f"-{_within(of[0], ATOM)}", NEGATIVE
        case Operation() if part.sign in ARITHMETIC:
            level = LEVELS[part.sign]
            return f"{_within(of[0], level)} {part.sign} {_within(of[1], level + 1)}", level
    name = computes.setdefault(_compute(part), f"f{len(computes)}")
    return f"{name}({', '.join(text for text, _ in of)})", ATOM


def _within(spelt: Spelt, least: int) -> str:
    text, level = spelt
    return text if level >= least else f"({text})"


@lru_cache(maxsize=1024)
def _defined(source: str, computes: tuple[Compute, ...]) -> Compute:
    names: dict[str, Any] = {f"f{k}": compute for k, compute in enumerate(computes)}
    names |= {"inf": inf, "nan": nan}
    exec(source, names)
    found: Compute = names["formula"]
    return found


def _compute(part: Expression) -> Compute:
    """A function, or another operator, applied to arrays and lines."""
    if isinstance(part, Call):
        return _of_function(part.function)
    return _of_nth(part.first) if isinstance(part, Nth) else SIGNS[part.name]


@cache
def _of_function(function: Function) -> Compute:
    arrays = function.arrays
    if arrays is None:
        return partial(cell_by_cell, function)

    def compute(*xs: Any) -> Any:
        found = arrays(*xs)
        return cell_by_cell(function, *xs) if found is NotImplemented else found

    return compute


@cache
def _of_nth(first: int) -> Compute:
    def of_one_cell(line: Any, k: Any) -> Any:
        return Nth(Constant(line), Constant(k), first).value(lambda area: None)

    return _of_function(Function("nth", of_one_cell, arrays=partial(lines.entry, first=first)))


def cell_by_cell(function: Function, *xs: Any) -> np.ndarray:
    """A function over arrays and lines, computed for one cell at a time as in tables; errors, and
    values that are not numbers, become nan."""

    def apply(*values: Any) -> float:
        try:
            found = function.compute(
                *[partial(no_error, v) if function.lazy else v for v in values]
            )
        except FormulaError:
            return np.nan
        return float(found) if isinstance(found, NUMBERS + TRUTHS) else np.nan

    if not xs:
        return np.asarray(apply())
    arrays = [_cells(x) if isinstance(x, Line) else x for x in xs]
    return np.asarray(np.vectorize(apply, otypes=[np.float64])(*arrays))


def _cells(line: Line) -> np.ndarray:
    """The row or column that each cell reads: an object array oriented like the output. A single
    cell is a number."""
    *others, n_lines, _ = line.values.shape
    by_row = line.along == "i"
    n_rows = 1 if line.seen is None else len(line.seen)
    found = np.empty((*others, n_lines, 1) if by_row else (*others, n_rows, n_lines), dtype=object)
    for index in np.ndindex(found.shape):
        *variant, row, col = index
        cells = line.values[(*variant, row if by_row else col)]
        cells = cells if line.seen is None else cells[line.seen[row]]
        found[index] = cells.reshape(-1, 1) if line.down else cells.reshape(1, -1)
        if cells.size == 1:
            found[index] = cells.item()
    return found
