"""The text of a block's formulas, in a spreadsheet and for people.

A notation writes addresses, functions and operators: `address.A1` for a workbook, `InWords`
for people, `q[2,:]·k[1,:] × scale`; without indices it gives a block's equation, `scores = q·kᵀ ×
scale`. The cells of a block share one formula except for addresses, so its text is made once, as a
template, and filled for each cell: see `Formulas`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from cellformer.engine.cells.access import Rect, Subscript, reads, shift
from cellformer.engine.cells.block import Address, Block, without
from cellformer.engine.cells.derivatives import simplified
from cellformer.engine.cells.expression import (
    ATOM,
    LEVELS,
    Area,
    Call,
    Expression,
    Function,
    Notation,
    Nth,
    Operation,
    Read,
    ReadKey,
    Spelt,
    decimal,
    rebuilt,
)
from cellformer.engine.cells.functions import SUMPRODUCT

GRADIENT, TURNED = "gradient.", "turned."  # what the names of a backward pass's blocks begin with
MOST_KEPT = 4096  # rows or columns of a block whose addresses are remembered
# operands, and whether each is read at one cell; None: it has no such row, which is read as 0
Single = tuple[tuple[int, bool | None], ...]
Addresses = Callable[[Block, int, int], Sequence[str] | None]
Texts = tuple[dict[int, str], Single]  # operand -> address; which of them are one cell
SIGNS = {"+": " + ", "-": " − ", "*": " × ", "/": " / "}  # for people; others have spaces around


class Holes:
    """A notation with a placeholder for each operand's address.

    `words` is the notation of everything else; `runs_down` says whether an operand's range stands
    in a column of the sheet.
    """

    def __init__(self, words: Notation, block: Block, runs_down: Callable[[Block, int], bool]):
        self._words, self._runs_down = words, runs_down
        self._k: dict[ReadKey, int] = {}
        for k, (_, at, operand) in enumerate(block.sources):
            self._k.setdefault((operand, at), k)
        self.address, self.call = words.address, words.call
        self.sign, self.constant = words.sign, words.constant
        self.picked, self.looks_up_one = words.picked, words.looks_up_one

    def read(self, read: Read) -> str:
        """The placeholder of an operand."""
        return f"\0{self._k[read.key]}\0"

    def nth(self, line: Area | Read, k: str, first: int) -> str:
        """A lookup: down a column or across a row."""
        assert isinstance(line, Read) and line.axis is not None
        return self.picked(self.read(line), k, first, self._runs_down(line.block, line.axis))


class Formulas:
    """The formulas of one block: call it with a row and a column.

    `words` is the notation, and `address` turns a rectangle of an operand into text; `addresses`
    gives those of all cells of a row (axis 0) or column (axis 1) of it at once, if that is faster.
    `runs_down` says whether an operand's range stands in a column of the sheet (only lookups need
    it). `frame` is text around the formula, with braces in its place; it depends on which operands
    are single cells.
    """

    def __init__(
        self,
        block: Block,
        words: Notation,
        address: Address,
        runs_down: Callable[[Block, int], bool] = lambda block, axis: True,
        addresses: Addresses = lambda operand, axis, at: None,
        frame: Callable[[tuple[bool, ...]], str] = lambda single: "{}",
    ):
        self._block, self._words, self._address, self._frame = block, words, address, frame
        self._runs_down, self._addresses = runs_down, addresses
        # which of the output's row and column each operand depends on
        depends = [_depends(subscript) for _, subscript, _ in block.sources]
        self._alone = [[k for k, axes in enumerate(depends) if axes <= {axis}] for axis in (0, 1)]
        self._both = [k for k, axes in enumerate(depends) if len(axes) == 2]
        # how long a line of keys or queries is follows from the row
        # or is missing; what is missing follows from the row, too
        lines = [
            k
            for k in self._both
            if any(code in ("≤i", "≥i") or shift(code) for code in block.sources[k][1])
        ]
        self._long = [lines, []]
        self._rows: dict[int, Texts] = {}
        self._cols: dict[int, Texts] = {}
        self._halves: dict[Single, dict[int, tuple[str, list[int]]]] = {}
        self._templates: dict[tuple[bool | None, ...], tuple[str, list[int]]] = {}

    def __call__(self, i: int, j: int) -> str:
        """The formula of one cell."""
        return self.line(0, i, [j])[0]

    def template(self, i: int, j: int) -> tuple[tuple[bool | None, ...], str, list[int]]:
        """The formula of the cell at i and j, with a %s for each single cell that it reads, and
        the operand of each."""
        single = tuple(self._read(k, i, j)[1] for k in range(len(self._block.sources)))
        return single, *self._template(single)

    def line(self, axis: int, at: int, cells: Sequence[int]) -> list[str]:
        """The formulas of some cells of a row (axis 0) or of a column (axis 1).

        Most operands have one address for a whole row of the output, or for a whole column. So
        formulas are filled in two stages, by column and then by row, and the first stage is cached.
        For `SUMPRODUCT(B$2:B$9,F2:F9)`, where the weights F2:F9 belong to the column, the template
        is `SUMPRODUCT(%s,%s)`, the column's stage `SUMPRODUCT(%s,F2:F9)`, and a row fills in the
        rest.
        """
        both = [(k, self._read_by(k, axis, at, cells)) for k in self._both]
        found = []
        for n, other in enumerate(cells):
            i, j = (other, at) if axis else (at, other)
            texts, single = self._rows.get(i) or self._along(self._rows, i, 0, i, j)
            halves = self._halves.get(single) or self._halves.setdefault(single, {})
            half, order = halves.get(j) or self._half(halves, i, j, single)
            for k, read in both:
                texts[k] = read[n]
            found.append(half % tuple([texts[k] for k in order]))
        return found

    def _read_by(self, k: int, axis: int, at: int, cells: Sequence[int]) -> list[str]:
        """The addresses of operand k for cells of a row or a column, each its own."""
        _, subscript, operand = self._block.sources[k]
        if len(cells) > 1 and subscript == ("i", "j"):
            texts = self._addresses(operand, axis, at)
            if texts is not None:
                return [texts[n] for n in cells]
        return [self._read(k, *((n, at) if axis else (at, n)))[0] for n in cells]

    def _along(self, kept: dict[int, Texts], at: int, axis: int, i: int, j: int) -> Texts:
        """The addresses of the operands that depend on one axis of the output alone, or on
        neither."""
        texts: dict[int, str] = {}
        single: list[tuple[int, bool | None]] = []
        for k in self._alone[axis]:
            texts[k], one = self._read(k, i, j)
            single.append((k, one))
        single += [(k, self._read(k, i, j)[1]) for k in self._long[axis]]
        kept[at] = texts, tuple(single)
        return kept[at]

    def _half(
        self, halves: dict[int, tuple[str, list[int]]], i: int, j: int, single: Single
    ) -> tuple[str, list[int]]:
        """A column's formula with placeholders for the differences between its rows, and the
        texts that fill them."""
        for kept in (self._rows, self._cols, halves):
            if len(kept) > MOST_KEPT:
                kept.clear()
        texts, ones = self._cols.get(j) or self._along(self._cols, j, 1, i, j)
        rows = dict.fromkeys(self._both, True) | dict(single)
        flags = dict(ones) | rows
        key = tuple([flags[k] for k in range(len(flags))])
        text, order = self._templates.get(key) or self._template(key)
        filled = tuple(["%s" if k in rows else texts[k] for k in order])
        halves[j] = text.replace("%%", "%%%%") % filled, [k for k in order if k in rows]
        return halves[j]

    def _read(self, k: int, i: int, j: int) -> tuple[str, bool | None]:
        """The address of operand k for the cell at i and j, and whether it is a single cell;
        None if there is no operand."""
        _, subscript, operand = self._block.sources[k]
        rect = Rect(i, i + 1, j, j + 1)
        if subscript != ("i", "j"):
            rect = reads(subscript, rect, operand.shape, self._block.mask)
        return (self._address(operand, rect), rect.size == 1) if rect.size else ("", None)

    def _template(self, single: tuple[bool | None, ...]) -> tuple[str, list[int]]:
        """The formula's text with a %s for each address, and the operand of each."""
        keys = [(b, at) for _, at, b in self._block.sources]
        cells = {key for key, one in zip(keys, single, strict=True) if one}
        absent = {key for key, one in zip(keys, single, strict=True) if one is None}
        formula = self._block.shared
        formula = simplified(without(formula, absent)) if absent else formula
        formula = as_shown(formula, cells, self._words.looks_up_one)
        frame = self._frame(tuple(one is not False for one in single))
        text = frame.format(formula.text(Holes(self._words, self._block, self._runs_down)))
        holes = re.compile("\0(\\d+)\0")
        made = holes.sub("%s", text.replace("%", "%%")), [int(k) for k in holes.findall(text)]
        return self._templates.setdefault(single, made)


def as_shown(formula: Expression, cells: set[ReadKey], looks_up_one: bool) -> Expression:
    """A formula in which lines of one cell are simplified: a sum of products becomes a product and,
    unless the notation `looks_up_one`, a lookup becomes the cell. Nested sums and products lose
    their parentheses."""

    def change(part: Expression) -> Expression:
        of_one = bool(part.parts) and part.parts[0].key in cells
        if of_one and isinstance(part, Call) and part.function is SUMPRODUCT:
            alone = {x.key for x in part.parts} <= cells
            return reduce(partial(Operation, "*"), part.parts) if alone else part
        if of_one and isinstance(part, Nth) and not looks_up_one:
            return part.parts[0]
        return in_a_row(part)

    return rebuilt(formula, change)


def in_a_row(part: Expression) -> Expression:
    """a+(b-c) as a+b-c, a*(b/c) as a*b/c."""
    match part:
        case Operation("+" | "*" as sign, x, Operation(inner, y, z)):
            if LEVELS[inner] == LEVELS[sign]:
                return Operation(inner, in_a_row(Operation(sign, x, y)), z)
    return part


def _depends(subscript: Subscript) -> frozenset[int]:
    """The output's axes that a subscript follows: 0 its row, 1 its column."""
    rows = any(code in ("i", "≤i", "≥i") or shift(code) for code in subscript)
    cols = any(code == "j" or code[0] == "~" for code in subscript)
    return frozenset(axis for axis, follows in enumerate((rows, cols)) if follows)


def readable(block: Block, i: int, j: int) -> str:
    """One cell's formula with names and indices."""
    if block.expression is not None:
        return block.formula(i, j).text(InWords(block.name))

    def address(operand: Block, rect: Rect) -> str:
        spans = [_slice(rect[:2], operand.shape[0]), _slice(rect[2:], operand.shape[1])]
        spans = [s for s, axis in zip(spans, operand.axes, strict=True) if axis]
        return short_name(operand.name, block.name) + (f"[{','.join(spans)}]" if spans else "")

    return Formulas(block, InWords(block.name), address)(i, j)


@dataclass(frozen=True)
class InWords:
    """The notation for people: `exp(scores[2,1] − max(scores[2,0:3]))`."""

    beside: str  # the block that it stands in
    looks_up_one = True

    def address(self, area: Area) -> str:
        rect, grid = area.rect, area.grid
        shape = grid.shape if isinstance(grid, Block) else (rect.bottom, rect.right)
        spans = f"{_slice(rect[:2], shape[0])},{_slice(rect[2:], shape[1])}"
        name = short_name(grid.name, self.beside)
        return name if shape == (1, 1) else f"{name}[{spans}]"

    def read(self, read: Read) -> str:
        return f"{short_name(read.block.name, self.beside)}[{','.join(read.at)}]"

    def nth(self, line: Area | Read, k: str, first: int) -> str:
        return self.picked(line.text(self), k, first, True)

    def picked(self, line: str, k: str, first: int, down: bool) -> str:
        return f"{line}[{k}]"

    def call(self, function: Function, arguments: list[str]) -> Spelt:
        if function.words:
            return function.words(*arguments)
        return f"{function.name.lower()}({', '.join(arguments)})", ATOM

    def sign(self, sign: str) -> str:
        return SIGNS.get(sign, f" {sign} ")

    def constant(self, value: float | str) -> str:
        return f'"{value}"' if isinstance(value, str) else decimal(value)


def equation(block: Block) -> str:
    """The formula that all cells of a block share, in matrix notation: `q·kᵀ × scale`."""
    turned = {b.name for _, (row, col), b in block.sources if row == "j" and col[0] in ":@"}
    crosswise = {b.name for _, (row, col), b in block.sources if row in (":", "≥i") and col == "i"}
    paired = {b.name for _, subscript, b in block.sources if subscript[1][0] == "~"}
    nth = {b.name: code[1:] for _, (_, code), b in block.sources if code[0] == "@"}

    def address(operand: Block, rect: Rect) -> str:
        name, (n_rows, n_columns) = operand.name, operand.shape
        marks = (
            (f"[:,{nth.get(name)}]", name in nth and n_columns > 1),
            ("ᵀ", name in turned and rect.top == 0),  # column 0 reads row 0
            ("ᵀ", name in crosswise and rect.bottom == n_rows),
            ("~", name in paired and rect.left),  # the partner's column
        )
        return short_name(name, block.name) + "".join(mark for mark, is_there in marks if is_there)

    return Formulas(block, InWords(block.name), address)(block.shape[0] - 1, 0)


def short_name(name: str, beside: str) -> str:
    """`name` without the path that it shares with `beside`.

    Beside a gradient, gradients keep `gradient.`, and blocks of the forward pass have no prefix. A
    transposed copy has the name of its original.
    """
    name = name.removeprefix(TURNED)
    if beside.startswith(GRADIENT):
        mark = GRADIENT if name.startswith(GRADIENT) else ""
        return mark + short_name(name.removeprefix(GRADIENT), beside.removeprefix(GRADIENT))
    parts, others = name.split("."), beside.split(".")
    while len(parts) > 1 and len(others) > 1 and parts[0] == others[0]:
        parts, others = parts[1:], others[1:]
    return ".".join(parts)


def _slice(span: tuple[int, int], n: int) -> str:
    start, stop = span
    if stop - start == 1:
        return str(start)
    return f"{start or ''}:{'' if stop == n else stop}"
