"""The command on workbooks without a transformer: run, trace, sweep, diff."""

import csv
import re
import zipfile
from pathlib import Path

import pytest
from conftest import cli, default_book

from cellformer import workbooks
from cellformer.exporters.file.reading import WorkbookFile

pytestmark = pytest.mark.slow

WORKSHEETS = [name for name in workbooks.names() if hasattr(workbooks.find(name), "book")]


@pytest.mark.parametrize("name", WORKSHEETS)
def test_run_and_trace_of_worksheets(name: str) -> None:
    listed = cli("run", name)
    assert listed.code == 0
    watch = default_book(name).suggestions[0].watch
    assert re.search(rf"^ {watch[0]} .*computed", listed.out, re.MULTILINE)
    cell = "{}[{},{}]".format(*watch)
    traced = cli("trace", name, cell, "--depth", "1")
    assert traced.code == 0
    assert traced.out.startswith(f"{cell} = ")


def test_set_shows_every_changed_cell() -> None:
    done = cli("run", "attention-by-columns", "--set", "scores[2,1]=4")
    assert re.search(r"by_columns\[1,2\] +0\.65224 +0\.932698", done.out)
    assert "by_rows[1,1]" not in done.out  # the row of another query


def test_set_a_text() -> None:
    done = cli("run", "zero-layer", "--set", "corpus[0,2]=ran")
    assert re.search(r"corpus\[0,2\] +sat +ran", done.out)


def test_sweep_follows_a_cell(tmp_path: Path) -> None:
    curve = tmp_path / "c.csv"
    watched = ("--target", "loss[0,0]", "--steps", 3, "-o", curve)
    done = cli("sweep", "zero-layer", "added[0,0]", "--from", 0, "--to", 2, *watched)
    assert done.code == 0, done.err
    rows = list(csv.DictReader(curve.read_text().splitlines()))
    assert {(row["cell"], row["watched"]) for row in rows} == {("added[0,0]", "loss[0,0]")}
    losses = [float(row["shows"]) for row in rows]
    assert losses == sorted(losses) and len(losses) == 3  # what is added blurs the table
    assert cli("sweep", "loss", "weights[0,0]", "--steps", 3).code == 0


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("run", "zero-layer", "--set", "corpus[0,0]"), "has no value"),
        (("run", "zero-layer", "--set", "added[0,0]=x"), "is not a number"),
        (("trace", "zero-layer", "probs[9,9]"), "has no cell"),
        (("trace", "zero-layer", "prob[0,0]"), "nearest: p"),
        (
            ("trace", "zero-layer", "probs[0,0]", "--prompt", "a"),
            "zero-layer has no model, so --prompt does not work",
        ),
        (
            ("trace", "zero-layer", "probs[0,0]", "--no-special"),
            "zero-layer has no model, so --no-special does not work",
        ),
        (("run", "loss", "--prompt", "x"), "loss has no model, so --prompt does not work"),
        (("run", "loss", "--lens"), "loss has no model, so --lens does not work"),
        (
            ("run", "loss", "--ablate", "blocks.0.mlp"),
            "loss has no model, so --ablate does not work",
        ),
        (
            ("sweep", "loss", "weights[0,0]", "--ids", "0"),
            "loss has no model, so --ids does not work",
        ),
        (("sweep", "loss", "weights[0,0]", "--from", "1"), "--from and --to are both 1"),
        (("sweep", "zero-layer", "added[0,0]", "--target", "pairs[0,0]"), "shows a text"),
        (("generate", "zero-layer"), "has no model"),
    ],
)
def test_bad_arguments_are_one_line(arguments: tuple[str, ...], fault: str) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert fault in done.err and len(done.err.splitlines()) == 1


def test_diff_of_worksheets(built, tmp_path: Path) -> None:
    path, part = built["attention-by-columns"], built.file("attention-by-columns").parts["Pattern"]
    edited = tmp_path / "edited.xlsx"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(edited, "w") as copy:
        for name in source.namelist():
            data = source.read(name)
            if name == part:
                data, n = re.subn(rb'(<c r="C12"[^>]*>)<v>2.0</v>', rb"\1<v>4</v>", data)
                assert n == 1
            copy.writestr(name, data)
    assert WorkbookFile(edited)["Pattern"][11, 2] == 4
    done = cli("diff", edited)
    assert done.code == 0, done.err
    assert re.search(r"scores\[2,1\] +Pattern!C12 +2 +4", done.out)
    assert re.search(r"by_columns\[1,2\] +0\.65224 +0\.932698", done.out)
    refused = cli("import", edited, "-o", tmp_path / "folder")
    assert refused.code == 2 and "not make this workbook" in refused.err
