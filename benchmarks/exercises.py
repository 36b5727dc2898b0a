"""Exercises of the gallery in two programs: right by formula, number and rounding, and each slip.

    python benchmarks/exercises.py               # the twelve workbooks that the tests try, too
    python benchmarks/exercises.py shakespeare   # others, by name

All answers are typed into IronCalc and into LibreOffice, and every slip of each, at levels 1 and 3.
What is said must be what the engine says, to the letter. The exit code is 1 where it is not.
"""

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from exercised import TWELVE, InIronCalc, asked, said_in_libreoffice, told_wrongly, tries

ROW = "| {:<20} | {:>5} | {:>5} | {:>7} | {:>17} | {:>20} |"


def main(names: list[str]) -> int:
    """Try all exercises of some workbooks; gives how many answers were told wrongly."""
    heads = ("workbook", "level", "cells", "answers", "wrong in IronCalc", "in LibreOffice")
    print(ROW.format(*heads))
    print("|---|---|---|---|---|---|")
    total = [0, 0, 0, 0]
    for name in names or TWELVE:
        for level in (1, 3):
            n_cells, n_answers, wrong = crossed(name, level)
            counts = [n_cells, n_answers, *map(len, wrong)]
            total = [a + b for a, b in zip(total, counts, strict=True)]
            print(ROW.format(name, level, *counts), flush=True)
            for told in (*wrong[0][:5], *wrong[1][:5]):
                print("   ", told)
    print(ROW.format("all", "", *total))
    return sum(total[2:])


def crossed(name: str, level: int) -> tuple[int, int, list[list[str]]]:
    """How many cells a workbook asks for, how many answers were typed, and what was told wrongly in
    IronCalc and in LibreOffice."""
    found = asked(name, level)
    tried = [*tries(found, most=99)]
    with tempfile.TemporaryDirectory() as folder:
        sheet = InIronCalc(found, Path(folder))
        said = [sheet.said(one.typed) for one in tried]
        in_office = said_in_libreoffice(found, tried, Path(folder))
    n_answers = sum(len(one.typed) for one in tried)
    return len(found.answers), n_answers, [told_wrongly(tried, x) for x in (said, in_office)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
