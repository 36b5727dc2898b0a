"""The command `grade`: the answers of a class, file by file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.results import NotMarked
from cellformer.engine import InputError
from cellformer.engine.cells.texts import cut
from cellformer.engine.studies.exercises import MOST_EXERCISES
from cellformer.exporters.edits.grading import Grade, Marked

RIGHT, WRONG = "✓", "–"
NUMBERS = [str(k + 1) for k in range(MOST_EXERCISES)]
HEADS = ("file", "name", "score", *NUMBERS, "what went wrong")
WIDEST, NAME = 40, 20  # columns of the files' names and of the readers', where a line has room


def grade(
    files: Annotated[
        list[Path],
        typer.Argument(help="Filled-in workbooks of exercises. With --lesson, lists of links."),
    ],
    lesson: Annotated[
        str | None, typer.Option(metavar="LINK", help="Link of the lesson, copied from its page.")
    ] = None,
) -> Answer:
    """Grade filled-in exercises: print the name, score and errors of each file.

    With --lesson, each file is a text or CSV file with a student's link on each line. The
    student's name may stand before the link. cellformer computes each answer again.

    Only the yellow cells count. IronCalc computes each formula of a student with the numbers of the
    workbook, and again with other numbers. If a file cannot be marked, the line of this file says
    why, and the exit code is 2.
    """
    from cellformer import lessons
    from cellformer.exercises import Grader

    if lesson is None:
        found = _Class(Grader().grade, files)
    else:
        answers = lessons.answers(files)
        found = _Class(lessons.Lessons(answers, lesson).grade, list(answers), "answer")
    return Answer(
        partial(_print, found), found.result, lambda: map(_record, found), 0, found.fault, HEADS
    )


@dataclass
class _Class:
    """The files of a class: each is graded when it is asked for, and once."""

    grade: Callable[[str | Path], Grade]
    files: Sequence[str | Path]
    noun: str = "file"
    done: list[Grade | NotMarked] = field(default_factory=list)

    def __iter__(self) -> Iterator[Grade | NotMarked]:
        for k, file in enumerate(self.files):
            if k == len(self.done):
                self.done.append(self._grade(file))
            yield self.done[k]

    def _grade(self, file: str | Path) -> Grade | NotMarked:
        try:
            return self.grade(file)
        except InputError as error:
            return NotMarked(str(file), str(error).removeprefix(f"{file}: "))

    def result(self) -> dict[str, Any]:
        """The marks as JSON."""
        grades = [found for found in self if isinstance(found, Grade)]
        return {
            "files": [{**asdict(found), "score": found.score} for found in grades],
            "not_marked": [found for found in self if isinstance(found, NotMarked)],
        }

    def fault(self) -> str:
        """The last line if a file was not marked, else an empty text."""
        missing = [found for found in self if isinstance(found, NotMarked)]
        if not missing:
            return ""
        first = cut(f"{missing[0].file}: {missing[0].why}", 250)
        n = len(missing)
        return (
            first
            if n == 1
            else f"{n} of {len(self.files)} {self.noun}s were not marked; the first: {first}"
        )


def _record(found: Grade | NotMarked) -> dict[str, str]:
    """The row of a file, by the heads of the table."""
    return dict(zip(HEADS, _row(found), strict=True))


def _row(found: Grade | NotMarked) -> list[str]:
    """The file, the reader's name, the score, a mark for each exercise, and a message."""
    if isinstance(found, NotMarked):
        return [found.file, "", "", *("" for _ in NUMBERS), found.why]
    marks = [RIGHT if all(c.right for c in cells) else WRONG for cells in found.exercises]
    said = [
        f"{k}: {_first_fault(cells)}"
        for k, cells in enumerate(found.exercises, 1)
        if not all(cell.right for cell in cells)
    ]
    score = f"{found.score} of {len(found.exercises)}"
    marks += [""] * (len(NUMBERS) - len(marks))
    return [found.file, found.reader, score, *marks, "; ".join(said)]


def _first_fault(cells: Sequence[Marked]) -> str:
    """The message about the first cell that is not right, and the number of such cells."""
    wrong = [cell for cell in cells if not cell.right]
    if len(cells) == 1:
        return wrong[0].said
    return f"{len(cells) - len(wrong)} of {len(cells)} cells; {wrong[0].name}: {wrong[0].said}"


def _print(found: _Class) -> None:
    """Print a table, each line when it is known."""
    width = min(WIDEST, max(len(str(file)) for file in found.files))
    console.print(_line(width, HEADS, "bold"))
    full = 0
    for one in found:
        console.print(_line(width, _row(one)))
        full += isinstance(one, Grade) and one.score == len(one.exercises)
    files = f"{len(found.files)} {found.noun}" + "s" * (len(found.files) != 1)
    line(f"{files}; in {full} of them, all answers are correct")


def _line(width: int, cells: Sequence[str], style: str = "") -> Table:
    """A line of the table, whose columns are as wide as in every other."""
    widths = [width, NAME, len("6 of 6"), *map(len, NUMBERS), None]
    table = Table(box=None, pad_edge=False, show_header=False)
    for one in widths:
        table.add_column(width=one, overflow="fold")
    table.add_row(*(Text(cell, style) for cell in cells))
    return table
