"""Formulas of cells as data that the page evaluates.

A formula is a list of steps, each after those that it is made of: `["+", 0, 1]`. Cells whose
formulas differ only in what they read, and in numbers and texts, share one list; what they differ
in stands beside it, a column for each place in the list. So a table of a thousand cells is one
formula and a few columns, most of which hold one number.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.expression import (
    Area,
    Call,
    Constant,
    Expression,
    Held,
    Negative,
    Nth,
    Operation,
    steps,
)
from cellformer.engine.cells.formula import InWords
from cellformer.engine.cells.values import is_number
from cellformer.exporters.compose.book import Book, Sheet, TableFormula

WIDTH = 1 << 14  # columns of a sheet
AREA, CONSTANT = "@", "#"  # steps whose value stands in columns: five for an area, one for another
Values = list[Any]  # of one cell's formula: what stands in the columns
# What formulas share: their steps, and their text with holes for what they differ in.
Shape = tuple[tuple[tuple[Any, ...], ...], str]


class Collection:
    """All formulas of a book: each shape once."""

    def __init__(self, book: Book):
        self.book = book
        self.index = {block.name: k for k, block in enumerate(book.graph)}
        self.sheets = {name: len(self.index) + k for k, name in enumerate(book.sheets)}
        self.shapes: dict[Shape, int] = {}
        self._asked: dict[tuple[str, Rect], None] = {}  # of sheets, by formulas

    def of(self, formula: Expression, beside: str = "") -> tuple[int, Values]:
        """The index of a formula's shape, and the contents of its columns; `beside` is the
        formula's block."""
        if isinstance(formula, TableFormula):  # on its sheet: the table's cell
            formula = formula.block[formula.i, formula.j]
        made = steps(formula)
        holes: dict[Hashable, int] = {}
        for k, (part, _) in enumerate(made):
            if isinstance(part, Area) or (isinstance(part, Constant) and _varies(part.number)):
                holes.setdefault(part.key, k)
        found = [self._step(part, of) for part, of in made]
        text = formula.text(_WithHoles(beside, holes))
        shape = tuple(step for step, _ in found), text
        values = [value for _, held in found for value in held]
        return self.shapes.setdefault(shape, len(self.shapes)), values

    def _step(self, part: Expression, of: Sequence[int]) -> tuple[tuple[Any, ...], Values]:
        match part:
            case Area():
                return (AREA,), self._area(part)
            case Constant():
                value = part.value(lambda area: None)
                return ((CONSTANT,), [value]) if _varies(value) else ((CONSTANT, value), [])
            case Operation() | Call() | Negative() | Held():
                return (part.name, *of), []
            case Nth():
                return (part.name, *of, part.first), []
        raise TypeError(f"a page cannot compute {type(part).__name__}")

    def _area(self, area: Area) -> Values:
        """The grid of an area, a block or a sheet, and its rectangle."""
        if not isinstance(area.grid, Sheet) and area.grid.name in self.index:
            return [self.index[area.grid.name], *area.rect]
        sheet, rect = self.book.locate(area)
        self._asked[sheet, rect] = None
        return [self.sheets[sheet], *rect]

    def own_cells(self) -> list[Any]:
        """The sheets' own cells that formulas read, and the cells that these read: for each
        sheet its index, values as [row, column, value], and groups of formulas; a formula's cell
        is its row times `WIDTH`, and its column."""
        found: dict[str, tuple[list[Any], Groups]] = {}
        done: set[tuple[str, int, int]] = set()
        waiting = list(self._asked)
        while waiting:
            sheet, rect = waiting.pop()
            for row, col in rect.cells():
                if (sheet, row, col) not in done:
                    done.add((sheet, row, col))
                    known = len(self._asked)
                    self._own_cell(found.setdefault(sheet, ([], Groups())), sheet, row, col)
                    if len(self._asked) > known:
                        waiting += list(self._asked)[known:]
        return [[self.sheets[s], values, groups.data()] for s, (values, groups) in found.items()]

    def _own_cell(self, into: tuple[list[Any], "Groups"], name: str, row: int, col: int) -> None:
        """Add a cell of a sheet, unless it is a block's or blank."""
        values, groups = into
        sheet = self.book.sheets[name]
        entry = sheet.entries.get((row, col))
        if entry is not None and entry.formula is not None:
            if not isinstance(entry.formula, TableFormula):
                groups.add(row * WIDTH + col, self.of(entry.formula))
        elif entry is not None:
            value = entry.value  # numpy's numbers are none of JSON's
            values.append([row, col, value.item() if isinstance(value, np.generic) else value])
        else:
            cell = Rect(row, row + 1, col, col + 1)
            runs = (run for run in sheet.runs if run.area.covers(cell))
            values += ([row, col, run.at(row, col)] for run in islice(runs, 1))


class Groups:
    """Formulas of cells, grouped by shape."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[list[int], list[Values]]] = {}

    def add(self, cell: int, formula: tuple[int, Values]) -> None:
        """Add the formula of a cell."""
        shape, values = formula
        cells, rows = self._of.setdefault(shape, ([], []))
        cells.append(cell)
        rows.append(values)

    def data(self) -> list[Any]:
        """The index, the cells and the columns of each shape."""
        return [[s, differences(cells), columns(rows)] for s, (cells, rows) in self._of.items()]


def _varies(value: Any) -> bool:
    """Whether a constant's place in a text does not depend on its value: no number below 0."""
    return not (is_number(value) and value < 0)


@dataclass(frozen=True)
class _WithHoles(InWords):
    """The notation for people with holes for areas and constants: a step's index between two
    bytes 0."""

    holes: Mapping[Hashable, int]  # the steps, by the keys of their parts

    def address(self, area: Area) -> str:
        return f"\0{self.holes[area.key]}\0"

    def constant(self, value: float | str) -> str:
        k = self.holes.get((type(value), value))
        return super().constant(value) if k is None else f"\0{k}\0"


def columns(rows: Sequence[Values]) -> list[Any]:
    """The contents of the columns of many cells' formulas: a single value for a constant column;
    `{"d": [...]}`, the first number and the steps from each to the next; or `{"v": [...]}`, all
    values."""
    return [_column(list(column)) for column in zip(*rows, strict=True)]


def _column(column: list[Any]) -> Any:
    first = column[0]
    if all(type(x) is type(first) and x == first for x in column):
        return first
    if all(type(x) is int for x in column):
        return {"d": differences(column)}
    return {"v": column}


def differences(numbers: Iterable[int]) -> list[int]:
    """The first number, and the steps from each to the next."""
    return [x - before for before, x in pairwise([0, *numbers])]
