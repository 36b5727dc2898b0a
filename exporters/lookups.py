"""Formulas that look something up in a range, as every spreadsheet program reads them."""

from typing import Any

from engine.cells.expression import Area, Expression
from engine.cells.functions import EXACT, INDEX, LARGE, MATCH, SUMPRODUCT, TRUE


def entry(area: Area, row: Any, col: Any) -> Expression:
    """The entry of a range at a row and column, counted from 1. Of one cell, that cell: not every
    program looks things up in a lone one."""
    return INDEX(area, row, col) if area.rect.size > 1 else area


def id_of(text: Expression, texts: Area) -> Expression:
    """Where a text stands among others, counted from 0, its case regarded: for an array formula.

    MATCH alone ignores case, and takes ? and * for wildcards.
    """
    return MATCH(TRUE(), EXACT(texts, text), 0) - 1


def place_of_largest(area: Area, rank: int) -> Expression:
    """Where the number of that rank stands in a row or column, both counted from 1; of several
    that are the same, the first."""
    return MATCH(LARGE(area, rank), area, 0)


def product_sum(a: Area, b: Area) -> Expression:
    """The sum of products of two columns: of one cell each, their product."""
    return SUMPRODUCT(a, b) if a.rect.size > 1 else a * b
