"""The questions of exercises, in words: a cell by its name, the labels around it, the number of
cells, and the meaning of its block."""

import re
from collections.abc import Sequence

from cellformer.engine.cells.block import Block
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.texts import cut
from cellformer.engine.studies.exercises import Exercise
from cellformer.exporters.compose.book import Book, Sheet
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.model.words import meaning

TELLING = ("block", "heading", "equation")  # styles of texts that say what a table is
LONGEST_NAME, LONGEST_TASK = 54, 120  # characters of the two lines


def question(book: Book, exercise: Exercise) -> str:
    """The question: the name of the cell, and the labels of its row and column."""
    (i, j), n = exercise.cells[0], len(exercise.cells)
    name = ".".join(exercise.block.name.split(".")[-2:]).lstrip(".0123456789")
    cells = f"{name}[{i},{j}]" if n == 1 else worded("{name}, {n} cells", name=name, n=n)
    texts = (cells, *_labels(book, exercise))
    return AsIs(cut(" · ".join(text for text in texts if text), LONGEST_NAME))


def task(book: Book, exercise: Exercise, whole: bool) -> str:
    """The task: the labels, the number of cells, and the meaning of the block."""
    n, block = len(exercise.cells), exercise.block
    if n == 1:
        kind = worded("one whole number") if whole else worded("one number")
    else:
        kind = worded("{n} whole numbers" if whole else "{n} numbers", n=n)
    what = meaning_of(book, block).partition(";")[0]
    if isinstance(book, ModelBook):
        return AsIs(cut(f"{kind} · {what}", LONGEST_TASK))
    told = worded("{what}: {kind}", what=_which(book, exercise), kind=kind)
    return AsIs(cut(f"{told} · {what}", LONGEST_TASK))


def _which(book: Book, exercise: Exercise) -> str:
    """The numbers of a table that the task asks for, by its labels or by their places."""
    (down, across), (i, j) = _labels(book, exercise), exercise.cells[0]
    place = book.places[exercise.block.name]
    i, j = (j, i) if place.turned else (i, j)
    rows, columns = place.size
    if len(exercise.cells) > 1:
        if across:
            return worded("column {name}", name=across)
        return worded("row {name}", name=down or i + 1)
    if columns == 1 and across:
        return _of_line(across, down, i, rows)
    if rows == 1 and down:
        return _of_line(down, across, j, columns)
    return worded(
        "row {row}, column {column} (size {n} × {m})",
        row=down or i + 1,
        column=across or j + 1,
        n=rows,
        m=columns,
    )


def _of_line(name: str, entry: str, k: int, n: int) -> str:
    """One cell of a table that is one line, by the labels of both."""
    if n == 1:
        return worded("{name} of {entry}", name=name, entry=entry) if entry else name
    if not entry:
        return worded("{name}, number {k} of {n}", name=name, k=k + 1, n=n)
    return worded("{name} of {entry}, number {k} of {n}", name=name, entry=entry, k=k + 1, n=n)


def _labels(book: Book, exercise: Exercise) -> tuple[str, str]:
    """The labels of its row and of its column; empty texts if there are none."""
    place = book.places[exercise.block.name]
    sheet, rect = book.sheet(place.sheet), place.rect(exercise.rect)
    down = _label(book, sheet, range(place.left - 1, -1, -1), [rect.top], rect.bottom - rect.top)
    across = _label(book, sheet, [rect.left], range(place.top - 1, -1, -1), rect.right - rect.left)
    return down, across


def meaning_of(book: Book, block: Block) -> str:
    """The meaning of a block: in a model a few words, in a worksheet the title of the table."""
    if isinstance(book, ModelBook):
        return meaning(block)
    place = book.places[block.name]
    texts = {
        at: str(entry.value)
        for at, entry in book.sheet(place.sheet).entries.items()
        if entry.style in TELLING and isinstance(entry.value, str)
    }
    own = [texts.get((place.top - above, place.left), block.name) for above in (1, 2)]
    titles = [text for text in own if text != block.name]
    named = re.compile(rf"(?<!\w){re.escape(block.name)}(?!\w)")
    lines = [part for text in texts.values() for part in re.split(r"\s{3,}", text)]
    mentions = [line for line in lines if named.match(line) and line != block.name]
    entries = book.sheet(place.sheet).entries
    before = [at for at in texts if at < (place.top, 0) and entries[at].style == "heading"]
    above = [texts[max(before)]] if before else []
    purpose = book.sheet(place.sheet).purpose
    return [*titles, *mentions, *above, worded(purpose) or place.sheet][0].rstrip(":")


def _label(book: Book, sheet: Sheet, cols: Sequence[int], rows: Sequence[int], n: int) -> str:
    """The nearest label left of a cell, or above it, of cells that lie in one line with it."""
    if n > 1:
        return ""
    for row in rows:
        for col in cols:
            entry = sheet.entries.get((row, col))
            run = next((r for r in sheet.runs if r.area.covers(sheet[row, col].rect)), None)
            if (entry and entry.style.endswith(("label", "token", "word", "head", "block"))) or run:
                value = book.clean.cell(sheet.name, row, col)
                return f"‘{value}’" if isinstance(value, str) and value else ""
    return ""
