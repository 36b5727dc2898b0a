"""Digest: whether a program computes the same values, from three sums of every range of formulas.

The sums of the workbook as built are stored beside formulas for the current ones; the verdict on
Start compares them. Cells are weighted by 1, by their index in the range, and by its square: if a
single cell is wrong, the three differences tell which. Anything but a number counts as a million,
so errors do not spread here. A range of texts, or of a few cells that read each other, is compared
with a copy; only the first difference is reported.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.expression import Area, Expression, Look, Notation, expression
from cellformer.engine.cells.functions import (
    ABS,
    AND,
    EXACT,
    IF,
    IFERROR,
    INDEX,
    INT,
    LEFT,
    MATCH,
    MAX,
    MIN,
    MOD,
    NOT,
    ROUND,
    SUM,
    SUMPRODUCT,
)
from cellformer.engine.cells.language import worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.engine.cells.values import FormulaError, number
from cellformer.exporters.compose import probes, typed_over
from cellformer.exporters.compose.address import column, quoted
from cellformer.exporters.compose.book import Book, Run, Sheet
from cellformer.exporters.compose.composer import Composer, Table
from cellformer.exporters.compose.dressing import When
from cellformer.exporters.compose.ranges import FRACTION, Range, of_formulas, of_inputs
from cellformer.exporters.compose.sentences import sentence

SHEET = "Digest"
PURPOSE = "for every range of formulas: the sums as built, and the sums in this program"
AFTER = "Built"
CHECK = "Check"  # the sheet with what is to be known of it
# the row of the verdict, here and on Start; below it how many ranges differ, the first, the largest
SUMMARY = 3
# of which formula was typed over, and of which functions are not computed, the rows of: a text,
# empty where all is well; how many, for Check; a sentence for Check
TYPED_OVER, FUNCTIONS = (9, 10, 11), (12, 13, 14)
TOP = 18  # of the lines
END = 1 << 20  # of every sheet
HEADS = (
    *("sheet", "row", "column", "rows", "columns", "size"),
    *(
        "sum, or text",
        "by place",
        "by place squared",
        "off by",
        "off by place",
        "off by place squared",
    ),
)
ON, ROW, COL, HIGH, WIDE, SIZE = range(6)
WAS, OFF = range(6, 9), range(9, 12)  # three sums each
BEGINS = 12  # the index of a range's first cell among the cells of all ranges
DOWN, LETTERS, COPIES = 13, 14, 16  # columns: 0, 1, 2, ...; A, B, C, ...; texts as built
MOST_OFF = 1_000_000_000_000_000  # of a range: what is more off counts as that
NO_NUMBER = 1_000_000  # what it counts as
SPREAD = 0.1  # of places: less than where two cells are wrong
AGREES = "Checked: your program gets the same numbers as cellformer"
EDITED = (
    "You have changed something (see the line above). Undo the change, and this line checks your "
    "program again."
)
MOVES = "The model is learning now. Choose ‘start’, and this line checks your program again."
KEPT = "nobody typed over a formula"
KEPT_LARGE = "nobody typed over a formula (only Excel and LibreOffice can check so many formulas)"
NOT_CHECKED = "this program cannot compute ISFORMULA, so formulas are not checked"
COMPUTED = "this program can compute every function of the workbook"
ANEW = "To recompute all: Ctrl+Alt+F9 in Excel, Ctrl+Shift+F9 in LibreOffice."

MOST_COPIED = 400  # numbers of a range

Copied = tuple[tuple[Any, ...], ...]  # values [rows, columns]


@dataclass(slots=True, eq=False)
class Numbers(Expression):
    """The numbers of some cells, with a million for anything else."""

    area: Area

    def text(self, notation: Notation) -> str:
        return IFERROR(self.area * 1, NO_NUMBER).text(notation)

    def value(self, look: Look) -> Any:
        held = np.atleast_2d(np.asarray(look(self.area)))
        if held.dtype != object:
            return held
        return np.array([counts(x) for x in held.flat], np.float64).reshape(held.shape)

    def areas(self) -> Iterator[Area]:
        yield self.area


def counts(x: Any) -> float:
    """The number that stands for a blank, a text or an error."""
    try:
        return float(number(x))
    except FormulaError:
        return NO_NUMBER


class Watch(NamedTuple):
    """The questions to a ledger."""

    edits: Area  # the cell with the number of edits
    edited: Expression  # whether something was typed
    line: tuple[str, Rect]  # the cell of its line, which tells what is found here


def fill(book: Book, ledger: Watch | None = None, rests: Expression | None = None) -> None:
    """Add every range of formulas and the verdict; to be called when all other sheets are complete.

    Without a ledger the input cells are compared as well, and nothing else is checked. Ranges are
    compared only while `rests` holds: sums over cells that keep their values would have LibreOffice
    compute these again for each sum.
    """
    sheet = book.sheet(SHEET)
    apart = [(SHEET, Rect(SUMMARY, END, 0, END))]
    found = of_formulas(book, [*apart, ledger.line] if ledger else apart)
    inputs = [] if ledger else of_inputs(book)
    end = TOP + len(found) + len(inputs)
    _helpers(sheet, [one.rect for one in (*found, *inputs)])
    copies = dict[Copied, int]()
    page = Composer(book, SHEET)
    off = page.table("off", (TOP, OFF[0]), (max(end - TOP, 1), len(OFF)))
    for row, one in enumerate((*found, *inputs), TOP):
        _line(book, off, one, row, copies)
    for at in page.rect(off.area).cells() if rests is not None else ():
        if (entry := sheet.entries.get(at)) is not None:  # 0 while cells do not rest
            sheet.entries[at] = entry._replace(formula=IF(rests, entry.formula, 0))
    formulas = slice(TOP, TOP + len(found))
    differs, gaps = _differs(sheet, formulas), sheet[formulas, OFF.start : OFF.stop]
    summary = (
        ("differ", "ranges that differ", SUMPRODUCT(differs), "count"),
        ("first", "first difference", IFERROR(MATCH(1, differs, 0), 0), "count"),
        ("largest", "largest gap", MAX(MAX(gaps), -MIN(gaps)), "off"),
    )
    for row, (name, what, formula, style) in enumerate(summary, SUMMARY + 1):
        sheet.put(row, 1, what)
        page.show(name, (row, 0), formula, style, array=True)
    if ledger:
        _check(page, found, ledger.edits, end + 3)
        edited = ledger.edited
    else:
        typed = slice(formulas.stop, end)
        edited = SUMPRODUCT(_differs(sheet, typed)) > 0 if inputs else expression(0) > 0
    verdict = _verdict(book, found, edited)
    if rests is not None:
        verdict = IF(rests, verdict, sentence(worded(MOVES)))
    page.show("verdict", (SUMMARY, 0), verdict, "block")
    _explain(book, found)


def _check(page: Composer, found: Sequence[Range], edits: Area, below: int) -> None:
    """Add the formula that was typed over, and the functions that the program does not compute."""
    sheet, lines = page.sheet, slice(TOP, TOP + len(found))
    uncounted, n_uncomputed, uncomputed = probes.add(
        page, edits, (below, 4), probes.used(page.book)
    )
    sheet.down(TOP, BEGINS, typed_over.begins(found), "count")
    numbered = sheet[_run(sheet, DOWN)], sheet[_run(sheet, COPIES)]
    index = typed_over.add(page, found, (below, 0), numbered)
    text, count, claim = TYPED_OVER
    starts = sheet[lines, BEGINS].as_range
    line = page.show("typed_over.line", (text - 1, 0), IFERROR(MATCH(index, starts, 1), 0), "count")
    on, cell, wide, _ = _place(sheet, lines, line)
    k = index - INDEX(starts, line, 1)
    where = IF(line == 0, "", on & "!" & cell(INT(k / wide), MOD(k, wide)))
    first = page.show("typed_over", (text, 0), IFERROR(where, ""), "text")
    page.show("typed_over.n", (count, 0), IF(first == "", uncounted, 1), "count")
    large = sum(one.n_cells for one in found) > typed_over.MOST_SINGLE
    told = IF(uncounted == 0, worded(KEPT_LARGE if large else KEPT), worded(NOT_CHECKED))
    page.show("typed_over.claim", (claim, 0), told, "text")
    text, count, claim = FUNCTIONS
    missing = page.show("functions", (text, 0), uncomputed, "text")
    page.show("functions.n", (count, 0), n_uncomputed, "count")
    told = IF(missing == "", worded(COMPUTED), missing)
    page.show("functions.claim", (claim, 0), told, "text")


def show(book: Book) -> None:
    """Add the verdict to the first sheet, below the ledger; and the largest difference to Check,
    where that does not stand among what is checked. An edit is no difference."""
    digest, page = book.sheet(SHEET), Composer(book, next(iter(book.sheets)))
    told = page.show("verdict", (SUMMARY, 0), digest[SUMMARY, 0], "ledger")
    agrees, by_edits = (LEFT(told, len(text)) == text for text in (worded(AGREES), worded(EDITED)))
    page.dress(told, When("differs", AND(NOT(agrees), NOT(by_edits))))
    if CHECK in book.sheets and "check.gap" not in book.shown:
        check = Composer(book, CHECK, below(book))
        check.sheet.put(check.cursor, 1, "largest difference from the numbers of cellformer")
        check.show("largest", (check.cursor, 2), IF(by_edits, "", largest(book)), "largest gap")


def _explain(book: Book, found: Sequence[Range]) -> None:
    """Add to Check how many formulas the verdict compares, and how to compute them anew."""
    if CHECK not in book.sheets:
        return
    n_cells, sheet = sum(one.n_cells for one in found), book.sheet(CHECK)
    sheet.put(
        below(book) + 1,
        0,
        worded(
            "The sheet Start checks {k:,} formulas in {n:,} ranges. See the sheet Digest.",
            k=n_cells,
            n=len(found),
        ),
        "note",
    )
    if not book.iterates:  # a latch, computed out of its turn, is wrong
        sheet.put(below(book), 0, ANEW, "note")


def below(book: Book) -> int:
    """The first row of Check below everything on it."""
    return 1 + max(row for row, _ in book.sheet(CHECK).entries)


def largest(book: Book) -> Area:
    """The cell with the largest relative difference of any range."""
    return book.sheet(SHEET)[SUMMARY + 3, 0]


def _differs(sheet: Sheet, lines: slice) -> Expression:
    """1 for every range that differs, else 0."""
    off = [sheet[lines, col].as_range * round(1 / NEAR) for col in OFF]
    return (off[0] * off[0] + off[1] * off[1] + off[2] * off[2] >= 1) * 1


def _verdict(book: Book, found: Sequence[Range], edited: Expression) -> Expression:
    """The verdict, one sentence, for Start and for bug reports."""
    sheet, n, n_cells = book.sheet(SHEET), len(found), sum(one.n_cells for one in found)
    differ = sheet[SUMMARY + 1, 0]
    anew = (
        "" if book.iterates else f" {worded(ANEW)}"
    )  # a latch, computed out of its turn, is wrong
    told = sentence(
        "Your program’s numbers differ from the numbers of cellformer. The first such cell is "
        "{cell}.",
        cell=_first(sheet, slice(TOP, TOP + n)),
    )
    agrees = f"{worded(AGREES)} ({worded('{k:,} formulas', k=n_cells)})."
    return IF(IFERROR(edited * 1, 0) == 1, worded(EDITED), IF(differ == 0, agrees, told & anew))


def _first(sheet: Sheet, lines: slice) -> Expression:
    """The address of the first cell that differs, or else of its range."""
    at = sheet[SUMMARY + 2, 0]
    on, cell, wide, high = _place(sheet, lines, at)
    by, by_place, by_square = (INDEX(sheet[lines, k].as_range, at, 1) for k in OFF)
    n = high * wide
    k = ROUND(by_place / by * n, 0)
    alone = ABS(by_square / by - (by_place / by) * (by_place / by)) * n * n < SPREAD
    one = cell(INT(k / wide), MOD(k, wide))
    whole = cell(expression(0), expression(0)) & ":" & cell(high - 1, wide - 1)
    return on & "!" & IFERROR(IF(AND(alone, k >= 0, k < n), one, whole), whole)


Cell = Callable[[Expression, Expression], Expression]  # its address, by rows down and to the right


def _place(
    sheet: Sheet, lines: slice, at: Expression
) -> tuple[Expression, Cell, Expression, Expression]:
    """The place of the range with a number: its sheet, the addresses of its cells, its width and
    height."""
    on, row, col, high, wide = (
        INDEX(sheet[lines, k].as_range, at, 1) for k in (ON, ROW, COL, HIGH, WIDE)
    )
    letters = _run(sheet, LETTERS)
    named = sheet[letters.top : letters.bottom, LETTERS]

    def cell(down: Expression, right: Expression) -> Expression:
        return INDEX(named, col + right, 1) & (row + down)

    return on, cell, wide, high


def _run(sheet: Sheet, left: int) -> Rect:
    """The cells of the helper column, or row, that begins in a column."""
    return next(run.area for run in sheet.runs if run.area.left == left)


def _helpers(sheet: Sheet, rects: list[Rect]) -> None:
    """Add the constants that formulas use, and the column heads."""
    sheet.across(TOP - 1, 0, HEADS, "block")
    sheet.widths = {ON: 14} | dict.fromkeys((*WAS, *OFF), 16)
    sheet.frozen = (TOP, 1)
    tall = max((r.bottom - r.top for r in rects), default=1)
    wide = max((r.right - r.left for r in rects), default=1)
    letters = [column(k) for k in range(max((r.right for r in rects), default=1))]
    down = Rect(TOP, TOP + tall, DOWN, DOWN + 1)
    across = Rect(TOP - 2, TOP - 1, COPIES, COPIES + wide)
    named = Rect(TOP, TOP + len(letters), LETTERS, LETTERS + 1)
    sheet.runs += [Run(down, "row number"), Run(across, "label number")]
    sheet.runs.append(Run(named, "label", letters))


# --- a line -------------------------------------------------------------------------------


def _line(book: Book, off: Table, one: Range, row: int, copies: dict[Copied, int]) -> None:
    """Add a range's row: its address, its sums, their differences."""
    top, bottom, left, right = one.rect
    off.sheet.hold(row, ON, quoted(one.sheet), "text")
    off.sheet.across(row, ROW, (top + 1, left + 1, bottom - top, right - left), "count")
    if one.rect.size == 1:
        _of_one(book, off, one, row)
    elif one.texts or (one.chained and one.rect.size <= MOST_COPIED):
        _of_copied(book, off, one, row, copies)
    else:
        _of_numbers(book, off, one, row)


def _of_one(book: Book, off: Table, one: Range, row: int) -> None:
    """A range of a single cell."""
    held = book.clean.cell(one.sheet, one.rect.top, one.rect.left)
    cell: Expression = one.area[0, 0]
    texts = one.texts
    if texts and (fraction := FRACTION.search(held)):
        held = held[: fraction.start()]
        cell = LEFT(cell, len(held))
    was = off.sheet[row, WAS[0]]
    off.sheet.hold(row, WAS[0], held, "text" if texts else "step")
    gap = (IFERROR(cell * 1, NO_NUMBER) - was) / MAX(1, ABS(was))
    differs: Expression = IFERROR(IF(EXACT(cell, was), 0, 1), 1) if texts else _bounded(gap)
    off.put(row - TOP, 0, differs, "off")


def _of_numbers(book: Book, off: Table, one: Range, row: int) -> None:
    """A range of numbers: its sums, and their differences relative to its size."""
    sheet, now = off.sheet, Numbers(one.area)
    held = now.value(book.clean)
    sheet.put(row, SIZE, _in_short(float(np.abs(held).sum())), "count")
    places = np.arange(held.size).reshape(held.shape)
    at = _places(sheet, one.rect)
    for power, weighted in enumerate((now, now * at, now * at * at)):
        was = sheet[row, WAS[power]]
        sheet.put(row, WAS[power], float((held * places**power).sum()), "step")
        gap = (SUM(weighted) - was) / (sheet[row, SIZE] * held.size**power)
        off.put(row - TOP, power, _bounded(gap), "off", array=True)


def _bounded(off: Expression) -> Expression:
    """A difference, limited so that it can be squared."""
    return IFERROR(MAX(-MOST_OFF, MIN(MOST_OFF, off)), MOST_OFF)


def _of_copied(book: Book, off: Table, one: Range, row: int, copies: dict[Copied, int]) -> None:
    """A range with a copy as built: the share of its cells that differ, and the first of them.
    The three numbers are the same as for a difference in that cell alone."""
    sheet, area, (top, bottom, left, right) = off.sheet, one.area, one.rect
    name = one.sheet
    held = tuple(
        tuple(book.clean.cell(name, i, j) for j in range(left, right)) for i in range(top, bottom)
    )
    if held not in copies:
        first = copies[held] = max([r + len(t) for t, r in copies.items()], default=TOP)
        for i, j in np.ndindex(bottom - top, right - left):
            if held[i][j] != "":
                sheet.hold(first + i, COPIES + j, held[i][j], "text" if one.texts else "step")
    first, n = copies[held], area.rect.size
    copy = sheet[first : first + bottom - top, COPIES : COPIES + right - left]
    same: Expression = IFERROR(EXACT(area, copy) * 1, 0)
    if not one.texts:
        gap = (Numbers(area) - copy) * round(1 / NEAR)
        size = _in_short(max(abs(x) for line in held for x in line))
        same = IFERROR((gap * gap < size * size) * 1, 0)
    share = off.put(row - TOP, 0, SUM(1 - same) / n, "off", array=True)
    first_of = (n - MAX((1 - same) * (n - _places(sheet, area.rect)))) / n
    place = off.put(row - TOP, 1, IF(share == 0, 0, share * first_of), "off", array=True)
    off.put(row - TOP, 2, IF(share == 0, 0, place * place / share), "off")


def _places(sheet: Sheet, rect: Rect) -> Expression:
    """The index of each cell of a range, row by row, from 0."""
    height, width = rect.bottom - rect.top, rect.right - rect.left
    down = sheet[TOP : TOP + height, DOWN].as_range
    return down * width + sheet[TOP - 2, COPIES : COPIES + width].as_range


def _in_short(number: float) -> float:
    """A number, or 1 if larger, rounded up to two digits."""
    digits = 1 - math.floor(math.log10(max(number, 1.0)))
    return math.ceil(max(number, 1.0) * 10.0**digits) / 10.0**digits
