"""Type over formulas in random places, alone and beside an edit: Start names the cell each time.

    python benchmarks/typed_over.py [PLACES] [WORKBOOK ...]

Each is typed and undone in LibreOffice, by hand, and in IronCalc, which checks small workbooks.
Printed is what failed, and how many were tried; the tests ask for fewer places.
"""

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from conftest import CellAt, InIronCalc, default_book
from libreoffice import Command, Typed, _type, told_of

import cellformer as cf
from cellformer.engine.cells.access import Rect
from cellformer.exporters.compose import digest, typed_over
from cellformer.exporters.compose.address import a1, quoted
from cellformer.exporters.compose.book import START, Book
from cellformer.exporters.compose.ranges import of_formulas
from cellformer.exporters.pages import ledger

NAMES = ("sampling", "cat-sat", "loss", "n-grams", "one-head", "dialogue-game")
LINE = (START, 2, 0)
OVER = (0.5, "a text", "", 3.0)  # "" deletes the formula


def places(book: Book) -> list[CellAt]:
    """All cells whose formulas are checked."""
    own = digest.SHEET, Rect(digest.SUMMARY, digest.END, 0, digest.END)
    ranges = of_formulas(book, [own, ledger.watch(book).line])
    cells = [(one.sheet, *at) for one in ranges for at in one.rect.cells()]
    return [at for at in cells if book.clean.cell(*at) is not None]


def tries(book: Book, n: int) -> Iterator[tuple[CellAt, Typed]]:
    """Random places, with what is typed: over the formula, and beside it into an input."""
    drawn = random.Random(5)
    inputs = [w.block for w in ledger.watched(book) if w.block.kind in ("weight", "setting")]
    for k, at in enumerate(drawn.sample(places(book), n)):
        over = {at: OVER[k % len(OVER)]}
        yield at, over
        block = drawn.choice(inputs)
        yield at, over | {book.cell(block.name, 0, 0): 7.25}


def named(at: CellAt) -> str:
    """What Start says of a cell."""
    sheet, row, col = at
    cell = f"{quoted(sheet)}!{a1(Rect(row, row + 1, col, col + 1))}"
    return f"the formula in {cell} was typed over: undo (Ctrl+Z)"


def faults(said: str, at: CellAt, typed: Typed) -> Iterator[str]:
    """What is wrong with what Start says."""
    if named(at) not in said:
        yield f"{at}: {said}"
    elif len(typed) > 1 and " edit" not in said:
        yield f"{at}: no edit: {said}"


def in_ironcalc(path: Path, book: Book, n: int) -> list[str]:
    """What fails in IronCalc."""
    sheet, found = InIronCalc(path), list[str]()
    for at, typed in tries(book, n):
        where = (sheet.number[at[0]], at[1] + 1, at[2] + 1)
        formula = sheet.model.get_cell_content(*where)
        with sheet.typed(typed):
            found += faults(str(sheet[LINE]), at, typed)
        sheet.model.set_user_input(*where, formula)
        sheet.model.evaluate()
        if not str(sheet[LINE]).startswith(ledger.NONE):
            found.append(f"{at}: undone: {sheet[LINE]}")
    return found


def in_libreoffice(path: Path, book: Book, n: int, folder: Path) -> list[str]:
    """What fails in LibreOffice."""
    tried = [*tries(book, n)]
    acts: list[list[Command]] = [[*_type(typed)] for _, typed in tried]
    rows, as_before = told_of(path, [LINE], acts, folder)
    found = [] if as_before else ["undoing everything leaves something else"]
    for (at, typed), (_, said) in zip(tried, rows, strict=True):
        found += faults(said, at, typed)
    return found


def main() -> None:
    """Try every workbook."""
    n, *names = sys.argv[1:] or ["30"]
    for name in names or NAMES:
        book = default_book(name)
        with tempfile.TemporaryDirectory() as folder:
            path = cf.write(book, Path(folder) / f"{name}.xlsx")
            asked = {"libreoffice": in_libreoffice(path, book, int(n), Path(folder) / "office")}
            if book.n_formulas <= typed_over.MOST_SINGLE:
                asked["ironcalc"] = in_ironcalc(path, book, int(n))
        for program, found in asked.items():
            print(f"{name}, {program}: {len(found)} of {2 * int(n)} fail", *found, sep="\n    ")


if __name__ == "__main__":
    main()
