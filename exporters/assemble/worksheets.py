"""Workbooks of worksheets: tables of typed numbers and of formulas, for machines other than
transformers.

A `Workbook` has sheets; a `Worksheet` takes headings, texts and tables from top to bottom. A table
is a block of the workbook's graph, and `typed` and `computed` return its area, so that a formula is
written over the tables before it and gives both its text and its value:

    exps = ws.computed("exps", (4, 4), lambda i, j: EXP(scores[i, j] - MAX(scores[i, : i + 1])))

A table's name is the name of its range in the workbook, and what an edit refers to.
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from cellformer.engine.cells.arguments import explained_class
from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.expression import Area, Expression
from cellformer.engine.cells.functions import AND, IF, MAX, MIN
from cellformer.engine.cells.graph import Graph
from cellformer.engine.cells.language import AsIs, worded
from cellformer.engine.cells.rounding import NEAR
from cellformer.exporters.assemble import start
from cellformer.exporters.compose import digest, legend, results, unharmed
from cellformer.exporters.compose.address import quoted
from cellformer.exporters.compose.book import START, Book, Reading, Sheet
from cellformer.exporters.compose.composer import Composer
from cellformer.exporters.compose.dressing import Beyond, Unlike
from cellformer.exporters.compose.story import Other, PrintedNumber, Story, Suggestion
from cellformer.exporters.pages import ledger

OK = "ok"  # in every language
LINK_ROOM = 20  # characters: where the ledger stands depends on no sheet's name
FEW_DECIMALS = 3  # that a printed number is shown with; one that has more is shown with five


class Comparison(NamedTuple):
    """A number that the source prints, the cell that recomputes it, and why they differ."""

    what: str
    printed: float
    cell: Expression
    note: str = ""
    decimals: int = 2  # that the source prints
    section: str = ""  # where it does, unless where the others of the sheet are
    other: Other = ""  # why its figure need not be equal to ours


def near(cells: Expression, value: Any = 1) -> Expression:
    """Whether every cell of a range equals a number to within 1e-9, for `Workbook.checks`."""
    return AND(MAX(cells) - value < NEAR, value - MIN(cells) < NEAR)


GAP = 2  # characters of a column between tables


@explained_class
class Workbook:
    """A workbook under construction, table by table; its graph may have blocks already.

    With `iterates`, it has cells that keep their values, see `Book`.

    >>> w = cf.Workbook("double")
    >>> ws = w.sheet("Double", "a number, and its double")
    >>> x = ws.typed("x", [[21.0]])
    >>> twice = ws.computed("twice", (1, 1), lambda i, j: 2 * x[i, j])
    >>> w.now(twice[0, 0])
    42.0
    """

    def __init__(self, title: str, graph: Graph | None = None, iterates: bool = False):
        self.book = Book(title, graph or Graph(), iterates=iterates)
        self.book.graph.iterates = iterates
        self.book.sheet(START)
        self.rests: Expression | None = None  # if it iterates: whether no cell changes by itself
        self._edited: dict[Any, Reading] = {}  # by what is typed, and how many blocks there are

    def __getitem__(self, name: str) -> Area:
        """The table of that name."""
        return self.book.graph[name].area

    @property
    def now(self) -> Reading:
        """The values as built: `w.now(probs[0, 2])`."""
        return self.book.clean

    def edited(self, edits: Mapping[Area, float | str]) -> Reading:
        """The values after edits: `w.edited({scores[2, 1]: 4.0})(probs[0, 2])`. They are cached,
        since a story asks for the same ones repeatedly."""
        typed = tuple((*_spot(cell), value) for cell, value in edits.items())
        key = typed, len(self.book.graph.blocks)
        if key not in self._edited:
            self._edited[key] = self.book.edited(edits)
        return self._edited[key]

    def suggestion(
        self, text: str, edits: Mapping[Area, float | str], watch: Area, **others: Area
    ) -> Suggestion:
        """An edit for the reader to make, with what the cell `watch` then shows.

        In the text `{now}` is what that cell shows as built, `{then}` what it shows after the
        edit; of a cell `x` among the others, `{x.now}` and `{x.then}`. The reader is led to the
        first cell of `edits`.
        """
        if not edits:
            raise InputError("a suggestion needs an edit; give a cell and the text to type there")
        now, then = self.now, self.edited(edits)
        more = {k: SimpleNamespace(now=now(x), then=then(x)) for k, x in others.items()}
        said = worded(text, now=now(watch), then=then(watch), **more)
        first, *also = ((_spot(cell), value) for cell, value in edits.items())
        return Suggestion(said, *first, _spot(watch), then(watch), tuple(also))

    def sheet(
        self,
        name: str,
        purpose: str,
        *lines: str,
        style: str = "text",
        widths: Mapping[int, float] | None = None,
    ) -> Composer:
        """A new sheet at the end; its purpose is one line. `lines` of text stand below; `widths`
        are of columns, in characters."""
        ws = worksheet(self.book, name, purpose)
        ws.about(purpose, *lines, style=style, widths=widths or {})
        return ws

    def compare(self, rows: Sequence[Comparison], section: str) -> None:
        """Add the sheet Printed: the source's numbers, the recomputed ones, and the difference.

        `section` is the document and the section in which the numbers stand.
        """
        ws = self.sheet(
            "Printed", "printed and recomputed numbers of the source, and reasons for differences"
        )
        compare(ws, rows, section)

    def checks(self, rows: Sequence[tuple[str, Expression]]) -> None:
        """Add the sheet Check: claims that hold as built, each with a formula that verifies it."""
        ws = self.sheet("Check", "rules that hold for every input")
        ws.widths({0: 3, 1: 90, 2: 10})
        ws.sheet.down(ws.cursor, 1, (claim for claim, _ in rows), "text")
        verdicts = [IF(holds, OK, worded("no")) for _, holds in rows]
        ws.show(
            "holds",
            (ws.cursor, 2),
            lambda i, j: verdicts[i],
            "status",
            (len(rows), 1),
            dress=Unlike(OK),
        )
        ws.cursor += len(rows) + 2

    def done(self, story: Story) -> Book:
        """The finished book, with its start sheet, links between sheets, the ledger on each, and
        the verdict. A book that iterates has no ledger, which would become part of the circular
        reference that it watches."""
        told = not self.book.iterates
        if told:
            self.sheet(ledger.SHEET, ledger.PURPOSE).sheet.hidden = True
            ledger.fill(self.book)
        self.sheet(digest.SHEET, digest.PURPOSE).sheet.hidden = True
        for sheet in self.book.sheets.values():
            narrow(sheet)
        for sheet, following in start.ways(self.book):
            way = worded("next: {sheet} →", sheet=following)
            sheet.link(1, 2, way, f"{quoted(following)}!A1")
            if told:
                ledger.show(self.book, sheet, 1, legend.past(sheet, 2, max(len(way), LINK_ROOM)))
            legend.add(sheet)
            results.lead_to(sheet)
        start.add(self.book, story)
        if told:
            ledger.show(self.book, self.book.sheet(START), 2, 0)
        unharmed.make(self.book)
        digest.show(self.book)
        digest.fill(self.book, ledger.watch(self.book) if told else None, self.rests)
        return self.book


def narrow(sheet: Sheet) -> None:
    """Make columns between tables narrow, where nothing stands in them."""
    rects = [place.rect(place.block.whole) for place, _ in sheet.regions]
    rects += [run.area for run in sheet.runs]
    used = {col for _, col in sheet.entries} | {c for r in rects for c in range(r.left, r.right)}
    empty = {col: GAP for col in range(max(used, default=0)) if col not in used}
    sheet.widths = {**empty, **sheet.widths}


def worksheet(book: Book, name: str, purpose: str) -> Composer:
    """A new sheet with its title, a link to Start, and its purpose."""
    ws = Composer(book, name, cursor=4)
    ws.sheet.purpose = purpose
    ws.sheet.put(0, 0, AsIs(f"{book.title} · {name}"), "title")
    ws.sheet.link(1, 0, "← Start", "Start!A1")
    ws.sheet.put(2, 0, purpose, "note")
    ws.sheet.frozen = (3, 0)
    ws.widths({0: 16})
    return ws


def compare(ws: Composer, rows: Sequence[Comparison], section: str = "") -> None:
    """Add a source's printed numbers, the cells' values, the difference, and why they differ."""
    ws.widths({0: 1, 1: 56, 2: 11, 3: 12, 4: 11, 5: 1, 6: 71})
    ws.sheet.heads = ws.cursor
    for col, head in enumerate(("", "what", "printed", "recomputed", "difference", "", "note")):
        ws.sheet.put(ws.cursor, col, head, "head" if 2 <= col <= 4 else "block")
    top, shape = ws.cursor + 1, (len(rows), 1)
    recomputed = ws.table("recomputed", (top, 3), shape)
    difference = ws.table("difference", (top, 4), shape)
    for k, (what, printed, cell, note, decimals, elsewhere, other) in enumerate(rows):
        fine = " fine" if decimals > FEW_DECIMALS else ""
        ws.sheet.put(top + k, 1, what)
        ws.sheet.put(top + k, 2, printed, f"printed{fine}")
        found = recomputed.put(k, 0, cell, f"live{fine}")
        ws.book.held.append(
            PrintedNumber(elsewhere or section, what, printed, found, decimals, note, other)
        )
        change = difference.put(k, 0, found - ws.sheet[top + k, 2], f"change{fine}")
        ws.sheet.put(top + k, 6, note, "note")
        ws.dress(change, Beyond(0.5 * 10.0**-decimals * (1 + 1e-6)))
    ws.cursor += len(rows) + 2


def _spot(cell: Area) -> tuple[str, int, int]:
    """A cell by its table's name, row and column."""
    return cell.grid.name, cell.rect.top, cell.rect.left
