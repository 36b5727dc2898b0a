"""Exercises: right answers and slips are told apart, in IronCalc and LibreOffice; grading."""

import csv
from pathlib import Path

import openpyxl
import pytest
from conftest import cli, needs, saved
from exercised import (
    TWELVE,
    InIronCalc,
    asked,
    at,
    formula,
    named,
    right_number,
    said_in_libreoffice,
    slip_number,
    told_wrongly,
    tries,
)
from libreoffice import through_ods

from cellformer import exercises
from cellformer.engine.cells.errors import InputError
from cellformer.engine.studies.answers import DATE
from cellformer.engine.studies.exercises import FEWEST
from cellformer.exporters.assemble import exercise
from cellformer.exporters.assemble.answer_key import (
    A_TEXT,
    AN_ERROR,
    BLANK,
    KEY,
    MISTAKES,
    NOT_YET,
    Answer,
)
from cellformer.exporters.compose.book import Book, Entry, Filled
from cellformer.exporters.file import xlsx
from cellformer.exporters.pages import attention


@pytest.mark.slow
@pytest.mark.parametrize("name", TWELVE)
def test_right_answers_and_six_slips_are_told_apart_in_ironcalc(name: str, tmp_path: Path) -> None:
    needs("ironcalc")
    tried = [*tries(asked(name))]
    open_ = InIronCalc(asked(name), tmp_path)
    said = [open_.said(one.typed) for one in tried]
    assert len(tried) >= 6 and told_wrongly(tried, said) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", TWELVE)
def test_right_answers_and_six_slips_are_told_apart_in_libreoffice(
    libreoffice: None, name: str, tmp_path: Path
) -> None:
    tried = [*tries(asked(name))]
    said = said_in_libreoffice(asked(name), tried, tmp_path)
    assert len(tried) >= 6 and told_wrongly(tried, said) == []


def test_odd_answers_get_a_line_and_make_no_error(tmp_path: Path) -> None:
    needs("ironcalc")
    found = asked("zero-layer")
    open_ = InIronCalc(found, tmp_path)
    (one, two, three, four, *_) = (at(a) for a in found.answers)
    (five,) = (at(a) for a in found.answers[4:5])
    said = open_.said({one: "abc", two: "=1/0", three: 1e308, four: "TRUE", five: 46059.0})
    assert said[:2] == [A_TEXT, AN_ERROR]
    assert said[2].startswith("not yet")
    assert said[3] == A_TEXT
    assert said[4] == NOT_YET.format(slips=MISTAKES[DATE])
    assert {*said[5:]} == {BLANK}
    assert open_.errors() == []


def test_cells_follow_the_right_number(tmp_path: Path) -> None:
    needs("ironcalc")
    found = asked("attention-by-columns")
    open_ = InIronCalc(found, tmp_path)
    book = found.book
    open_.said({at(a): 99.0 for a in found.answers})
    blank = {at(a) for a in found.answers}
    for place in book.places.values():
        for i, j in place.block.whole.cells():
            cell = (place.sheet, *place.cell(i, j))
            if place.block.computed and cell not in blank and place.block.has(i, j):
                value = book.clean.values[place.block.name][i, j]
                if isinstance(value, float):
                    assert open_.value(*cell) == pytest.approx(value, rel=1e-9, abs=1e-12), cell


@pytest.mark.parametrize("name", ["napkin", "ocr-filter", "fact-lookup", "one-step"])
def test_five_exercises_or_more(name: str) -> None:
    assert 1 + asked(name).answers[-1].exercise >= FEWEST


@pytest.mark.slow
def test_a_class_of_40_files_is_graded_and_each_slip_named(tmp_path: Path) -> None:
    needs("ironcalc")
    book, answers = exercises.recipe("loss", 1).asked()
    look, spelt = book.clean, formula(book)
    table = []
    for k in range(40):
        n_right, said = k % (len(answers) + 1), list[str]()
        for n, a in enumerate(answers):
            if n < n_right:
                _put(book, a, right_number(a, look) if k % 2 else spelt(a))
            else:
                slip = (k + n) % len(a.slips)
                _put(book, a, slip_number(a, slip, look))
                said.append(f"{n + 1}: {named(a, slip, look).removeprefix('not yet: ')}")
        name = f"student-{k:02}"
        book.sheets[exercise.SHEET].put(*exercise.NAME, name, "token")
        book.refresh()
        path = xlsx.write(book, tmp_path / f"{name}.xlsx")
        marks = ["✓"] * n_right + ["–"] * (len(answers) - n_right)
        table.append([str(path), name, f"{n_right} of 6", *marks, "", "", "; ".join(said)])
    printed = cli("grade", "--csv", *(row[0] for row in table))
    assert printed.code == 0
    assert [*csv.reader(printed.out.splitlines())][1:] == table


def test_files_of_other_programs_get_the_same_marks(libreoffice: None, tmp_path: Path) -> None:
    book, answers = exercises.recipe("zero-layer").asked()
    look, (one, two, three, four, five, _) = book.clean, answers
    wrong_formula = "=" + book.text(four.slips[0].formula, four.cell.grid.name)
    own = xlsx.write(book, tmp_path / "own.xlsx")
    typed = {
        at(one): right_number(one, look),
        at(two): formula(book)(two),
        at(three): slip_number(three, 0, look),
        at(four): wrong_formula,
        at(five): "two thirds",
    }
    workbook = openpyxl.load_workbook(own)
    workbook[exercise.SHEET].cell(*(1 + k for k in exercise.NAME), "Zoë")
    for (sheet, row, col), text in typed.items():
        workbook[sheet].cell(row + 1, col + 1, text)
    workbook[KEY].sheet_state = "visible"
    workbook.save(tmp_path / "filled.xlsx")
    files = {"own": own, "filled": tmp_path / "filled.xlsx"}
    files["office"] = saved({"it": files["filled"]}, tmp_path / "office")["it"]
    files["ods"] = through_ods(files["filled"], tmp_path / "ods.xlsx")
    grader = exercises.Grader()
    blank, filled, *others = (grader.grade(path) for path in files.values())
    assert (blank.score, filled.score, filled.reader) == (0, 2, "Zoë")
    said = [cell.said for cells in filled.exercises for cell in cells]
    slips = [named(a, 0, look).removeprefix("not yet: ") for a in (three, four)]
    assert said == ["right", "right, by a formula", *slips, "a text: two thirds", "blank"]
    for other in others:
        assert (other.reader, other.exercises) == (filled.reader, filled.exercises)


def test_diff_lists_what_was_filled_in(tmp_path: Path) -> None:
    book, (one, two, *_) = exercises.recipe("loss").asked()
    path = xlsx.write(book, tmp_path / "loss.xlsx")
    assert "0 of 6 yellow cells of the exercises are filled in" in cli("diff", path).out
    _put(book, one, 0.123)
    _put(book, two, formula(book)(two))
    book.refresh()
    printed = cli("diff", xlsx.write(book, path)).out
    assert "code_P[2,0]  Entropy!F11  0.123" in printed
    assert "=IFERROR(-LN(MAX(E12" in printed
    assert "2 of 6 yellow cells of the exercises are filled in" in printed
    refused = cli("import", path, "-o", tmp_path / "folder")
    assert (refused.code, "grade it with ‘cellformer grade FILE’" in refused.err) == (2, True)


def test_no_visible_sheet_shows_a_blank_number_of_the_step() -> None:
    """Attention computes the same queries, keys and scores: it is hidden, and nothing names it."""
    book = exercises.recipe("cat-sat").book()
    assert book.sheets[attention.SHEET].secret
    for sheet in book.sheets.values():
        assert not [t for t in sheet.links.values() if t.startswith(attention.SHEET)], sheet.name
    texts = [str(e.value) for e in book.sheets["Start"].entries.values()]
    assert not [text for text in texts if text.startswith((f"{attention.SHEET}:", "one attention"))]


def test_a_file_in_italian_is_graded(tmp_path: Path) -> None:
    needs("ironcalc")
    recipe = exercises.Recipe("loss", lang="it")
    path = xlsx.write(recipe.book(solved=True), tmp_path / "it.xlsx")
    assert exercises.Grader().grade(path).score == 6


def test_a_number_is_no_formula_at_level_2(tmp_path: Path) -> None:
    needs("ironcalc")
    found = asked("loss", 2)
    path, answers = found.write(tmp_path, "loss"), found.answers
    workbook = openpyxl.load_workbook(path)
    number, copied = (right_number(answers[k], found.book.clean) for k in (0, 1))
    three = (number, f"={copied!r}", formula(found.book)(answers[2]))
    for a, typed in zip(answers, three, strict=False):
        sheet, row, col = at(a)
        workbook[sheet].cell(row + 1, col + 1, typed)
    workbook.save(path)
    grade = exercises.Grader().grade(path)
    said = [cells[0].said for cells in grade.exercises[:3]]
    assert said[0] == "the right number, but no formula"
    assert said[1] == "right with these inputs, but not with other inputs"
    assert said[2] == "right, by a formula"
    assert grade.score == 1


@pytest.mark.slow
def test_a_changed_hidden_sheet_is_refused(tmp_path: Path) -> None:
    path = asked("loss").write(tmp_path, "loss")
    changes = {
        "the hidden sheet Key was changed at": ("B30", 1.0),
        "do not match this version of cellformer; use a new file": ("A2", "0123456789abcdef"),
        "someone changed the sheet Key of the file": ("A2", None),
        "the file's exercises have version 9": ("A2", 9),
    }
    for said, (where, change) in changes.items():
        workbook = openpyxl.load_workbook(path)
        cell = workbook[KEY][where]
        if where == "A2":
            facts = str(cell.value)
            digest = facts.rpartition('"digest": "')[2][:16]
            other = facts.replace(digest, str(change)) if isinstance(change, str) else "{}"
            cell.value = facts.replace('"version": 2', '"version": 9') if change == 9 else other
        else:
            cell.value = change
        workbook.save(tmp_path / "changed.xlsx")
        with pytest.raises(InputError, match=said):
            exercises.Grader().grade(tmp_path / "changed.xlsx")
    plain = xlsx.write(exercises.Recipe("loss").plain(), tmp_path / "plain.xlsx")
    with pytest.raises(InputError, match="the file has no exercises"):
        exercises.Grader().grade(plain)


@pytest.mark.slow
def test_a_file_with_inserted_rows_is_refused(tmp_path: Path) -> None:
    """By openpyxl, which leaves formulas as they were."""
    path = asked("loss").write(tmp_path, "loss")
    for change in ("insert_rows", "insert_cols", "delete_rows"):
        workbook = openpyxl.load_workbook(path)
        getattr(workbook["Entropy"], change)(5)
        workbook.save(tmp_path / "moved.xlsx")
        with pytest.raises(InputError, match="cells of the sheet Entropy have moved, from row"):
            exercises.Grader().grade(tmp_path / "moved.xlsx")


def _put(book: Book, a: Answer, typed: float | str) -> None:
    """Write an answer into a book, as if it had been typed."""
    sheet, row, col = at(a)
    by_formula = isinstance(typed, str) and typed != ""
    own = Filled(a.block, a.i, a.j, book.locate) if by_formula else None
    book.sheets[sheet].entries[row, col] = Entry(None if by_formula else typed, "blank", own)
