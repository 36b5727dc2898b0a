"""A workbook that somebody has edited and saved: what differs from the one that was built.

The book is built again from the workbook's own Source sheet, and every cell of the file is held
against it: inputs (weights, settings, switches, the prompt, the dials) by value, formulas for
being formulas still, everything else for standing where it stood. Numbers are the same when they
agree to 14 digits, for LibreOffice writes 15.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from openpyxl import load_workbook

from engine import Evaluator, InputError, Model
from engine.models.generate import Sampling
from engine.studies import ablation
from exporters import source
from exporters.address import quoted
from exporters.book import Sheet
from exporters.layout import ID_ROW, NUMBER_ROW, PICK_ROW, PLAY, PROMPT_COL
from exporters.model_book import ModelBook, cell
from exporters.pages import printed, start
from exporters.plan import MANY_WORDS
from exporters.story import Story
from exporters.transformer import assemble

SAME = 1e-14  # relative
TYPED = ("token", "sentence", "dial", "number typed")  # styles of the page cells that are typed in
BLANK = Story("", "", [], [], [])


class Change(NamedTuple):
    """One cell that differs: its name in the graph or on Play, its place, what it was and is."""

    name: str
    where: str
    was: float | str
    now: float | str


@dataclass
class Edited:
    """A workbook as built, and what was changed in it."""

    book: ModelBook
    model: Model
    inputs: list[Change] = field(default_factory=list)
    overwritten: list[Change] = field(default_factory=list)  # formulas that were typed over
    values: dict[tuple[str, int, int], float] = field(default_factory=dict)  # of cells changed
    ids: list[int] = field(default_factory=list)  # the prompt
    unknown: list[str] = field(default_factory=list)  # words that stand for the first of the list
    sampling: Sampling = field(default_factory=Sampling)
    numbers: list[float] = field(default_factory=list)
    position: int = 0  # the token whose next word is ranked

    def live(self) -> Evaluator:
        """The sheet's numbers by the engine: every change made, the prompt continued."""
        n = len(self.book.passage.ids)
        padded = (self.ids + [0] * n)[:n]
        live = Evaluator(self.model.graph(padded))
        if "temperature" in live.graph.blocks:
            live.set("temperature", 0, 0, self.book.value("temperature", 0, 0))
        for (block, i, j), value in self.values.items():
            if block in live.graph.blocks:
                live.set(block, i, j, value)
        for t in range(len(self.ids), n):
            if ("tokens", t, 0) not in self.values:
                token = self.sampling.choose(live["logits"][t - 1], self.numbers[t])
                live.set("tokens", t, 0, float(token))
        return live


def read(path: str | Path, find: Callable[[str], Model] | None = None) -> Edited:
    """What was edited in a workbook. One that does not carry its model has it found by its title.

    Raises InputError for a file that is no workbook of ours, one whose sheets were taken apart,
    and a weight that holds no number.
    """
    path = Path(path)
    written, computed = _open(path)
    try:
        return _compare(_rebuild(written, find), written, computed)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _open(path: Path) -> tuple[Any, Any]:
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return load_workbook(path), load_workbook(path, data_only=True)
    except Exception as error:  # openpyxl lets through whatever zip and XML raise
        raise InputError(f"{path} is not an .xlsx workbook ({type(error).__name__})") from None


def _facts(written: Any) -> source.Source:
    if source.SHEET not in written.sheetnames:
        raise InputError("it has no sheet Source: it holds no transformer, is not a workbook of "
                         "cellformer's, or the sheet was deleted; build it anew")  # fmt: skip
    return source.read(source.column(written))


def _rebuild(written: Any, find: Callable[[str], Model] | None) -> tuple[ModelBook, Model]:
    """The book as it was built."""
    facts = _facts(written)
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
    return assemble(facts.title, model, facts.passage, BLANK, (), facts.headings), model


def _compare(built: tuple[ModelBook, Model], written: Any, computed: Any) -> Edited:
    book, model = built
    found = Edited(book, model)
    for sheet in book.sheets.values():
        if sheet.name not in (start.SHEET, printed.SHEET, source.SHEET):
            if sheet.name not in written.sheetnames:
                raise InputError(f"sheet {sheet.name!r} is missing; put it back, or build anew")
            _in_place(sheet, written[sheet.name])
            _formulas(found, sheet, written[sheet.name], computed[sheet.name])
    for block in book.graph:
        if book.places[block.name].sheet in written.sheetnames:
            _block(found, block.name, written, computed)
    _play(found, computed[PLAY])
    return found


# --- where things stand -----------------------------------------------------------------------


def _in_place(sheet: Sheet, written: Any) -> None:
    """Raise InputError where texts and numbers that nobody types over stand elsewhere."""
    fixed = {
        at: entry.value
        for at, entry in sheet.entries.items()
        if entry.formula is None and entry.style not in TYPED and entry.value != ""
    }
    for run in sheet.runs:
        fixed |= {at: run.at(k) for k, at in enumerate(run.area.cells())}
    moved = sorted(at for at, value in fixed.items() if not _alike(value, _at(written, *at)))
    for what, verb, down, right in (
        ("row", "inserted", 1, 0),
        ("row", "deleted", -1, 0),
        ("column", "inserted", 0, 1),
        ("column", "deleted", 0, -1),
    ):
        same = sum(_alike(fixed[r, c], _at(written, r + down, c + right)) for r, c in moved)
        if 2 * same > len(moved) > 1:
            at = moved[0][0] + 1 if what == "row" else min(c for _, c in moved) + 1
            raise InputError(
                f"a {what} was {verb} in sheet {sheet.name!r} about {what} {at}; "
                "undo that, or type the edits into a workbook built anew"
            )


def _at(written: Any, row: int, col: int) -> Any:
    return written.cell(row + 1, col + 1).value if min(row, col) >= 0 else None


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return abs(a - b) <= SAME * abs(a)
    return bool(str(a) == str("" if b is None else b))


def _formulas(found: Edited, sheet: Sheet, written: Any, computed: Any) -> None:
    """Formulas of a page that were typed over."""
    for (row, col), entry in sheet.entries.items():
        if entry.formula and written.cell(row + 1, col + 1).data_type != "f":
            name = _spot(found.book, sheet.name, row, col)
            value = computed.cell(row + 1, col + 1).value
            now = "" if value is None else value
            where = f"{quoted(sheet.name)}!{cell(row, col)}"
            if name == "position" and isinstance(now, int | float):
                found.inputs.append(Change(name, where, entry.value, now))
            elif (sheet.name, row) != (PLAY, ID_ROW):
                found.overwritten.append(Change(name or where, where, entry.value, now))


def _spot(book: ModelBook, sheet: str, row: int, col: int) -> str:
    return next((name for name, spot in book.spots.items() if spot == (sheet, row, col)), "")


# --- blocks -------------------------------------------------------------------------------------

FOLLOW = ("position", "target", "rival")  # inputs of the graph that a formula on Play sets


def _block(found: Edited, name: str, written: Any, computed: Any) -> None:
    """Inputs by value; computed cells for being formulas still."""
    book = found.book
    place, block = book.places[name], book.graph[name]
    if name in FOLLOW:
        return
    sheet, values = written[place.sheet], computed[place.sheet]
    by_formula = block.op is not None or name == "tokens"
    for i, j in block.whole.cells():
        if by_formula and not block.has(i, j):
            continue
        row, col = place.cell(i, j)
        is_formula = sheet.cell(row + 1, col + 1).data_type == "f"
        if by_formula and is_formula:
            continue
        where = f"{quoted(place.sheet)}!{cell(row, col)}"
        was = book.value(name, i, j)
        there = values.cell(row + 1, col + 1)
        if is_formula and there.value is None:
            raise InputError(
                f"{where} holds a formula without a value; open and save it in a spreadsheet"
            )
        now = _number(there, f"{where} ({name}[{i},{j}])", by_formula)
        if by_formula or abs(now - was) > SAME * abs(was):
            kind = found.overwritten if by_formula else found.inputs
            kind.append(Change(f"{name}[{i},{j}]", where, was, now))
            if block.kind == "ids":
                book.graph.check_value(block, i, j, now)
            found.values[name, i, j] = now


def _number(there: Any, where: str, formula: bool) -> float:
    """The number in a cell. Raises InputError for anything else."""
    value = there.value
    if there.data_type == "e":
        raise InputError(f"{where} holds the error {value}; type a number")
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        return float(value)
    if value is None or value == "":
        what = "is empty" + (", and held a formula" if formula else "")
        raise InputError(f"{where} {what}; type a number, or take the cell from a fresh build")
    raise InputError(f"{where} holds the text {str(value)[:40]!r}; type a number")


# --- Play ---------------------------------------------------------------------------------------


def _play(found: Edited, play: Any) -> None:
    """The prompt, the dials, the random numbers."""
    book = found.book
    words = _prompt(found, play)
    table, _ = book.graph.looked_up(book.graph["tokens"])
    texts = list(book.labels[table.axes[0]])
    found.unknown = [word for word in words if word not in texts]
    found.ids = [texts.index(word) if word in texts else 0 for word in words] or [0]
    before = [texts[i] for i in book.passage.ids[: book.passage.n_prompt]]
    if words != before:
        where = f"{PLAY}!{cell(*book.spots['sentence'][1:])}"
        found.inputs.append(Change("prompt", where, " ".join(before), " ".join(words)))
    found.position = len(found.ids) - 1
    for change in found.inputs:
        if change.name == "position":
            found.position = min(max(int(float(change.now)), 0), len(book.passage.ids) - 1)
    dials = dict(_dials(found, play))
    temperature = found.values.get(("temperature", 0, 0), book.value("temperature", 0, 0))
    heat = temperature if dials["choose"] == "sampled" else 0.0
    found.sampling = Sampling(heat, int(float(dials["top_k"])), float(dials["top_p"]))
    for t, was in enumerate(book.passage.numbers.tolist()):
        row, col = NUMBER_ROW, PROMPT_COL + t
        at = f"{PLAY}!{cell(row, col)}"
        now = _number(play.cell(row + 1, col + 1), f"{at} (random number {t})", False)
        found.numbers.append(now)
        if abs(now - was) > SAME * abs(was):
            found.inputs.append(Change(f"random number {t}", at, was, now))


def _prompt(found: Edited, play: Any) -> list[str]:
    """The words given: those of the sentence, or picked in their place, up to the first gap."""
    book = found.book
    _, row, col = book.spots["sentence"]
    n = len(book.passage.ids)
    typed = _text(play.cell(row + 1, col + 1).value).split(" ")
    typed = [word for word in typed if word]
    words = []
    for t in range(n):
        picked = _text(play.cell(PICK_ROW + 1, PROMPT_COL + t + 1).value)
        word = picked or (typed[t] if t < len(typed) else "")
        if not word:
            break
        words.append(word)
    return words


def _text(value: Any) -> str:
    """A cell's text; a word that reads as a whole number may have become one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value)


def _dials(found: Edited, play: Any) -> Iterator[tuple[str, Any]]:
    """Each dial with its value; changed ones are noted."""
    book = found.book
    how = book.passage.sampling
    axis = book.graph["logits"].axes[1]
    built = {
        "choose": "sampled" if how.temperature else "greedy",
        "top_k": how.top_k,
        "top_p": how.top_p,
        "target": book.labels[axis][int(book.value("target", 0, 0))],
        "rival": book.labels[axis][int(book.value("rival", 0, 0))],
    }
    for name, was in built.items():
        _, row, col = book.spots[name]
        there = play.cell(row + 1, col + 1)
        where = f"{PLAY}!{cell(row, col)}"
        now: Any = _text(there.value)
        if isinstance(was, int | float):
            now = _number(there, f"{where} ({name})", False)
        if not _alike(was, now):
            found.inputs.append(Change(name, where, was, now))
        yield name, now
