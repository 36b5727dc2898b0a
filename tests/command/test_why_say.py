"""`why NAME --say WORD`: edges that sum to the lead, a circuit, a picture whose texts are data."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import GOLDEN, cli, told

from cellformer.command.answer_picture import svg
from cellformer.engine.studies.answer_graph import ANSWER, Edge, Node


@pytest.mark.slow
def test_the_caller_is_found_and_drawn(tmp_path: Path) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    asked = ("why", "dialogue-game", "--say", "Tarso", "--against", "<BOS> 3 chiama Paolo")
    asked += ("--neurons",)
    found = told(*asked, "-o", str(first))
    assert found["rival"] == "vice" and found["other_sentences"]
    strongest = found["edges"][0]
    assert strongest["source"] == ["blocks.1.attn.h2.result", 3] and strongest["cut"] < 0
    edges = [(e["source"], e["reader"]) for e in found["circuit"]["edges"]]
    assert (["embed", 1], ["blocks.0.attn.h0.result", 2]) in edges
    kept, without = (found["circuit"][name] for name in ("lead", "lead_without"))
    assert kept - without >= 0.9 * (found["lead"] - without) and without < 0 < kept
    code, out, _ = cli(*asked, "-o", str(second))
    assert code == 0 and "1.2 at Paolo (3)" in out
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--say", "Tarsoo"), "nearest: Tarso"),
        (("--say", "Tarso", "--rival", "Tarso"), "the word and its rival are the same"),
        (("--say", "Tarso", "--head", "1.2"), "--head and --say cannot be combined"),
        (("--say", "Tarso", "--against", "<BOS> 3"), "tokens"),
        (("--rival", "vice"), "name the word with --say"),
        (("--also", "no-such-file"), "name the word with --say"),
        (("--say", "Tarso", "--also", "no-such-file"), "no-such-file"),
        (("--say", "Tarso", "-o", "graph.png"), "name a file that ends in .svg"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_line(options: tuple[str, ...], told: str) -> None:
    code, _, error = cli("why", "dialogue-game", *options)
    assert code == 2 and told in error


def test_texts_of_a_file_are_averaged_and_tried(tmp_path: Path) -> None:
    """Beginnings of longer ones, too; short ones and the prompt itself are left out."""
    file, asked = tmp_path / "texts.txt", ("why", GOLDEN / "llama", "--ids", "3,4,5")
    file.write_text("6,4,5\n3,4,5\n\n7,8\n8,4,5,9\n")
    found = told(*asked, "--say", "7", "--also", str(file))
    assert [other["ids"] for other in found["other_sentences"]] == [[6, 4, 5], [8, 4, 5]]
    file.write_text("7,8\n")
    code, _, error = cli(*asked, "--say", "7", "--also", file)
    assert code == 2 and "no other text has 3 tokens" in error and error.count("\n") == 1


def test_without_a_circuit_the_edges_are_told_all_the_same() -> None:
    """Of one token there are no other sentences that could replace anything."""
    code, out, _ = cli("why", GOLDEN / "llama", "--ids", "3", "--say", "7")
    assert (
        code == 0
        and "the strongest edges" in out
        and "no small set of edges keeps the answer" in out
    )


def test_encoders_say_no_next_word() -> None:
    code, _, error = cli("why", str(GOLDEN / "bert"), "--ids", "1,2,3", "--say", "a")
    assert code == 2 and "--say needs a decoder" in error


def test_words_in_the_picture_are_data() -> None:
    word = '</text><script>alert("1")</script>\x1b&'
    edge = Edge(Node("embed", 0), Node(ANSWER, 1), 2.0)
    picture = svg(word, [word, "b"], [edge], [])
    texts = [element.text or "" for element in ElementTree.fromstring(picture).iter()]
    assert sum("<script>" in text for text in texts) == 2 and "<script" not in picture


def test_a_prompt_of_one_token_has_no_other_sentences() -> None:
    done = cli("why", "cat-sat", "--say", "mat", "--prompt", "the")
    assert done.code == 0 and "there are no other sentences of this length" in done.out
