"""Forms of formulas that programs compute differently: docs/spreadsheets.md lists them. Each has
another form that all programs compute alike."""

import re
from collections.abc import Iterator
from functools import lru_cache

from cellformer.exporters.checking.rules.ranges import AREA, PARAMETERS, Argument, Call, tree

NEGATIVE_ERF = re.compile(r"\bERF\((?!ABS\()")
HALF = re.compile(r"\bUNICODE\(MID\([^()]*,1\)\)")
APART = "/1024)"  # in the test for half a surrogate pair
PRODUCTS = "SUMPRODUCT"  # takes what operators compute of ranges everywhere


@lru_cache(maxsize=1 << 12)
def faults(shape: str, areas: frozenset[str], array: bool) -> tuple[str, ...]:
    """The forms to avoid in a formula, which may be an `array` formula; its shape and `areas` are
    as in `ranges`."""
    found = []
    if NEGATIVE_ERF.search(shape):
        found.append(
            "ERF may get a negative number: write SIGN(x)*ERF(ABS(x)), which works everywhere"
        )
    if HALF.search(shape) and APART not in shape:
        found.append("UNICODE may get half a character: split the pair of code units first")
    if not array and (whole := tree(shape, areas)):
        names = dict.fromkeys(_given_computed(whole))
        found += [f"{name} gets computed cells: use an array formula" for name in names]
        names = dict.fromkeys(_of_cells_of_a_range(whole, False))
        found += [f"{name} gets a range within {PRODUCTS}: use an operator" for name in names]
    return tuple(found)


def _given_computed(call: Call) -> Iterator[str]:
    """Functions of ranges whose argument is computed from a range cell by cell."""
    takes = PARAMETERS.get(call.name, "V")
    for k, argument in enumerate(call.arguments):
        own = takes[min(k, len(takes) - 1)]
        if own == "R" and call.name != PRODUCTS and _computed(argument):
            yield call.name
        for operand in argument.operands:
            if isinstance(operand, Call):
                yield from _given_computed(operand)


def _of_cells_of_a_range(call: Call, within: bool) -> Iterator[str]:
    """Functions of single values that get a range within SUMPRODUCT, where gnumeric fails."""
    within = call.name == PRODUCTS or (within and call.name not in PARAMETERS)
    for argument in call.arguments:
        if within and call.name not in ("", PRODUCTS) and _has_range(argument):
            yield call.name
        for operand in argument.operands:
            if isinstance(operand, Call):
                yield from _of_cells_of_a_range(operand, within)


def _has_range(argument: Argument) -> bool:
    """Whether an argument is a range, or is computed from one by operators."""
    inner = [x for x in argument.operands if isinstance(x, Call) and not x.name]
    return AREA in argument.operands or any(
        _has_range(each) for call in inner for each in call.arguments
    )


def _computed(argument: Argument) -> bool:
    """Whether an argument is computed from a range cell by cell: by an operator, or by a function
    of single values."""
    calls = [x for x in argument.operands if isinstance(x, Call) and x.name not in PARAMETERS]
    within = [inner for call in calls for inner in call.arguments]
    by_function = any(
        AREA in inner.operands for call in calls if call.name for inner in call.arguments
    )
    ranges = AREA in argument.operands or any(AREA in inner.operands for inner in within)
    return by_function or (ranges and bool(argument.signs - {":"})) or any(map(_computed, within))
