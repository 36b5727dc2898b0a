"""Comparing every cell of a file with the book that it was built from.

A formula must be the same formula, however it is written (see `formula_diff`); everything else,
typed values and labels, is compared by value. Numbers are the same if they agree to 14 digits,
since LibreOffice writes 15. A cell with a value of the wrong kind is reported with what it counts
as (see `counting`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cellformer.engine import Evaluator, InputError
from cellformer.engine.cells.access import Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area
from cellformer.engine.cells.rounding import LAST_DIGIT
from cellformer.engine.cells.texts import cut, storable
from cellformer.engine.cells.values import CellError
from cellformer.exporters.compose import digest
from cellformer.exporters.compose.book import START, Book, Entry, Sheet
from cellformer.exporters.edits import added, moved
from cellformer.exporters.edits.added import AddedCell
from cellformer.exporters.edits.formula_diff import as_built
from cellformer.exporters.file.reading import WorkbookFile
from cellformer.exporters.file.scanning import Cells, Positions, Value
from cellformer.exporters.model import counting, source
from cellformer.exporters.model.counting import AsCounted, Counted
from cellformer.exporters.model.layout import vocabulary_texts
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import printed

TYPED = ("token", "sentence", "dial", "number typed")  # styles of the page cells that are typed in
E = TypeVar("E", bound="Edited")
Kept = NDArray[np.bool_]  # of the cells of a sheet: whether one holds the formula as built


class EditedCell(NamedTuple):
    """A cell that differs: its name, its address, its old and new content; a formula begins with
    "=".

    For a value of the wrong kind, `counts` says what it is, and what the workbook counts it as.
    """

    name: str
    where: str
    was: float | str
    now: float | str
    counts: str = ""


@dataclass(repr=False)
class Edited:
    """A workbook as built, and its changes."""

    book: Book
    inputs: list[EditedCell] = field(default_factory=list)
    overwritten: list[EditedCell] = field(default_factory=list)  # formulas that were typed over
    labels: list[EditedCell] = field(default_factory=list)  # texts and constants of pages
    unheld: list[EditedCell] = field(default_factory=list)  # of all these what no checkpoint holds
    incomputable: list[EditedCell] = field(default_factory=list)  # what has no value to go on with
    added: list[AddedCell] = field(default_factory=list)  # beside what was built
    values: dict[tuple[str, int, int], Any] = field(default_factory=dict)  # of blocks

    def __repr__(self) -> str:
        n_changed = len(self.inputs) + len(self.overwritten) + len(self.labels)
        told = f"cells changed: {n_changed}, added: {len(self.added)}"
        return f"<{type(self).__name__} {cut(self.book.title)}: {told}>"

    def live(self) -> Evaluator:
        """The engine's values with every change made. Raises InputError for cells that cannot be
        computed with."""
        return self._live

    @cached_property
    def _live(self) -> Evaluator:
        for cell in self.incomputable:
            raise InputError(
                f"{cell.where} ({cell.name}) contains {cell.counts}, so the cells that read it "
                "cannot be computed; undo that change"
            )
        return self.after(self.values)

    def after(self, values: Mapping[tuple[str, int, int], Any]) -> Evaluator:
        """The engine's values after some of the changes."""
        live = AsCounted(self.book)
        # errors last
        for at, value in sorted(values.items(), key=lambda edit: isinstance(edit[1], CellError)):
            live.put(*at, value)
        return live


def compared(found: E, file: WorkbookFile) -> E:
    """The edits of a file, filled in."""
    book = found.book
    words = vocabulary_texts(book) if isinstance(book, ModelBook) else None
    entries = {sheet.name: _of_no_block(book, sheet) for sheet in book.sheets.values()}
    for sheet in book.sheets.values():
        if sheet.name not in (START, printed.SHEET, source.SHEET, digest.SHEET):
            if sheet.name not in file:
                missing = f"sheet {sheet.name!r} is missing"
                raise InputError(
                    f"{missing}; restore the sheet's name, or build the workbook again"
                )
            _labels(found, sheet, entries[sheet.name], file[sheet.name].arrays, words)
    # what Digest says follows from the other sheets
    sheets = [s for s in book.sheets.values() if s.name in file and s.name != digest.SHEET]
    kept = {sheet.name: as_built(book, sheet, file[sheet.name].arrays) for sheet in sheets}
    for block in book.graph:
        sheet_name = book.places[block.name].sheet
        _block(found, block, file[sheet_name].arrays, kept[sheet_name])
    for sheet in sheets:
        _formulas(found, sheet, entries[sheet.name], file[sheet.name].arrays, kept[sheet.name])
    found.added = added.cells(book, file)
    return found


def of_inputs(found: E, file: WorkbookFile) -> E:
    """The edits of input cells, filled in. The book was rebuilt from the file, which does not
    say what other cells held. Changed formulas were refused before."""
    for block in found.book.graph:
        if not block.computed:
            written = file[found.book.places[block.name].sheet].arrays
            _block(found, block, written, np.ones(len(written.formulas), bool))
    return found


def _of_no_block(book: Book, sheet: Sheet) -> dict[Span, Entry]:
    """The entries of a sheet outside blocks."""
    rows, cols = _split(list(sheet.entries))
    held = np.zeros(len(rows), bool)
    for place in book.places.values():
        if place.sheet == sheet.name:
            top, bottom, left, right = place.rect(place.block.whole)
            held |= (top <= rows) & (rows < bottom) & (left <= cols) & (cols < right)
    return dict(compress(sheet.entries.items(), ~held))


def _split(places: Sequence[Span]) -> tuple[Positions, Positions]:
    """The rows and the columns of places."""
    rows, cols = np.array(places, np.int64).reshape(-1, 2).T
    return rows, cols


# --- where things stand -----------------------------------------------------------------------


def _labels(
    found: Edited, sheet: Sheet, entries: Mapping[Span, Entry], written: Cells, words: Area | None
) -> None:
    """Compare texts and numbers outside blocks: typed cells and labels.

    Raises InputError if they have moved.
    """
    constants = {
        at: entry
        for at, entry in entries.items()
        if entry.formula is None and at not in sheet.links  # which sheets there are may differ
    }
    fixed = {at: entry.value for at, entry in constants.items()}
    fixed |= {at: run.at(*at) for run in sheet.runs for at in run.area.cells()}
    there = written.valued(written.at(*_split(list(fixed))))
    now = dict(zip(fixed, there, strict=True))
    changed = [at for at in sorted(fixed) if not _alike(fixed[at], now[at])]
    typed = {at for at in changed if at in constants and constants[at].style in TYPED}
    others = {at: fixed[at] for at in changed if at not in typed and fixed[at] != ""}
    moved.check(sheet.name, others, written, _alike)
    for at in changed:
        word = _word(words, sheet, at)
        name = word or _spot(found.book, sheet, at)
        value = now[at]
        now_is = "" if value is None else value
        change = EditedCell(name, found.book.address(sheet[at]), fixed[at], now_is)
        (found.inputs if at in typed else found.labels).append(change)
        if word:
            found.unheld.append(change)


def _word(words: Area | None, sheet: Sheet, at: Span) -> str:
    """The name of a word's cell beside the embedding; "" of another cell."""
    if words is None or words.grid is not sheet or not words.rect.covers(sheet[at].rect):
        return ""
    return f"vocabulary[{at[0] - words.rect.top + at[1] - words.rect.left},0]"


def _spot(book: Book, sheet: Sheet, at: Span) -> str:
    """The name of a page's cell, or else its address."""
    named = (name for name, place in book.named_cells.items() if place == (sheet.name, *at))
    return next(named, book.address(sheet[at]))


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) <= LAST_DIGIT * abs(a)
    return storable(str(a)) == str(counting.text(b).now)


# --- what stands there ------------------------------------------------------------------------


def _formulas(
    found: Edited, sheet: Sheet, entries: Mapping[Span, Entry], written: Cells, kept: Kept
) -> None:
    """Compare a page's formulas outside blocks."""
    places = [at for at, entry in entries.items() if entry.formula is not None]
    which = written.at(*_split(places))
    changed = np.flatnonzero(~kept[which]).tolist()
    clean = found.book.clean
    was_there = {places[k]: clean.cell(sheet.name, *places[k]) for k in changed}
    moved.check(sheet.name, was_there, written, _alike)
    for k in changed:
        at, formula = places[k], entries[places[k]].formula
        (value,) = written.valued(which[k : k + 1])
        was, now = was_there[at], "" if value is None else value
        if written.formulas[which[k]] and formula is not None:
            was, now = "=" + found.book.text(formula, sheet.name), _formula(written, which[k])
        change = EditedCell(_spot(found.book, sheet, at), found.book.address(sheet[at]), was, now)
        found.overwritten.append(change)
        found.unheld.append(change)


def _formula(written: Cells, which: int) -> str:
    """A formula of a file, as a person types it."""
    return "=" + written.spelt(np.array([which]))[0]


def _block(found: Edited, block: Block, written: Cells, kept: Kept) -> None:
    """Compare a block's cells: formulas as formulas, typed cells by value."""
    place = found.book.places[block.name]
    which = written.within(place.rect(block.whole))
    which = which.T if place.turned else which  # [rows, columns] of the block
    typed, was = typed_cells(found.book, block)
    with np.errstate(invalid="ignore"):
        same = np.abs(written.numbers[which] - was) <= LAST_DIGIT * np.abs(was)
    doubtful = np.where(typed, ~same, ~kept[which])
    if block.partial:
        doubtful &= block.mask.seen(block.whole)
    changed = []
    for i, j in np.argwhere(doubtful).tolist():
        at = int(which[i, j])
        (value,) = written.valued(np.array([at]))
        formula = _formula(written, at) if written.formulas[at] else ""
        one = BlockCell(found.book, block, i, j, not typed[i, j], value, formula)
        if not one.same:
            changed.append(one)
    moved.check(
        place.sheet, {place.cell(one.i, one.j): one.was for one in changed}, written, _alike
    )
    for one in changed:
        note(found, one)


def note(found: Edited, one: "BlockCell") -> None:
    """Report a cell that differs, and its value if others can be computed with it."""
    block, change = one.block, one.change()
    if one.counted.lost:
        found.incomputable.append(change)
    else:
        found.values[block.name, one.i, one.j] = one.counted.value
    over = one.computed and not one.invited
    (found.overwritten if over else found.inputs).append(change)
    no_number = change.counts and block.kind in ("weight", "setting")
    if no_number or (over and block.kind != "ids") or (block.kind == "table" and not one.invited):
        found.unheld.append(change)


class BlockCell:
    """A cell of a block: its old and its new content."""

    def __init__(
        self,
        book: Book,
        block: Block,
        i: int,
        j: int,
        computed: bool,
        value: Value,
        formula: str = "",
    ):
        self.book, self.block, self.i, self.j, self.computed = book, block, i, j, computed
        self.value, self.formula = value, formula
        self.where, self.name = book.address(block[i, j]), f"{block.name}[{i},{j}]"
        self.was = book.values[block.name][i, j] if computed else typed_value(book, block, i, j)
        place = book.places[block.name]
        entry = book.sheets[place.sheet].entries.get(place.cell(i, j))
        self.invited = entry is not None and entry.style in TYPED  # formula or not
        self.counted = self._counted()

    def _counted(self) -> Counted:
        """The value that a cell counts as. Raises InputError for a formula without a computed
        value."""
        if isinstance(self.was, str):
            return counting.text(self.value)
        if self.formula and self.value is None:
            raise InputError(
                f"{self.where} ({self.name}) has a formula without a value, "
                f"{self.formula[:60]}; open the file in Excel or LibreOffice, save it, and try "
                "again"
            )
        found = counting.number(self.value, self.block)
        if self.computed and not self.invited and isinstance(found.now, str) and found.why:
            why = f"{counting.what(self.value)} in place of a formula"
            return Counted(found.now, None, why, lost=True)
        return self._of_id(found) if self.block.kind == "ids" and not found.why else found

    def _of_id(self, found: Counted) -> Counted:
        """The value that a number counts as where a formula expects a token's id."""
        assert isinstance(found.value, float)
        try:
            self.book.graph.check_value(self.block, self.i, self.j, found.value)
        except InputError as error:
            return Counted(found.now, None, str(error).partition(": ")[2], lost=True)
        return found

    @property
    def same(self) -> bool:
        """Whether its value is unchanged for the cells computed from it; false for a replaced
        formula."""
        if self.computed:
            return False
        if isinstance(self.was, str):
            return bool(not self.counted.why and self.counted.value == storable(self.was))
        if isinstance(self.value, str):
            return False
        return bool(abs(float(self.value or 0) - self.was) <= LAST_DIGIT * abs(self.was))

    def change(self) -> EditedCell:
        """The reported change; for a replaced formula, both formulas as written."""
        told = EditedCell(self.name, self.where, self.was, self.counted.now, self.counted.why)
        if self.formula and self.computed:
            formula = self.book.formulas(self.block)(self.i, self.j)
            return told._replace(was=f"={formula}", now=self.formula)
        return told


def typed_cells(book: Book, block: Block) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """The typed cells of a block, and their numbers, NaN for texts."""
    typed, numbers = np.full(block.shape, not block.computed), np.full(block.shape, np.nan)
    if block.expression is not None:
        place = book.places[block.name]
        entries = book.sheets[place.sheet].entries
        for i, j in block.whole.cells():
            entry = entries[place.cell(i, j)]
            if entry.formula is None:
                typed[i, j] = True
                numbers[i, j] = np.nan if isinstance(entry.value, str) else entry.value
    elif block.op is None:
        values = np.asarray(book.graph.inputs[block.name])
        numbers = numbers if values.dtype == object else values
    return typed, numbers


def typed_value(book: Book, block: Block, i: int, j: int) -> Any:
    """The typed value of a cell as built."""
    if block.expression is None:
        return book.graph.inputs[block.name][i, j]
    place = book.places[block.name]
    return book.sheets[place.sheet].entries[place.cell(i, j)].value
