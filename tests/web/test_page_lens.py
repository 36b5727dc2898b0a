"""The words after each layer on a large page: those of the logit lens, also after an edit. The next
word joins the text."""

from dataclasses import replace
from pathlib import Path

import chatting
import pytest
from in_node import call

from cellformer.engine import Evaluator
from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import passage
from cellformer.engine.studies.lens import add_lens
from cellformer.engine.text.tokenizer import shown
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.model.plan import LIMITS
from cellformer.exporters.web import page

pytestmark = pytest.mark.usefixtures("node")

MANY = replace(LIMITS, words=1)  # more words than this: one token is ranked
TEXT, PART = "What is the capital of", "blocks.0.attn.h1"


def likeliest(live: Evaluator, stage: int) -> tuple[int, float]:
    """The likeliest word at a stage of the lens, and its percentage."""
    probs = live[f"lens.{stage}.probs"][0]
    return int(probs.argmax()), 100 * float(probs.max())


def test_words_after_layers_are_those_of_the_lens(tmp_path: Path, chromium: str) -> None:
    model = checkpoint.load(str(chatting.write(tmp_path / "model")))
    ids = model.vocabulary.encode(TEXT)
    given = replace(passage(model, ids, len(ids) + 2), text_length=30)
    book = model_workbook.build("many", model, given, limits=MANY, is_page=True)
    path = tmp_path / "x.html"
    page.write(book, path, most_inside=0)
    weights = str(path.with_suffix(".weights"))
    closed, *found, text = call("lens.mjs", "words", chromium, str(path), weights, PART)
    assert closed == []
    graph = model.graph(ids)
    n_stages = len(add_lens(graph, len(ids) - 1, 0, 1).stages)
    live = Evaluator(graph)
    for read in found:
        wanted = [likeliest(live, stage) for stage in (0, n_stages - 1)]
        assert [name for name, *_ in read] == ["embedding", "layer 0"]
        assert [word for _, word, _ in read] == [
            shown(model.vocabulary.texts)[k] for k, _ in wanted
        ]
        shares = [float(share.removesuffix(" %")) for *_, share in read]
        assert shares == pytest.approx([share for _, share in wanted], abs=0.1)
        live.set(f"{PART}.switch", 0, 0, 0.0)
    assert text == TEXT + model.vocabulary.decode([likeliest(live, n_stages - 1)[0]])
