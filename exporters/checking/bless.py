"""A workbook of every form in which formulas of ours call functions and signs, for a person who has
a spreadsheet program: saved there, it holds what that program computes.

A form is a function with the kinds of what it is given, `COUNTIF([number], text)`; forms.txt lists
those of all workbooks. Each stands on the sheet once or twice, of inputs in cells, beside what we
compute. Cached values are wrong, so a file that no program has recomputed is known.
"""

import re
import zipfile
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xlsxwriter
from xlsxwriter.exceptions import FileCreateError

from cellformer.engine.cells import functions
from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Constant, Function, Operation
from cellformer.engine.cells.files import replacing
from cellformer.engine.cells.values import CellError, FormulaError, as_shown, no_error
from cellformer.exporters.compose.address import a1, of_cell
from cellformer.exporters.file.reading import Value, WorkbookFile, a_workbook, gap
from cellformer.exporters.file.xlsx import CREATED

FORMS = Path(__file__).with_name("forms.txt")
SHEET, HEADS = "Forms", ("form", "formula", "cellformer", "this program", "given")
KEYS = "Ctrl+Alt+F9, in LibreOffice Ctrl+Shift+F9"
ASK = (
    f"Open this file in a spreadsheet program, recompute everything ({KEYS}), and save the file. "
    "Then run: cellformer bless --read FILE.xlsx"
)
TOP, OURS, THEIRS, GIVEN = 3, 2, 3, 4  # the first row of formulas; columns
WRONG = -987654321.5  # cached; no formula here gives it
CLOSE = 1e-9  # relative: what `verify` asks of programs
N_ROWS = 4  # of a range
FUNCTIONS = {x.name: x for x in vars(functions).values() if isinstance(x, Function)}
FUNCTIONS["SIGN"] = Function("SIGN", np.sign)  # in the text of ERF
PLACES = ("ROW", "COLUMN")  # of a cell
KINDS = re.compile("empty text|text of digits|text with a sign|text|number|truth|blank|error")

# What stands in cells of each kind; a range has them one after another.
SAMPLES: dict[str, tuple[Any, ...]] = {
    "number": (-1.25, 0.5, 2.5, 7.0),
    "text": ("cat", "mat", "on", "Sat"),
    "text of digits": ("12", "0.5", "2026", "7"),
    "text with a sign": (">0.5", "<=2.5"),
    "truth": (True, False, False, True),
    "empty text": ("",) * N_ROWS,
    "blank": (None,) * N_ROWS,
    "error": (CellError("#DIV/0!"),) * N_ROWS,
}
SHUFFLED = (1, 0, 2, 3)  # so that a second range equals the first one here and there

# Of functions that do not take everything: what each argument is in the first and second example.
GIVEN_TO: dict[str, tuple[dict[str, tuple[Any, ...]], ...]] = {
    "ACOS": ({"number": (0.5, -1.0)},),
    "ERF": ({"number": (0.5, 2.25)},),  # of a number below 0 some programs have no value
    "FIND": (
        {"text": ("a", "t"), "text of digits": ("2", "1")},
        {"text": ("ca2t", "t1a"), "text of digits": ("12", "21")},
    ),
    "INDEX": ({}, {"number": (2.0, 4.0)}, {"number": (1.0, 1.0)}),
    "INT": ({"number": (2.5, 7.0)},),
    "LARGE": ({}, {"number": (1.0, 2.0)}),
    "LEFT": ({}, {"number": (1.0, 2.0)}),
    "RIGHT": ({}, {"number": (1.0, 2.0)}),
    "LN": ({"number": (2.5, 0.125)},),
    "LOG10": ({"number": (2.5, 1000.0)},),
    "MATCH": ({}, {"[number]": SAMPLES["number"]}),  # ascending
    "MID": ({}, {"number": (2.0, 1.0)}, {"number": (2.0, 3.0)}),
    "MOD": ({"number": (7.5, -7.0)}, {"number": (2.0, 3.0)}),
    "POWER": ({"number": (2.5, 9.0)}, {"number": (3.0, -0.5)}),
    "RANK": ({"number": (0.5, 7.0)}, {"[number]": (0.5, 7.0, 2.5, 0.5)}),  # two are equal
    "REPT": ({}, {"number": (3.0, 0.0)}),
    "ROUND": ({"number": (1234.5678, -1.25)}, {"number": (2.0, 1.0)}),
    "SQRT": ({"number": (2.25, 2.0)},),
    "SUBSTITUTE": (
        {"text": ("ab ab", "a%b"), "text of digits": ("12%", "5%")},
        {"text": ("b", "%")},
        {"text": ("xy", "-")},
    ),
    "TRIM": ({"text": ("  the  cat ", "sat "), "text of digits": (" 12 ", "5 ")},),
    "UNICHAR": ({"number": (97.0, 233.0)},),
    "UNICODE": ({"text": ("é", "Zoo")},),
    "&": ({}, {"[text]": ("mat",)}),  # of one cell
    "^": ({"number": (2.5, 9.0)}, {"number": (3.0, -0.5)}),
}


@dataclass(frozen=True)
class Given:
    """An argument: cells of a column, or a number in the formula itself."""

    cells: tuple[Any, ...]
    range: bool = False
    literal: float | None = None

    @property
    def value(self) -> Any:
        """The argument as functions get it."""
        if not self.range:
            return self.cells[0] if self.literal is None else self.literal
        kind = np.float64 if {*map(type, self.cells)} == {float} else object
        return np.array(self.cells, dtype=kind).reshape(-1, 1)


@dataclass(frozen=True)
class Example:
    """A form with inputs, and where its formula stands."""

    form: str
    name: str  # the function, or the sign
    given: tuple[Given, ...]
    row: int

    @property
    def formula(self) -> str:
        texts = [
            _address(self, k) if given.literal is None else f"{given.literal:.0f}"
            for k, given in enumerate(self.given)
        ]
        if self.name in FUNCTIONS or self.name in PLACES:
            return f"={self.name}({','.join(texts)})"
        return f"={texts[0]}{self.name}{texts[1]}"

    @property
    def ours(self) -> list[Value]:
        """Our result: one value, or one for each row."""
        try:
            found = _computed(self)
        except FormulaError as error:
            found = CellError(str(error))
        listed = found.ravel().tolist() if isinstance(found, np.ndarray) else [found]
        return list(map(as_shown, listed))

    @property
    def height(self) -> int:
        return max([1, *(len(g.cells) for g in self.given)])


def _address(example: Example, k: int) -> str:
    col, n = GIVEN + k, len(example.given[k].cells)
    at = a1(Rect(example.row, example.row + n, col, col + 1))
    return f"{at}:{at}" if example.given[k].range and n == 1 else at


def _computed(example: Example) -> Any:
    name, values = example.name, [g.value for g in example.given]
    if name in PLACES:
        return float((example.row if name == "ROW" else GIVEN) + 1)
    if name not in FUNCTIONS:
        return Operation(name, *map(Constant, values)).value(lambda area: None)
    function = FUNCTIONS[name]
    return function.compute(*(partial(no_error, v) if function.lazy else v for v in values))


# --- the examples ---------------------------------------------------------------------------------


@cache
def examples() -> tuple[Example, ...]:
    """Every form, once or twice, from the top of the sheet down."""
    found: list[Example] = []
    row = TOP
    for form in FORMS.read_text("utf-8").splitlines():
        for name, arguments in dict.fromkeys(_given(form, k) for k in range(2)):
            found.append(Example(form, name, arguments, row))
            row += found[-1].height
    return tuple(found)


def _given(form: str, k: int) -> tuple[str, tuple[Given, ...]]:
    """The function of a form, or its sign, and its arguments in an example."""
    if called := re.fullmatch(r"(\w+)\((.*)\)", form):
        name, kinds = called[1], called[2].split(", ") if called[2] else []
    else:
        left, name, right = re.split(r" ([-+*/^&<>=]+) ", form)
        kinds = [left, right]
    given = [_argument(name, kind, j, k) for j, kind in enumerate(kinds)]
    if name == "CHOOSE":
        given[0] = Given((next(j for j, kind in enumerate(kinds) if j and kind != "…") * 1.0,))
    if name == "IF":
        given[0] = Given((kinds[1] != "…",))
    return name, tuple(given)


def _argument(name: str, kind: str, j: int, k: int) -> Given:
    """An argument of a kind: the jth, in example k."""
    if kind.isdigit():
        return Given((), literal=float(kind))
    own = GIVEN_TO.get(name, ())
    of_own = own[j] if j < len(own) else {}
    kind = {"…": "number", "cell": "number"}.get(kind, kind)
    if kind[0] != "[":
        return Given((of_own.get(kind, SAMPLES[kind])[k],))
    if kind in of_own:
        return Given(of_own[kind], range=True)
    kinds = KINDS.findall(kind)
    order = range(N_ROWS) if j == 0 else SHUFFLED
    cells = [SAMPLES[kinds[i % len(kinds)]][order[i // len(kinds)]] for i in range(N_ROWS)]
    return Given(tuple(cells), range=True)


# --- the workbook ---------------------------------------------------------------------------------


def write(path: Path) -> None:
    """Write the workbook, completely or not at all. Raises InputError."""
    if path.suffix.lower() != ".xlsx":
        raise InputError(f"{path}: the name of a workbook must end in .xlsx")
    with replacing(path) as temporary:
        book = xlsxwriter.Workbook(temporary, {"use_future_functions": True})
        book.set_properties({"title": "cellformer: forms of formulas", "created": CREATED})
        sheet = book.add_worksheet(SHEET)
        sheet.freeze_panes(TOP, 0)
        sheet.set_row(TOP - 1, None, book.add_format({"bold": True}))
        sheet.set_column(0, 1, 40)
        sheet.set_column(OURS, THEIRS, 20)
        for at, value in _typed().items():
            _put(sheet, at, value)
        for one in examples():
            n = len(one.ours)
            if n == 1 and not any(g.range for g in one.given):
                sheet.write_formula(one.row, THEIRS, one.formula, None, WRONG)
            else:
                sheet.write_array_formula(
                    one.row, THEIRS, one.row + n - 1, THEIRS, f"{{{one.formula}}}", None, WRONG
                )
                for k in range(1, n):
                    sheet.write_number(one.row + k, THEIRS, WRONG)
        try:
            book.close()
        except FileCreateError as error:  # what the system said, in XlsxWriter's own words
            raise InputError(
                f"cannot write {path}: {error}; free some disk space, or choose another place "
                "with -o"
            ) from None


def _typed() -> dict[Span, Value]:
    """The contents of the cells besides the formulas in question."""
    cells: dict[Span, Value] = {(0, 0): ASK}
    cells |= {(TOP - 1, col): head for col, head in enumerate(HEADS)}
    for one in examples():
        cells |= {(one.row, 0): one.form, (one.row, 1): one.formula[1:]}
        cells |= {(one.row + k, OURS): x for k, x in enumerate(one.ours)}
        for col, given in enumerate(one.given, GIVEN):
            cells |= {(one.row + k, col): x for k, x in enumerate(given.cells)}
    return {at: x for at, x in cells.items() if x is not None}


def _put(sheet: Any, at: Span, value: Value) -> None:
    """Write a value; an error and an empty text are what formulas have."""
    if isinstance(value, CellError) and at[1] >= GIVEN:
        sheet.write_formula(*at, "=1/0", None, value)
    elif value == "" and at[1] >= GIVEN:
        sheet.write_formula(*at, '=""', None, "")
    elif isinstance(value, str):
        sheet.write_string(*at, value)
    else:
        sheet.write(*at, value)


# --- what a program saved -------------------------------------------------------------------------


class Answered(NamedTuple):
    """A cell: the program's result, and ours."""

    example: Example
    at: str
    ours: Value
    theirs: Value

    @property
    def gap(self) -> float:
        """Relative for large numbers; infinite for another text, or an error. TRUE is 1, as which
        LibreOffice saves it in arrays."""
        return gap(self.ours, self.theirs)

    @property
    def agrees(self) -> bool:
        return self.gap <= CLOSE


def read(path: Path) -> tuple[str, list[Answered]]:
    """The program that saved a workbook of forms, and every cell. Raises InputError for another
    workbook, and for one that no program has recomputed."""
    file = WorkbookFile(path)
    if SHEET not in file:
        raise InputError(
            f"{path} has no sheet {SHEET}; run cellformer bless -o FILE.xlsx to write such a "
            "workbook"
        )
    shown = file[SHEET].values
    for at, value in _typed().items():
        if at[1] != OURS and (shown.get(at) or "") != (value or ""):
            raise InputError(
                f"{path}: {SHEET}!{of_cell(*at)} differs from what this version of cellformer "
                "writes; write the workbook again with cellformer bless -o FILE.xlsx"
            )
    found = [
        Answered(one, of_cell(row, THEIRS), ours, shown.get((row, THEIRS)))
        for one in examples()
        for row, ours in enumerate(one.ours, one.row)
    ]
    if sum(x.theirs in (None, WRONG) for x in found) > len(found) / 2:
        raise InputError(
            f"{path} was not recomputed: open the file in a spreadsheet program, recompute "
            f"everything ({KEYS}), and save the file there"
        )
    return _program(path), found


def _program(path: Path) -> str:
    """The program that saved a workbook, and its version, as the file says."""
    with a_workbook(path), zipfile.ZipFile(path) as archive:
        part = "docProps/app.xml"
        text = archive.read(part).decode(errors="replace") if part in archive.namelist() else ""
    keys = ("Application", "AppVersion")
    said = (re.search(f"<(?:\\w+:)?{key}>([^<]{{,100}})<", text) for key in keys)
    return " ".join(found[1] for found in said if found) or "an unknown program"
