"""Addresses of areas of cells, in a spreadsheet's notation.

The only module that writes dollar signs and exclamation marks, quotes sheet names, and moves an
address with its formula.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.expression import (
    ATOM,
    Area,
    Fixed,
    Function,
    Grid,
    Read,
    Spelt,
    decimal,
)
from cellformer.engine.cells.functions import UNICHAR
from cellformer.engine.cells.texts import CONTROL, storable

MOST_KNOWN = 4096  # addresses that are remembered for a sheet
SINCE_2013 = ("ISFORMULA", "UNICHAR", "UNICODE")  # functions that a file names with a prefix
MOVABLE = re.compile(  # what moves with a formula, after what only looks like it
    r"""(?:"(?:[^"]|"")*"|'(?:[^']|'')*'!)
    |(?<![\w.$])(?:(?P<cell>\$?[A-Z]{1,3}\$?\d+)
        |(?P<lines>\$?[A-Z]{1,3}:\$?[A-Z]{1,3}|\$?\d+:\$?\d+))(?![\w.(!])""",
    re.VERBOSE,
)
COORDINATE = re.compile(r"(\$?)([A-Z]+|\d+)")
# what stands before a column, and before a row
DOLLARS: Mapping[Fixed, tuple[str, str]] = {
    "": ("", ""),
    "first": ("", ""),
    "rows": ("", "$"),
    "cols": ("$", ""),
    "all": ("$", "$"),
}


@cache
def quoted(sheet: str) -> str:
    """A sheet name as formulas spell it, in quotes if needed."""
    return sheet if sheet.isalnum() and sheet[0].isalpha() else "'" + sheet.replace("'", "''") + "'"


@cache
def column(index: int) -> str:
    """A column's letters: 0 is A."""
    index, letter = divmod(index, 26)
    return (column(index - 1) if index else "") + chr(65 + letter)


def a1(rect: Rect, fixed: Fixed = "", as_range: bool = False) -> str:
    """The address of a rectangle: `B2`, `B2:C9`, `$B$2:$C$9`; with fixed rows, `B$2:C$9`."""
    top, bottom, left, right = rect
    first = _cell(top, left, "all" if fixed == "first" else fixed)
    if bottom - top == right - left == 1 and not as_range:
        return first
    return f"{first}:{_cell(bottom - 1, right - 1, '' if fixed == 'first' else fixed)}"


def _cell(row: int, col: int, fixed: Fixed) -> str:
    before_column, before_row = DOLLARS[fixed]
    return f"{before_column}{column(col)}{before_row}{row + 1}"


def of_cell(row: int, col: int) -> str:
    """The address of a single cell."""
    return f"{column(col)}{row + 1}"


def address(sheet: str, rect: Rect, here: str = "", fixed: Fixed = "", range_: bool = False) -> str:
    """The address of a rectangle, with its sheet's name unless that is `here`, the formula's own
    sheet."""
    text = a1(rect, fixed, range_)
    return text if sheet == here else f"{quoted(sheet)}!{text}"


def addresses(sheet: str, rect: Rect, here: str, fixed: Fixed) -> list[str]:
    """The `address` of each cell of a rectangle, row by row."""
    head = "" if sheet == here else f"{quoted(sheet)}!"
    before_column, before_row = DOLLARS[fixed]
    columns = [f"{head}{before_column}{column(col)}" for col in range(rect.left, rect.right)]
    rows = [f"{before_row}{row + 1}" for row in range(rect.top, rect.bottom)]
    return [col + row for row in rows for col in columns]


class A1:
    """A spreadsheet's notation, for formulas on the sheet `here`. Recent addresses are cached,
    since four of five repeat."""

    looks_up_one = False

    def __init__(self, locate: Callable[[Area], tuple[str, Rect]], here: str = ""):
        self.locate = locate  # the sheet and the rectangle of an area
        self.here = here
        self._known: dict[tuple[Grid, Rect, Fixed, bool], str] = {}

    def address(self, area: Area) -> str:
        """`B2`, or `Play!B2` on another sheet."""
        key = area.grid, area.rect, area.stays, area.range
        known = self._known.get(key)
        if known is None:
            if len(self._known) == MOST_KNOWN:
                self._known.clear()
            sheet, rect = self.locate(area)
            known = address(sheet, rect, self.here, area.stays, area.range)
            self._known[key] = known
        return known

    def read(self, read: Read) -> str:
        """Raise an error: a formula that all cells of a block share has no address before it is
        filled in."""
        raise TypeError(f"each cell reads {read.block.name} {read.at} from a different place")

    def nth(self, line: Area | Read, k: str, first: int) -> str:
        """`INDEX(B2:B9,k,1)` of a column, `INDEX(B2:K2,1,k)` of a row. Of one cell, that cell: not
        every program looks things up in a lone one."""
        assert isinstance(line, Area)
        _, rect = self.locate(line)
        where = self.address(line)
        if rect.size == 1 and not line.range:
            return where
        return self.picked(where, k, first, rect.right - rect.left == 1)

    def picked(self, line: str, k: str, first: int, down: bool) -> str:
        """The k-th cell of a range."""
        k = k if first else f"{k}+1"
        return f"INDEX({line},{k},1)" if down else f"INDEX({line},1,{k})"

    def call(self, function: Function, arguments: list[str]) -> Spelt:
        """`MAX(B2:C9,0)`."""
        if function.cells:
            return function.cells(*arguments)
        prefix = "_xlfn." if function.name in SINCE_2013 else ""
        return f"{prefix}{function.name}({','.join(arguments)})", ATOM

    def sign(self, sign: str) -> str:
        """The operator's sign."""
        return sign

    def constant(self, value: float | str) -> str:
        """A plain decimal, or a text in quotes."""
        return self._text(value) if isinstance(value, str) else decimal(value)

    def _text(self, value: str) -> str:
        """A text in quotes; characters that XML lacks by their code: `("a"&UNICHAR(1))`."""
        parts = CONTROL.split(storable(value).replace('"', '""'))
        if len(parts) == 1:
            return f'"{parts[0]}"'
        quoted_parts = (
            self.call(UNICHAR, [str(ord(part))])[0] if k % 2 else f'"{part}"'
            for k, part in enumerate(parts)
        )
        return "(" + "&".join(text for text in quoted_parts if text != '""') + ")"


@cache
def index(letters: str) -> int:
    """A column's number by its letters: A is 0."""
    found = 0
    for letter in letters:
        found = 26 * found + ord(letter) - 64
    return found - 1


def position(address: str) -> Span:
    """The row and column of an address: B5 is (4, 1)."""
    letters = address.rstrip("0123456789")
    return int(address[len(letters) :]) - 1, index(letters)


def rectangle(area: str) -> Rect:
    """The cells of an area by its address, such as B2:C9, or B2."""
    (top, left), *_, (bottom, right) = map(position, area.split(":") * 2)
    return Rect(top, bottom + 1, left, right + 1)


def unquoted(sheet: str) -> str:
    """A sheet's name as it stands in an address, without its quotes."""
    return sheet.removeprefix("'").removesuffix("'").replace("''", "'")


def moved(formula: str, down: int, right: int) -> str:
    """A formula as it reads when copied to a cell further down and to the right."""
    if not (down or right):
        return formula

    def coordinate(match: re.Match[str]) -> str:
        fixed, name = match.groups()
        if fixed:
            return match[0]
        return str(int(name) + down) if name.isdigit() else column(index(name) + right)

    def reference(match: re.Match[str]) -> str:
        moves = match["cell"] or match["lines"]
        return COORDINATE.sub(coordinate, moves) if moves else match[0]

    return MOVABLE.sub(reference, formula)
