"""A large page goes on with a text word by word: picked words are no edits, and none follows the
end of the text."""

import json
from dataclasses import replace
from pathlib import Path

import chatting
import pytest
from in_node import call

from cellformer.engine.models import checkpoint
from cellformer.engine.models.generate import generate, passage
from cellformer.exporters.assemble import model_workbook
from cellformer.exporters.checking import javascript
from cellformer.exporters.model.plan import LIMITS
from cellformer.exporters.web import page

pytestmark = pytest.mark.usefixtures("node")

MANY = replace(LIMITS, words=1)  # more words than this: one token is ranked
TEXT = "What is the capital of"
ROOM = 6  # tokens after the text


def test_words_go_on_until_the_end_and_are_no_edits(tmp_path: Path) -> None:
    folder = chatting.write(tmp_path / "model")
    model = checkpoint.load(str(folder))
    ids = model.vocabulary.encode(TEXT)
    own = [step.token for step in generate(model, ids, ROOM)]
    end = own.index(own[ROOM // 2]) + 1
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": own[end - 1]}))
    model = checkpoint.load(str(folder))
    words = replace(passage(model, ids, len(ids) + ROOM), text_length=30)
    book = model_workbook.build("many", model, words, limits=MANY, is_page=True)
    path = tmp_path / "x.html"
    page.write(book, path, most_inside=0)
    held = Path(f"{path}.json")
    held.write_text(json.dumps(javascript.read(path)._asdict()))
    call("values.mjs", "open", str(held), True)
    call("values.mjs", "begin", str(held))
    for k in range(1, ROOM + 1):
        state = call("values.mjs", "act", ["next"])
        assert state["shown"] == ids + own[: min(k, end)] and state["chosen"] == 0
    assert state["full"] == "the text has ended"
    assert call("values.mjs", "act", ["set", "prompt.pick", 1, 0, 5])["chosen"] == 1
