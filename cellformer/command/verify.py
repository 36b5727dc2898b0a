"""Verifying at the command: every engine's verdict, and what each of them does meanwhile."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cellformer.command.printing import line
from engine import InputError
from exporters.audit import audit
from exporters.verify import ENGINES, Told, Verdict, read, verify_all


def report(file: Path, engine: str) -> int:
    """Print what the engine of that name says, or all; 1 where one disagrees, 3 where the one
    that was asked for, or every one, is missing."""
    if engine not in ("", "all", *ENGINES):
        raise InputError(f"no engine is named {engine!r}; known: {', '.join(ENGINES)}, all")
    wanted = [engine] if engine in ENGINES else list(ENGINES)
    present = [one for one in wanted if ENGINES[one].installed()]
    with _progress() as told, ThreadPoolExecutor(1) as thread:
        told("file", "is read")
        book = read(file)
        told("file", "is held to Excel's rules")
        rules = thread.submit(audit, file)
        verdicts = {found.engine: found for found in verify_all(book, present, told)}
        faults = rules.result()
        told("file", "")
    if book.digits is not None:
        text = "weights have the shortest decimals of float32"
        line(f"{text}: a logit moves by {book.digits:.1e} at most")
    for fault in faults:
        line(f"{'excel':<12} {fault}")
    for one in wanted:
        verdict = verdicts.get(one)
        line(f"{one:<12} {_said(verdict) if verdict else 'not installed; ' + ENGINES[one].remedy}")
    if not all(verdict.agrees or verdict.skipped for verdict in verdicts.values()):
        return 1
    return 3 if len(present) < len(wanted) and (engine or not present) else 0


def _said(verdict: Verdict) -> str:
    """What an engine says."""
    if verdict.skipped:
        return f"skipped: {verdict.skipped}"
    said = "agrees   " if verdict.agrees else "DISAGREES"
    largest = f"largest difference {verdict.largest:.1e} at {verdict.where}"
    return f"{said} {verdict.n_cells:,} cells, {largest}"


@contextmanager
def _progress() -> Iterator[Told]:
    """Lines on a terminal's standard error: who does what, for how many seconds."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as lines:
        tasks = {}

        def told(who: str, what: str) -> None:
            if who not in tasks:
                tasks[who] = lines.add_task("", total=1)
            if what:
                lines.update(tasks[who], description=f"{who:<12} {what}")
            else:
                lines.update(tasks[who], description=f"{who:<12} done", completed=1)

        yield told
