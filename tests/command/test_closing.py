"""The sentence below a table of `why`, `patch` and `ablate`: it says what the table shows."""

import re

import pytest
from conftest import cli, told

import cellformer as cf

PROMPT = "<BOS> Pietro chiama Cefa"  # of the dialogue game, with another name than its own
OTHER = "<BOS> 5 chiama Cefa"
GAME = ("dialogue-game", "--prompt", PROMPT)


def percent(text: str) -> list[float]:
    return [float(number) / 100 for number in re.findall(r"(-?[\d.]+)%", text)]


def last_line(*asked: object) -> str:
    done = cli(*asked)
    assert done.code == 0, done.err
    return done.out.rstrip("\n").splitlines()[-1]


def test_ablate_ends_with_the_part_that_matters_most() -> None:
    said = last_line("ablate", *GAME)
    rows = cf.ablate("dialogue-game", PROMPT)
    most = min(rows, key=lambda row: row.change)
    word = told("ablate", *GAME)["target"]
    assert said.startswith(f"{word} needs ") and f"likeliest word is {most.first}." in said
    assert percent(said) == pytest.approx([most.probability, most.before], abs=6e-4)
    assert str(rows).endswith(said)


def test_patch_ends_with_the_site_that_recovers_most() -> None:
    said = last_line("patch", *GAME, "--against", OTHER)
    rows = cf.patch("dialogue-game", OTHER, PROMPT)
    most = max(rows, key=lambda row: row.recovered)
    assert percent(said) == pytest.approx([most.recovered], abs=6e-3)
    assert "of the difference between the two answers comes from " in said
    assert f" at {most.word} ({most.token})." in said


def test_patch_along_a_path_names_the_path() -> None:
    path = ("--from", "blocks.0.attn.h0.result", "--to", "blocks.0.mlp_out")
    said = last_line("patch", *GAME, "--against", OTHER, *path)
    assert "comes from the path from head 0.0 to MLP 0" in said


def test_why_says_which_head_is_an_induction_head() -> None:
    for name, does in (
        ("dialogue-game", "comes closest, but is not an induction head"),
        ("induction", "does so"),
    ):
        out = cli("why", name).out
        (said,) = [line for line in out.splitlines() if line.startswith("An induction head")]
        best = max(told("why", name)["heads"], key=lambda head: head["induction"])
        assert does in said and percent(said) == pytest.approx([best["induction"]], abs=6e-4)
        last = out.rstrip().splitlines()[-1]
        assert re.match(r"The strongest link: the (values|keys|queries) of head 1\.", last)


def test_why_of_a_head_has_the_score_of_the_next_token() -> None:
    out = cli("why", *GAME, "--head", "1.2").out
    (said,) = [line for line in out.splitlines() if " scores " in line]
    graph = cf.graph("dialogue-game", PROMPT)
    scores, shares = (
        graph.values[f"blocks.1.attn.h2.{name}"][-1] for name in ("scores", "pattern")
    )
    order = sorted(range(4), key=lambda key: -shares[key])[:2]
    assert percent(said)[:2] == pytest.approx([shares[key] for key in order], abs=6e-4)
    for key in order:
        assert f"({key}) scores {scores[key]:+.4f}" in said
    found = told("why", *GAME, "--head", "1.2", "--rival-key", order[1])
    largest = max(max(row) for row in found["difference"])
    assert percent(said)[2] == pytest.approx(largest / (scores[order] @ [1, -1]), abs=6e-3)


@pytest.mark.slow
def test_why_of_a_word_says_what_the_strongest_edge_carries() -> None:
    out = cli("why", *GAME, "--say", "Tarso", "--rival", "vice").out
    (said,) = [line for line in out.splitlines() if "of this lead comes through" in line]
    found = told("why", *GAME, "--say", "Tarso", "--rival", "vice")
    assert percent(said)[0] == pytest.approx(found["edges"][0]["value"] / found["lead"], abs=6e-3)
