"""Sentences: texts of formulas, translated as a whole, whose parts in braces are live."""

from collections.abc import Iterator
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
        parts += _pieces(literal)
        parts += [live[name]] if name else []
    return reduce(lambda a, b: a & b, map(expression, parts))


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces that a formula can hold, cut after a full stop where there is one."""
    while text:
        stop = text.rfind(". ", 0, LITERAL) + len(". ") if len(text) > LITERAL else 0
        end = stop if stop >= len(". ") else LITERAL
        yield text[:end]
        text = text[end:]
