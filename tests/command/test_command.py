"""The command: what it prints, and one line with exit code 2 for what cannot be used."""

import itertools
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from conftest import cli, told
from on_play import PROMPT_ROW

import cellformer as package
from cellformer.exporters.checking import verify as verification
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.model.block_sheets import PROMPT_COL

WEIGHT = "blocks.0.attn.h0.W_Q"


def cellformer(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
    """The command as it is typed, in a process of its own; `cli` runs it in this one."""
    return subprocess.run(
        [sys.executable, "-m", "cellformer", *args], capture_output=True, text=True, cwd=cwd
    )


def test_list_names_every_workbook() -> None:
    out = cli("list").out
    assert all(name in out for name in ("cat-sat", "fluffy-creature", "final-step"))


@pytest.mark.slow
def test_build_writes_a_workbook_for_any_prompt(tmp_path: Path) -> None:
    done = cellformer("build", "cat-sat", "--prompt", "a dog ran on", "-o", "x.xlsx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = verification.verify(tmp_path / "x.xlsx", "ironcalc")
    assert report.agrees, report
    assert [p.name for p in tmp_path.iterdir()] == ["x.xlsx"]


def test_build_with_fewer_words_than_suggestions_name(tmp_path: Path) -> None:
    done = cli("build", "cat-sat", "--prompt", "the", "--tokens", 1, "-o", tmp_path / "x.xlsx")
    assert done.code == 0, done.err


def test_error_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = cellformer("build", "cat-sats", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("cellformer: ") and done.stderr.count("\n") == 1


def test_run_ranks_words_beside_the_baseline() -> None:
    out = cli("run", "cat-sat").out.split()
    assert out.index("mat") < out.index("floor") < out.index("on")
    changed = cli("run", "cat-sat", "--set", "W_E[3,2]=-0.6").out
    assert "baseline" in changed and "change" in changed


def test_run_prints_json_with_rows_of_tokens() -> None:
    args = ("run", "cat-sat", "--ids", "0,1,3", "--show", "*.h0.scores")
    (scores,) = told(*args)["blocks"].values()
    assert np.shape(scores) == (3, 3) and scores[0][1] is None and scores[2][0] is not None
    everything = told("run", "final-step", "--show", "*")["blocks"]
    assert np.shape(everything["W_U"]) == (3, 3) and np.shape(everything["tokens"]) == (1, 1)
    assert everything["logits"][0] == pytest.approx([1.42, 0.76, -0.58])


def test_trace_shows_formula_and_values_as_a_tree() -> None:
    out = cli("trace", "cat-sat", "logits[2,5]", "--depth", "1").out
    assert "resid_final[2,:]·W_U[:,5]" in out
    assert out.count("W_U[") == 6 and "blocks.0.resid_mid[2,0]" in out


def test_trace_shows_how_a_word_was_chosen() -> None:
    """From the token back to the logits of the token before it."""
    game = ("trace", "dialogue-game", "--tokens", "10")
    out = cli(*game, "tokens[9,0]", "--depth", "1").out
    assert "tokens[9,0] = 3   if(9 < n_prompt, prompt.id[9,0], choice.chosen[8,0])" in out
    out = cli(*game, "choice.chosen[8,0]", "--depth", "4").out
    assert "choice.order[8,0] = 3" in out and "logits[8,0]" in out
    sampled = cli(*game, "choice.chosen[8,0]", "--set", "choose[0,0]=sampled").out
    step = 'if(and(choose = "sampled", n(temperature) > 0), drawn[8,0], greedy[8,0])'
    assert step in sampled and "rank[8,0]" in sampled


@pytest.mark.slow
def test_verify_prints_a_line_per_engine(built) -> None:
    done = cli("verify", str(built["fluffy-creature"]), "--engine", "ironcalc")
    assert done.code == 0
    assert "agrees" in done.out and "cells" in done.out


DIGITS = "9" * 5000  # more than Python makes a number of
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
    (
        ("build", "dialogue-game", "--tokens", "2"),
        "the prompt alone has 4 tokens, more than the total of",
    ),
    (("build", "dialogue-game", "--tokens", "40"), "reads at most 32"),
    (
        ("trace", "dialogue-game", "tokens[0,0]", "--tokens", "2"),
        "the prompt alone has 4 tokens, more than the total of",
    ),
    (("run", "dialogue-game", "--tokens", "40"), "reads at most 32"),
    (("build", "dialogue-game", "--temperature", "-1"), "greedy"),
    (("run", "cat-sat", "--ablate", "blocks.0.attn.h1"), "blocks.0.attn.h0"),
    (("run", "cat-sat", "--target", "dogs"), "dog"),
    (("run", "cat-sat", "--target", "the cat"), "2 tokens"),
    (("ablate", "final-step"), "nothing to ablate"),
    (("sweep", "cat-sat", "W_U[0,0]", "-o", "c.jpg"), ".csv or .png"),
    (("sweep", "cat-sat", "tokens[0,0]", "--to", "0.5"), "is not an id of W_E"),
    (("train", "cat-sat", "-o", "m"), "choose one of adder, dialogue-game"),
    (("train", "learn", "-o", "m"), "cellformer build learn"),
    (("train", "dialogue-game", "-o", "text.xlsx"), "is a file"),
    (("diff", "nothing.xlsx"), "no file"),
    (("diff", "text.xlsx"), "workbook"),
    (("import", "text.xlsx", "-o", "m"), "workbook"),
    (("verify", "nothing.xlsx"), "no file"),
    (("verify", "text"), "text.xlsx is not an .xlsx workbook"),
    (("diff", "text"), "text.xlsx is not an .xlsx workbook"),
    (("generate", "shakespeare", "-n", "60"), "reads at most 64; ask for 58"),
    (("generate", "cat-sat", "--ids", "0,0,0,0,0,0,0,0", "-n", "1"), "give a shorter prompt"),
    (("run", "cat-sat", "--ids", DIGITS), "is not a list of token ids"),
    (("run", "cat-sat", "--set", f"W_E[{DIGITS},0]=1"), "does not name a cell"),
    (("run", "cat-sat", "--set", "temperature=2"), "write a cell such as temperature[0,0]"),
    (("run", "cat-sat", "--set", f"W_E[0,0]={DIGITS}"), "not a finite number"),
    (("trace", "cat-sat", f"W_E[0,{DIGITS}]"), "does not name a cell"),
    (
        ("train", "--text", "text.xlsx", "-o", "m", "--vocab", DIGITS),
        "give `characters` or a number of tokens",
    ),
    (("verify", "text.xlsx"), "workbook"),
    (("verify", "text.xlsx", "--engine", "excel"), "ironcalc"),
]


@pytest.mark.parametrize(("args", "remedy"), BAD)
def test_bad_input_is_one_line(args, remedy, tmp_path: Path) -> None:
    (tmp_path / "text.xlsx").write_text("not a workbook")
    done = cli(*args, cwd=tmp_path)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("cellformer: ") and done.err.count("\n") == 1
    assert remedy in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["text.xlsx"]


def test_unwritable_folder(tmp_path: Path, monkeypatch) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)
    done = cli("build", "cat-sat", "-o", tmp_path / "x.xlsx")
    assert done.code == 2
    assert "Permission denied" in done.err
    assert list(tmp_path.iterdir()) == []


def test_failed_build_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    target = tmp_path / "x.xlsx"
    target.write_text("old")
    monkeypatch.setattr("xlsxwriter.Workbook.close", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli("build", "cat-sat", "-o", target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_ods_file_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "book.ods", "w") as book:
        book.writestr("content.xml", "<office/>")
    for args in (("diff", "book.ods"), ("verify", "book.ods"), ("import", "book.ods", "-o", "m")):
        done = cli(*args, cwd=tmp_path)
        assert done.code == 2 and done.err.count("\n") == 1
        assert "save it as .xlsx in the program that wrote it" in done.err


def test_version() -> None:
    assert cli("--version") == (0, f"cellformer {package.__version__}\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [("cellformer bu", "build"), ("cellformer build sha", "shakespeare"),
     ("cellformer run dialogue-game --ta", "--target"), ("cellformer trace cat-sat log", "logits"),
     ("cellformer run cat-sat --show blocks.0.attn.h0.sc", "blocks.0.attn.h0.scores"),
     ("cellformer run cat-sat --target ma", "mat")],
)  # fmt: skip
def test_shell_completion(words: str, found: str) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    asked["_CELLFORMER_COMPLETE"] = "complete_bash"
    begin = "import sys; sys.argv[0] = 'cellformer'; from cellformer.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", begin], env=os.environ | asked, capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == ([found], "")


def test_help_fits_80_columns() -> None:
    """A line of a paragraph ends where the next word has no room, and nowhere else."""
    window = {"COLUMNS": "80", "TERMINAL_WIDTH": "80"}
    command = [sys.executable, "-m", "cellformer", "edit", "--help"]
    done = subprocess.run(command, env=os.environ | window, capture_output=True, text=True)
    told = done.stdout.partition("╭")[0].partition("The change has")
    lines = [line.strip() for line in (told[1] + told[2]).splitlines() if line.strip()]
    assert len(lines) > 4
    for line, after in itertools.pairwise(lines):
        assert len(line) + 1 + len(after.split()[0]) > 78


@pytest.mark.slow
def test_verify_exit_codes(built, monkeypatch) -> None:
    """1 when an engine disagrees, 3 when one that was asked for is missing; IronCalc is asked, and
    the slower ones, which test_workbooks asks, are held to agree."""
    path = built["final-step"]
    missing = verification.Engine(lambda: False, lambda path, book: {}, "get it")
    right = verification.Engine(lambda: True, lambda path, book: book.formulas, "")
    for name in ("formualizer", "formulas"):
        monkeypatch.setitem(verification.ENGINES, name, right)
    monkeypatch.setitem(verification.ENGINES, "gnumeric", missing)
    monkeypatch.setitem(verification.ENGINES, "libreoffice", missing)
    assert cli("verify", path, "--engine", "gnumeric").code == 3
    assert cli("verify", path, "--engine", "all").code == 3
    assert cli("verify", path).code == 0
    empty = verification.Engine(lambda: True, lambda path, book: {}, "")
    monkeypatch.setitem(verification.ENGINES, "ironcalc", empty)
    done = cli("verify", path, "--engine", "ironcalc")
    assert done.code == 1
    assert "DISAGREES" in done.out


def test_piped_output_has_no_width() -> None:
    os.environ["COLUMNS"] = "40"
    try:
        out = cellformer("run", "cat-sat", "--show", "W_U").stdout
    finally:
        del os.environ["COLUMNS"]
    assert "…" not in out


def test_head_switched_off_beside_the_baseline() -> None:
    out = cli("run", "dialogue-game", "--ablate", "blocks.1.attn.h2").out
    first = next(line.split() for line in out.splitlines() if line.startswith("  1"))
    assert first[1] == "vice" and "baseline" in out
    off_alone = ("--ablate", "blocks.1.attn.h2", "--mean", "--show", "blocks.1.attn.h2.off")
    (off,) = told("run", "dialogue-game", *off_alone)["blocks"].values()
    assert np.abs(off).max() > 0


def test_lens_and_attribution_follow_a_target() -> None:
    out = cli("run", "dialogue-game", "--target", "Tarso", "--lens").out
    lines = (re.split(r"\s{2,}", line.strip()) for line in out.splitlines())
    rows = {cells[0]: cells for cells in lines}
    assert rows["attention 1"][1] == "Tarso" and rows["embedding"][1] == "Paolo"
    assert float(rows["sum"][1]) == pytest.approx(float(rows["1"][2]), abs=1e-3)


def test_ablate_lists_every_part() -> None:
    out = cli("ablate", "dialogue-game", "--target", "Tarso").out
    assert len(out.splitlines()) == 2 + 2 * (4 + 2) + 2  # heads, parts, and a sentence
    (row,) = (line.split() for line in out.splitlines() if "head 1.2" in line)
    assert float(row[2]) < -10 and row[-1] == "vice"


def test_sweep_is_a_curve_of_one_cell(tmp_path: Path) -> None:
    cell = "blocks.0.attn.h0.W_V[2,2]"
    args = ("sweep", "cat-sat", cell, "--from", "-1", "--to", "1", "--steps", "5")
    done = cli(*args, "--target", "mat", "-o", "c.csv", cwd=tmp_path)
    assert done.code == 0, done.err
    rows = [line.split(",") for line in (tmp_path / "c.csv").read_text().splitlines()[1:]]
    values = [float(row[-4]) for row in rows]
    assert values == [-1, -0.5, 0, 0.5, 1]
    run = told("run", "cat-sat", "--set", f"{cell}=-1", "--show", "probs")["blocks"]
    mat = told("run", "cat-sat", "--show", "probs")["blocks"]
    assert float(rows[0][-2]) == pytest.approx(run["probs"][-1][6])
    assert float(rows[-1][-2]) == pytest.approx(mat["probs"][-1][6])
    for name in ("c.png", "d.png"):
        assert cli(*args, "-o", name, cwd=tmp_path).code == 0
    assert (tmp_path / "c.png").read_bytes() == (tmp_path / "d.png").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "mat" in cli(*args, cwd=tmp_path).out


@pytest.mark.slow
def test_build_samples_by_its_seed(tmp_path: Path) -> None:
    how = ("--prompt", "<BOS> 3", "--temperature", "0.9", "--seed", "4")
    done = cli("build", "dialogue-game", *how, "--tokens", "6", "-o", "d.xlsx", cwd=tmp_path)
    assert done.code == 0, done.err
    play = WorkbookFile(tmp_path / "d.xlsx")["Play"]
    words = [play[PROMPT_ROW, PROMPT_COL + k] for k in range(6)]
    text, _, *rows = cli("generate", "dialogue-game", *how, "-n", "4", "--table").out.splitlines()
    assert words == text.split() == ["<BOS>", "3", *(row.split()[1] for row in rows)]
