"""The sampling workbook's formulas choose the words that the engine chooses."""

import numpy as np
import pytest
from conftest import default_book

from engine import Evaluator
from engine.models.generate import Sampling
from workbooks import cat_sat, sampling


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
def test_the_cells_draw_what_the_engine_draws(how: Sampling) -> None:
    book = default_book("sampling")
    live = Evaluator(book.graph)
    for name, value in vars(how).items():
        live.set(name, 0, 0, float(value))
    logits = np.array(cat_sat.PRINTED_LOGITS)
    wanted = [cat_sat.WORDS[how.choose(logits, r)] for r in sampling.NUMBERS]
    assert live["draws"][:, 0].tolist() == wanted
    for number in (0.0, 0.25, 0.66, 0.9999):
        live.set("random", 0, 0, number)
        assert live["chosen"][0, 0] == cat_sat.WORDS[how.choose(logits, number)]
