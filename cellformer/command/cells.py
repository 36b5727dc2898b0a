"""Cells as trace, sweep and --set name them: a cell of the graph, `logits[2,5]`, a cell of a
sheet's own table, `machine.stage[0,1]`, or an address, `Machine!B20`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from cellformer.engine import Evaluator, Graph, InputError
from cellformer.engine.cells.block import Block
from cellformer.exporters.compose import cells
from cellformer.exporters.compose.book import Book
from cellformer.exporters.compose.cells import SheetCell

CELL = re.compile(r"\s*[\w.]+\s*\[\s*\d+\s*,\s*\d+\s*\]\s*")


def is_cell(text: str) -> bool:
    """Whether a --target is a cell rather than a word."""
    return bool(CELL.fullmatch(text) or cells.ADDRESS.fullmatch(text))


class Cells:
    """Finds cells by name or address. The workbook is built only when an address is given."""

    def __init__(self, graph: Graph, built: Callable[[], Book]):
        self.graph, self._built = graph, built

    @cached_property
    def book(self) -> Book:
        return self._built()

    def parse(self, text: str) -> tuple[Block, int, int]:
        """A cell of the graph. Raises InputError."""
        if not cells.is_address(text):
            return self.graph.parse(text)
        found = cells.owner(self.book, *cells.position(self.book, text))
        if found is None:
            raise InputError(
                f"{text.strip()} contains no number that this command can use; name a cell of a "
                "table"
            )
        block, (i, j) = found
        if block.name not in self.graph.blocks:
            raise InputError(f"{text.strip()} {self._unread(block, i, j)}")
        self.graph.check(self.graph[block.name], i, j)
        return self.graph[block.name], i, j

    def _unread(self, block: Block, i: int, j: int) -> str:
        """Why a cell that only the workbook has cannot be changed here, and what to do."""
        if block.name == "sentence":
            return "contains the sentence; give another sentence with --prompt"
        return (
            f"is {block.name}[{i},{j}], which only the workbook uses; change the cell in the "
            "workbook"
        )

    def change(self, text: str) -> tuple[Block, int, int, float | str]:
        """The cell and the value of a --set, `W_E[0,1]=0.5`. Raises InputError."""
        target, equals, given = text.partition("=")
        if not equals:
            raise InputError(f"--set {text!r} has no value; write it as 'W_E[0,1]=0.5'")
        block, i, j = self.parse(target)
        if isinstance(self.graph.values[block.name][i, j], str):
            return block, i, j, given
        try:
            return block, i, j, float(given)
        except ValueError:
            raise InputError(
                f"--set {text!r}: {given.strip()!r} is not a number; write a number, such as "
                "'W_E[0,1]=0.5'"
            ) from None

    def set(self, live: Evaluator, changes: Sequence[str] | None) -> None:
        """Apply every --set. Raises InputError."""
        for text in changes or ():
            block, i, j, value = self.change(text)
            live.set(block.name, i, j, value)


def on_sheet(
    book: Book, text: str, live: Evaluator, changes: Sequence[str] | None = None
) -> SheetCell:
    """A cell with a formula, by address or by the name of a sheet's own table, after every --set.
    `live` has the values of the book's graph. Raises InputError."""
    Cells(book.graph, lambda: book).set(live, changes)
    cell = replace(watched_cell(book, text), reading=book.reading(live))
    if cell.formula is None:
        held = f"holds no formula: it is {cell.value!r}" if cell.exists else "is empty"
        raise InputError(f"{cell.address} {held}; name a cell with a formula")
    return cell


def watched_cell(book: Book, text: str) -> SheetCell:
    """A cell of the workbook, by address or by table. Raises InputError."""
    if cells.is_address(text):
        return SheetCell(book.clean, *cells.position(book, text))
    if not is_cell(text):
        raise InputError(
            f"{text!r} does not name a cell; write a cell such as 'Play!C12' or logits[2,5]"
        )
    at = cells.of_table(book, text)
    if at is None:
        block, i, j = book.graph.parse(text)
        at = book.cell(block.name, i, j)
    return SheetCell(book.clean, *at)
