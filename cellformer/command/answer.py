"""The answer of a command: printed for people, or with --json or --csv for scripts.

A command returns an `Answer`; `answering` gives every such command the options, and prints what
they ask for. docs/json.md, made of `results`, describes the JSON.
"""

import csv
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import wraps
from typing import Annotated, Any

import numpy as np
import typer

from cellformer.command.console import console
from cellformer.engine import InputError
from cellformer.engine.cells.texts import in_csv
from cellformer.engine.studies import columns
from cellformer.version import __version__

SCHEMA = "cellformer/2"  # the number rises when a field is removed, renamed or means another thing
AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON. docs/json.md describes the fields.")
]
AsCsv = Annotated[bool, typer.Option("--csv", help="Print the main table as CSV.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only errors. The exit code shows the result.")
]
Rows = Iterable[Mapping[str, Any]]
WITHOUT_TABLE = ("build", "import")  # commands that answer no list


@dataclass(frozen=True)
class Answer:
    """The result of a command: a way to print it, and its data, made only on demand.

    `rows` is the table of --csv, with a column for each key: a list of the result by its key, or
    rows of its own. With `heads`, the names of all columns, a row is printed when it is known.
    """

    tell: Callable[[], object]
    result: Callable[[], Mapping[str, Any]]
    rows: str | Callable[[], Rows] = ""
    code: int = 0
    # why a part failed; raised last, as an InputError
    fault: Callable[[], str] = str
    heads: Sequence[str] = ()


def answering(name: str, command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the options --json, --csv and --quiet, which print its answer."""
    if inspect.signature(command).return_annotation is not Answer:
        return command

    @wraps(command)
    def answered(
        *args: Any, as_json: bool, quiet: bool, as_csv: bool = False, **given: Any
    ) -> None:
        chosen = [n for n, on in (("json", as_json), ("csv", as_csv), ("quiet", quiet)) if on]
        if len(chosen) > 1:
            one, other = chosen[:2]
            raise InputError(f"--{one} and --{other} cannot be combined: give only one of them")
        with silent(bool(chosen)):
            found: Answer = command(**given)
            if as_json:
                print(text(name, found.result()))
            elif as_csv:
                _write_csv(rows(found), found.heads)
            elif not quiet:
                found.tell()
        if fault := found.fault():
            raise InputError(fault)
        if found.code:
            raise typer.Exit(found.code)

    answered.__signature__ = _with_options(name, command)  # type: ignore[attr-defined]
    return answered


def _with_options(name: str, command: Callable[..., Any]) -> inspect.Signature:
    """The signature of a command with the three options at its end, --csv if it has a table."""
    of = inspect.signature(command)
    options = {"as_json": AsJson, "as_csv": AsCsv, "quiet": Quiet}
    if name in WITHOUT_TABLE:
        del options["as_csv"]
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(n, kind, default=False, annotation=t) for n, t in options.items()]
    return of.replace(parameters=[*of.parameters.values(), *more])


@contextmanager
def silent(on: bool) -> Iterator[None]:
    """Print nothing on the console within, neither notes nor progress, if `on`."""
    before, console.quiet = console.quiet, on or console.quiet
    try:
        yield
    finally:
        console.quiet = before


def text(name: str, result: Mapping[str, Any]) -> str:
    """A result as JSON, in ASCII, which any terminal and pipe keeps."""
    told = {
        "schema": SCHEMA,
        "command": name,
        "version": __version__,
        "result": plain(result),
    }
    return json.dumps(told, allow_nan=False)


def plain(found: Any) -> Any:
    """A value as JSON has it: arrays are lists, and numbers that are not finite null."""
    if isinstance(found, np.ndarray | np.generic):
        if found.dtype.kind in "iub" or (found.dtype.kind == "f" and np.isfinite(found).all()):
            return found.tolist()
        found = found.tolist()
    if is_dataclass(found) or hasattr(found, "_fields"):  # a row of a study
        found = columns.record(found)
    if isinstance(found, Mapping):
        return {str(key): plain(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [plain(value) for value in found]
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    return found if isinstance(found, bool | int | None) else str(found)


def rows(found: Answer) -> Rows:
    """The rows of an answer's table, which --csv prints."""
    if isinstance(found.rows, str):
        return list(plain(found.result()[found.rows]))
    return found.rows()


def _write_csv(rows: Rows, heads: Sequence[str] = ()) -> None:
    """Print rows, with a line of column names; a list within a cell is joined by spaces."""
    if not heads:
        rows = list(rows)
        heads = list(dict.fromkeys(key for row in rows for key in row))
    if not heads:
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(in_csv, heads))
    for row in rows:
        writer.writerow([_cell(plain(row.get(head))) for head in heads])
        sys.stdout.flush()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()  # as spreadsheets read it
    if isinstance(value, int | float):
        return repr(value)
    return in_csv(value if isinstance(value, str) else " ".join(map(str, value)))
