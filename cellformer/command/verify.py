"""The command `verify`: each engine's verdict, with progress lines while they run."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cellformer.command.printing import line
from engine import InputError
from exporters import web
from exporters.checking import javascript
from exporters.checking.audit import audit
from exporters.checking.child_processes import Job, OnProgress, Outcome, run
from exporters.checking.verify import ENGINES, Verdict, read, verify_all

JAVASCRIPT = "javascript"  # Node.js, of pages
FILE = "file"  # as what the workbook stands in the lines of progress


def report(file: Path, engine: str, seconds: float) -> int:
    """Print the verdict of the named engine, or of all. Returns the exit code: 1 if one disagrees,
    3 if the named one, or every one, is missing or was skipped."""
    if file.suffix.lower() in web.SUFFIXES:
        return _of_page(file, engine, seconds)
    if engine == JAVASCRIPT:
        raise InputError(f"{JAVASCRIPT} recomputes pages, x.html; {file} is none")
    if engine not in ("", "all", *ENGINES):
        raise InputError(f"no engine is named {engine!r}; known: {', '.join(ENGINES)}, all")
    everyone = [one for one, program in ENGINES.items() if not program.by_name]
    wanted = [engine] if engine in ENGINES else everyone
    present = [one for one in wanted if ENGINES[one].installed()]
    with _progress() as on_progress:
        on_progress(FILE, "is read")
        book = read(file)
        rules: dict[str, Job] = {FILE: partial(audit, file.resolve())}
        found = verify_all(book, present, on_progress, seconds, beside=rules)
    if book.digits is not None:
        text = "weights have the shortest decimals of float32"
        line(f"{text}: a logit moves by {book.digits:.1e} at most")
    if book.n_uncomputed:
        line(f"formulas without a value in the file, which are not compared: {book.n_uncomputed:,}")
    for fault in found[FILE].value or ([found[FILE].fault] if found[FILE].fault else []):
        line(f"{'excel':<12} {fault}")
    for one in wanted:
        missing = f"not installed; {ENGINES[one].remedy}"
        line(f"{one:<12} {_said(found[one]) if one in found else missing}")
    verdicts = [found[one].value for one in present if found[one].value]
    answered = [verdict for verdict in verdicts if not verdict.skipped]
    if not all(verdict.agrees for verdict in answered):
        return 1
    return 3 if not answered or (engine and len(present) < len(wanted)) else 0


def _of_page(file: Path, engine: str, seconds: float) -> int:
    """Print the verdict of Node.js on a page. Returns the exit code."""
    if engine not in ("", "all", JAVASCRIPT):
        raise InputError(f"{engine} does not recompute pages; {JAVASCRIPT} does")
    job = javascript.job(file)
    if not javascript.installed():
        line(f"{JAVASCRIPT:<12} not installed; {javascript.REMEDY}")
        return 3
    with _progress() as on_progress, TemporaryDirectory() as folder:
        found = run({JAVASCRIPT: job}, Path(folder).resolve(), seconds, on_progress)[JAVASCRIPT]
    verdict: javascript.Verdict | None = found.value
    if verdict is None:
        line(f"{JAVASCRIPT:<12} skipped: {found.fault}")
        return 3
    if verdict.differ:
        text = f"{verdict.differ:,} of {verdict.blocks:,} blocks differ, first {verdict.first}"
        line(f"{JAVASCRIPT:<12} DISAGREES {text}")
        return 1
    line(f"{JAVASCRIPT:<12} agrees    {verdict.cells:,} cells in {verdict.blocks:,} blocks")
    return 0


def _said(outcome: Outcome) -> str:
    """An engine's verdict in a line."""
    verdict: Verdict | None = outcome.value
    if verdict is None or verdict.skipped:
        return f"skipped: {verdict.skipped if verdict else outcome.fault}"
    said = "agrees   " if verdict.agrees else "DISAGREES"
    largest = f"largest difference {verdict.largest:.1e} at {verdict.where}"
    return f"{said} {verdict.n_cells:,} cells, {largest}"


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """Progress lines on standard error, if it is a terminal: what each engine does, and how
    long."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as lines:
        tasks = {}

        def on_progress(who: str, what: str) -> None:
            if who not in tasks:
                tasks[who] = lines.add_task("", total=1)
            if what:
                lines.update(tasks[who], description=f"{who:<12} {what}")
            else:
                lines.update(tasks[who], description=f"{who:<12} done", completed=1)

        yield on_progress
