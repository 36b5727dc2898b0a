"""Grading: what is in the yellow cells of a saved workbook of exercises.

The workbook is built again, and only what was typed is taken from the file: so a check that was
changed, or old values, grade nothing. A formula is computed by IronCalc on a workbook of values, as
built and with other inputs, which the file never shows: a formula must be right on both.
"""

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from engine.cells.access import Rect
from engine.cells.errors import InputError
from engine.cells.texts import cut
from engine.studies import exercises
from engine.studies.exercises import judged
from exporters.assemble import answer_key, exercise
from exporters.assemble.answer_key import KEY, Answer
from exporters.compose import theme
from exporters.compose.address import a1, position
from exporters.compose.book import Book, Entry, Reading
from exporters.file import xlsx
from exporters.file.reading import Cell, WorkbookFile

VARIED = ("weight", "setting", "table")  # the kinds of blocks whose numbers are changed
APART = 0.37  # how far other inputs are from those as built, as a share
ONE = r"\$?([A-Z]{1,3})\$?(\d+)"
REFERENCE = re.compile(rf"(?:('(?:[^']|'')+'|[A-Za-z_][\w.]*)!)?{ONE}(?::{ONE})?(?![\w(.])")
MOST_GONE = 2  # labels that somebody may have typed over
MOST_READ = 200_000  # cells that a formula names
NUMBER = re.compile(r"(?<![A-Za-z$\d.])\d+\.?\d*(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Marked:
    """What is in one yellow cell: 1 if it is right, and what is said of it."""

    name: str
    right: bool
    said: str
    slips: tuple[str, ...] = ()


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
        """How many exercises are right, all cells of them."""
        return sum(all(cell.right for cell in cells) for cells in self.exercises)


class Marking:
    """A workbook of exercises that files are graded by."""

    def __init__(self, book: Book, answers: Sequence[Answer], level: int):
        self.book, self.answers, self.level = book, answers, level
        self.hidden = Hidden(book)
        self.looks = [book.clean, other_inputs(book)]
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
        cells = [typed(file, a) for a in self.answers]
        formulas = {k: c.formula for k, c in enumerate(cells) if c.formula is not None}
        found = [self.calculator.values(k, formulas) if formulas else {} for k in (0, 1)]
        marks = [self._mark(k, cell, [f.get(k) for f in found]) for k, cell in enumerate(cells)]
        n = 1 + max(a.exercise for a in self.answers)
        groups = [
            [m for m, a in zip(marks, self.answers, strict=True) if a.exercise == e]
            for e in range(n)
        ]
        name = file[exercise.SHEET][exercise.NAME] if exercise.SHEET in file else None
        return Grade(path, "" if name is None else str(name), self.level, groups)

    @cached_property
    def calculator(self) -> "Calculator":
        """What computes the formulas of files."""
        return Calculator(self.book, self.answers, self.looks)

    def _mark(self, k: int, cell: Cell, computed: Sequence[Any]) -> Marked:
        a = self.answers[k]
        by_formula = cell.formula is not None
        value = computed[0] if by_formula else cell.value
        if value is None or value == "":
            return Marked(a.name, False, "blank")
        if isinstance(value, bool) or not isinstance(value, int | float):
            what = "an error" if str(value).startswith("#") else "a text"
            return Marked(a.name, False, f"{what}: {cut(str(value), 30)}")
        right = self.right[0][k]
        assert right is not None
        verdict = judged(float(value), right, self.slips[k])
        if not verdict.right:
            kinds = {slip.kind: a.told(slip) for slip in a.slips}
            said = answer_key.BETWEEN.join(kinds[kind] for kind in verdict.slips)
            return Marked(a.name, False, said or f"wrong: {value:.6g}", verdict.slips)
        if by_formula:
            return self._holds(k, computed[1], a.name)
        if self.level > 1:
            return Marked(a.name, False, "the right number, but no formula")
        return Marked(a.name, True, "right, rounded" if verdict.rounded else "right")

    def _holds(self, k: int, value: Any, name: str) -> Marked:
        """Whether a formula that is right as built is so with other inputs."""
        right = self.right[1][k]
        if right is None or not isinstance(value, int | float) or isinstance(value, bool):
            holds = right is None
        else:
            holds = abs(value - right) <= exercises.exact(right)
        if holds:
            return Marked(name, True, "right, by a formula")
        return Marked(name, self.level == 1, "right as built, but not for other inputs")


def typed(file: WorkbookFile, a: Answer) -> Cell:
    """What a file has in a yellow cell. Raises InputError if its sheet is missing."""
    sheet = a.cell.grid.name
    if sheet not in file:
        raise InputError(f"its sheet {sheet} is missing; take a new file")
    return file[sheet].cell((a.cell.rect.top, a.cell.rect.left))


def other_inputs(book: Book) -> Reading:
    """The values of a book whose numbers that are typed are others: each times its own factor, so
    that formulas are tried on numbers that no file shows."""
    graph = book.graph.varied(
        {
            name: values * (1 + APART * np.sin(1 + np.arange(values.size)).reshape(values.shape))
            for name, values in book.graph.inputs.items()
            if values.dtype == np.float64
            and book.graph[name].kind in ("weight", "setting", "table")
        }
    )
    return Reading(book, ChainMap(graph.computed, book.others))


# --- formulas ------------------------------------------------------------------------------------


class Calculator:
    """IronCalc, on a workbook of values: of the cells that formulas name, and nothing else."""

    def __init__(self, book: Book, answers: Sequence[Answer], looks: Sequence[Reading]):
        if find_spec("ironcalc") is None:
            raise InputError(
                "grade computes formulas by IronCalc: pip install 'cellformer[verify]'"
            )
        import ironcalc

        self.book, self.answers, self.looks = book, answers, looks
        self.names = {name.lower(): area for name, area in xlsx.names(book).items()}
        self.model = ironcalc.create("exercises", "en", "UTC", "en")
        self.sheets = {name: k for k, name in enumerate(book.sheets)}
        for k, name in enumerate(book.sheets):
            if k:
                self.model.new_sheet()
            self.model.rename_sheet(k, name)

    def values(self, which: int, formulas: Mapping[int, str]) -> dict[int, Any]:
        """The values of the formulas of some answers, by their numbers."""
        look, held = self.looks[which], set[tuple[str, int, int]]()
        own = {self._at(k) for k in formulas}
        texts = {k: self._spelt(text) for k, text in formulas.items()}
        for k, text in texts.items():
            for at in cells_named(text, self._at(k)[0]):
                if at[0] in self.sheets and at not in own and at not in held:
                    held.add(at)
                    self._put(at, value_at(self.book, look, *at))
        for k, text in texts.items():
            sheet, row, col = self._at(k)
            self.model.set_user_input(self.sheets[sheet], row + 1, col + 1, f"={text}")
        self.model.evaluate()
        found = {}
        for k in texts:
            sheet, row, col = self._at(k)
            found[k] = self.model.get_cell_value(self.sheets[sheet], row + 1, col + 1)
        for sheet, row, col in {*held, *own}:
            self.model.set_user_input(self.sheets[sheet], row + 1, col + 1, "")
        return found

    def _at(self, k: int) -> tuple[str, int, int]:
        cell = self.answers[k].cell
        return cell.grid.name, cell.rect.top, cell.rect.left

    def _put(self, at: tuple[str, int, int], value: Any) -> None:
        sheet, row, col = self.sheets[at[0]], at[1] + 1, at[2] + 1
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.model.set_user_input(sheet, row, col, "" if value is None else f"'{value}")
        else:
            self.model.update_cell_with_number(sheet, row, col, float(value))

    def _spelt(self, text: str) -> str:
        """A formula with addresses in place of the names of blocks."""

        def named(found: re.Match[str]) -> str:
            return self.names.get(found[0].lower(), found[0])

        return re.sub(r"[A-Za-z_][\w]*(?:\.[\w]+)*(?![\w(!])", named, text).replace("_xlfn.", "")


def cells_named(formula: str, here: str) -> Iterator[tuple[str, int, int]]:
    """The cells that a formula names: sheet, row, column."""
    n = 0
    for sheet, col, row, last_col, last_row in REFERENCE.findall(formula):
        name = sheet.strip("'").replace("''", "'") or here
        top, left = position(f"{col}{row}")
        bottom, right = position(f"{last_col}{last_row}") if last_col else (top, left)
        n += (bottom - top + 1) * (right - left + 1)
        if n > MOST_READ:
            return
        for at in Rect(top, bottom + 1, left, right + 1).cells():
            yield name, *at


def value_at(book: Book, look: Reading, sheet: str, row: int, col: int) -> Any:
    """The value of a cell: of a block with the values of its graph, typed or computed."""
    for place in book.places.values():
        if place.sheet == sheet and place.holds(row, col):
            i, j = row - place.top, col - place.left
            i, j = (j, i) if place.turned else (i, j)
            if not place.block.has(i, j):
                return None
            value = look.values[place.block.name][i, j]
            return value.item() if isinstance(value, np.generic) else value
    return look.cell(sheet, row, col)


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
                f"cells of its sheet {name} have moved, from row {min(gone)[0] + 1} on: rows or "
                "columns were inserted, deleted or sorted; undo that, or take a new file"
            )


class Hidden:
    """The hidden sheet as it was written: texts, numbers, and what formulas read. Programs may
    spell formulas in other ways."""

    def __init__(self, book: Book):
        entries = book.sheets[KEY].entries
        self.expected = {at: _held(book, e) for at, e in entries.items() if at != exercise.FACTS}

    def check(self, file: WorkbookFile) -> None:
        """Raise InputError for a file whose hidden sheet is another one."""
        found = file[KEY].cells.items()
        cells = {at: c for at, c in found if c.formula or c.value not in (None, "")}
        changed = cells.keys() - self.expected.keys() - {exercise.FACTS}
        for at, expected in self.expected.items():
            if not _same(expected, cells.get(at, Cell(None))):
                changed.add(at)
        if changed:
            row, col = min(changed)
            where = a1(Rect(row, row + 1, col, col + 1))
            raise InputError(f"its hidden sheet {KEY} was changed at {where}; take a new file")


def _held(book: Book, entry: Entry) -> Any:
    """A value, or what a formula reads."""
    return entry.value if entry.formula is None else _read(book.text(entry.formula, KEY))


def _same(expected: Any, cell: Cell) -> bool:
    """Whether a cell of the hidden sheet is as it was written."""
    if isinstance(expected, list):
        return cell.formula is not None and _read(cell.formula) == expected
    if cell.formula is not None:
        return False
    if isinstance(expected, str):
        return str(cell.value or "") == expected
    off = abs(cell.value - expected) if isinstance(cell.value, int | float) else np.inf
    return bool(off <= exercises.exact(expected))


def _read(formula: str) -> list[tuple[str, ...]]:
    """What a formula reads, and the numbers in it, in any order and spelling."""
    found = REFERENCE.findall(formula)
    plain = REFERENCE.sub("", formula)
    numbers = [(repr(float(n)),) for n in NUMBER.findall(re.sub(r'"[^"]*"', "", plain))]
    return sorted([(s.strip("'"), *at) for s, *at in found] + numbers)
