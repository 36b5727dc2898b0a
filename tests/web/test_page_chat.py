"""A conversation on a page, in a browser: it answers with the ids of `generate --chat`, turn after
turn."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chatting
import pytest
from conftest import cli
from in_node import call

from cellformer import names
from cellformer.engine.models.generate import generate
from cellformer.engine.text import chat_ids

ENDS = 90  # the seed of a model whose answer ends after five tokens
PHONE = {"viewport": {"width": 390, "height": 844}}
Talk = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chatting.write(tmp_path_factory.mktemp("chat") / "model", seed=ENDS)


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    path = folder.parent / "page.html"
    done = cli("build", folder, "--chat", "--prompt", "It", "--tokens", 60, "-o", path)
    assert done.code == 0, done.err
    return path


@pytest.fixture
def talk(page: Path, chromium: str) -> Talk:
    """Takes steps on the page; gives what is read. There is no error."""

    def talked(*steps: list[Any], **view: Any) -> list[Any]:
        found = call("chat.mjs", "chatted", chromium, str(page), steps, view)
        assert found["errors"] == []
        return found["read"]

    return talked


def ids_of(titles: list[str]) -> list[int]:
    return [int(re.findall(r"id (\d+)", title)[0]) for title in titles]


def answered(model: Any, ids: list[int]) -> list[int]:
    """What `generate` says after ids, up to the end of text."""
    found = []
    for step in generate(model, ids, 20):
        if step.token in model.vocabulary.ends:
            break
        found.append(step.token)
    return found


MODEL = ["click", "#views button", 1]
TOKENS = ["tokens"]


def test_the_answer_has_the_ids_of_generate_and_a_second_turn_goes_on(
    folder: Path, talk: Talk
) -> None:
    loaded = names.load(str(folder), "It", system="")
    first = answered(loaded.model, loaded.ids)
    assert len(first) == 5
    encode = lambda text: loaded.model.vocabulary.encode(text, special=False)  # noqa: E731
    assert loaded.chat is not None
    template = chat_ids.of(encode, loaded.chat)
    said = [*loaded.ids, *first, *template.following, *encode("Rome"), *template.closing]
    second = answered(loaded.model, said)[: 60 - len(said)]
    one, two = talk(
        ["answer"], MODEL, TOKENS, ["click", "#views button", 0], ["send", " Rome "], MODEL, TOKENS
    )
    assert ids_of(one) == [*loaded.ids, *first]
    assert ids_of(two) == [*said, *second]


def test_an_answer_is_no_edit(talk: Talk) -> None:
    (told,) = talk(["answer"], ["text", "#ledger"])
    assert told[0].startswith("As built · says ‘")


def test_a_message_replaces_one_without_an_answer_and_a_conversation_begins_anew(
    talk: Talk,
) -> None:
    you, fresh = talk(
        ["send", "Rome"], ["text", ".turns .you"], ["click", ".dials button"], ["text", ".turns li"]
    )
    assert [text.split("\n")[-1] for text in you] == ["Rome"]
    assert fresh == []


def test_the_same_seed_says_the_same_and_stop_ends_an_answer(talk: Talk) -> None:
    warm = [["fill", "#heat", "3"], ["fill", "#seed", "7"]]
    words = ["text", ".turns .answer"]
    other = [*warm[:1], ["fill", "#seed", "8"]]
    one = talk(*warm, ["answer"], words)[-1]
    assert one == talk(*warm, ["answer"], words)[-1] != talk(*other, ["answer"], words)[-1]
    stopped = talk(*warm, ["stop", "Rome"], ["text", ".turns .word"])[-1]
    assert len(stopped) <= 2


def test_a_word_opens_the_pass_that_chose_it(talk: Talk) -> None:
    """Its rank, the runners-up, and what each part added; a head opens in five steps."""
    hidden, told, flow, steps, closed = talk(
        ["answer"],
        ["shown", "#flow"],
        ["click", ".turns .word", 2],
        ["text", ".opened p"],
        ["text", "#flow .flow-told"],
        ["open", ".flow-part[data-name^='head']"],
        ["text", ".five h3"],
        ["click", ".opened button"],
        ["text", ".turns [aria-pressed=true]"],
    )
    assert hidden is False and closed == []
    assert "was the likeliest word here: " in told[0] and told[0].count("%") == 5
    assert "logit of" in flow[0]
    assert re.match(r"Head 0\.\d, step 1 of 5: query and key", steps[0])


def test_a_phone_scrolls_nothing_sideways(talk: Talk) -> None:
    assert talk(["answer"], ["click", ".turns .word"], ["wide"], **PHONE)[-1] <= 0


@pytest.mark.parametrize(
    ("text", "said"),
    [("1 " * 30, "There is no room: this page has room for 60 tokens"), ("a" * 200, "more than")],
    ids=["tokens", "characters"],
)
def test_a_message_without_room_is_refused_in_a_line(text: str, said: str, talk: Talk) -> None:
    told, turns = talk(["send", text], ["text", "#chat .problem"], ["text", ".turns .you"])
    assert len(told) == 1 and turns[0].endswith("It") and said in told[0]


REWRITES = chatting.CHATML.replace("message['content']", "message['content'].split('</think>')[-1]")
GLUED = "{% for m in messages %}{{ 'P' + m.content + 'P' }}{% endfor %}"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (REWRITES, "changes the typed text"),
        (GLUED, "makes one token of the chat template's last letters"),
    ],
    ids=["rewrites", "glued"],
)
def test_a_template_that_no_page_can_follow_is_refused(
    template: str, said: str, tmp_path: Path
) -> None:
    model = chatting.write(tmp_path / "model", template)
    done = cli("build", model, "--chat", "--prompt", "It", "-o", tmp_path / "page.html")
    assert done.code == 2 and said in done.err and len(done.err.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()
