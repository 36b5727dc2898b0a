"""The command `verify`: each engine's verdict, with progress lines while they run."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cellformer.command import results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.results import Verdict
from cellformer.engine import InputError
from cellformer.engine.cells.errors import nearest
from cellformer.exporters import web
from cellformer.exporters.checking import javascript, verify
from cellformer.exporters.checking.audit import audit
from cellformer.exporters.checking.child_processes import Job, OnProgress, Outcome, run
from cellformer.exporters.checking.verify import ENGINES, read, verify_all
from cellformer.exporters.file.reading import present

JAVASCRIPT = "javascript"  # Node.js, of pages
AGREES, DISAGREES, SKIPPED, ABSENT = "agrees", "disagrees", "skipped", "not installed"
FILE = "file"  # as what the workbook stands in the lines of progress


def report(file: Path, engine: str, seconds: float) -> Answer:
    """The verdict of the named engine, or of all; its exit code is 1 if one disagrees, 3 if the
    named one, or every one, is missing or was skipped."""
    file = present(file)
    if file.suffix.lower() in web.SUFFIXES:
        return _of_page(file, engine, seconds)
    wanted = _asked(engine, file)
    there = [one for one in wanted if ENGINES[one].installed()]
    with _progress() as on_progress:
        on_progress(FILE, "is read")
        book = read(file)
        rules: dict[str, Job] = {FILE: partial(audit, file.resolve())}
        found = verify_all(book, there, on_progress, seconds, beside=rules)
    verdicts = [found[one].value for one in there if found[one].value]
    answered = [verdict for verdict in verdicts if not verdict.skipped]
    agree = all(verdict.agrees for verdict in answered)
    missing = not answered or (engine and len(there) < len(wanted))
    told: results.Verify = {
        "file": str(file),
        "engines": [
            _plain(one, found[one])
            if one in found
            else Verdict(one, ABSENT, why=ENGINES[one].remedy)
            for one in wanted
        ],
        "rules": list(found[FILE].value or filter(None, [found[FILE].fault])),
        "uncomputed": book.n_uncomputed,
        "digits": book.digits,
    }
    return Answer(
        partial(_tell, told), lambda: told, "engines", 3 if missing and agree else not agree
    )


def _asked(engine: str, file: Path) -> list[str]:
    """The engines that are asked: one by its name, or all. Raises InputError."""
    if engine == JAVASCRIPT:
        raise InputError(
            f"{JAVASCRIPT} recomputes pages, but {file} is not a page; name an .html file"
        )
    if engine in ENGINES:
        return [engine]
    if engine not in ("", "all"):
        raise InputError(f"no engine is named {engine!r}; {nearest(engine, [*ENGINES, 'all'])}")
    return [one for one, program in ENGINES.items() if not program.by_name]


def _of_page(file: Path, engine: str, seconds: float) -> Answer:
    """The verdict of Node.js on a page."""
    if engine not in ("", "all", JAVASCRIPT):
        raise InputError(f"{engine} does not recompute pages; use {JAVASCRIPT}")
    job = javascript.job(file)
    if not javascript.installed():
        return _on_page(file, Verdict(JAVASCRIPT, ABSENT, why=javascript.REMEDY))
    with _progress() as on_progress, TemporaryDirectory() as folder:
        found = run({JAVASCRIPT: job}, Path(folder).resolve(), seconds, on_progress)[JAVASCRIPT]
    verdict: javascript.Verdict | None = found.value
    if verdict is None:
        return _on_page(file, Verdict(JAVASCRIPT, SKIPPED, why=found.fault))
    where = f"{verdict.cells:,} cells in {verdict.blocks:,} blocks"
    if verdict.differ:
        where = (
            f"{verdict.differ:,} of {verdict.blocks:,} blocks differ; the first is {verdict.first}"
        )
    said = DISAGREES if verdict.differ else AGREES
    return _on_page(file, Verdict(JAVASCRIPT, said, verdict.cells, where=where))


def _on_page(file: Path, said: Verdict) -> Answer:
    """The answer for a page."""
    told: results.Verify = {
        "file": str(file),
        "engines": [said],
        "rules": [],
        "uncomputed": 0,
        "digits": None,
    }
    code = {AGREES: 0, DISAGREES: 1}.get(said.verdict, 3)
    return Answer(partial(_tell, told), lambda: told, "engines", code)


def _plain(engine: str, outcome: Outcome) -> Verdict:
    """An engine's verdict as JSON."""
    verdict: verify.Verdict | None = outcome.value
    if verdict is None or verdict.skipped:
        return Verdict(engine, SKIPPED, why=verdict.skipped if verdict else outcome.fault)
    said = AGREES if verdict.agrees else DISAGREES
    return Verdict(engine, said, verdict.n_cells, verdict.largest, verdict.where)


def _tell(told: results.Verify) -> None:
    """Print the verdicts, a line each."""
    if told["digits"] is not None:
        text = "weights have the fewest digits that give the same float32"
        line(f"{text}: a logit changes by at most {told['digits']:.1e}")
    if n := told["uncomputed"]:
        line(f"formulas that are not compared, because the file has no value for them: {n:,}")
    for fault in told["rules"]:
        line(f"{'excel':<12} {fault}")
    for one in told["engines"]:
        line(f"{one.engine:<12} {_said(one)}")


def _said(one: Verdict) -> str:
    """An engine's verdict in a line."""
    if one.verdict == ABSENT:
        return f"not installed; {one.why}"
    if one.verdict == SKIPPED:
        return f"skipped: {one.why}"
    said = "agrees   " if one.verdict == AGREES else "DISAGREES"
    if one.largest is None:
        return f"{said} {one.where}"
    return f"{said} {one.cells:,} cells, largest difference {one.largest:.1e} at {one.where}"


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """Progress lines on standard error, if it is a terminal: what each engine does, and how
    long."""
    errors = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=errors, disable=not errors.is_terminal or console.quiet
    ) as lines:
        tasks = {}

        def on_progress(who: str, what: str) -> None:
            if who not in tasks:
                tasks[who] = lines.add_task("", total=1)
            done = None if what else 1
            lines.update(tasks[who], description=f"{who:<12} {what or 'done'}", completed=done)

        yield on_progress
