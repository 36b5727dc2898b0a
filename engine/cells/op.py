"""Op: a formula that all cells of a block share, written once for the cell at row i and column j.

An op is a function over expressions (see `expression`), and its decorator says which cells of each
operand it reads (the codes are in `access.py`). It is called once with the operands of a block's
cells, and returns the formula that every interpreter walks: so a value, its text and its gradient
cannot diverge.

`itself` names parameters that read the block's own cells, in the row before (`i-1,j`) or in all
rows before (`≤i,j`, under a mask that does not show a query its own key): the state of a
recurrence. They are not given as operands.

`many` names the parameters that take a list of operands; in their subscripts `@#` is @0, @1,
... for the first, the second, ..., and `i-#` counts down to the own row, which the last one reads.

`out="i,≤i"`: only cells whose key is seen by their query exist; the others are blank on the sheet
and hold `blank` in arrays (-inf for a masked score, 0 after the exponential).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cellformer.engine.cells.access import Subscript
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Expression, expression

X = Any  # an operand: an expression


@dataclass(frozen=True)
class Op:
    """An operation: one cell's function and the subscripts of its operands."""

    name: str
    function: Callable[..., Any]
    subscripts: dict[str, Subscript]
    out: Subscript
    blank: float
    many: frozenset[str]  # the parameters that take any number of operands
    itself: frozenset[str] = frozenset()  # those that read the block's own cells

    def __repr__(self) -> str:
        return f"<Op {self.name}({', '.join(self.subscripts)})>"

    @cached_property
    def _parameters(self) -> dict[str, inspect.Parameter]:
        known = inspect.signature(self.function).parameters
        return {name: p for name, p in known.items() if name not in self.itself}

    @cached_property
    def _needed(self) -> list[str]:
        return [name for name, p in self._parameters.items() if p.default is p.empty]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
        """The given operands, as (parameter, operand); optional ones that are None are left out."""
        given = dict(zip(self._parameters, args, strict=False)) | kwargs
        named = [parameter for parameter in self._parameters if parameter in given]
        if len(named) < len(args) + len(kwargs):
            raise InputError(
                f"{self.name} takes the blocks {', '.join(self._parameters)}, but others were "
                "given, or one was given twice; give each block once"
            )
        if missing := [parameter for parameter in self._needed if parameter not in given]:
            raise InputError(f"{self.name} needs {', '.join(missing)}; give a block for each name")
        return [
            (parameter, operand)
            for parameter in named
            for operand in (given[parameter] if parameter in self.many else (given[parameter],))
            if operand is not None
        ]

    def formula(self, pairs: list[tuple[str, Expression]]) -> Expression:
        """The formula over operands as `bind` listed them."""
        lists = {many: [x for name, x in pairs if name == many] for many in self.many}
        return expression(self.function(**dict(pairs) | lists))


def op(
    *, out: str = "i,j", blank: float = 0.0, many: str = "", itself: str = "", **subscripts: str
) -> Callable[[Callable[..., Any]], Op]:
    """A decorator that makes a function over expressions an op; subscripts are given by operand."""

    def split(text: str) -> Subscript:
        rows, cols = text.split(",")
        return rows, cols

    def decorate(function: Callable[..., Any]) -> Op:
        codes = {name: split(text) for name, text in subscripts.items()}
        lists, own = frozenset(many.split()), frozenset(itself.split())
        return Op(function.__name__, function, codes, split(out), blank, lists, own)

    return decorate
