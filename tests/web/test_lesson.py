"""A lesson in a link: made on a page, answered in a frame under a sub path, and graded."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import cli, default_book
from in_node import call

from cellformer.exporters.web.page import write

HEAD, OTHER = "[data-part='blocks.1.attn.h2']", "[data-part='blocks.0.attn.h1']"
TASK = "Make it say ‘vice’ & use one edit."
SWITCH = "blocks.1.attn.h2.switch=0"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("page") / "page.html"
    write(default_book("dialogue-game"), path)
    return str(path)


@pytest.fixture(scope="module")
def lesson(chromium: str, page: str) -> dict[str, str]:
    found: dict[str, str] = call("lesson.mjs", "made", chromium, page, HEAD, TASK)
    return found


def answered(chromium: str, page: str, link: str, *touched: str) -> dict[str, Any]:
    hash_ = "#" + link.split("#", 1)[1]
    found: dict[str, Any] = call("lesson.mjs", "answered", chromium, page, hash_, touched)
    return found


def graded(tmp_path: Path, lesson: str, *lines: str) -> dict[str, Any]:
    """What `grade` prints as JSON for a list."""
    path = tmp_path / "class.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    done = cli("grade", str(path), "--lesson", lesson, "--json")
    found: dict[str, Any] = json.loads(done.out)["result"]
    return found


def test_a_lesson_holds_the_task_and_not_the_solution(lesson: dict[str, str]) -> None:
    assert lesson["refused"].startswith("Solve the task first")
    assert lesson["link"].startswith("http://host.test/course/week%203/a/page.html#v1&cellformer=")
    assert "switch" not in lesson["link"]
    assert lesson["link"].endswith("&~end")
    assert lesson["iframe"].startswith('<iframe src="http://host.test/')
    assert "&amp;~task=" in lesson["iframe"]


def test_a_page_checks_the_answer(chromium: str, page: str, lesson: dict[str, str]) -> None:
    right = answered(chromium, page, lesson["link"], HEAD)
    assert (right["task"], right["before"]) == (TASK, "Not yet.")
    assert right["after"].startswith("Solved.")
    assert right["tour"].startswith("7 stops") and right["hints"] == 0
    many = answered(chromium, page, lesson["link"], HEAD, OTHER)
    assert many["after"] == "You made 2 edits. The most that count are 1."


def test_a_cut_lesson_changes_nothing(chromium: str, page: str, lesson: dict[str, str]) -> None:
    found = answered(chromium, page, lesson["link"].removesuffix("&~end"))
    assert found["ledger"] == "the lesson in the link is incomplete; copy the link again."
    assert found["task"] == ""


def test_answers_are_computed_again(
    chromium: str, page: str, lesson: dict[str, str], tmp_path: Path
) -> None:
    """Right, wrong, and cheating in each way: the claims of a link count for nothing."""
    asked = lesson["link"]
    right = answered(chromium, page, asked, HEAD)["link"]
    wrong = answered(chromium, page, asked, OTHER)["link"]
    begin = asked.removesuffix("&~end")
    cheats = [
        f"{begin}&logits[3,17]=100&~end",
        f"{begin}&sentence=3+chiama+Paolo&~end",
        f"{begin}&{SWITCH}&blocks.0.attn.h1.switch=0&~end",
    ]
    refused = [
        right.replace("~edits=1", "~edits=9"),
        right.replace("cellformer=dialogue-game.", "cellformer=dialogue-game.0"),
        right.removesuffix("&~end"),
        "no link",
        right.replace("#v1", "#v0"),
    ]
    lines = [f"Anna,{right}", f"Berta Rossi {wrong}", *cheats, *refused]
    found = graded(tmp_path, asked, *lines)
    marks = {one["file"].rpartition(":")[2]: one for one in found["files"]}
    assert [one["reader"] for one in marks.values()] == ["Anna", "Berta Rossi", "", "", ""]
    assert [one["score"] for one in marks.values()] == [1, 0, 0, 0, 0]
    assert [one["exercises"][0][0]["said"] for one in marks.values()] == [
        "",
        "the model says another word",
        "the answer itself was typed over",
        "the sentence was changed",
        "edits: 2; the most that count: 1",
    ]
    whys = [one["why"].partition(";")[0] for one in found["not_marked"]]
    assert whys == [
        "the link is of another lesson",
        "the link is of another model",
        "the lesson in the link is incomplete",
        "the line has no link of a page",
        "the link has version v0, but this cellformer reads only v1",
    ]
