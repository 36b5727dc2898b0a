"""tool-call: a model that writes sums, a calculator that answers, a text that goes on."""

import pytest
from conftest import default_book

from cellformer.workbooks import tool_call
from cellformer.workbooks.tool_call import calculator, sums
from cellformer.workbooks.tool_call.sums import Sum


def belt(edits: dict[tuple[str, int, int], float | str]) -> list[str]:
    """The words on the belt after edits."""
    book = default_book("tool-call")
    shown = book.edited({book.graph[name][i, j]: value for (name, i, j), value in edits.items()})
    return [shown(book.graph["belt.word"][t, 0]) for t in range(tool_call.N_TOKENS)]


def asked(text: str) -> list[str]:
    return belt({("sentence", 0, 0): text})


@pytest.mark.slow
def test_calculator_answers_what_is_written() -> None:
    book = default_book("tool-call")
    told = [*Sum("*", 12, 10).words]
    assert [book.clean(book.graph["belt.word"][t, 0]) for t in range(len(told))] == told
    assert [book.model.vocabulary.texts[i] for i in book.passage.ids] == told
    for found in (Sum("*", 12, 7), Sum("+", 9, 11), Sum("-", 12, 8)):
        assert asked(" ".join(found.question)) == found.words
    assert asked("<BOS> 12 euros less 10 euros leave 12 + 10 =")[11] == "22"
    assert asked("12 * 7 =")[:6] == ["<BOS>", "12", "*", "7", "=", "84"]
    assert asked("<BOS> 13 shares at 10 euros cost")[7:12] == ["11", "*", "10", "=", "110"]


@pytest.mark.slow
def test_without_calculator_the_model_guesses() -> None:
    off = {("calculator.connected", 0, 0): 0.0}
    assert belt(off)[11:] == ["108", "euros", "<EOS>"]
    below = belt({("sentence", 0, 0): "<BOS> 10 euros less 12 euros leave"})
    assert below[7:] == ["10", "-", "12", "=", "0", "euros", "<EOS>"], "-2 is no word"
    assert belt({("blocks.0.attn.h3.switch", 0, 0): 0.0})[7:12] == ["9", "*", "10", "=", "90"]


def test_every_sum_is_written_rightly() -> None:
    """Held-out ones, too, whose results the model does not know."""
    model = tool_call.model()
    assert not {*sums.learnt()} & {*sums.held_out()}
    held_out = sums.right(model, sums.held_out())
    assert (held_out.call, held_out.end) == (1, 1)
    assert 0.2 < held_out.answer < 0.3
    texts = [found.words[: 7 + calculator.LENGTH] for found in sums.held_out()]
    assert [calculator.answer(x) for x in texts] == [str(x.result) for x in sums.held_out()]
    assert calculator.answer(["12", "="]) == ""
