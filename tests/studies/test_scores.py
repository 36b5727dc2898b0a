"""A head's score split over its writers: the table sums to it, whatever the architecture."""

import numpy as np
import pytest
from conftest import default_graph, golden_models, in_tiers

from cellformer.engine import Graph, InputError, Model
from cellformer.engine.models.forward import EVERYTHING, ONE_TOKEN, Readout
from cellformer.engine.studies import scores

CLOSE = 1e-12  # of the largest number of a table


def graph_of(model: Model, n_tokens: int = 6, readout: Readout = EVERYTHING) -> Graph:
    """A pass over different tokens, none of them padding."""
    n_words, padding = model.spec.d_vocab, model.spec.first_position - 1
    ids = [(7 * k + 3) % n_words for k in range(n_tokens)]
    return model.graph([(i + (i == padding)) % n_words for i in ids], readout)


def worst(graph: Graph) -> float:
    """The largest gap between a table's sum and its score, over all heads and pairs."""
    gaps = []
    for name in scores.heads(graph):
        head = scores.Head(graph, name)
        for query, key in head.product.whole.cells():
            if head.product.has(query, key):
                split = head.split(query, key)
                size = max(abs(split.score), float(np.abs(split.table).max()), 1e-9)
                gaps.append(abs(split.total - split.score) / size)
    assert gaps  # some head has a query that sees a key
    return float(np.max(gaps))


@pytest.mark.parametrize("name", sorted(n for n, m in golden_models().items() if m.spec.n_heads))
def test_the_table_sums_to_the_score_in_every_golden_model(name: str) -> None:
    assert worst(graph_of(golden_models()[name])) < CLOSE


WITH_HEADS = (
    "cat-sat",
    "fluffy-creature",
    "induction",
    "two-layers",
    "dialogue-game",
    "shakespeare",
)


@pytest.mark.parametrize("name", in_tiers([*WITH_HEADS, "semantic-tiny"]))
def test_the_table_sums_to_the_score_in_the_gallery(name: str) -> None:
    assert worst(default_graph(name)) < CLOSE


@pytest.mark.parametrize("name", ["gpt2", "gemma2", "mixtral"])
def test_heads_whose_own_outputs_are_not_shown_are_parts_too(name: str) -> None:
    graph = graph_of(golden_models()[name], readout=ONE_TOKEN)
    assert worst(graph) < CLOSE
    last = scores.Head(graph, scores.heads(graph)[-1])
    assert "blocks.0.attn.h1.z" in last.queries.writers


def test_writers_have_the_names_of_blocks() -> None:
    graph = graph_of(golden_models()["mixtral"])
    found = scores.Head(graph, "blocks.1.attn.h0").queries.writers
    assert found[0] == "embed" and {"blocks.0.attn.h1.result", "blocks.0.mlp.e3.result"} < {*found}
    assert {*found} < {*graph.blocks}


def test_what_no_writer_wrote_stands_outside_the_table() -> None:
    def outside(name: str) -> list[str]:
        graph = graph_of(golden_models()[name])
        return [*scores.Head(graph, scores.heads(graph)[0]).split(3, 1).outside]

    assert [outside(name) for name in ("gemma2", "bloom", "gpt2")] == [
        ["soft cap"],
        ["distance"],
        [],
    ]


def test_a_key_that_is_absent_is_said() -> None:
    model = golden_models()["bert"]
    graph = graph_of(model)
    present = graph.inputs["attention_mask"].copy()
    present[2] = 0
    graph.fill("attention_mask", present)
    split = scores.Head(graph, "blocks.0.attn.h0").split(1, 2)
    assert split.outside[scores.ABSENT] < -9000
    assert split.total == pytest.approx(split.score, rel=CLOSE)


def test_a_head_is_named_in_two_ways_and_others_are_refused() -> None:
    graph = graph_of(golden_models()["gpt2"])
    assert scores.head_of(graph, "1.2") == scores.head_of(graph, "blocks.1.attn.h2")
    with pytest.raises(InputError, match=r"no head is named '1.7'; nearest: 1\."):
        scores.head_of(graph, "1.7")
    with pytest.raises(
        InputError, match=r"token 1 does not see token 3 in head 1.2; name an earlier token"
    ):
        scores.Head(graph, "blocks.1.attn.h2").split(1, 3)


def test_a_number_is_a_position_or_a_word() -> None:
    texts = ["<BOS>", "3", "chiama", "7"]
    assert scores.place(texts, "2", "--from") == 2
    assert scores.place(texts, "7", "--from") == 3
    assert scores.place(texts, 3, "--from") == 3
    with pytest.raises(InputError, match="give 1 or '7'"):
        scores.place(texts, "3", "--from")
