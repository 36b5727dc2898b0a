"""The command `trace`: a cell's formula, the cells it reads and their values, as a tree."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import typer
from rich.text import Text
from rich.tree import Tree

from cellformer import budget, names
from cellformer.command import printing, results
from cellformer.command.answer import Answer
from cellformer.command.cells import Cells, on_sheet
from cellformer.command.console import console
from cellformer.command.explore import continued
from cellformer.command.options import (
    Beyond,
    Ids,
    Name,
    NoSpecial,
    Prompt,
    Second,
    Sets,
    Tokens,
    block_names,
)
from cellformer.command.saved_cells import SavedCell
from cellformer.engine import Cell, Evaluator
from cellformer.engine.cells.errors import UnknownNameError
from cellformer.engine.models import formats
from cellformer.exporters.compose.book import START, Book
from cellformer.exporters.compose.cells import SheetCell, is_address, position
from cellformer.exporters.edits.edited import Edited
from cellformer.exporters.file.reading import WorkbookFile, present

Traceable = Cell | SheetCell | SavedCell
MAX_BRANCHES = 12  # precedents shown per cell of a trace


def trace(
    name: Name,
    cell: Annotated[
        list[str],
        typer.Argument(
            help="One or more cells, such as 'logits[2,5]' or 'Machine!B20'.",
            autocompletion=block_names,
        ),
    ],
    depth: Annotated[int, typer.Option("--depth", min=0, help="Depth of the tree.")] = 2,
    prompt: Prompt = None,
    second: Second = None,
    ids: Ids = None,
    no_special: NoSpecial = False,
    tokens: Tokens = None,
    sets: Sets = None,
    force: Beyond = False,
) -> Answer:
    """Show a cell's formula, the cells it reads and their values, as a tree.

    Name a cell of a block, such as 'logits[2,5]', or any formula of the workbook by its sheet and
    address, such as 'Machine!B20'. With --tokens, the model continues the prompt, and 'tokens[9,0]'
    shows how the word at position 9 was chosen. If NAME is a workbook file, the tree has the values
    that were typed into this file.
    """
    opened: Edited | None = None
    if names.is_workbook(name) or names.is_worksheet(name):
        given = {"prompt": prompt, "ids": ids, "second": second, "no_special": no_special}
        check = names.check_keeps if names.is_workbook(name) else names.check_takes
        check(name, **given, tokens=tokens)
        opened = names.opened(name)
        book = opened.book
        found = Cells(book.graph, lambda: book)
    else:
        loaded = names.load(name, prompt, ids, not no_special, second=second, force=force)
        budget.of_passes(loaded.model, tokens or len(loaded.ids), force)
        found = Cells(continued(loaded.model, loaded, tokens), partial(loaded.built, tokens))
    has_sheets = opened is not None or not formats.means(name)
    saved = WorkbookFile(present(name)) if names.is_workbook(name) else None
    roots = [
        (saved and _saved(found.book, text, saved)) or _root(found, text, opened, sets, has_sheets)
        for text in cell
    ]
    edits = {} if opened is None else content_as_built(opened)
    trees = [followed(root, depth, force, edits) for root in roots]
    return Answer(
        lambda: tell(trees),
        lambda: {"cells": [traced(read) for tree in trees for read in tree.all()]},
        "cells",
    )


def _root(
    found: Cells,
    text: str,
    opened: Edited | None,
    sets: Sequence[str] | None,
    has_sheets: bool,
) -> Cell | SheetCell:
    """A cell of a block, or else of a sheet, after every --set. Raises InputError."""
    if not is_address(text):
        try:
            block, i, j = found.graph.parse(text)
        except UnknownNameError:
            if not has_sheets:
                raise
        else:
            live = Evaluator(found.graph) if opened is None else opened.live()
            found.set(live, sets)
            return live.cell(block.name, i, j)
    live = Evaluator(found.book.graph) if opened is None else opened.live()
    return on_sheet(found.book, text, live, sets)


def _saved(book: Book, text: str, file: WorkbookFile) -> SavedCell | None:
    """A formula that only the file has, or whose value describes the file, as on Start; None for
    all others."""
    if not is_address(text):
        return None
    for sheet in file:
        book.sheet(sheet)  # those that are not rebuilt are there, and empty
    sheet, row, col = position(book, text)
    cell = SavedCell(file, sheet, row, col) if sheet in file else None
    if cell is None or cell.formula is None:
        return None
    rebuilt = SheetCell(book.clean, sheet, row, col).exists and sheet != START
    return None if rebuilt else cell


WasNow = tuple[str, str]  # a cell's content as built, and as typed


def content_as_built(opened: Edited) -> dict[str, WasNow]:
    """The entries of cells as built, by their names and addresses."""
    found: dict[str, WasNow] = {}
    for change in (*opened.inputs, *opened.overwritten, *opened.labels):
        found[change.name] = found[change.where] = str(change.was), str(change.now)
    return found


@dataclass
class Read:
    """A cell of a trace with its inputs, as far as they are listed."""

    cell: Traceable
    depth: int
    edit: WasNow | None = None  # what was typed into it
    reads: list["Read"] = field(default_factory=list)

    def all(self) -> Iterator["Read"]:
        """It, and then all below it."""
        yield self
        for read in self.reads:
            yield from read.all()


def followed(root: Traceable, depth: int, force: bool, edits: Mapping[str, WasNow]) -> Read:
    """A cell and the cells it reads, as a tree, which ends at formulas that were typed over. Raises
    InputError for a tree beyond the budget, unless `force`."""
    top = Read(root, 0, edits.get(root.name))
    lowest, n_lines = [top], 1
    for level in range(1, depth + 1):
        above, lowest = lowest, []
        for branch in above:
            typed_over = branch.edit is not None and branch.edit[0].startswith("=")
            found = [] if typed_over else branch.cell.precedents[:MAX_BRANCHES]
            branch.reads = [Read(read, level, edits.get(read.name)) for read in found]
            lowest += branch.reads
            n_more = n_lines + len(lowest)
            budget.within(
                budget.MOST_LINES, n_more, "lines in this tree (at least this many)", force
            )
        n_lines += len(lowest)
    return top


def tell(roots: Sequence[Read]) -> None:
    """Print each cell's formula and the cells it reads as a tree."""
    for root in roots:
        console.print(_tree(root))


def _tree(read: Read) -> Tree:
    tree = Tree(_cell_line(read))
    for below in read.reads:
        tree.add(_tree(below))
    more = len(read.cell.precedents) - len(read.reads) if read.reads else 0
    if more:
        tree.add(Text(f"... {more} more", "dim"))
    return tree


def traced(read: Read) -> results.Traced:
    """A cell of a trace as JSON."""
    cell = read.cell
    found: results.Traced = {
        "depth": read.depth,
        "cell": cell.name,
        "value": cell.value,
        "formula": cell.formula,
        "reads": len(cell.precedents),
    }
    if read.edit is not None:
        found["was"], found["now"] = read.edit
    return found


def _cell_line(read: Read) -> Text:
    cell = read.cell
    text = Text.assemble((cell.name, "bold"), " = ", (printing.value_text(cell.value), "cyan"))
    if read.edit is not None:
        was, now = read.edit
        text.append(f"   typed: {now}; as built: {was}" if now != was else f"   {now}", "yellow")
    elif cell.formula:
        text.append(f"   {cell.formula}", "dim")
    return text
