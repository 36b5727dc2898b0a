"""Op: an operation, written once for one cell, which every interpreter reads.

An op is a function over the primitives of `m` (`Math`, and arithmetic) and describes *one* cell,
the one at row i and column j. Its decorator
says which cells of each operand that cell reads (the codes are in `access.py`). The interpreters
read the same function: `numpy_math` runs it over whole arrays, `formula` writes it as text,
`access` needs the subscripts alone, and `trace` takes it apart for its derivatives; so a value, its
formula and its gradient cannot drift apart.

`out="i,≤i"` says that only the cells whose key is seen by their query exist; the others are
blank on the sheet and hold `blank` in arrays (-inf for a masked score, 0 after the exponential).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from engine.cells.access import Subscript

X = Any  # an operand, or what becomes of some: whatever the interpreter makes of it


@runtime_checkable
class Math(Protocol):
    """The primitives that every interpreter gives to ops.

    An operand is whatever the interpreter makes of one: arrays in `numpy_math`, text in `formula`.
    Besides these, operands have + - * /, with each other and with numbers.
    """

    def dot(self, a: Any, b: Any) -> Any:
        """Sum of products along two lines of cells."""

    def lookup(self, table: Any, ids: Any) -> Any:
        """The entry of a line that an id names, counted from 0."""

    def count(self, x: Any) -> Any:
        """How many cells a line has."""

    def sum(self, x: Any) -> Any:
        """Sum along a line."""

    def max(self, x: Any) -> Any:
        """Largest along a line."""

    def mean(self, x: Any) -> Any:
        """Mean along a line."""

    def varp(self, x: Any) -> Any:
        """Variance along a line, of a whole population."""

    def maximum(self, x: Any, y: Any) -> Any:
        """The larger of a cell and another, or a number."""

    def rank(self, x: Any, line: Any, place: Any, places: Any) -> Any:
        """How many of a line come before a cell: larger ones, or equal ones at earlier places."""

    def below(self, x: Any, y: Any) -> Any:
        """1 where a cell is less than another, else 0."""

    def equal(self, x: Any, y: Any) -> Any:
        """1 where a cell is equal to another, else 0."""

    def held(self, x: Any) -> Any:
        """The cell itself, as a constant: its derivative is 0."""

    def power(self, x: Any, y: Any) -> Any:
        """A cell to the power of another."""

    def exp(self, x: Any) -> Any:
        """e to the power of a cell."""

    def log(self, x: Any) -> Any:
        """Natural logarithm of a cell."""

    def sqrt(self, x: Any) -> Any:
        """Square root of a cell."""

    def tanh(self, x: Any) -> Any:
        """Hyperbolic tangent of a cell."""

    def erf(self, x: Any) -> Any:
        """Error function of a cell."""

    def sin(self, x: Any) -> Any:
        """Sine of a cell, in radians."""

    def cos(self, x: Any) -> Any:
        """Cosine of a cell, in radians."""


@dataclass(frozen=True)
class Op:
    """An operation: one cell's function and the subscripts of its operands."""

    name: str
    function: Callable[..., Any]
    subscripts: dict[str, Subscript]
    out: Subscript
    blank: float
    many: frozenset[str]  # the parameters that take any number of operands

    @cached_property
    def _parameters(self) -> dict[str, inspect.Parameter]:
        return dict([*inspect.signature(self.function).parameters.items()][1:])

    @cached_property
    def _needed(self) -> list[str]:
        return [name for name, p in self._parameters.items() if p.default is p.empty]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
        """The operands given, as (parameter, operand); optional ones that are None are left out."""
        given = dict(zip(self._parameters, args, strict=False)) | kwargs
        named = [parameter for parameter in self._parameters if parameter in given]
        if len(named) < len(args) + len(kwargs):
            raise TypeError(f"{self.name} takes {', '.join(self._parameters)}, each once")
        if missing := [parameter for parameter in self._needed if parameter not in given]:
            raise TypeError(f"{self.name} lacks {', '.join(missing)}")
        pairs: list[tuple[str, Any]] = []
        for parameter in named:
            for operand in given[parameter] if parameter in self.many else (given[parameter],):
                if operand is not None:
                    pairs.append((parameter, operand))
        return pairs

    def call(self, m: Math, pairs: list[tuple[str, Any]]) -> Any:
        """Run the function under interpreter `m` on operands as `bind` listed them."""
        given: dict[str, Any] = {p: [] for p in self.many}
        for parameter, x in pairs:
            if parameter in self.many:
                given[parameter].append(x)
            else:
                given[parameter] = x
        return self.function(m, **given)


def op(
    *, out: str = "i,j", blank: float = 0.0, many: str = "", **subscripts: str
) -> Callable[[Callable[..., Any]], Op]:
    """Make a function over primitives an op; each operand's subscript is given by its name.

    `many` names the parameters, if any, that take a list of operands.
    """

    def split(text: str) -> Subscript:
        rows, cols = text.split(",")
        return rows, cols

    def decorate(function: Callable[..., Any]) -> Op:
        codes = {name: split(text) for name, text in subscripts.items()}
        return Op(function.__name__, function, codes, split(out), blank, frozenset(many.split()))

    return decorate
