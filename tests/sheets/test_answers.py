"""What an answer is worth: the digits typed decide, in Python and in other programs alike."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path

import openpyxl
import pytest
from conftest import needs
from exercised import (
    Asked,
    InIronCalc,
    asked,
    at,
    random_tries,
    rights,
    said_in_libreoffice,
    told_wrongly,
    wrongs,
)

from cellformer import exercises, workbooks
from cellformer.engine.studies import answers
from cellformer.engine.studies.answers import judged
from cellformer.exporters.assemble import exercise
from cellformer.exporters.assemble.answer_key import FEW, KEY, MISTAKES, RIGHT, ROUNDED
from cellformer.exporters.checking.verify import read, verify
from cellformer.exporters.compose.book import Entry
from cellformer.exporters.file import xlsx

DIGITS = range(2, 7)
N_WRONG = 1000  # for each workbook
LEVELS = (1, 3)  # level 2 asks for the cells of level 1
AS_GOOD_AS_0 = 1e-8  # rounding of binary numbers may leave so much of 0


@pytest.mark.parametrize(
    ("typed", "right"),
    [
        *((0.05, 0.0496), (0.047, 0.04736), (0.0474, 0.04736), (59.6, 59.5609), (120, 118.7)),
        *(
            (23.2, 23.25),
            (23.3, 23.25),
            (0.5, 0.5),
            (3, 3.0),
            (0.1, 0.0996),
            (10, 9.96),
            (-2.4, -2.41),
        ),
    ],
)
def test_a_right_rounding_is_right(typed: float, right: float) -> None:
    assert judged(typed, right, {"axis": typed}).right


@pytest.mark.parametrize(
    ("typed", "right"),
    [(0.0786, 0.0819), (0.00965, 0.01005), (118, 118.7), (23.4, 23.25), (0.0473, 0.04736)],
)
def test_a_number_that_is_no_rounding_is_wrong(typed: float, right: float) -> None:
    assert not judged(typed, right, {}).right


def test_one_digit_is_right_but_too_few_and_never_a_slip() -> None:
    for typed, right in ((0.05, 0.0473621), (100, 118.7), (0.1, 0.0953), (0.3, 0.25)):
        found = judged(typed, right, {"axis": typed})
        assert (found.mark, found.right, found.slips) == (answers.FEW, False, ())


def test_counts_are_exact() -> None:
    assert judged(168912, 168912, {}, whole=True).right
    assert not judged(168830, 168912, {}, whole=True).right
    assert not judged(170000, 168912, {}, whole=True).right
    assert judged(170000, 168912, {}).right
    assert judged(0.24, 0.2368, {}, whole=True).right  # after an edit it is no count


def test_a_slip_matches_at_the_digits_typed_and_the_nearest_is_named() -> None:
    wrong = {"scale": 0.3172, "mask": 2.0}
    assert judged(0.3172, 0.3150, wrong).slips == ("scale",)
    assert judged(2.0, 0.3150, {**wrong, "axis": 2.0, "row": 2.0}).slips == ("mask", "axis")
    assert judged(0.33, 0.3150, wrong).mark == answers.WRONG  # which is near no slip
    assert judged(0.317, 0.3150, wrong).slips == ("scale",)


@pytest.mark.parametrize(
    ("typed", "right", "mark"),
    [
        *((-0.58, 0.5789, answers.SIGN), (41.8, 0.418, answers.LARGE)),
        *((0.00418, 0.418, answers.SMALL), (333, 1 / 3, answers.COMMA)),
        *((59561, 59.5609, answers.COMMA), (0.0596, 59.5609, answers.POINT)),
        *((46059, 1 / 3, answers.DATE), (46000, 48912, answers.WRONG)),
        (0.0473, 0.04736, answers.CLOSE),
    ],
)
def test_common_mistakes_are_named(typed: float, right: float, mark: int) -> None:
    assert judged(typed, right, {}).mark == mark


@pytest.mark.parametrize(
    ("typed", "kind", "mark"),
    [
        *(("−0.58", answers.MINUS, answers.ROUNDED), ("−0,58", answers.MINUS, answers.ROUNDED)),
        *(
            ("-0,5789", answers.WITH_COMMA, answers.RIGHT),
            ("−57.89 %", answers.MINUS, answers.RIGHT),
        ),
        *((" -0.58", answers.AS_TEXT, answers.ROUNDED), ("−0.6", answers.MINUS, answers.FEW)),
        *(("2/6", answers.FRACTION, answers.WRONG), ("abc", answers.TEXT, answers.WRONG)),
        *(("−", answers.TEXT, answers.WRONG), ("1.2.3", answers.TEXT, answers.WRONG)),
    ],
)
def test_a_number_in_a_text_is_judged_and_is_not_yet_right(
    typed: str, kind: int, mark: int
) -> None:
    found = judged(typed, -0.5789, {})
    assert (found.kind, found.mark, found.right) == (kind, mark, False)


def roundings(number: float, most: int = 15) -> Iterator[float]:
    """A number rounded to 2 and more significant digits; both neighbours of a tie."""
    exact = Decimal(f"{number:.12g}")  # as cells show it: binary numbers are off a tie
    for n in range(2, most + 1):
        unit = Decimal(1).scaleb(exact.adjusted() - n + 1)
        for mode in (ROUND_HALF_UP, ROUND_HALF_DOWN):
            yield float(exact.quantize(unit, rounding=mode))


@pytest.mark.slow
@pytest.mark.parametrize("name", workbooks.path())
def test_no_right_rounding_is_called_a_slip(name: str) -> None:
    for level in LEVELS:
        for a, right, slips in rights(asked(name, level)):
            if 0 < abs(right) < AS_GOOD_AS_0:
                continue
            for typed in {*roundings(right, DIGITS[-1])} if not a.whole else {right}:
                assert judged(typed, right, slips, a.whole).right, (a.name, typed, right)
                percent = float(f"{100 * typed:.10g}") / 100
                assert judged(percent, right, slips, a.whole).right, (a.name, percent)
                size = f"{Decimal(repr(abs(typed))):f}".removesuffix(".0")
                for text in (
                    f"−{size}",
                    f"-{size}".replace(".", ",") + ("" if "." in size else ",0"),
                ):
                    found = judged(text, -abs(right), slips, a.whole)
                    assert found.mark <= answers.ROUNDED and not found.right
                for k in range(1, 7) if typed else ():
                    found = judged(float(Decimal(repr(typed)).scaleb(k)), right, slips, a.whole)
                    assert answers.LARGE <= found.mark <= answers.POINT, (a.name, typed, k)
                if typed:
                    found = judged(-typed, right, slips, a.whole)
                    assert found.mark in (answers.SIGN, answers.SLIP), (a.name, typed)


@pytest.mark.slow
@pytest.mark.parametrize("name", workbooks.path())
def test_of_a_thousand_wrong_answers_none_is_accepted_that_does_not_round(name: str) -> None:
    cells = [one for level in LEVELS for one in rights(asked(name, level))]
    n_wrong = 0
    for a, right, slips, typed in wrongs(cells, 4 * N_WRONG, seed=3):
        found = judged(typed, right, slips, a.whole)
        exact = abs(typed - right) <= max(abs(right), answers.LEAST) * answers.EXACT
        own = () if a.whole else roundings(right)
        rounds = exact or any(abs(typed - x) <= answers.EXACT * abs(x) for x in own)
        assert found.right == rounds, (a.name, typed, right)
        n_wrong += not found.right
        if n_wrong == N_WRONG:
            return
    raise AssertionError(f"only {n_wrong} are wrong")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "level"),
    [
        *(("cat-sat", 1), ("sampling", 1), ("kv-cache", 1), ("gram-schmidt", 1)),
        *(("loss", 3), ("ocr-filter", 3)),
    ],
)
def test_the_sheet_says_in_ironcalc_what_the_engine_says(
    name: str, level: int, tmp_path: Path
) -> None:
    needs("ironcalc")
    tried = [*random_tries(asked(name, level), n=40)]
    open_ = InIronCalc(asked(name, level), tmp_path)
    assert told_wrongly(tried, [open_.said(one.typed) for one in tried]) == []
    assert open_.errors() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cat-sat", "kv-cache"])
def test_the_sheet_says_in_libreoffice_what_the_engine_says(
    libreoffice: None, name: str, tmp_path: Path
) -> None:
    tried = [*random_tries(asked(name), n=20)]
    said = said_in_libreoffice(asked(name), tried, tmp_path)
    assert told_wrongly(tried, said) == []


@pytest.mark.slow
def test_all_programs_compute_alike_what_is_said(
    libreoffice: None, gnumeric: None, tmp_path: Path
) -> None:
    needs("ironcalc")
    book, cells = exercises.recipe("loss").asked()
    found = rights(Asked(book, cells))
    for k, (a, right, _) in enumerate(found):
        typed = (float(f"{right:.2g}"), -right, 100 * right, "−0.58", "0,33", "2/6")[k]
        sheet, row, col = at(a)
        book.sheets[sheet].entries[row, col] = Entry(typed, "blank")
    book.refresh()
    cells_of = read(xlsx.write(book, tmp_path / "typed.xlsx"))
    about = {at: x for at, x in cells_of.formulas.items() if at[0] in (KEY, exercise.SHEET)}
    for engine in ("ironcalc", "libreoffice", "gnumeric"):
        verdict = verify(replace(cells_of, formulas=about), engine)
        assert verdict.agrees, verdict


def test_grade_knows_a_date_by_its_format(tmp_path: Path) -> None:
    path, cells = asked("loss").write(tmp_path, "loss"), asked("loss").answers
    workbook = openpyxl.load_workbook(path)
    for a, format_ in zip(cells[2:4], ("d-mmm", "General"), strict=True):
        sheet, row, col = at(a)
        cell = workbook[sheet].cell(row + 1, col + 1, 46059)
        cell.number_format = format_
    workbook.save(path)
    marks = exercises.Grader().grade(path).exercises
    assert [marks[k][0].said for k in (2, 3)] == [MISTAKES[answers.DATE], "wrong: 46059"]


@pytest.mark.slow
def test_grade_says_what_the_sheet_says(tmp_path: Path) -> None:
    path, cells = asked("loss").write(tmp_path, "loss"), asked("loss").answers
    workbook = openpyxl.load_workbook(path)
    right = [right for _, right, _ in rights(asked("loss"))][5]
    typed = {
        f"{right:.1g}": FEW,
        f"{-right:.3g}": MISTAKES[answers.SIGN],
        f"{100 * right:.4g}": MISTAKES[answers.LARGE],
        f"−{right:.3g}": "you typed a text; with the minus sign of the keyboard: "
        + MISTAKES[answers.SIGN],
        f"{right:.2f}".replace(".", ","): "you typed a text; with a point, not a comma: right",
    }
    sheet, row, col = at(cells[5])
    for text, said in typed.items():
        number = text[-1].isdigit() and "," not in text and "−" not in text
        workbook[sheet].cell(row + 1, col + 1, float(text) if number else text)
        workbook.save(path)
        mark = exercises.Grader().grade(path).exercises[5][0]
        assert (mark.said, mark.right) == (said, False)


def test_the_sheet_has_its_name_and_its_link_in_italian(tmp_path: Path) -> None:
    needs("ironcalc")
    recipe = exercises.Recipe("loss", lang="it")
    path = xlsx.write(recipe.book(solved=True), tmp_path / "it.xlsx")
    workbook = openpyxl.load_workbook(path)
    sheet = workbook["Esercizio"]
    assert str(sheet["A1"].value).endswith("· Esercizio")
    assert "il foglio controlla ogni risposta, e spiega gli errori" in str(sheet["A3"].value)
    sheet.cell(*(1 + k for k in exercise.NAME), "Zoë")
    workbook.save(path)
    grade = exercises.Grader().grade(path)
    assert (grade.reader, grade.score) == ("Zoë", 6)


def test_a_question_says_what_to_compute_and_how_many_numbers() -> None:
    found = asked("sampling").book.sheets[exercise.SHEET].entries.values()
    texts = [str(entry.value) for entry in found]
    assert any(
        text.startswith("‘rank’ of ‘cat’, number 2 of 20: one whole number · ") for text in texts
    )
    assert sum(": one number · " in text for text in texts) == 5
    assert exercise.ROUNDING in texts


def test_no_answer_of_cat_sat_to_two_decimals_is_wrong(tmp_path: Path) -> None:
    needs("ironcalc")
    found = asked("cat-sat")
    typed = {at(a): round(right, 2) for a, right, _ in rights(found)}
    said = InIronCalc(found, tmp_path).said(typed)
    assert len(said) == 6 and {*said} <= {RIGHT, ROUNDED, FEW}
