"""Expressions: formulas as trees, written once in Python's own arithmetic.

    EXP(scores[i, j] - MAX(scores[i, : i + 1]))

Every interpreter walks the same tree: its text in any notation, its value in one cell, its values
over whole blocks (`evaluation`), the cells that it reads, its derivatives (`derivatives`). Inner
nodes are operators, and functions, each a row of `functions`. Leaves are constants and cells: an
`Area` is a rectangle of cells of a block or a sheet; a `Read` is what the cell at row i and column
j reads of a block by a subscript, in a formula that all cells of a block share.

Comparisons give expressions too, `word == "cat"`, so `==` never tests whether two expressions are
equal; compare their `key` instead.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from cellformer.engine.cells.access import ALONG, Rect, Subscript
from cellformer.engine.cells.values import SIGNS, as_array, no_error, number, refuse, scalar

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
Spelt = tuple[str, int]  # a text, and how tightly it binds
# what of an address stays when a formula is copied elsewhere; first: the first cell of a range
Fixed = Literal["", "rows", "cols", "first", "all"]


class Grid(Protocol):
    """Something that has cells: a block, or a whole sheet."""

    @property
    def name(self) -> str:
        """Its name."""


class Notation(Protocol):
    """The notation of a formula: for a spreadsheet, or for people."""

    def address(self, area: "Area") -> str:
        """The address of an area."""

    def read(self, read: "Read") -> str:
        """The address of what a cell reads of a block."""

    looks_up_one: bool  # whether it looks something up in a lone cell, too

    def nth(self, line: "Area | Read", k: str, first: int) -> str:
        """The k-th cell of a row or a column, counted from `first`: 0 or 1."""

    def picked(self, line: str, k: str, first: int, down: bool) -> str:
        """The same for a line that is text already, given whether it runs down a column."""

    def call(self, function: "Function", arguments: list[str]) -> Spelt:
        """A function with its arguments."""

    def sign(self, sign: str) -> str:
        """An operator, with the spaces around it."""

    def constant(self, value: float | str) -> str:
        """A number, or a text."""


Look = Callable[["Area"], Any]  # an area's value: of one cell, or an array [rows, columns]


def _behind(sign: str) -> Callable[["Expression", Any], "Expression"]:
    """The method for a sign with another operand behind it."""
    return lambda x, other: Operation(sign, x, expression(other))


def _before(sign: str) -> Callable[["Expression", Any], "Expression"]:
    """The method for a sign with another operand before it."""
    return lambda x, other: Operation(sign, expression(other), x)


class Expression:
    """A formula without the leading "=", or a part of one."""

    __slots__ = ()
    level = ATOM
    name: ClassVar[str] = ""  # of the sign or function that it is, for interpreters
    parts: ClassVar[tuple["Expression", ...]] = ()  # what it is made of, one step down

    def text(self, notation: Notation) -> str:
        """Its text in a notation."""
        raise NotImplementedError

    def spelt(self, notation: Notation) -> Spelt:
        """Its text, and how tightly its operator binds."""
        return self.text(notation), self.level

    def value(self, look: Look) -> Any:
        """Its value; `look` gives the values of the areas that it reads."""
        raise NotImplementedError

    def areas(self) -> Iterator["Area"]:
        """Every area that it reads."""
        for part in self.parts:
            yield from part.areas()

    def of(self, *parts: "Expression") -> "Expression":
        """The same node with other parts."""
        return self

    @property
    def key(self) -> Hashable:
        """A value that is the same for equal expressions."""
        return id(self)

    __add__, __radd__ = _behind("+"), _before("+")
    __sub__, __rsub__ = _behind("-"), _before("-")
    __mul__, __rmul__ = _behind("*"), _before("*")
    __truediv__, __rtruediv__ = _behind("/"), _before("/")
    __pow__, __rpow__ = _behind("^"), _before("^")
    __and__, __rand__ = _behind("&"), _before("&")
    __lt__, __le__ = _behind("<"), _behind("<=")
    __gt__, __ge__ = _behind(">"), _behind(">=")
    __eq__, __ne__ = _behind("="), _behind("<>")  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("a formula is neither true nor false before it is computed; use IF")

    def __neg__(self) -> "Expression":
        return Negative(self)


def expression(x: Any) -> Expression:
    """x itself if it is an expression, else a constant."""
    if isinstance(x, Expression):
        return x
    return Constant(x if isinstance(x, AS_THEY_ARE) else float(x))


@dataclass(slots=True, eq=False)
class Constant(Expression):
    """A number, a text, or TRUE; or an array of numbers, one for each cell of a row computed at
    once."""

    number: Any

    @property
    def level(self) -> int:  # type: ignore[override]
        return NEGATIVE if not isinstance(self.number, str) and self.number < 0 else ATOM

    def text(self, notation: Notation) -> str:
        return notation.constant(self.number)

    def value(self, look: Look) -> Any:
        return self.number

    @property
    def key(self) -> Hashable:
        return id(self) if isinstance(self.number, np.ndarray) else (type(self.number), self.number)


def constant(x: Expression) -> Any:
    """The number or text of a constant; None for other expressions."""
    return x.number if isinstance(x, Constant) else None


@dataclass(slots=True, eq=False)
class Row(Expression):
    """Parts of a row side by side, for rows computed at once whose last cells have another
    formula."""

    pieces: Sequence[Expression]

    def value(self, look: Look) -> Any:
        return np.concatenate([np.ravel(piece.value(look)) for piece in self.pieces])


@dataclass(slots=True, eq=False)
class Rounded(Constant):
    """A number rounded to some decimals, at most as many as spreadsheets keep."""

    number: float
    places: int = 12

    def text(self, notation: Notation) -> str:
        return self._spelt

    def value(self, look: Look) -> Any:
        return float(self._spelt)

    @property
    def _spelt(self) -> str:
        return f"{Decimal(f'{self.number:.{DIGITS}g}'):.{self.places}f}"


@dataclass(slots=True, eq=False)
class Area(Expression):
    """Some cells of a grid: `scores[2, 1]`, `scores[2, :]`, `scores[:, 1].fixed`."""

    grid: Grid
    rect: Rect
    stays: Fixed = ""
    range: bool = False  # spelt as a range even where it is one cell

    def __getitem__(self, key: "Index | tuple[Index, Index]") -> "Area":
        """Some of these cells, counted from the first: `a[i, j]`, or `a[i]` in one row or column.

        A slice of an axis stays a range even if it has one cell, so that a column's formulas are
        alike. An index may also be an array of consecutive indices.
        """
        first_row, bottom_row, first_col, right_col = self.rect
        height, width = bottom_row - first_row, right_col - first_col
        if not isinstance(key, tuple):
            if min(height, width) > 1:
                raise IndexError(
                    f"{self.grid.name} has rows and columns: give both a row and a column"
                )
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
        """The single cells, row by row."""
        height, width = self.shape
        return [self[i, j] for i in range(height) for j in range(width)]

    @property
    def fixed(self) -> "Area":
        """The same cells, with an absolute address, which stays when the formula is copied."""
        return Area(self.grid, self.rect, "all", self.range)

    @property
    def fixed_rows(self) -> "Area":
        """The same cells, with an address whose rows are absolute."""
        return Area(self.grid, self.rect, "rows", self.range)

    @property
    def fixed_cols(self) -> "Area":
        """The same cells, with an address whose columns are absolute."""
        return Area(self.grid, self.rect, "cols", self.range)

    @property
    def fixed_first(self) -> "Area":
        """The same cells, with an address whose first cell is absolute, for running sums."""
        return Area(self.grid, self.rect, "first", self.range)

    @property
    def as_range(self) -> "Area":
        """The same cells, written as a range even if they are one cell."""
        return Area(self.grid, self.rect, self.stays, True)

    @property
    def key(self) -> Hashable:
        return self.grid, self.rect

    def text(self, notation: Notation) -> str:
        return notation.address(self)

    def value(self, look: Look) -> Any:
        return look(self)

    def areas(self) -> Iterator["Area"]:
        yield self


def _within(key: Index, n: int) -> tuple[int, int, bool]:
    """The span of an index, and whether it is a slice."""
    if type(key) is int:
        return (key, key + 1, False) if key >= 0 else (key + n, key + n + 1, False)
    if isinstance(key, np.ndarray):
        return int(key[0]), int(key[-1]) + 1, True
    if isinstance(key, slice):
        start, stop, _ = key.indices(n)
        return start, stop, (start, stop) != (0, n)
    return _within(int(key), n)


@dataclass(slots=True, eq=False)
class Read(Expression):
    """The part of a block that the cell at row i and column j reads: one cell or a line of
    cells."""

    block: Any  # whose formulas read it never matters here: a block
    at: Subscript

    @property
    def axis(self) -> int | None:
        """The axis that it runs along; None: it is one cell."""
        return next((axis for axis, code in enumerate(self.at) if code in ALONG), None)

    @property
    def n(self) -> Any:
        """The number of cells along that axis."""
        return 1 if self.axis is None else self.block.shape[self.axis]

    @property
    def key(self) -> "ReadKey":
        return self.block, self.at

    def text(self, notation: Notation) -> str:
        return notation.read(self)


ReadKey = tuple[Any, Subscript]  # of a Read: its block, and where


@dataclass(slots=True, eq=False)
class Operation(Expression):
    """Two expressions with an operator between them."""

    sign: str
    left: Expression
    right: Expression

    @property
    def level(self) -> int:  # type: ignore[override]
        return LEVELS[self.sign]

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.sign

    @property
    def parts(self) -> tuple[Expression, ...]:  # type: ignore[override]
        return self.left, self.right

    def of(self, *parts: Expression) -> Expression:
        return Operation(self.sign, *parts)

    @property
    def key(self) -> Hashable:
        return self.sign, self.left.key, self.right.key

    def text(self, notation: Notation) -> str:
        chain: list[Operation] = []  # a sum may have a thousand terms
        first: Expression = self
        while isinstance(first, Operation):
            chain.append(first)
            first = first.left
        text, before = first.spelt(notation)
        for operation in reversed(chain):
            text = operation._joined(text, before, notation)
            before = operation.level
        return text

    def _joined(self, left: str, before: int, notation: Notation) -> str:
        level = LEVELS[self.sign]
        right, behind = self.right.spelt(notation)
        if before < level:
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
class OfOne(Expression):
    """An expression that is made of a single one."""

    term: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:  # type: ignore[override]
        return (self.term,)

    def of(self, *parts: Expression) -> Expression:
        return type(self)(*parts)

    @property
    def key(self) -> Hashable:
        return self.name, self.term.key


@dataclass(slots=True, eq=False)
class Negative(OfOne):
    """Minus an expression. It binds tighter than a power, as in Excel, where -2^2 is 4."""

    level = NEGATIVE
    name = "negative"

    def text(self, notation: Notation) -> str:
        text, level = self.term.spelt(notation)
        return f"-({text})" if level <= NEGATIVE else f"-{text}"

    def value(self, look: Look) -> Any:
        return SIGNS["-"](0.0, self.term.value(look))


@dataclass(slots=True, eq=False)
class Held(OfOne):
    """An expression that counts as a constant: its derivative is 0. Its text is the expression's
    text."""

    name = "held"

    def text(self, notation: Notation) -> str:
        return self.term.text(notation)

    def spelt(self, notation: Notation) -> Spelt:
        return self.term.spelt(notation)

    def value(self, look: Look) -> Any:
        return self.term.value(look)


@dataclass(slots=True, eq=False)
class Nth(Expression):
    """The k-th cell of a row or a column, counted from 1, or from 0 as ids are. Its text depends on
    how the cells stand on their sheet, which only a notation knows."""

    line: Any  # an area, what a cell reads of a block, or the values of these
    k: Expression
    first: int = 1
    name = "nth"

    @property
    def parts(self) -> tuple[Expression, ...]:  # type: ignore[override]
        return self.line, self.k

    def of(self, *parts: Expression) -> Expression:
        line, k = parts
        return Nth(line, k, self.first)

    @property
    def key(self) -> Hashable:
        return "nth", self.line.key, self.k.key, self.first

    def text(self, notation: Notation) -> str:
        return notation.nth(self.line, self.k.text(notation), self.first)

    def value(self, look: Look) -> Any:
        cells = np.ravel(as_array(self.line.value(look)))
        k = int(number(scalar(self.k.value(look)))) - self.first
        refuse(not 0 <= k < len(cells), "#REF!")
        return no_error(cells[k])


@dataclass(slots=True, eq=False)
class Function:
    """A spreadsheet function: one row of the table in `functions`, which explains the fields.
    Called with expressions, it returns one: `EXP(x - top)`."""

    name: str
    compute: Callable[..., Any]
    lazy: bool = False
    arrays: Callable[..., Any] | None = None
    slopes: Callable[..., Sequence[tuple[Any, Any]]] | None = None
    words: Callable[..., Spelt] | None = None
    cells: Callable[..., Spelt] | None = None
    javascript: str | Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Expression:
        return Call(self, tuple([expression(a) for a in arguments]))


@dataclass(slots=True, eq=False)
class Call(Expression):
    """A function applied to expressions."""

    function: Function
    arguments: tuple[Expression, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.function.name

    @property
    def parts(self) -> tuple[Expression, ...]:  # type: ignore[override]
        return self.arguments

    def of(self, *parts: Expression) -> Expression:
        return Call(self.function, parts)

    @property
    def key(self) -> Hashable:
        return self.function.name, *(a.key for a in self.arguments)

    def text(self, notation: Notation) -> str:
        return self.spelt(notation)[0]

    def spelt(self, notation: Notation) -> Spelt:
        return notation.call(self.function, [a.text(notation) for a in self.arguments])

    def value(self, look: Look) -> Any:
        if self.function.lazy:
            return self.function.compute(*[partial(a.value, look) for a in self.arguments])
        return self.function.compute(*[a.value(look) for a in self.arguments])

    def areas(self) -> Iterator[Area]:
        for argument in self.arguments:
            yield from argument.areas()


Steps = list[tuple[Expression, tuple[int, ...]]]  # parts, and where their own parts stand


def steps(root: Expression) -> Steps:
    """Every part of a formula once, each after its own parts."""
    found: Steps = []
    known: dict[Hashable, int] = {}  # a node and its parts -> its index
    done: dict[int, int] = {}  # the same, by the part's id
    waiting = [root]
    while waiting:
        part = waiting[-1]
        parts = part.parts
        missing = [x for x in parts if id(x) not in done]
        if missing:
            waiting += reversed(missing)
            continue
        waiting.pop()
        of = tuple([done[id(x)] for x in parts])
        name = (part.name, part.first) if isinstance(part, Nth) else part.name
        key = (type(part), name, of if of else part.key)
        if key not in known:
            known[key] = len(found)
            found.append((part, of))
        done[id(part)] = known[key]
    return found


def rebuilt(root: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """A formula with every part changed, from its leaves up."""
    found: list[Expression] = []
    for part, of in steps(root):
        found.append(change(part.of(*[found[k] for k in of]) if of else part))
    return found[-1]


def decimal(number: float | bool) -> str:
    """A plain decimal without exponent, which not every spreadsheet reads in a formula; and TRUE()
    with parentheses, for the same reason."""
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
