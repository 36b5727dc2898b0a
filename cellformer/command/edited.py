"""The commands that read an edited workbook: diff and import."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cellformer import exercises, names, workbooks
from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.console import console, line
from cellformer.command.options import Force
from cellformer.engine import Evaluator, InputError, Model
from cellformer.engine.cells import finite
from cellformer.engine.cells.arrays import ranked
from cellformer.engine.cells.files import check_replaceable
from cellformer.engine.cells.texts import readable
from cellformer.engine.models import checkpoint
from cellformer.engine.models.prompt_status import built_with
from cellformer.engine.studies.folding import folded
from cellformer.exporters.assemble.answer_key import KEY
from cellformer.exporters.compose.book import Book
from cellformer.exporters.edits import edited, link
from cellformer.exporters.file.reading import WorkbookFile

File = Annotated[Path, typer.Argument(help="A workbook made by cellformer, edited and saved.")]
FileOrLink = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="A workbook made by cellformer, edited and saved, or a page's link."
    ),
]
Built = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="Model that the workbook was built from, if the workbook does not contain the model.",
    ),
]
TOP = 8
LONGEST = 90  # characters of a text or formula that is shown
MOST_ADDED, MOST_REFUSED = 12, 5  # cells that are listed


def diff(file: File, model: Built = None) -> Answer:
    """List every weight, setting, formula and text that was changed since the workbook was built.

    A replaced formula is listed with the new formula. If only the spelling of a formula differs,
    the formula is not listed. If a cell has the wrong kind of value, such as a text for a number,
    the list also names the value that the workbook uses instead. Added cells are counted, and
    formulas in added cells are listed. In a workbook of exercises, only the yellow cells count.
    """
    if KEY in (written := WorkbookFile(file)):
        return _filled_in(file, written)
    found = edited.read(file, names.finder(model), names.of_gallery)
    return Answer(lambda: _tell(file, found), lambda: _plain(file, found), "changes")


def _tell(file: Path, found: edited.Edited) -> None:
    """Print the changes, and their effect."""
    groups = (
        ("changed", found.inputs),
        ("formula typed over", found.overwritten),
        ("text or constant changed", found.labels),
    )
    differing = {title: changes for title, changes in groups if changes}
    for title, changes in differing.items():
        table = printing.table_of(title, "at", "was", "is", "")
        for change in changes:
            table.add_row(*map(Text, (*change[:2], *map(_short, change[2:4]), change.counts)))
        console.print(table)
        console.print()
    if not differing:
        nothing = (
            "of the original cells differs" if found.added else "differs from the workbook as built"
        )
        line(f"{file}: nothing {nothing}")
    _added(found)
    if differing:
        _effect(found)


def _plain(file: Path, found: edited.Edited) -> results.Diff:
    """The same as JSON."""
    groups = {"changed": found.inputs, "formula": found.overwritten, "label": found.labels}
    told: results.Diff = {
        "file": str(file),
        "changes": [
            {
                "kind": kind,
                "cell": change.name,
                "at": change.where,
                "was": change.was,
                "now": change.now,
                "counts": change.counts,
            }
            for kind, changes in groups.items()
            for change in changes
        ],
    }
    differs = bool(told["changes"])
    told["changes"] += [_beside("added", cell.where, cell.where, cell.now) for cell in found.added]
    if not differs:
        return told
    try:
        live = _live(found)
    except InputError as error:
        told["refused"] = str(error)
        return told
    if not isinstance(found, edited.EditedModel):
        told["effects"] = list(printing.changed_cells(live))
    elif found.model.spec.gives == "next word":
        told["prompt"], told["words"] = found.sentence, _words(found)
    return told


def _live(found: edited.Edited) -> Evaluator:
    """The values after the edits. Raises InputError if a number of a model is not finite."""
    live = found.live()
    if isinstance(found, edited.EditedModel):
        finite.check(found.book.graph, live)
    return live


def _beside(kind: str, cell: str, at: str, now: float | str | bool) -> results.Differs:
    """A cell outside the workbook as built."""
    return {"kind": kind, "cell": cell, "at": at, "was": None, "now": now, "counts": ""}


def _words(found: edited.EditedModel) -> list[results.Turned]:
    """The most likely words after the edits, and before, with both probabilities."""
    before = found.book.values["probs"][found.book.passage.n_prompt - 1]
    after = found.live()["probs"][found.position]
    words = printing.output_words(found.model)
    order = ranked(after)
    listed = dict.fromkeys(order[:TOP] + ranked(before, TOP))
    return [
        {
            "rank": order.index(v) + 1,
            "word": words[v],
            "was": float(before[v]),
            "now": float(after[v]),
        }
        for v in listed
    ]


def _filled_in(path: Path, file: WorkbookFile) -> Answer:
    """The filled yellow cells of a workbook of exercises."""
    try:
        cells = exercises.filled_in(file)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    filled = [row for row in cells if row[2].formula or row[2].value not in (None, "")]
    typed = [
        _beside(
            "filled in",
            name,
            where,
            ("" if value is None else value) if formula is None else f"={formula}",
        )
        for name, where, (value, formula) in filled
    ]

    def tell() -> None:
        table = printing.table_of("filled in", "at", "typed")
        for cell in typed:
            table.add_row(*map(Text, (cell["cell"], cell["at"], _short(cell["now"]))))
        if filled:
            console.print(table)
        line(f"{path}: {len(filled)} of {len(cells)} yellow cells of the exercises are filled in")
        line(f"‘cellformer grade {path}’ marks them")

    return Answer(tell, lambda: {"file": str(path), "changes": typed}, "changes")


def _added(found: edited.Edited) -> None:
    """Print the cells that were added: how many, and each formula, since it may do harm."""
    if not found.added:
        return
    formulas = [cell for cell in found.added if cell.is_formula]
    n, first = len(found.added), found.added[0]
    cells = "1 cell was added" if n == 1 else f"{n:,} cells were added"
    among = f", {len(formulas):,} of them with formulas" if n > 1 and formulas else ""
    line(f"{cells}{among}; the first is {first.where}: {_short(first.now)}")
    if not formulas:
        return
    line(
        "a formula can fetch pages, read files and start programs; check these formulas before "
        "you open the file"
    )
    for cell in formulas[:MOST_ADDED]:
        line(f"  {cell.where}  {_short(cell.now)}")
    if len(formulas) > MOST_ADDED:
        line(f"  and {len(formulas) - MOST_ADDED:,} more formulas")


def _effect(found: edited.Edited) -> None:
    """Print the effect of the edits, if it can be computed."""
    try:
        live = _live(found)
    except InputError as error:
        return line(str(error))
    if not isinstance(found, edited.EditedModel):
        printing.changes(live)
    elif found.model.spec.gives == "next word":
        _prompt(found)
        _ranking(found)
    elif found.model.spec.gives == "sentence":
        printing.vectors(live, changed=True)
    else:
        printing.ranking(printing.output_words(found.model), live, True, None, 0, "word")


def import_(
    file: FileOrLink,
    output: Annotated[Path, typer.Option("-o", help="Output folder for the checkpoint.")],
    model: Built = None,
    force: Force = False,
) -> Answer:
    """Save the model of an edited or trained workbook as a checkpoint.

    FILE can also be the link of a page, or the part of this link that begins with #. A checkpoint
    can hold no replaced formula, no renamed word, and no weight that is a text, an error or blank.
    If the workbook has such changes, the command lists these changes and saves nothing. Cells that
    you added are listed, but they are not part of the checkpoint.
    """
    check_replaceable(output, checkpoint.is_part, force)
    found: edited.EditedModel | Model
    found, source = _of_link(file, model) if link.is_link(file) else _of_file(Path(file), model)
    if isinstance(found, Model):
        checkpoint.save(found, output, force)
        told = f"{output}: checkpoint with the current weights of {source}"
        learnt: results.Import = {"folder": str(output), "changes": None, "added": 0}
        return Answer(lambda: line(told), lambda: learnt)
    if found.unheld:
        raise InputError(_refusal(found.unheld))
    blocks = found.model.graph([0]).blocks
    change = {cell: float(value) for cell, value in found.values.items() if cell[0] in blocks}
    checkpoint.save(folded(found.model, change), output, force)
    edits = found

    def tell() -> None:
        line(f"{output}: checkpoint with {len(change)} changes from {source}")
        _added(edits)

    n = {"changes": len(change), "added": len(edits.added)}
    return Answer(tell, lambda: {"folder": str(output), **n})


def _of_file(file: Path, model: str | None) -> tuple[edited.EditedModel | Model, str]:
    """The edits of a workbook, or the model that it learned; and how messages call it."""
    name = edited.name_of(WorkbookFile(file))
    if name in workbooks.names() and hasattr(workbooks.find(name), "learnt"):
        book, opened = names.book(name), WorkbookFile(file)
        learnt = workbooks.find(name).learnt(lambda block: edited.held(opened, book, block))
        return learnt, str(file)
    return edited.read_model(file, names.finder(model)), str(file)


def _of_link(text: str, model: str | None) -> tuple[edited.EditedModel, str]:
    """The edits of a page's link."""
    found = link.read(text, lambda name: _book(name, model))
    name = found.book.title
    if isinstance(found, edited.EditedModel):
        return found, f"the link of {name}"
    if hasattr(workbooks.find(name), "learnt"):
        raise InputError(
            f"a link of {name} does not contain the weights that were trained on the page. Save "
            "the workbook on the page, and give the file of this workbook instead of the link"
        )
    raise InputError(
        f"{name} has no model, but this command needs a model; give the link of another page"
    )


def _book(name: str, model: str | None) -> Book:
    """The book of a link's page. Raises InputError if the model of the page is not known."""
    if model is not None:
        return names.load(model, ids="0").built()
    if name not in workbooks.names():
        raise InputError(
            f"the link comes from {readable(name)}, which is not in the gallery; name its "
            "model with --model"
        )
    return names.book(name)


def _refusal(cells: Sequence[edited.EditedCell]) -> str:
    """The error for changes that cannot be saved: the first cell, where others are, how many
    more."""
    first, others = cells[0], [cell.where for cell in cells[1 : 1 + MOST_REFUSED]]
    if len(cells) > 1 + MOST_REFUSED:
        others.append(f"{len(cells) - 1 - MOST_REFUSED:,} more")
    why = f", {first.counts.partition(':')[0]}" if first.counts else ""
    nor = f"; the same is true of {', '.join(others)} (see `cellformer diff`)" if others else ""
    return (
        f"{first.where} ({first.name}) was {_short(first.was)} and is {_short(first.now)}{why}; "
        f"a checkpoint cannot store this change{nor}; change {'these' if others else 'it'} back"
    )


def _short(value: float | str | None) -> str:
    """A number with ten digits; a text, cut if long, in quotes if it has outer spaces."""
    if isinstance(value, float | int):
        return f"{value:.10g}"
    text = readable(value or "")
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return text if text == text.strip() != "" else f"‘{text}’"


def _prompt(found: edited.EditedModel) -> None:
    """Print the prompt if it changed, and its unknown words."""
    was, now = built_with(found.book.graph), found.sentence
    if now != was:
        line(f"the prompt: {was} → {now}")
    for word in found.unknown:
        line(
            f"the vocabulary does not contain {word!r}; the sheet uses the first word of the "
            "vocabulary instead"
        )


def _ranking(found: edited.EditedModel) -> None:
    """Print the most likely words before and after."""
    table = printing.table_of("", "next word", "was", "is", "change")
    for word in _words(found):
        was, now = word["was"], word["now"]
        numbers = (f"{was:.4f}", f"{now:.4f}", f"{now - was:+.4f}")
        table.add_row(str(word["rank"]), Text(word["word"], "bold"), *numbers)
    console.print(table)
