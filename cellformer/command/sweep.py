"""The command `sweep`: one cell runs through a range of values."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from cellformer import names
from cellformer.command import printing
from cellformer.command.answer import Answer
from cellformer.command.cells import Cells, is_cell, watched_cell
from cellformer.command.console import line
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
    Target,
    block_names,
)
from cellformer.command.sharing import Sharing
from cellformer.engine import InputError
from cellformer.engine.cells import finite
from cellformer.engine.studies import columns
from cellformer.engine.studies import sweep as sweeping
from cellformer.engine.studies.study import word_of
from cellformer.engine.studies.sweep import Row, Watched
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.cells import SheetCell, is_address
from cellformer.exporters.edits.edited import Edited, EditedModel
from cellformer.studies import write

CurveFile = Annotated[
    Path | None, typer.Option("-o", help="Output file: .csv, .png or .parquet (default: print).")
]
SweptCell = Annotated[
    str,
    typer.Argument(
        help="A cell, such as 'blocks.0.attn.h1.W_Q[3,2]' or 'Embedding!C9'.",
        autocompletion=block_names,
    ),
]


def sweep(
    name: Name,
    cell: SweptCell,
    start: Annotated[float, typer.Option("--from", help="First value.")] = -1.0,
    stop: Annotated[float, typer.Option("--to", help="Last value.")] = 1.0,
    n_steps: Annotated[
        int, typer.Option("--steps", min=2, max=sweeping.MOST_STEPS, help="Number of values.")
    ] = 21,
    prompt: Prompt = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    target: Target = None,
    output: CurveFile = None,
    prompts: Prompts = None,
    jobs: Jobs = 1,
    dask: Dask = None,
    resume: Resume = False,
    force: Beyond = False,
) -> Answer:
    """Run one cell through a range of values, and report the target word's logit and probability.

    In a workbook without a transformer, --target is a cell: 'loss[0,0]'. With --prompts, each
    prompt of a file is studied, and the result is one table.
    """
    many = Many(prompts, output, Sharing(jobs, dask, resume))
    asked = sweeping.Options(cell, start, stop, n_steps)
    if many.wanted(prompt=prompt, ids=ids):
        return many.report("sweep", name, no_special, force, asked, target=target)
    if output and output.suffix.lower() not in (".csv", ".png"):
        raise InputError(f"{output}: the name of an output file must end in .csv or .png")
    if start == stop:
        raise InputError(
            f"--from and --to are both {start:g}; give two different values for {cell}"
        )
    if names.is_workbook(name) or names.is_worksheet(name):
        check = names.check_keeps if names.is_workbook(name) else names.check_takes
        check(name, prompt=prompt, ids=ids, no_special=no_special)
        watched, rows = _of_opened(names.opened(name), asked, target)
    else:
        loaded = names.load(name, prompt, ids, not no_special, force=force)
        if is_address(cell):
            block, i, j = Cells(loaded.graph, loaded.built).parse(cell)
            asked = replace(asked, cell=f"{block.name}[{i},{j}]")
        of = loaded.asked(force, not no_special, target=target or "", options=asked)
        watched, rows = sweeping.STUDY.rows(of)
    found = list(rows)
    if output is not None:
        _write(output, watched, found)

    def tell() -> None:
        if output is not None:
            return line(f"{output}: {n_steps} values of {found[0].cell}")
        printing.rows(found, f"{watched} for each value of {found[0].cell}", hidden=("cell",))

    return Answer(tell, lambda: {"target": watched, "rows": found}, "rows")


def _write(path: Path, watched: str, rows: Sequence[Row | Watched]) -> None:
    """Write the rows as CSV, or as a picture."""
    if path.suffix.lower() == ".csv":
        return write(path, columns.heads(type(rows[0])), list(map(columns.values, rows)))
    from cellformer import plot

    drawn, subject = {watched: "shows"}, watched
    if isinstance(rows[0], Row):
        drawn = {f"logit of {watched}": "logit", "probability": "probability"}
        subject = f"‘{watched}’"
    lines = {label: np.array([getattr(r, name) for r in rows]) for label, name in drawn.items()}
    values = np.array([row.value for row in rows])
    plot.save(plot.curve(rows[0].cell, values, lines, subject), path)


def _of_opened(
    opened: Edited, asked: sweeping.Options, target: str | None
) -> tuple[str, Iterable[Row | Watched]]:
    """A computed cell of a workbook in its file: `target`, or the cell that the first suggested
    edit watches. In a model, `target` may be a word (default: the likeliest)."""
    found, graph, live = opened.book, opened.book.graph, opened.live()
    block, i, j = Cells(graph, lambda: found).parse(asked.cell)
    name = f"{block.name}[{i},{j}]"
    if isinstance(opened, EditedModel) and not (target and is_cell(target)):
        row, words = opened.position, printing.output_words(opened.model)
        wanted = int(np.argmax(live["logits"][row]))
        if target is not None:
            wanted = word_of(opened.model, target, graph, row)
        rows = []
        for x in asked.values:
            live.set(block.name, i, j, x)
            finite.check(graph, live)
            logit, share = (float(live[of][row, wanted]) for of in ("logits", "probs"))
            rows.append(Row(name, x, logit, share, words[int(np.argmax(live["logits"][row]))]))
        return words[wanted], rows
    watched = _watched(found, target)
    shown = []
    for x in asked.values:
        live.set(block.name, i, j, x)
        shown.append(replace(watched, reading=found.reading(live)).value)
    if any(isinstance(x, str) for x in shown):
        raise InputError(
            f"{watched.name} shows a text; with --target, name a cell that shows a number"
        )
    values = zip(asked.values, shown, strict=True)
    return watched.name, [Watched(name, x, watched.name, float(y)) for x, y in values]


def _watched(book: Book, target: str | None) -> SheetCell:
    """The cell that is watched. Raises InputError."""
    if target is not None:
        return watched_cell(book, target)
    if book.suggestions and (watch := book.suggestions[0].watch):
        return SheetCell(book.clean, *book.cell(*watch))
    raise InputError(f"name the cell to watch: --target '{list(book.graph.blocks)[-1]}[0,0]'")
