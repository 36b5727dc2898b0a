"""Other inputs: numbers and texts that differ from those as built, and cells that follow them."""

import numpy as np
import pytest

from cellformer import exercises
from cellformer.engine.studies.exercises import is_plain, moves
from cellformer.engine.studies.other_inputs import other
from cellformer.exporters.assemble.exercise import other_inputs


def test_numbers_differ_and_numberings_stay() -> None:
    typed = np.array([[1.0, 2.0], [0.0, -3.0]])
    assert (other("setting", typed) != typed).tolist() == [[True, True], [False, True]]
    assert (other("weight", typed) != typed).all()
    for kind, values in (("ids", typed), ("setting", np.arange(5.0)), ("setting", 1 + np.eye(1))):
        assert np.array_equal(other(kind, values), values) == (values.size != 1)


def test_texts_differ_and_every_word_is_still_known() -> None:
    corpus = np.array([["the", "cat", "saw"], ["the", "dog", "run"]], dtype=object)
    found = other("setting", corpus)
    assert found.tolist() == [["the", "the", "saw"], ["saw", "dog", "dog"]]
    assert other("table", np.array([["low lower"]], dtype=object)).item() == "lower low"
    words = np.array([["the"], ["cat"]], dtype=object)
    assert np.array_equal(other("setting", words), words)


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 2, 3])
def test_no_constant_is_right_in_n_grams(level: int) -> None:
    """Counts of words: weights and settings do not change them."""
    book, answers = exercises.Recipe("n-grams", level).asked()
    looks = book.clean, other_inputs(book)
    assert all(moves(a.block, (a.i, a.j), looks) for a in answers)
    assert not all(is_plain(a.block, (a.i, a.j), book.clean) for a in answers)
    whole = [block for block in book.graph if block.name == "times"]
    assert not moves(whole[0], (3, 0), looks)
