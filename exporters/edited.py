"""A workbook that somebody has edited and saved: what differs from the one that was built.

The book is built again, a model's from the workbook's own Source sheet, one without a model by its
name, and every cell of the file is held against it by one rule: a formula for being a formula
still, what is typed (weights, settings, the sentence, the dials) by value, everything else for
standing where it stood. Numbers are the same when they agree to 14 digits, for LibreOffice writes
15.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from engine import Evaluator, InputError, Model
from engine.cells.block import Block
from engine.cells.expression import Constant
from engine.cells.values import CellError
from engine.studies import ablation
from exporters import reading, source
from exporters.book import Book, Sheet
from exporters.model_book import ModelBook
from exporters.pages import printed, start
from exporters.plan import MANY_WORDS
from exporters.reading import WorkbookFile
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
    for sheet in book.sheets.values():
        if sheet.name not in (start.SHEET, printed.SHEET, source.SHEET):
            if sheet.name not in file:
                raise InputError(f"sheet {sheet.name!r} is missing; put it back, or build anew")
            _in_place(book, sheet, file[sheet.name])
    for block in book.graph:
        _block(found, block, file)
    for sheet in book.sheets.values():
        if sheet.name in file:
            _formulas(found, sheet, file)
    return found


def _held(book: Book, sheet: Sheet) -> set[tuple[int, int]]:
    """The cells of a sheet that are a block's."""
    places = [place for place in book.places.values() if place.sheet == sheet.name]
    return {place.cell(i, j) for place in places for i, j in place.block.whole.cells()}


# --- where things stand -----------------------------------------------------------------------


def _in_place(book: Book, sheet: Sheet, written: reading.Sheet) -> None:
    """Raise InputError where texts and numbers that nobody types over stand elsewhere."""
    held = _held(book, sheet)
    fixed = {
        at: entry.value
        for at, entry in sheet.entries.items()
        if entry.formula is None
        and entry.style not in TYPED
        and entry.value != ""
        and at not in held
    }
    for run in sheet.runs:
        fixed |= {at: run.at(k) for k, at in enumerate(run.area.cells())}
    moved = sorted(at for at, value in fixed.items() if not _alike(value, written[at]))
    for what, verb, down, right in (
        ("row", "inserted", 1, 0),
        ("row", "deleted", -1, 0),
        ("column", "inserted", 0, 1),
        ("column", "deleted", 0, -1),
    ):
        same = sum(_alike(fixed[r, c], written[r + down, c + right]) for r, c in moved)
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


def _formulas(found: Edited, sheet: Sheet, file: WorkbookFile) -> None:
    """Formulas of a page, of no block, that were typed over."""
    held = _held(found.book, sheet)
    for (row, col), entry in sheet.entries.items():
        at = (sheet.name, row, col)
        there = file[sheet.name].cell((row, col))
        if entry.formula is not None and (row, col) not in held and there.formula is None:
            where = found.book.address(sheet[row, col])
            name = next((name for name, spot in found.book.spots.items() if spot == at), where)
            now = "" if there.value is None else there.value
            found.overwritten.append(EditedCell(name, where, found.book.clean.cell(*at), now))


def _block(found: Edited, block: Block, file: WorkbookFile) -> None:
    """Formulas for being formulas still, what is typed by value."""
    place = found.book.places[block.name]
    entries = found.book.sheets[place.sheet].entries
    for i, j in block.whole.cells():
        if not block.has(i, j):
            continue
        at = place.cell(i, j)
        held = block.expression is not None and isinstance(block.expression(i, j), Constant)
        by_formula = block.computed and not held
        if by_formula and file[place.sheet].cell(at).formula is not None:
            continue
        change = _change(found.book, block, i, j, file, by_formula)
        if change is None:
            continue
        if block.kind == "ids":
            found.book.graph.check_value(block, i, j, change.now)
        invited = at in entries and entries[at].style in TYPED  # to be typed over, formula or not
        (found.overwritten if by_formula and not invited else found.inputs).append(change)
        found.values[block.name, i, j] = change.now


def _change(
    book: Book, block: Block, i: int, j: int, file: WorkbookFile, by_formula: bool
) -> EditedCell | None:
    """What became of a cell; None where it is the same. A formula that was typed over is not."""
    place, name = book.places[block.name], f"{block.name}[{i},{j}]"
    where, there = book.address(block[i, j]), file[place.sheet].cell(place.cell(i, j))
    if there.formula is not None and there.value is None:
        raise InputError(
            f"{where} holds a formula without a value; open and save it in a spreadsheet"
        )
    was: Any = book.values[block.name][i, j]
    if isinstance(was, str):
        now: float | str = _text(there.value)
        same = now == was
    else:
        now = _number(there.value, f"{where} ({name})", by_formula)
        same = abs(now - was) <= SAME * abs(was)
    return None if same and not by_formula else EditedCell(name, where, was, now)


def _number(value: reading.Value, where: str, formula: bool) -> float:
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
