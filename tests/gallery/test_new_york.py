"""new-york: one last word, and what follows it by the words before, in a model and in tables."""

import numpy as np
import pytest
from conftest import default_book

from cellformer.workbooks import new_york
from cellformer.workbooks.new_york import contexts, texts


def shares(sentence: str) -> np.ndarray:
    """The next words that the sheet Contexts shows after a sentence: [n_names, n_columns]."""
    book = default_book("new-york")
    shown = book.edited({book.graph["sentence"][0, 0]: f"{texts.BOS} {sentence}"})
    return np.array(shown(book.graph["contexts.next"].area), dtype=float)


def counted(sentence: str, n: int) -> list[float]:
    """The share of each name after the last n words of a sentence, in the texts."""
    end, found = sentence.split()[-n:], dict.fromkeys(texts.NAMES, 0)
    for start, word, times in texts.SENTENCES:
        words = start.split()
        if words[-n:] == end and (n < contexts.BACK or words == sentence.split()):
            found[word] += times
    total = max(1, sum(found.values()))
    return [times / total for times in found.values()]


@pytest.mark.parametrize("sentence", ["The state of New", "The Empire State Building is in New"])
def test_tables_of_last_words_count_the_texts(sentence: str) -> None:
    found = shares(sentence)
    for column, n in zip(contexts.BEFORE, contexts.LENGTHS, strict=True):
        assert found[:, column] == pytest.approx(counted(sentence, n), abs=1e-12)


def test_context_decides_in_the_model() -> None:
    """After the same last word it says one name or shares, within a twentieth of what it read; a
    table of three words says the same of all places."""
    model, york = new_york.model(), texts.NAMES.index("York")
    assert max(new_york.gap(model, start) for start in texts.TIMES) < 0.05
    state, empire = shares("The state of New"), shares("The Empire State Building is in New")
    assert state[york, contexts.MODEL] < 0.4 and empire[york, contexts.MODEL] > 0.99
    three = contexts.BEFORE[2]
    assert empire[york, three] == pytest.approx(12 / 40), "is in New"
    unread = shares("Dartmouth University is in New")
    assert unread[:, contexts.BEFORE[-1]].sum() == 0
    assert unread[texts.NAMES.index("Hampshire"), contexts.MODEL] > 0.85


def test_heads_look_at_what_decides() -> None:
    book = default_book("new-york")
    looks = np.array(book.clean(book.graph["contexts.looks"].area))[:, :5].astype(float)
    assert looks.sum(axis=1) == pytest.approx([1, 1], abs=1e-9)
    assert looks.argmax(axis=1).tolist() == [2, 2], "state"


def test_floor_is_the_entropy_of_the_texts() -> None:
    drawn = texts.sentences(np.random.default_rng(0), 4000)
    entropy = -float((texts.SHARES * np.log(texts.SHARES)).sum()) / (texts.LENGTH - 1)
    assert texts.floor(drawn) == pytest.approx(entropy, rel=0.02)
    assert texts.floor(texts.IDS[:1]) == pytest.approx(np.log(82 / 4) / 9)
