"""The gradient of any cell of a workbook, through the sheets' own formulas and the graph."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from cellformer.engine.cells import cell_gradient
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.cell_gradient import Slopes
from cellformer.engine.cells.expression import Area, Expression
from cellformer.exporters.compose import cells
from cellformer.exporters.compose.book import Book, TableFormula

At = tuple[str, int, int]  # sheet, row, column


def of_cell(book: Book, at: At) -> Slopes:
    """The gradient of a cell by every cell of the graph that it depends on."""
    found: Slopes = {}
    slopes = {at: 1.0}  # by the sheets' own cells

    def add(area: Area, slope: Any) -> None:
        place = book.places.get(area.grid.name)
        if isinstance(area.grid, Block) and area.grid.name in book.graph.blocks:
            turned = place is not None and place.turned and np.ndim(slope) == 2
            cell_gradient.add(found, area, np.transpose(slope) if turned else slope)
            return
        sheet, rect = book.locate(area)
        each = np.broadcast_to(slope, (rect.bottom - rect.top, rect.right - rect.left))
        for (row, col), share in zip(rect.cells(), each.flat, strict=True):
            to((sheet, row, col), float(share))

    def to(cell: At, slope: float) -> None:
        area = _in_graph(book, cell)
        if area is not None:
            cell_gradient.add(found, area, slope)
        elif _formula(book, cell) is not None:
            slopes[cell] = slopes.get(cell, 0.0) + slope

    order = list(_from(book, at))
    if not order:
        to(at, 1.0)
    for cell in reversed(order):
        formula = _formula(book, cell)
        assert formula is not None
        cell_gradient.back(formula, slopes.get(cell, 0.0), book.clean, add)
    return cell_gradient.spread(book.graph, found)


def _formula(book: Book, at: At) -> Expression | None:
    """The formula of a sheet's own cell."""
    entry = book.sheets[at[0]].entries.get(at[1:])
    formula = entry.formula if entry else None
    return None if isinstance(formula, TableFormula) else formula


def _in_graph(book: Book, at: At) -> Area | None:
    """The cell of the graph at an address."""
    found = cells.owner(book, *at)
    if found is None or found[0].name not in book.graph.blocks:
        return None
    block, (i, j) = found
    return block[i, j] if block.has(i, j) else None


def _from(book: Book, at: At) -> Iterator[At]:
    """The sheets' own cells that a cell depends on, each after those that it reads, and last the
    cell itself."""
    done = set[At]()
    waiting = [at] if _formula(book, at) is not None else []
    while waiting:
        cell = waiting[-1]
        missing = [c for c in _reads(book, cell) if c not in done]
        if missing and cell not in done:
            waiting += missing
            continue
        waiting.pop()
        if cell not in done:
            done.add(cell)
            yield cell


def _reads(book: Book, at: At) -> Iterator[At]:
    """The sheets' own cells that the formula of a cell reads."""
    formula = _formula(book, at)
    assert formula is not None
    for area in formula.areas():
        if area.grid.name not in book.graph.blocks:
            sheet, rect = book.locate(area)
            yield from (
                cell
                for cell in ((sheet, *at) for at in rect.cells())
                if _formula(book, cell) is not None and _in_graph(book, cell) is None
            )
