"""Exercises: right answers and slips are told apart, in IronCalc and LibreOffice; grading."""

from pathlib import Path

import openpyxl
import pytest
from conftest import libreoffice_after, needs, saved
from exercised import InIronCalc, asked, at, formula, right_number, slip_number, tries

from cellformer import exercises
from engine.cells.errors import InputError
from engine.studies.exercises import FEWEST, judged
from exporters.assemble import exercise
from exporters.assemble.answer_key import A_TEXT, AN_ERROR, BLANK, KEY, Answer
from exporters.compose.book import Book, Entry, Filled
from exporters.file import xlsx

TWELVE = (
    *("zero-layer", "final-step", "sampling", "loss", "attention-by-columns", "kv-cache"),
    *("one-head", "positions", "gram-schmidt", "norms", "low-rank", "cat-sat"),
)
OFFICE = ("cat-sat", "loss")  # opened in LibreOffice, which is slow


@pytest.mark.slow
def test_right_answers_and_six_slips_are_told_apart_in_ironcalc(tmp_path: Path) -> None:
    needs("ironcalc")
    n = 0
    for name in TWELVE:
        found = asked(name)
        open_ = InIronCalc(found, tmp_path)
        for tried in tries(found):
            for said, expected in zip(open_.said(dict(tried.typed)), tried.said, strict=True):
                assert any(text in said for text in expected), (name, said, expected)
                n += 1
    assert n > 600


@pytest.mark.slow
def test_right_answers_and_six_slips_are_told_apart_in_libreoffice(
    libreoffice: None, tmp_path: Path
) -> None:
    for name in OFFICE:
        found = asked(name)
        path = found.write(tmp_path, name)
        attempts = [*tries(found)][1:]  # a formula is typed in LibreOffice's own spelling
        shown = libreoffice_after(path, [tried.typed for tried in attempts], tmp_path / "office")
        for tried, sheets in zip(attempts, shown, strict=True):
            for (sheet, row, col), expected in zip(found.said, tried.said, strict=True):
                said = str(sheets[sheet][row, col])
                assert any(text in said for text in expected), (name, said, expected)
        (tmp_path / "office").rename(tmp_path / f"office {name}")


def test_odd_answers_get_a_line_and_make_no_error(tmp_path: Path) -> None:
    needs("ironcalc")
    found = asked("zero-layer")
    open_ = InIronCalc(found, tmp_path)
    (one, two, three, four, *_) = (at(a) for a in found.answers)
    said = open_.said({one: "abc", two: "=1/0", three: 1e308, four: "TRUE"})
    assert said[:2] == [A_TEXT, AN_ERROR]
    assert said[2].startswith("not yet")
    assert said[3] == A_TEXT
    assert {*said[4:]} == {BLANK}
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


def test_the_nearest_number_decides() -> None:
    wrong = {"scale": 0.3172, "mask": 2.0}
    assert judged(0.3150, 0.3150, wrong).right
    assert judged(0.32, 0.3150, {}).rounded
    assert judged(0.3172, 0.3150, wrong).slips == ("scale",)
    assert judged(2.0, 0.3150, {**wrong, "axis": 2.0}).slips == ("mask", "axis")
    assert not judged(0.5, 0.3150, wrong).right


def test_a_class_of_40_files_is_graded(tmp_path: Path) -> None:
    needs("ironcalc")
    recipe = exercises.recipe("loss", 1)
    book, answers = recipe.asked()
    look, expected, grader = book.clean, [], exercises.Grader()
    spelt = formula(book)
    for k in range(40):
        right, said = k % (len(answers) + 1), []
        for n, a in enumerate(answers):
            typed: float | str = ""
            if n < right and k % 2:
                typed = right_number(a, look)
            elif n < right:
                typed = spelt(a)
            elif a.slips:
                typed = slip_number(a, k % len(a.slips), look)
                said.append(a.slips[k % len(a.slips)].kind)
            _put(book, a, typed)
        name = f"student-{k:02}"
        book.sheets[exercise.SHEET].put(*exercise.NAME, name, "token")
        book.refresh()
        grade = grader.grade(xlsx.write(book, tmp_path / f"{name}.xlsx"))
        expected.append((name, right, said))
        wrong = [cell.slips for cells in grade.exercises for cell in cells if not cell.right]
        assert (grade.reader, grade.score) == (name, right)
        assert len(said) == len(wrong) and all(wrong), (said, wrong)
    assert len(expected) == 40


def test_files_of_other_programs_are_graded(libreoffice: None, tmp_path: Path) -> None:
    book = exercises.recipe("zero-layer", 2).book(solved=True)
    own = xlsx.write(book, tmp_path / "own.xlsx")
    by_office = saved({"own": own}, tmp_path / "office")["own"]
    workbook = openpyxl.load_workbook(own)
    workbook[KEY].sheet_state = "visible"
    workbook.save(tmp_path / "openpyxl.xlsx")
    grader = exercises.Grader()
    for path in (own, by_office, tmp_path / "openpyxl.xlsx"):
        grade = grader.grade(path)
        assert grade.score == len(grade.exercises) == 6, (path, grade)


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
    assert said[1] == "right as built, but not for other inputs"
    assert said[2] == "right, by a formula"
    assert grade.score == 1


def test_a_changed_hidden_sheet_is_refused(tmp_path: Path) -> None:
    path = asked("loss").write(tmp_path, "loss")
    changes = {
        "its hidden sheet Key was changed at": ("B30", 1.0),
        "take a new file, or grade it with": ("A2", "0123456789abcdef"),
        "its sheet Key was changed": ("A2", None),
        "its exercises are of version 9": ("A2", 9),
    }
    for said, (where, change) in changes.items():
        workbook = openpyxl.load_workbook(path)
        cell = workbook[KEY][where]
        if where == "A2":
            facts = str(cell.value)
            digest = facts.rpartition('"digest": "')[2][:16]
            other = facts.replace(digest, str(change)) if isinstance(change, str) else "{}"
            cell.value = facts.replace('"version": 1', '"version": 9') if change == 9 else other
        else:
            cell.value = change
        workbook.save(tmp_path / "changed.xlsx")
        with pytest.raises(InputError, match=said):
            exercises.Grader().grade(tmp_path / "changed.xlsx")
    plain = xlsx.write(exercises.Recipe("loss").plain(), tmp_path / "plain.xlsx")
    with pytest.raises(InputError, match="it has no exercises"):
        exercises.Grader().grade(plain)


def _put(book: Book, a: Answer, typed: float | str) -> None:
    """Write an answer into a book, as if it had been typed."""
    sheet, row, col = at(a)
    by_formula = isinstance(typed, str) and typed != ""
    own = Filled(a.block, a.i, a.j, book.locate) if by_formula else None
    book.sheets[sheet].entries[row, col] = Entry(None if by_formula else typed, "blank", own)
