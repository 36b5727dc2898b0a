"""Every exercise of the gallery in IronCalc: right by formula, number and rounding, and each slip.

    python benchmarks/exercises.py               # all workbooks at levels 1 and 3
    python benchmarks/exercises.py cat-sat loss

For each workbook and level: how many answers were tried, and those that were told wrongly.
"""

import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from exercised import InIronCalc, asked, tries

import workbooks


def main(names: list[str]) -> None:
    """Try all exercises of some workbooks."""
    for name in names or workbooks.path():
        for level in (1, 3):
            found = asked(name, level)
            with tempfile.TemporaryDirectory() as folder:
                sheet = InIronCalc(found, Path(folder))
            n, wrong = 0, []
            for tried in tries(found, most=99):
                for said, expected in zip(sheet.said(tried.typed), tried.said, strict=True):
                    n += 1
                    if not any(text in said for text in expected):
                        wrong.append((said, expected))
            n_asked = 1 + found.answers[-1].exercise
            counted = f"{n_asked} exercises, {len(found.answers)} cells, {n} answers"
            print(f"{name:<22} level {level}: {counted}, {len(wrong)} told wrongly", flush=True)
            for said, expected in wrong[:5]:
                print("   ", said, expected)


if __name__ == "__main__":
    main(sys.argv[1:])
