"""Mistakes of a new user, each answered in one sentence that names the fact and the remedy."""

from pathlib import Path

import pytest
from conftest import cli

MISTAKES = {
    ("run", "cat-sat", "--set", "Play!C5=the dog sat"): (
        "contains the sentence; give another sentence with"
    ),
    ("run", "nofolder"): "`cellformer list` shows all names; a model is a file, a folder",
    ("run", "cat-sta"): "nearest: cat-sat",
    ("generate", "adder", "--prompt", "12+34"): "12 + 34 is 021000000000043000000000",
    ("run", "cat-sat", "--prompt", "Roma"): "'Roma' is not in the vocabulary; known: the, cat",
    ("run", "cat-sat", "--target", "🐱"): "not in the vocabulary; known: the, cat",
    ("run", "dialogue-game", "--target", "Roma"): "'Roma' is not in the vocabulary; known:",
    ("build", "cat-sat", "--exercise", "--level", "7"): "choose 1 (single numbers), 2 (formulas)",
    ("run", "cat-sat", "--show", "scores"): "nearest: blocks.0.attn.h0.scores",
    ("run", "cat-sat", "--set", "W_E[0,0]=abc"): "'abc' is not a number; write a number, such as",
    ("generate", "cat-sat", "-n", "100"): "but the model reads at most 8; ask for 5",
    ("edit", "cat-sat", "--say", "mat"): "already the most likely word (31.2%); choose another",
    ("run", "tests/golden/gpt2"): "no default prompt; give a text with --prompt, or token ids",
}


@pytest.mark.parametrize("asked", MISTAKES, ids=" ".join)
def test_a_mistake_is_answered_in_a_sentence(asked: tuple[str, ...]) -> None:
    done = cli(*asked)
    assert done.code == 2 and not done.out and done.err.count("\n") == 1
    assert MISTAKES[asked] in done.err


def test_a_file_of_another_program_is_named(tmp_path: Path) -> None:
    for name, remedy in (("x.ods", "save it as .xlsx in the program"), ("x.xlsx", "copy it again")):
        (tmp_path / name).write_bytes(b"PK")
        done = cli("diff", tmp_path / name)
        assert done.code == 2 and f"{name} is not an .xlsx workbook; {remedy}" in done.err
        assert "Error" not in done.err


def test_the_form_that_adder_names_adds() -> None:
    (form,) = [
        word for word in cli("generate", "adder", "--prompt", "+").err.split() if "02" in word
    ]
    assert cli("generate", "adder", "--prompt", form).out.strip()[len(form) :][:11] == "64000000000"
