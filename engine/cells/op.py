"""Op: an operation, written once for one cell, which every interpreter reads.

An op is a function over the primitives of `m` (dot, sum, max, mean, varp, exp, sqrt, tanh,
lookup and arithmetic) and describes *one* cell, the one at row i and column j. Its decorator
says which cells of each operand that cell reads (the codes are in `access.py`). The interpreters
read the same function: `numpy_math` runs it over whole arrays, `formula` writes it as text, and
`access` needs the subscripts alone; so a value and its formula cannot drift apart.

`out="i,≤i"` says that only the cells whose key is seen by their query exist; the others are
blank on the sheet and hold `blank` in arrays (-inf for a masked score, 0 after the exponential).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.cells.access import Subscript


@dataclass(frozen=True)
class Op:
    """An operation: one cell's function and the subscripts of its operands."""

    name: str
    function: Callable[..., Any]
    subscripts: dict[str, Subscript]
    out: Subscript
    blank: float
    many: frozenset[str]  # the parameters that take any number of operands

    def bind(self, args: tuple, kwargs: dict) -> list[tuple[str, Any]]:
        """The operands given, as (parameter, operand); optional ones that are None are left out."""
        bound = inspect.signature(self.function).bind(None, *args, **kwargs).arguments
        pairs: list[tuple[str, Any]] = []
        for parameter, given in list(bound.items())[1:]:
            for operand in given if parameter in self.many else (given,):
                if operand is not None:
                    pairs.append((parameter, operand))
        return pairs

    def call(self, m: Any, pairs: list[tuple[str, Any]]) -> Any:
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
) -> Callable[[Callable], Op]:
    """Make a function over primitives an op; each operand's subscript is given by its name.

    `many` names the parameters, if any, that take a list of operands.
    """

    def split(text: str) -> Subscript:
        rows, cols = text.split(",")
        return rows, cols

    def decorate(function: Callable) -> Op:
        codes = {name: split(text) for name, text in subscripts.items()}
        return Op(function.__name__, function, codes, split(out), blank, frozenset(many.split()))

    return decorate
