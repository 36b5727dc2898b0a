"""Write docs/sources.md: every printed number of the source documents that the workbooks hold.

    python docs/sources.py

The workbooks are built, and their sheets Printed are read: a line for every number, with the
document and the section that print it, what the cells compute, the difference, and why.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import workbooks
from cellformer import names
from exporters.book import Book
from exporters.story import Held

TARGET = Path(__file__).parent / "sources.md"
DOCUMENTS = {
    "QKV Attention": "L. Erzegovesi, *Transformers and QKV Attention: A Primer* (2026)",
    "Embeddings and the Maps": "L. Erzegovesi, *Embeddings and the Maps We Draw of Them* (2026)",
    "The Final Step": "L. Erzegovesi, *The Final Step* (2026)",
    "Introduction": "*A Gentle Introduction to Transformers* (2025)",
    "Slides": "M. Sinclair, *Transformers* (lecture slides)",
    "Lecture notes": "Lecture notes on transformers, with a numerical example",
}
HEAD = """# What the sources print

Every printed number of the source documents that a workbook holds, beside what its cells compute.
`python docs/sources.py` writes it from the sheets *Printed*; a test holds it current. A number
**differs** where it is further from the recomputed one than its own rounding.

"""
COLUMNS = ["workbook", "section", "what", "printed", "recomputed", "difference", "differs", "note"]
SIGNIFICANT = 6  # digits


class Line(NamedTuple):
    """A number that is held, with what its cell computes."""

    workbook: str
    held: Held
    computed: float

    @property
    def differs(self) -> bool:
        """Whether it is further off than its rounding."""
        return abs(self.computed - self.held.printed) > 0.5 * 10.0**-self.held.decimals + 1e-6

    @property
    def document(self) -> str:
        """Which of the DOCUMENTS prints it."""
        return self.held.section.partition(",")[0]


def lines(find: Callable[[str], Book] = names.book) -> Iterator[Line]:
    """Every number that any workbook holds, in the order of the workbooks' sheets."""
    for name in workbooks.path():
        book = find(name)
        for held in book.held:
            yield Line(name, held, float(book.clean(held.cell)))


def page(found: list[Line]) -> str:
    """The page in Markdown: how many there are, then a table for each document."""
    rows = [HEAD, "| document | numbers | of them differ |\n|---|---|---|\n"]
    by_document = {key: [line for line in found if line.document == key] for key in DOCUMENTS}
    for key, of_it in by_document.items():
        rows.append(f"| {DOCUMENTS[key]} | {len(of_it)} | {sum(x.differs for x in of_it)} |\n")
    rows.append(f"| all | {len(found)} | {sum(x.differs for x in found)} |\n")
    for key, of_it in by_document.items():
        rows.append(f"\n## {DOCUMENTS[key]}\n\n")
        rows.append(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n")
        rows += [_row(line) for line in of_it]
    return "".join(rows)


def _row(line: Line) -> str:
    workbook, held, computed = line
    section = held.section.partition(",")[2].strip()
    note = held.note if line.differs else ""
    numbers = [held.printed, computed, computed - held.printed]
    cells = [
        workbook,
        section,
        held.what,
        *(f"{round(x, 9) + 0.0:.{SIGNIFICANT}g}" for x in numbers),
        "yes" if line.differs else "",
        note,
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    TARGET.write_text(page(list(lines())), encoding="utf-8")
