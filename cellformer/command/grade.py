"""The command `grade`: the answers of a class, file by file."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from cellformer.command.answer import Answer
from cellformer.command.printing import console, line
from engine import InputError
from exporters.edits.grading import Grade, Marked

RIGHT, WRONG = "✓", "–"


def grade(
    files: Annotated[list[Path], typer.Argument(help="Workbooks with exercises, filled in.")],
) -> Answer:
    """Grade filled-in exercises: for each file a name, a score, and what went wrong where.

    Only what stands in the yellow cells counts. Formulas are computed on the numbers as built and
    on others, by IronCalc. Files whose hidden sheet was changed are refused, and named.
    """
    from cellformer.exercises import Grader

    grader, grades, refused = Grader(), list[Grade](), list[str]()
    for file in files:
        try:
            grades.append(grader.grade(file))
        except InputError as error:
            refused.append(str(error))
    return Answer(
        partial(_print, grades),
        lambda: {"files": [{**asdict(found), "score": found.score} for found in grades]},
        partial(_records, grades),
        fault="; ".join(refused),
    )


def _rows(grades: Sequence[Grade]) -> list[list[str]]:
    """A row for each file: its name, the reader's, the score, the exercises, and what is said."""
    n = max(len(found.exercises) for found in grades)
    rows = [["file", "name", "score", *(str(k + 1) for k in range(n)), "what went wrong"]]
    for found in grades:
        marks = [RIGHT if all(c.right for c in cells) else WRONG for cells in found.exercises]
        said = [
            f"{k}: {_first_fault(cells)}"
            for k, cells in enumerate(found.exercises, 1)
            if not all(cell.right for cell in cells)
        ]
        score = f"{found.score} of {len(found.exercises)}"
        marks += [""] * (n - len(marks))
        rows.append([found.file, found.reader, score, *marks, "; ".join(said)])
    return rows


def _first_fault(cells: Sequence[Marked]) -> str:
    """What is said of the first cell that is not right, and of how many."""
    wrong = [cell for cell in cells if not cell.right]
    if len(cells) == 1:
        return wrong[0].said
    return f"{len(cells) - len(wrong)} of {len(cells)} cells; {wrong[0].name}: {wrong[0].said}"


def _records(grades: Sequence[Grade]) -> list[dict[str, str]]:
    """A row for each file, by the heads of the table."""
    head, *rows = _rows(grades) if grades else [[]]
    return [dict(zip(head, row, strict=True)) for row in rows]


def _print(grades: Sequence[Grade]) -> None:
    if not grades:
        return
    head, *rows = _rows(grades)
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    full = sum(found.score == len(found.exercises) for found in grades)
    files = "1 file" if len(grades) == 1 else f"{len(grades)} files"
    line(f"{files}, {full} with everything right")
