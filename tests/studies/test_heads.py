"""What heads do on repeated random words, their circuits, and which heads read which."""

import numpy as np
import pytest
from conftest import ROOT, golden_models, random_model

import cellformer as cf
from cellformer.engine import InputError, ModelSpec
from cellformer.engine.studies import circuits, heads, scores
from cellformer.exporters.model.plan import LIMITS

HEAD = "blocks.0.attn.h0"


def test_the_induction_model_has_a_previous_token_head_and_an_induction_head() -> None:
    first, second = heads.habits(cf.load("induction"))
    assert first.previous > 0.999 and second.induction > 0.999
    assert second.previous < 0.2 and first.entropy < 0.001


def test_every_golden_model_has_habits_and_finite_compositions() -> None:
    for name in ("bert", "gemma2", "mixtral", "olmo2", "bloom"):
        model = golden_models()[name]
        for one in heads.habits(model):
            assert 0 <= one.previous <= 1 and 0 <= one.induction <= 1 and one.entropy >= 0, name
        assert all(0 < x <= 1 for pair in circuits.compositions(model) for x in pair[2:]), name


def test_a_context_too_short_for_repetition_is_refused() -> None:
    model = random_model(ModelSpec(d_vocab=5, d_model=4, n_ctx=3, n_layers=1, n_heads=1, d_head=2))
    with pytest.raises(
        InputError, match="two or more different words, but the model's context is too short or"
    ):
        heads.habits(model)


def test_circuits_are_scores_and_logits_of_a_model_without_norms_and_positions() -> None:
    model = cf.load("cat-sat")
    ids = model.vocabulary.encode("the cat sat")
    values = model.graph(ids).values
    found, seen = values[f"{HEAD}.scores"], np.isfinite(values[f"{HEAD}.scores"])
    assert circuits.qk(model, HEAD)[np.ix_(ids, ids)][seen] == pytest.approx(found[seen])
    raised = values[f"{HEAD}.pattern"] @ circuits.ov(model, HEAD)[ids]
    before = values["embed"] @ (values["W_E"].T if model.spec.tied else values["W_U"])
    assert before + raised == pytest.approx(values["logits"])


@pytest.mark.parametrize("name", ["llama3", "gemma2", "olmo2", "bloom", "opt-350m"])
def test_the_qk_circuit_is_the_score_of_a_word_alone(name: str) -> None:
    model = golden_models()[name]
    if model.spec.position == "learned":
        weights = {**model.weights, "W_pos": np.zeros_like(model.weights["W_pos"])}
        model = cf.Model(model.spec, weights, model.vocabulary, architecture=model.architecture)
    found = circuits.qk(model, HEAD)
    graph = model.graph([3])
    product = scores.Head(graph, HEAD).product
    assert found[3, 3] == pytest.approx(graph.values[product.name][0, 0])


def test_compositions_are_norms_of_products_of_weights() -> None:
    model = cf.load("induction")  # without norms
    (found,) = circuits.compositions(model)
    w = model.weights
    one, two = "blocks.0.attn.h0", "blocks.1.attn.h0"
    wrote = w[f"{one}.W_V"] @ w[f"{one}.W_O"]
    reads = w[f"{two}.W_Q"] @ w[f"{two}.W_K"].T
    size = np.linalg.norm
    assert found.q == pytest.approx(size(wrote @ reads) / size(wrote) / size(reads))
    assert found.k == pytest.approx(size(wrote @ reads.T) / size(wrote) / size(reads))
    assert found.k > found.q


def test_what_is_too_large_or_has_no_words_is_refused() -> None:
    with pytest.raises(InputError, match="does not predict words, so its heads have no OV circuit"):
        circuits.ov(golden_models()["minilm"], HEAD)
    with pytest.raises(InputError, match="not linear in the output of the heads"):
        circuits.ov(golden_models()["bert"], HEAD)
    wide = ModelSpec(d_vocab=3_001, d_model=2, n_ctx=4, n_layers=1, n_heads=1, d_head=1)
    with pytest.raises(InputError, match=r"circuits through 3,001 words are too large"):
        circuits.qk(random_model(wide), HEAD)


def test_the_note_has_the_limits() -> None:
    note = " ".join((ROOT / "docs" / "why.md").read_text(encoding="utf-8").split())
    assert f"at most {circuits.MOST_WORDS:,} words" in note
    assert f"more than {LIMITS.parts:,} formulas" in note
