"""Probes: whether a program computes each function that a workbook uses, after edits, too.

A program that lacks a function may keep the number in the file. So a probe is computed from the
number of edits: its cell changes with the first one. Beside it stands what it should be, by a
series or an identity of + - * / and comparisons alone. Both are simple where numbers are near 0:
`p` is 1/2 as built, and 1/3, 1/4, ... after edits; `k` is 1 as built, and then 2.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import NamedTuple

from cellformer.engine.cells import functions as of
from cellformer.engine.cells.access import Span
from cellformer.engine.cells.expression import Area, Call, Expression, Nth, expression
from cellformer.engine.cells.functions import ERF_SLOPE, IF, IFERROR, LOG10_E, MID, added
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.cells.sentence import sentence
from cellformer.exporters.compose.book import Book, TableFormula
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.standing import COLUMN, ROW, Coordinate
from cellformer.exporters.compose.typed_over import IsFormula

PI = 3.14159265358979
HEADS = ("function", "computed", "correct result", "differs")
FINE = round(1 / NEAR)
LONGEST = 200  # characters of the list of functions
SPELT = {"ORDER": "SUMPRODUCT"}  # by another function


class Given(NamedTuple):
    """The inputs of probes."""

    p: Area  # a number that edits change, at most 1/2
    k: Area  # 1 as built, else 2
    line: Area  # three cells: p, k + 3, 2


Probe = Callable[[Given], tuple[Expression, Expression]]  # what is computed, what it should be


def _series(x: Expression, ratios: Iterator[float]) -> Expression:
    """1 + a·x·(1 + b·x·(1 + ...)), given a, b, ..."""
    return reduce(lambda rest, ratio: 1 + x * ratio * rest, reversed([*ratios]), expression(1))


def _exp(x: Expression) -> Expression:
    return _series(x, (1 / n for n in range(1, 20)))


def _log(x: Expression) -> Expression:
    """The natural logarithm of 1 + x, by the logarithm of (1 + z) / (1 - z)."""
    z = x / (2 + x)
    return 2 * z * _series(z * z, ((2 * n - 1) / (2 * n + 1) for n in range(1, 10)))


def _sin(x: Expression, first: int) -> Expression:
    """The series of sin x / x, where `first` is 2, or of cos x, where it is 1."""
    return _series(x * x, (-1 / (n * (n + 1)) for n in range(first, first + 16, 2)))


def _acos(x: Expression) -> Expression:
    n_terms = range(1, 22)
    return PI / 2 - x * _series(x * x, ((2 * n - 1) ** 2 / (2 * n * (2 * n + 1)) for n in n_terms))


def _erf(x: Expression) -> Expression:
    return ERF_SLOPE * x * _series(x * x, ((1 - 2 * n) / (n * (2 * n + 1)) for n in range(1, 12)))


def _variance(g: Given) -> Expression:
    a, b, c = g.line.cells
    mean = (a + b + c) / 3
    return (a * a + b * b + c * c) / 3 - mean * mean


def _either(k: Expression, first: Expression | float, then: Expression | float) -> Expression:
    """The first as built, then the other."""
    return (2 - k) * expression(first) + (k - 1) * expression(then)


def _letter(k: Expression, found: Expression, wanted: str) -> tuple[Expression, Expression]:
    """Whether a text is the one that it is as built."""
    return (found == wanted) * 1, 2 - k


PROBES: Mapping[str, Probe] = {
    "ABS": lambda g: (of.ABS(0 - g.p), g.p + 0),
    "ACOS": lambda g: (of.ACOS(g.p), _acos(g.p)),
    "AND": lambda g: (of.AND(g.k == 1, g.p > 0) * 1, 2 - g.k),
    "AVERAGE": lambda g: (of.AVERAGE(g.line), added(g.line.cells) / 3),
    "CHOOSE": lambda g: (of.CHOOSE(g.k, g.p, 7), _either(g.k, g.p, 7)),
    "COLUMN": lambda g: (Coordinate(COLUMN, g.p) * 0 + g.k, g.k + 0),
    "COS": lambda g: (of.COS(g.p), _sin(g.p, 1)),
    "COUNT": lambda g: (of.COUNT(g.line) * g.k, 3 * g.k),
    "COUNTIF": lambda g: (of.COUNTIF(g.line, ">1") * g.k, 2 * g.k),
    "ERF": lambda g: (of.ERF(g.p), _erf(g.p)),
    "EXACT": lambda g: (of.EXACT("a" & g.k, "a1") * 1, 2 - g.k),
    "EXP": lambda g: (of.EXP(g.p), _exp(g.p)),
    "FIND": lambda g: (of.FIND("" & g.k, "012"), g.k + 1),
    "IF": lambda g: (IF(g.k == 1, g.p, 7), _either(g.k, g.p, 7)),
    "IFERROR": lambda g: (IFERROR(1 / (2 - g.k), 5), _either(g.k, 1, 5)),
    "INDEX": lambda g: (of.INDEX(g.line, g.k, 1), _either(g.k, *g.line.cells[:2])),
    "INT": lambda g: (of.INT(g.k + g.p), g.k + 0),
    "ISFORMULA": lambda g: (IsFormula(g.p) * g.k, g.k + 0),
    "ISNUMBER": lambda g: (of.ISNUMBER(g.p) * g.k, g.k + 0),
    "LARGE": lambda g: (of.LARGE(g.line, 1), g.k + 3),
    "LEFT": lambda g: _letter(g.k, of.LEFT("ab", g.k), "a"),
    "LEN": lambda g: (of.LEN("a" & g.k) * g.k, 2 * g.k),
    "LN": lambda g: (of.LN(1 + g.p), _log(g.p)),
    "LOG10": lambda g: (of.LOG10(1 + g.p), _log(g.p) * LOG10_E),
    "LOWER": lambda g: (of.EXACT(of.LOWER("A" & g.k), "a1") * 1, 2 - g.k),
    "MATCH": lambda g: (of.MATCH(2, g.line, 0) * g.k, 3 * g.k),
    "MAX": lambda g: (of.MAX(g.line), g.k + 3),
    "MID": lambda g: _letter(g.k, of.MID("ab", g.k, 1), "a"),
    "MIN": lambda g: (of.MIN(g.line), g.p + 0),
    "MOD": lambda g: (of.MOD(3 * g.k + g.p, 3 * g.k), g.p + 0),
    "N": lambda g: (of.N(g.p), g.p + 0),
    "NOT": lambda g: (of.NOT(g.k == 1) * 1, g.k - 1),
    "OR": lambda g: (of.OR(g.k == 1, g.p < 0) * 1, 2 - g.k),
    "PI": lambda g: (of.PI() * g.k, PI * g.k),
    "POWER": lambda g: (of.POWER(1 + g.p, 2), (1 + g.p) * (1 + g.p)),
    "RAND": lambda g: (of.INT(of.RAND()) + g.k, g.k + 0),
    "RANK": lambda g: (of.RANK(g.p, g.line) * g.k, 3 * g.k),
    "REPT": lambda g: _letter(g.k, of.REPT("a", g.k), "a"),
    "RIGHT": lambda g: _letter(g.k, of.RIGHT("ab", g.k), "b"),
    "ROUND": lambda g: (of.ROUND(g.k + g.p / 2, 0), g.k + 0),
    "ROW": lambda g: (Coordinate(ROW, g.p) * 0 + g.k, g.k + 0),
    "SIN": lambda g: (of.SIN(g.p), g.p * _sin(g.p, 2)),
    "SQRT": lambda g: (of.SQRT(1 + g.p) * of.SQRT(1 + g.p), 1 + g.p),
    "SUBSTITUTE": lambda g: _letter(g.k, of.SUBSTITUTE("a1", "" & g.k, ""), "a"),
    "SUM": lambda g: (of.SUM(g.line), added(g.line.cells)),
    "SUMIF": lambda g: (of.SUMIF(g.line, ">1", g.line), g.k + 5),
    "SUMPRODUCT": lambda g: (of.SUMPRODUCT(g.line, g.line), added(x * x for x in g.line.cells)),
    "TANH": lambda g: (of.TANH(g.p), 1 - 2 / (_exp(2 * g.p) + 1)),
    "TRIM": lambda g: _letter(g.k, of.TRIM(" a" & g.k), "a1"),
    "TRUE": lambda g: (of.TRUE() * g.k, g.k + 0),
    "UNICHAR": lambda g: _letter(g.k, of.UNICHAR(96 + g.k), "a"),
    "UNICODE": lambda g: (of.UNICODE("b") * g.k, 98 * g.k),
    "VARP": lambda g: (of.VARP(g.line), _variance(g)),
}


def used(book: Book) -> list[str]:
    """The functions of a workbook's formulas, in order."""
    formulas = [
        formula
        for sheet in book.sheets.values()
        for formula in (
            *(place.block.shared for place, _ in sheet.regions if place.block.op),
            *(entry.formula for entry in sheet.entries.values() if entry.formula is not None),
        )
    ]
    found, waiting = {"ISFORMULA"}, formulas
    while waiting:
        part = waiting.pop()
        if isinstance(part, TableFormula):
            part = part.block.formula(part.i, part.j)
        if isinstance(part, Call):
            found.add(part.name)
        elif isinstance(part, Coordinate):
            found.add(part.function.name)
        elif isinstance(part, Nth):
            found.add("INDEX")
        waiting += part.parts
    return sorted({SPELT.get(name, name) for name in found})


def add(
    page: Composer, edits: Expression, at: Span, names: Sequence[str]
) -> tuple[Area, Expression, Expression]:
    """Add a probe of each of some functions, computed from the number of edits. Returns the cell
    that is 1 if ISFORMULA is not computed, the number of other missing functions, and a sentence
    that names them; "" if there are none."""
    top, left = at
    page.heads_at((top - 1, left), *HEADS)
    given = page.table("given", (top, left + 5), (3, 2))
    k = given.put(0, 1, 1 + (edits > 0), "count")
    p = given.put(0, 0, 1 / (2 + edits), "step")
    given.put(1, 0, k + 3, "step")
    given.put(2, 0, k * 0 + 2, "step")
    probe = Given(p, k, given.area[:, 0])
    table = page.table("probes", (top, left + 1), (len(names), 3))
    differs: dict[str, Area] = {}
    for row, name in enumerate(names):
        page.sheet.hold(top + row, left, name, "text")
        computed, wanted = PROBES[name](probe)
        gap = (table.put(row, 0, computed, "step") - table.put(row, 1, wanted, "step")) * FINE
        differs[name] = table.put(row, 2, IFERROR((gap * gap >= 1) * 1, 1), "count")
    formulas = differs.pop("ISFORMULA")
    n = added(differs.values())
    listed = reduce(and_, [IF(cell == 0, "", f", {name}") for name, cell in differs.items()])
    told = sentence("this program does not compute {functions}", functions=MID(listed, 3, LONGEST))
    return formulas, n, IF(n == 0, "", told)
