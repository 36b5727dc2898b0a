"""Grading: what a student's formula reads, what is refused, and files that crash or hang."""

import csv
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryDirectory

import pytest
from conftest import cli, needs, typed
from exercised import asked, at, formula
from openpyxl.formula.tokenizer import Token, Tokenizer

from cellformer import exercises, workbooks
from cellformer.engine.studies.answers import exact
from cellformer.engine.studies.exercises import FEWEST, FEWEST_ROWS, LEVELS, MOST_EXERCISES
from cellformer.exporters.assemble import exercise
from cellformer.exporters.assemble.answer_key import KEY
from cellformer.exporters.checking import child_processes
from cellformer.exporters.compose.address import address
from cellformer.exporters.edits.grading import BEFORE, Marked, Marking
from cellformer.exporters.edits.typed_formula import (
    READS_ANSWER,
    Names,
    RefusedError,
    TypedFormula,
)
from cellformer.exporters.file.reading import Cell

NAMES = Names(["Tensors", "It's", "Key"], {"K": "Tensors!$H$16:$K$18", "k.key": "Key!$A$9"})
FOLLOWED = {
    "$K$16+k$16": "Tensors!$K$16+Tensors!$K$16",
    "SUM($A$1:b2)": "SUM(Tensors!$A$1:$B$2)",
    "B2:A1": "Tensors!$A$1:$B$2",
    "'It''s'!$A1*2": "'It''s'!$A$1*2",
    'LEN("K")&"Key!A9"': 'LEN("K")&"Key!A9"',
    "K+tensors!K": "Tensors!$H$16:$K$18+Tensors!$H$16:$K$18",
    "_xlfn.UNICHAR(65)": "UNICHAR(65)",
    "_xlfn.LET(_xlpm.K,A1,_xlpm.K)": "LET(_xlpm.K,Tensors!$A$1,_xlpm.K)",
    "XFD1048576": "Tensors!$XFD$1048576",
    "SUM(A1:A199999)": "SUM(Tensors!$A$1:$A$199999)",
    "IF(true,1e-3,-2%)": "IF(true,1e-3,-2%)",
}
CHEATS = (
    *("Key!A9", "'Key'!$A$9", "key!a9/3*3", "SUM(KEY!A1:A9)", "LET(k,Key!A9,k)", "k.key"),
    *('INDIRECT("Key!A9")', "offset(A1,1,1)", "_xlfn.LET(_xlpm.x,Key!A9,_xlpm.x)"),
    'LET(f,LAMBDA(a,INDIRECT(a)),f("Key!A9"))',
)
NOT_FOLLOWED = (
    *("A1048577", "A0", "XFE1", "ABC1234567", "A:A", "$1:$3", "[1]Tensors!A1", "T[col]", "A1#"),
    *("Tensors:Key!A1", "@A1", "A1:INDEX(A1:B3,1)", "INDEX(A1:B3,1):B3", "Nowhere!A1", "nothing"),
    *("A1:XFD1048576", f"{'(' * 5000}1{')' * 5000}", f"{'(' * 99}1{')' * 99}", "a." * 3000),
)
ENDLESS, FATAL = "=FACT(1E300)", "=LET(f,LAMBDA(f,x,f(f,x)),f(f,1))"


@pytest.mark.parametrize("text", FOLLOWED)
def test_references_are_followed_in_every_spelling(text: str) -> None:
    assert TypedFormula(text, "Tensors", NAMES).text == FOLLOWED[text]


@pytest.mark.parametrize("text", CHEATS)
def test_a_formula_that_reads_the_answer(text: str) -> None:
    with pytest.raises(RefusedError, match=rf"^{READS_ANSWER}"):
        TypedFormula(text, "Tensors", NAMES)


@pytest.mark.parametrize("text", NOT_FOLLOWED)
def test_a_formula_that_cannot_be_followed(text: str) -> None:
    with pytest.raises(RefusedError, match=r"^cannot follow"):
        TypedFormula(text, "Tensors", NAMES)


def marked(marking: Marking, answers: Mapping[int, float | str]) -> Sequence[Marked]:
    """The marks of answers, by their numbers; the others are blank."""
    cells = [Cell(None)] * len(marking.answers)
    for k, answer in answers.items():
        by_formula = isinstance(answer, str) and answer.startswith("=")
        cells[k] = Cell(None, answer[1:]) if by_formula else Cell(answer)
    return marking.marks(cells)


def marking(name: str, level: int = 2) -> Marking:
    needs("ironcalc")
    return Marking(*asked(name, level), level)


@pytest.mark.slow
def test_the_answer_key_of_superposition_is_right() -> None:
    """Its blocks x, W and b have the names of columns."""
    found = marking("superposition")
    spelt = formula(found.book)
    marks = marked(found, {k: absolute(spelt(a)) for k, a in enumerate(found.answers)})
    assert {mark.said for mark in marks} == {"right, by a formula"}


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", workbooks.names())
def test_solved_workbooks_get_full_marks_and_constants_none(name: str, level: int) -> None:
    """Plain and with $ in every reference; and no right number stays the same with other inputs."""
    needs("ironcalc")
    found = Marking(*exercises.recipe(name, level).asked(), level)
    n = 1 + max(a.exercise for a in found.answers)
    assert FEWEST_ROWS <= n <= MOST_EXERCISES and (level == 3 or n >= FEWEST)
    spelt = formula(found.book)
    right = [spelt(a) for a in found.answers]
    for typed_in in (right, [absolute(text) for text in right]):
        marks = marked(found, dict(enumerate(typed_in)))
        assert {mark.said for mark in marks} == {"right, by a formula"}
    one, two = found.right
    assert [k for k in range(len(one)) if abs(one[k] - two[k]) <= exact(two[k])] == []
    for plain in (0.0, 0.5, 1.0, 2.0, -1.0):
        marks = marked(found, dict.fromkeys(range(len(one)), plain))
        failed = {
            a.exercise
            for mark, a in zip(marks, found.answers, strict=True)
            if not (mark.right or mark.said.startswith("the right number"))
        }
        assert failed == {*range(n)}, plain


def test_a_function_that_ironcalc_lacks_is_no_slip() -> None:
    marks = marked(marking("loss"), {0: "=FOO(1)", 1: "=1+", 2: "=1/0"})
    assert [mark.said.partition(":")[0] for mark in marks[:2]] == ["cannot follow this formula"] * 2
    assert marks[2].said == "an error: #DIV/0!"


def test_a_blank_yellow_cell_is_blank_and_a_filled_one_holds_what_was_typed() -> None:
    found = marking("one-head", 1)
    one, two = (f"={address(a.cell.grid.name, a.cell.rect)}" for a in found.answers[:2])
    right = [right for right in found.right[0] if right is not None]
    blank = marked(found, {1: f"{one}+{right[1]!r}"})
    assert [mark.said for mark in blank[:2]] == [
        "blank",
        "right with these inputs, but not with other inputs",
    ]
    assert marked(found, {1: one})[1].said == BEFORE
    copied = marked(found, {0: right[1], 1: one})
    assert (copied[0].right, copied[1].right) == (False, True)
    circle = marked(found, {0: two, 1: one})
    assert not circle[0].right and not circle[1].right


def absolute(text: str) -> str:
    """A formula with $ in every reference, as the key F4 makes it."""
    found = Tokenizer(text).items
    for token in found:
        if token.subtype == Token.RANGE:
            sheet, mark, cells = token.value.rpartition("!")
            token.value = sheet + mark + re.sub(r"\$?([A-Z]+)\$?(\d+)", r"$\1$\2", cells)
    return "=" + "".join(token.value for token in found)


def class_of(folder: Path, *formulas: str) -> list[Path]:
    """Files of a class: a good one, one for each of these formulas in the first yellow cell, and
    the good one again."""
    found = asked("loss", 2)
    spelt = formula(found.book)
    right = {at(a): spelt(a) for a in found.answers}
    blank = found.write(folder, "blank")
    good = typed(blank, folder / "good.xlsx", right)
    first = at(found.answers[0])
    files = [
        typed(blank, folder / f"bad-{k}.xlsx", right | {first: text})
        for k, text in enumerate(formulas)
    ]
    return [good, *files, good]


@pytest.mark.slow
def test_a_file_that_crashes_is_a_line_and_the_others_are_graded(tmp_path: Path) -> None:
    needs("ironcalc")
    files = class_of(tmp_path, FATAL, "=A1048577", f"={'(' * 5000}1{')' * 5000}", "=Key!A9")
    printed = cli("grade", "--csv", *files)
    rows = [*csv.reader(printed.out.splitlines())][1:]
    assert [row[2] for row in rows] == ["6 of 6", "", "5 of 6", "5 of 6", "5 of 6", "6 of 6"]
    assert "not marked: it crashed" in rows[1][-1]
    assert "1: cannot follow A1048577: no sheet has this cell" in rows[2][-1]
    assert "1: cannot follow" in rows[3][-1]
    assert f"1: {READS_ANSWER}: Key!A9" in rows[4][-1]
    assert (printed.code, printed.err.count("\n")) == (2, 1)
    assert f"{files[1]}: not marked: it crashed" in printed.err
    lines = cli("grade", *(file.name for file in files), cwd=tmp_path).out.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["good.xlsx", "6", "of"],
        ["bad-0.xlsx", "not", "marked:"],
    ]
    result = json.loads(cli("grade", "--json", *files[:2]).out)["result"]
    assert [file["score"] for file in result["files"]] == [6]
    assert [file["file"] for file in result["not_marked"]] == [str(files[1])]


@pytest.mark.slow
def test_a_file_that_hangs_is_a_line_and_marks_come_at_once(tmp_path: Path) -> None:
    needs("ironcalc")
    args = [sys.executable, "-m", "cellformer", "grade", "--csv", *class_of(tmp_path, ENDLESS)]
    with subprocess.Popen(args, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        heads, first = (process.stdout.readline() for _ in range(2))
        assert heads.startswith("file,name,score,1") and "6 of 6" in first
        assert process.poll() is None
        rest, err = process.communicate(timeout=120)
    fault = r": not marked: it (uses too much processor time|takes longer than \d+ s)$"
    assert re.search(fault, err.strip()) and process.returncode == 2
    assert [("6 of 6" in line, "not marked" in line) for line in rest.splitlines()] == [
        (False, True),
        (True, False),
    ]


@pytest.mark.slow
def test_a_process_that_shares_nothing_grades_alike(tmp_path: Path) -> None:
    """As on Windows and macOS."""
    needs("ironcalc")
    good, cheating, _ = class_of(tmp_path, "=Key!A9")
    with get_context("spawn").Pool(1) as pool:
        files = [(file.name, str(tmp_path)) for file in (good, cheating)]
        found = pool.starmap(exercises.alone, files)
    assert [grade.score for grade in found] == [6, 5]
    assert replace(found[0], file=str(good)) == exercises.Grader().grade(good)


@pytest.mark.slow
def test_memory_and_processor_time_are_limited() -> None:
    for job, said in ((hungry, "memory"), (busy, "processor time")):
        with TemporaryDirectory() as folder:
            found = child_processes.run({"it": job}, Path(folder), 60, lambda *_: None)["it"]
        assert said in found.fault


def hungry() -> int:
    child_processes.limit(60, 100_000_000)
    return len(bytes(1_000_000_000))


def busy() -> None:
    child_processes.limit(1, 1_000_000_000)
    while True:
        pass


def test_forged_facts_are_a_line(tmp_path: Path) -> None:
    path = asked("loss", 2).write(tmp_path, "forged")
    facts = {"version": 1, "name": "loss", "level": 2, "ids": [], "n_tokens": 0, "lang": "en"}
    spoilt = ('{"version": 1e400}', "[" * 30_000, '{"level": ' * 3000)
    others = ({"level": 1e400}, {"ids": [1e400]}, {"lang": "../it"}, {"name": "/dev/zero"})
    texts = [json.dumps(facts | {"digest": "x"} | other) for other in others]
    texts = [text.replace("Infinity", "1e400") for text in texts]
    files = [
        typed(
            path,
            tmp_path / f"{k}.xlsx",
            {(KEY, *exercise.FACTS): text.replace("Infinity", "1e400")},
        )
        for k, text in enumerate((*spoilt, *texts))
    ]
    printed = cli("grade", "--csv", *files)
    rows = [*csv.reader(printed.out.splitlines())][1:]
    assert len(rows) == len(files)
    assert all(row[-1].startswith("not marked: ") for row in rows)
    assert (printed.code, printed.err.count("\n")) == (2, 1)
