"""The command: what it prints, and one line with exit code 2 for what cannot be used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exporters import verify as verification
from workbooks import __main__ as command

WEIGHT = "blocks.0.attn.h0.W_Q"


def cellformer(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "workbooks", *args], capture_output=True, text=True, cwd=cwd
    )


def test_list_names_every_workbook() -> None:
    out = cellformer("list").stdout
    assert all(name in out for name in ("cat-sat", "fluffy-creature", "final-step"))


def test_build_writes_a_workbook_for_any_prompt(tmp_path: Path) -> None:
    done = cellformer("build", "cat-sat", "--prompt", "a dog ran on", "-o", "x.xlsx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = verification.verify(tmp_path / "x.xlsx", "formulas")
    assert report.agrees, report
    assert [p.name for p in tmp_path.iterdir()] == ["x.xlsx"]


def test_run_ranks_the_next_words_with_the_baseline_beside() -> None:
    out = cellformer("run", "cat-sat").stdout.split()
    assert out.index("mat") < out.index("floor") < out.index("on")
    changed = cellformer("run", "cat-sat", "--set", "W_E[3,2]=-0.6").stdout
    assert "baseline" in changed and "change" in changed


def test_run_prints_json_with_rows_of_tokens() -> None:
    args = ("run", "cat-sat", "--ids", "0,1,3", "--json", "--show", "blocks.0.attn.h0.scores")
    (scores,) = json.loads(cellformer(*args).stdout).values()
    assert np.shape(scores) == (3, 3) and scores[0][1] is None and scores[2][0] is not None
    everything = json.loads(cellformer("run", "final-step", "--json").stdout)
    assert np.shape(everything["W_U"]) == (3, 3) and np.shape(everything["tokens"]) == (1, 1)
    assert everything["logits"][0] == pytest.approx([1.42, 0.76, -0.58])


def test_trace_shows_formula_and_values_as_a_tree() -> None:
    out = cellformer("trace", "cat-sat", "logits[2,5]", "--depth", "1").stdout
    assert "resid_final[2,:]·W_U[:,5]" in out
    assert out.count("W_U[") == 6 and "blocks.0.resid_mid[2,0]" in out


def test_verify_prints_a_line_per_engine(built) -> None:
    done = cellformer("verify", str(built["fluffy-creature"]), "--engine", "ironcalc")
    assert done.returncode == 0
    assert "agrees" in done.stdout and "cells" in done.stdout


BAD = [
    (("build", "cat-sats"), "cat-sat"),
    (("run", "cat-sat", "--prompt", "the kat sat"), "cat"),
    (("run", "cat-sat", "--prompt", " "), "empty"),
    (("run", "cat-sat", "--ids", "0,20"), "0 to 19"),
    (("run", "cat-sat", "--ids", "0;1"), "0,1,3"),
    (("run", "cat-sat", "--ids", "0", "--prompt", "the"), "one"),
    (("build", "cat-sat", "--ids", "0,0,0,0,0,0,0,0,0"), "shorten"),
    (("run", "cat-sat", "--set", "blocks.0.attn.h0.WQ[0,0]=1"), WEIGHT),
    (("run", "cat-sat", "--set", f"{WEIGHT}[5,0]=1"), "0 to 4"),
    (("run", "cat-sat", "--set", f"{WEIGHT}[0,0]=nan"), "finite"),
    (("run", "cat-sat", "--set", f"{WEIGHT}[0,0]=inf"), "finite"),
    (("run", "cat-sat", "--set", f"{WEIGHT}[0,0]=many"), "number"),
    (("run", "cat-sat", "--set", f"{WEIGHT}[0,0]"), "value"),
    (("run", "cat-sat", "--set", "tokens[0,0]=20"), "0 to 19"),
    (("run", "cat-sat", "--show", "logit"), "logits"),
    (("trace", "cat-sat", "logits"), "logits[2,5]"),
    (("trace", "cat-sat", "blocks.0.attn.h0.scores[0,1]"), "blank"),
    (("build", "cat-sat", "-o", "nowhere/x.xlsx"), "nowhere"),
    (("build", "cat-sat", "-o", "x.xls"), ".xlsx"),
    (("verify", "nothing.xlsx"), "no file"),
    (("verify", "text.xlsx"), "workbook"),
    (("verify", "text.xlsx", "--engine", "excel"), "ironcalc"),
]


@pytest.mark.parametrize(("args", "remedy"), BAD)
def test_bad_input_gets_one_line_and_exit_code_2(args, remedy, tmp_path: Path) -> None:
    (tmp_path / "text.xlsx").write_text("not a workbook")
    done = cellformer(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("cellformer: ") and done.stderr.count("\n") == 1
    assert remedy in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["text.xlsx"]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch, capsys) -> None:
    def refuse(**kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    monkeypatch.setattr(sys, "argv", ["cellformer", "build", "cat-sat", "-o", f"{tmp_path}/x.xlsx"])
    with pytest.raises(SystemExit) as stopped:
        command.main()
    assert stopped.value.code == 2
    assert "Permission denied" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_build_that_fails_midway_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    target = tmp_path / "x.xlsx"
    target.write_text("old")
    monkeypatch.setattr("xlsxwriter.Workbook.close", lambda self: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["cellformer", "build", "cat-sat", "-o", str(target)])
    with pytest.raises(ZeroDivisionError):
        command.main()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_verify_exit_codes(built, monkeypatch, capsys, tmp_path: Path) -> None:
    """1 when an engine disagrees, 3 when one that was asked for is missing."""

    def exit_code(*args: str) -> object:
        monkeypatch.setattr(sys, "argv", ["cellformer", "verify", *args])
        with pytest.raises(SystemExit) as stopped:
            command.main()
        return stopped.value.code

    path = str(built["final-step"])
    missing = verification.Engine(lambda: False, lambda path, book: {}, "get it")
    monkeypatch.setitem(verification.ENGINES, "gnumeric", missing)
    monkeypatch.setitem(verification.ENGINES, "libreoffice", missing)
    assert exit_code(path, "--engine", "gnumeric") == 3
    assert exit_code(path, "--engine", "all") == 3
    assert exit_code(path) == 0
    empty = verification.Engine(lambda: True, lambda path, book: {}, "")
    monkeypatch.setitem(verification.ENGINES, "ironcalc", empty)
    assert exit_code(path, "--engine", "ironcalc") == 1
    assert "DISAGREES" in capsys.readouterr().out


def test_output_does_not_depend_on_the_width_of_a_pipe() -> None:
    os.environ["COLUMNS"] = "40"
    try:
        out = cellformer("run", "cat-sat", "--show", "W_U").stdout
    finally:
        del os.environ["COLUMNS"]
    assert "…" not in out
