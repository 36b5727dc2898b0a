"""Values of cells and spreadsheet arithmetic: numbers, texts, truth values, blanks, errors.

A range is an array [rows, columns]; it may hold texts and blanks (None). Errors raise
`FormulaError`.
"""

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from cellformer.engine.cells.stored import Stored

# kinds of values; tuples, which are twice as fast to ask as unions
NUMBERS, TRUTHS, RANGES = (int, float, np.number), (bool, np.bool_), (np.ndarray, Stored)
PLAIN = frozenset((int, float))  # types: of FALSE and TRUE it is another one
A_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*", re.ASCII | re.IGNORECASE)


class FormulaError(ArithmeticError):
    """A formula's error; the message is what its cell shows: #N/A, #DIV/0!, #NUM!, #VALUE!."""


class CellError(str):
    """An error value, #N/A and the like, as opposed to a text that reads the same."""


def refuse(wrong: Any, error: str) -> None:
    """Raise a formula's error if something is wrong with its arguments."""
    if wrong:
        raise FormulaError(error)


def is_whole(x: Any) -> bool:
    """Whether a value is a whole number, such as an id, a row, a column or a count."""
    return type(x) is int or isinstance(x, np.integer)


def is_finite(x: Any) -> bool:
    """Whether a value is a number that a cell can hold."""
    try:
        return math.isfinite(x)
    except (TypeError, OverflowError):  # a whole number may be too large
        return False


def scalar(x: Any) -> Any:
    """A single value: an array of one cell becomes that cell."""
    if isinstance(x, np.ndarray):
        if x.size != 1:
            raise FormulaError("#VALUE!")
        x = x.item()
    return x


def as_array(x: Any) -> np.ndarray:
    """An array of one cell, or of many. Texts stay Python's, because numpy's lose NULs at their
    end."""
    return np.asarray(x, object if isinstance(x, str) else None)


def no_error(x: Any) -> Any:
    """A cell's value. Raises FormulaError for an error."""
    if isinstance(x, CellError):
        raise FormulaError(str(x))
    return x


def as_shown(x: Any) -> Any:
    """A formula's value as its cell shows it: of an array the first entry, and 0 for a blank."""
    if isinstance(x, np.ndarray):
        x = x.flat[0]
    if x is None:
        return 0.0
    if isinstance(x, TRUTHS):
        return bool(x)
    return float(x) if isinstance(x, NUMBERS) else x


def checked(x: Any) -> Any:
    """A number that a cell can show. Raises FormulaError for others."""
    if isinstance(x, float) and not math.isfinite(x):
        raise FormulaError("#NUM!")
    return x


def as_number(text: str) -> float | None:
    """The number that a text reads as; None: it is another text, as nan, inf and 1_000 are."""
    found = float(text) if A_NUMBER.fullmatch(text) else math.nan
    return found if math.isfinite(found) else None


def number(x: Any) -> Any:
    """An operand of arithmetic: blanks are 0, TRUE is 1, a text that is not a number is an
    error."""
    if type(x) is float:
        return x
    if isinstance(x, np.ndarray):
        if x.dtype == bool:
            return x.astype(np.float64)
        if x.dtype != object:
            return x
        return np.array([number(v) for v in x.flat], dtype=np.float64).reshape(x.shape)
    if x is None:
        return 0.0
    if isinstance(x, str):
        found = as_number(x)
        if found is None:
            raise FormulaError("#VALUE!")
        return found
    return np.asarray(x) if isinstance(x, Stored) else float(x)


def numbers(*xs: Any) -> np.ndarray:
    """All given numbers, one after another; texts, blanks, TRUE and FALSE in ranges are ignored."""
    if len(xs) == 1 and is_numeric(xs[0]):
        return np.asarray(xs[0], dtype=np.float64).ravel()
    found: list[float] = []
    for x in xs:
        if isinstance(x, RANGES):
            x = np.asarray(x)
            refuse_errors(x)
            found += [float(v) for v in x.flat if is_number(v)]
        else:
            found.append(number(x))
    return np.array(found, dtype=np.float64)


def numbers_or_0(x: np.ndarray) -> np.ndarray:
    """The numbers of a range, with 0 for anything else."""
    if is_numeric(x):
        return x
    refuse_errors(x)
    return np.array([float(v) if is_number(v) else 0.0 for v in x.flat]).reshape(x.shape)


def is_numeric(x: Any) -> bool:
    """Whether a range is known to hold only numbers, without looking at them."""
    return isinstance(x, Stored) or (isinstance(x, np.ndarray) and x.dtype.kind in "fiu")


def is_number(x: Any) -> bool:
    """Whether a cell of a range holds a number; TRUE and FALSE do not count."""
    return isinstance(x, NUMBERS) and not isinstance(x, TRUTHS)


def refuse_errors(x: np.ndarray) -> None:
    """Raise FormulaError if a range contains an error."""
    for v in x.flat:
        no_error(v)


def text_of(x: Any) -> str:
    """A value as `&` joins it: whole numbers without decimals, at most 15 digits."""
    x = scalar(x)
    if x is None:
        return ""
    if isinstance(x, TRUTHS):
        return "TRUE" if x else "FALSE"
    if isinstance(x, str):
        return str(x)  # of an error, too
    return str(int(x)) if float(x).is_integer() else f"{float(x):.15g}"


# --- signs ----------------------------------------------------------------------------------


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        if type(a) is not float or type(b) is not float:
            a, b = number(a), number(b)
        if type(a) is float and type(b) is float:
            return checked(compute(a, b))
        with np.errstate(all="ignore"):
            return checked(compute(a, b))

    return apply


def _divide(a: Any, b: Any) -> Any:
    if not isinstance(b, np.ndarray) and b == 0:
        raise FormulaError("#DIV/0!")
    return a / b


def _power(a: Any, b: Any) -> Any:
    if type(a) is type(b) is float and a == b == 0:
        raise FormulaError("#NUM!")
    try:
        found = a**b
    except (OverflowError, ZeroDivisionError):
        raise FormulaError("#NUM!") from None
    if isinstance(found, complex):
        raise FormulaError("#NUM!")
    return found


def sort_key(x: Any, other: Any) -> tuple[int, Any]:
    """The sort order of values: numbers, then texts regardless of case, then FALSE and TRUE."""
    if x is None:
        x = "" if isinstance(other, str) else 0.0
    if isinstance(x, TRUTHS):
        return 2, bool(x)
    return (1, x.casefold()) if isinstance(x, str) else (0, float(x))


def _comparison(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        if type(a) in PLAIN and type(b) in PLAIN:
            return holds(a, b)
        if isinstance(a, RANGES) or isinstance(b, RANGES):
            a, b = as_array(a), as_array(b)
            if a.dtype.kind in "if" and b.dtype.kind in "if":
                return holds(a, b)
            a, b = np.broadcast_arrays(a.astype(object), b.astype(object))
            return np.array([one(x, y) for x, y in zip(a.flat, b.flat, strict=True)]).reshape(
                a.shape
            )
        return one(a, b)

    def one(a: Any, b: Any) -> bool:
        return bool(holds(sort_key(a, b), sort_key(b, a)))

    return apply


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _arithmetic(operator.add),
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(_divide),
    "^": _arithmetic(_power),
    "&": lambda a, b: text_of(a) + text_of(b),
    "=": _comparison(operator.eq),
    "<>": _comparison(operator.ne),
    "<": _comparison(operator.lt),
    "<=": _comparison(operator.le),
    ">": _comparison(operator.gt),
    ">=": _comparison(operator.ge),
}
