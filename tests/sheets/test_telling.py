"""Suggested edits of a model with many words: what they say is what happens."""

from dataclasses import replace

import chatting
import pytest

from cellformer import names
from cellformer.engine import Evaluator, InputError
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import padded, passage
from cellformer.engine.studies import ablation, telling
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.model.plan import LIMITS, for_model

FEW = replace(LIMITS, words=1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory):
    return checkpoint.load(str(chatting.write(tmp_path_factory.mktemp("chat") / "model")))


def test_the_head_is_that_without_which_the_answer_loses_most(model) -> None:
    """Its probability without it is that of the study `ablate`."""
    ids = model.vocabulary.encode("What is the capital of")
    readout = for_model(model, limits=FEW).readout
    found = telling.told(model, ids, readout)
    assert found is not None
    effects = ablation.effects(model.graph(ids), found.answer.id)
    heads = [effect for effect in effects if ".h" in effect.part]
    assert len(heads) == 2
    least = min(heads, key=lambda effect: effect.probability)
    assert found.head == least.part
    assert abs(found.without - least.probability) < 1e-12


def test_suggestions_are_in_words_and_come_true(model) -> None:
    given = passage(model, model.vocabulary.encode("What is the"), 5)
    book = model_workbook.build("many", model, replace(given, text_length=8), limits=FEW)
    off, heat = book.suggestions[-2:]
    assert off.text.startswith("Switch head 0.") and "the id of" not in heat.text
    live = Evaluator(book.graph)
    live.set(*off.cell, off.value)
    name, i, j = off.watch
    assert abs(live[name][i, j] - off.becomes) < 1e-12
    assert off.decimals == 1


def test_a_model_says_a_fact_only_if_it_knows_it(model) -> None:
    """A model of random weights knows none of them."""
    found = telling.told(
        model, model.vocabulary.encode("What"), for_model(model, limits=FEW).readout
    )
    assert found is not None and found.fact is None


def test_nothing_sees_the_tokens_after_the_prompt(model) -> None:
    """A page need not choose them: the answer is the same with other tokens there."""
    ids = model.vocabulary.encode("What is the")
    passages = passage(model, ids, len(ids) + 3), padded(model, ids, len(ids) + 3)
    assert passages[1].ids == [*ids, *[ids[-1]] * 3] != passages[0].ids
    books = [
        model_workbook.build("x", model, replace(made, text_length=8), limits=FEW, is_page=True)
        for made in passages
    ]
    assert (books[0].values["probs"] == books[1].values["probs"]).all()
    with pytest.raises(InputError, match="the prompt alone has"):
        padded(model, ids, len(ids) - 1)
    with pytest.raises(InputError, match=r"the prompt has .* ask for"):
        padded(model, ids, model.spec.n_ctx + 1)


def test_in_a_conversation_a_suggestion_names_the_answer(model) -> None:
    """A page shows later words, too: the suggestion says of which word it speaks."""
    chat = names.conversation("many", model, "Rome", None, "", (), False)
    _, given = names.on_page(chat, 60)
    book = model_workbook.build("many", model, given, limits=FEW, is_page=True)
    off = book.suggestions[-2]
    assert "as the first word of the answer to ‘Rome’" in off.text and off.watch is None
