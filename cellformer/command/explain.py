"""The command `explain`: a cell in words: what it is, what it reads, and why it changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import typer

from cellformer import names, workbooks
from cellformer.command import cell_words, results
from cellformer.command.answer import Answer
from cellformer.command.cells import watched_cell
from cellformer.command.console import console, line
from cellformer.command.options import workbook_names
from cellformer.command.printing import value_text
from cellformer.command.results import Reached
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.evaluator import Evaluator
from cellformer.engine.cells.groups import grouped
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.cells.texts import cut, readable
from cellformer.exporters.compose.address import address
from cellformer.exporters.compose.book import START, Book
from cellformer.exporters.compose.cells import SheetCell, owner
from cellformer.exporters.edits.edited import Edited, EditedCell, EditedModel
from cellformer.exporters.file.reading import WorkbookFile, present
from cellformer.exporters.model.words import meaning

MOST_EDITS = 50  # each of which is made alone, to see what it does; of more, each block's
SAME = 1e-13  # what rounding may change in a value about 1
LISTED = 8  # edits, cells
LONGEST = 160  # characters of a formula, or of a text
KINDS = {
    "weight": "a weight, typed in",
    "setting": "a number typed in",
    "ids": "a token’s id, typed in",
}


def explain(
    file: Annotated[
        str,
        typer.Argument(
            help="A workbook file FILE.xlsx (edited or not), or a name from `cellformer list`.",
            autocompletion=workbook_names,
        ),
    ],
    cell: Annotated[
        list[str], typer.Argument(help="One or more cells, such as 'Block 0!M30' or 'logits[2,5]'.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Model that the file was built from, if the file does not contain the model.",
        ),
    ] = None,
) -> Answer:
    """Explain cells in words: their meaning, formulas and inputs, and the causes of changes.

    In an edited file, try each edit alone, and list those that change the cell.
    """
    opened = names.opened(file, model)
    is_file = names.is_workbook(file) or file not in workbooks.names()
    return explained(file, opened, cell, WorkbookFile(present(file)) if is_file else None)


def explained(
    name: str, opened: Edited, cells: Sequence[str], saved: WorkbookFile | None = None
) -> Answer:
    """Cells of a workbook in words; `saved` is its file, if it has one. Raises InputError."""
    for sheet in saved or ():
        opened.book.sheet(sheet)  # those that are not rebuilt are there, and empty
    asked = [Asked(opened, watched_cell(opened.book, text), saved) for text in cells]
    return Answer(
        lambda: _tell(asked),
        lambda: {"file": name, "cells": [one.result() for one in asked]},
        "cells",
    )


def _tell(asked: Sequence["Asked"]) -> None:
    for k, one in enumerate(asked):
        if k:
            console.print()
        for text in one.says():
            line(text)


Values = Mapping[tuple[str, int, int], Any]


@dataclass(frozen=True)
class Asked:
    """The cell in question, of a workbook with edits."""

    opened: Edited
    built: SheetCell  # with its value as built
    file: WorkbookFile | None

    @property
    def book(self) -> Book:
        return self.opened.book

    @cached_property
    def now(self) -> SheetCell:
        """The cell with its value as the edits make it."""
        return self._with(self.opened.live())

    def _with(self, live: Evaluator) -> SheetCell:
        return replace(self.built, reading=self.book.reading(live))

    @property
    def saved(self) -> Any:
        """Its value in the file; None for a blank cell, and without a file."""
        if self.file is None or self.built.sheet not in self.file:
            return None
        return self.file[self.built.sheet].values.get((self.built.row, self.built.col))

    @cached_property
    def own(self) -> EditedCell | None:
        """The text or number typed into the cell itself."""
        listed = (*self.opened.inputs, *self.opened.overwritten, *self.opened.labels)
        return next((one for one in listed if one.where == self.built.address), None)

    @cached_property
    def reached(self) -> list[Reached]:
        """The edits that reach it, the largest effect first: each alone changes it. If there are
        very many, all edits of a block count as one."""
        edits, found = self.opened.values, list[Reached]()
        by_name = {one.name: one for one in (*self.opened.inputs, *self.opened.overwritten)}
        by_block = len(edits) > MOST_EDITS
        for several in grouped(edits, lambda at: at[0] if by_block else at).values():
            values = {at: edits[at] for at in several}
            alone = self._with(self.opened.after(values)).value
            if _alike(alone, self.built.value, SAME):
                continue
            block, i, j = several[0]
            one = by_name.get(f"{block}[{i},{j}]")
            if one is None or len(values) > 1:
                found.append(Reached(block, self.book.area(block), None, None, len(values), alone))
            else:
                found.append(Reached(one.name, one.where, one.was, one.now, 1, alone))
        return sorted(found, key=lambda one: -self._apart(one.alone))

    def _apart(self, value: Any) -> float:
        """The distance of a value from its value as built; 0 for texts."""
        numbers = isinstance(value, int | float) and isinstance(self.built.value, int | float)
        return abs(value - self.built.value) if numbers else 0.0

    @property
    def value(self) -> Any:
        """Its value; if it is not rebuilt, as on Start, the file's value."""
        return self.saved if self._kept else self.now.value

    @property
    def _kept(self) -> bool:
        """Whether only the file knows it."""
        return self.saved is not None and (not self.built.exists or self.built.sheet == START)

    # --- in words ---------------------------------------------------------------------------

    def says(self) -> Iterator[str]:
        """It in sentences."""
        yield f"{self.built.address} is {self._what()}."
        if self.own is not None:
            was, now = _short(self.own.was), _short(self.own.now)
            counts = f", {self.own.counts}" if self.own.counts else ""
            yield f"Someone typed {now} into this cell{counts}. As built, the cell was {was}."
        elif self.built.formula is not None and not self._kept:
            yield f"It computes {cut(self.built.formula, LONGEST)}."
            if (formula := self.built.a1) and len(formula) <= LONGEST:
                yield f"In the sheet: {formula}"
        if self.built.exists or self._kept:
            yield from self._value()
        if self.own is None and (read := self.areas()):
            more = f", and {len(read) - LISTED} more" if len(read) > LISTED else ""
            yield f"It reads {', '.join(read[:LISTED])}{more}."
        if readers := self._readers():
            yield f"These cells read this cell: {readers}."
        yield from self._why()

    def _what(self) -> str:
        found = owner(self.book, self.built.sheet, self.built.row, self.built.col)
        if found is None:
            return self._of_page()
        block, (i, j) = found
        if block.name not in self.book.graph.blocks:
            return f"{self._by_texts()}; the cell's name is {block.name}[{i},{j}]"
        if not block.has(i, j):
            return f"blank, because the mask hides {block.name}[{i},{j}]"
        if self._decodes and (phrase := cell_words.of_block(self.book.graph, block, i, j)):
            return f"{phrase}; the cell's name is {block.name}[{i},{j}]"
        told = [meaning(block)] if block.kind != "table" else []
        told = [text for text in told if text != block.leaf.replace("_", " ")]
        told += [KINDS[block.kind]] if block.kind in KINDS and not block.computed else []
        if not told:
            return f"{self._by_texts()}; the cell's name is {block.name}[{i},{j}]"
        return f"{block.name}[{i},{j}]: {', '.join(told)}{self._labels(block, i, j)}"

    def _by_texts(self) -> str:
        """A phrase for it, by the texts around it."""
        sheet = self.built.sheet
        kind = "a formula" if self.built.formula is not None else "a cell"
        found = cell_words.of_page(self.book, sheet, self.built.row, self.built.col)
        return found or f"{kind} of the sheet {sheet}"

    @property
    def _decodes(self) -> bool:
        """Whether its workbook is of a model that predicts the next word."""
        book, opened = self.book, self.opened
        model = opened.model if isinstance(opened, EditedModel) else getattr(book, "model", None)
        return model is not None and model.spec.gives == "next word"

    def _labels(self, block: Block, i: int, j: int) -> str:
        """The words of its row and column."""
        frame = self.book.graph.frame(block.name)
        told = [
            f"{axis or 'entry'} ‘{readable(label)}’"
            for axis, label in zip(block.axes, (frame.rows[i], frame.columns[j]), strict=True)
            if isinstance(label, str)
        ]
        return f"; {', '.join(told)}" if told else ""

    def _of_page(self) -> str:
        """A cell in no block or table."""
        formula = "" if self.built.formula is not None else None
        if self._kept:
            assert self.file is not None
            typed = self.file[self.built.sheet].cell((self.built.row, self.built.col)).formula
            formula = None if typed is None else f": ={typed}"
        if formula is not None:
            return f"a formula of the sheet {self.built.sheet}{formula}"
        if not self.built.exists and not self._kept:
            return "empty"
        value = self.saved if self._kept else self.built.value
        return "a text" if isinstance(value, str) else "a number"

    def _value(self) -> Iterator[str]:
        value, was, saved = self.value, self.built.value, self.saved
        same = self._kept or _alike(value, was, SAME)
        as_built = "" if same else f" As built, the value was {_short(was)}."
        yield f"The cell's value is {_short(value)}.{as_built}"
        if saved is not None and self.own is None and not _alike(saved, value, NEAR):
            yield (
                f"The file shows {_short(saved)} instead. Recalculate the file, and save the file."
            )

    def areas(self) -> list[str]:
        """The areas that it reads: their addresses, and their contents."""
        found = []
        for sheet, rect in dict.fromkeys(self.built.reads()):
            where = address(sheet, rect, self.built.sheet)
            if of := owner(self.book, sheet, rect.top, rect.left):
                cell = SheetCell(self.now.reading, sheet, rect.top, rect.left)
                where += f" ({cell.name if rect.size == 1 else of[0].name})"
            found.append(where)
        return found

    def _readers(self) -> str:
        """The cells of blocks that read it."""
        found = owner(self.book, self.built.sheet, self.built.row, self.built.col)
        if found is None or found[0].name not in self.book.graph.blocks:
            return ""
        block, (i, j) = found
        if not block.has(i, j):
            return ""
        listed = [cell.name for cell in self.book.graph.cell(block.name, i, j).dependents]
        more = f" and {len(listed) - LISTED} more cells" if len(listed) > LISTED else ""
        return ", ".join(listed[:LISTED]) + more

    def _why(self) -> Iterator[str]:
        """The edits that reach it."""
        n = len(self.opened.values)
        if not n or self.own is not None or self.built.formula is None or self._kept:
            return
        if not self.reached:
            some = (
                "one edit, which does not affect this cell"
                if n == 1
                else f"{n:,} edits; none of them affects this cell"
            )
            yield f"The file has {some}."
        yield from map(_told, self.reached[:LISTED])
        if (more := sum(one.n for one in self.reached[LISTED:])) > 0:
            yield f"{more:,} more {'edit reaches' if more == 1 else 'edits reach'} it."

    def result(self) -> results.Explained:
        """The same as JSON."""
        return {
            "at": self.built.address,
            "cell": self.built.name,
            "value": self.value,
            "was": self.built.value,
            "saved": self.saved,
            "formula": self.built.formula,
            "a1": self.built.a1,
            "says": list(self.says()),
            "reads": self.areas(),
            "edits": self.reached,
        }


def _told(one: Reached) -> str:
    """An edit that reaches the cell, in a sentence."""
    alone = _short(one.alone)
    if one.n > 1:
        return (
            f"{one.n:,} edits of {one.cell} affect this cell. With only these edits, the cell is "
            f"{alone}."
        )
    return (
        f"{one.at} ({one.cell}) was {_short(one.was)} as built and is {_short(one.now)} now. "
        f"With only this edit, the explained cell is {alone}."
    )


def _alike(a: Any, b: Any, within: float) -> bool:
    """Whether two values are the same, but for rounding."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) <= within * max(1.0, abs(a), abs(b))
    return str(a) == str(b)


def _short(value: Any) -> str:
    """A value for people."""
    return f"‘{cut(readable(value), 60)}’" if isinstance(value, str) else value_text(value)
