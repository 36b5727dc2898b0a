"""Sentences with live numbers: how formulas write a percentage, a number, a word.

A number becomes text as the user's spreadsheet writes it, with a comma or a point. A number exactly
between two decimals is rounded up, although programs differ in its last bit.
"""

from typing import Any

from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.functions import IFERROR, INT, LN, MAX, ROUND
from cellformer.engine.cells.sentence import sentence as sentence

UP = 1e-7  # of the last decimal shown
LEAST_DOUBT = 1e-11  # a share nearer to 1 is shown as one that leaves this doubt
LN_10 = 2.302585092994046


def rounded(x: Any, decimals: int) -> Expression:
    """A number with at most so many decimals; 0 without a sign, which some programs would write. A
    dash if there is no number, as for an unknown word."""
    return IFERROR(ROUND(x + UP * 10.0**-decimals, decimals) + 0, "–")


def percent(share: Any, decimals: int = 1) -> Expression:
    """A share as a text: `99.9 %`."""
    return rounded(100 * share, decimals) & " %"


def sureness(share: Any) -> Expression:
    """A share below 1 as a text, rounded down after its last nine: `99.9999 %`, never `100 %`."""
    doubt = MAX(1 - share, LEAST_DOUBT)
    nines = INT(-1 * LN(doubt) / LN_10)  # decimals of the share that are all 9
    unit = 10.0 ** MAX(nines - 2, 1)  # of the percentage's last decimal, 1 at least
    return INT(100 * (1 - doubt) * unit) / unit & " %"


def quote(word: Any) -> Expression:
    """A word in quotes."""
    return "‘" & expression(word) & "’"
