"""Studies of one model over many prompts, as rows of a table.

A prompt is a part of the work (`cellformer.work`), computed in passes of its own; so rows do not
depend on how many work. A worker is sent the model's name and reads the weights from its file.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from cellformer import budget, names, work
from cellformer.engine.cells.arguments import explained, wrong
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import check_file, possible, replacing
from cellformer.engine.cells.texts import in_csv
from cellformer.engine.models.model import Model
from cellformer.engine.studies import columns
from cellformer.engine.studies.study import Asked
from cellformer.engine.studies.study import studies as declared
from cellformer.engine.text.list_file import quoted
from cellformer.kept import Kept
from cellformer.stamps import stamp

Value = str | int | float | None
Row = list[Value]
LARGEST = 200_000_000  # bytes of a file of prompts
SUFFIXES = (".csv", ".parquet")
WORDS = ("target", "rival", "against")  # that a prompt may have of its own


class Prompt(NamedTuple):
    """A line of a file of prompts: a text, and its target, rival and other options. "": the
    default."""

    prompt: str
    target: str = ""
    rival: str = ""
    against: str = ""  # the text that `patch` takes values from


@dataclass(frozen=True)
class Task:
    """A study, and its options for each prompt."""

    kind: str  # of `declared`
    name: str  # of the model
    special: bool = True
    force: bool = False
    target: str = ""  # of the prompts that have none of their own; the rival and the text, too
    rival: str = ""
    against: str = ""
    options: Any = None  # of the study; None: their defaults

    @property
    def columns(self) -> list[str]:
        """The names of a row's values."""
        return ["number", "prompt", "target", *columns.heads(declared()[self.kind].row)]

    def rows(self, part: tuple[int, Prompt]) -> list[Row]:
        """The rows of a prompt, whose number counts from 1. Raises InputError."""
        number, asked = part
        try:
            with _ONE:
                target, found = declared()[self.kind].rows(self.asked(asked))
                begin: Row = [number, asked.prompt, target]
                return [[*begin, *columns.values(row)] for row in found]
        except InputError as error:
            raise InputError(f"prompt {number}, {quoted(asked.prompt)}: {error}") from None

    def asked(self, asked: Prompt) -> Asked:
        """One prompt with its question, for the study."""
        given = {name: getattr(asked, name) or getattr(self, name) for name in WORDS}
        options = self.options or declared()[self.kind].options()
        return self.loaded(asked).asked(self.force, self.special, options=options, **given)

    def loaded(self, asked: Prompt) -> names.Loaded:
        """The model with a prompt. Raises InputError."""
        model = _model(self.name, stamp(self.name))
        ids = names.text_ids(model, asked.prompt, self.special, "the prompt")
        budget.of_passes(model, len(ids), self.force)
        return names.Loaded(self.name, model, ids, len(ids))


_ONE = Lock()  # a model is read, and a prompt computed, by one thread of a process at a time


@lru_cache(maxsize=1)
def _model(name: str, files: str) -> Model:
    """The model of a name: a worker reads it once, and again if its files have changed."""
    return names.model(name)


# --- over many prompts ----------------------------------------------------------------------------


@explained
def study(
    kind: str,
    name: str | Path,
    prompts: str | Path | Sequence[str | Mapping[str, str]],
    executor: Executor | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    **options: Any,
) -> list[dict[str, Value]]:
    """A study of a model over many prompts, a dictionary for each row of its table.

    `kind` is ablate, gradient, patch, sweep, or another study; `prompts` are texts, dictionaries
    with `prompt` and possibly `target`, `rival` and `against`, or a file
    (`docs/many-prompts.md`). `executor` is any
    of the interface of `concurrent.futures`: processes here, or dask's `client.get_executor()`;
    without one, this process does all. `output` is a .csv or .parquet to write as well, with
    `resume` to go on with a run that was stopped. `options` are `target`, `rival`, `against`,
    `special`, `force`, and those of the study: `cell`, `start`, `stop`, `n_steps` of a sweep;
    `mean`; `top`; `sites`. Raises InputError.

    >>> rows = cf.study("ablate", "cat-sat", ["the cat sat", "a dog ran"])
    >>> rows[0]["part"], rows[0]["first"], rows[-1]["prompt"]
    ('blocks.0.attn', 'mat', 'a dog ran')
    """
    if kind not in declared():
        raise InputError(f"{kind!r} is not a study; choose one of {', '.join(declared())}")
    made = declared()[kind].options
    shared = {field.name for field in fields(Task)} - {"kind", "name", "options"}
    own = {field.name for field in fields(made)}
    if strange := options.keys() - shared - own:
        listed = ", ".join(sorted(shared | own))
        raise InputError(f"{min(strange)!r} is not an option of {kind}; known options: {listed}")
    of_study = {name: options[name] for name in options if name in own}
    of_all = {name: options[name] for name in options if name in shared}
    of_made, of_task = vars(made)["__init__"], vars(Task)["__init__"]
    reason = wrong(of_made, (None,), of_study) or wrong(of_task, (None, kind, ""), of_all)
    if reason:
        raise InputError(reason)
    asked = Task(kind, absolute(name), **of_all, options=made(**of_study))
    given = (
        read(possible(prompts)) if isinstance(prompts, str | Path) else list(map(_prompt, prompts))
    )
    path = None if output is None else Path(output)
    rows = run(asked, given, work.Workers(executor), path, resume)
    return [dict(zip(asked.columns, row, strict=True)) for row in rows]


def absolute(name: str | Path) -> str:
    """The name of a model as a worker in another folder finds it."""
    path = possible(Path(name))
    return str(path.resolve()) if path.exists() else str(name)


def run(
    asked: Task,
    prompts: Sequence[Prompt],
    workers: work.Workers = work.HERE,
    output: Path | None = None,
    resume: bool = False,
    tell: Callable[[str], None] = print,
    advance: Callable[[int], None] = lambda n: None,
) -> list[Row]:
    """The rows of all prompts, in their order, which are also written to `output`.

    `advance` is given how many prompts were done. Raises InputError; prompts that the model cannot
    read are found before any is computed.
    """
    if output is not None:
        check_output(output)
    parts = list(enumerate(prompts, 1))
    _check(asked, parts)
    told = [stamp(asked.name), str(asked), sha256(json.dumps(prompts).encode()).hexdigest()]
    kept: Kept[list[Row]] = Kept(output, told, resume, "prompts", len(parts))
    with kept:
        missing = kept.missing
        advance(len(parts) - len(missing))
        todo = [parts[k] for k in missing]
        for n, rows in work.done(
            asked.rows, todo, workers, tell, lambda part: f"prompt {part[0]} of {len(prompts)}"
        ):
            kept.add(missing[n], rows)
            advance(1)
        found = [row for k in range(len(parts)) for row in kept.results[k]]
        if output is not None:
            write(output, asked.columns, found)
    return found


def _check(asked: Task, parts: Sequence[tuple[int, Prompt]]) -> None:
    """Raise InputError for a prompt that the model cannot read."""
    for number, each in parts:
        try:
            asked.loaded(each)
        except InputError as error:
            raise InputError(f"prompt {number}, {quoted(each.prompt)}: {error}") from None


# --- files ----------------------------------------------------------------------------------------


def read(path: Path) -> list[Prompt]:
    """The prompts of a file: a text file has one on each line; a .csv has a column `prompt`, and
    possibly `target`, `rival` and `against`. Raises InputError."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; give a text file with a prompt on each line")
    if path.stat().st_size > LARGEST:
        raise InputError(f"{path} is larger than {LARGEST / 1e6:,.0f} MB; split the file")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                found = _table(path, csv.DictReader(file))
            else:
                found = [Prompt(line.rstrip("\r\n")) for line in file if line.strip()]
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text; save the file as UTF-8") from None
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file: {error}") from None
    if not found:
        raise InputError(f"{path} has no prompts; write one prompt on each line")
    return found


def _table(path: Path, table: "csv.DictReader[str]") -> list[Prompt]:
    columns = table.fieldnames or []
    if "prompt" not in columns:
        raise InputError(f"{path} has no column named prompt; write that name in the first line")
    return [_prompt({name: row[name] or "" for name in columns if name}) for row in table]


def _prompt(given: str | Mapping[str, str]) -> Prompt:
    """A prompt from a text, or from a dictionary; other columns are left alone."""
    if isinstance(given, str):
        return Prompt(given)
    if "prompt" not in given:
        raise InputError(f"{dict(given)!r} has no prompt; give the prompt as 'prompt'")
    return Prompt(**{name: given[name] for name in Prompt._fields if name in given})


def check_output(path: Path) -> None:
    """Raise InputError for a file that the rows cannot be written to."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: the name of the output must end in {' or '.join(SUFFIXES)}")
    check_file(path)
    if path.suffix.lower() == ".parquet":
        _parquet()


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "a .parquet file needs pyarrow; run pip install pyarrow, or name a .csv file"
        ) from None
    return parquet


def write(path: Path, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Write a table as CSV or Parquet, with the same bytes for the same rows."""
    with replacing(path) as temporary:
        if path.suffix.lower() == ".parquet":
            _write_parquet(temporary, columns, rows)
            return
        with open(temporary, "w", newline="", encoding="utf-8") as file:
            write_csv(file, columns, rows)


def _write_parquet(path: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    import pyarrow

    found = zip(*rows, strict=True) if rows else [[] for _ in columns]
    table = pyarrow.table(dict(zip(columns, map(list, found), strict=True)))
    _parquet().write_table(table, path)


def write_csv(file: Any, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write a table as CSV, in which no text is a formula."""
    writer = csv.writer(file)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([in_csv(x) if isinstance(x, str) else x for x in row])
