"""The functions of `import cellformer` that do what a command does: they take a name, a folder, an
edited workbook or a model, and give what the command prints."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, cli, told

import cellformer as cf
from cellformer.engine.cells.evaluator import Evaluator

PROMPT = "the dog sat on"
SITE = "blocks.0.attn.h0.result[3]"


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook in which a word's vector was changed."""
    path = tmp_path_factory.mktemp("python") / "edited.xlsx"
    return cf.write(cf.build("cat-sat", prompt=PROMPT), path, edits={("W_E", 2, 1): -0.75})


def command(*args: object) -> tuple[dict, str]:
    """The JSON of a command, and its text for people."""
    return told(*args), cli(*args).out


def same(table: cf.Table, *args: object) -> None:
    """Assert that a table has what the command says."""
    result, text = command(*args)
    assert table.result == result
    assert [line.split() for line in str(table).splitlines()] == [
        line.split() for line in text.splitlines()
    ]


def test_each_function_gives_what_its_command_prints(edited: Path) -> None:
    prompt = ("--prompt", PROMPT)
    same(cf.run("cat-sat", PROMPT, lens=True), "run", "cat-sat", *prompt, "--lens")
    same(
        cf.run(edited, set={"Embedding!B11": 0.5}, ablate=["blocks.0.attn"]),
        *("run", edited, "--set", "Embedding!B11=0.5", "--ablate", "blocks.0.attn"),
    )
    same(cf.ablate("cat-sat", PROMPT, mean=True), "ablate", "cat-sat", *prompt, "--mean")
    same(
        cf.sweep("cat-sat", "W_E[1,1]", -2, 2, 5, prompt=PROMPT, target="mat"),
        *("sweep", "cat-sat", "W_E[1,1]", "--from", -2, "--to", 2, "--steps", 5),
        *(*prompt, "--target", "mat"),
    )
    same(cf.explain(edited, "logits[3,4]", "Play!C5"), "explain", edited, "logits[3,4]", "Play!C5")
    same(cf.diff(edited), "diff", edited)
    same(
        cf.patch("cat-sat", "the cat sat on", PROMPT, sites=[SITE]),
        *("patch", "cat-sat", "--against", "the cat sat on", *prompt, "--site", SITE),
    )


@pytest.mark.slow
def test_a_folder_and_a_model_give_the_same(tmp_path: Path, monkeypatch) -> None:
    """Also where a file has the name by which messages call a model of your own."""
    monkeypatch.chdir(tmp_path)
    folder = str(GOLDEN / "gpt2")
    model, ids = cf.load(folder), [3, 1, 4, 1, 5]
    cf.write(cf.build("cat-sat"), "model.xlsx")
    cell = "blocks.0.attn.h0.W_V[0,0]"
    for one, other in (
        (cf.run(folder, ids=ids), cf.run(model, ids=ids)),
        (cf.ablate(folder, ids=ids), cf.ablate(model, ids=ids)),
        (cf.sweep(folder, cell, ids=ids), cf.sweep(model, cell, ids=ids)),
        (list(cf.generate(folder, ids, 3)), list(cf.generate(model, ids, 3))),
    ):
        assert one == other and len(one) > 1
    words = cf.run(model, ids=ids)
    rival = words[1].word
    assert cf.edit(model, rival, ids=ids, output="said.xlsx").result["word"] == rival
    (row,) = cf.explain(cf.build(model, ids=ids), "probs[4,0]")
    assert row.value == pytest.approx(model.graph(ids).values["probs"][4, 0], abs=1e-14)


def test_edit_writes_a_workbook_that_says_the_word(tmp_path: Path) -> None:
    path = tmp_path / "edited.xlsx"
    rows = cf.edit("cat-sat", "floor", prompt=PROMPT, only=["W_U"], output=path)
    assert cf.run(path)[0].word == rows.result["word"] == "floor"
    assert {row.cell.partition("[")[0] for row in rows} == {"W_U"}
    assert {row.cell for row in cf.diff(path)} >= {row.cell for row in rows}


def test_verify_gives_a_verdict_of_each_program(edited: Path) -> None:
    pytest.importorskip("ironcalc", reason="pip install ironcalc")
    (row,) = cf.verify(edited, "ironcalc")
    assert (row.verdict, row.engine) == ("agrees", "ironcalc") and row.cells > 1000
    with pytest.raises(cf.InputError, match="from 1 to"):
        cf.verify(edited, seconds=0)


def test_a_table_is_a_list_of_rows(edited: Path) -> None:
    table = cf.ablate("cat-sat", PROMPT)
    assert json.loads(json.dumps(table)) == table
    of_study = cf.study("ablate", "cat-sat", [PROMPT])
    assert [row.change for row in table] == [row["change"] for row in of_study]
    assert table[0].part == table[0]["part"] == table.to_dict()["part"][0]
    with pytest.raises(AttributeError, match="nearest: probability"):
        getattr(table[0], "probabilty")  # noqa: B009
    assert "<th" in table._repr_html_() and repr(table).startswith("<Table of 2 rows: part, change")
    frame = pytest.importorskip("pandas") and table.to_pandas()
    assert list(frame.columns) == table.columns and len(frame) == len(table)


def test_generate_takes_a_name_and_a_text() -> None:
    model = cf.load("shakespeare")
    ids = model.vocabulary.encode("ROMEO: ")
    found = [step.token for step in cf.generate("shakespeare", "ROMEO: ", 5)]
    assert found == [step.token for step in cf.generate(model, ids, 5)]
    with pytest.raises(cf.InputError, match="nearest: shakespeare"):
        cf.generate("shakespear", "ROMEO: ", 5)


def test_graph_takes_a_text() -> None:
    model = cf.load("cat-sat")
    values = model.graph("the cat sat").values["probs"]
    assert np.array_equal(values, cf.graph("cat-sat", "the cat sat").values["probs"])
    with pytest.raises(cf.InputError, match="'bird' is not in the vocabulary"):
        model.graph("the bird sat")


def test_a_short_name_of_a_block_is_completed() -> None:
    with pytest.raises(cf.InputError, match=r"nearest: blocks\.0\.attn\.h0\.scores$"):
        cf.graph("cat-sat")["scores"]


def test_assigning_to_values_names_set() -> None:
    live = Evaluator(cf.graph("cat-sat", PROMPT))
    name = "blocks.0.attn.h0.W_V"
    with pytest.raises(cf.InputError, match=rf"use live\.set\('{name}', 2, 2, -1\)"):
        live[name][2, 2] = -1
    with pytest.raises(cf.InputError, match=r"live\.set\('W_E', row, column, value\)"):
        live["W_E"][1] = 0
    copied = live[name].copy()
    copied[2, 2] = -1
    assert copied[2, 2] == -1 != live[name][2, 2]
    assert type(live[name] * 2) is type(np.asarray(live[name])) is np.ndarray
    assert isinstance(live[name].sum(), float) and repr(live["probs"]).startswith("array(")
