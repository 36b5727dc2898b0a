"""Studies of one model over many prompts: ablate, gradient, patch and sweep, as rows of a table.

A prompt is a part of the work (`cellformer.work`), computed in passes of its own; so rows do not
depend on how many work. A worker is sent the model's name and reads the weights from its file.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from cellformer import budget, names, pairs, work
from cellformer.engine.cells import finite
from cellformer.engine.cells.arguments import explained, wrong
from cellformer.engine.cells.batch import variants
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.files import check_file, possible, replacing
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.texts import in_csv
from cellformer.engine.models.model import Model
from cellformer.engine.studies import ablation, columns, patching, sensitivity
from cellformer.engine.studies.effect import Effect
from cellformer.engine.text.list_file import quoted
from cellformer.engine.text.tokenizer import shown
from cellformer.kept import Kept
from cellformer.names import word_of
from cellformer.stamps import stamp

Value = str | int | float | None
Row = list[Value]
LARGEST = 200_000_000  # bytes of a file of prompts
SUFFIXES = (".csv", ".parquet")


class Prompt(NamedTuple):
    """A line of a file of prompts: a text, and what is asked about it. "": the default."""

    prompt: str
    target: str = ""
    rival: str = ""
    against: str = ""  # the text that `patch` takes values from


@dataclass(frozen=True)
class Study:
    """What is computed for each prompt."""

    kind: str  # of STUDIES
    name: str  # of the model
    special: bool = True
    force: bool = False
    target: str = ""  # of the prompts that have none of their own; the rival and the text, too
    rival: str = ""
    against: str = ""
    mean: bool = False  # ablate
    cell: str = ""  # sweep
    start: float = -1.0
    stop: float = 1.0
    n_steps: int = 21
    top: int = 20  # gradient
    sites: tuple[str, ...] = ()  # patch

    def __post_init__(self) -> None:
        if reason := wrong(type(self).__init__, (self,), vars(self)):
            raise InputError(reason)
        for name in ("n_steps", "top"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, and it is {getattr(self, name)}")

    @property
    def columns(self) -> list[str]:
        """The names of a row's values."""
        return ["number", "prompt", "target", *STUDIES[self.kind][1]]

    def rows(self, part: tuple[int, Prompt]) -> list[Row]:
        """The rows of a prompt, whose number counts from 1. Raises InputError."""
        number, asked = part
        try:
            with _ONE:
                return [[number, asked.prompt, *row] for row in self._rows(asked)]
        except InputError as error:
            raise InputError(f"prompt {number}, {quoted(asked.prompt)}: {error}") from None

    def _rows(self, asked: Prompt) -> Iterable[Row]:
        loaded = self.loaded(asked)
        names.needs_words(loaded)
        asked = Prompt(*(own or getattr(self, field, "") for field, own in asked._asdict().items()))
        compute: Callable[[Study, names.Loaded, Prompt], Iterable[Row]] = STUDIES[self.kind][0]
        return compute(self, loaded, asked)

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


# --- the studies of one prompt --------------------------------------------------------------------


def _word(loaded: names.Loaded, graph: Graph, text: str, option: str = "--target") -> int:
    """The word that a text names, by default the likeliest."""
    row = loaded.place_of_answer
    return word_of(loaded.model, text, graph, row, option) if text else names.first_word(graph, row)


def _words(loaded: names.Loaded) -> list[str]:
    """The texts of the words that have a logit."""
    return list(shown((loaded.model.outputs or loaded.model.vocabulary).texts))


def ablated(loaded: names.Loaded, target: str, mean: bool, force: bool) -> tuple[str, list[Effect]]:
    """The target word, and the effects of its parts, each switched off alone. Raises InputError."""
    model, row = loaded.model, loaded.place_of_answer
    if mean:
        model = ablation.with_averages(model, list(filter(None, (loaded.ids, loaded.second))))
    graph, words = model.graph(loaded.ids), _words(loaded)
    if not (parts := ablation.parts(graph)):
        raise InputError(f"{loaded.name} has no heads or MLPs: there is nothing to ablate")
    budget.of_passes(model, len(loaded.ids), force, len(parts))
    finite.check(graph, graph.values)
    wanted = _word(loaded, graph, target)
    return words[wanted], ablation.effects(graph, wanted, row, mean, words)


def _ablate(study: Study, loaded: names.Loaded, asked: Prompt) -> Iterable[Row]:
    target, found = ablated(loaded, asked.target, study.mean, study.force)
    return ([target, *columns.values(effect)] for effect in found)


def _sweep(study: Study, loaded: names.Loaded, asked: Prompt) -> Iterable[Row]:
    budget.of_passes(loaded.model, len(loaded.ids), study.force, study.n_steps)
    graph, row, words = loaded.graph, loaded.place_of_answer, _words(loaded)
    finite.check(graph, graph.values)
    target = _word(loaded, graph, asked.target)
    block, i, j = graph.parse(study.cell)
    values = np.linspace(study.start, study.stop, study.n_steps).tolist()
    found = variants(graph, [{(block.name, i, j): x} for x in values])
    for x, logits, probs in zip(values, found["logits"], found["probs"], strict=True):
        if not np.isfinite(probs[row]).all():
            raise InputError(f"{study.cell} = {x:g} makes a probability infinite or undefined")
        numbers = (x, float(logits[row, target]), float(probs[row, target]))
        yield [words[target], study.cell, *numbers, words[int(np.argmax(logits[row]))]]


def _gradient(study: Study, loaded: names.Loaded, asked: Prompt) -> Iterable[Row]:
    budget.of_passes(loaded.model, len(loaded.ids), study.force, sensitivity.STEPS)
    graph, row, words = loaded.graph, loaded.place_of_answer, _words(loaded)
    finite.check(graph, graph.values)
    target = _word(loaded, graph, asked.target)
    rival = _word(loaded, graph, asked.rival, "--rival") if asked.rival else None
    found = sensitivity.of_logit(graph, row, target, rival)
    begin: Row = [words[target], "" if rival is None else words[rival]]
    largest = [w for times in (False, True) for w in found.largest(study.top, times)]
    for w in dict.fromkeys(largest):
        yield [*begin, "weight", w.cell, w.value, w.gradient, w.estimate, None, w.effect]
    for part in found.parts():
        yield [*begin, "part", part.name, 1.0, None, part.patching, part.integrated, part.effect]


def _patch(study: Study, loaded: names.Loaded, asked: Prompt) -> Iterable[Row]:
    if not asked.against:
        raise InputError("has no text to take values from; give --against, or a column against")
    words, tokens = _words(loaded), shown(loaded.model.vocabulary.texts)
    other = pairs.others(loaded, asked.against, study.special)
    sites = study.sites or patching.sites(loaded.graph)
    target, rival = asked.target or None, asked.rival or None
    found = pairs.compared(loaded, other, target, rival, sites)
    begin = (words[found.target], asked.against, words[found.rival])
    for each in found.rows:
        token = "" if each.token is None else tokens[loaded.ids[each.token]]
        yield [*begin, each.site, each.token, token, *each.scores, each.recovered, each.estimate]


STUDIES: Mapping[str, tuple[Any, Sequence[str]]] = {  # with the columns of a row
    "ablate": (_ablate, columns.heads(Effect)),
    "gradient": (
        _gradient,
        ("rival", "kind", "name", "value", "gradient", "estimate", "integrated", "effect"),
    ),
    "patch": (
        _patch,
        (
            *("against", "rival", "site", "token", "word"),
            *("probability", "logit", "lead", "recovered", "estimate"),
        ),
    ),
    "sweep": (_sweep, ("cell", "value", "logit", "probability", "first")),
}


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

    `kind` is ablate, gradient, patch or sweep; `prompts` are texts, dictionaries with `prompt` and
    possibly `target`, `rival` and `against`, or a file (`docs/many-prompts.md`). `executor` is any
    of the interface of `concurrent.futures`: processes here, or dask's `client.get_executor()`;
    without one, this process does all. `output` is a .csv or .parquet to write as well, with
    `resume` to go on with a run that was stopped. `options` are fields of
    `cellformer.studies.Study`: `cell`, `start`, `stop`, `n_steps` of a sweep; `mean`; `top`;
    `sites`. Raises InputError.

    >>> rows = cf.study("ablate", "cat-sat", ["the cat sat", "a dog ran"])
    >>> rows[0]["part"], rows[0]["first"], rows[-1]["prompt"]
    ('blocks.0.attn', 'mat', 'a dog ran')
    """
    known = {field.name for field in fields(Study)} - {"kind", "name"}
    if kind not in STUDIES:
        raise InputError(f"{kind!r} is no study; known: {', '.join(STUDIES)}")
    if strange := options.keys() - known:
        listed = ", ".join(sorted(known))
        raise InputError(f"{min(strange)!r} is no option of a study; known: {listed}")
    asked = Study(kind, absolute(name), **options)
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
    asked: Study,
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
    digest = sha256(json.dumps(prompts).encode()).hexdigest()
    told = [stamp(asked.name), str(asked), digest]
    kept: Kept[list[Row]] = Kept(output, told, resume, "prompts", len(parts))
    with kept:
        missing = kept.missing
        advance(len(parts) - len(missing))
        named = partial(_named, prompts)
        todo = [parts[k] for k in missing]
        for n, rows in work.done(asked.rows, todo, workers, tell, named):
            kept.add(missing[n], rows)
            advance(1)
        found = [row for k in range(len(parts)) for row in kept.results[k]]
        if output is not None:
            write(output, asked.columns, found)
    return found


def _named(prompts: Sequence[Prompt], part: tuple[int, Prompt]) -> str:
    return f"prompt {part[0]} of {len(prompts)}"


def _check(asked: Study, parts: Sequence[tuple[int, Prompt]]) -> None:
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
        raise InputError(f"{path} has more than {LARGEST / 1e6:,.0f} MB; split it")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            table = path.suffix.lower() == ".csv"
            found = _table(path, csv.DictReader(file)) if table else _lines(file)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not in UTF-8; save it as UTF-8") from None
    except csv.Error as error:
        raise InputError(f"{path} is no CSV: {error}") from None
    if not found:
        raise InputError(f"{path} has no prompts; write one on each line")
    return found


def _lines(file: Iterable[str]) -> list[Prompt]:
    return [Prompt(line.rstrip("\r\n")) for line in file if line.strip()]


def _table(path: Path, table: "csv.DictReader[str]") -> list[Prompt]:
    columns = table.fieldnames or []
    if "prompt" not in columns:
        raise InputError(f"{path} has no column prompt; name it in the first line")
    return [_prompt({name: row[name] or "" for name in columns if name}) for row in table]


def _prompt(given: str | Mapping[str, str]) -> Prompt:
    """A prompt from a text, or from a dictionary; other columns are left alone."""
    if isinstance(given, str):
        return Prompt(given)
    if "prompt" not in given:
        raise InputError(f"{dict(given)!r} has no prompt; give it as 'prompt'")
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
        raise InputError("a .parquet needs pyarrow: pip install pyarrow, or name a .csv") from None
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
