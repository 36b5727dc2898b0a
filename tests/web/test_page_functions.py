"""Every function and every sign in JavaScript: of drawn arguments, what the Python table gives."""

import inspect
import random
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from in_node import call

from cellformer.engine.cells import functions
from cellformer.engine.cells.expression import Constant, Function, Nth
from cellformer.engine.cells.values import SIGNS, CellError, FormulaError

pytestmark = [
    pytest.mark.usefixtures("node"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numpy's, of sums that overflow
]

N_DRAWN = 400  # calls of each function

# computed by other libraries of mathematics, or added in another order: equal to 1e-14
ALMOST = {"^", *("ACOS", "COS", "ERF", "EXP", "LN", "LOG10", "POWER", "SIN", "SUMPRODUCT", "TANH")}
NUMBERS = (
    *(0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, 0.5, -0.5, 2.5, -2.5, 1.005, 0.1 + 0.2, 1 / 3, -7.25),
    *(1e-5, 1.2345e-7, 123456.789, 1e15, 1e15 + 0.5, 1000000000000.125, 1e22, -1e300, 1e308),
    *(65.0, 8364.0, 128_512.0, 55_296.0, 65_535.0, 1_114_112.0, 32_768.0, 2.0**52 + 1),
)
TEXTS = (
    *(
        "",
        " ",
        "a",
        "A",
        "b",
        "banana",
        "ban?na",
        "b*A",
        "*a*n?*",
        "*",
        "~*",
        "~",
        "?",
        "a~",
        "<b",
        ">=1",
    ),
    *("<>a", "<>", "=", "<1e1", "=2", "1", " 2 ", "-.5", "1.", "1e3", "1e999", "nan", "inf", "1_0"),
    *("\u0661", "0x1", "TRUE", "#N/A", "#DIV/0!", "ß", "SS", "Straße", "STRASSE", "ΟΔΟΣ", "οδος"),
    *("İ", "ı", "I", "i*", "ſ", "ﬁ", "fi", "é", "e\u0301", "😀", "a😀b", "𝒳y", "😀*", "?y"),
    *('"', "''", "a\nb", "\u2028", "\0", "a\0", "</b>", "$&", "[a]", "(", "a|b", "\\", "  a   b "),
    *("\uffee", "\u00a01", "1\ufeff", "x" * 300),
)
ERRORS = tuple(map(CellError, ("#N/A", "#DIV/0!", "#VALUE!", "#NUM!", "#REF!")))
SHAPES = ((1, 1), (1, 3), (3, 1), (2, 3), (3, 3), (1, 9), (140, 1))
LEAST = {  # arguments that are mostly small whole numbers, and from which on
    "CHOOSE": {0: 0},
    "FIND": {2: 0},
    "INDEX": {1: 0, 2: 0},
    "LARGE": {1: 0},
    "LEFT": {1: 0},
    "MATCH": {2: 0},
    "MID": {1: 0, 2: 0},
    "REPT": {1: 0},
    "RIGHT": {1: 0},
    "ROUND": {1: -3},
    "nth from 0": {1: 0},
    "nth from 1": {1: 0},
}
RANGES = {  # arguments that are mostly ranges
    "COUNTIF": {0},
    "INDEX": {0},
    "LARGE": {0},
    "MATCH": {1},
    "ORDER": {1, 3},
    "RANK": {1},
    "SUMIF": {0, 2},
    "nth from 0": {0},
    "nth from 1": {0},
}
# their ranges are of one shape
ALIKE = {*SIGNS, *("EXACT", "IF", "MOD", "POWER", "ROUND", "SUMIF", "SUMPRODUCT")}


def table() -> dict[str, Function]:
    """The functions of the Python table."""
    return {x.name: x for x in vars(functions).values() if isinstance(x, Function)}


def counts() -> dict[str, range]:
    """How many arguments each sign and function takes; of any number, up to three."""
    found = dict.fromkeys((*SIGNS, "nth from 0", "nth from 1"), range(2, 3))
    for name, function in table().items():
        given = inspect.signature(function.compute).parameters.values()
        some = [p for p in given if p.kind is not p.VAR_POSITIONAL]
        least = sum(p.default is p.empty for p in some)
        many = len(some) < len(given)
        found[name] = range(max(least, 1), 4) if many else range(least, len(some) + 1)
    return found


class Draw:
    """Arguments of one function."""

    def __init__(self, name: str):
        self.name = name
        self.random = random.Random(name)
        self.lazy = name in table() and table()[name].lazy

    def arguments(self) -> list[Any]:
        """The arguments of one call."""
        shape = self.random.choice(SHAPES) if self.name in ALIKE else None
        if self.name == "ORDER":  # of numbers alone, as its blocks are
            return self.of_order()
        return [self.argument(k, shape) for k in range(self.random.choice(counts()[self.name]))]

    def argument(self, k: int, shape: tuple[int, int] | None) -> Any:
        """The k-th argument."""
        draw = self.random
        if draw.random() < (0.85 if k in RANGES.get(self.name, ()) else 0.25):
            return self.range(shape or draw.choice(SHAPES), k)
        if self.lazy and draw.random() < 0.2:
            return draw.choice(ERRORS)
        return self.cell(k)

    def cell(self, k: int) -> Any:
        """One cell."""
        draw = self.random
        least = LEAST.get(self.name, {}).get(k)
        if least is not None and draw.random() < 0.7:
            return float(least + draw.randrange(5))
        kinds: tuple[Callable[[], Any], ...] = (
            *(lambda: draw.choice(NUMBERS), lambda: draw.choice(TEXTS)) * 3,
            *(lambda: draw.uniform(-9, 9), lambda: draw.random() < 0.5, lambda: None),
        )
        return draw.choice(kinds)()

    def range(self, shape: tuple[int, int], k: int) -> np.ndarray:
        """A range: of numbers, of whole numbers, of one kind of cells, of all kinds."""
        draw, size = self.random, shape[0] * shape[1]
        kinds: tuple[Callable[[], list[Any]], ...] = (
            lambda: [draw.uniform(-9, 9) for _ in range(size)],
            lambda: [float(draw.randrange(1, 4)) for _ in range(size)],
            lambda: sorted(float(draw.randrange(-3, 9)) for _ in range(size)),
            lambda: [draw.choice(TEXTS) for _ in range(size)],
            lambda: [draw.random() < 0.5 for _ in range(size)],
            lambda: [self.cell(k) for _ in range(size)],
            lambda: [draw.choice((self.cell(k), draw.choice(ERRORS))) for _ in range(size)],
        )
        found = draw.choice(kinds)()
        if self.name == "MATCH" and k == 1 and {*map(type, found)} == {float}:
            found.sort()  # in another order, kind 1 means nothing
        return of_values(shape, found)

    def of_order(self) -> list[Any]:
        """A number of a line, the line, a place, the places."""
        line = [float(self.random.randrange(4)) for _ in range(9)]
        at = self.random.randrange(9)
        places = np.arange(9.0).reshape(1, 9)
        return [line[at], of_values((1, 9), line), float(at), places]


def of_values(shape: tuple[int, int], values: list[Any]) -> np.ndarray:
    """A range as the engine has it: float64 if all are numbers."""
    if all(type(x) is float for x in values):
        return np.array(values).reshape(shape)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found.reshape(shape)


def in_python(name: str, given: list[Any]) -> Any:
    """What a call comes to; an error as what JavaScript is to say of it."""

    def later(x: Any) -> Any:
        if isinstance(x, CellError):
            raise FormulaError(str(x))
        return x

    try:
        if name in SIGNS:
            return written(SIGNS[name](*given))
        if name.startswith("nth"):
            line, k = map(Constant, given)
            return written(Nth(line, k, int(name[-1])).value(lambda area: area))
        function = table()[name]
        if function.lazy:
            return written(function.compute(*[partial(later, x) for x in given]))
        return written(function.compute(*given))
    except FormulaError as error:
        return {"raised": str(error)}


def written(x: Any) -> Any:
    """A value as JSON."""
    if isinstance(x, np.ndarray) and x.ndim:
        rows, cols = np.atleast_2d(x).shape
        kind = {"numeric": True} if x.dtype == np.float64 else {}
        return {"rows": rows, "cols": cols, "values": [*map(written, x.flat)], **kind}
    if isinstance(x, np.ndarray | np.generic):
        x = x.item()
    if isinstance(x, CellError):
        return {"error": str(x)}
    if isinstance(x, float) and not np.isfinite(x):
        return {"number": {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(x)]}
    return x


def agree(name: str, expected: Any, found: Any) -> bool:
    """Whether two values are one; a range of a single cell counts as that cell."""
    cells, others = ([x] if not is_range(x) else x["values"] for x in (expected, found))
    if len(cells) == len(others) == 1:
        return one_agrees(name, cells[0], others[0])
    if not (is_range(expected) and is_range(found)):
        return False
    shapes = [(x["rows"], x["cols"]) for x in (expected, found)]
    return shapes[0] == shapes[1] and all(map(partial(one_agrees, name), cells, others))


def is_range(x: Any) -> bool:
    return isinstance(x, dict) and "values" in x


def one_agrees(name: str, x: Any, y: Any) -> bool:
    if isinstance(x, bool) or isinstance(y, bool) or not isinstance(x, int | float):
        return type(x) is type(y) and x == y
    if not isinstance(y, int | float):
        return False
    x, y = float(x), float(y)
    return x == y or (name in ALMOST and abs(x - y) <= 1e-14 * max(abs(x), abs(y)))


@cache
def drawn(name: str) -> list[list[Any]]:
    """The calls of one function, the same each time."""
    draw = Draw(name)
    return [draw.arguments() for _ in range(N_DRAWN)]


def test_javascript_has_the_functions_of_python() -> None:
    assert {*call("functions.mjs", "names")} == {*table()}


@pytest.mark.parametrize("name", counts())
def test_function_in_javascript_is_that_of_python(name: str) -> None:
    asked = [(name, [*map(written, given)]) for given in drawn(name)]
    wrong = []
    for given, found in zip(drawn(name), call("functions.mjs", "outcomes", asked), strict=True):
        expected = in_python(name, given)
        if not agree(name, expected, found):
            wrong.append(f"{name} of {[*map(written, given)]} is {expected}, not {found}"[:700])
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong[:8])
