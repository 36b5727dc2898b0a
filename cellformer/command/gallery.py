"""`build --all`: every workbook in a folder, each with its page, and two indexes."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import workbooks
from cellformer import names
from cellformer.command import release
from cellformer.command.answer import Answer
from cellformer.command.many import Sharing, progress
from cellformer.command.printing import line
from cellformer.version import __version__
from cellformer.work import Kept, done
from engine import InputError
from engine.models import formats
from exporters.compose.book import Book
from exporters.file import xlsx
from exporters.web import page

INDEX = "index.xlsx"


def build(folder: Path, sharing: Sharing) -> Answer:
    """Write every workbook and its page into a folder, with indexes and checksums."""
    names_ = workbooks.path()
    both = [(folder / f"{name}.xlsx", folder / f"{name}.html") for name in names_]
    counts = _shared(partial(_one, folder.absolute()), names_, folder, both, sharing)
    sizes = dict(zip(names_, map(tuple, counts), strict=True))
    xlsx.write(index(sizes), folder / INDEX)
    release.add(folder, sizes)
    n_formulas = sum(n for _, n in sizes.values())
    told = f"{len(sizes)} workbooks and their pages, {n_formulas:,} formulas"
    return _answer(folder, f"{told}; {folder / release.INDEX} and {INDEX} lead to them", n_formulas)


def _answer(folder: Path, told: str, n_formulas: int) -> Answer:
    beside = sorted(str(file) for file in folder.rglob("*") if file.is_file())
    return Answer(
        lambda: line(f"{folder}: {told}"),
        lambda: {"file": str(folder), "beside": beside, "formulas": n_formulas},
    )


def _one(folder: Path, name: str) -> tuple[int, int]:
    """Write a workbook and its page; how many sheets and formulas they have."""
    book = names.book(name)
    xlsx.write(book, folder / f"{name}.xlsx")
    page.write(book, folder / f"{name}.html")
    return len(book.sheets), book.n_formulas


def build_models(models: Path, folder: Path, make: partial[Any], sharing: Sharing) -> Answer:
    """Write the workbook of every model in a folder into another, by `make(file, name)`. Raises
    InputError."""
    found = {
        str(path.absolute()): folder / f"{formats.title(str(path))}.xlsx"
        for path in sorted(models.iterdir())
        if formats.find(str(path))
    }
    if not found:
        raise InputError(f"{models} holds no models; name a folder of folders, or of files")
    if len({*found.values()}) < len(found):
        raise InputError(f"two models in {models} have one name; rename one of them")
    task = partial(_one_model, make, folder.absolute())
    files = [(file,) for file in found.values()]
    n_formulas = sum(_shared(task, list(found), folder, files, sharing))
    return _answer(folder, f"{len(found)} workbooks, {n_formulas:,} formulas", n_formulas)


def _one_model(make: partial[Any], folder: Path, name: str) -> int:
    """Write the workbook of a model; how many formulas it has. Raises InputError that names it."""
    try:
        with redirect_stdout(StringIO()):
            found: int = make(folder / f"{formats.title(name)}.xlsx", name)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    return found


def _shared(
    task: partial[Any],
    parts: Sequence[str],
    folder: Path,
    files: Sequence[Sequence[Path]],
    sharing: Sharing,
) -> list[Any]:
    """What a task returns for each part, which writes files into a folder that all workers see."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder} ({error.strerror}); choose another with -o"
        ) from None
    told = [__version__, _plain(task), list(parts)]
    kept: Kept[Any] = Kept(folder / INDEX, told, sharing.resume, "workbooks", len(parts))
    there = {k for k, made in enumerate(files) if all(path.is_file() for path in made)}
    missing = [k for k in range(len(parts)) if k not in there & kept.results.keys()]
    with kept, sharing.workers() as workers, progress("building", len(parts)) as (tell, advance):
        advance(len(parts) - len(missing))
        for n, counts in done(task, [parts[k] for k in missing], workers, tell):
            kept.add(missing[n], counts)
            advance(1)
    return [kept.results[k] for k in range(len(parts))]


def _plain(task: partial[Any]) -> str:
    """What a task does, as a text that is the same in every process."""
    given = [_plain(each) if isinstance(each, partial) else repr(each) for each in task.args]
    return f"{task.func.__name__}({', '.join(given)})"


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
