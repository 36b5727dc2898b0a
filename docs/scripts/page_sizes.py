"""Write the sizes of the gallery's pages into docs/page.md, between its two marks.

cellformer build --all -o FOLDER
python docs/scripts/page_sizes.py FOLDER
"""

import re
import sys
from pathlib import Path

from cellformer import workbooks

TARGET = Path(__file__).parents[1] / "page.md"
MARKED = re.compile(r"(?<=<!--sizes-->\n).*?(?=<!--/-->)", re.DOTALL)
PART = re.compile(r'<script type="text/plain" id="(\w+)">([^<]*)')
HEAD = (
    "| workbook | page | its weights | its scripts and style | the .xlsx |\n|---|---|---|---|---|\n"
)


def table(folder: Path) -> str:
    """A row for each workbook of a folder that `build --all` wrote."""
    return HEAD + "".join(row(folder, name) for name in workbooks.path())


def row(folder: Path, name: str) -> str:
    """A page, two of its parts, and its workbook; a page that holds its workbook says so."""
    page = folder / f"{name}.html"
    parts = {part: len(held) for part, held in PART.findall(page.read_text(encoding="utf-8"))}
    shown = (
        kilobytes(page.stat().st_size) + ", its workbook inside" * bool(parts["book"]),
        kilobytes(parts["weights"]) if parts["weights"] >= 1000 else "",
        kilobytes(parts["script"] + parts["style"]),
        kilobytes((folder / f"{name}.xlsx").stat().st_size),
    )
    return f"| `{name}` | {' | '.join(shown)} |\n"


def kilobytes(size: int) -> str:
    """A size in thousands of bytes."""
    return f"{round(size / 1000):,} KB"


if __name__ == "__main__":
    rows = table(Path(sys.argv[1]))
    TARGET.write_text(MARKED.sub(lambda _: rows, TARGET.read_text("utf-8")), encoding="utf-8")
