"""Follow the word: what a model's parts add to a logit is the logit, as built and after edits."""

from collections import Counter
from pathlib import Path
from typing import Any

import as_page
import pytest
from conftest import GOLDEN, default_book
from in_node import call

import cellformer as cf
from cellformer import workbooks as gallery
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.answer_graph import AnswerGraph
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.compose.book import Book
from cellformer.exporters.web import flow

pytestmark = pytest.mark.usefixtures("node")

NEAR = 1e-9
SENTENCES = {"minilm", "embeddinggemma"}  # they score no words
SCORING = sorted({path.parent.name for path in GOLDEN.glob("*/config.json")} - SENTENCES)
CLASSIFIERS = ["classes/distilbert", "classes/gpt2", "classes/roberta"]
WRITERS = ("result", "mlp_out", "ssm_out", "time_out", "gated")
Edits = list[tuple[str, int, int, float]]


def edits_of(book: Book) -> Edits:
    """A weight of the embedding, what a part wrote, and a switch: those that the book has."""
    blocks = list(book.graph)
    wrote = next(block for block in blocks if block.leaf in WRITERS)
    off = [block for block in blocks if block.leaf == "switch"][1:2]
    last = wrote.shape[0] - 1
    return [
        ("W_E", 1, 0, 0.75),
        (wrote.name, last, 1, -2.5),
        *((s.name, 0, 0, 0.0) for s in off),
    ]


def adds_up(folder: str, edits: Edits) -> list[dict[str, Any]]:
    """The shares of each token's likeliest word, which add up to its logit."""
    found = call("flow.mjs", "sums", folder, edits)
    for token in found:
        assert abs(token["sum"] - token["logit"]) <= NEAR * max(1, token["largest"]), token
    return list(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORING + CLASSIFIERS)
def test_the_shares_of_a_golden_model_add_up_to_the_logit(name: str, tmp_path: Path) -> None:
    model = checkpoint.load(GOLDEN / name)
    book = model_workbook.build("x", model, passage(model, [2, 0, 3], 4))
    folder = as_page.write(book, tmp_path)
    built = adds_up(folder, [])
    edited = adds_up(folder, edits_of(book))
    assert [token["logit"] for token in edited] != [token["logit"] for token in built]


@pytest.mark.parametrize("name", ["cat-sat", "thin-dialogue-game", "digits"])
def test_a_head_divides_among_the_words_that_it_reads(name: str, tmp_path: Path) -> None:
    """Its shares times the values add up to what it adds, also with a share typed over."""
    folder = as_page.write(default_book(name), tmp_path)
    for edits in [], [("blocks.0.attn.h0.pattern", 2, 1, 0.75)]:
        for token in adds_up(folder, edits):
            assert token["heads"]
            for head, adds, of_words in token["heads"]:
                assert of_words == pytest.approx(adds, abs=NEAR), head


@pytest.mark.parametrize("name", ["gemma2", "gpt2", "gpt_neox", "mixtral", "phi"])
def test_later_parts_carry_on_as_the_graph_of_an_answer_says(name: str, tmp_path: Path) -> None:
    model, ids, row, word = checkpoint.load(GOLDEN / name), [2, 0, 3], 2, 1
    book = model_workbook.build("x", model, passage(model, ids, 4))
    expected, at_other_tokens = AnswerGraph(model.graph(ids), row, word), 0
    for found in call("flow.mjs", "values", as_page.write(book, tmp_path), [], word, row):
        if not expected.graph[found["name"]].computed:  # a bias
            continue
        value = expected.value(found["name"].removesuffix(".word"))[found["at"]]
        assert found["value"] == pytest.approx(value, abs=NEAR), found
        assert not found["isHead"] or found["read"] == pytest.approx(found["later"], abs=NEAR)
        at_other_tokens += found["at"] != row and abs(value) > NEAR
    assert at_other_tokens


@pytest.mark.parametrize("name", gallery.names())
def test_a_model_of_sentences_offers_three_that_it_can_read(name: str) -> None:
    """The first is the sentence as built; the answers differ."""
    book = default_book(name)
    typed = "sentence" in book.graph.blocks and bool(flow.steps(book.graph, Counter()))
    assert len(book.examples) == 3 * typed
    if typed:
        assert book.examples[0] == book.graph.inputs["sentence"][0, 0]
        assert len({cf.graph(name, text).values["probs"][-1].max() for text in book.examples}) == 3


def test_a_model_without_scores_of_words_has_no_steps(tmp_path: Path) -> None:
    model = checkpoint.load(GOLDEN / "minilm")
    book = model_workbook.build("minilm", model, passage(model, [2, 0], 4, second=[2, 3]))
    folder = Path(as_page.write(book, tmp_path))
    assert '"flow"' not in (folder / "data.json").read_text()
