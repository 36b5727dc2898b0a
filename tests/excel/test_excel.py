"""Every function that we write, in the forms in which we write it, held to what Excel computed: in
our own interpreters, and in each program of `verify`.

What Excel computed is numbers and texts of files that Excel saved: see README.md here.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xlsxwriter
from conftest import EVERY_ENGINE, ROOT, in_tiers, needs, script
from forms import FUNCTIONS, Cells, computed, of_workbook, parsed

from cellformer import workbooks
from cellformer.engine.cells.access import Span
from cellformer.engine.cells.expression import Expression, Function
from cellformer.engine.cells.lines import Line
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.cells.values import NUMBERS, TRUTHS, CellError, FormulaError, number
from cellformer.exporters.checking.bless import FORMS
from cellformer.exporters.checking.verify import poison, read
from cellformer.exporters.compose.address import position

HERE = Path(__file__).parent
OURS = frozenset(FORMS.read_text("utf-8").splitlines())
ERRORS = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")
HUGE = "=REPT(A16,B16)"  # of 10 to the power of 8: some programs do it
CLOSE = 1e-12  # relative: Excel's own functions are off by that
ABSENT = {"RAND", "RANK", "UNICHAR"}  # from Excel's data

# Forms of which some formula computes something else here than in Excel. None of them is ours.
NOT_AS_EXCEL = frozenset(
    """ACOS([blank number]); ACOS(blank); AND(blank); AND(blank, truth); AND(empty text, truth);
    AND(text of digits); AND(text); AVERAGE(blank); AVERAGE(blank, number);
    AVERAGE(number, truth, text, blank, text of digits); AVERAGE(text); COUNT(text of digits);
    COUNT(truth); COUNTIF([blank error number], blank);
    COUNTIF([blank error text], text with a sign); COUNTIF([blank number text truth], text);
    ERF(truth); EXP(blank); EXP(text of digits); EXP(text); INDEX([number text], number);
    INT(blank); INT(text); MATCH(blank, [blank empty text text], 0); MATCH(number, [number], -1);
    MATCH(text, [text]); MAX(number, text, text of digits, truth);
    MIN(number, text, text of digits, truth); MIN(text); N(blank); OR(blank);
    OR(empty text, truth); OR(text of digits); OR(text); ROUND([blank number], number);
    ROUND([blank], number); ROUND(number, [blank number]); SIGN(blank); SIGN(text of digits);
    SIGN(text); SUM(text of digits); SUM(text); SUM(truth); VARP([blank], text of digits);
    VARP([number truth], [blank], text of digits);
    VARP(number, number, number, text)""".replace("\n    ", " ").split("; ")
)


@dataclass(frozen=True)
class Case:
    """A formula, and what Excel computed."""

    file: str
    sheet: str
    at: Span
    formula: str
    excel: Any
    cells: Cells  # what Excel shows in all cells of the file
    forms: frozenset[str]

    @property
    def ours(self) -> bool:
        """Whether we write what it is made of."""
        return self.forms <= OURS

    @property
    def functions(self) -> set[str]:
        return {form.partition("(")[0] for form in self.forms if "(" in form}

    @property
    def reads(self) -> set[tuple[str, str, Span]]:
        """The cells that it reads, by file and sheet."""
        areas = self.expression(FUNCTIONS).areas()
        return {(self.file, a.grid.name, at) for a in areas for at in a.rect.cells()}

    def found(self, known: Mapping[str, Function] = FUNCTIONS) -> Any:
        """What we compute."""
        return computed(self.expression(known), self.cells)

    def expression(self, known: Mapping[str, Function]) -> Expression:
        return parsed(self.formula, self.sheet, known=known)


def value(x: Any) -> Any:
    """A value of the data, as cells hold it."""
    if isinstance(x, str) and x in ERRORS:
        return CellError(x)
    return float(x) if isinstance(x, NUMBERS) and not isinstance(x, bool) else x


@cache
def cases() -> list[Case]:
    """Every formula of the data that has a function or a sign."""
    found = []
    for book in json.loads((HERE / "values.json").read_text()):
        shown = {
            sheet: {
                position(at): value(x["excel"] if isinstance(x, dict) else x)
                for at, x in cells.items()
            }
            for sheet, cells in book["sheets"].items()
        }
        for sheet, cells in book["sheets"].items():
            for at, x in cells.items():
                if isinstance(x, dict):
                    forms: set[str] = set()
                    computed(parsed(x["formula"], sheet, forms.add), shown)
                    here = sheet, position(at), x["formula"], value(x["excel"])
                    if forms:  # no lone constant, and no lone error, which a text may be as well
                        found.append(Case(book["file"], *here, shown, frozenset(forms)))
    return found


def ours() -> list[Case]:
    return [case for case in cases() if case.ours]


def same(a: Any, b: Any, within: float = CLOSE) -> bool:
    """Whether a cell shows what Excel does."""
    if isinstance(a, TRUTHS) or isinstance(b, TRUTHS):
        return isinstance(a, TRUTHS) and isinstance(b, TRUTHS) and a == b
    if isinstance(a, NUMBERS) and isinstance(b, NUMBERS):
        return math.isclose(a, b, rel_tol=within, abs_tol=1e-15)
    return type(a) is type(b) and a == b


def gaps(chosen: list[Case], known: Mapping[str, Function] = FUNCTIONS) -> list[tuple[Any, ...]]:
    """Where we compute something else: the formula, what we compute, what Excel did."""
    found = [(c.file, c.sheet, c.formula, c.found(known), c.excel) for c in chosen]
    return [gap for gap in found if not same(*gap[3:])]


# --- our own interpreters -------------------------------------------------------------------------


def test_formulas_equal_excel() -> None:
    """In the forms in which we write them, all; in others, all but those that are named here."""
    assert gaps(ours()) == []
    rest = [case for case in cases() if not case.forms & NOT_AS_EXCEL]
    assert gaps(rest) == []
    functions = {name for case in rest for name in case.functions}
    assert functions == FUNCTIONS.keys() - ABSENT
    assert (len(functions), len(rest)) == (48, 2234)
    assert len(ours()) > 1200  # in just the forms that we write
    assert (
        len(OURS & {form for case in rest for form in case.forms}) == 79
    )  # as docs/spreadsheets.md says


def test_no_written_form_differs_from_excel() -> None:
    assert not NOT_AS_EXCEL & OURS
    for form in NOT_AS_EXCEL:
        assert gaps([case for case in cases() if form in case.forms]), f"{form} is as in Excel"


def test_altered_functions_are_noticed() -> None:
    for name in FUNCTIONS.keys() - ABSENT:
        held = [case for case in cases() if name in case.functions and case not in skipped()]
        assert gaps(held, FUNCTIONS | {name: altered(FUNCTIONS[name])}), name


def skipped() -> list[Case]:
    """What we compute otherwise than Excel, and do not write."""
    return [case for case in cases() if case.forms & NOT_AS_EXCEL]


def altered(function: Function) -> Function:
    """A function that is wrong by little."""

    def wrong(*given: Any) -> Any:
        x = function.compute(*given)
        if isinstance(x, TRUTHS):
            return not x
        return f"{x}." if isinstance(x, str) else number(x) * (1 + 1e-9) + 1e-12

    return Function(function.name, wrong, function.lazy)


def test_other_erf_and_mod_are_noticed() -> None:
    """ERF of a negative number is an error in some; the sign of MOD is the dividend's in others."""

    def erf(x: Any) -> Any:
        if number(x) < 0:
            raise FormulaError("#NUM!")
        return FUNCTIONS["ERF"].compute(x)

    others = {"ERF": erf, "MOD": lambda a, b: math.fmod(number(a), number(b) or math.nan)}
    for name, compute in others.items():
        found = gaps(ours(), FUNCTIONS | {name: Function(name, compute)})
        assert found and all(name in formula for _, _, formula, *_ in found)


def over_blocks(function: Function) -> Function:
    """A function as whole blocks compute it, of one cell; no finite number is an error."""

    def compute(*given: Any) -> Any:
        xs = [
            Line(np.reshape(x, (1, -1)), "i") if isinstance(x, np.ndarray) else np.array([[x]])
            for x in given
        ]
        assert function.arrays
        with np.errstate(all="ignore"):
            found = float(np.asarray(function.arrays(*xs))[0, 0])
        if not math.isfinite(found):
            raise FormulaError("#NUM!")
        return found

    return Function(function.name, compute)


def test_functions_over_blocks_equal_excel() -> None:
    """Of numbers: the only value that ops know."""
    numeric = re.compile(r"\w+\((?:\[?number\]?(?:, )?)+\)|number . number")
    over = [x.name for x in FUNCTIONS.values() if x.arrays and not x.lazy]
    n = dict.fromkeys(over, 0)
    for name in over:
        for case in ours():
            if name in case.functions and all(map(numeric.fullmatch, case.forms)):
                found = case.found(FUNCTIONS | {name: over_blocks(FUNCTIONS[name])})
                errors = isinstance(found, CellError) and isinstance(case.excel, CellError)
                if (name, found) == ("POWER", 1) and isinstance(case.excel, CellError):
                    continue  # 0 to the power of 0, which no op asks for
                assert errors or same(found, case.excel), (case.formula, found, case.excel)
                n[name] += 1
    assert {name for name, held in n.items() if not held} <= ABSENT | {"AVERAGE", "VARP"}, n


# --- the programs of `verify` ---------------------------------------------------------------------

HALVES = ("=ROUND(A41,B41)", "=ROUND(1.05*(0.0284+0.0046)-0.0284,4)")  # but for the last bits
# What a program computes otherwise in a form that we write: numbers that no workbook of ours has.
EXTREMES = {
    "ironcalc": {"=MOD(A25,B25)"},  # 5 by 0.0000000001
    "libreoffice": {"=MOD(A25,B25)", "=POWER(A5,B5)"},  # and 0 to the power of 0
    "formualizer": {"=POWER(A5,B5)"},  # 0 to the power of 0
    "hyperformula": {"=POWER(A5,B5)", *HALVES},
    # 1E-307; 1E100; fewer than no times
    "formulas": {"=SIGN(A12)", "=SIGN(A13)", "=INT(A37)", "=INT(A41)", "=REPT(A3,B3)", *HALVES},
}
# Where a program differs from Excel: forms that we do not write, and which it computes otherwise.
DIFFERS = {
    "libreoffice": (
        "SUM([blank truth])",  # TRUE in a range counts
        "COUNT([blank error number text text of digits truth])",
        "COUNTIF([number text text of digits truth], number)",  # texts like numbers do not
        "COUNTIF([blank number text truth], truth)",
        "MATCH(truth, [number text], 0)",
        "EXACT(truth, number)",
        "UNICODE(truth)",
    ),
    "gnumeric": (
        "INDEX([text] in a row, number)",
        "COUNTIF([blank error text], text with a sign)",
        "COUNTIF([blank number text truth], blank)",
        "EXACT(number, number)",
        "CHOOSE(truth, text)",
    ),
    "hyperformula": (
        "TRUE without parentheses",
        "INT(number below 0)",
        "ROUND(number, fraction)",
        "MATCH(text with wildcards, [blank empty text text], 0)",
        "INDEX([text] in a row, number)",
        "COUNTIF([text], blank)",
        "EXACT(number, number)",
    ),
}


def written(path: Path, chosen: list[Case]) -> dict[tuple[str, str], str]:
    """A workbook of formulas, on the sheets that they stood on; the names of these by file."""
    sheets: dict[tuple[str, str], list[Case]] = {}
    for case in chosen:
        sheets.setdefault((case.file, case.sheet), []).append(case)
    with xlsxwriter.Workbook(path) as book:
        for k, cases_there in enumerate(sheets.values()):
            sheet, formulas = book.add_worksheet(f"S{k}"), {c.at: c for c in cases_there}
            for at, shown in cases_there[0].cells[cases_there[0].sheet].items():
                if at in formulas or isinstance(shown, CellError):
                    formula = formulas[at].formula if at in formulas else f"={shown}"
                    sheet.write_formula(*at, formula, None, shown)
                elif isinstance(shown, str):
                    sheet.write_string(*at, shown)
                else:
                    sheet.write(*at, shown)
    return {where: f"S{k}" for k, where in enumerate(sheets)}


@cache
def wrong_in(engine: str, folder: Path) -> list[Case]:
    """What a program computes otherwise than Excel, from wrong cached values, out of cells that it
    computes alike. An error is any."""
    chosen = [case for case in cases() if case.formula != HUGE]
    path, copy = folder / f"{engine}.xlsx", folder / engine / "wrong.xlsx"
    names, book = written(path, chosen), read(path)
    copy.parent.mkdir()
    poison(path, copy)
    found = EVERY_ENGINE[engine].recompute(copy, book)

    def agrees(case: Case) -> bool:
        x = found.get((names[case.file, case.sheet], *case.at))
        if isinstance(x, str) and x.startswith(("#", "Err:")):
            return isinstance(case.excel, CellError)
        if isinstance(case.excel, bool) and x in (0, 1):
            return bool(x) == case.excel
        return same("" if x is None else x, case.excel, NEAR)

    wrong = [case for case in chosen if not agrees(case)]
    at = {(case.file, case.sheet, case.at) for case in wrong}
    return [case for case in wrong if not at & case.reads]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("excel")


@pytest.mark.office
@pytest.mark.parametrize("engine", EVERY_ENGINE)
def test_programs_equal_excel(engine: str, folder: Path) -> None:
    needs(engine)
    found = {case.formula for case in wrong_in(engine, folder) if case.ours}
    assert found == EXTREMES.get(engine, set())


@pytest.mark.office
@pytest.mark.parametrize("engine", DIFFERS)
def test_no_written_form_differs_in_a_program(engine: str, folder: Path) -> None:
    needs(engine)
    wrong = [case.forms for case in wrong_in(engine, folder)]
    for form in DIFFERS[engine]:
        assert form not in OURS
        assert any(form in forms for forms in wrong), f"{form} is as in Excel now"


# --- the forms that we write ----------------------------------------------------------------------

HEAVY = ("shakespeare",)


@pytest.mark.parametrize("name", in_tiers(sorted(set(workbooks.names()) - set(HEAVY))))
def test_gallery_has_known_forms(name: str, built) -> None:
    found = of_workbook(built.file(name), most=4)
    assert {form: where for form, where in found.items() if form not in OURS} == {}


def test_documented_forms_are_current(tmp_path: Path) -> None:
    needs("ironcalc")
    portable = script("portable")
    page = (ROOT / "docs" / "spreadsheets.md").read_text(encoding="utf-8")
    made = page.partition(portable.BEGIN)[2].partition(portable.END)[0]
    heads, _, *rows = [line.strip("| ").split(" | ") for line in made.strip().splitlines()]
    for (formula, name, excel, *_), row in zip(portable.FORMS, rows, strict=True):
        said = portable.says("ironcalc", formula, tmp_path)
        same_as_excel = said == portable.told(excel)
        assert row[0] == name or row[0] == f"`{formula}`"
        assert row[heads.index("ironcalc")] == ("=" if same_as_excel else said)


# --- characters beyond the first 65,536 -----------------------------------------------------------


def units(text: str) -> str:
    """A text as the halves of UTF-16, each a character of its own."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(raw[k] | raw[k + 1] << 8) for k in range(0, len(raw), 2))


def first_half(text: str) -> float:
    return float(ord(text[0]))


def whole_pair(text: str) -> float:
    """As Excel has it: of half a pair there is no code."""
    try:
        return float(ord(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")[0]))
    except (UnicodeDecodeError, IndexError):
        raise FormulaError("#VALUE!") from None


@pytest.mark.slow
@pytest.mark.parametrize("code", [first_half, whole_pair])
def test_surrogate_pair_is_one_character(code: Any, built) -> None:
    """In a program that counts halves, whether it gives a half's own code or none."""
    file = built.file("tokenization")
    formulas = file["Tokenizer"].formulas
    at, formula = next((at, f) for at, f in formulas.items() if "UNICODE(MID(" in f)
    expression = parsed(
        f"={formula}", "Tokenizer", known=FUNCTIONS | {"UNICODE": Function("", code)}
    )
    text, place = [area.rect for area in expression.areas()][:2][::-1]
    for typed, position_of, wanted in (("a\U0001f600b", 2, 0x1F600), ("é", 1, 0xE9), ("a", 2, 0)):
        cells = {
            "Tokenizer": {
                (text.top, text.left): units(typed),
                (place.top, place.left): float(position_of),
            }
        }
        assert computed(expression, cells) == wanted, (formula, at, typed)
