"""Whether a formula has a range where Excel expects a single value: it would take one cell of the
range, and show an @ there ("implicit intersection").

An operator, and most parameters of functions, take a single value, V. Some parameters take a range,
R, but a single value if it is computed: SUM(A1:A3*2). Some take arrays, A, and so does everything
computed for them: SUMPRODUCT(ABS(A1:A3)*2); except inside a few functions such as IF:
SUMPRODUCT(IF(A1:A3>0,1)). Array formulas take arrays everywhere. This is how [MS-XLS] types
formulas (PtgDataType: reference, value, array).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

# What the parameters of functions take, the last letter for all that follow; others take V. P is
# what the function itself stands for: a range where one is taken.
_PARAMETERS = {
    "R": """AND AREAS AVEDEV AVERAGE AVERAGEA COLUMN COLUMNS COUNT COUNTA COUNTBLANK DAVERAGE DCOUNT
        DCOUNTA DEVSQ DGET DMAX DMIN DPRODUCT DSTDEV DSTDEVP DSUM DVAR DVARP FREQUENCY GCD GEOMEAN
        HARMEAN ISREF KURT LCM MAX MAXA MEDIAN MIN MINA MODE MODE.MULT MODE.SNGL MULTINOMIAL N OR
        PHONETIC PRODUCT ROW ROWS SKEW STDEV STDEV.P STDEV.S STDEVA STDEVP STDEVPA SUM SUMSQ T TYPE
        VAR VAR.P VAR.S VARA VARP VARPA""",
    "A": """CHISQ.TEST CHITEST CORREL COVAR COVARIANCE.P COVARIANCE.S F.TEST FTEST INTERCEPT MDETERM
        MINVERSE MMULT PEARSON RSQ SLOPE STEYX SUMPRODUCT SUMX2MY2 SUMX2PY2 SUMXMY2""",
    "RV": """COUNTIF LARGE OFFSET PERCENTILE PERCENTILE.EXC PERCENTILE.INC PERCENTRANK
        PERCENTRANK.EXC PERCENTRANK.INC QUARTILE QUARTILE.EXC QUARTILE.INC SMALL TRIMMEAN Z.TEST
        ZTEST""",
    "RRV": "XIRR",
    "RVR": "AVERAGEIF SUMIF",
    "VR": "CELL NPV SUBTOTAL XNPV",
    "VRV": "HLOOKUP MATCH RANK RANK.AVG RANK.EQ VLOOKUP",
    "VVR": "NETWORKDAYS NETWORKDAYS.INTL WORKDAY WORKDAY.INTL",
    "VVVR": "SERIESSUM",
    "VVAV": "AGGREGATE",
    "AAAV": "GROWTH TREND",
    "AAV": "LINEST LOGEST PROB T.TEST TTEST",
    "AV": "INDEX IRR MIRR",
    "VA": "FORECAST LOOKUP",
    "VP": "CHOOSE IF IFERROR",
    "RV" * 127: "COUNTIFS",
    "R" + "RV" * 127: "AVERAGEIFS SUMIFS",
}
PARAMETERS = {name: takes for takes, names in _PARAMETERS.items() for name in names.split()}
_ARRAYS = "FREQUENCY GROWTH LINEST LOGEST MINVERSE MMULT MODE.MULT TREND"
_UNFORCED = "CHOOSE HLOOKUP IF IFERROR INDEX INDIRECT OFFSET TRANSPOSE VLOOKUP"
GIVE_ARRAYS = frozenset(_ARRAYS.split())
UNFORCED = frozenset(_UNFORCED.split())  # nothing within them takes arrays of its own

LINES = r"\$?[A-Z]{1,3}:\$?[A-Z]{1,3}|\$?\d+:\$?\d+"
TOKEN = re.compile(
    rf"""(?P<call>[A-Za-z_][\w.]*)\(
    |(?P<area>A1:A2|(?:'[^']*'!|[\w.]+!)?(?:{LINES}))(?![\w.(])
    |(?P<one>{{[^}}]*}}|\#[A-Z0-9/]+[!?]?|""|[\w.$\\!?]+)
    |(?P<sign><>|<=|>=|[-+*/^&=<>%:])
    |(?P<mark>[(),])
    |\s+""",
    re.VERBOSE,
)
AREA, WHOLE = "a range", ("0",)
DEEPEST = 128  # parentheses that are looked into


@dataclass
class Argument:
    """An argument between two commas: operands, and the operators between them."""

    operands: list["Call | str"] = field(default_factory=list)
    signs: set[str] = field(default_factory=set)


@dataclass
class Call:
    """A function with its arguments; without a name, parentheses, or the whole formula."""

    name: str
    arguments: list[Argument] = field(default_factory=lambda: [Argument()])


@lru_cache(maxsize=1 << 12)
def faults(shape: str, areas: frozenset[str]) -> tuple[str, ...]:
    """The operators and functions that expect a single value and get a range, in a formula with A1
    for a cell, A1:A2 for a range and "" for a text. `areas` are the names of ranges, regardless of
    case."""
    if not (whole := tree(shape, areas)):
        return ()
    found = dict.fromkeys(_of_call(whole, "V", False, "a cell"))
    return tuple(f"{who} gets a range where Excel expects one value (@)" for who in found)


def tree(shape: str, areas: frozenset[str]) -> Call | None:
    """A formula as a tree; None if it cannot be parsed."""
    inside = [Call("")]
    end = 0
    for match in TOKEN.finditer(shape):
        kind, text = match.lastgroup, match[0]
        if match.start() != end or len(inside) > DEEPEST:
            return None
        end = match.end()
        argument = inside[-1].arguments[-1]
        if kind == "call" or text == "(":
            inside.append(Call(text[:-1].removeprefix("_xlfn.")))
        elif kind == "sign":
            argument.signs.add(text)
        elif kind in ("area", "one"):
            is_area = kind == "area" or text.casefold() in areas
            argument.operands.append(AREA if is_area else text)
        elif text == ",":
            inside[-1].arguments.append(Argument())
        elif text == ")":
            if len(inside) == 1:
                return None
            call = inside.pop()
            inside[-1].arguments[-1].operands.append(call)
    return inside[0] if end == len(shape) and len(inside) == 1 else None


def _of_argument(argument: Argument, takes: str, forced: bool, who: str) -> Iterator[str]:
    """The faults within an argument; `forced`: arrays are allowed."""
    if ":" in argument.signs:  # INDEX(...):INDEX(...) is a range
        if takes == "V" and not forced:
            yield who
        takes = "R"
    elif argument.signs:
        takes, who = "A" if takes == "A" else "V", "an operator"
    elif len(argument.operands) > 1:  # a space: what ranges have in common
        takes = "R"
    for operand in argument.operands:
        if isinstance(operand, Call):
            yield from _of_call(operand, takes, forced, who)
        elif operand is AREA and takes == "V" and not forced:
            yield who


def _of_call(call: Call, takes: str, forced: bool, who: str) -> Iterator[str]:
    """The faults within a call, or of its result."""
    if not call.name:
        takes = takes if len(call.arguments) == 1 else "R"  # (A1:A2,B1) is a range
        for argument in call.arguments:
            yield from _of_argument(argument, takes, forced, who)
        return
    one = takes == "V" and not forced
    if one and (call.name in GIVE_ARRAYS or _whole_index(call)):
        yield who
    parameters = PARAMETERS.get(call.name, "V")
    forced = (forced or takes == "A") and call.name not in UNFORCED
    for k, argument in enumerate(call.arguments):
        own = parameters[min(k, len(parameters) - 1)]
        if own == "P":
            own = "V" if one else "R"
        yield from _of_argument(argument, own, forced, call.name)


def _whole_index(call: Call) -> bool:
    """Whether it is INDEX of a whole row or column."""
    return call.name == "INDEX" and any(
        tuple(argument.operands) in ((), WHOLE) and not argument.signs
        for argument in call.arguments[1:3]
    )
