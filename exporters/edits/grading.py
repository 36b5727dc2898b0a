"""Grading: marks for the yellow cells of a saved workbook of exercises.

The workbook is built again, and only what was typed is taken from the file: so a check that was
changed, or old values, grade nothing. A formula is computed by IronCalc on a workbook of values, as
built and with other inputs, which the file never shows: a formula must be right on both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from openpyxl.formula.tokenizer import Token, Tokenizer, TokenizerError

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.texts import cut
from cellformer.engine.cells.values import CellError
from cellformer.engine.studies import exercises
from cellformer.engine.studies.answers import DATE, NUMBER, SIGN, Verdict, exact, judged
from cellformer.exporters.assemble import answer_key, exercise
from cellformer.exporters.assemble.answer_key import KEY, Answer
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.address import of_cell, quoted
from cellformer.exporters.compose.book import Book, Entry, Place, Reading, Sheet
from cellformer.exporters.edits.typed_formula import Names, RefusedError, TypedFormula
from cellformer.exporters.file import xlsx
from cellformer.exporters.file.number_formats import is_date
from cellformer.exporters.file.reading import Cell, WorkbookFile

MOST_GONE = 2  # labels that somebody may have typed over
UNKNOWN = ("#ERROR!", "#NAME?", "#N/IMPL!")  # of what IronCalc does not know
BEFORE = "reads another yellow cell, and that cell is not right"


@dataclass(frozen=True)
class Marked:
    """A yellow cell."""

    name: Annotated[str, "its name"]
    right: Annotated[bool, "whether it is"]
    said: Annotated[str, "the comment on the answer"]
    slips: Annotated[Sequence[str], "known errors found in the answer"] = ()


@dataclass(frozen=True)
class Grade:
    """The marks of a file."""

    file: str
    reader: str  # as typed in the sheet's name cell
    level: int
    exercises: Sequence[Sequence[Marked]]  # the cells of each

    def __repr__(self) -> str:
        return f"<Grade {cut(self.file)}: {self.score} of {len(self.exercises)}>"

    @property
    def score(self) -> int:
        """The number of exercises with all cells right."""
        return sum(all(cell.right for cell in cells) for cells in self.exercises)


class Marking:
    """A workbook of exercises that files are graded by."""

    def __init__(self, book: Book, answers: Sequence[Answer], level: int):
        self.book, self.answers, self.level = book, answers, level
        self.hidden, self.page = Hidden(book), exercise.sheet_name()
        self.looks = [book.clean, exercise.other_inputs(book)]
        self.right = [[exercises.number(a.right, look) for a in answers] for look in self.looks]
        self.slips = [
            {
                s.kind: v
                for s in a.slips
                if (v := exercises.number(s.formula, book.clean)) is not None
            }
            for a in answers
        ]

    def grade(self, file: WorkbookFile, path: str) -> Grade:
        """The marks of a file. Raises InputError for one whose hidden sheet was changed,
        or whose cells have moved."""
        check_in_place(self.book, self.answers, file)
        self.hidden.check(file)
        marks = self.marks([typed(file, a) for a in self.answers], defined(file), file.path)
        n = 1 + max(a.exercise for a in self.answers)
        groups = [
            [m for m, a in zip(marks, self.answers, strict=True) if a.exercise == e]
            for e in range(n)
        ]
        name = file[self.page][exercise.NAME] if self.page in file else None
        return Grade(path, "" if name is None else str(name), self.level, groups)

    def marks(
        self,
        cells: Sequence[Cell],
        names: Mapping[str, str] | None = None,
        path: Path | None = None,
    ) -> list[Marked]:
        """The marks of the yellow cells; `names` are those that the file defines, and its
        formats say which numbers are dates."""
        formulas = {k: c.formula for k, c in enumerate(cells) if c.formula is not None}
        if not formulas:
            return [self._mark(k, cell, (None, None), path) for k, cell in enumerate(cells)]
        numbers = {k: c.value for k, c in enumerate(cells) if c.formula is None}
        read = self.calculator.read(formulas, names)
        found = [self.calculator.values(which, read, numbers) for which in (0, 1)]
        computed = [[f.get(k) for f in found] for k in range(len(cells))]
        return self._after(
            [self._mark(k, cell, computed[k], path) for k, cell in enumerate(cells)], read
        )

    def _after(
        self, marks: Sequence[Marked], read: Mapping[int, TypedFormula | RefusedError]
    ) -> list[Marked]:
        """The marks. If a formula reads a wrong yellow cell, its mark does not guess at a
        mistake."""
        wrong = {self.calculator.cells[k] for k, mark in enumerate(marks) if not mark.right}

        def follows(k: int) -> bool:
            formula = read.get(k)
            return isinstance(formula, TypedFormula) and any(
                formula.reads(*at) for at in wrong - {self.calculator.cells[k]}
            )

        return [
            replace(mark, said=BEFORE, slips=()) if not mark.right and follows(k) else mark
            for k, mark in enumerate(marks)
        ]

    @cached_property
    def calculator(self) -> "Calculator":
        """The program that computes the formulas of files."""
        return Calculator(self.book, self.answers, self.looks)

    def _mark(
        self, k: int, cell: Cell, computed: Sequence[Any], path: Path | None = None
    ) -> Marked:
        a = self.answers[k]
        by_formula = cell.formula is not None
        value = computed[0] if by_formula else cell.value
        if isinstance(value, RefusedError):
            return Marked(a.name, False, str(value))
        if value is None or value == "":
            return Marked(a.name, False, "blank")
        if isinstance(value, bool) or str(value).startswith("#"):
            what = "a text" if isinstance(value, bool) else "an error"
            return Marked(a.name, False, f"{what}: {cut(str(value), 30)}")
        right = self.right[0][k]
        assert right is not None
        verdict = judged(value, right, self.slips[k], a.whole, dated=False)
        where = a.cell.grid.name, (a.cell.rect.top, a.cell.rect.left)
        if path and verdict.kind == NUMBER and verdict.mark > SIGN and is_date(path, *where):
            verdict = Verdict(DATE)
        if not verdict.right:
            return Marked(a.name, False, answer_key.told(a, verdict, value), verdict.slips)
        if by_formula:
            return self._holds(k, computed[1], a.name)
        if self.level > 1:
            return Marked(a.name, False, "the right number, but no formula")
        return Marked(a.name, True, "right, rounded" if verdict.rounded else "right")

    def _holds(self, k: int, value: Any, name: str) -> Marked:
        """Whether a formula that is right as built is so with other inputs."""
        right = self.right[1][k]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if right is None or (is_number and abs(value - right) <= exact(right)):
            return Marked(name, True, "right, by a formula")
        return Marked(name, self.level == 1, "right with these inputs, but not with other inputs")


def typed(file: WorkbookFile, a: Answer) -> Cell:
    """The contents of a yellow cell in a file. Raises InputError if its sheet is missing."""
    sheet = a.cell.grid.name
    if sheet not in file:
        raise InputError(f"the sheet {sheet} of this workbook is missing; use a new file")
    return file[sheet].cell((a.cell.rect.top, a.cell.rect.left))


def defined(file: WorkbookFile) -> dict[str, str]:
    """The names that a file defines for one area each."""
    return {
        name: f"{quoted(areas[0][0])}!{areas[0][1]}"
        for name, areas in file.names.items()
        if len(areas) == 1
    }


# --- formulas ------------------------------------------------------------------------------------


class Calculator:
    """IronCalc, on a workbook of values: only of the cells that formulas name."""

    def __init__(self, book: Book, answers: Sequence[Answer], looks: Sequence[Reading]):
        if find_spec("ironcalc") is None:
            raise InputError(
                "grade computes formulas with IronCalc; to install it, run: pip install "
                "'cellformer[verify]'"
            )
        import ironcalc

        self.book, self.looks = book, looks
        self.cells = [(a.cell.grid.name, a.cell.rect.top, a.cell.rect.left) for a in answers]
        places = book.places.values()
        self.places = {name: [p for p in places if p.sheet == name] for name in book.sheets}
        self.used = {name: _used(s, self.places[name]) for name, s in book.sheets.items()}
        self.model = ironcalc.create("exercises", "en", "UTC", "en")
        self.sheets = {name: k for k, name in enumerate(book.sheets)}
        for k, name in enumerate(book.sheets):
            if k:
                self.model.new_sheet()
            self.model.rename_sheet(k, name)

    def read(
        self, formulas: Mapping[int, str], names: Mapping[str, str] | None = None
    ) -> dict[int, TypedFormula | RefusedError]:
        """The formulas of some answers, by their numbers; `names` are those that a file defines
        besides the workbook's own."""
        found: dict[int, TypedFormula | RefusedError] = {}
        known = Names(self.book.sheets, {**(names or {}), **xlsx.names(self.book)})
        for k, text in formulas.items():
            try:
                found[k] = TypedFormula(text, self.cells[k][0], known)
            except RefusedError as error:
                found[k] = error
        return found

    def values(
        self,
        which: int,
        formulas: Mapping[int, str | TypedFormula | RefusedError],
        typed: Mapping[int, Any] | None = None,
    ) -> dict[int, Any]:
        """The values of the formulas of some answers, by their numbers, on the workbook as built
        (0) or with other inputs (1); `typed` are the other answers, blank if they are missing."""
        read = {**formulas, **self.read({k: f for k, f in formulas.items() if isinstance(f, str)})}
        followed = {k: f for k, f in read.items() if isinstance(f, TypedFormula)}
        held = {self.cells[k]: value for k, value in (typed or {}).items()}
        asked = {at for formula in followed.values() for at in self._cells(formula)}
        for at in sorted(asked - {*self.cells, *held}):
            held[at] = self._as_in(self.looks[which], *at)
        for at, value in held.items():
            self._put(at, value)
        for k, formula in followed.items():
            self._type(self.cells[k], f"={formula.text}")
        self.model.evaluate()
        found = {k: f if isinstance(f, RefusedError) else self._value(k) for k, f in read.items()}
        for at in {*held, *(self.cells[k] for k in followed)}:
            self._type(at, "")
        return found

    def _cells(self, formula: TypedFormula) -> Iterator[tuple[str, int, int]]:
        """The cells that a formula reads, without blank ones beyond the sheet's contents."""
        for sheet, rect in formula.areas:
            rows, columns = self.used[sheet]
            within = Rect(rect.top, min(rect.bottom, rows), rect.left, min(rect.right, columns))
            yield from ((sheet, *at) for at in within.cells())

    def _as_in(self, look: Reading, sheet: str, row: int, col: int) -> Any:
        """The value of a cell: of a block with the values of its graph, typed or computed."""
        place = next((p for p in self.places[sheet] if p.holds(row, col)), None)
        return look.in_block(place, row, col) if place else look.cell(sheet, row, col)

    def _value(self, k: int) -> Any:
        sheet, row, col = self.cells[k]
        found = self.model.get_cell_value(self.sheets[sheet], row + 1, col + 1)
        if found in UNKNOWN:
            return RefusedError(
                "cannot follow this formula: a function is misspelt, or IronCalc does not have it"
            )
        return found

    def _put(self, at: tuple[str, int, int], value: Any) -> None:
        if isinstance(value, float) and not np.isfinite(value):
            value = CellError("#NUM!")
        if isinstance(value, CellError):
            self._type(at, str(value))
        elif isinstance(value, bool) or not isinstance(value, int | float):
            self._type(at, "" if value is None else f"'{value}")
        else:
            self.model.update_cell_with_number(
                self.sheets[at[0]], at[1] + 1, at[2] + 1, float(value)
            )

    def _type(self, at: tuple[str, int, int], text: str) -> None:
        self.model.set_user_input(self.sheets[at[0]], at[1] + 1, at[2] + 1, text)


def _used(sheet: Sheet, places: Sequence[Place]) -> tuple[int, int]:
    """The number of rows and columns of a sheet that hold anything."""
    ends = [(row + 1, col + 1) for row, col in sheet.entries]
    ends += [(run.area.bottom, run.area.right) for run in sheet.runs]
    ends += [(p.top + p.size[0], p.left + p.size[1]) for p in places]
    return max((row for row, _ in ends), default=0), max((col for _, col in ends), default=0)


# --- what must not change ------------------------------------------------------------------------


def check_in_place(book: Book, answers: Sequence[Answer], file: WorkbookFile) -> None:
    """Raise InputError if the labels of a sheet with yellow cells are not where they were."""
    for name in dict.fromkeys(a.cell.grid.name for a in answers):
        labels = {
            at: entry.value
            for at, entry in book.sheets[name].entries.items()
            if isinstance(entry.value, str)
            and entry.value
            and entry.formula is None
            and theme.STYLES[entry.style].get("locked", True)
        }
        gone = [at for at, text in labels.items() if name in file and file[name][at] != text]
        if len(gone) > MOST_GONE:
            raise InputError(
                f"cells of the sheet {name} have moved, from row {min(gone)[0] + 1} on. Rows or "
                "columns were inserted, deleted or sorted; undo that, or use a new file"
            )


class Hidden:
    """The hidden sheet as it was written: texts, numbers, and the cells in formulas. Programs
    may spell formulas in other ways."""

    def __init__(self, book: Book):
        entries = book.sheets[KEY].entries
        self.expected = {at: _held(book, e) for at, e in entries.items() if at != exercise.FACTS}

    def check(self, file: WorkbookFile) -> None:
        """Raise InputError for a file whose hidden sheet is another one."""
        found = file[KEY].cells.items()
        cells = {at: c for at, c in found if c.formula or c.value not in (None, "")}
        changed = cells.keys() - self.expected.keys() - {exercise.FACTS}
        expected = self.expected.items()
        changed |= {at for at, cell in expected if not _same(cell, cells.get(at, Cell(None)))}
        if changed:
            where = of_cell(*min(changed))
            raise InputError(f"the hidden sheet {KEY} was changed at {where}; use a new file")


def _held(book: Book, entry: Entry) -> Cell:
    """A cell of the hidden sheet as it is written."""
    return Cell(entry.value) if entry.formula is None else Cell(None, book.text(entry.formula, KEY))


def _same(expected: Cell, cell: Cell) -> bool:
    """Whether a cell of the hidden sheet is as it was written."""
    if expected.formula is not None and cell.formula is not None:
        return expected.formula == cell.formula or _read(expected.formula) == _read(cell.formula)
    if expected.formula is not None or cell.formula is not None:
        return False
    if not isinstance(expected.value, int | float):
        return str(cell.value or "") == expected.value
    off = abs(cell.value - expected.value) if isinstance(cell.value, int | float) else np.inf
    return bool(off <= exact(expected.value))


def _read(formula: str) -> list[str]:
    """The cells and the numbers in a formula, in any order and spelling."""
    try:
        found = [t for t in Tokenizer(f"={formula}").items if t.type == Token.OPERAND]
    except (TokenizerError, IndexError):
        return [formula]
    areas = [t.value.replace("$", "").replace("'", "") for t in found if t.subtype == Token.RANGE]
    return sorted(areas + [repr(float(t.value)) for t in found if t.subtype == Token.NUMBER])
