"""Sentences with live numbers in them: how formulas spell a share, a number, a word.

A number is joined to a text as the reader's spreadsheet writes it, with a comma or a point. What
stands exactly between two decimals goes up, though programs differ in its last bit.
"""

from functools import reduce
from string import Formatter
from typing import Any

from engine.cells.expression import Expression, expression
from engine.cells.functions import IFERROR, ROUND

UP = 1e-7  # of the last decimal shown
LITERAL = 200  # characters of a literal; Excel takes 255 units


def rounded(x: Any, decimals: int) -> Expression:
    """A number with at most so many decimals; 0 has no sign, which programs would spell. A dash
    where there is none, as of a word that is unknown."""
    return IFERROR(ROUND(x + UP * 10.0**-decimals, decimals) + 0, "–")


def percent(share: Any, decimals: int = 1) -> Expression:
    """A share as a text: `99.9 %`."""
    return rounded(100 * share, decimals) & " %"


def quote(word: Any) -> Expression:
    """A word in quotes."""
    return "‘" & expression(word) & "’"


def sentence(text: str, **live: Any) -> Expression:
    """A text whose parts in braces are live: `sentence("It is {n}.", n=count)`.

    Long texts are cut: a literal of a formula has at most 255 characters.
    """
    parts: list[Any] = []
    for literal, name, _, _ in Formatter().parse(text):
        parts += [literal[k : k + LITERAL] for k in range(0, len(literal), LITERAL)]
        parts += [live[name]] if name else []
    return reduce(lambda a, b: a & b, map(expression, parts))
