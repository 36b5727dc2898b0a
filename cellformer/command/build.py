"""The command `build`: its options, the digits of weights, a forecast, a progress bar."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellformer import budget, memory, names, workbooks
from cellformer.command import prompting, results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.options import given
from cellformer.command.sharing import Sharing
from cellformer.engine import InputError, Model
from cellformer.engine.cells import finite
from cellformer.engine.cells.stored import Stored
from cellformer.engine.models.choosing import Sampling
from cellformer.engine.studies import addition, telling
from cellformer.engine.studies.addition import Given, Studies, additions
from cellformer.engine.studies.forecast import Forecast, cells_of_part, forecast
from cellformer.exporters.file.reading import WORKBOOK
from cellformer.exporters.model import plan
from cellformer.exporters.web import SUFFIXES

if TYPE_CHECKING:
    from cellformer.exporters.compose.book import Book, OnLayout

LARGE = 1_000_000  # cells of a workbook that is forecast, and written with a bar
GOOGLE = 10_000_000  # cells that Google Sheets takes


@dataclass(frozen=True)
class Asked:
    """The options of `build` for the workbook of one model."""

    prompt: str | None = None
    second: str | None = None
    ids: str | None = None
    no_special: bool = False
    tokens: int | None = None
    text_length: int | None = None
    sampling: tuple[float, int, float, float, float] = (0.0, 0, 1.0, 0.0, 1.0)  # of Sampling
    seed: int = 0
    live: tuple[str, ...] = ()
    digits: str = ""
    adapter: Path | None = None
    exercise: bool = False
    level: int = 1
    solved: bool = False
    system: str | None = None  # of a conversation; None: it is none
    answer_language: str | None = None
    proof: bool = False
    studies: Mapping[str, Any] = field(default_factory=dict)  # options of additions, by name

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Asked":
        """The additions that the options of the command ask for."""
        named = {each.name: options[each.name] for each in fields(cls) if each.name in options}
        named["sampling"] = tuple(options[field.name] for field in fields(Sampling))
        named["system"] = prompting.system(
            options["chat"], options["system"], options["no_special"]
        )
        named["prompt"] = prompting.text(options["prompt"], options["file"])
        named["live"] = tuple(options["live"] or ())
        named["studies"] = given(options["studies"])
        return cls(**named)

    def check_exercise(self) -> None:
        """Raise InputError for options that do not go with exercises."""
        if not self.exercise:
            if self.level != 1 or self.solved:
                given = "--solved" if self.solved else "--level"
                raise InputError(f"{given} works only for exercises; add --exercise")
            return
        plain = Asked(self.prompt, None, self.ids, self.no_special, self.tokens)
        if replace(plain, exercise=True, level=self.level, solved=self.solved) != self:
            raise InputError(
                "--exercise can be combined only with --level, --solved, --prompt, --ids, --tokens"
            )

    def added(self, loaded: names.Loaded, model: Model) -> Studies:
        """The additions to the forward pass. Raises InputError."""
        encode = partial(names.text_ids, model, special=not self.no_special)
        return addition.asked(Given(self.studies, loaded.name, model, loaded.ids, encode))

    @property
    def kind(self) -> str:
        """The additions that the name of the file lists, as `-why-steer`."""
        chosen = {"adapter": self.adapter is not None, "chat": self.system is not None}
        chosen["proof"] = self.proof
        chosen |= {each.name: each.name in self.studies for each in additions()}
        return "".join(f"-{name}" for name, on in chosen.items() if on)


def build_all(
    name: str | None, output: Path | None, asked: Asked, sharing: Sharing, force: bool
) -> Answer:
    """Build the gallery, or the workbooks of all models in a folder. Raises InputError."""
    from cellformer import gallery, release
    from cellformer.command.many import progress

    plain = replace(asked, prompt=None, ids=None) if name else asked
    if plain != Asked():
        raise InputError(
            "--all builds each workbook with its own prompt. Combine --all only with -o, --jobs, "
            "--dask, --resume and --force. For models in a folder, --prompt and --ids also work"
        )
    folder = output or Path("workbooks" if name else "gallery")
    n = len(list(Path(name).iterdir()) if name and Path(name).is_dir() else workbooks.names())
    with sharing.workers() as workers, progress("building", n) as (tell, advance):
        run = gallery.Run(workers, sharing.resume, tell, advance)
        if name is None:
            counts = [n for _, n in gallery.build(folder, run=run).values()]
            told = f"their pages, with {sum(counts):,} formulas; {folder / release.INDEX} and "
            told = f"workbooks and {told}{gallery.INDEX} link to them"
        elif Path(name).is_dir():
            make = partial(_build_file, asked, force)
            counts = gallery.build_models(Path(name), folder, make, run)
            told = f"workbooks, {sum(counts):,} formulas"
        else:
            raise InputError(
                f"{name} is not a folder of models; give a folder of models, or leave out the "
                "name to build the gallery"
            )
    beside = sorted(str(file) for file in folder.rglob("*") if file.is_file())
    return Answer(
        lambda: line(f"{folder}: {len(counts)} {told}"),
        lambda: {"file": str(folder), "beside": beside, "formulas": sum(counts)},
    )


def _build_file(asked: Asked, force: bool, file: Path, name: str) -> int:
    """Build the workbook of a model; how many formulas it has."""
    return int(build(name, file, asked, False, force).result()["formulas"])


def build(
    name: str | None, output: Path | None, asked: Asked, with_workbook: bool, force: bool
) -> Answer:
    """Build the workbooks that the options ask for. Raises InputError."""
    if name is None:
        raise InputError("give the name of a workbook, or build all workbooks with --all")
    asked.check_exercise()
    if asked.exercise:
        return _build_exercise(name, output, asked, force)
    if asked.proof or names.is_worksheet(name):
        return _build_worksheets(name, output, asked, with_workbook)
    return _build_model(name, output, asked, with_workbook, force)


def _build_worksheets(name: str, output: Path | None, asked: Asked, with_workbook: bool) -> Answer:
    """Build a workbook without a prompt."""
    part = "proof" if asked.proof else ""
    made = partial(names.with_part, name, part) if part else partial(names.book, name)
    if replace(asked, proof=False) != Asked():
        raise InputError(
            f"{name} has no model, so only the option -o works; leave out the other options"
        )
    return write(lambda _: made(), output or _beside(name, asked.kind), with_workbook)


def _beside(name: str, kind: str = "") -> Path:
    """The default file of a workbook. It is another one than the file that was named."""
    return Path(f"{names.title(name)}{kind}{'-built' * names.is_workbook(name)}{WORKBOOK}")


def _build_model(
    name: str, output: Path | None, asked: Asked, with_workbook: bool, force: bool
) -> Answer:
    """Build the workbook of a model."""
    from cellformer.engine.models.generate import padded, passage

    special, length = not asked.no_special, asked.text_length or 0
    given = asked.prompt, asked.ids, special, asked.live, asked.second, force, asked.adapter
    is_page = output is not None and output.suffix.lower() in SUFFIXES
    loaded = prompting.answering_in(names.load(name, *given, asked.system), asked.answer_language)
    if is_page and asked.prompt is None and asked.ids is None and names.completes(loaded):
        loaded = names.load(name, telling.FACT, *given[1:])
    alone = any(each.prompt_alone for each in addition.of(asked.studies))
    chats = is_page and loaded.chat
    if chats:
        loaded, found = names.on_page(loaded, asked.tokens)
    n_tokens = asked.tokens or (len(loaded.ids) if alone else loaded.n_tokens)
    model = with_digits(loaded.model, asked.digits, output)
    expected = announce(model, n_tokens, length, asked.live, force, is_page)
    sampling = Sampling(*asked.sampling)
    if not chats and is_page and _sees_no_further(model, asked.live):
        found = padded(model, loaded.ids, n_tokens, sampling, asked.seed, loaded.chat)
    elif not chats:
        found = passage(
            model, loaded.ids, n_tokens, sampling, asked.seed, loaded.second, loaded.chat
        )
    found = replace(found, text_length=length)
    path = output or _beside(name, asked.kind)
    added = asked.added(loaded, model)
    made = partial(loaded.book, model, found, asked.live, added, is_page=is_page)
    return write(made, path, with_workbook, expected)


def _sees_no_further(model: Model, live: Sequence[str]) -> bool:
    """Whether only the tokens that are given matter: the last one alone has logits."""
    found = plan.for_model(model, live)
    return found.answers and not found.sources


def _build_exercise(name: str, output: Path | None, asked: Asked, force: bool) -> Answer:
    """Build a workbook of exercises, or its key."""
    from cellformer.exercises import recipe

    if output is not None and output.suffix.lower() in SUFFIXES:
        raise InputError(f"--exercise writes a workbook, not {output}; name an .xlsx file with -o")
    special = not asked.no_special
    found = recipe(name, asked.level, asked.prompt, asked.ids, special, asked.tokens, force)
    expected = None
    if found.n_tokens:
        expected = announce(names.model(name), found.n_tokens, 0, (), force)
    kind = "solved" if asked.solved else "exercise"
    path = output or Path(f"{names.title(name)}-{kind}-{asked.level}.xlsx")
    return write(lambda layout: found.book(asked.solved, layout), path, expected=expected)


def with_digits(model: Model, digits: str = "", path: Path | None = None) -> Model:
    """The model with its weights rounded as the file will hold them: `digits` as in --digits.

    A page holds all digits. By default, weights that stay in their file get the shortest decimals
    of float32 in a workbook, and others all digits. The engine reads the same numbers.
    """
    if digits not in ("", "exact", "short"):
        raise InputError(f"--digits is {digits!r}; give exact or short")
    if path is not None and path.suffix.lower() in SUFFIXES:
        return model
    stored = any(isinstance(w, Stored) for w in model.weights.values())
    return model.with_decimals() if digits == "short" or (not digits and stored) else model


def announce(
    model: Model,
    n_tokens: int,
    text_length: int,
    live: Sequence[str],
    force: bool,
    is_page: bool = False,
) -> Forecast | None:
    """Print the forecast of a large workbook, unless only `live` parts recompute, or it becomes a
    page, and return it. Raises InputError for one beyond the budget, unless `force`."""
    budget.of_passes(model, n_tokens, force)
    budget.within(budget.MOST_CELLS, 2 * text_length**2, "cells of the tokenizer", force)
    if n_tokens > model.spec.n_ctx:  # then it is refused for that
        return None
    readout = plan.for_model(model).readout
    if live:
        n_cells = cells_of_part(model, n_tokens, readout, live)
        budget.within(budget.MOST_CELLS, n_cells, "cells of the workbook", force)
        return None
    expected = forecast(model, n_tokens, readout)
    budget.within(budget.MOST_CELLS, expected.n_cells, "cells of the workbook", force)
    if expected.n_cells <= LARGE:
        return None
    if is_page:
        size = sum(w.size for w in model.weights.values()) / 1e6
        line(
            f"forecast: a page of {expected.n_formulas:,} formulas and {size:,.0f} million "
            "weights; more than 20 MB of weights are in a file beside the page"
        )
        return None
    line(f"forecast: {expected}")
    if expected.n_cells > GOOGLE:
        line(f"Google Sheets opens at most {GOOGLE:,} cells; add --live blocks.0 to build a part")
    part = cells_of_part(model, n_tokens, readout, ["blocks.0"]) if model.spec.n_layers else 0
    if told := memory.advice(expected, part, memory.free()):
        line(told)
    return expected


def plain_forecast(expected: Forecast) -> results.Forecast:
    """A forecast as JSON."""
    return {
        "cells": expected.n_cells,
        "formulas": expected.n_formulas,
        "megabytes": expected.megabytes,
        "held": expected.held,
    }


def write(
    build: "Callable[[OnLayout], Book]",
    path: Path,
    with_workbook: bool = False,
    expected: Forecast | None = None,
) -> Answer:
    """Build and write a workbook, a large one with a progress bar; or its page, by the suffix.
    Raises InputError."""
    from cellformer.exporters.file import xlsx
    from cellformer.exporters.file.precompress import Ahead

    if path.suffix.lower() in SUFFIXES:
        return _write_page(build(lambda _: None), path, with_workbook)
    if with_workbook:
        raise InputError(
            f"--with-workbook puts a workbook into a page, but {path} is not a page; name an "
            ".html file with -o"
        )
    with Ahead(path) as ahead:
        book = build(ahead.begin)
        finite.check(book.graph, book.values)
        if book.n_cells > LARGE:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = TextColumn("writing"), BarColumn(), TextColumn("{task.completed:,.0f} cells")
            with Progress(*columns, TimeRemainingColumn(), console=console.rich) as bar:
                task = bar.add_task("", total=book.n_cells)
                xlsx.write(book, path, lambda n: bar.advance(task, n), ahead=ahead.parts)
        else:
            xlsx.write(book, path)
    size = path.stat().st_size
    told = f"{len(book.sheets)} sheets, {book.n_formulas:,} formulas, {size / 1024:,.0f} KB"
    found = _written(book, path)
    found["sheets"] = len(book.sheets)
    if expected is not None:
        found["forecast"] = plain_forecast(expected)
    return Answer(lambda: line(f"{path}: {told}"), lambda: found)


def _written(book: "Book", path: Path, beside: Sequence[Path] = ()) -> results.Build:
    """The written files, as JSON."""
    return {
        "file": str(path),
        "beside": list(map(str, beside)),
        "formulas": book.n_formulas,
        "bytes": path.stat().st_size,
    }


def _write_page(book: "Book", path: Path, with_workbook: bool) -> Answer:
    from cellformer.exporters.web import page

    finite.check(book.graph, book.values)
    own, *beside = page.write(book, path, with_workbook)

    def tell() -> None:
        line(f"{own}: {book.n_formulas:,} formulas, {own.stat().st_size / 1024:,.0f} KB")
        for file in beside:
            size = file.stat().st_size / 1e6
            line(
                f"{file}: the weights, {size:,.0f} MB; keep this file beside the page, because "
                "the page asks for this file"
            )

    return Answer(tell, lambda: _written(book, own, beside))
