"""Expression: one cell's formula as a tree, written once in Python's own arithmetic.

    EXP(scores[i, j] - MAX(scores[i, : i + 1]))

gives the formula's text (in any notation), its value, and the cells that it reads. Ops say the same
for blocks whose cells are alike (see `op`); an expression says it for one cell, with the functions
of `functions`. Its leaves are constants, and areas: rectangles of something that has cells.

Comparisons give expressions too, `word == "cat"`, so two expressions are never asked whether they
are the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np

from engine.cells.access import Rect
from engine.cells.values import SIGNS, CellError, FormulaError, number

COMPARISON, JOIN, SUM, PRODUCT, POWER, NEGATIVE, ATOM = range(1, 8)  # how tightly a term binds
LEVELS = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), COMPARISON),
    "&": JOIN,
    "+": SUM,
    "-": SUM,
    "*": PRODUCT,
    "/": PRODUCT,
    "^": POWER,
}
DIGITS = 15  # that every spreadsheet keeps of a number in a formula
WHOLE = 10**DIGITS  # whole numbers below it are spelt without a point
AS_THEY_ARE = (str, int, np.ndarray)  # constants that are no float; TRUE is an int
Value = float | str | bool | None  # of one cell; None: it is blank
Index = int | slice | np.ndarray
# what of an address stays when a formula is copied elsewhere; first: the first cell of a range
Fixed = Literal["", "rows", "cols", "first", "all"]


class Grid(Protocol):
    """What has cells: a block, or a whole sheet."""

    @property
    def name(self) -> str:
        """What it is called."""


class Notation(Protocol):
    """How a formula is spelt: for a spreadsheet, or for people."""

    def address(self, area: "Area") -> str:
        """Where an area stands."""

    def nth(self, area: "Area", k: str) -> str:
        """The k-th cell of an area that is a row or a column, counted from 1."""

    def call(self, function: str, arguments: list[str]) -> str:
        """A function and what it is applied to."""

    def sign(self, sign: str) -> str:
        """A sign of arithmetic, with the room around it."""

    def constant(self, value: float | str) -> str:
        """A number, or a text."""


Look = Callable[["Area"], Any]  # an area's value: of one cell, or an array [rows, columns]


class Expression:
    """A formula without the leading "=", or a part of one."""

    __slots__ = ()
    level = ATOM

    def text(self, notation: Notation) -> str:
        """How it is spelt."""
        raise NotImplementedError

    def value(self, look: Look) -> Any:
        """What it comes to; `look` gives the values of the areas that it reads."""
        raise NotImplementedError

    def areas(self) -> Iterator["Area"]:
        """Every area that it reads."""
        yield from ()

    def __add__(self, other: Any) -> "Expression":
        return Operation("+", self, expression(other))

    def __radd__(self, other: Any) -> "Expression":
        return Operation("+", expression(other), self)

    def __sub__(self, other: Any) -> "Expression":
        return Operation("-", self, expression(other))

    def __rsub__(self, other: Any) -> "Expression":
        return Operation("-", expression(other), self)

    def __mul__(self, other: Any) -> "Expression":
        return Operation("*", self, expression(other))

    def __rmul__(self, other: Any) -> "Expression":
        return Operation("*", expression(other), self)

    def __truediv__(self, other: Any) -> "Expression":
        return Operation("/", self, expression(other))

    def __rtruediv__(self, other: Any) -> "Expression":
        return Operation("/", expression(other), self)

    def __pow__(self, other: Any) -> "Expression":
        return Operation("^", self, expression(other))

    def __rpow__(self, other: Any) -> "Expression":
        return Operation("^", expression(other), self)

    def __and__(self, other: Any) -> "Expression":
        return Operation("&", self, expression(other))

    def __rand__(self, other: Any) -> "Expression":
        return Operation("&", expression(other), self)

    def __lt__(self, other: Any) -> "Expression":
        return Operation("<", self, expression(other))

    def __le__(self, other: Any) -> "Expression":
        return Operation("<=", self, expression(other))

    def __gt__(self, other: Any) -> "Expression":
        return Operation(">", self, expression(other))

    def __ge__(self, other: Any) -> "Expression":
        return Operation(">=", self, expression(other))

    def __eq__(self, other: Any) -> "Expression":  # type: ignore[override]
        return Operation("=", self, expression(other))

    def __ne__(self, other: Any) -> "Expression":  # type: ignore[override]
        return Operation("<>", self, expression(other))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("a formula is neither true nor false before it is computed; use IF")

    def __neg__(self) -> "Expression":
        return Negative(self)


def expression(x: Any) -> Expression:
    """x itself where it is a formula, or else the constant."""
    if isinstance(x, Expression):
        return x
    return Constant(x if isinstance(x, AS_THEY_ARE) else float(x))


@dataclass(slots=True, eq=False)
class Constant(Expression):
    """A number, a text, or TRUE; an array of numbers, one for each cell of a run."""

    number: Any

    @property
    def level(self) -> int:  # type: ignore[override]
        return NEGATIVE if not isinstance(self.number, str) and self.number < 0 else ATOM

    def text(self, notation: Notation) -> str:
        return notation.constant(self.number)

    def value(self, look: Look) -> Any:
        return self.number


def constant(x: Expression) -> Any:
    """The number or text of a constant; None for another formula."""
    return x.number if isinstance(x, Constant) else None


@dataclass(slots=True, eq=False)
class Row(Expression):
    """Parts of a row side by side, for runs whose last cells have another formula."""

    parts: Sequence[Expression]

    def value(self, look: Look) -> Any:
        return np.concatenate([np.ravel(part.value(look)) for part in self.parts])


@dataclass(slots=True, eq=False)
class Rounded(Constant):
    """A number with so many decimals after the point, but no more than spreadsheets keep."""

    number: float
    places: int = 12

    def text(self, notation: Notation) -> str:
        return self._spelt

    def value(self, look: Look) -> Any:
        return float(self._spelt)

    @property
    def _spelt(self) -> str:
        kept = Decimal(f"{self.number:.{DIGITS}g}")
        return f"{kept:.{self.places}f}"


@dataclass(slots=True, eq=False)
class Area(Expression):
    """Some cells of a grid: `scores[2, 1]`, `scores[2, :]`, `scores[:, 1].fixed`."""

    grid: Grid
    rect: Rect
    stays: Fixed = ""
    range: bool = False  # spelt as a range even where it is one cell

    def __getitem__(self, key: "Index | tuple[Index, Index]") -> "Area":
        """Some of these cells, counted from the first: `a[i, j]`, `a[i]` of one row or column.

        A part of an axis stays a range though it be one cell: then a column's formulas are alike.
        A part may be an array of indices that follow each other, too.
        """
        first_row, bottom_row, first_col, right_col = self.rect
        height, width = bottom_row - first_row, right_col - first_col
        if not isinstance(key, tuple):
            if min(height, width) > 1:
                raise IndexError(f"{self.grid.name} has rows and columns: give both")
            key = (0, key) if height == 1 and width > 1 else (key, 0)
        i, j = key
        if type(i) is int and type(j) is int and 0 <= i < height and 0 <= j < width:
            row, col = first_row + i, first_col + j
            return Area(self.grid, Rect(row, row + 1, col, col + 1), self.stays)
        top, bottom, part_of_rows = _within(i, height)
        left, right, part_of_cols = _within(j, width)
        if not (0 <= top < bottom <= height and 0 <= left < right <= width):
            raise IndexError(f"{self.grid.name} [{height}, {width}] has no cells {key}")
        rect = Rect(first_row + top, first_row + bottom, first_col + left, first_col + right)
        return Area(self.grid, rect, self.stays, part_of_rows or part_of_cols)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        top, bottom, left, right = self.rect
        return bottom - top, right - left

    @property
    def cells(self) -> list["Area"]:
        """Each of these cells alone, row by row."""
        height, width = self.shape
        return [self[i, j] for i in range(height) for j in range(width)]

    @property
    def fixed(self) -> "Area":
        """The same cells, with an address that stays when the formula is copied."""
        return Area(self.grid, self.rect, "all", self.range)

    @property
    def fixed_rows(self) -> "Area":
        """The same cells, with an address whose rows stay."""
        return Area(self.grid, self.rect, "rows", self.range)

    @property
    def fixed_cols(self) -> "Area":
        """The same cells, with an address whose columns stay."""
        return Area(self.grid, self.rect, "cols", self.range)

    @property
    def fixed_first(self) -> "Area":
        """The same cells, with an address whose first cell stays: for running sums."""
        return Area(self.grid, self.rect, "first", self.range)

    @property
    def as_range(self) -> "Area":
        """The same cells, spelt as a range even where they are one cell."""
        return Area(self.grid, self.rect, self.stays, True)

    def text(self, notation: Notation) -> str:
        return notation.address(self)

    def value(self, look: Look) -> Any:
        return look(self)

    def areas(self) -> Iterator["Area"]:
        yield self


def _within(key: Index, n: int) -> tuple[int, int, bool]:
    """The span of an index, and whether it is a part of an axis."""
    if type(key) is int:
        return (key, key + 1, False) if key >= 0 else (key + n, key + n + 1, False)
    if isinstance(key, np.ndarray):
        return int(key[0]), int(key[-1]) + 1, True
    if isinstance(key, slice):
        start, stop, _ = key.indices(n)
        return start, stop, (start, stop) != (0, n)
    return _within(int(key), n)


@dataclass(slots=True, eq=False)
class Operation(Expression):
    """Two terms with a sign between them."""

    sign: str
    left: Expression
    right: Expression

    @property
    def level(self) -> int:  # type: ignore[override]
        return LEVELS[self.sign]

    def text(self, notation: Notation) -> str:
        left, right = self.left.text(notation), self.right.text(notation)
        level, behind = LEVELS[self.sign], self.right.level
        if self.left.level < level:
            left = f"({left})"
        if behind <= level or (behind == NEGATIVE and level > JOIN):
            right = f"({right})"
        return left + notation.sign(self.sign) + right

    def value(self, look: Look) -> Any:
        return SIGNS[self.sign](self.left.value(look), self.right.value(look))

    def areas(self) -> Iterator[Area]:
        yield from self.left.areas()
        yield from self.right.areas()


@dataclass(slots=True, eq=False)
class Negative(Expression):
    """Minus a term. It binds tighter than a power, as in Excel, where -2^2 is 4."""

    term: Expression
    level = NEGATIVE

    def text(self, notation: Notation) -> str:
        text = self.term.text(notation)
        return f"-({text})" if self.term.level <= NEGATIVE else f"-{text}"

    def value(self, look: Look) -> Any:
        return SIGNS["-"](0.0, self.term.value(look))

    def areas(self) -> Iterator[Area]:
        yield from self.term.areas()


@dataclass(slots=True, eq=False)
class Nth(Expression):
    """The k-th cell of a row or a column, counted from 1. How it is spelt depends on how the cells
    lie on their sheet, which only a notation knows."""

    area: Area
    k: Expression

    def text(self, notation: Notation) -> str:
        return notation.nth(self.area, self.k.text(notation))

    def value(self, look: Look) -> Any:
        cells = np.ravel(np.asarray(look(self.area)))
        k = int(number(self.k.value(look)))
        if not 1 <= k <= len(cells):
            raise FormulaError("#REF!")
        if isinstance(cells[k - 1], CellError):
            raise FormulaError(str(cells[k - 1]))
        return cells[k - 1]

    def areas(self) -> Iterator[Area]:
        yield self.area
        yield from self.k.areas()


@dataclass(slots=True, eq=False)
class Function:
    """A spreadsheet function. Called with expressions, it gives one: `EXP(x - top)`.

    `compute` takes the arguments' values; of a `lazy` one, functions without arguments that give
    them, so that a branch which is not taken is not computed either.
    """

    name: str
    compute: Callable[..., Any]
    lazy: bool = False

    def __call__(self, *arguments: Any) -> "Call":
        given = [a if isinstance(a, Expression) else expression(a) for a in arguments]
        return Call(self, tuple(given))


@dataclass(slots=True, eq=False)
class Call(Expression):
    """A function applied to expressions."""

    function: Function
    arguments: tuple[Expression, ...]

    def text(self, notation: Notation) -> str:
        return notation.call(self.function.name, [a.text(notation) for a in self.arguments])

    def value(self, look: Look) -> Any:
        if self.function.lazy:
            return self.function.compute(*[partial(a.value, look) for a in self.arguments])
        return self.function.compute(*[a.value(look) for a in self.arguments])

    def areas(self) -> Iterator[Area]:
        for argument in self.arguments:
            yield from argument.areas()


def decimal(number: float | bool) -> str:
    """A plain decimal: no exponent, which not every spreadsheet reads in a formula; nor does every
    one know TRUE without parentheses."""
    if type(number) is int and -WHOLE < number < WHOLE:
        return str(number)
    if isinstance(number, bool):
        return "TRUE()" if number else "FALSE()"
    if float(number).is_integer() and abs(number) < WHOLE:
        return str(int(number))
    text = repr(float(number))
    if "e" in text:
        plain = f"{number:.20f}".rstrip("0")
        text = plain if float(plain) == number else text.upper()
    return text
