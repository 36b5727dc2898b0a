"""Answers to exercises, right and wrong, and what is to be said of each, in any program."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cellformer import exercises
from engine.studies.exercises import number
from exporters.assemble.answer_key import KEY, RIGHT, ROUNDED, Answer
from exporters.compose.book import Book, Filled
from exporters.file import xlsx

SAID = 10  # the column of Key that says what an answer is
SLIPS = 6  # of each cell, in a test


class Asked(NamedTuple):
    """A workbook with exercises, and its yellow cells."""

    book: Book
    answers: Sequence[Answer]

    def write(self, folder: Path, name: str) -> Path:
        """Its file."""
        return xlsx.write(self.book, folder / f"{name}.xlsx")

    @property
    def said(self) -> list[tuple[str, int, int]]:
        """The cells that say what each answer is."""
        formulas = self.book.sheets[KEY].entries.items()
        rows = [row for (row, col), entry in formulas if col == SAID and entry.formula is not None]
        return [(KEY, row, SAID) for row in sorted(rows)[-len(self.answers) :]]


@cache
def asked(name: str, level: int = 1) -> Asked:
    """The exercises of a workbook, built once for all tests of a process."""
    return Asked(*exercises.recipe(name, level).asked())


def at(answer: Answer) -> tuple[str, int, int]:
    """The place of a yellow cell."""
    return answer.cell.grid.name, answer.cell.rect.top, answer.cell.rect.left


class InIronCalc:
    """A workbook with exercises, open in IronCalc."""

    def __init__(self, found: Asked, folder: Path):
        import ironcalc

        path = found.write(folder, "exercise")
        self.found = found
        self.model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
        properties = self.model.get_worksheets_properties()
        self.sheets = {sheet["name"]: k for k, sheet in enumerate(properties)}

    def said(self, typed: Mapping[tuple[str, int, int], float | str]) -> list[str]:
        """What is said of each answer when these are typed, and nothing into other cells."""
        for a in self.found.answers:
            sheet, row, col = at(a)
            text = typed.get(at(a), "")
            text = text.replace("_xlfn.", "") if isinstance(text, str) else repr(text)
            self.model.set_user_input(self.sheets[sheet], row + 1, col + 1, text)
        self.model.evaluate()
        return [str(self.value(*cell)) for cell in self.found.said]

    def value(self, sheet: str, row: int, col: int) -> object:
        return self.model.get_cell_value(self.sheets[sheet], row + 1, col + 1)

    def errors(self) -> list[tuple[str, int, int]]:
        """The formula cells that show an error."""
        return [
            (name, *cell)
            for name, sheet in self.found.book.sheets.items()
            for cell, entry in sheet.entries.items()
            if entry.formula is not None and str(self.value(name, *cell)).startswith("#")
        ]


class Try(NamedTuple):
    """What is typed into yellow cells, and what is to be said of each."""

    typed: Mapping[tuple[str, int, int], float | str]
    said: Sequence[
        Sequence[str]
    ]  # for each cell: texts of which one is, or is part of, what is said


def tries(found: Asked, most: int = SLIPS) -> Iterator[Try]:
    """Every cell right by formula, by number, and rounded; then each of its first slips."""
    look, cells = found.book.clean, [at(a) for a in found.answers]
    rights = [right_number(a, look) for a in found.answers]
    yield Try(
        dict(zip(cells, map(formula(found.book), found.answers), strict=True)), _all(RIGHT, cells)
    )
    yield Try(dict(zip(cells, rights, strict=True)), _all(RIGHT, cells))
    rounded = [[RIGHT, ROUNDED]] * len(cells)
    yield Try({c: round(x, 3) for c, x in zip(cells, rights, strict=True)}, rounded)
    for k in range(min(most, max(len(a.slips) for a in found.answers))):
        typed, said = dict[tuple[str, int, int], float | str](), []
        for cell, a in zip(cells, found.answers, strict=True):
            if k < len(a.slips):
                typed[cell] = slip_number(a, k, look)
                alike = [s for s in range(len(a.slips)) if _alike(a, k, s, look)]
                said.append([a.told(a.slips[s]) for s in alike])
            else:
                said.append(["type a number"])
        yield Try(typed, said)


def formula(book: Book) -> Any:
    """What gives the text of a cell's right formula, as a reader would write it."""

    def text(a: Answer) -> str:
        return "=" + book.text(Filled(a.block, a.i, a.j, book.locate), a.cell.grid.name)

    return text


def right_number(a: Answer, look: Any) -> float:
    """The right number."""
    found = number(a.right, look)
    assert found is not None
    return found


def slip_number(a: Answer, k: int, look: Any) -> float:
    """What the k-th slip leads to."""
    found = number(a.slips[k].formula, look)
    assert found is not None
    return found


def _alike(a: Answer, k: int, s: int, look: Any) -> bool:
    """Whether two slips lead to one number."""
    return abs(slip_number(a, k, look) - slip_number(a, s, look)) < 1e-8


def _all(text: str, cells: Sequence[Any]) -> list[list[str]]:
    return [[text]] * len(cells)
