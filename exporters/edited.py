"""A workbook that somebody has edited and saved: what differs from the one that was built.

The book is built again, a model's from the workbook's own Source sheet, one without a model by its
name, and every cell of the file is held against it by one rule: a formula for being a formula
still, what is typed (weights, settings, the sentence, the dials) by value, everything else for
standing where it stood. Numbers are the same when they agree to 14 digits, for LibreOffice writes
15.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine import Evaluator, InputError, Model
from engine.cells.access import Span
from engine.cells.block import Block
from engine.cells.values import CellError
from engine.studies import ablation
from exporters import source
from exporters.book import Book, Entry, Sheet
from exporters.model_book import ModelBook
from exporters.pages import printed, start
from exporters.plan import MANY_WORDS
from exporters.reading import WorkbookFile
from exporters.scanning import Cells, Positions, Value
from exporters.story import Story
from exporters.transformer import assemble

SAME = 1e-14  # relative
TYPED = ("token", "sentence", "dial", "number typed")  # styles of the page cells that are typed in
BLANK = Story("", "", [], [], [])
E = TypeVar("E", bound="Edited")


class EditedCell(NamedTuple):
    """One cell that differs: its name, its place, what it was and is."""

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
    values: dict[tuple[str, int, int], float | str] = field(default_factory=dict)  # of both

    def live(self) -> Evaluator:
        """The sheet's numbers by the engine: every change made."""
        return self._live

    @cached_property
    def _live(self) -> Evaluator:
        live = Evaluator(self.book.graph)
        for at, value in self.values.items():
            live.set(*at, value)
        return live


@dataclass
class EditedModel(Edited):
    """A model's workbook as built, and what was changed in it."""

    book: ModelBook

    @property
    def model(self) -> Model:
        """The model as built."""
        return self.book.model

    @property
    def sentence(self) -> str:
        """The prompt as it now reads: what is typed or, of words, what is picked in their place."""
        if "prompt.rest" in self.book.graph.blocks:
            return " ".join(self.words)
        return str(self._live["sentence"][0, 0])

    @property
    def words(self) -> list[str]:
        """The words of the prompt, as they were typed or picked."""
        given = self._live["prompt.typed"][: int(self._live["n_prompt"][0, 0]), 0]
        return [word for word in given if word]

    @property
    def unknown(self) -> list[str]:
        """The words of the prompt that the vocabulary does not have; its first stands in."""
        vocabulary = self._live["vocabulary"][:, 0]
        return [word for word in self.words if word not in vocabulary]

    @property
    def ids(self) -> list[int]:
        """The prompt's token ids."""
        n_prompt = int(self._live["n_prompt"][0, 0])
        return [int(i) for i in self._live["tokens"][:n_prompt, 0]]

    @property
    def position(self) -> int:
        """The token whose next word is ranked."""
        return int(self._live["position"][0, 0])


def read(
    path: str | Path,
    find: Callable[[str], Model] | None = None,
    worksheets: Callable[[str], Book] | None = None,
) -> Edited:
    """What was edited in a workbook.

    One that does not carry its model has it found by its title; one without a model is built by
    `worksheets`, which takes its name. Raises InputError for a file that is no workbook of ours,
    one whose sheets were taken apart, and a weight that holds no number.
    """
    file = WorkbookFile(path)
    try:
        if source.SHEET in file:
            return _compared(EditedModel(_rebuild(file, find)), file)
        return _compared(Edited(_built(file, worksheets)), file)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def read_model(path: str | Path, find: Callable[[str], Model] | None = None) -> EditedModel:
    """What was edited in a model's workbook. Raises InputError as `read` does, and for a workbook
    that holds no transformer."""
    found = read(path, find, None)
    assert isinstance(found, EditedModel)
    return found


def _built(file: WorkbookFile, worksheets: Callable[[str], Book] | None) -> Book:
    """The book of a workbook without a model, as it was built: Start names it."""
    title = file[start.SHEET][0, 0] if start.SHEET in file else None
    if worksheets is not None and isinstance(title, str):
        book = worksheets(title.partition(":")[0])
        if not isinstance(book, ModelBook):
            return book
    raise InputError(
        "it has no sheet Source: it holds no transformer, is not a workbook of cellformer's, "
        "or the sheet was deleted; build it anew"
    )


def _rebuild(file: WorkbookFile, find: Callable[[str], Model] | None) -> ModelBook:
    """A model's book as it was built."""
    facts = source.read(file[source.SHEET].column(0))
    model = facts.model
    if model is None:
        if find is None:
            raise InputError("it does not carry its model; name it with --model")
        model = find(facts.title)
    if facts.part or model.spec.d_vocab > MANY_WORDS:
        raise InputError(
            "a workbook of one part alone, or of more than "
            f"{MANY_WORDS:,} words, is not read back; make the edits with `run --set`"
        )
    if facts.model is None:
        model = ablation.averaged(model, [facts.passage.ids])
    return assemble(facts.title, model, facts.passage, BLANK, (), facts.headings)


def _compared(found: E, file: WorkbookFile) -> E:
    """The edits of a file, filled in."""
    book = found.book
    entries = {sheet.name: _of_no_block(book, sheet) for sheet in book.sheets.values()}
    for sheet in book.sheets.values():
        if sheet.name not in (start.SHEET, printed.SHEET, source.SHEET):
            if sheet.name not in file:
                raise InputError(f"sheet {sheet.name!r} is missing; put it back, or build anew")
            _in_place(sheet, entries[sheet.name], file[sheet.name].arrays)
    for block in book.graph:
        _block(found, block, file[book.places[block.name].sheet].arrays)
    for sheet in book.sheets.values():
        if sheet.name in file:
            _formulas(found, sheet, entries[sheet.name], file[sheet.name].arrays)
    return found


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


def _in_place(sheet: Sheet, entries: Mapping[Span, Entry], written: Cells) -> None:
    """Raise InputError where texts and numbers that nobody types over stand elsewhere."""
    fixed = {
        at: entry.value
        for at, entry in entries.items()
        if entry.formula is None and entry.style not in TYPED and entry.value != ""
    }
    for run in sheet.runs:
        fixed |= {at: run.at(k) for k, at in enumerate(run.area.cells())}
    there = written.valued(written.at(*_split(list(fixed))))
    moved = sorted(at for at, now in zip(fixed, there, strict=True) if not _alike(fixed[at], now))
    rows, cols = _split(moved)
    for what, verb, down, right in (
        ("row", "inserted", 1, 0),
        ("row", "deleted", -1, 0),
        ("column", "inserted", 0, 1),
        ("column", "deleted", 0, -1),
    ):
        beside = written.valued(written.at(rows + down, cols + right))
        same = sum(_alike(fixed[at], now) for at, now in zip(moved, beside, strict=True))
        if 2 * same > len(moved) > 1:
            at = moved[0][0] + 1 if what == "row" else min(c for _, c in moved) + 1
            raise InputError(
                f"a {what} was {verb} in sheet {sheet.name!r} about {what} {at}; "
                "undo that, or type the edits into a workbook built anew"
            )


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) <= SAME * abs(a)
    return bool(str(a) == str("" if b is None else b))


# --- what stands there ------------------------------------------------------------------------


def _formulas(found: Edited, sheet: Sheet, entries: Mapping[Span, Entry], written: Cells) -> None:
    """Formulas of a page, of no block, that were typed over."""
    places = [at for at, entry in entries.items() if entry.formula is not None]
    which = written.at(*_split(places))
    for k in np.flatnonzero(~written.formulas[which]).tolist():
        at = (sheet.name, *places[k])
        (value,) = written.valued(which[k : k + 1])
        where = found.book.address(sheet[places[k]])
        name = next((name for name, spot in found.book.spots.items() if spot == at), where)
        now = "" if value is None else value
        found.overwritten.append(EditedCell(name, where, found.book.clean.cell(*at), now))


def _block(found: Edited, block: Block, written: Cells) -> None:
    """Formulas for being formulas still, what is typed by value."""
    place = found.book.places[block.name]
    entries = found.book.sheets[place.sheet].entries
    which = written.within(place.rect(block.whole))
    which = which.T if place.turned else which  # [rows, columns] of the block
    typed, was = _as_built(found.book, block)
    with np.errstate(invalid="ignore"):
        same = np.abs(written.numbers[which] - was) <= SAME * np.abs(was)
    doubtful = np.where(typed, ~same, ~written.formulas[which])
    if block.partial:
        doubtful &= block.mask.seen(block.whole)
    for i, j in np.argwhere(doubtful).tolist():
        (value,) = written.valued(which[i, j : j + 1])
        if written.formulas[which[i, j]] and value is None:
            raise InputError(
                f"{found.book.address(block[i, j])} holds a formula without a value; "
                "open and save it in a spreadsheet"
            )
        change = _change(found.book, block, i, j, value, not typed[i, j])
        if change is None:
            continue
        if block.kind == "ids":
            found.book.graph.check_value(block, i, j, change.now)
        at = place.cell(i, j)
        invited = at in entries and entries[at].style in TYPED  # to be typed over, formula or not
        over = not typed[i, j] and not invited
        (found.overwritten if over else found.inputs).append(change)
        found.values[block.name, i, j] = change.now


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
