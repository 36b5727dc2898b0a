"""Commands that take an edited workbook back: diff, import."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.text import Text

import workbooks
from cellformer import names
from cellformer.command import printing
from cellformer.command.options import Force
from cellformer.command.printing import console, line
from engine import InputError, Model
from engine.cells.files import check_replaceable
from engine.models import checkpoint
from engine.studies.folding import folded
from exporters import edited
from exporters.pages.play import sentence
from exporters.reading import WorkbookFile

File = Annotated[Path, typer.Argument(help="A workbook of cellformer's, edited and saved.")]
Built = Annotated[
    str | None,
    typer.Option("--model", help="What it was built from, if it is too large to carry that along."),
]
TOP = 8
LONGEST = 90  # characters of a text or formula that is shown


def diff(file: File, model: Built = None) -> None:
    """List every weight, setting, formula and text that differs from the workbook as built.

    A formula that was replaced by a number or by another formula is told with both; how a program
    spells it when it saves makes no difference.
    """
    found = edited.read(file, _finder(model), names.book)
    groups = (
        ("changed", found.inputs),
        ("formula typed over", found.overwritten),
        ("text or constant changed", found.labels),
    )
    if not any(changes for _, changes in groups):
        line(f"{file}: nothing differs from the workbook as built")
        return
    for title, changes in groups:
        if changes:
            table = printing.table_of(title, "at", "was", "is")
            for change in changes:
                table.add_row(*(Text(_short(text)) for text in change))
            console.print(table)
            console.print()
    if isinstance(found, edited.EditedModel) and found.model.spec.gives != "next word":
        _encoder(found)
    elif isinstance(found, edited.EditedModel):
        _prompt(found)
        _ranking(found)
    else:
        printing.changes(found.live())


def import_(
    file: File,
    output: Annotated[Path, typer.Option("-o", help="The folder of the checkpoint.")],
    model: Built = None,
    force: Force = False,
) -> None:
    """Write the model that an edited workbook holds, or has learnt, as a checkpoint.

    What no checkpoint holds is refused by name: a formula that was replaced, a word renamed.
    """
    check_replaceable(output, checkpoint.is_part, force)
    name = edited.name_of(WorkbookFile(file))
    if name in workbooks.names() and hasattr(workbooks.find(name), "learnt"):
        _learnt(file, name, output, force)
        return
    found = edited.read_model(file, _finder(model))
    for cell in found.unheld:
        raise InputError(
            f"{cell.where} ({cell.name}) was {_short(cell.was)} and is {_short(cell.now)}, which a "
            "checkpoint cannot hold; change it back"
        )
    blocks = found.model.graph([0]).blocks
    change = {cell: float(value) for cell, value in found.values.items() if cell[0] in blocks}
    checkpoint.save(folded(found.model, change), output, force)
    line(f"{output}: checkpoint, with {len(change)} changes of {file}")


def _learnt(file: Path, name: str, output: Path, force: bool) -> None:
    """Write the model that a workbook has learnt by itself."""
    book, opened = names.book(name), WorkbookFile(file)
    model = workbooks.find(name).learnt(lambda block: edited.held(opened, book, block))
    checkpoint.save(model, output, force)
    line(f"{output}: checkpoint, with the weights that {file} holds by now")


def _finder(name: str | None) -> Callable[[str], Model]:
    """Where the model of a workbook that does not carry it comes from."""

    def find(title: str) -> Model:
        if name is None and title not in workbooks.names():
            raise InputError("it does not carry its model; name it with --model")
        return names.model(name or title)

    return find


def _short(value: float | str) -> str:
    """A number with ten digits, a text whole if it is not long."""
    if isinstance(value, float | int):
        return f"{value:.10g}"
    return value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"


def _prompt(found: edited.EditedModel) -> None:
    """Another prompt, and its words that are unknown."""
    was, now = sentence(found.book), found.sentence
    if now != was:
        line(f"the prompt: {was} → {now}")
    for word in found.unknown:
        line(f"the vocabulary has no {word!r}; the sheet reads its first word in its place")


def _encoder(found: edited.EditedModel) -> None:
    """The words for the mask, or the cosine, before and after."""
    live = found.live()
    if found.model.spec.gives == "sentence":
        printing.vectors(live, changed=True)
    else:
        printing.ranking(printing.output_words(found.model), live, True, None, 0)


def _ranking(found: edited.EditedModel) -> None:
    """The top words before and after."""
    before = found.book.values["probs"][found.book.passage.n_prompt - 1]
    after = found.live()["probs"][found.position]
    words = printing.output_words(found.model)
    table = printing.table_of("", "next word", "was", "is", "change")
    order = np.argsort(-after, kind="stable").tolist()
    shown = order[:TOP] + [
        v for v in np.argsort(-before, kind="stable").tolist()[:TOP] if v not in order[:TOP]
    ]
    for v in shown:
        change = f"{after[v] - before[v]:+.4f}"
        cells = (f"{before[v]:.4f}", f"{after[v]:.4f}", change)
        table.add_row(str(order.index(v) + 1), Text(words[v], "bold"), *cells)
    console.print(table)
