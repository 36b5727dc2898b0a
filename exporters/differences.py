"""Every cell of a file held against the book that it was built from.

A formula is to be that formula still, however it is spelt (see `rewritten`); everything else, typed
or a label, is held by value. Numbers are the same when they agree to 14 digits, for LibreOffice
writes 15.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine import Evaluator, InputError
from engine.cells.access import Span
from engine.cells.block import Block
from engine.cells.expression import Area
from engine.cells.values import CellError
from exporters import source
from exporters.book import Book, Entry, Sheet
from exporters.layout import vocabulary_texts
from exporters.model_book import ModelBook
from exporters.pages import printed, start
from exporters.reading import WorkbookFile
from exporters.rewritten import SAME, as_built
from exporters.scanning import Cells, Positions, Value

TYPED = ("token", "sentence", "dial", "number typed")  # styles of the page cells that are typed in
E = TypeVar("E", bound="Edited")
Kept = NDArray[np.bool_]  # of the cells of a sheet: whether one holds the formula as built


class EditedCell(NamedTuple):
    """One cell that differs: its name, its place, what it was and is; a formula begins with "="."""

    name: str
    where: str
    was: float | str
    now: float | str


@dataclass
class Edited:
    """A workbook as built, and what was changed in it."""

    book: Book
    inputs: list[EditedCell] = field(default_factory=list)
    overwritten: list[EditedCell] = field(default_factory=list)  # formulas that were typed over
    labels: list[EditedCell] = field(default_factory=list)  # texts and constants of pages
    unheld: list[EditedCell] = field(default_factory=list)  # of all these what no checkpoint holds
    values: dict[tuple[str, int, int], float | str] = field(default_factory=dict)  # of blocks

    def live(self) -> Evaluator:
        """The sheet's numbers by the engine: every change made."""
        return self._live

    @cached_property
    def _live(self) -> Evaluator:
        live = Evaluator(self.book.graph)
        for at, value in self.values.items():
            live.set(*at, value)
        return live


def compared(found: E, file: WorkbookFile) -> E:
    """The edits of a file, filled in."""
    book = found.book
    words = _vocabulary(book)
    entries = {sheet.name: _of_no_block(book, sheet) for sheet in book.sheets.values()}
    for sheet in book.sheets.values():
        if sheet.name not in (start.SHEET, printed.SHEET, source.SHEET):
            if sheet.name not in file:
                raise InputError(f"sheet {sheet.name!r} is missing; put it back, or build anew")
            _labels(found, sheet, entries[sheet.name], file[sheet.name].arrays, words)
    sheets = [sheet for sheet in book.sheets.values() if sheet.name in file]
    kept = {sheet.name: as_built(book, sheet, file[sheet.name].arrays) for sheet in sheets}
    for block in book.graph:
        sheet_name = book.places[block.name].sheet
        _block(found, block, file[sheet_name].arrays, kept[sheet_name])
    for sheet in sheets:
        _formulas(found, sheet, entries[sheet.name], file[sheet.name].arrays, kept[sheet.name])
    return found


def _vocabulary(book: Book) -> Area | None:
    """The words that tokens are looked up among."""
    return vocabulary_texts(book) if isinstance(book, ModelBook) else None


def _of_no_block(book: Book, sheet: Sheet) -> dict[Span, Entry]:
    """The entries of a sheet that stand in no block."""
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
    """Texts and numbers of no block: what is typed, and what nobody is asked to change.

    Raises InputError where they stand elsewhere.
    """
    constants = {
        at: entry
        for at, entry in entries.items()
        if entry.formula is None and at not in sheet.links  # which sheets there are may differ
    }
    fixed = {at: entry.value for at, entry in constants.items()}
    for run in sheet.runs:
        fixed |= {at: run.at(k) for k, at in enumerate(run.area.cells())}
    there = written.valued(written.at(*_split(list(fixed))))
    now = dict(zip(fixed, there, strict=True))
    changed = [at for at in sorted(fixed) if not _alike(fixed[at], now[at])]
    typed = {at for at in changed if at in constants and constants[at].style in TYPED}
    moved = [at for at in changed if at not in typed and fixed[at] != ""]
    _check_in_place(sheet, {at: fixed[at] for at in moved}, written)
    for at in changed:
        is_word = words is not None and words.grid is sheet and words.rect.covers(sheet[at].rect)
        name = _word(words, at) if words is not None and is_word else _spot(found.book, sheet, at)
        value = now[at]
        now_is = "" if value is None else value
        change = EditedCell(name, found.book.address(sheet[at]), fixed[at], now_is)
        (found.inputs if at in typed else found.labels).append(change)
        if is_word:
            found.unheld.append(change)


def _word(words: Area, at: Span) -> str:
    """What a word beside the table of embeddings is called."""
    return f"vocabulary[{at[0] - words.rect.top + at[1] - words.rect.left},0]"


def _spot(book: Book, sheet: Sheet, at: Span) -> str:
    """What a cell of a page is called, or else where it stands."""
    named = (name for name, spot in book.spots.items() if spot == (sheet.name, *at))
    return next(named, book.address(sheet[at]))


def _check_in_place(sheet: Sheet, moved: Mapping[Span, Any], written: Cells) -> None:
    """Raise InputError where labels that are not in their place stand beside it."""
    rows, cols = _split(list(moved))
    for what, verb, down, right in (
        ("row", "inserted", 1, 0),
        ("row", "deleted", -1, 0),
        ("column", "inserted", 0, 1),
        ("column", "deleted", 0, -1),
    ):
        beside = written.valued(written.at(rows + down, cols + right))
        same = sum(_alike(was, now) for was, now in zip(moved.values(), beside, strict=True))
        if 2 * same > len(moved) > 1:
            at = min(r for r, _ in moved) + 1 if what == "row" else min(c for _, c in moved) + 1
            raise InputError(
                f"a {what} was {verb} in sheet {sheet.name!r} about {what} {at}; "
                "undo that, or type the edits into a workbook built anew"
            )


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) <= SAME * abs(a)
    return str(a) == _text(b)


# --- what stands there ------------------------------------------------------------------------


def _formulas(
    found: Edited, sheet: Sheet, entries: Mapping[Span, Entry], written: Cells, kept: Kept
) -> None:
    """Formulas of a page, of no block, that were typed over."""
    places = [at for at, entry in entries.items() if entry.formula is not None]
    which = written.at(*_split(places))
    for k in np.flatnonzero(~kept[which]).tolist():
        at, formula = places[k], entries[places[k]].formula
        (value,) = written.valued(which[k : k + 1])
        was, now = found.book.clean.cell(sheet.name, *at), "" if value is None else value
        if written.formulas[which[k]] and formula is not None:
            was, now = "=" + found.book.text(formula, sheet.name), _formula(written, which[k])
        change = EditedCell(_spot(found.book, sheet, at), found.book.address(sheet[at]), was, now)
        found.overwritten.append(change)
        found.unheld.append(change)


def _formula(written: Cells, which: int) -> str:
    """A formula of a file, as a person types it."""
    return "=" + written.spelt(np.array([which]))[0]


def _block(found: Edited, block: Block, written: Cells, kept: Kept) -> None:
    """Formulas for being those formulas still, what is typed by value."""
    place = found.book.places[block.name]
    entries = found.book.sheets[place.sheet].entries
    which = written.within(place.rect(block.whole))
    which = which.T if place.turned else which  # [rows, columns] of the block
    typed, was = _as_built(found.book, block)
    with np.errstate(invalid="ignore"):
        same = np.abs(written.numbers[which] - was) <= SAME * np.abs(was)
    doubtful = np.where(typed, ~same, ~kept[which])
    if block.partial:
        doubtful &= block.mask.seen(block.whole)
    for i, j in np.argwhere(doubtful).tolist():
        (value,) = written.valued(which[i, j : j + 1])
        is_formula = bool(written.formulas[which[i, j]])
        number = not isinstance(found.book.values[block.name][i, j], str)
        if is_formula and value is None and number:  # a text may be empty
            raise InputError(
                f"{found.book.address(block[i, j])} ({block.name}[{i},{j}]) holds a formula "
                f"without a value, {_formula(written, which[i, j])[:60]}; "
                "open and save it in a spreadsheet"
            )
        change = _change(found.book, block, i, j, value, not typed[i, j])
        if change is None:
            continue
        if block.kind == "ids":
            found.book.graph.check_value(block, i, j, change.now)
        found.values[block.name, i, j] = change.now
        at = place.cell(i, j)
        invited = at in entries and entries[at].style in TYPED  # to be typed over, formula or not
        if is_formula and not typed[i, j]:
            formula = "=" + found.book.formulas(block)(i, j)
            change = change._replace(was=formula, now=_formula(written, which[i, j]))
        over = not typed[i, j] and not invited
        (found.overwritten if over else found.inputs).append(change)
        if (over and block.kind != "ids") or (block.kind == "table" and not invited):
            found.unheld.append(change)


def _as_built(book: Book, block: Block) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which cells of a block hold what is typed, and the numbers there, NaN for texts."""
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


def _change(
    book: Book, block: Block, i: int, j: int, value: Value, by_formula: bool
) -> EditedCell | None:
    """What became of a cell; None where it is the same. A formula that was typed over is not."""
    where, name = book.address(block[i, j]), f"{block.name}[{i},{j}]"
    was = book.values[block.name][i, j] if by_formula else _typed(book, block, i, j)
    if isinstance(was, str):
        now: float | str = _text(value)
        same = now == was
    else:
        now = _number(value, f"{where} ({name})", by_formula)
        same = abs(now - was) <= SAME * abs(was)
    return None if same and not by_formula else EditedCell(name, where, was, now)


def _typed(book: Book, block: Block, i: int, j: int) -> Any:
    """What is typed in a cell as built."""
    if block.expression is None:
        return book.graph.inputs[block.name][i, j]
    place = book.places[block.name]
    return book.sheets[place.sheet].entries[place.cell(i, j)].value


def _number(value: Value, where: str, formula: bool) -> float:
    """The number in a cell. Raises InputError for anything else."""
    if isinstance(value, CellError):
        raise InputError(f"{where} holds the error {value}; type a number")
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return float(value)
    if value is None or value == "":
        what = "is empty" + (", and held a formula" if formula else "")
        raise InputError(f"{where} {what}; type a number, or take the cell from a fresh build")
    raise InputError(f"{where} holds the text {str(value)[:40]!r}; type a number")


def _text(value: Any) -> str:
    """A cell's text; a word that reads as a whole number may have become one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)
