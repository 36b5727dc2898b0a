"""Write docs/sources.md: every printed number of the source documents that the workbooks hold.

    python docs/scripts/sources.py

The workbooks are built, and their sheets Printed are read: a line for every number, with the
document and the section that print it, what the cells compute, the difference, and why.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from cellformer import names, workbooks
from cellformer.engine.cells.block import Block
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.story import PrintedNumber

TARGET = Path(__file__).parents[1] / "sources.md"
DOCUMENTS = {  # whole titles; another document is called as its numbers call it
    "QKV Attention": "L. Erzegovesi, *Transformers and QKV Attention: A Primer* (2026)",
    "Embeddings and the Maps": "L. Erzegovesi, *Embeddings and the Maps We Draw of Them* (2026)",
    "The Final Step": "L. Erzegovesi, *The Final Step* (2026)",
    "Introduction": "*A Gentle Introduction to Transformers* (2025)",
    "Slides": "M. Sinclair, *Transformers* (lecture slides)",
    "Lecture notes": "Lecture notes on transformers, with a numerical example",
}
HEAD = """# What the sources print

The table has every printed number of the source documents that a workbook recomputes, beside the
result.
`python docs/scripts/sources.py` writes this page from the sheets *Printed*; a test keeps it
current. If a number differs from the recomputed one by more than its own rounding, its
**kind** says why:

- **slip here**: an error of its own: the tables printed before it do not lead to it
- **carried on**: the tables printed before it lead to it, with their slips and their rounding
- **rounded**: off by at most one unit of its last digit: rounded the wrong way, or too early
- **other settings**: for another size, price or vector than the cells have; not an error
- **other training**: from another model, trained on the same task; not an error

**typed**: the number is also typed in the workbook, not computed. If both are the same, this shows
only that it was copied correctly.

"""
COLUMNS = ["workbook", "section", "what", "printed", "recomputed", "difference", "kind", "note"]
SLIP, CARRIED, ROUNDED, TYPED = "slip here", "carried on", "rounded", "typed"
KINDS = (SLIP, CARRIED, ROUNDED, "other settings", "other training", TYPED)
SIGNIFICANT = 6  # digits


class Line(NamedTuple):
    """A number that is held, with what its cell computes."""

    workbook: str
    held: PrintedNumber
    computed: float
    before: float | None  # what the tables printed before it give
    typed: bool  # whether the workbook has it typed, too

    @property
    def kind(self) -> str:
        """Which of the KINDS it is; "" for one that is computed, and as printed."""
        if self._near(self.computed):
            return TYPED if self.typed else ""
        if self.held.other:
            return self.held.other
        if self._near(self.computed, 1.0):
            return ROUNDED
        return CARRIED if self.before is not None and self._near(self.before) else SLIP

    @property
    def note(self) -> str:
        """Why this number is not as printed."""
        if self.kind in ("", TYPED):
            return ""
        if self.before is not None and self.kind in (SLIP, CARRIED):
            does = "gives" if self.kind == CARRIED else "gives instead"
            return f"what is printed before {does} {round(self.before, 9):.{SIGNIFICANT}g}"
        return self.held.note or f"rounds to {self.computed:.{self.held.decimals}f}"

    def _near(self, value: float, units: float = 0.5) -> bool:
        return abs(value - self.held.printed) <= units * 10.0**-self.held.decimals + 1e-6

    @property
    def document(self) -> str:
        """Which of the DOCUMENTS prints it."""
        return self.held.section.partition(",")[0]


def lines(find: Callable[[str], Book] = names.book) -> Iterator[Line]:
    """Every number that any workbook holds, in the order of the workbooks' sheets."""
    for name in workbooks.path():
        book = find(name)
        for held in book.held:
            before = None if held.before is None else float(book.clean(held.before))
            computed = float(book.clean(held.cell))
            yield Line(name, held, computed, before, _is_typed(book, held))


def _is_typed(book: Book, held: PrintedNumber) -> bool:
    """Whether what stands beside a printed number is no more than a typed one."""
    sheet, at = book.locate(held.cell)
    formula = book.sheets[sheet].entries[at.top, at.left].formula
    read = [] if formula is None else list(formula.areas())
    if len(read) != 1 or not isinstance(read[0].grid, Block) or read[0].grid.computed:
        return False
    return read[0].rect.size == 1 and book.clean(read[0]) == book.clean(held.cell)


def page(found: list[Line]) -> str:
    """The page in Markdown: how many there are, then a table for each document."""
    heads = ["document", "numbers", *KINDS]
    rows = [HEAD, f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|\n"]
    titles = DOCUMENTS | {x.document: x.document for x in found if x.document not in DOCUMENTS}
    by_document = {key: [line for line in found if line.document == key] for key in titles}
    for title, of_it in [*((titles[key], x) for key, x in by_document.items()), ("all", found)]:
        kinds = Counter(line.kind for line in of_it)
        counts = " | ".join(str(kinds[kind]) for kind in KINDS)
        rows.append(f"| {title} | {len(of_it)} | {counts} |\n")
    for key, of_it in by_document.items():
        rows.append(f"\n## {titles[key]}\n\n")
        rows.append(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n")
        rows += [_row(line) for line in of_it]
    return "".join(rows)


def _row(line: Line) -> str:
    held, section = line.held, line.held.section.partition(",")[2].strip()
    numbers = [held.printed, line.computed, line.computed - held.printed]
    shown = [f"{round(x, 9) + 0.0:.{SIGNIFICANT}g}" for x in numbers]
    cells = [line.workbook, section, held.what, *shown, line.kind, line.note]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    TARGET.write_text(page(list(lines())), encoding="utf-8")
