"""The spreadsheet functions that expressions are made of, each with what it computes.

They are the subset that every spreadsheet computes alike. A range is an array [rows, columns]; it
may hold texts and blanks (None), which sums, products and extremes pass over, as spreadsheets do.
What cannot be computed raises `FormulaError`, which only IFERROR stops.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import reduce
from typing import Any

import numpy as np

from engine.cells.expression import (
    Area,
    Call,
    Expression,
    Function,
    Negative,
    Operation,
    constant,
    expression,
)
from engine.cells.values import (
    NUMBERS,
    SIGNS,
    TRUTHS,
    FormulaError,
    checked,
    is_number,
    is_numeric,
    number,
    numbers,
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

# --- of numbers -----------------------------------------------------------------------------


def _each(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of one number, or of every number of a range."""

    def apply(x: Any) -> Any:
        with np.errstate(all="ignore"):
            found = compute(number(x))
        return found if isinstance(found, np.ndarray) and found.ndim else checked(float(found))

    return apply


def _modulo(a: Any, b: Any) -> Any:
    a, b = number(a), number(b)
    if not isinstance(b, np.ndarray) and b == 0:
        raise FormulaError("#DIV/0!")
    return np.mod(a, b)


def _rounded(x: Any, places: Any) -> Any:
    """x with so many decimals, halves away from 0; with fewer than none, whole tens or hundreds.

    What is a half but for the last two bits counts as one, as in spreadsheets.
    """
    places = np.trunc(places)
    unit = 10.0 ** np.abs(places)
    scaled = np.abs(np.where(places < 0, x / unit, x * unit))
    last = 2 * np.spacing(scaled)
    whole = np.floor(scaled + 0.5 + np.where(last < LAST, last, 0))
    whole = np.where(scaled < WHOLE, whole, scaled)
    return np.copysign(np.where(places < 0, whole * unit, whole / unit), x)


ABS = Function("ABS", _each(np.abs))
ACOS = Function("ACOS", _each(np.arccos))
COS = Function("COS", _each(np.cos))
EXP = Function("EXP", _each(np.exp))
INT = Function("INT", _each(np.floor))
LN = Function("LN", _each(np.log))
LOG10 = Function("LOG10", _each(np.log10))
MOD = Function("MOD", _modulo)
PI = Function("PI", lambda: math.pi)
# A random number: here one half, so it is only for what does not depend on it, and is to be
# computed anew at each recalculation.
RAND = Function("RAND", lambda: 0.5)
ROUND = Function("ROUND", lambda x, n: _each(lambda y: _rounded(y, number(n)))(x))
SIN = Function("SIN", _each(np.sin))
SQRT = Function("SQRT", _each(np.sqrt))
TANH = Function("TANH", _each(np.tanh))


# --- of ranges ------------------------------------------------------------------------------


def _reduced(compute: Callable[[np.ndarray], Any], of_nothing: str | float) -> Callable[..., float]:
    """A function of all numbers given; `of_nothing` is its value, or error, where there is none."""

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
    *most, last = [_as_0(np.atleast_2d(np.asarray(x))) for x in (first, *others)]
    if any(x.shape != last.shape for x in most):
        raise FormulaError("#VALUE!")
    left = most[0].ravel()
    for x in most[1:]:
        left = left * x.ravel()
    return float(checked(float(left @ last.ravel())))


def _as_0(x: np.ndarray) -> np.ndarray:
    """A range of products: what is no number counts as 0."""
    if is_numeric(x):
        return x
    refuse_errors(x)
    return np.array([float(v) if is_number(v) else 0.0 for v in x.flat]).reshape(x.shape)


def _largest(x: Any, k: Any) -> Any:
    found = numbers(x)
    if np.ndim(k) == 0 and 1 <= number(k) <= found.size:
        place = found.size - int(number(k))
        return float(np.partition(found, place)[place])
    ranked = np.sort(found)[::-1]
    at = np.asarray(number(k)).astype(int) - 1
    if (at < 0).any() or (at >= len(ranked)).any():
        raise FormulaError("#NUM!")
    return ranked[at] if at.ndim else float(ranked[at])


def _meets(criterion: Any) -> Callable[[Any], bool]:
    """Whether a cell meets a criterion of COUNTIF or SUMIF: a value, or one behind a sign. A number
    is met by a text that reads the same, too."""
    criterion = scalar(criterion)
    sign, wanted = "=", criterion
    if isinstance(criterion, str):
        sign = next((s for s in ("<>", "<=", ">=", "<", ">", "=") if criterion.startswith(s)), "")
        wanted = criterion[len(sign) :]
        sign = sign or "="
        with suppress(ValueError):
            wanted = float(wanted)
    holds, kind = SIGNS[sign], _kind(wanted)
    same = sign in ("=", "<>")
    is_like = like(wanted) if same and kind is str else None

    def meets(x: Any) -> bool:
        if same and kind is float and isinstance(x, str):
            with suppress(ValueError):
                x = float(x)
        if x is None or _kind(x) is not kind:
            return sign == "<>"
        return is_like(x) == (sign == "=") if is_like else bool(holds(x, wanted))

    return meets


def _kind(x: Any) -> type:
    """What a cell holds, as criteria tell it: a text, a truth, a number."""
    return str if isinstance(x, str) else bool if isinstance(x, TRUTHS) else float


def _count_if(x: Any, criterion: Any) -> float:
    return float(sum(map(_meets(criterion), np.asarray(x, dtype=object).flat)))


def _sum_if(x: Any, criterion: Any, summed: Any = None) -> float:
    meets, summed = _meets(criterion), x if summed is None else summed
    pairs = zip(np.asarray(x, dtype=object).flat, np.asarray(summed, object).flat, strict=True)
    return float(sum(number(y) for v, y in pairs if meets(v)))


def _count(*xs: Any) -> float:
    return float(sum(x.size if is_numeric(x) else _n_numbers(x) for x in xs))


def _n_numbers(x: Any) -> int:
    cells = np.asarray(x, dtype=object).flat
    return sum(map(is_number, cells))


def _rank(x: Any, among: Any) -> float:
    others, own = numbers(among), number(scalar(x))
    if own not in others:
        raise FormulaError("#N/A")
    return float((others > own).sum() + 1)


AVERAGE = Function("AVERAGE", _reduced(lambda x: np.add.reduce(x) / len(x), "#DIV/0!"))
COUNT = Function("COUNT", _count)
COUNTIF = Function("COUNTIF", _count_if)
LARGE = Function("LARGE", _largest)
MAX = Function("MAX", _reduced(np.max, 0.0))
MIN = Function("MIN", _reduced(np.min, 0.0))
RANK = Function("RANK", _rank)
SUM = Function("SUM", _reduced(np.add.reduce, 0.0))
SUMIF = Function("SUMIF", _sum_if)
SUMPRODUCT = Function("SUMPRODUCT", _product_sum)
VARP = Function("VARP", _reduced(np.var, "#DIV/0!"))


def like(wanted: str) -> Callable[[str], bool]:
    """Whether a text is the wanted one, its case aside: * stands there for any characters, ? for
    one, and ~ before them for themselves."""
    if not WILDCARD.search(wanted):
        own = wanted.casefold()
        return lambda x: x.casefold() == own
    signs = {"*": ".*", "?": "."}
    parts = (signs.get(part) or re.escape(part[-1]) for part in WILDCARD_OR_ONE.findall(wanted))
    pattern = re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
    return lambda x: pattern.fullmatch(x) is not None


# --- choosing and looking up ----------------------------------------------------------------


def _truth(x: Any) -> bool:
    return x if type(x) is bool else bool(number(scalar(x)))


def _truths(*xs: Any) -> list[bool]:
    """The truths that are given: of ranges, texts and blanks are passed over."""
    found: list[bool] = []
    for x in xs:
        if isinstance(x, np.ndarray):
            refuse_errors(x)
            found += [bool(v) for v in x.flat if isinstance(v, NUMBERS + TRUTHS)]
        else:
            found.append(_truth(x))
    if not found:
        raise FormulaError("#VALUE!")
    return found


Later = Callable[[], Any]  # an argument that is computed when it is asked for


def _if(condition: Later, then: Later, otherwise: Later = lambda: False) -> Any:
    found = condition()
    if isinstance(found, np.ndarray) and found.size > 1:
        return np.where(found.astype(bool), then(), otherwise())
    return then() if _truth(found) else otherwise()


def _if_error(x: Later, otherwise: Later) -> Any:
    try:
        return x()
    except FormulaError:
        return otherwise()


def _choose(index: Later, *options: Later) -> Any:
    k = int(number(scalar(index())))
    if not 1 <= k <= len(options):
        raise FormulaError("#VALUE!")
    return options[k - 1]()


def _index(x: Any, row: Any, col: Any = None) -> Any:
    """The entry at a row and a column, counted from 1; 0: the whole row or column."""
    x = np.atleast_2d(np.asarray(x))
    if col is None:
        row, col = (1.0, row) if x.shape[0] == 1 else (row, 1.0)
    height, width = x.shape
    row, col = number(row), number(col)
    if type(row) is type(col) is float and 1 <= row < height + 1 and 1 <= col < width + 1:
        return x.item(int(row) - 1, int(col) - 1)  # as most are
    i, j = (np.asarray(k).astype(int) for k in (row, col))
    if i.min() < 0 or j.min() < 0:
        raise FormulaError("#VALUE!")
    if i.max() > height or j.max() > width:
        raise FormulaError("#REF!")
    if i.ndim or j.ndim:
        return x[i - 1, j - 1]
    rows = slice(None) if i == 0 else slice(int(i) - 1, int(i))
    cols = slice(None) if j == 0 else slice(int(j) - 1, int(j))
    found = x[rows, cols]
    return found.item() if found.size == 1 else found


def _match(wanted: Any, x: Any, kind: Any = 1.0) -> Any:
    """The place of a value in a row or column, from 1; kind 1: the last that is no larger."""
    if isinstance(wanted, np.ndarray) and wanted.size > 1:
        return _match_each(wanted, np.asarray(x).ravel(), kind)
    wanted, cells = scalar(wanted), np.asarray(x).ravel()
    if number(kind) == 0:
        if cells.dtype != object and isinstance(wanted, NUMBERS):
            at = np.flatnonzero(cells == wanted)
        elif isinstance(wanted, str):
            is_like = like(wanted)
            at = np.flatnonzero([isinstance(v, str) and is_like(v) for v in cells])
        else:
            key = sort_key(wanted, wanted)
            at = np.flatnonzero([v is not None and sort_key(v, wanted) == key for v in cells])
        if not at.size:
            raise FormulaError("#N/A")
        return float(at[0] + 1)
    place = int(np.searchsorted(numbers(cells), number(wanted), side="right"))
    if not place:
        raise FormulaError("#N/A")
    return float(place)


def _match_each(wanted: np.ndarray, cells: np.ndarray, kind: Any) -> np.ndarray:
    """The place of each of many values; of numbers, all at once."""
    if wanted.dtype != np.float64 or cells.dtype != np.float64:
        return np.array([_match(v, cells, kind) for v in wanted.flat]).reshape(wanted.shape)
    if number(kind) != 0:
        places = np.searchsorted(cells, wanted, side="right")
        if not places.all():
            raise FormulaError("#N/A")
        return places.astype(np.float64)
    order = np.argsort(cells, kind="stable")
    at = np.searchsorted(cells, wanted, sorter=order).clip(max=len(cells) - 1)
    if (cells[order[at]] != wanted).any():
        raise FormulaError("#N/A")
    return np.asarray(order[at] + 1.0)


def _number_in(x: Any) -> float:
    """The number in a cell; of a text, or of a blank, 0."""
    x = scalar(x)
    return float(x) if isinstance(x, NUMBERS) else 0.0


AND = Function("AND", lambda *xs: all(_truths(*xs)))
CHOOSE = Function("CHOOSE", _choose, lazy=True)
IF = Function("IF", _if, lazy=True)
IFERROR = Function("IFERROR", _if_error, lazy=True)
INDEX = Function("INDEX", _index)
ISNUMBER = Function(
    "ISNUMBER",
    lambda x: isinstance(scalar(x), NUMBERS) and not isinstance(x, bool),
)
MATCH = Function("MATCH", _match)
N = Function("N", _number_in)
NOT = Function("NOT", lambda x: not _truth(x))
OR = Function("OR", lambda *xs: any(_truths(*xs)))
TRUE = Function("TRUE", lambda: True)


# --- of texts -------------------------------------------------------------------------------


def _exact(a: Any, b: Any) -> Any:
    """Whether two texts are the same, their case included; of a range, for every cell, which may
    be held against the same cell of another."""
    if isinstance(b, np.ndarray) and b.size > 1:
        pairs = zip(np.asarray(a).flat, b.flat, strict=True)
        return np.array([text_of(v) == text_of(w) for v, w in pairs]).reshape(b.shape)
    if isinstance(a, np.ndarray) and a.size > 1:
        wanted = text_of(b)
        return np.array([text_of(v) == wanted for v in a.flat]).reshape(a.shape)
    return text_of(a) == text_of(b)


def _find(sought: Any, x: Any, start: Any = 1.0) -> float:
    """Where a text begins within another, from 1, its case regarded; looked for from `start` on."""
    place = text_of(x).find(text_of(sought), int(number(start)) - 1)
    if place < 0:
        raise FormulaError("#VALUE!")
    return float(place + 1)


def _substitute(x: Any, old: Any, new: Any) -> str:
    text, old = text_of(x), text_of(old)
    return text.replace(old, text_of(new)) if old else text


def _repeated(x: Any, n: Any) -> str:
    text, often = text_of(x), _size(n)
    if len(text) * often > LONGEST:
        raise FormulaError("#VALUE!")
    return text * often


def _size(n: Any) -> int:
    """How many characters, or how often."""
    if number(n) < 0:
        raise FormulaError("#VALUE!")
    return int(number(n))


def _middle(x: Any, start: Any, n: Any) -> str:
    first, size = int(number(start)) - 1, _size(n)
    if first < 0:
        raise FormulaError("#VALUE!")
    return text_of(x)[first : first + size]


def _code(x: Any) -> float:
    """The code point of a text's first character; half a surrogate pair is none."""
    text = text_of(x)
    if not text or "\ud800" <= text[0] < "\ue000":
        raise FormulaError("#VALUE!")
    return float(ord(text[0]))


def _character(x: Any) -> str:
    code = int(number(scalar(x)))
    if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000 or 0xFFFE <= code <= 0xFFFF:
        raise FormulaError("#VALUE!")
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
    """A formula of a cell, for which an error in a cell that it reads counts as nothing."""
    if isinstance(formula, Call) and formula.function is IFERROR:
        return formula
    return IFERROR(formula, "" if _gives_text(formula) else 0)


def may_fail(formula: Expression) -> bool:
    """Whether a formula of numbers has none for some of them, such as 0: what is typed over may
    come to that, through other cells."""
    if isinstance(formula, Operation):
        divides = formula.sign == "/" and not constant(formula.right)
        return divides or may_fail(formula.left) or may_fail(formula.right)
    if isinstance(formula, Negative):
        return may_fail(formula.term)
    if not isinstance(formula, Call) or formula.function is IFERROR:
        return False
    return formula.function in OF_SOME_NUMBERS or any(map(may_fail, formula.arguments))


def _gives_text(formula: Expression) -> bool:
    """Whether a formula shows a text, as far as its own words say."""
    if isinstance(formula, Operation):
        return formula.sign == "&"
    if not isinstance(formula, Call):
        return isinstance(constant(formula), str)
    chosen = formula.function in CHOOSING and any(map(_gives_text, formula.arguments))
    return chosen or formula.function in OF_TEXTS
