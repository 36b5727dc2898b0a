"""Sentences with live numbers in them: how formulas spell a share, a number, a word.

A number is joined to a text as the reader's spreadsheet writes it, with a comma or a point. What
stands exactly between two decimals goes up, though programs differ in its last bit.
"""

from typing import Any

from engine.cells.expression import Expression, expression
from engine.cells.functions import ROUND

UP = 1e-7  # of the last decimal shown


def rounded(x: Any, decimals: int) -> Expression:
    """A number with at most so many decimals."""
    return ROUND(x + UP * 10.0**-decimals, decimals)


def percent(share: Any, decimals: int = 1) -> Expression:
    """A share as a text: `99.9 %`."""
    return rounded(100 * share, decimals) & " %"


def quote(word: Any) -> Expression:
    """A word in quotes."""
    return "‘" & expression(word) & "’"
