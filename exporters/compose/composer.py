"""Composer: the one way to put tables on a sheet, for worksheets and for a model's pages.

It goes down the sheet with a cursor; tables stand below or `beside` each other. Typed values and
what is computed from them are tables, blocks of the book's graph. What only people read (labels,
sums, verdicts) are tables of the sheet (`table`, `show`), computed on demand. So every formula has
a name: its table's, with row and column.

    exps = ws.computed("exps", (4, 4), lambda i, j: EXP(scores[i, j] - MAX(scores[i, : i + 1])))
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, expression
from cellformer.engine.cells.functions import harmless, may_fail
from cellformer.engine.cells.graph import Cells
from cellformer.engine.cells.language import worded
from cellformer.exporters.compose.book import Book, Chart, Entry, Place, Sheet, TableFormula
from cellformer.exporters.compose.dressing import Dressing, When
from cellformer.exporters.compose.story import Suggestion

MANY = 10_000  # from here on, thousands are separated
FILLS = ("weight", "activation", "attention", "readout", "input")
Formula = Callable[[int, int], Any]  # an expression, or a constant, by row and column
Texts = Sequence[str | int | Expression]  # labels; one that is an expression follows other cells


class Around(TypedDict, total=False):
    """The parts around a table of a sheet: a label left of its first cell, a head above it, a rule
    for what may be typed in its cells, and the colours of them."""

    label: str
    head: str
    rule: dict[str, Any]
    dress: Dressing | None


class Table:
    """A named rectangle of a sheet whose formulas are put one by one; cells may stay blank, or hold
    texts."""

    def __init__(self, book: Book, name: str, sheet: Sheet, at: Span, shape: Span = (1, 1)):
        if name in book.graph.blocks or name in book.shown:
            raise ValueError(f"there is already a block {name}")
        self.sheet = sheet
        block = Block(name, shape, ("", ""), "table", expression=self._formula)
        self.place = book.shown[name] = Place(block, sheet.name, *at, turned=False, named=False)
        self.area = block.area

    def put(self, i: int, j: int, formula: Any, style: str, array: bool = False) -> Area:
        """Put a formula, an expression; returns its cell, for other formulas to read."""
        cell = self.area[i, j]
        self.sheet.entries[self.place.cell(i, j)] = Entry(None, style, expression(formula), array)
        return cell

    def _formula(self, i: int, j: int) -> Expression:
        entry = self.sheet.entries.get(self.place.cell(i, j))
        return expression("") if entry is None or entry.formula is None else entry.formula


class Composer:
    """One sheet while it is being filled; `cursor` is the next free row."""

    def __init__(self, book: Book, name: str, cursor: int = 0):
        self.book, self.sheet, self.cursor = book, book.sheet(name), cursor
        self._formulas: dict[str, Callable[[int, int], Expression]] = {}  # by table
        self._bottom = cursor  # of the table before

    def __getitem__(self, name: str) -> Area:
        """A table of the book by its name, on whichever sheet."""
        return self.book.graph[name].area

    def about(
        self, purpose: str, *lines: str, style: str = "text", widths: Mapping[int, float]
    ) -> None:
        """Set the purpose of the sheet in a line, its first lines of text, and its columns'
        widths."""
        self.sheet.purpose = purpose
        self.widths(widths)
        self.text(*lines, style=style)

    def widths(self, widths: Mapping[int, float]) -> None:
        """Column widths, in characters."""
        self.sheet.widths = {**self.sheet.widths, **widths}

    def heading(self, heading: str, *lines: str, style: str = "text") -> None:
        """A heading, with a blank row above it, and lines of text below."""
        self.cursor += 1
        self.text(heading, style="heading")
        self.text(*lines, style=style)

    def heads(self, *texts: str, style: str = "block") -> None:
        """Column heads for the following rows."""
        self.heads_at((self.cursor, 0), *texts, style=style)
        self.cursor += 1

    def heads_at(self, at: Span, *texts: str, style: str = "block") -> None:
        """The heads of a table's columns."""
        for col, text in enumerate(texts, at[1]):
            self.sheet.put(at[0], col, text, style)

    def text(self, *lines: str, style: str = "text") -> None:
        """Lines of text. Equations have the style "equation", remarks "note"."""
        for line in lines:
            self.sheet.put(self.cursor, 0, line, style)
            self.cursor += 1

    def typed(
        self,
        name: str,
        values: Any,
        rows: Texts = (),
        cols: Texts = (),
        title: str = "",
        style: str = "input",
        beside: Area | None = None,
        left: int = 1,
        top: int | None = None,
        tight: bool = False,
        rule: dict[str, Any] | None = None,
    ) -> Area:
        """A table of numbers or texts to be typed over, at the cursor or right of another one.

        `values` [rows, columns]; `rows` and `cols` are its labels; `style` is one of theme's, or a
        fill: "weight", "activation", "attention", "readout", "input". `top` is another row than the
        cursor's; a `tight` table stands directly below the table before.
        """
        block = self.book.graph.input(name, values, kind="setting")
        held = self.book.graph.inputs[name]
        whole = all(isinstance(x, str) or float(x).is_integer() for x in np.ravel(held))
        area = self._place(name, block.shape, rows, cols, title, beside, left, top, tight)
        for i, j in np.ndindex(*block.shape):
            value: Any = held[i, j]
            value = value if isinstance(value, str) else float(value)
            self.sheet.hold(area.top + i, area.left + j, value, _of_typed(style, value, whole))
        return self._with(block.area, rule)

    def computed(
        self,
        name: str,
        shape: Span,
        formula: Formula | Expression,
        rows: Texts = (),
        cols: Texts = (),
        title: str = "",
        style: str = "activation",
        beside: Area | None = None,
        left: int = 1,
        top: int | None = None,
        tight: bool = False,
        dress: Dressing | None = None,
    ) -> Area:
        """A table of formulas: `formula(i, j)` is the expression of a cell. Other arguments as in
        `typed` and `dress`."""
        area = self.promised(name, shape, rows, cols, title, beside, left, top, tight)
        self.fill(area, formula, style)
        return self._with(area, dress=dress)

    def promised(
        self,
        name: str,
        shape: Span,
        rows: Texts = (),
        cols: Texts = (),
        title: str = "",
        beside: Area | None = None,
        left: int = 1,
        top: int | None = None,
        tight: bool = False,
    ) -> Area:
        """The place of a table whose formulas `fill` adds later, after the tables that they read.

        So a table may read what is computed from it, such as a state that reads the state one step
        before.
        """
        block = self.book.graph.table(name, shape, lambda i, j: self._formulas[name](i, j))
        self._place(name, shape, rows, cols, title, beside, left, top, tight)
        return block.area

    def fill(self, table: Area, formula: Formula | Expression, style: str = "activation") -> None:
        """Add the formulas of a promised table."""

        def cell(i: int, j: int) -> Expression:
            made = expression(formula(i, j) if callable(formula) else formula)
            return harmless(made) if may_fail(made) and not self.book.iterates else made

        self._formulas[table.grid.name] = cell
        place, block = self.book.places[table.grid.name], self.book.graph[table.grid.name]
        for i, j in np.ndindex(*table.shape):
            here = TableFormula(block, i, j)
            self.sheet.entries[place.cell(i, j)] = Entry(None, self.coloured(style, here), here)

    def table(self, name: str, at: Span, shape: Span = (1, 1)) -> Table:
        """A table of the sheet itself, whose formulas are put one by one: `machine.strip`."""
        return Table(self.book, f"{self._prefix}.{name}", self.sheet, at, shape)

    def show(
        self,
        name: str,
        at: Span,
        formula: Formula | Expression,
        style: str,
        shape: Span = (1, 1),
        array: bool = False,
        **around: Unpack[Around],
    ) -> Area:
        """A table of the sheet itself, as a whole: `formula(i, j)`, or the expression of its only
        cell."""
        self._label(at, **around)
        table = self.table(name, at, shape)
        for i, j in np.ndindex(*shape):
            table.put(i, j, formula(i, j) if callable(formula) else formula, style, array)
        return self._with(table.area, **around)

    @property
    def _prefix(self) -> str:
        """The prefix of the names of the sheet's own tables."""
        return slug(self.sheet.name)

    def columns(self, n: int, top: int, left: int = 0) -> "Columns":
        """Tables of one column and n rows side by side, with their heads in row `top`."""
        return Columns(self, n, top, left)

    def lay(
        self,
        block: Block,
        at: Span,
        style: str,
        turned: bool = False,
        named: bool = True,
        **around: Unpack[Around],
    ) -> Area:
        """Put a block of the graph: what is typed in its cells, or their formulas."""
        self._label(at, **around)
        self.book.lay(Place(block, self.sheet.name, *at, turned, named), style)
        return self._with(block.area, **around)

    def typed_at(
        self, name: str, at: Span, values: Any, style: str, **around: Unpack[Around]
    ) -> Area:
        """A table of numbers and texts [rows, columns] to be typed over, beside a model."""
        return self.lay(
            self.book.graph.input(name, np.array(values, dtype=object), ("", ""), "table"),
            at,
            style,
            **around,
        )

    def computed_at(
        self,
        name: str,
        at: Span,
        shape: Span,
        formula: Cells,
        style: str,
        **around: Unpack[Around],
    ) -> Area:
        """A table of formulas beside a model, over blocks: so an edit reaches it."""
        return self.lay(self.book.graph.table(name, shape, formula), at, style, **around)

    def suggest(self, *suggestions: Suggestion, at: tuple[int, int, int] = (0, 2, 4)) -> None:
        """Suggested edits on this sheet, each with links to its cell and to a cell that it
        changes, and with its text, in the columns `at`."""
        told = [suggestion.told(self.book.graph) for suggestion in suggestions]
        self.sheet.suggestions = told
        self.heading("Three things to try here")
        for suggestion in told:
            ways = (("type in {cell}", suggestion.cell), ("see {cell}", suggestion.watch))
            for col, (verb, way) in zip(at, ways, strict=False):
                assert isinstance(way, tuple)
                name, i, j = way
                cell = self.book.graph[name][i, j]
                where = self.book.address(cell, self.sheet.name).replace("'", "")
                self.sheet.link(self.cursor, col, worded(verb, cell=where), self.book.address(cell))
            self.sheet.put(self.cursor, at[-1], suggestion.text)
            self.cursor += 1

    def _place(
        self,
        name: str,
        shape: Span,
        rows: Texts,
        cols: Texts,
        title: str,
        beside: Area | None,
        left: int,
        top: int | None,
        tight: bool,
    ) -> Rect:
        """The rectangle of a table's cells, with room for its labels."""
        start = self._bottom if tight else self.cursor if top is None else top
        top = start + bool(title) + bool(cols)
        if beside is not None:
            _, other = self.book.locate(self.book.graph[beside.grid.name].area)
            top, left = other.top, other.right + 2
        height, width = shape
        area = Rect(top, top + height, left, left + width)
        if any(cell in self.sheet.entries for cell in area.cells()):
            raise ValueError(f"{name} would cover other cells in row {top + 1}")
        if re.fullmatch(r"[A-Za-z]{1,3}\d+|[rRcC]", name):
            raise ValueError(f"{name} looks like the address of a cell")
        self.book.places[name] = Place(
            self.book.graph[name], self.sheet.name, top, left, turned=False
        )
        if title:
            self.sheet.put(top - 1 - bool(cols), left, title, "block")
        self._labels(f"{name}.columns", (top - 1, left), cols, "label", across=True)
        self._labels(f"{name}.rows", (top, left - 1), rows, "row label", across=False)
        self._bottom = area.bottom
        self.cursor = max(self.cursor, area.bottom + 1)
        return area

    def _labels(self, name: str, at: Span, labels: Texts, style: str, across: bool) -> None:
        """Labels in a row or a column; labels that are formulas are a table."""
        formulas = [label for label in labels if isinstance(label, Expression)]
        shape = (1, len(labels)) if across else (len(labels), 1)
        table = Table(self.book, f"labels.{name}", self.sheet, at, shape) if formulas else None
        for k, label in enumerate(labels):
            i, j = (0, k) if across else (k, 0)
            if isinstance(label, Expression):
                assert table is not None
                table.put(i, j, label, self.coloured(style, label))
            else:
                self.sheet.put(at[0] + i, at[1] + j, label, style)

    def rect(self, area: Area) -> Rect:
        """The rectangle of an area of a table on this sheet."""
        return self.book.locate(area)[1]

    def coloured(self, style: str, formula: Expression) -> str:
        """A fill in the font colour for a formula: green if it reads another sheet, else black."""
        sheets = {self.book.locate(area)[0] for area in formula.areas()}
        return _style(style, "green" if sheets - {self.sheet.name} else "black")

    def dress(self, area: Area, *dressings: Dressing) -> None:
        """Colour cells by their values: "scale", "diverging", "bar", or see `dressing`."""
        sheet, rect = self.book.locate(area)
        self.book.sheets[sheet].dressings += [(rect, dressing) for dressing in dressings]

    def _label(self, at: Span, label: str = "", head: str = "", **_: Any) -> None:
        """Add what stands beside a table at a cell."""
        if label:
            self.sheet.put(at[0], at[1] - 1, label, "row label")
        if head:
            self.sheet.put(at[0] - 1, at[1], head, "label")

    def _with(
        self,
        area: Area,
        rule: dict[str, Any] | None = None,
        dress: Dressing | None = None,
        **_: Any,
    ) -> Area:
        """The area of a table, after adding what comes with its cells."""
        if rule:
            self.sheet.rules |= dict.fromkeys(self.rect(area).cells(), rule)
        if dress:
            self.dress(area, dress)
        return area

    def mark(self, area: Area, style: str, holds: Expression) -> None:
        """Format the cells for which a formula is true; it is written for the first of them."""
        self.dress(area, When(style, holds))

    def chart(self, chart: Chart) -> None:
        """Add a chart at its own row and column."""
        self.sheet.charts.append(chart)


class Columns:
    """Tables of one column side by side: each column is a step, with a formula for each row."""

    def __init__(self, ws: Composer, n: int, top: int, left: int):
        self.ws, self.n, self.top, self.left = ws, n, top, left

    def typed(self, name: str, head: str, values: Iterable[Any], style: str = "input") -> Area:
        """The next column, of numbers or texts to be typed over."""
        return self.ws.typed(
            name,
            [[value] for value in values],
            cols=[head],
            style=style,
            left=self._next(),
            top=self.top,
        )

    def computed(
        self, name: str, head: str, formula: Callable[[int], Any], style: str = "activation"
    ) -> Area:
        """The next column, of formulas: `formula(i)` is the expression of row i."""

        return self.ws.computed(
            name,
            (self.n, 1),
            lambda i, _: formula(i),
            cols=[head],
            style=style,
            left=self._next(),
            top=self.top,
        )

    def _next(self) -> int:
        """The column of the next table."""
        self.left += 1
        return self.left - 1


def slug(sheet: str) -> str:
    """A sheet's name as a prefix of table names."""
    return re.sub(r"\W+", "_", sheet.lower())


def _of_typed(style: str, value: Any, whole: bool) -> str:
    """The style of a typed cell: in a table of `whole` numbers without decimals, large ones with
    separators. Other numbers may be typed over them, and are shown as they are."""
    if not whole or isinstance(value, str) or style not in (*FILLS, "input setting"):
        return _style(style, "blue")
    kind = style.removesuffix(" setting")
    return f"{kind} setting many" if abs(value) >= MANY else f"{kind} setting"


def _style(style: str, font: str) -> str:
    """A fill with the font for a kind of cell; other styles unchanged."""
    return f"{style} {font}" if style in FILLS else style
