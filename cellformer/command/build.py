"""The command `build`: the digits of weights, a forecast, a progress bar."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from cellformer import budget
from cellformer.command.printing import console, line
from engine import InputError, Model
from engine.cells import finite
from engine.cells.stored import Stored
from engine.studies.forecast import cells_of_part, forecast
from engine.text import word_list_file as words
from exporters.model import plan
from exporters.web import SUFFIXES

if TYPE_CHECKING:
    from exporters.compose.book import Book, OnLayout

LARGE = 1_000_000  # cells of a workbook that is forecast, and written with a bar
COLUMNS = (TextColumn("writing"), BarColumn(), TextColumn("{task.completed:,.0f} cells"))
GOOGLE = 10_000_000  # cells that Google Sheets takes


def with_digits(model: Model, digits: str = "", path: Path | None = None) -> Model:
    """The model with its weights rounded as the file will hold them: `digits` as in --digits.

    A page holds all digits. By default, weights that stay in their file get the shortest decimals
    of float32 in a workbook, and others all digits. The engine reads the same numbers.
    """
    if digits not in ("", "exact", "short"):
        raise InputError(f"--digits {digits!r} is neither exact nor short")
    if path is not None and path.suffix.lower() in SUFFIXES:
        return model
    stored = any(isinstance(w, Stored) for w in model.weights.values())
    if digits == "short" or (not digits and stored):
        return model.with_decimals()
    return model


def studies(model: Model, gradient: bool, nudge: bool, path: Path | None) -> plan.Studies:
    """What the options of `build` add to a workbook; `path` is a --words file. Raises
    InputError."""
    if gradient and nudge:
        raise InputError("--gradient and --nudge cannot be combined: give one of them")
    of = plan.LEAD if gradient else plan.LOSS if nudge else ""
    groups = words.ids(words.read(path), model.outputs or model.vocabulary) if path else {}
    return plan.Studies(of, groups)


def announce(
    model: Model, n_tokens: int, text_length: int, live: Sequence[str], force: bool
) -> None:
    """Print the forecast of a large workbook, unless only `live` parts recompute. Raises InputError
    for one beyond the budget, unless `force`."""
    budget.of_passes(model, n_tokens, force)
    budget.within(budget.MOST_CELLS, 2 * text_length**2, "cells of the tokenizer", force)
    if n_tokens > model.spec.n_ctx:  # then it is refused for that
        return
    readout = plan.for_model(model).readout
    if live:
        n_cells = cells_of_part(model, n_tokens, readout, live)
        return budget.within(budget.MOST_CELLS, n_cells, "cells of the workbook", force)
    expected = forecast(model, n_tokens, readout)
    budget.within(budget.MOST_CELLS, expected.n_cells, "cells of the workbook", force)
    if expected.n_cells > LARGE:
        line(f"forecast: {expected}")
        if expected.n_cells > GOOGLE:
            line(f"Google Sheets is limited to {GOOGLE:,} cells; --live blocks.0 builds a part")


def _nothing(book: "Book") -> None:
    """What a page does before the values of its book are computed."""


def write(build: "Callable[[OnLayout], Book]", path: Path, with_workbook: bool = False) -> None:
    """Build and write a workbook, a large one with a progress bar; or its page, by the suffix.
    Raises InputError."""
    from exporters.file import xlsx
    from exporters.file.precompress import Ahead

    if path.suffix.lower() in SUFFIXES:
        return _write_page(build(_nothing), path, with_workbook)
    if with_workbook:
        raise InputError(f"--with-workbook is for pages: name an .html file with -o, not {path}")
    with Ahead(path) as ahead:
        book = build(ahead.begin)
        finite.check(book.graph, book.values)
        if book.n_cells > LARGE:
            with Progress(*COLUMNS, TimeRemainingColumn(), console=console) as bar:
                task = bar.add_task("", total=book.n_cells)
                xlsx.write(book, path, lambda n: bar.advance(task, n), ahead=ahead.parts)
        else:
            xlsx.write(book, path)
    size = path.stat().st_size / 1024
    line(f"{path}: {len(book.sheets)} sheets, {book.n_formulas:,} formulas, {size:,.0f} KB")


def _write_page(book: "Book", path: Path, with_workbook: bool) -> None:
    from exporters.web import page

    finite.check(book.graph, book.values)
    own, *beside = page.write(book, path, with_workbook)
    line(f"{own}: {book.n_formulas:,} formulas, {own.stat().st_size / 1024:,.0f} KB")
    for file in beside:
        size = file.stat().st_size / 1e6
        line(f"{file}: the weights, {size:,.0f} MB; keep it beside the page, which asks for it")
