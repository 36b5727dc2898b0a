"""The functions of formulas, one row each, with what every interpreter needs.

    name      in a spreadsheet
    compute   its value in one cell, given its arguments'. A range is an array [rows, columns]; it
              may hold texts and blanks (None), which sums, products and extremes ignore. Errors
              raise `FormulaError`, which only IFERROR catches
    lazy      compute takes its arguments as functions, so that a branch not taken is not computed
    arrays    its values over whole blocks, of arrays and lines; a function without it, or that
              returns NotImplemented, is computed cell by cell
    slopes    its derivative, given its value and its arguments: (argument, derivative by it) for
              each; for an argument that is a line, by its r-th cell. None: it counts as constant
    words     how it is written for people; None: its name in lower case
    cells     how it is written in a spreadsheet; None: NAME(a,b)
    javascript  how it is written over typed arrays, in a kernel: a text with its arguments in
              braces, or a function of a `javascript.Writer` and of them; a function without it is
              computed cell by cell, as in tables

All are computed alike by every spreadsheet program.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from cellformer.engine.cells import lines
from cellformer.engine.cells.expression import (
    ATOM,
    PRODUCT,
    Area,
    Call,
    Constant,
    Expression,
    Function,
    Negative,
    Nth,
    Operation,
    Read,
    Spelt,
    constant,
    expression,
)
from cellformer.engine.cells.expression import POWER as AS_POWER
from cellformer.engine.cells.values import (
    NUMBERS,
    SIGNS,
    TRUTHS,
    FormulaError,
    as_array,
    as_number,
    checked,
    is_number,
    is_numeric,
    no_error,
    number,
    numbers,
    numbers_or_0,
    refuse,
    refuse_errors,
    scalar,
    sort_key,
    text_of,
)

WILDCARD = re.compile(r"[*?~]")
WILDCARD_OR_ONE = re.compile(r"~[*?~]|.", re.DOTALL)
LAST = 1e-3  # what the last bits may count for where a number is rounded
LONGEST = 32_767  # characters of a text
WHOLE = 2.0**52  # from here on numbers have no fractions

ERF_SLOPE = 1.1283791670955126  # of erf at 0: 2 / sqrt(pi)
LOG10_E = 0.4342944819032518

# --- what slopes are made of ------------------------------------------------------------------
# Of a formula over blocks, arguments are expressions; of one cell's, constants: what they came to.


@dataclass(slots=True, eq=False)
class Place(Expression):
    """The index, from 0, of entry `r` along an axis of a block."""

    block: Any
    axis: int

    @property
    def key(self) -> Any:
        return self.block, self.axis


def entry(x: Expression) -> Expression:
    """The r-th cell of a line; a single cell is its own."""
    if not isinstance(x, Read) or x.axis is None:
        return x
    at = ["r" if axis == x.axis else code for axis, code in enumerate(x.at)]
    return Read(x.block, (at[0], at[1]))


def place(x: Expression) -> Expression:
    """The index in its line of the r-th cell, from 0."""
    if isinstance(x, Read):
        assert x.axis is not None
        return Place(x.block, x.axis)
    found = np.asarray(constant(x))
    return Constant(np.arange(found.size, dtype=np.float64).reshape(found.shape))


def count(x: Any) -> Any:
    """The number of cells of a line: a constant, unless each cell of a block reads another part."""
    if isinstance(x, Constant):
        return np.size(x.number)
    return COUNT(x) if {"≤i", "≥i"} & {*x.at} else x.n


def is_line(x: Expression) -> bool:
    """Whether an argument is more than one cell."""
    return x.axis is not None if isinstance(x, Read) else np.size(constant(x)) > 1


def _largest_slopes(y: Expression, *xs: Expression) -> list[tuple[Expression, Any]]:
    """1 for each cell that equals the maximum of a line; for two cells, 1 for the larger one."""
    if len(xs) == 2 and not any(map(is_line, xs)):
        return [(x, IF(other < x, 1, 0)) for x, other in (xs, xs[::-1])]
    return [(x, IF(entry(x) == y, 1, 0)) for x in xs]


def _index_slopes(
    y: Expression, x: Expression, row: Expression, col: Expression | None = None
) -> list[tuple[Expression, Any]]:
    """1 for the cell that is picked, or for all of the row or column."""
    if isinstance(x, Read):
        at = row if col is None else row + col - 1
        return [(x, IF(INT(at) == place(x) + 1, 1, 0) if is_line(x) else 1)]
    cells = np.atleast_2d(np.asarray(constant(x)))
    places = np.arange(float(cells.size)).reshape(cells.shape)
    picked = _index(places, constant(row), None if col is None else constant(col))
    return [(x, Constant(np.isin(places, np.asarray(picked)).astype(np.float64)))]


def _sum_if_slopes(
    y: Expression, x: Expression, criterion: Expression, summed: Expression | None = None
) -> list[tuple[Expression, Any]]:
    if isinstance(x, Read):
        return [(x if summed is None else summed, COUNTIF(entry(x), criterion))]
    cells, meets = np.asarray(constant(x), dtype=object), _meets(constant(criterion))
    met = np.array([float(meets(v)) for v in cells.flat]).reshape(cells.shape)
    return [(x if summed is None else summed, Constant(met))]


def _product_slopes(y: Expression, *xs: Expression) -> list[tuple[Expression, Any]]:
    """By each factor, the product of the others."""
    found = []
    for k, x in enumerate(xs):
        others = [entry(other) for other in (*xs[:k], *xs[k + 1 :])]
        found.append((x, reduce(operator.mul, others) if others else 1))
    return found


# --- how some are spelt -------------------------------------------------------------------------


def _called(name: str) -> Callable[..., Spelt]:
    """A function for another name than the spreadsheet's."""
    return lambda *xs: (f"{name}({', '.join(xs)})", ATOM)


def _product_in_words(*xs: str) -> Spelt:
    return ("·".join(xs), AS_POWER) if len(xs) == 2 else _called("sumproduct")(*xs)


def _if_in_words(condition: str, *chosen: str) -> Spelt:
    """A comparison alone, if the result is 1 or 0."""
    return (f"({condition})", ATOM) if chosen == ("1", "0") else _called("if")(condition, *chosen)


# --- of numbers -----------------------------------------------------------------------------


def _each(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of one number, applied to every number of a range."""

    def apply(x: Any) -> Any:
        with np.errstate(all="ignore"):
            found = compute(number(x))
        return found if isinstance(found, np.ndarray) and found.ndim else checked(float(found))

    return apply


def _modulo(a: Any, b: Any) -> Any:
    a, b = number(a), number(b)
    refuse(not isinstance(b, np.ndarray) and b == 0, "#DIV/0!")
    return np.mod(a, b)


def _rounded(x: Any, places: Any) -> Any:
    """x rounded to so many decimals, halves away from 0; negative decimals round to tens or
    hundreds.

    A number within two bits of a half counts as a half, as in spreadsheets.
    """
    places = np.trunc(places)
    unit = 10.0 ** np.abs(places)
    scaled = np.abs(np.where(places < 0, x / unit, x * unit))
    last = 2 * np.spacing(scaled)
    whole = np.floor(scaled + 0.5 + np.where(last < LAST, last, 0))
    whole = np.where(scaled < WHOLE, whole, scaled)
    return np.copysign(np.where(places < 0, whole * unit, whole / unit), x)


def rounded(x: Any, places: Any = 0.0) -> Any:
    """The numbers of an array, rounded as ROUND rounds them."""
    if isinstance(x, lines.Line) or isinstance(places, lines.Line):
        return NotImplemented
    with np.errstate(all="ignore"):
        return _rounded(np.asarray(x, np.float64), places)


COS: Function  # slopes name functions that stand further down
EXP: Function
IF: Function
POWER: Function
SIN: Function
SQRT: Function
_erf = np.vectorize(math.erf, otypes=[np.float64])  # numpy has none

ABS = Function(
    "ABS",
    _each(np.abs),
    arrays=np.abs,
    slopes=lambda y, x: [(x, IF(x < 0, -1, 1))],
    javascript="Math.abs({})",
)
ACOS = Function(
    "ACOS",
    _each(np.arccos),
    arrays=np.arccos,
    slopes=lambda y, x: [(x, -1 / SQRT(1 - x * x))],
    javascript="Math.acos({})",
)
COS = Function(
    "COS",
    _each(np.cos),
    arrays=np.cos,
    slopes=lambda y, x: [(x, -1 * SIN(x))],
    javascript="Math.cos({})",
)
# not every program takes ERF of a negative number: erf(-x) = -erf(x)
ERF = Function(
    "ERF",
    _each(_erf),
    arrays=_erf,
    slopes=lambda y, x: [(x, ERF_SLOPE * EXP(-1 * x * x))],
    cells=lambda x: (f"SIGN({x})*ERF(ABS({x}))", PRODUCT),
    javascript="erf({})",
)
EXP = Function(
    "EXP", _each(np.exp), arrays=np.exp, slopes=lambda y, x: [(x, y)], javascript="Math.exp({})"
)
INT = Function("INT", _each(np.floor), arrays=np.floor, javascript="Math.floor({})")
LN = Function(
    "LN",
    _each(np.log),
    arrays=np.log,
    slopes=lambda y, x: [(x, 1 / x)],
    words=_called("log"),
    javascript="Math.log({})",
)
LOG10 = Function(
    "LOG10",
    _each(np.log10),
    arrays=np.log10,
    slopes=lambda y, x: [(x, LOG10_E / x)],
    javascript="Math.log10({})",
)
MOD = Function("MOD", _modulo, arrays=np.mod, slopes=lambda y, a, b: [(a, 1), (b, -1 * INT(a / b))])
PI = Function("PI", lambda: math.pi, javascript="Math.PI")
POWER = Function(
    "POWER",
    SIGNS["^"],
    arrays=np.power,
    slopes=lambda y, x, n: [(x, n * POWER(x, n - 1)), (n, y * LN(x))],
    words=lambda x, n: (f"{x}^{n}", ATOM),
    javascript="Math.pow({},{})",
)
# A random number: here one half, so it is only for what does not depend on it, and is to be
# computed anew at each recalculation.
RAND = Function("RAND", lambda: 0.5)
# its derivative is 0 wherever it has one, so that a gradient does not go through it
ROUND = Function("ROUND", lambda x, n: _each(lambda y: _rounded(y, number(n)))(x), arrays=rounded)
SIN = Function(
    "SIN",
    _each(np.sin),
    arrays=np.sin,
    slopes=lambda y, x: [(x, COS(x))],
    javascript="Math.sin({})",
)
SQRT = Function(
    "SQRT",
    _each(np.sqrt),
    arrays=np.sqrt,
    slopes=lambda y, x: [(x, 0.5 / y)],
    javascript="Math.sqrt({})",
)
TANH = Function(
    "TANH",
    _each(np.tanh),
    arrays=np.tanh,
    slopes=lambda y, x: [(x, 1 - y * y)],
    javascript="Math.tanh({})",
)


# --- of ranges ------------------------------------------------------------------------------


def _reduced(compute: Callable[[np.ndarray], Any], of_nothing: str | float) -> Callable[..., float]:
    """A function of all given numbers; `of_nothing` is its value, or error, if there are none."""

    def apply(*xs: Any) -> float:
        found = numbers(*xs)
        if not found.size:
            if isinstance(of_nothing, str):
                raise FormulaError(of_nothing)
            return of_nothing
        return float(checked(float(compute(found))))

    return apply


def _product_sum(first: Any, *others: Any) -> float:
    if not others:
        return float(checked(float(np.add.reduce(numbers(first)))))
    *most, last = [numbers_or_0(np.atleast_2d(np.asarray(x))) for x in (first, *others)]
    refuse(any(x.shape != last.shape for x in most), "#VALUE!")
    left = most[0].ravel()
    for x in most[1:]:
        left = left * x.ravel()
    return float(checked(float(left @ last.ravel())))


def _largest(x: Any, k: Any) -> Any:
    found = numbers(x)
    if np.ndim(k) == 0 and 1 <= number(k) <= found.size:
        place = found.size - int(number(k))
        return float(np.partition(found, place)[place])
    ranked = np.sort(found)[::-1]
    at = np.trunc(number(k)) - 1
    refuse((at < 0).any() or (at >= len(ranked)).any(), "#NUM!")
    largest = ranked[at.astype(int)]
    return largest if at.ndim else float(largest)


def _meets(criterion: Any) -> Callable[[Any], bool]:
    """Whether a cell meets a criterion of COUNTIF or SUMIF: a value, or one after an operator. A
    text that reads like the number meets it, too."""
    criterion = scalar(criterion)
    sign, wanted = "=", criterion
    if isinstance(criterion, str):
        sign = next((s for s in ("<>", "<=", ">=", "<", ">", "=") if criterion.startswith(s)), "")
        rest, sign = criterion[len(sign) :], sign or "="
        found = as_number(rest)
        wanted = rest if found is None else found
    holds, kind = SIGNS[sign], _kind(wanted)
    same = sign in ("=", "<>")
    is_like = like(wanted) if same and kind is str else None

    def meets(x: Any) -> bool:
        if same and kind is float and isinstance(x, str):
            found = as_number(x)
            x = x if found is None else found
        if x is None or _kind(x) is not kind:
            return sign == "<>"
        return is_like(x) == (sign == "=") if is_like else bool(holds(x, wanted))

    return meets


def _kind(x: Any) -> type:
    """The type of a cell's value for criteria: text, truth value, number."""
    return str if isinstance(x, str) else bool if isinstance(x, TRUTHS) else float


def _sum_if(x: Any, criterion: Any, summed: Any = None) -> float:
    meets, summed = _meets(criterion), x if summed is None else summed
    cells, added = (np.atleast_2d(np.asarray(y, dtype=object)) for y in (x, summed))
    refuse(cells.shape != added.shape, "#VALUE!")
    pairs = zip(cells.flat, added.flat, strict=True)
    met = np.array([y for v, y in pairs if meets(v)], dtype=object)
    return float(np.add.reduce(numbers(met)))


def _n_numbers(x: Any) -> int:
    return x.size if is_numeric(x) else sum(map(is_number, np.asarray(x, dtype=object).flat))


def _rank(x: Any, among: Any) -> float:
    others, own = numbers(among), number(scalar(x))
    refuse(own not in others, "#N/A")
    return float((others > own).sum() + 1)


def _in_order(x: Any, among: Any, at: Any, places: Any) -> float:
    """The number of entries before x: larger ones, or equal ones with a smaller index."""
    others, own = np.ravel(among), number(scalar(x))
    earlier = (others == own) & (np.ravel(places) < number(scalar(at)))
    return float(((others > own) | earlier).sum())


AVERAGE = Function(
    "AVERAGE",
    _reduced(lambda x: np.add.reduce(x) / len(x), "#DIV/0!"),
    arrays=lines.mean,
    slopes=lambda y, *xs: [(x, 1 / expression(sum(map(count, xs)))) for x in xs],
    words=_called("mean"),
    javascript=lambda to, *xs: to.mean(*xs),
)
COUNT = Function(
    "COUNT",
    lambda *xs: float(sum(map(_n_numbers, xs))),
    javascript=lambda to, *xs: to.count(*xs),
)
COUNTIF = Function(
    "COUNTIF", lambda x, test: float(sum(map(_meets(test), np.asarray(x, dtype=object).flat)))
)
LARGE = Function("LARGE", _largest, slopes=lambda y, x, k: [(x, IF(entry(x) == y, 1, 0))])
MAX = Function(
    "MAX",
    _reduced(np.max, 0.0),
    arrays=lines.largest,
    slopes=_largest_slopes,
    javascript=lambda to, *xs: to.gathered("-Infinity", "Math.max({},{})", *xs),
)
MIN = Function(
    "MIN",
    _reduced(np.min, 0.0),
    arrays=lines.smallest,
    slopes=lambda y, *xs: [(x, IF(entry(x) == y, 1, 0)) for x in xs],
    javascript=lambda to, *xs: to.gathered("Infinity", "Math.min({},{})", *xs),
)
# How many of a line come before a cell: larger ones, or equal ones at earlier places.
ORDER = Function(
    "ORDER",
    _in_order,
    arrays=lines.rank,
    words=lambda x, line, *_: (f"rank of {x} in {line}", ATOM),
    cells=lambda x, line, at, places: (
        f"SUMPRODUCT(({line}>{x})+({line}={x})*({places}<{at}))",
        ATOM,
    ),
    javascript=lambda to, *xs: to.rank(*xs),
)
RANK = Function("RANK", _rank)
SUM = Function(
    "SUM",
    _reduced(np.add.reduce, 0.0),
    arrays=lines.total,
    slopes=lambda y, *xs: [(x, 1) for x in xs],
    javascript=lambda to, *xs: to.sum(*xs),
)
SUMIF = Function("SUMIF", _sum_if, slopes=_sum_if_slopes)
SUMPRODUCT = Function(
    "SUMPRODUCT",
    _product_sum,
    arrays=lines.product_sum,
    slopes=_product_slopes,
    words=_product_in_words,
    javascript=lambda to, *xs: to.products(*xs),
)
VARP = Function(
    "VARP",
    _reduced(np.var, "#DIV/0!"),
    arrays=lines.variance,
    slopes=lambda y, *xs: [
        (x, (entry(x) - AVERAGE(*xs)) * 2 / expression(sum(map(count, xs)))) for x in xs
    ],
    words=_called("variance"),
    javascript=lambda to, x: to.variance(x),
)


def like(wanted: str) -> Callable[[str], bool]:
    """Whether a text matches a pattern, ignoring case: * stands for any characters, ? for one, and
    ~ before them for themselves."""
    if not WILDCARD.search(wanted):
        own = wanted.casefold()
        return lambda x: x.casefold() == own
    runs = [""]  # between the stars; each stands as early as it can, so no text takes long
    for part in WILDCARD_OR_ONE.findall(wanted):
        if part == "*":
            runs.append("")
        else:
            runs[-1] += "." if part == "?" else re.escape(part[-1])
    begin, *between = runs
    end = f".*{between.pop()}" if between else ""
    found = "".join([begin, *(f"(?>.*?{run})" for run in between), end])
    pattern = re.compile(found, re.IGNORECASE | re.DOTALL)
    return lambda x: pattern.fullmatch(x) is not None


# --- choosing and looking up ----------------------------------------------------------------


def _truth(x: Any) -> bool:
    return x if type(x) is bool else bool(number(scalar(x)))


def _truths(*xs: Any) -> list[bool]:
    """The given truth values; texts and blanks in ranges are ignored."""
    found: list[bool] = []
    for x in xs:
        if isinstance(x, np.ndarray):
            refuse_errors(x)
            found += [bool(v) for v in x.flat if isinstance(v, NUMBERS + TRUTHS)]
        else:
            found.append(_truth(x))
    refuse(not found, "#VALUE!")
    return found


Later = Callable[[], Any]  # an argument that is computed when it is asked for


def _if(condition: Later, then: Later, otherwise: Later = lambda: False) -> Any:
    found = condition()
    if isinstance(found, np.ndarray) and found.size > 1:
        return np.where(found.astype(bool), _as_it_is(then()), _as_it_is(otherwise()))
    return then() if _truth(found) else otherwise()


def _as_it_is(x: Any) -> Any:
    """The cells unchanged: beside a text, numpy would turn a number into a text."""
    return x if is_numeric(x) or is_number(x) else np.asarray(x, dtype=object)


def _if_error(x: Later, otherwise: Later) -> Any:
    try:
        return x()
    except FormulaError:
        return otherwise()


def _choose(index: Later, *options: Later) -> Any:
    k = int(number(scalar(index())))
    refuse(not 1 <= k <= len(options), "#VALUE!")
    return options[k - 1]()


def _index(x: Any, row: Any, col: Any = None) -> Any:
    """The entry at a row and a column, counted from 1; 0: the whole row or column."""
    x = np.atleast_2d(as_array(x))
    if col is None:
        row, col = (1.0, row) if x.shape[0] == 1 else (row, 1.0)
    height, width = x.shape
    row, col = number(row), number(col)
    if type(row) is type(col) is float and 1 <= row < height + 1 and 1 <= col < width + 1:
        return no_error(x.item(int(row) - 1, int(col) - 1))  # as most are
    i, j = np.trunc(row), np.trunc(col)
    many = bool(i.ndim or j.ndim)  # of which each is a cell: 0 is no row or column of them
    refuse(i.min() < many or j.min() < many, "#VALUE!")
    refuse(i.max() > height or j.max() > width, "#REF!")
    i, j = i.astype(int), j.astype(int)
    if many:
        return x[i - 1, j - 1]
    rows = slice(None) if i == 0 else slice(int(i) - 1, int(i))
    found = x[rows, slice(None) if j == 0 else slice(int(j) - 1, int(j))]
    return no_error(found.item()) if found.size == 1 else found


def _match(wanted: Any, x: Any, kind: Any = 1.0) -> Any:
    """The index of a value in a row or column, from 1; kind 1: the last value that is not
    larger."""
    kind = scalar(kind)
    if isinstance(wanted, np.ndarray) and wanted.size > 1:
        return _match_each(wanted, np.asarray(x).ravel(), kind)
    wanted, cells = scalar(wanted), np.asarray(x).ravel()
    if number(kind) == 0:
        if cells.dtype != object and is_number(wanted):
            at = np.flatnonzero(cells == wanted)
        elif isinstance(wanted, str):
            is_like = like(wanted)
            at = np.flatnonzero([isinstance(v, str) and is_like(v) for v in cells])
        else:
            key = sort_key(wanted, wanted)
            at = np.flatnonzero([v is not None and sort_key(v, wanted) == key for v in cells])
        refuse(not at.size, "#N/A")
        return float(at[0] + 1)
    place = int(np.searchsorted(numbers(cells), number(wanted), side="right"))
    refuse(not place, "#N/A")
    return float(place)


def _match_each(wanted: np.ndarray, cells: np.ndarray, kind: Any) -> np.ndarray:
    """The index of each of many values; for numbers, all at once."""
    if wanted.dtype != np.float64 or cells.dtype != np.float64:
        return np.array([_match(v, cells, kind) for v in wanted.flat]).reshape(wanted.shape)
    if number(kind) != 0:
        places = np.searchsorted(cells, wanted, side="right")
        refuse(not places.all(), "#N/A")
        return places.astype(np.float64)
    order = np.argsort(cells, kind="stable")
    at = np.searchsorted(cells, wanted, sorter=order).clip(max=len(cells) - 1)
    refuse((cells[order[at]] != wanted).any(), "#N/A")
    return np.asarray(order[at] + 1.0)


def _number_in(x: Any) -> float:
    """The number in a cell; 0 for a text or a blank."""
    x = scalar(x)
    return float(x) if isinstance(x, NUMBERS) else 0.0


AND = Function("AND", lambda *xs: all(_truths(*xs)))
CHOOSE = Function(
    "CHOOSE",
    _choose,
    lazy=True,
    slopes=lambda y, k, *xs: [(x, IF(INT(k) == n, 1, 0)) for n, x in enumerate(xs, 1)],
)
IF = Function(
    "IF",
    _if,
    lazy=True,
    arrays=lines.chosen,
    slopes=lambda y, c, x, z=None: [(x, IF(c, 1, 0))] + ([] if z is None else [(z, IF(c, 0, 1))]),
    words=_if_in_words,
    javascript=lambda to, *xs: to.chosen(*xs),
)
IFERROR = Function("IFERROR", _if_error, lazy=True, slopes=lambda y, x, other: [(x, 1)])
INDEX = Function("INDEX", _index, slopes=_index_slopes)
ISNUMBER = Function("ISNUMBER", lambda x: is_number(scalar(x)))
MATCH = Function("MATCH", _match)
N = Function("N", _number_in, arrays=lambda x: x, slopes=lambda y, x: [(x, 1)], javascript="{}")
NOT = Function("NOT", lambda x: not _truth(x))
OR = Function("OR", lambda *xs: any(_truths(*xs)))
TRUE = Function("TRUE", lambda: True)


def lookup(table: Expression, ids: Expression) -> Expression:
    """The entry of a line with a given id, counted from 0."""
    assert isinstance(table, Area | Read)
    return Nth(table, ids, first=0)


# --- of texts -------------------------------------------------------------------------------


def _exact(a: Any, b: Any) -> Any:
    """Whether two texts are equal, case-sensitively; for ranges, cell by cell."""
    if isinstance(b, np.ndarray) and b.size > 1:
        refuse(np.shape(a) != b.shape, "#VALUE!")
        pairs = zip(np.asarray(a).flat, b.flat, strict=True)
        return np.array([text_of(v) == text_of(w) for v, w in pairs]).reshape(b.shape)
    if isinstance(a, np.ndarray) and a.size > 1:
        wanted = text_of(b)
        return np.array([text_of(v) == wanted for v in a.flat]).reshape(a.shape)
    return text_of(a) == text_of(b)


def _find(sought: Any, x: Any, start: Any = 1.0) -> float:
    """The position of a text within another, from 1, case-sensitively, searched from `start` on."""
    first = int(number(scalar(start))) - 1
    place = text_of(x).find(text_of(sought), max(first, 0))
    refuse(min(first, place) < 0, "#VALUE!")
    return float(place + 1)


def _substitute(x: Any, old: Any, new: Any) -> str:
    text, old = text_of(x), text_of(old)
    return text.replace(old, text_of(new)) if old else text


def _repeated(x: Any, n: Any) -> str:
    text, often = text_of(x), _size(n)
    refuse(len(text) * often > LONGEST, "#VALUE!")
    return text * often if text else text  # Python repeats nothing only so often


def _size(n: Any) -> int:
    """A nonnegative whole number: of characters, or of repetitions."""
    n = number(scalar(n))
    refuse(n < 0, "#VALUE!")
    return int(n)


def _middle(x: Any, start: Any, n: Any) -> str:
    first, size = int(number(scalar(start))) - 1, _size(n)
    refuse(first < 0, "#VALUE!")
    return text_of(x)[first : first + size]


def _code(x: Any) -> float:
    """The code point of a text's first character; an error for half a surrogate pair."""
    text = text_of(x)
    refuse(not text or "\ud800" <= text[0] < "\ue000", "#VALUE!")
    return float(ord(text[0]))


def _character(x: Any) -> str:
    code = int(number(scalar(x)))
    refuse(
        not 0 < code < 0x110000 or 0xD800 <= code < 0xE000 or 0xFFFE <= code <= 0xFFFF, "#VALUE!"
    )
    return chr(code)


EXACT = Function("EXACT", _exact)
FIND = Function("FIND", _find)
LEFT = Function("LEFT", lambda x, n=1.0: text_of(x)[: _size(n)])
LEN = Function("LEN", lambda x: float(len(text_of(x))))
LOWER = Function("LOWER", lambda x: text_of(x).lower())
MID = Function("MID", _middle)
REPT = Function("REPT", _repeated)
RIGHT = Function("RIGHT", lambda x, n=1.0: text_of(x)[-_size(n) :] if _size(n) else "")
SUBSTITUTE = Function("SUBSTITUTE", _substitute)
UNICHAR = Function("UNICHAR", _character)
UNICODE = Function("UNICODE", _code)
TRIM = Function("TRIM", lambda x: " ".join(part for part in text_of(x).split(" ") if part))


# --- written out ----------------------------------------------------------------------------


def added(terms: Iterable[Any]) -> Expression:
    """Terms with a plus sign between them: `B2+C2+D2`."""
    return expression(reduce(operator.add, terms))


def dot(x: Area, y: Area) -> Expression:
    """The products of two rows or columns, added: `B2*F7+C2*F8`. They may be a row and a column,
    as in a matrix product, where SUMPRODUCT wants equal shapes."""
    return added(a * b for a, b in zip(x.cells, y.cells, strict=True))


# --- what bad cells do ------------------------------------------------------------------------

OF_TEXTS = (LEFT, LOWER, MID, REPT, RIGHT, SUBSTITUTE, TRIM, UNICHAR)
OF_SOME_NUMBERS = (LN, LOG10, SQRT)
CHOOSING = (CHOOSE, IF, IFERROR)  # which give what one of their arguments is


def harmless(formula: Expression) -> Expression:
    """A formula in which errors of the cells that it reads count as 0."""
    if isinstance(formula, Call) and formula.function is IFERROR:
        return formula
    return IFERROR(formula, "" if _gives_text(formula) else 0)


def may_fail(formula: Expression) -> bool:
    """Whether a formula of numbers can be an error, for example for 0, which edits may lead to."""
    if isinstance(formula, Operation):
        divides = formula.sign == "/" and not constant(formula.right)
        return divides or may_fail(formula.left) or may_fail(formula.right)
    if isinstance(formula, Negative):
        return may_fail(formula.term)
    if not isinstance(formula, Call) or formula.function is IFERROR:
        return False
    return formula.function in OF_SOME_NUMBERS or any(map(may_fail, formula.arguments))


def _gives_text(formula: Expression) -> bool:
    """Whether a formula's value is a text, as far as its own parts tell."""
    if isinstance(formula, Operation):
        return formula.sign == "&"
    if not isinstance(formula, Call):
        return isinstance(constant(formula), str)
    chosen = formula.function in CHOOSING and any(map(_gives_text, formula.arguments))
    return chosen or formula.function in OF_TEXTS
