"""`build --all`: every workbook in a folder, each with its page, and two indexes."""

from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import workbooks
from cellformer import names
from cellformer.command import release
from cellformer.command.answer import Answer
from cellformer.command.printing import console, line
from engine import InputError
from exporters.compose.book import Book
from exporters.file import xlsx
from exporters.web import page

INDEX = "index.xlsx"


def build(folder: Path) -> Answer:
    """Write every workbook and its page into a folder, with indexes and checksums."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder} ({error.strerror}); choose another with -o"
        ) from None
    sizes = {}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=len(workbooks.path()))
        for name in workbooks.path():
            bar.update(task, description=f"{name:<22}")
            book = names.book(name)
            xlsx.write(book, folder / f"{name}.xlsx")
            page.write(book, folder / f"{name}.html")
            sizes[name] = (len(book.sheets), book.n_formulas)
            bar.advance(task)
    xlsx.write(index(sizes), folder / INDEX)
    release.add(folder, sizes)
    n_formulas = sum(n for _, n in sizes.values())
    told = f"{len(sizes)} workbooks and their pages, {n_formulas:,} formulas"
    told = f"{folder}: {told}; {folder / release.INDEX} and {INDEX} lead to them"
    beside = sorted(str(file) for file in folder.rglob("*") if file.is_file())
    return Answer(
        lambda: line(told),
        lambda: {"file": str(folder), "beside": beside, "formulas": n_formulas},
    )


def index(sizes: dict[str, tuple[int, int]]) -> Book:
    """A sheet with a link to each workbook, in learning order; `sizes` has their
    sheets and formulas."""
    book = Book("gallery")
    sheet = book.sheet("Gallery")
    sheet.widths = {0: 11, 1: 24, 2: 80, 3: 7, 4: 9, 5: 10}
    sheet.put(0, 0, "cellformer: the gallery", "title")
    sheet.put(1, 0, "Keep this file beside the others: each name opens a workbook", "note")
    text = "Read them from top to bottom: a workbook uses what those above it explain"
    sheet.put(2, 0, text, "note")
    row, place = 4, 0
    for topic, listed in workbooks.by_topic().items():
        sheet.put(row, 0, topic, "heading")
        for col, head in enumerate(("level", "sheets", "formulas"), 3):
            sheet.put(row, col, head, "head")
        for name in listed:
            row, place = row + 1, place + 1
            sheet.put(row, 0, "start here" if name == workbooks.first() else place, "row number")
            sheet.link(row, 1, name, f"external:{name}.xlsx")
            sheet.put(row, 2, workbooks.title(name).partition(": ")[2])
            sheet.put(row, 3, workbooks.find(name).LEVEL, "count")
            sheet.put(row, 4, sizes[name][0], "count")
            sheet.put(row, 5, sizes[name][1], "thousands")
        row += 2
    for level, what in workbooks.LEVELS.items():
        sheet.put(row, 0, f"level {level}", "row label")
        sheet.put(row, 1, what, "note")
        row += 1
    return book
