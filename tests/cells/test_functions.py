"""Every function and every sign, of every kind of argument, in every interpreter.

What a function takes is what it computes in one cell. A combination of arguments counts if that is
a number in the last cell of a block, where a line that ends at its row is whole; an error in every
cell is skipped, and so is a range, or a text. Of what counts, an op has the same values over the
whole block; in IronCalc its text has them too; its gradient is that of finite differences; and
people read its operands' names.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from ironcalc_sheet import Sheet
from test_gradient import to_one_cell

from cellformer.engine import Graph
from cellformer.engine.cells import functions
from cellformer.engine.cells.access import Mask, Rect, reads
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.cell_gradient import of_cell
from cellformer.engine.cells.expression import (
    Area,
    Expression,
    Function,
    Held,
    Negative,
    Nth,
    Operation,
    expression,
)
from cellformer.engine.cells.formula import equation
from cellformer.engine.cells.gradient import backward
from cellformer.engine.cells.op import Op
from cellformer.engine.cells.table import Reader
from cellformer.engine.cells.values import SIGNS, FormulaError

N = 3  # rows and columns of every operand
STEP = 1e-5
KINDS = {  # of arguments, and how an op reads them
    "cell": "i,j",
    "row": "i,:",
    "column": ":,j",
    "row up to i": "i,≤i",
    "column up to i": "≤i,j",
    "constant": "",
}
PLAIN = ("cell", "row", "constant")  # the kinds of three and more arguments
WHOLE = {  # arguments that are whole numbers, and from which on; others are between 0 and 1
    "CHOOSE": {0: 1},
    "COUNTIF": {0: 1, 1: 1},
    "FIND": {0: 1, 2: 1},
    "IF": {0: 0},
    "INDEX": {1: 1, 2: 1},
    "LARGE": {1: 1},
    "MATCH": {0: 1, 1: 1, 2: 0},
    "RANK": {0: 1, 1: 1},
    "REPT": {1: 1},
    "ROUND": {1: 1},
    "SUMIF": {0: 1, 1: 1},
    "UNICHAR": {0: 1},
    "nth from 0": {1: 0},
    "nth from 1": {1: 1},
}
RANGES = {  # arguments that are ranges: programs differ about a lone cell there
    "COUNTIF": {0},
    "INDEX": {0},
    "LARGE": {0},
    "MATCH": {1},
    "RANK": {1},
    "SUMIF": {0, 2},
    "nth from 0": {0},
    "nth from 1": {0},
}
OF_DIGITS = ("EXACT", "FIND", "LEN", "UNICODE")  # of a number: no function of its size
GIVES_TEXT = {"&", *(f.name for f in functions.OF_TEXTS)}
Apply = Callable[..., Expression]


def taken() -> dict[str, tuple[Apply, range]]:
    """What is checked: by name, how it is applied, and to how many arguments."""
    found: dict[str, tuple[Apply, range]] = {
        sign: (partial(_operation, sign), range(2, 3)) for sign in SIGNS
    }
    one = {"negative": Negative, "held": Held}
    found |= {name: (partial(_of_one, made), range(1, 2)) for name, made in one.items()}
    found |= {f"nth from {n}": (partial(_nth, n), range(2, 3)) for n in (0, 1)}
    rows = {x.name: x for x in vars(functions).values() if isinstance(x, Function)}
    return found | {name: (f, n_arguments(f)) for name, f in rows.items() if name != "RAND"}


def _operation(sign: str, x: Any, y: Any) -> Expression:
    return Operation(sign, expression(x), expression(y))


def _of_one(made: type, x: Any) -> Expression:
    found: Expression = made(expression(x))
    return found


def _nth(first: int, x: Any, k: Any) -> Expression:
    return Nth(x, expression(k), first)


def n_arguments(function: Function) -> range:
    """How many arguments a function takes, up to three of any number."""
    given = inspect.signature(function.compute).parameters.values()
    some = [p for p in given if p.kind is not p.VAR_POSITIONAL]
    least = sum(p.default is p.empty for p in some)
    return range(least, len(some) + 1) if len(some) == len(given) else range(max(least, 1), 4)


@dataclass
class Case:
    """A function of operands, as an op of a block."""

    graph: Graph
    block: Block
    names: set[str]  # of its operands

    def formula(self, i: int, j: int) -> Expression:
        """The formula of one cell, over areas."""
        at = Rect(i, i + 1, j, j + 1)
        pairs = [
            (name, Area(x, reads(subscript, at, x.shape, self.block.mask)))
            for name, subscript, x in self.block.operands
        ]
        assert self.block.op is not None
        return self.block.op.formula(pairs)

    def real(self, name: str) -> list[Block]:
        """The operands that are no whole numbers."""
        real = {x for k, x in enumerate("abcd") if k not in WHOLE.get(name, ())}
        return [self.graph[x] for x in sorted(self.names & real)]

    def value(self, i: int, j: int) -> Any:
        """What that comes to in one cell of a table; None for an error."""
        try:
            return self.formula(i, j).value(Reader(self.graph.inputs))
        except FormulaError:
            return None


def is_number(x: Any) -> bool:
    return isinstance(x, int | float | np.number | np.bool_)


def numbers(name: str) -> dict[str, np.ndarray]:
    """What the arguments of a function are, a to d; e only says how many rows there are."""
    rng = np.random.default_rng(sum(map(ord, name)))
    return {"abcde"[k]: drawn(name, k, rng) for k in range(5)}


def drawn(name: str, k: int, rng: np.random.Generator) -> np.ndarray:
    """The numbers of a function's k-th argument."""
    if k in WHOLE.get(name, ()):
        if (name, k) == ("MATCH", 1):  # in order, each once
            return np.add.outer(np.arange(N), np.arange(N)) - 1.0
        return rng.integers(WHOLE[name][k], WHOLE[name][k] + N, (N, N)).astype(float)
    return rng.permutation(np.arange(1, N * N + 1)).reshape(N, N) / 10 + k / 64


def cases(name: str) -> Iterator[tuple[str, Case]]:
    """Every combination of kinds of arguments that a function takes."""
    apply, counts = taken()[name]
    for n in counts:
        for kinds in product(*[PLAIN if n > 2 else KINDS] * n):
            if any(kinds[k] in ("cell", "constant") for k in RANGES.get(name, ()) if k < n):
                continue
            case = made(name, apply, kinds)
            rows, cols = case.block.shape
            last = case.value(rows - 1, cols - 1)
            if is_number(last):
                yield f"{name} of {', '.join(kinds)}", case


def made(name: str, apply: Apply, kinds: Sequence[str]) -> Case:
    """A block of an op that is a function of some kinds of arguments."""
    g, values, args = Graph(), numbers(name), "abcd"[: len(kinds)]
    read = {x: kind for x, kind in zip(args, kinds, strict=True) if kind != "constant"}
    given = {x: g.input(x, values[x], ("rows", "columns"), "weight") for x in read}

    def function(**operands: Expression) -> Expression:
        return apply(*[operands[x] if x in read else values[x].item(-1) for x in args])

    at = {x: tuple(KINDS[kind].split(",")) for x, kind in read.items()}
    if "column up to i" in kinds:  # then something else says how many rows there are
        given["e"], at["e"] = g.input("e", np.zeros((N, N))), ("i", "j")
    parameters = [inspect.Parameter(x, inspect.Parameter.KEYWORD_ONLY) for x in given]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    op = Op(name, function, at, ("i", "j"), 0.0, frozenset())  # type: ignore[arg-type]
    return Case(g, g.block("z", op, **given, mask=Mask()), {*read})


@pytest.mark.parametrize("name", taken())
def test_values_over_a_block_are_those_of_its_cells(name: str) -> None:
    n = 0
    for title, case in cases(name):
        whole = case.graph.values["z"]
        for i, j in case.block.whole.cells():
            value = case.value(i, j)
            if is_number(value):
                assert whole[i, j] == pytest.approx(float(value), rel=1e-13, abs=1e-15), title
                n += 1
    assert n or name in GIVES_TEXT


def test_a_line_counted_from_0_and_from_1() -> None:
    case = made("both", lambda x: _nth(0, x, 1) - _nth(1, x, 1), ("row",))
    a = case.graph.values["a"]
    assert case.graph.values["z"].ravel() == pytest.approx(a[:, 1] - a[:, 0])


@pytest.mark.parametrize("name", taken())
def test_texts_compute_the_same_in_ironcalc(name: str) -> None:
    sheet = Sheet()
    for x, values in numbers(name).items():
        sheet.put(x, values)
    for title, case in cases(name):
        for i, j in case.block.whole.cells():
            value = case.value(i, j)
            one_cell = i == 0 and "up to" in title and name in RANGES
            if is_number(value) and not one_cell:
                sheet.add(case.block, i, j, float(value))
    sheet.agree()


@pytest.mark.parametrize("name", taken())
def test_people_read_names(name: str) -> None:
    for title, case in cases(name):
        for text in (case.graph.cell("z", 0, 0).formula, equation(case.block)):
            assert text and not re.search(r"\x00|\$|\b[A-Z]+\d", text), (title, text)
            named = {*re.findall(r"\b[abcd]\b", text)}
            assert named == case.names or name == "ORDER", (title, text)


HAVE_SLOPES = [name for name in taken() if name not in OF_DIGITS]


@pytest.mark.parametrize("name", HAVE_SLOPES)
def test_gradients_are_finite_differences(name: str) -> None:
    for title, case in cases(name):
        g, rng = case.graph, np.random.default_rng(0)
        to = case.real(name)
        towards = {x.name: rng.normal(size=x.shape) for x in to}
        if np.isfinite(g.values["z"]).all():
            one = to_one_cell(g, case.block, rng)
            try:
                found = backward(g, one, to)
            except NotImplementedError as refused:  # as the remedy says
                assert "in a separate block" in str(refused)
                continue
            slope = sum(
                (g.values[found[x].name] * d).sum() for x, d in towards.items() if x in found
            )
            expected = 0 if name == "held" else difference(g, towards, "to.one")
            assert slope == pytest.approx(expected, rel=1e-6, abs=1e-7), title


@pytest.mark.parametrize("name", HAVE_SLOPES)
def test_gradient_of_the_last_cell_is_finite_differences(name: str) -> None:
    for title, case in cases(name):
        rng = np.random.default_rng(0)
        towards = {x.name: rng.normal(size=x.shape) for x in case.real(name)}
        rows, cols = case.block.shape
        found = of_cell(case.graph, case.block, rows - 1, cols - 1)
        slope = sum((found[x] * d).sum() for x, d in towards.items() if x in found)
        expected = difference(case.graph, towards, "z")  # of what is held, too
        assert slope == pytest.approx(expected, rel=1e-6, abs=1e-7), title


def difference(g: Graph, towards: dict[str, np.ndarray], of: str) -> float:
    """The slope of a block's last cell along a direction, by central differences."""
    start = {x: g.inputs[x].copy() for x in towards}
    found = []
    for sign in (1, -1):
        for x, way in towards.items():
            g.fill(x, start[x] + sign * STEP * way)
        found.append(g.values[of].item(-1))
    for x, values in start.items():
        g.fill(x, values)
    return (found[0] - found[1]) / (2 * STEP)
