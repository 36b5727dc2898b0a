"""The sampling workbook's formulas choose the words that the engine chooses."""

import numpy as np
import pytest
from conftest import default_book

from cellformer.engine import Evaluator
from cellformer.engine.models.generate import Sampling
from cellformer.workbooks import cat_sat, sampling

pytestmark = pytest.mark.slow


def ends_of_runs(draws: np.ndarray) -> list[int]:
    """Where, from the smallest random number to the largest, a word is drawn first and last.

    A larger number never falls on an earlier rank: what lies between draws the same word.
    """
    order = np.argsort(sampling.NUMBERS, kind="stable")
    sorted_draws = draws[order]
    (changes,) = np.nonzero(sorted_draws[1:] != sorted_draws[:-1])
    return order[sorted({0, *changes, *(changes + 1), len(order) - 1})].tolist()


@pytest.mark.parametrize(
    "how",
    [
        Sampling(1.0, 10, 0.9),
        Sampling(2.0, 10, 0.9),
        Sampling(0.0, 10, 0.9),
        Sampling(1.0),
        Sampling(0.5, top_k=1),
        Sampling(3.0, top_k=7),
        Sampling(1.5, top_p=0.3),
    ],
)
def test_cells_draw_as_the_engine(how: Sampling) -> None:
    book = default_book("sampling")
    live = Evaluator(book.graph)
    for name in ("temperature", "top_k", "top_p"):  # the sheet teaches these
        live.set(name, 0, 0, float(getattr(how, name)))
    logits = np.array(cat_sat.PRINTED_LOGITS)
    draws = live["draws"][:, 0]
    assert len(draws) == len(sampling.NUMBERS)
    for k in ends_of_runs(draws):
        assert draws[k] == cat_sat.WORDS[how.choose(logits, sampling.NUMBERS[k])]
    for number in (0.0, 0.25, 0.66, 0.9999):
        live.set("random", 0, 0, number)
        assert live["chosen"][0, 0] == cat_sat.WORDS[how.choose(logits, number)]
