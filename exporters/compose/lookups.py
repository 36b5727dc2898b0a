"""Formulas that look something up in a range, in forms that all spreadsheet programs read alike."""

from collections.abc import Sequence
from typing import Any

from cellformer.engine.cells.expression import Area, Expression, Nth
from cellformer.engine.cells.functions import (
    CHOOSE,
    EXACT,
    IF,
    INDEX,
    INT,
    LARGE,
    MATCH,
    SQRT,
    SUMPRODUCT,
    TRUE,
)
from cellformer.engine.cells.rounding import NEAR

AT_ONCE = 25  # options of CHOOSE, of which LibreOffice takes 29


def entry(area: Area, row: Any, col: Any) -> Expression:
    """The entry of a range at a row and column, counted from 1. For a single cell, that cell: not
    every program's INDEX takes one."""
    return INDEX(area, row, col) if area.rect.size > 1 else area


def nth(line: Area, k: Any) -> Expression:
    """The k-th cell of a row or a column, counted from 1; for a single cell, that cell."""
    return Nth(line.as_range, k) if line.rect.size > 1 else line


def one_of(each: Sequence[Expression], place: Expression) -> Expression:
    """The expression at a place in a list, counted from 1; in a long list, from one group of
    expressions."""
    if len(each) <= AT_ONCE:
        return CHOOSE(place, *each)
    group = INT((place - 1) / AT_ONCE)
    groups = (each[k : k + AT_ONCE] for k in range(0, len(each), AT_ONCE))
    return CHOOSE(group + 1, *(CHOOSE(place - group * AT_ONCE, *some) for some in groups))


def id_of(text: Expression, texts: Area) -> Expression:
    """The index of a text among others, from 0, case-sensitively; for an array formula.

    MATCH alone ignores case, and treats ? and * as wildcards.
    """
    return MATCH(TRUE(), EXACT(texts, text), 0) - 1


def place_of_largest(area: Area) -> Expression:
    """The index of the largest number in a row or column, from 1."""
    return MATCH(LARGE(area, 1), area, 0)


def place_of_rank(area: Area, ids: Area, rank: int, value: Expression) -> Expression:
    """The index in a column of `value`, the number of that rank, from 1; equal numbers take
    successive ranks. `ids` are 0, 1, 2, ... beside them. Above rank 1 it needs an array formula."""
    if rank == 1:
        return MATCH(value, area, 0)
    own, n = area.as_range, area.rect.size
    nth = rank - SUMPRODUCT((area > value) * 1)
    of_the_same = LARGE((own == value) * (n - ids.fixed.as_range), nth)
    return IF(nth == 1, MATCH(value, own, 0) - 1, n - of_the_same) + 1


def product_sum(a: Area, b: Area) -> Expression:
    """The sum of products of two columns; for single cells, their product."""
    return SUMPRODUCT(a, b) if a.rect.size > 1 else a * b


def over_length(x: Area, vector: Area) -> Expression:
    """An entry of a vector divided by its length; 0 for a zero vector."""
    length = SQRT(product_sum(vector, vector))
    return IF(length > NEAR, x / length, 0)
