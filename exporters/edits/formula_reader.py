"""A formula's text, read back as an expression: the inverse of `Expression.text` in A1 notation.

It reads what cellformer writes: numbers, texts, cells and ranges, operators, and the functions of
`engine/cells/functions.py`. Nothing in a file is run as code.
"""

from collections.abc import Callable
from typing import NoReturn

from openpyxl.formula.tokenizer import Token

from cellformer.engine.cells import functions
from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import (
    COMPARISON,
    LEVELS,
    Area,
    Constant,
    Expression,
    Function,
    Negative,
    Operation,
)
from cellformer.engine.cells.texts import cut
from cellformer.exporters.compose.address import unquoted
from cellformer.exporters.edits.typed_formula import AREA, LATER, PLACE, RefusedError, rect, tokens

KNOWN = {x.name: x for x in vars(functions).values() if isinstance(x, Function) and not x.cells}
KNOWN["ERF"] = functions.ERF
SIGN = Function("SIGN", lambda x: x)  # only as a part of what ERF is spelt as
TRUTHS = {"TRUE": True, "FALSE": False}
Look = Callable[[str, Rect], Area]


class Reader:
    """Reads one formula, without its equals sign, on the sheet `here`. `area` makes an expression
    of a sheet's cells. Raises InputError for what cellformer does not write."""

    def __init__(self, text: str, here: str, area: Look):
        self.text, self.here, self.area = text, here, area
        try:
            found = tokens(text)
        except RefusedError as error:
            raise InputError(f"{here}: {error}") from None
        self._left = [token for token in found if token.type != Token.WSPACE][::-1]

    def read(self) -> Expression:
        """The whole formula."""
        found = self._expression(COMPARISON)
        if self._left:
            self._refuse(self._left[-1].value)
        return found

    def _expression(self, least: int) -> Expression:
        """Read operands, and operators of at least this precedence, from left to right."""
        found = self._term()
        while self._left and self._left[-1].type == Token.OP_IN:
            sign = self._left[-1].value
            if sign not in LEVELS:
                self._refuse(sign)
            if LEVELS[sign] < least:
                break
            self._left.pop()
            found = _joined(sign, found, self._expression(LEVELS[sign] + 1))
        return found

    def _term(self) -> Expression:
        if not self._left:
            self._refuse(self.text)
        token = self._left.pop()
        if token.type == Token.OP_PRE and token.value == "-":
            term = self._term()
            if isinstance(term, Constant) and not isinstance(term.number, str | bool):
                return Constant(-term.number)
            return Negative(term)
        if token.type == Token.PAREN and token.subtype == Token.OPEN:
            found = self._expression(COMPARISON)
            self._close()
            return found
        if token.type == Token.FUNC and token.subtype == Token.OPEN:
            return self._call(token.value)
        if token.type == Token.OPERAND:
            return self._operand(token)
        self._refuse(token.value)

    def _call(self, opened: str) -> Expression:
        name = LATER.sub("", opened)[:-1].upper()
        given = list[Expression]()
        while self._left and self._left[-1].subtype != Token.CLOSE:
            given.append(self._expression(COMPARISON))
            if self._left and self._left[-1].type == Token.SEP:
                self._left.pop()
        self._close()
        if name in TRUTHS and not given:
            return Constant(TRUTHS[name])
        if name == SIGN.name:
            return SIGN(*given)
        if name not in KNOWN:
            self._refuse(f"{name}()")
        return KNOWN[name](*given)

    def _close(self) -> None:
        if not self._left or self._left.pop().subtype != Token.CLOSE:
            self._refuse(self.text)

    def _operand(self, token: Token) -> Expression:
        value: str = token.value
        if token.subtype == Token.NUMBER:
            return Constant(float(value))
        if token.subtype == Token.TEXT:
            return Constant(value[1:-1].replace('""', '"'))
        if value.upper() in TRUTHS:
            return Constant(TRUTHS[value.upper()])
        place = PLACE.fullmatch(value)
        cells = AREA.fullmatch(place[2]) if place else None
        if place is None or cells is None:
            self._refuse(value)
        name = unquoted(place[1]) if place[1] else self.here
        try:
            area = self.area(name, rect(value, *cells.groups()))
        except RefusedError as error:
            raise InputError(f"{self.here}: {error}") from None
        return area.as_range if ":" in value else area

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(
            f"the formula {cut('=' + self.text, 60)} on sheet {self.here} contains "
            f"{cut(what, 30)}, which cellformer cannot compute; undo that change"
        )


def _joined(sign: str, left: Expression, right: Expression) -> Expression:
    """Two terms with a sign between them; ERF, which not every program knows of negative numbers,
    is spelt SIGN(x)*ERF(ABS(x))."""
    if sign == "*" and left.name == SIGN.name and right.name == "ERF":
        return functions.ERF(*left.parts)
    return Operation(sign, left, right)
