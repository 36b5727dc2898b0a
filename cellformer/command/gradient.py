"""The command `gradient`: the weights and parts that move a word's logit, or any cell of a
workbook."""

from typing import Annotated

import typer

from cellformer import budget, names
from cellformer.command import cell_gradient, printing, results
from cellformer.command.answer import Answer
from cellformer.command.cells import Cells, is_cell
from cellformer.command.console import console, line
from cellformer.command.many import Many
from cellformer.command.options import (
    Beyond,
    Dask,
    Ids,
    Jobs,
    Name,
    NoSpecial,
    Prompt,
    Prompts,
    Resume,
    Rows,
)
from cellformer.command.sharing import Sharing
from cellformer.engine import InputError
from cellformer.engine.cells import finite
from cellformer.engine.studies import sensitivity
from cellformer.engine.studies.sensitivity import Options, Sensitivity

Top = Annotated[int, typer.Option("--top", min=1, help="Number of rows in each list.")]


def gradient(
    name: Name,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    target: Annotated[
        str | None,
        typer.Option("--target", help="Word or cell to track (default: the most likely word)."),
    ] = None,
    rival: Annotated[
        str | None,
        typer.Option("--rival", help="Word whose logit is subtracted from the target's logit."),
    ] = None,
    top: Top = 20,
    prompts: Prompts = None,
    output: Rows = None,
    jobs: Jobs = 1,
    dask: Dask = None,
    resume: Resume = False,
    force: Beyond = False,
) -> Answer:
    """Rank the weights, heads and MLPs by their effect on the target word's logit.

    Each estimate is shown beside the real effect of setting the weight to 0 or ablating the part.
    If --target is a cell, such as 'total[0,0]' or 'Machine!B20', the command ranks the typed cells
    by their effect on this cell. With --prompts, it studies each prompt of a file, and puts all
    results into one table.
    """
    many = Many(prompts, output, Sharing(jobs, dask, resume))
    if many.wanted(prompt=prompt, ids=ids):
        words = {"target": target, "rival": rival}
        return many.report("gradient", name, no_special, force, Options(top), **words)
    if names.is_worksheet(name):
        names.check_takes(name, prompt=prompt, ids=ids, no_special=no_special, rival=rival)
        if target is None or not is_cell(target):
            raise InputError(f"{name} has no model; give a cell, such as --target 'Sheet!B20'")
        book = names.book(name)
        return cell_gradient.report(Cells(book.graph, lambda: book), target, top)
    loaded = names.load(name, prompt, ids, not no_special, force=force)
    budget.of_passes(loaded.model, len(loaded.ids), force, sensitivity.STEPS)
    if target is not None and is_cell(target):
        graph = loaded.graph
        finite.check(graph, graph.values)
        n_cells = sum(block.n_cells for block in graph if block.op)
        budget.within(
            budget.MOST_FOLLOWED, n_cells, "cells that the gradient must pass through", force
        )
        return cell_gradient.report(Cells(graph, loaded.built), target, top)
    asked = loaded.asked(force, not no_special, target=target or "", rival=rival or "")
    found = sensitivity.measured(asked)
    said = f"logit of {asked.words[asked.word(asked.target)]}"
    said += f" less that of {asked.words[asked.word(asked.rival)]}" if rival else ""
    return Answer(lambda: _tell(found, said, top), lambda: _plain(found, said, top), "by_gradient")


def _tell(found: Sensitivity, said: str, top: int) -> None:
    """Print the largest weights, the groups and the parts."""
    line(f"{said}: {found.value:.4f}")
    for times_weight, title in ((False, "|gradient|"), (True, "|weight × gradient|")):
        console.print()
        printing.rows(found.largest(top, times_weight), f"weights with the largest {title}:")
    for heads, title in ((False, "blocks of weights:"), (True, "heads, MLPs and norms:")):
        console.print()
        printing.rows(sorted(found.groups(heads), key=lambda group: -group.size)[:top], title)
    _parts(found)


def _plain(found: Sensitivity, said: str, top: int) -> results.Gradient:
    """The result as JSON."""
    return {
        "objective": said,
        "value": found.value,
        "gradient": {name: g.tolist() for name, g in found.gradients.items()},
        "by_gradient": found.largest(top, False),
        "by_weight_times_gradient": found.largest(top, True),
        "blocks": found.groups(),
        "heads": found.groups(heads=True),
        "parts": found.parts(),
    }


def _parts(found: Sensitivity) -> None:
    """Ablated parts: two estimates, the real effect, and the mean errors."""
    parts = found.parts()
    if not parts:
        return
    console.print()
    printing.rows(parts, "effect of ablating each part, with two estimates of the effect:")
    errors = dict(sensitivity.errors(parts))
    line(
        f"mean error of the two estimates: patching {errors['patching']:.4f}, integrated "
        f"{errors['integrated']:.4f}"
    )
