"""Many workbooks: the gallery in a folder, with pages and indexes, or the models of a folder.

A workbook is a part of the work (`cellformer.work`); workers write the files, so a cluster needs a
folder that all of them see.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from cellformer import names, release, workbooks
from cellformer.engine.cells.arguments import explained
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import possible
from cellformer.engine.models import formats
from cellformer.exporters.compose.book import Book
from cellformer.exporters.file import xlsx
from cellformer.exporters.web import page
from cellformer.kept import Kept
from cellformer.stamps import stamp
from cellformer.work import HERE, Workers, done

INDEX = "index.xlsx"
Sizes = dict[str, tuple[int, int]]  # of each workbook: its sheets, its formulas


@dataclass(frozen=True)
class Run:
    """The workers of a run, whether it resumes a stopped one, and what to call as it goes."""

    workers: Workers = HERE
    resume: bool = False
    tell: Callable[[str], None] = print
    advance: Callable[[int], None] = lambda n: None  # by so many workbooks


@explained
def build_all(
    folder: str | Path,
    only: Sequence[str] = (),
    executor: Executor | None = None,
    resume: bool = False,
) -> Sizes:
    """Write the workbooks of the gallery and their pages into a folder, with indexes and checksums:
    the sheets and formulas of each.

    `only` names some of them. `executor` is any of the interface of `concurrent.futures`; without
    one, this process does all. With `resume`, a run that was stopped goes on. Raises InputError.

    >>> cf.build_all("gallery", only=["gram-schmidt"])
    {'gram-schmidt': (8, 376)}
    """
    return build(Path(folder), only, Run(Workers(executor), resume))


def build(folder: Path, only: Sequence[str] = (), run: Run = Run()) -> Sizes:
    """Write workbooks of the gallery, by default all, as `build_all`."""
    for name in only:
        workbooks.find(name)
    wanted = [name for name in workbooks.path() if not only or name in only]
    pictures = folder / release.PICTURES
    files = [
        (folder / f"{name}.xlsx", folder / f"{name}.html", pictures / f"{name}.svg")
        for name in wanted
    ]
    counts = _shared(partial(_one, folder.absolute()), wanted, folder, files, run)
    sizes = {name: (n, m) for name, (n, m) in zip(wanted, counts, strict=True)}
    xlsx.write(index(sizes), folder / INDEX)
    release.add(folder, sizes)
    return sizes


def _one(folder: Path, name: str) -> tuple[int, int]:
    """Write a workbook, its page and its picture; how many sheets and formulas they have."""
    book = names.book(name)
    xlsx.write(book, folder / f"{name}.xlsx")
    page.write(book, folder / f"{name}.html")
    release.picture(folder, name, book)
    return len(book.sheets), book.n_formulas


def build_models(models: Path, folder: Path, make: partial[Any], run: Run) -> list[int]:
    """Write the workbook of every model in a folder into another, by `make(file, name)`: how many
    formulas each has. Raises InputError."""
    found = {
        str(path.absolute()): folder / f"{formats.title(str(path))}.xlsx"
        for path in sorted(models.iterdir())
        if formats.find(str(path))
    }
    if not found:
        raise InputError(
            f"{models} contains no models; name a folder that contains model files or folders"
        )
    if len({*found.values()}) < len(found):
        raise InputError(f"two models in {models} have the same name; rename one of them")
    task = partial(_one_model, make, folder.absolute())
    return _shared(task, list(found), folder, [(file,) for file in found.values()], run)


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
    run: Run,
) -> list[Any]:
    """The result of a task for each part, which writes files into the folder."""
    told = [_plain(task), [[part, stamp(part)] for part in parts]]
    with _made(folder):
        kept: Kept[Any] = Kept(folder / INDEX, told, run.resume, "workbooks", len(parts))
        there = {k for k, made in enumerate(files) if all(path.is_file() for path in made)}
        missing = [k for k in range(len(parts)) if k not in there & kept.results.keys()]
        with kept:
            run.advance(len(parts) - len(missing))
            for n, counts in done(task, [parts[k] for k in missing], run.workers, run.tell):
                kept.add(missing[n], counts)
                run.advance(1)
    return [kept.results[k] for k in range(len(parts))]


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """A context manager: make a folder, and delete it after an error if nothing is in it. Raises
    InputError."""
    new = not possible(folder).exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder} ({error.strerror}); choose another folder with -o"
        ) from None
    try:
        yield
    except BaseException:
        if new:
            with suppress(OSError):
                folder.rmdir()
        raise


def _plain(task: partial[Any]) -> str:
    """A task as a text that is the same in every process."""
    given = [_plain(each) if isinstance(each, partial) else repr(each) for each in task.args]
    return f"{task.func.__name__}({', '.join(given)})"


def index(sizes: Sizes) -> Book:
    """A sheet with a link to each workbook, in learning order; `sizes` has their
    sheets and formulas."""
    book = Book("gallery")
    sheet = book.sheet("Gallery")
    sheet.widths = {0: 11, 1: 24, 2: 80, 3: 7, 4: 9, 5: 10}
    sheet.put(0, 0, "cellformer: the gallery", "title")
    notes = (
        "Keep this file in the same folder: each name opens a workbook",
        "Read the workbooks from top to bottom: later workbooks use earlier explanations",
    )
    sheet.down(1, 0, notes, "note")
    row, place = 4, 0
    for topic, listed in workbooks.by_topic().items():
        listed = [name for name in listed if name in sizes]
        if not listed:
            continue
        sheet.put(row, 0, topic, "heading")
        sheet.across(row, 3, ("level", "sheets", "formulas"), "head")
        for name in listed:
            row, place = row + 1, place + 1
            sheet.put(row, 0, "start here" if name == workbooks.first() else place, "row number")
            sheet.link(row, 1, name, f"external:{name}.xlsx")
            sheet.put(row, 2, workbooks.title(name).partition(": ")[2])
            sheet.across(row, 3, (workbooks.level(name), sizes[name][0]), "count")
            sheet.put(row, 5, sizes[name][1], "thousands")
        row += 2
    for level, what in workbooks.LEVELS.items():
        sheet.put(row, 0, f"level {level}", "row label")
        sheet.put(row, 1, what, "note")
        row += 1
    return book
