"""The command `train`: a workbook's model, if it declares `train` or `RUN`; or a model of a
text."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from time import monotonic
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from cellformer import workbooks
from cellformer.command import results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.engine import InputError, Model
from cellformer.engine.cells.files import check_replaceable
from cellformer.engine.learning import corpus, text_training, training
from cellformer.engine.learning.text_training import Check, TextRun
from cellformer.engine.models import checkpoint

TIMED = 5  # the step after which it is known how long a run takes
EVERY = 50  # steps over which the loss shown is a mean
T = TypeVar("T")  # what is trained


def workbook(
    name: str,
    text: Path | None,
    folder: Path,
    force: bool,
    seed: int,
    embed_scale: float | None = None,
    steps: int | None = None,
) -> Answer:
    """Retrain a workbook's model. Raises InputError if it has no model that can be trained."""
    module = workbooks.find(name)
    if embed_scale is not None and (hasattr(module, "RUN") or hasattr(module, "book")):
        raise InputError(f"{name} does not use --embed-scale; leave this option out")
    if hasattr(module, "RUN"):
        if text is None:
            raise InputError(
                f"{name} learns from a text that is not included; give the text with --text FILE"
            )
        run = replace(module.RUN, steps=steps or module.RUN.steps)
        return from_text(run, text, folder, force, seed)
    if not hasattr(module, "train"):
        others = ((n, workbooks.find(n)) for n in workbooks.names())
        able = ", ".join(n for n, m in others if hasattr(m, "train") or hasattr(m, "RUN"))
        if hasattr(module, "learnt"):
            raise InputError(
                f"{name} is trained in its own workbook (`cellformer build {name}`); for this "
                f"command, choose one of {able}"
            )
        raise InputError(f"{name} has no weights to train; choose one of {able}")
    if text is not None:
        raise InputError(f"{name} is not trained on a text; leave out --text")
    if hasattr(module, "book"):
        return _of_worksheet(module, folder, force, seed, steps)
    check_replaceable(folder, checkpoint.is_part, force)  # before a long run
    model = _watch(module.train(seed, embed_scale, steps), module.floor)
    return _finish(model, folder, force, module.figures(model))


def _of_worksheet(
    module: ModuleType, folder: Path, force: bool, seed: int, steps: int | None
) -> Answer:
    """Train the model of a workbook without a transformer; its module saves it."""
    check_replaceable(folder, module.is_part, force)  # before a long run
    learned = _watch(module.train(seed, steps), torch_helps=False)
    module.save(learned, folder, force)
    files = ", ".join(sorted(path.name for path in folder.iterdir()))
    return _answer(folder, module.figures(learned), files)


def from_text(run: TextRun, path: Path, folder: Path, force: bool, seed: int) -> Answer:
    """Train a model on a text file. Raises InputError for unusable texts or sizes."""
    found = corpus.corpus(corpus.read(path), run.n_pieces, run.context)
    spec = run.decoder(len(found.words.texts)).spec
    check_replaceable(folder, checkpoint.is_part, force)  # before a long run
    line(
        f"{len(found.learnt):,} training tokens, {len(found.held_out):,} held-out tokens, "
        f"{spec.d_vocab:,} different tokens"
    )
    model = _watch(text_training.fit(run, found, seed))
    return _finish(model, folder, force, text_training.figures(model, found))


def chosen(vocab: str = "characters", **sizes: Any) -> TextRun:
    """The training run of the command's options. Raises InputError for a bad --vocab."""
    if vocab != "characters" and not re.fullmatch(r"\d{1,18}", vocab):
        raise InputError(f"--vocab is {vocab!r}; give `characters` or a number of tokens")
    return TextRun(n_pieces=None if vocab == "characters" else int(vocab), **sizes)


def _finish(model: Model, folder: Path, force: bool, figures: list[tuple[str, str]]) -> Answer:
    checkpoint.save(model, folder, force)
    n = sum(w.size for w in model.weights.values())
    return _answer(folder, figures, f"checkpoint, {n:,} parameters")


def _answer(folder: Path, figures: list[tuple[str, str]], told: str) -> Answer:
    """The figures of the trained model, and its folder."""

    def tell() -> None:
        table = Table(box=None, show_header=False)
        for text, figure in figures:
            table.add_row(text, Text(figure))
        console.print(table)
        line(f"{folder}: {told}")

    result: results.Train = {
        "folder": str(folder),
        "figures": [{"what": what, "figure": figure} for what, figure in figures],
    }
    return Answer(tell, lambda: result, "figures")


def _watch(
    steps: Iterator[training.Progress | Check | T],
    floor: Callable[[np.ndarray], float] | None = None,
    torch_helps: bool = True,
) -> T:
    """Show training on a progress bar: the mean loss, its distance from the floor, the checks.
    Returns the trained model."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}"))
    with Progress(
        *columns, TextColumn("of {task.total}"), TimeRemainingColumn(), console=console.rich
    ) as bar:
        task = bar.add_task("training", total=None)
        began = monotonic()
        losses, floors = list[float](), list[float]()
        for step in steps:
            if isinstance(step, Check):
                line(f"step {step.step:,}: held-out loss {step.loss:.4f}")
                console.print(Text(step.sample, "dim"))
                continue
            if not isinstance(step, training.Progress):
                return step
            if torch_helps and step.step == TIMED and not training.has_torch():
                _say_how_long(step.steps, (monotonic() - began) / (TIMED + 1))
            losses.append(step.loss)
            floors += [floor(step.ids)] if floor else []
            if len(losses) == EVERY:
                above = (
                    f", {mean(losses) - mean(floors):+.4f} above the possible minimum"
                    if floors
                    else ""
                )
                bar.update(task, description=f"loss {mean(losses):.4f}{above}")
                losses, floors = [], []
            bar.update(task, completed=step.step + 1, total=step.steps)
    raise AssertionError("a run ends in a model")


def _say_how_long(steps: int, each: float) -> None:
    """Print how long the run will take without torch, from the time of its first steps."""
    seconds = steps * each
    about = f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
    line(
        f"torch is not installed, so numpy computes the {steps:,} steps in about {about} (torch "
        "is up to four times faster: pip install 'cellformer[train]')"
    )
