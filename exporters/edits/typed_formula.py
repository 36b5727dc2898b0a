"""A formula that a student typed, as tokens: the cells that it reads, and its text for IronCalc.

What cannot be followed to the last cell is refused, with a reason: a number that was computed from
half of the cells would be taken for a mistake of the student's.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from openpyxl.formula.tokenizer import Token, Tokenizer, TokenizerError

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.texts import cut
from cellformer.exporters.assemble.answer_key import KEY
from cellformer.exporters.compose.address import a1, index, quoted, unquoted
from cellformer.exporters.file.xlsx import MAX_COLUMN, MAX_ROW

PLACE = re.compile(r"(?:('(?:[^']|'')+'|[^'!:\[\]]+)!)?([^'!]+)")
AREA = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,9})(?::\$?([A-Z]{1,3})\$?(\d{1,9}))?", re.IGNORECASE)
TRUTHS = ("TRUE", "FALSE")
LATER = re.compile(r"(?:_xlfn\.|_xlws\.)+", re.IGNORECASE)  # how files begin a newer function
PARAMETER = "_xlpm."  # how files begin the names of LET and LAMBDA
FINDERS = ("INDIRECT", "OFFSET")  # they reach cells that the formula does not name
MOST_READ = 200_000  # cells that a formula names
LONGEST, DEEPEST = 8192, 64  # characters; functions and parentheses in each other, as in Excel
READS_ANSWER = "reads the answer"


class RefusedError(Exception):
    """The reason why a typed formula is not computed."""


class Named(NamedTuple):
    """Cells that a formula names."""

    sheet: str
    rect: Rect


class Names:
    """The sheets of a workbook and its defined names; their case does not matter."""

    def __init__(self, sheets: Iterable[str], areas: Mapping[str, str]):
        self.sheets = {name.lower(): name for name in sheets}
        self.areas = {name.lower(): area for name, area in areas.items()}


class TypedFormula:
    """A formula on the sheet `here`, without its equals sign. Raises RefusedError for one that
    reads the answer, and for one that cannot be followed."""

    def __init__(self, text: str, here: str, names: Names):
        self.here, self.names = here, names
        self.areas = list[Named]()
        found = tokens(text)
        self._has_parameters = any(t.value.upper().endswith(("LET(", "LAMBDA(")) for t in found)
        self.text = "".join(map(self._spelt, found))
        if sum(rect.size for _, rect in self.areas) > MOST_READ:
            raise RefusedError(f"cannot follow a formula that reads more than {MOST_READ:,} cells")

    def reads(self, sheet: str, row: int, col: int) -> bool:
        """Whether it names a cell, alone or within a range."""
        here = Rect(row, row + 1, col, col + 1)
        return any(name == sheet and rect.covers(here) for name, rect in self.areas)

    def _spelt(self, token: Token) -> str:
        value: str = token.value
        if token.type == Token.FUNC and token.subtype == Token.OPEN:
            return _function(value)
        if token.type != Token.OPERAND or token.subtype != Token.RANGE:
            return value
        own = value.upper()
        if own in TRUTHS or own.endswith("#REF!") or self._is_parameter(value):
            return value
        area = self._area(value)
        self.areas.append(area)
        if area.sheet == KEY:
            raise RefusedError(f"{READS_ANSWER}: {cut(value, 30)}")
        return f"{quoted(area.sheet)}!{a1(area.rect, 'all', ':' in value)}"

    def _is_parameter(self, value: str) -> bool:
        """Whether a name is one of LET or LAMBDA."""
        plain = value.isidentifier() and not AREA.fullmatch(value)
        mine = plain and value.lower() not in self.names.areas
        return self._has_parameters and (mine or value.startswith(PARAMETER))

    def _area(self, value: str) -> Named:
        """The cells of a reference, or of a defined name."""
        place = PLACE.fullmatch(value)
        if place is None:
            raise _cannot(value)
        sheet, cells = place.groups()
        if not AREA.fullmatch(cells):
            place = PLACE.fullmatch(self.names.areas.get(cells.lower(), ""))
            if place is None:
                raise _cannot(value)
            sheet, cells = place.groups()
        name = unquoted(sheet) if sheet else self.here
        found = AREA.fullmatch(cells)
        if found is None or name.lower() not in self.names.sheets:
            raise _cannot(value)
        return Named(self.names.sheets[name.lower()], rect(value, *found.groups()))


def tokens(text: str) -> list[Token]:
    """The tokens of a formula. Raises RefusedError for another text."""
    if len(text) > LONGEST:
        raise RefusedError(f"cannot follow a formula of more than {LONGEST:,} characters")
    try:
        found: list[Token] = Tokenizer(f"={text}").items
    except (TokenizerError, IndexError):
        raise _cannot(text) from None
    depth = deepest = 0
    for token in found:
        depth += {Token.OPEN: 1, Token.CLOSE: -1}.get(token.subtype, 0)
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise RefusedError(f"cannot follow more than {DEEPEST} nested parentheses")
    return found


def _function(opened: str) -> str:
    """A function's name and its parenthesis, as IronCalc spells it."""
    name = LATER.sub("", opened)
    if name[:-1].upper() in FINDERS:
        raise RefusedError(
            f"{READS_ANSWER}, because {name[:-1].upper()} can read any cell: name the cells instead"
        )
    if ":" in name or "!" in name or "[" in name:  # A1:INDEX(, a function of another workbook
        raise _cannot(opened)
    return name


def rect(value: str, left: str, top: str, right: str | None, bottom: str | None) -> Rect:
    """The rectangle between two corners, in any order."""
    rows = sorted(int(row) - 1 for row in (top, bottom or top))
    columns = sorted(index(letters.upper()) for letters in (left, right or left))
    if rows[0] < 0 or rows[1] > MAX_ROW or columns[1] > MAX_COLUMN:
        raise RefusedError(f"cannot follow {cut(value, 30)}: no sheet has this cell")
    return Rect(rows[0], rows[1] + 1, columns[0], columns[1] + 1)


def _cannot(what: str) -> RefusedError:
    return RefusedError(f"cannot follow {cut(what, 30)}")
