"""What people do to a workbook besides typing numbers: they sort, insert, delete, paste. A locked
sheet refuses it, or the ledger tells it; a cell that holds an error is told, and harms no other."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import on_play
import pytest
from conftest import ERROR, GOLDEN, CellAt, InIronCalc, default_book
from libreoffice import Command, told_of

import cellformer as cf
from cellformer.engine.cells.access import Rect
from cellformer.exporters.checking import verify
from cellformer.exporters.compose.address import a1
from cellformer.exporters.compose.book import START, Book, Place
from cellformer.exporters.file import protection
from cellformer.exporters.model.block_sheets import PLAY
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.pages import ledger
from cellformer.exporters.play import ranking

WORKSHEETS = ("loss", "superposition")
BOOKS = ("cat-sat", "thin-dialogue-game", "fluffy-creature", "an encoder", *WORKSHEETS)
LEDGER: CellAt = (START, 2, 0)
UNPROTECTED: Command = ("unprotect",)
SOME = 300  # random edits


class Act(NamedTuple):
    """What somebody does to a sheet; whether it is refused while the sheet is locked."""

    sheet: str
    done: Command
    refused: bool = True


@cache
def book_of(name: str) -> Book:
    if name == "an encoder":
        return cf.build(GOLDEN / "distilbert", ids=[3, 1, 4, 1], title="encoder")
    return default_book(name)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Their files."""
    folder = tmp_path_factory.mktemp("integrity")
    return {name: cf.write(book_of(name), folder / f"{name}.xlsx") for name in BOOKS}


def answer(book: Book) -> CellAt:
    """The cell that shows what it is for: the text, the likeliest word, or what an edit moves."""
    if not isinstance(book, ModelBook):
        watch = book.suggestions[0].watch or book.suggestions[0].cell
        assert not isinstance(watch, int)
        return book.cell(*watch)
    if book.plan.ranks_every_token:
        return on_play.TEXT
    return PLAY, on_play.RANKS_OF_LAST, 1


def typed_places(book: Book) -> list[Place]:
    """The tables of numbers that may be typed over, of more than one row and column."""
    blocks = [w.block for w in ledger.watched(book) if w.block.kind in ("weight", "setting")]
    places = [book.places[block.name] for block in blocks]
    return [p for p in places if min(p.size) > 1 and not ledger._of_texts(book, p.block)]


def acts(book: Book) -> Iterator[Act]:
    """Twenty of them."""
    tables = [p for p in book.places.values() if p.block.computed and p.size[0] > 2]
    computed = max(tables, key=lambda p: (bool(p.block.op), min(p.size), p.size))
    place = typed_places(book)[-1]
    there, rect = computed.sheet, computed.rect(computed.block.whole)
    inside, beside = rect.top + 1, rect.left + 1
    yield Act(there, ("insert rows", there, inside, 1))
    yield Act(there, ("insert rows", there, inside, 3))
    yield Act(there, ("delete rows", there, inside, 1))
    yield Act(there, ("insert columns", there, beside, 1))
    yield Act(there, ("delete columns", there, beside, 1))
    yield Act(there, ("insert rows", there, 2, 1))
    yield Act(there, ("insert cells", there, a1(rect._replace(right=rect.left + 1))))
    cells = place.rect(place.block.whole)
    yield Act(place.sheet, ("insert rows", place.sheet, cells.bottom - 1, 1))
    yield Act(place.sheet, ("delete rows", place.sheet, cells.top, 1))
    yield Act(ledger.SHEET, ("insert rows", ledger.SHEET, ledger.TOP + 1, 1))
    yield Act(ledger.SHEET, ("delete rows", ledger.SHEET, ledger.TOP, 1))
    yield Act(ledger.SHEET, ("delete rows", ledger.SHEET, 0, 5))
    if isinstance(book, ModelBook) and not book.plan.live:
        ranks, _ = ranking.order(book)
        ranked = a1(ranks.rect._replace(right=ranks.rect.left + 5))
        yield Act(PLAY, ("sort", PLAY, ranked, 0, "down"))
        yield Act(PLAY, ("filter", PLAY, ranked), refused=False)
    yield Act(there, ("rename sheet", there, "Another"), refused=False)
    yield Act(there, ("copy sheet", there, "A copy", 2), refused=False)
    yield Act(there, ("move sheet", there, 0), refused=False)
    first, last = a1(cells._replace(bottom=cells.top + 1)), a1(cells._replace(top=cells.bottom - 1))
    yield Act(place.sheet, ("copy", place.sheet, first, last), refused=False)
    # not a corner, which LibreOffice does not bring back whole
    one = a1(Rect(cells.top, cells.top + 1, cells.left + 1, cells.left + 2))
    yield Act(place.sheet, ("cut", place.sheet, one, last), refused=False)
    yield Act(place.sheet, ("fill down", place.sheet, a1(cells)), refused=False)
    yield Act(there, ("delete sheet", there), refused=False)
    yield Act(ledger.SHEET, ("delete sheet", ledger.SHEET), refused=False)


def is_right(line: str) -> bool:
    """Whether a ledger is one."""
    return line.startswith(("no edits", f"{ledger.SHEET}: ")) or " edit" in line[:12]


@pytest.mark.parametrize("name", BOOKS)
def test_structural_edits_are_reported(
    name: str, written: dict[str, Path], tmp_path: Path, libreoffice
) -> None:
    """Each with the sheets locked, and with the protection taken away."""
    book, done = book_of(name), [*acts(book_of(name))]
    assert len(done) >= 20 or name in WORKSHEETS
    each = [[act.done] for act in done] + [[UNPROTECTED, act.done] for act in done]
    (_, *as_built), *shown = (
        rows := told_of(written[name], [LEDGER, answer(book)], [[], *each], tmp_path)
    )[0]
    assert as_built[0].startswith("no edits") and rows[1], "undo does not bring everything back"
    for k, (n_errors, line, said) in enumerate(shown):
        locked, act = k < len(done), done[k % len(done)]
        assert is_right(line), (act, line)
        if locked and act.refused:
            assert [line, said] == as_built and n_errors == "0", (act, line, said)
        elif said != as_built[1] or n_errors != "0":
            assert f"{act.sheet}: " in line or not line.startswith("no edits"), (act, line, said)
        if not locked and act.refused:
            assert f"{act.sheet}: " in line, (act, line)


def random_edits(book: Book, rng: np.random.Generator) -> Iterator[list[Command]]:
    """Numbers, texts, dates, errors, nothing, and what is copied, each into what may be typed."""
    watched = [w for w in ledger.watched(book) if w.typed]
    while True:
        line = watched[rng.integers(len(watched))]
        i, j = line.cell or (int(rng.integers(n)) for n in line.block.shape)
        place = book.places[line.block.name]
        row, col = place.cell(i, j)
        at = place.sheet, a1(Rect(row, row + 1, col, col + 1))
        value = [
            ("number", repr(round(float(rng.normal()), 3))),
            ("number", "1e9"),
            ("text", "0,5"),
            ("text", "hello"),
            ("text", "31.12.2026"),
            ("formula", "=1/0"),
            ("formula", "=NA()"),
            ("formula", "=SQRT(-1)"),
            ("formula", "=#REF!"),
            ("number", "46024"),  # a date
            ("nothing", ""),
        ][rng.integers(11)]
        # an empty one LibreOffice copies, but does not bring back what stood there
        empty = book.clean.cell(place.sheet, row, col) is None
        if rng.random() < 0.15 and line.block.whole.size > 1 and not empty:
            whole = a1(place.rect(line.block.whole))
            yield [("copy", place.sheet, at[1], whole.partition(":")[0])]
        else:
            yield [("enter", *at, *value)]


def test_no_random_edit_leads_to_an_error(
    written: dict[str, Path], tmp_path: Path, libreoffice
) -> None:
    """But in the cells themselves; and all of them can be undone."""
    for name, n in (("thin-dialogue-game", SOME), ("superposition", SOME // 3)):
        edits = random_edits(book_of(name), np.random.default_rng(3))
        done = [next(edits) for _ in range(n)]
        rows, back = told_of(written[name], [LEDGER], done, tmp_path / name)
        assert back
        for act, (n_errors, line) in zip(done, rows, strict=True):
            own = act[0][0] == "copy" or act[0][-1] in ("=1/0", "=NA()", "=SQRT(-1)", "=#REF!")
            assert is_right(line) and int(n_errors) <= own, (act, n_errors, line)


@pytest.mark.slow
@pytest.mark.parametrize("name", ("fluffy-creature", *WORKSHEETS))
def test_error_in_any_input_is_named(name: str, written: dict[str, Path]) -> None:
    book, sheet = book_of(name), InIronCalc(written[name])
    formulas = verify.read(written[name]).formulas
    for line in list(ledger.watched(book)):
        at = book.cell(line.block.name, *(line.cell or (0, 0)))
        if not line.typed:
            continue
        for value in ("=1/0", "a text"):
            model, where = sheet.model, sheet._at(at)
            before = sheet[at]
            model.set_user_input(*where, value)
            model.evaluate()
            wrong = [cell for cell in formulas if ERROR.fullmatch(str(sheet[cell]))]
            told = str(sheet[LEDGER])
            assert not wrong and line.what.split("[")[0] in told, (at, value, wrong[:3], told)
            sheet._type({at: before})


@pytest.mark.slow
def test_error_text_and_blank_are_told_apart(written: dict[str, Path]) -> None:
    book, sheet = book_of("cat-sat"), InIronCalc(written["cat-sat"])
    at = book.cell("blocks.0.attn.h0.W_V", 2, 2)
    for value, told in (
        ("=NA()", "1 → an error: results that use the cell count as 0"),
        ("x", "1 → ‘x’, a text: counts as 0"),
        ("", "1 → empty: counts as 0"),
    ):
        sheet.model.set_user_input(*sheet._at(at), value)
        sheet.model.evaluate()
        assert f"1 edit: blocks.0.attn.h0.W_V[2,2] {told}" in str(sheet[LEDGER])


@pytest.mark.slow
@pytest.mark.parametrize("name", ("cat-sat", "loss"))
def test_inputs_are_unlocked_formulas_locked(name: str, written: dict[str, Path]) -> None:
    """Of every sheet, and of every edit that a workbook suggests."""
    openpyxl = pytest.importorskip("openpyxl")
    file, book = openpyxl.load_workbook(written[name]), book_of(name)
    for sheet in file:
        assert sheet.protection.sheet and not sheet.protection.password
        assert not sheet.protection.autoFilter and not sheet.protection.formatCells
        assert sheet.protection.sort and sheet.protection.insertRows
    for line in ledger.watched(book):
        where, row, col = book.cell(line.block.name, *(line.cell or (0, 0)))
        locked = file[where].cell(row + 1, col + 1).protection.locked
        assert locked != line.typed, line.what
    for place in book.places.values():
        if place.block.computed and not protection.opened(book, book.sheets[place.sheet])[1]:
            row, col = place.cell(0, 0)
            assert file[place.sheet].cell(row + 1, col + 1).protection.locked
