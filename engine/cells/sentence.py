"""Sentences: texts of formulas, translated as a whole, whose parts in braces are live."""

from functools import reduce
from string import Formatter
from typing import Any

from cellformer.engine.cells.expression import Expression, expression
from cellformer.engine.cells.language import translated

LITERAL = 200  # characters of a literal; Excel takes 255 units


def sentence(text: str, /, **live: Any) -> Expression:
    """A text whose parts in braces are live: `sentence("It is {n}.", n=count)`. It is translated
    as a whole.

    Long texts are cut: a literal of a formula has at most 255 characters.
    """
    parts: list[Any] = []
    for literal, name, _, _ in Formatter().parse(translated(text)):
        parts += [literal[k : k + LITERAL] for k in range(0, len(literal), LITERAL)]
        parts += [live[name]] if name else []
    return reduce(lambda a, b: a & b, map(expression, parts))
