"""Formula texts as expressions of ours, and the forms in which they call functions and signs.

A form is a function with the kinds of what it is given: `COUNTIF([number], text)`. What Excel
computed of a form says nothing of another one: of a text among numbers, of TRUE in a range.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from kinds import kinds_of
from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token

from cellformer.engine.cells import functions
from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.expression import (
    Area,
    Constant,
    Expression,
    Function,
    Negative,
    Operation,
)
from cellformer.engine.cells.functions import _each
from cellformer.engine.cells.values import NUMBERS, TRUTHS, CellError, FormulaError
from cellformer.exporters.compose.address import position
from cellformer.exporters.file.reading import WorkbookFile

Cells = Mapping[str, Mapping[Span, Any]]  # values by sheet, row and column
Seen = Callable[[str], object]  # told each form
ANY_NUMBER = ("AND", "AVERAGE", "COUNT", "MAX", "MIN", "OR", "SUM", "SUMPRODUCT")  # of arguments
KEYS = {"COUNTIF": 1, "SUMIF": 1, "MATCH": 0}  # which argument is looked for
LEVELS = {"^": 5, "*": 4, "/": 4, "+": 3, "-": 3, "&": 2}  # comparisons: 1
SHEET = re.compile(r"(?:'((?:[^']|'')+)'|([^'!]+))!")
FUNCTIONS = {x.name: x for x in vars(functions).values() if isinstance(x, Function)}
FUNCTIONS["SIGN"] = Function("SIGN", _each(np.sign))  # in the text of ERF
del FUNCTIONS["ORDER"]  # which is spelt by other functions


class UnknownError(Exception):
    """A formula that has what we never write; the message."""


@dataclass(frozen=True)
class Sheet:
    """What areas are of."""

    name: str


class Seeing(Operation):
    """Two terms with a sign between them, whose form is told."""

    seen: Seen

    def value(self, look: Any) -> Any:
        found = self.left.value(look), self.right.value(look)
        self.seen(f"{kind(found[0])} {self.sign} {kind(found[1])}")
        return Operation(self.sign, *map(Constant, found)).value(look)


def kind(x: Any) -> str:
    """What a value is, or what a range has."""
    if isinstance(x, np.ndarray):
        kinds = {"number"} if x.dtype.kind == "f" else {*map(kind, x.flat)}
        return f"[{' '.join(sorted(kinds))}]"
    if x is None:
        return "blank"
    if isinstance(x, TRUTHS):
        return "truth"
    if isinstance(x, NUMBERS):
        return "number"
    if isinstance(x, CellError):
        return "error"
    if not x:
        return "empty text"
    return "text of digits" if re.fullmatch(r"\s*[-+]?[\d.,]+%?\s*", x) else "text"


def sought(x: Any) -> str:
    """What a value that is looked for is: a text may stand for others, or begin with a sign."""
    if isinstance(x, str) and x[:1] in tuple("<>="):
        return "text with a sign"
    wild = isinstance(x, str) and re.search(r"[*?~]", x)
    return "text with wildcards" if wild else kind(x)


def looking(cells: Cells) -> Callable[[Area], Any]:
    """How expressions read the values of cells."""

    def look(area: Area) -> Any:
        values, (top, bottom, left, right) = cells.get(area.grid.name, {}), area.rect
        if area.rect.size == 1 and not area.range:
            value = values.get((top, left))
            if isinstance(value, CellError):
                raise FormulaError(str(value))
            return value
        found = [values.get((i, j)) for i in range(top, bottom) for j in range(left, right)]
        array = np.empty(len(found), dtype=object)
        array[:] = found
        numeric = {*map(type, found)} == {float}
        return (array.astype(np.float64) if numeric else array).reshape(area.shape)

    return look


class _Parser:
    """A formula's tokens, read from left to right, tighter signs first."""

    def __init__(self, formula: str, sheet: str, seen: Seen, known: Mapping[str, Function]):
        found = Tokenizer(formula).items
        self.tokens: list[Token] = [t for t in found if t.type != Token.WSPACE]
        self.at, self.sheet, self.seen, self.known = 0, sheet, seen, known

    def next(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def terms(self, level: int = 1) -> Expression:
        left = self.term()
        while (t := self.next()) and t.type == Token.OP_IN and LEVELS.get(t.value, 1) >= level:
            sign = self.take().value
            found = Seeing(sign, left, self.terms(LEVELS.get(sign, 1) + 1))
            found.seen = self.seen
            left = found
        return left

    def term(self) -> Expression:
        token = self.take()
        if token.type == Token.OP_PRE:
            inner = self.term()
            return Negative(inner) if token.value == "-" else inner
        if token.type == Token.OPERAND:
            return self.operand(token)
        if token.type == Token.PAREN:
            inner = self.terms()
            self.take()
            return inner
        if token.type == Token.FUNC:
            return self.call(token.value[:-1].removeprefix("_xlfn."))
        raise UnknownError(f"{token.type} {token.value}")

    def call(self, name: str) -> Expression:
        given: list[Expression] = []
        while (t := self.next()) and t.subtype != Token.CLOSE:
            if t.type == Token.SEP:
                self.take()
            given.append(self.terms())
        self.take()
        if name in ("ROW", "COLUMN") and isinstance(given[0], Area):  # where a cell stands
            self.seen(f"{name}(cell)")
            return Constant(1.0 + (given[0].rect.top if name == "ROW" else given[0].rect.left))
        if name == "ISFORMULA" and isinstance(given[0], Area):  # which no value tells
            rect = given[0].rect
            size = rect.bottom - rect.top, rect.right - rect.left
            return Constant(np.ones(size) if rect.size > 1 else 1.0)
        if name not in self.known:
            raise UnknownError(name)
        return told(self.known[name], self.seen)(*given)

    def operand(self, token: Token) -> Expression:
        text = token.value
        if token.subtype == Token.NUMBER:
            return Constant(float(text))
        if token.subtype == Token.TEXT:
            return Constant(text[1:-1].replace('""', '"'))
        if token.subtype == Token.LOGICAL:
            self.seen("TRUE without parentheses")
            return Constant(text == "TRUE")
        if token.subtype != Token.RANGE:
            raise UnknownError(text)
        return area(text, self.sheet)


def area(text: str, here: str) -> Area:
    """The cells that a reference names."""
    found = SHEET.match(text)
    name = (found[1] or found[2]).replace("''", "'") if found else here
    first, colon, last = (text[found.end() :] if found else text).replace("$", "").partition(":")
    if not re.fullmatch(r"[A-Z]{1,3}\d+", first) or (
        colon and not re.fullmatch(r"[A-Z]+\d+", last)
    ):
        raise UnknownError(text)
    (top, left), (bottom, right) = position(first), position(last or first)
    rect = Rect(min(top, bottom), max(top, bottom) + 1, min(left, right), max(left, right) + 1)
    return Area(Sheet(name), rect, range=bool(colon))


def spelt(name: str, kinds: Sequence[str]) -> str:
    """The form of a call; of those that take any number of arguments, each kind once."""
    if name in ANY_NUMBER:
        kinds = [*dict.fromkeys(kinds)]
    return f"{name}({', '.join(kinds)})"


def told(function: Function, seen: Seen) -> Function:
    """A function that tells its form each time; a lazy one with what it asks for."""

    def lazily(*given: Any) -> Any:
        asked: dict[int, str] = {}

        def asking(k: int) -> Callable[[], Any]:
            def ask() -> Any:
                try:
                    value = given[k]()
                except FormulaError:
                    asked[k] = "error"
                    raise
                asked[k] = kind(value)
                return value

            return ask

        try:
            return function.compute(*[asking(k) for k in range(len(given))])
        finally:
            seen(spelt(function.name, [asked.get(k, "…") for k in range(len(given))]))

    def at_once(*values: Any) -> Any:
        kinds = [*map(kind, values)]
        if function.name in KEYS:
            kinds[KEYS[function.name]] = sought(values[KEYS[function.name]])
        if function.name == "ROUND" and kinds[1] == "number" and values[1] % 1:
            kinds[1] = "fraction"
        if function.name == "INT" and kinds == ["number"] and values[0] < 0:
            kinds = ["number below 0"]
        if (
            function.name == "INDEX"
            and len(values) == 2
            and values[0].shape[0] == 1 < values[0].size
        ):
            kinds[0] += " in a row"
        if function.name == "MATCH" and kinds[2:] == ["number"]:
            kinds[2] = f"{values[2]:.0f}"
        seen(spelt(function.name, kinds))
        return function.compute(*values)

    return Function(function.name, lazily if function.lazy else at_once, function.lazy)


def parsed(
    formula: str,
    sheet: str,
    seen: Seen = lambda form: None,
    known: Mapping[str, Function] = FUNCTIONS,
) -> Expression:
    """A formula, with its equals sign, that stands on a sheet. Raises UnknownError."""
    parser = _Parser(formula, sheet, seen, known)
    found = parser.terms()
    if parser.next():
        raise UnknownError(str(parser.next()))
    return found


def computed(expression: Expression, cells: Cells) -> Any:
    """What a cell with that formula shows."""
    try:
        value = expression.value(looking(cells))
    except FormulaError as error:
        return CellError(error)
    if isinstance(value, np.ndarray):
        value = value.flat[0]
    return 0.0 if value is None else value


def _first(found: dict[str, str], where: str, form: str) -> None:
    found.setdefault(form, where)


# --- the forms of a workbook ----------------------------------------------------------------------


def of_workbook(file: WorkbookFile, most: int = 20) -> dict[str, str]:
    """Its forms, each with the first formula that has it; of formulas of one kind that show one
    value, so many are computed."""
    formulas = {(s, at): f for s in file for at, f in file[s].formulas.items()}
    blank = {s: dict.fromkeys(file[s].formulas, "") for s in file}
    cells = {s: blank[s] | {k: v for k, v in file[s].values.items() if v is not None} for s in file}
    found: dict[str, str] = {}
    n = Counter[tuple[str, Any]]()
    for (at, formula), of_kind in zip(formulas.items(), kinds_of(formulas.values()), strict=True):
        value = cells[at[0]][at[1]]
        told = of_kind, value if isinstance(value, str) else kind(value)
        n[told] += 1
        if n[told] <= most:
            where = f"{file.path.stem} {at[0]}: {formula}"
            plain = f"={formula.removeprefix('{').removesuffix('}')}"
            computed(parsed(plain, at[0], partial(_first, found, where)), cells)
    return found


if __name__ == "__main__":
    files = map(WorkbookFile, sys.argv[1:])
    print(*sorted({form for file in files for form in of_workbook(file)}), sep="\n")
