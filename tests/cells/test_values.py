"""Values of functions at the edges: texts that look like numbers, errors in ranges, index 0."""

from typing import Any

import numpy as np
import pytest

from cellformer.engine.cells import functions
from cellformer.engine.cells.functions import LONGEST
from cellformer.engine.cells.values import CellError, FormulaError, as_number, number


def cells(*values: Any) -> np.ndarray:
    """A row of any values."""
    found = np.empty((1, len(values)), dtype=object)
    found[0, :] = values
    return found


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1_000", "\u0661", "\u00a01", "1e999"])
def test_only_plain_decimals_are_numbers(text: str) -> None:
    with pytest.raises(FormulaError, match="#VALUE!"):
        number(text)
    assert functions.COUNTIF.compute(cells(text, "a"), text) == 1


def test_decimals_and_blanks_around_them_are_numbers() -> None:
    assert [number(x) for x in ("1", " -.5\n", "+1.", "2E3")] == [1, -0.5, 1, 2000]


def test_if_over_a_range_keeps_numbers_beside_texts() -> None:
    condition = np.array([[True, False]])
    found = functions.IF.compute(lambda: condition, lambda: "a", lambda: 1.0)
    assert [*found.flat] == ["a", 1.0]
    unchosen = functions.IF.compute(lambda: condition, lambda: 4.0)
    assert functions.AVERAGE.compute(unchosen) == 4  # FALSE is no number


def test_index_gives_the_error_that_it_picks() -> None:
    line = cells(1.0, CellError("#N/A"))
    with pytest.raises(FormulaError, match="#N/A"):
        functions.INDEX.compute(line, 2.0)
    assert functions.INDEX.compute(line, 1.0) == 1


def test_no_entry_0_among_several_and_none_that_is_huge() -> None:
    line = np.array([[1.0, 2.0]])
    with pytest.raises(FormulaError, match="#VALUE!"):
        functions.INDEX.compute(line, np.array([[0.0, 1.0]]))
    with pytest.raises(FormulaError, match="#REF!"):
        functions.INDEX.compute(line, 1e22)
    with pytest.raises(FormulaError, match="#NUM!"):
        functions.LARGE.compute(line, np.array([[1e22, 1.0]]))


def test_truth_values_are_no_numbers_for_match_and_isnumber() -> None:
    with pytest.raises(FormulaError, match="#N/A"):
        functions.MATCH.compute(True, np.array([[1.0, 2.0]]), 0.0)
    assert not functions.ISNUMBER.compute(np.array([[True]]))


def test_find_begins_at_1() -> None:
    with pytest.raises(FormulaError, match="#VALUE!"):
        functions.FIND.compute("a", "banana", 0.0)


def test_nothing_is_repeated_any_number_of_times() -> None:
    assert functions.REPT.compute("", 1e300) == ""


def test_no_text_takes_long() -> None:
    """Of patterns that a regular expression tries for minutes; a text has 32,767 characters."""
    assert functions.COUNTIF.compute(cells("a" * LONGEST), "*a" * 99 + "b") == 0
    assert as_number("1" * LONGEST + "x") is None
    assert functions.COUNTIF.compute(cells("b" * 99 + "an"), "*b?b*~**") == 0
    assert functions.COUNTIF.compute(cells("xbab*n", "*bn"), "*b?b*~**") == 1
