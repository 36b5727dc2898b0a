"""What a page goes on with after a typed text is what `generate` does: greedily, and drawn with the
same random numbers, line breaks included."""

from itertools import count, cycle, product
from pathlib import Path
from typing import Any

import pytest
from conftest import default_book
from in_node import call
from pages import differing, values, written

from cellformer import names
from cellformer.engine import Evaluator
from cellformer.engine.models.choosing import GREEDY, Sampling
from cellformer.engine.models.generate import generate, random_numbers

pytestmark = [pytest.mark.usefixtures("node"), pytest.mark.slow]

SETTINGS = (
    GREEDY,
    Sampling(1.0),
    Sampling(0.7, top_k=5),
    Sampling(1.5, top_p=0.8),
    Sampling(2.0, top_k=9, top_p=0.9),
    Sampling(1.5, min_p=0.05, repetition_penalty=1.4),
)
TEXTS = {
    "dialogue-game": ("3 chiama 2 Tarso", "vice 3 chiama", "1 chiama 3 vice 3 chiama 2"),
    "shakespeare": ("ROMEO:\nO, ", "First Citizen:\n", "To be\n\n", "\n"),
}
LEAST_DRAWN = 240
MOST_COMPUTED = {  # what is typed, and the cells that this computes
    "dialogue-game": ("3 chiama 2 Tarso", 70_000),
    "shakespeare": ("Good ma", 460_000),
}


def typed(text: str, n: int, ids: list[int], sampling: Sampling, seed: int) -> list[list[Any]]:
    """What one types: the text, the dials, the random number of each token."""
    numbers = random_numbers(seed, n + 1)
    greedy = sampling.temperature == 0
    return [
        ["sentence", 0, 0, text],
        ["choose", 0, 0, "greedy" if greedy else "sampled"],
        ["temperature", 0, 0, 1.0 if greedy else sampling.temperature],
        ["top_k", 0, 0, float(sampling.top_k or 0)],
        ["top_p", 0, 0, float(sampling.top_p)],
        ["min_p", 0, 0, sampling.min_p],
        ["repetition_penalty", 0, 0, sampling.repetition_penalty],
        *(["random", t, 0, float(numbers[t])] for t in range(len(ids), n)),
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_goes_on_as_generate(name: str, tmp_path: Path) -> None:
    book, model = default_book(name), names.model(name)
    n = book.graph["tokens"].shape[0]
    call("values.mjs", "open", str(written(book, tmp_path / "page.html")))
    n_drawn, seeds = 0, count()
    for sampling, text in cycle(product(SETTINGS, TEXTS[name])):
        ids, seed = model.vocabulary.encode(text), next(seeds)
        call("values.mjs", "edit", typed(text, n, ids, sampling, seed))
        found = values(tmp_path)["tokens"].astype(int).tolist()
        steps = generate(model, ids, n - len(ids), sampling, seed)
        assert found == [*ids, *(step.token for step in steps)], (text, sampling)
        n_drawn += 0 if sampling == GREEDY else n - len(ids)
        if n_drawn >= LEAST_DRAWN:
            break


@pytest.mark.parametrize("name", MOST_COMPUTED)
def test_a_typed_letter_computes_each_cell_about_once(name: str, tmp_path: Path) -> None:
    """The rows of a token wait until the model has chosen it."""
    book, (text, most) = default_book(name), MOST_COMPUTED[name]
    call("values.mjs", "open", str(written(book, tmp_path / "page.html")))
    edit = ("sentence", 0, 0, text)
    assert call("values.mjs", "edit", [edit]) <= most
    live = Evaluator(book.graph)
    live.set(*edit)
    live.recompute()
    assert [*differing(values(tmp_path), live)] == []
