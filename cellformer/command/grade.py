"""The command `grade`: the answers of a class, file by file."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from cellformer.command.printing import console, line
from engine import InputError
from engine.cells.texts import in_csv
from exporters.edits.grading import Grade, Marked

RIGHT, WRONG = "✓", "–"


def grade(
    files: Annotated[list[Path], typer.Argument(help="Workbooks with exercises, filled in.")],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, a line for each file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, cell by cell.")] = False,
) -> None:
    """Grade filled-in exercises: for each file a name, a score, and what went wrong where.

    Only what stands in the yellow cells counts. Formulas are computed on the numbers as built and
    on others, by IronCalc. Files whose hidden sheet was changed are refused, and named.
    """
    if as_csv and as_json:
        raise InputError("--csv and --json cannot be combined: give one of them")
    from cellformer.exercises import Grader

    grader, grades, refused = Grader(), list[Grade](), list[str]()
    for file in files:
        try:
            grades.append(grader.grade(file))
        except InputError as error:
            refused.append(str(error))
    if as_json:
        print(json.dumps([_plain(found) for found in grades], indent=1, ensure_ascii=False))
    elif as_csv:
        print(_csv(grades), end="")
    elif grades:
        _print(grades)
    if refused:
        raise InputError("; ".join(refused))


def _plain(found: Grade) -> dict[str, object]:
    return {**asdict(found), "score": found.score}


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


def _csv(grades: Sequence[Grade]) -> str:
    out = io.StringIO()
    if grades:
        csv.writer(out, lineterminator="\n").writerows(
            [in_csv(text) for text in row] for row in _rows(grades)
        )
    return out.getvalue()


def _print(grades: Sequence[Grade]) -> None:
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
