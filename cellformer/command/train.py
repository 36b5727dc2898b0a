"""Train the model of a workbook module that can be trained: one with `train` and `figures`."""

from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import workbooks
from cellformer.command.printing import console, line
from engine import InputError, Model
from engine.models import checkpoint

EVERY = 50  # steps over which the loss shown is a mean


def run(name: str, folder: Path, seed: int, embed_scale: float | None) -> None:
    """Train, save, print the figures. Raises InputError for a module without a model to train."""
    module = workbooks.find(name)
    if not hasattr(module, "train"):
        able = ", ".join(n for n in workbooks.names() if hasattr(workbooks.find(n), "train"))
        raise InputError(f"the weights of {name} are set by hand; what can be trained: {able}")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; name a folder with -o")
    model = _train(module.train(seed, embed_scale), module.floor)
    checkpoint.save(model, folder)
    table = Table(box=None, show_header=False)
    for text, figure in module.figures(model):
        table.add_row(text, figure)
    console.print(table)
    line(f"{folder}: checkpoint, {sum(w.size for w in model.weights.values()):,} parameters")


def _train(steps, floor) -> Model:  # type: ignore[no-untyped-def]
    """Every step with a bar: the mean loss, and how far that is above the floor."""
    columns = ("{task.description}", BarColumn(), "{task.completed}/{task.total}")
    texts = [TextColumn(c) if isinstance(c, str) else c for c in columns]
    with Progress(*texts, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("training", total=None)
        losses, floors = [], []
        for step in steps:
            if isinstance(step, Model):
                return step
            losses.append(step.loss)
            floors.append(floor(step.ids))
            if len(losses) == EVERY:
                above = sum(losses) / EVERY - sum(floors) / EVERY
                text = f"loss {sum(losses) / EVERY:.4f}, {above:+.4f} above the floor"
                bar.update(task, description=text)
                losses, floors = [], []
            bar.update(task, completed=step.step + 1, total=step.steps)
    raise AssertionError("a run ends in a model")
