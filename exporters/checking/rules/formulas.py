"""Rules for formulas: their length, depth, number of arguments, and functions."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from cellformer.engine.cells.access import Rect
from cellformer.exporters.checking.rules.cycles import Reference
from cellformer.exporters.compose.address import SINCE_2013, index

LONGEST, MOST_ARGUMENTS, DEEPEST, LONGEST_TEXT = 8192, 255, 64, 255

TEXT = re.compile(r'"(?:[^"]|"")*"')
REFERENCE = re.compile(  # + after a count: what was taken is not tried again with less
    r"(?<![\w.$!'])((?:'(?:[^']|'')+'!|[\w.]++!)?\$?[A-Z]{1,3}+\$?\d{1,7}+"
    r"(?::\$?[A-Z]{1,3}+\$?\d{1,7}+)?)(?![\w.(!])"
)
PARTS = re.compile(r"(?:(.+)!)?(\$?)([A-Z]+)(\$?)(\d+)(?::(\$?)([A-Z]+)(\$?)(\d+))?$")
TOKEN = re.compile(r"([A-Za-z_][\w.]*)\(|([(){},])")
SMALL_E = re.compile(r"(?<![\w.])[\d.]+e[+-]?\d")
OWN_ROW = re.compile(r"\b(?:ROW|COLUMN)\(\)")
# after Excel 2010; what is not here is as old, or a file names it with _xlfn. before it
_NEWER = """
    ACOT ACOTH ARRAYTOTEXT BASE BINOM.DIST.RANGE BITAND BITLSHIFT BITOR BITRSHIFT BITXOR BYCOL
    BYROW CEILING.MATH CHOOSECOLS CHOOSEROWS COMBINA CONCAT COT COTH CSC CSCH DAYS DECIMAL DROP
    ENCODEURL EXPAND FILTER FILTERXML FLOOR.MATH FORECAST.ETS FORECAST.LINEAR FORMULATEXT GAMMA
    GAUSS GROUPBY HSTACK IFNA IFS IMCOSH IMCOT IMCSC IMSEC IMSINH IMTAN ISFORMULA ISOMITTED
    ISOWEEKNUM LAMBDA LET MAKEARRAY MAP MAXIFS MINIFS MUNIT NUMBERVALUE PDURATION PERCENTOF
    PERMUTATIONA PHI PIVOTBY RANDARRAY REDUCE REGEXEXTRACT REGEXREPLACE REGEXTEST RRI SCAN SEC
    SECH SEQUENCE SHEET SHEETS SINGLE SKEW.P SORT SORTBY SWITCH TAKE TEXTAFTER TEXTBEFORE
    TEXTJOIN TEXTSPLIT TOCOL TOROW TRANSLATE TRIMRANGE UNICHAR UNICODE UNIQUE VALUETOTEXT VSTACK
    WEBSERVICE WRAPCOLS WRAPROWS XLOOKUP XMATCH XOR
"""
NEWER = frozenset(_NEWER.split())


class Formula(NamedTuple):
    """A parsed formula."""

    text: str
    shape: str  # with A1 for every cell, A1:A2 for every range and "" for every text
    reads: tuple[Reference, ...]  # counted from its cell


def formula(text: str, sheet: str, row: int, col: int) -> Formula:
    """The parsed formula of a cell, without its equals sign."""
    parts = REFERENCE.split(TEXT.sub('""', text) if '"' in text else text)
    reads = []
    for k in range(1, len(parts), 2):
        there, top, left, bottom, right, fixed = parsed(parts[k])
        parts[k] = "A1" if top == bottom and left == right else "A1:A2"
        top_fixed, left_fixed, bottom_fixed, right_fixed = fixed
        from_cell = (
            there or sheet,
            top if top_fixed else top - row,
            left if left_fixed else left - col,
            bottom if bottom_fixed else bottom - row,
            right if right_fixed else right - col,
            fixed,
        )
        reads.append(from_cell)
    return Formula(text, "".join(parts), tuple(reads))


@lru_cache(maxsize=1 << 16)
def parsed(reference: str) -> Reference:
    """A reference as rows and columns; its sheet is "" if it names none."""
    match = PARTS.match(reference)
    assert match is not None
    sheet, *spelt = match.groups()
    own_left, left, own_top, top = spelt[:4]
    own_right, right, own_bottom, bottom = spelt[4:] if spelt[5] else spelt[:4]
    return (
        (sheet or "").removeprefix("'").removesuffix("'").replace("''", "'"),
        int(top) - 1,
        index(left),
        int(bottom) - 1,
        index(right),
        (bool(own_top), bool(own_left), bool(own_bottom), bool(own_right)),
    )


def rectangle(area: str) -> Rect:
    """The rectangle of an area such as B2:C9; an empty one if it is invalid."""
    if not PARTS.match(area):
        return Rect(0, 0, 0, 0)
    _, top, left, bottom, right, _ = parsed(area)
    return Rect(top, bottom + 1, left, right + 1)


def units(text: str) -> int:
    """The length of a text as Excel counts it: a code point beyond the first 65,536 is two
    characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def faults(found: Formula, sheets: set[str]) -> list[str]:
    """The rules that a formula breaks."""
    rules = []
    if units(found.text) > LONGEST:
        rules.append(f"a formula is longer than {LONGEST:,} characters")
    if '"' in found.text and any(units(t) - 2 > LONGEST_TEXT for t in TEXT.findall(found.text)):
        rules.append(f"a text within a formula is longer than {LONGEST_TEXT} characters")
    if "!" in found.text:  # the formula's own sheet is there
        for there, *_ in found.reads:
            if there not in sheets:
                rules.append(f"a formula reads a sheet that does not exist, {there}")
    return [*rules, *_of_shape(found.shape)]


@lru_cache(maxsize=1 << 12)
def _of_shape(shape: str) -> tuple[str, ...]:
    """The rules that a formula's shape breaks, without a look at its cells."""
    found = [*_of_calls(shape), *map(_of_function, dict(TOKEN.findall(shape)))]
    if SMALL_E.search(shape):
        found.append("a number has a small e, 1e-9")
    if OWN_ROW.search(shape) and re.search(r"\b(?:SUMPRODUCT|INDEX)\(", shape):
        found.append("ROW() gives an array inside SUMPRODUCT or INDEX")
    return tuple(filter(None, found))


def _of_calls(shape: str) -> Iterator[str]:
    """The rules that the arguments and the depth of calls break."""
    calls: list[tuple[bool, int]] = []  # whether of a function; the commas so far
    depth, deepest, most = 0, 0, 0
    for name, sign in TOKEN.findall(shape):
        if name or sign in "({":
            calls.append((bool(name), 0))
            depth += bool(name)
            deepest = max(deepest, depth)
        elif sign == "," and calls:
            calls[-1] = calls[-1][0], calls[-1][1] + 1
        elif calls:
            of_function, commas = calls.pop()
            depth -= of_function
            most = max(most, commas + 1) if of_function else most
    if most > MOST_ARGUMENTS:
        yield f"a function has more than {MOST_ARGUMENTS} arguments"
    if deepest > DEEPEST:
        yield f"functions are nested more than {DEEPEST} levels deep"


def _of_function(written: str) -> str:
    """The rule that a function's name breaks."""
    name = written.removeprefix("_xlfn.").removeprefix("_xlws.")
    if name in NEWER and name not in SINCE_2013:
        return f"Excel 2010 does not have the newer function {name}"
    return f"a file must spell {name} as _xlfn.{name}" if name in NEWER and name == written else ""
