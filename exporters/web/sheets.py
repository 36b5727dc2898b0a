"""The sheets of a book as data for the page, which `sheet.js` unpacks.

A worksheet's book is shown whole, but for the sheets that only a file needs. Of a model's book,
whose blocks the page draws itself, there are the sheets of its own story.

Cells of a block of the graph have no data here but the block's place and its styles. The first rows
of a sheet, its title, its links and its ledger, are the page's own: a sheet begins in row `TOP`.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

from cellformer.engine.cells.access import Rect, Span
from cellformer.engine.cells.block import Block
from cellformer.engine.cells.expression import Area, Expression, rebuilt
from cellformer.engine.cells.language import translated
from cellformer.engine.studies.addition import additions
from cellformer.exporters.compose import legend, theme
from cellformer.exporters.compose.address import position, unquoted
from cellformer.exporters.compose.book import START, Book, Chart, Place, Series, Sheet
from cellformer.exporters.compose.dressing import Beyond, Dressing, Unlike, When, in_words
from cellformer.exporters.compose.story import Suggestion
from cellformer.exporters.model.model_book import ModelBook
from cellformer.exporters.web import wording
from cellformer.exporters.web.wording import said

ABOUT_FILES = 2  # last rows of Start, about locked and hidden sheets
TOP = 3  # the first row that is shown; of Start one more
ONLY_IN_A_FILE = ("Built", "Digest", "How")
# pages around a model that the page shows otherwise, or does not need
AROUND_A_MODEL = (
    *(START, "Machine", "Heads", "Map", "Glossary", "Index", "Check", "Sampling"),
    *("Source", "Text", "Tokenizer", "Tokenizer tables"),
)
# of a model without a backward pass: its page has no room
STUDIES = ("Attention", "Lens", "Attribution")
MOST_CHOICES = 300  # of a cell with a list
INKS = {  # classes by colour
    theme.BLUE: "typed",
    theme.GREEN: "elsewhere",
    theme.GREY: "grey",
    theme.ORANGE: "orange",
    "#1F3864": "head",
    "#404040": "soft",
    "#0563C1": "way",
    "#BFBFBF": "faint",
    "#2E75B6": "stream",
    "#FFFFFF": "white",
    **{colour: f"g{k}" for k, colour in enumerate(theme.GROUPS)},
    theme.BLACK: "",
}
FILLS = {
    **{colour: f"f-{name}" for name, colour in theme.FILLS.items()},
    "#E2F0D9": "f-switch",
    "#FCE4D6": "f-differs",
    "#F2F2F2": "f-stale",
    "#262626": "f-ink",
    "#FFFFFF": "f-empty",
    theme.FULL: "f-full",
    theme.BELOW: "f-below",
    theme.ABOVE: "f-above",
}
FLAGS = {  # the same by what a style has
    **{"bold": "b", "italic": "i", "text_wrap": "w", "rotation": "up"},
    **{"border": "e-border", "bottom": "e-bottom", "top": "e-top"},
}

Data = dict[str, Any]
Evaluable = Callable[[Expression], Any]  # a formula as the page evaluates it


def sheets(book: Book, formula: Evaluable) -> list[Data]:
    """The sheets that a book's page shows, in order; `formula` turns an expression into the
    page's form."""
    kept = [sheet for sheet in book.sheets.values() if _is_shown(book, sheet)]
    names = {sheet.name for sheet in kept}
    return [_Page(book, sheet, formula, names).data() for sheet in kept]


def suggestion(book: Book, suggested: Suggestion) -> Data:
    """A suggested edit: its text, the cells to type in with their values, the cell that changes,
    and its new value."""
    first = suggested.cell
    cell = ("prompt.pick", first, 0) if isinstance(first, int) else first
    edits = [(*cell, suggested.value), *((*where, value) for where, value in suggested.also)]
    told = [[*where, _plain(value)] for *where, value in edits]
    found: Data = {"text": wording.suggested(translated(suggested.text), cell[0]), "edits": told}
    if suggested.watch:
        found |= {"watch": list(suggested.watch), "becomes": _plain(suggested.becomes)}
        found |= {"decimals": suggested.decimals} if suggested.decimals else {}
    return found


def _is_shown(book: Book, sheet: Sheet) -> bool:
    if not isinstance(book, ModelBook):
        return sheet.name not in ONLY_IN_A_FILE
    if sheet.name in STUDIES:
        return not book.plan.gradient_of
    own = sheet.name in {each.sheet for each in additions() if each.on_page}
    drawn = bool(sheet.regions) and not own  # with the model's blocks
    return not drawn and sheet.name not in (*ONLY_IN_A_FILE, *AROUND_A_MODEL)


class _Page:
    """One sheet on its way into data."""

    def __init__(self, book: Book, sheet: Sheet, formula: Evaluable, kept: set[str]):
        self.book, self.sheet, self.formula, self.kept = book, sheet, formula, kept
        self.top = TOP + (sheet.name == START)
        self.styles: dict[str, int] = {}
        self.choices: dict[tuple[str, ...], int] = {}
        regions = {place.block.name: style for place, style in sheet.regions}
        places = [p for p in book.places.values() if p.sheet == sheet.name]
        self.places = [(place, regions.get(place.block.name)) for place in places]
        self.held = {cell for place, style in self.places if not style for cell in _cells(place)}
        self.left_out = set(self._left_out())

    def data(self) -> Data:
        """The sheet as data, without its empty parts."""
        sheet = self.sheet
        begin = sheet.entries.get((1, 0)) if sheet.name == START else None
        found: Data = {
            "name": sheet.name,
            "title": sheet.entries[0, 0].value if begin else "",
            "purpose": said(str(begin.value) if begin else translated(sheet.purpose)),
            "top": self.top,
            "frozen": [max(0, sheet.frozen[0] - self.top), sheet.frozen[1]],
            "widths": [[c, round(theme.pixels(w))] for c, w in sorted(sheet.widths.items())],
            "heights": self._heights(),
            "regions": list(self._regions()),
            "runs": [
                [*run.area, self._style(run.style), list(run.texts)]
                for run in sheet.runs
                if run.area.top >= self.top
            ],
            "texts": list(self._texts()),
            "formulas": list(self._formulas()),
            "links": list(self._links()),
            "merged": [list(r) for r in sheet.merged if r.top >= self.top],
            "notes": [[*at, text] for at, text in sheet.notes.items()],
            "lists": list(self._lists()),
            "rules": list(self._rules()),
            "dressings": list(self._dressings()),
            "charts": [self._chart(chart) for chart in sheet.charts],
            "legend": [
                [self._style(style), translated(text)] for style, text in legend.keys(sheet)
            ],
            "suggestions": self._suggestions(),
        }
        found["choices"] = [list(texts) for texts in self.choices]
        found["styles"] = [_look(theme.look(style)) for style in self.styles]
        return {name: part for name, part in found.items() if part or name in ("name", "top")}

    def _style(self, style: str) -> int:
        """A style's number on this sheet."""
        return self.styles.setdefault(style, len(self.styles))

    # --- cells ------------------------------------------------------------------------------

    def _regions(self) -> Iterator[list[Any]]:
        """The blocks that stand here: name, top, left, whether turned, and a style, or styles of
        runs of cells: [style, how many, ...]."""
        for place, style in self.places:
            cells = list(_cells(place)) if not style else []
            if not style and not any(cell in self.sheet.entries for cell in cells):
                continue
            entries = [self.sheet.entries.get(cell) for cell in cells]
            styles = [self._style(e.style) if e else -1 for e in entries]
            runs = [[found, len(list(group))] for found, group in groupby(styles)]
            looks: Any = self._style(style) if style else [x for run in runs for x in run]
            looks = looks[0] if not style and len(runs) == 1 else looks
            yield [place.block.name, place.top, place.left, int(place.turned), looks]

    def _entries(self) -> Iterator[tuple[Span, Any]]:
        """The sheet's own cells, row by row."""
        yield from (
            (at, self.sheet.entries[at])
            for at in sorted(self.sheet.entries)
            if at[0] >= self.top and at[0] not in self.left_out and at not in self.held
        )

    def _texts(self) -> Iterator[list[Any]]:
        """Rows of texts and numbers: [row, [column, style, value, ...]]."""
        values = [(at, entry) for at, entry in self._entries() if entry.formula is None]
        for row, group in groupby(values, key=lambda cell: cell[0][0]):
            found: list[Any] = []
            for (_, col), entry in group:
                found += [col, self._style(entry.style), _said(entry.value)]
            yield [row, found]

    def _formulas(self) -> Iterator[list[Any]]:
        """Formulas that no block has: [row, column, style, formula]."""
        yield from (
            [row, col, self._style(entry.style), self.formula(entry.formula)]
            for (row, col), entry in self._entries()
            if entry.formula is not None
        )

    def _left_out(self) -> Iterator[int]:
        """Rows about what the page lacks: sheets and protection on Start, Digest on Check."""
        largest = self.book.shown.get("check.largest")
        if largest and largest.sheet == self.sheet.name:
            yield from (row for row, _ in self.sheet.entries if row >= largest.top)
        if self.sheet.name != START:
            return
        yield from sorted(row for row, col in self.sheet.entries if col == 2)[-ABOUT_FILES:]
        yield from (
            row
            for (row, col), entry in self.sheet.entries.items()
            if col == 1 and entry.style == "link" and entry.value not in self.kept
        )

    def _heights(self) -> list[list[int]]:
        """Heights in pixels, of rows that are not as high as most."""
        points = {
            row: theme.HEIGHTS[entry.style]
            for (row, _), entry in self._entries()
            if entry.style in theme.HEIGHTS
        }
        heights = {row: round(4 / 3 * h) for row, h in {**points, **self.sheet.heights}.items()}
        return [[row, height] for row, height in sorted(heights.items()) if row >= self.top]

    # --- what cells show and do -------------------------------------------------------------

    def _links(self) -> Iterator[list[Any]]:
        """Links to cells of sheets that are shown: [row, column, sheet, row, column]; and of blocks
        that the page shows otherwise: [row, column, block, i, j, 1]."""
        for (row, col), target in self.sheet.links.items():
            sheet, _, where = target.rpartition("!")
            sheet = unquoted(sheet)
            if row < self.top or row in self.left_out or not sheet:
                continue
            there = position(where.partition(":")[0])
            if sheet in self.kept:
                yield [row, col, sheet, *there]
                continue
            yield from (
                [row, col, place.block.name, *place.own(*there), 1]
                for place in self.book.places.values()
                if place.sheet == sheet and place.holds(*there)
            )

    def _lists(self) -> Iterator[list[int]]:
        """Cells with choices: [row, column, which]."""
        yield from (
            [*at, self._choice(str(self.book.clean(cell)) for cell in area.cells)]
            for at, area in self.sheet.lists.items()
            if area.rect.size <= MOST_CHOICES
        )
        for rect, rule in self.sheet.ruled:
            if isinstance(rule.get("source"), list):
                which = self._choice(rule["source"])
                yield from ([row, col, which] for row, col in rect.cells())

    def _choice(self, texts: Iterable[str]) -> int:
        return self.choices.setdefault(tuple(texts), len(self.choices))

    def _rules(self) -> Iterator[list[Any]]:
        """Numbers that may be typed: whether whole, from, to, the message, and where."""
        found: dict[tuple[Any, ...], list[int]] = {}
        for rect, rule in self.sheet.ruled:
            rule = in_words(rule)
            if "minimum" in rule and not isinstance(rule["minimum"], str):
                whole = int(rule["validate"] == "integer")
                key = whole, rule["minimum"], rule["maximum"], rule["error_message"]
                found.setdefault(key, []).extend(rect)
        return ([*key, rects] for key, rects in found.items())

    def _dressings(self) -> Iterator[list[Any]]:
        """Colours by value, with their rectangles; conditions cell by cell, in their order."""
        found: dict[tuple[Any, ...], list[int]] = {}
        for rect, dressing in self.sheet.dressings:
            if rect.top < self.top:
                continue
            if isinstance(dressing, When):
                yield from ([*key, rects] for key, rects in found.items())
                found.clear()
                style = self._style(dressing.style)
                yield ["when", style, [*rect], self._conditions(rect, dressing)]
            elif key := _shade(dressing):
                found.setdefault(key, []).extend(rect)
        yield from ([*key, rects] for key, rects in found.items())

    def _conditions(self, rect: Rect, dressing: When) -> list[Any]:
        """The condition of each cell, moved as a copied formula is; a condition that does not move
        only once."""
        made = [
            rebuilt(dressing.condition, lambda part, at=at: self._moved(part, *at))  # type: ignore[misc]
            for at in Rect(0, rect.bottom - rect.top, 0, rect.right - rect.left).cells()
        ]
        if all(part.stays == "all" for part in dressing.condition.areas()):
            made = made[:1]
        return [self.formula(condition) for condition in made]

    def _moved(self, part: Expression, down: int, right: int) -> Expression:
        if not isinstance(part, Area) or not (down or right):
            return part
        sheet, (top, bottom, left, last) = self.book.locate(part)
        down = 0 if part.stays in ("rows", "all") else down
        right = 0 if part.stays in ("cols", "all") else right
        rect = Rect(top + down, bottom + down, left + right, last + right)
        return self.book.sheets[sheet][rect]

    def _chart(self, chart: Chart) -> Data:
        """A chart; its areas are [sheet, rectangle], or [block, rectangle, 1] for a block on a
        hidden sheet. A series whose y is the next column of its x leaves it out."""
        return {
            "at": [chart.row, chart.col],
            "kind": chart.kind,
            "title": chart.title,
            "size": list(chart.size),
            "axes": list(chart.axes),
            "joined": int(chart.joined),
            "number": chart.number,
            "shares": int(chart.shares),
            "across": chart.across,
            "reach": chart.reach,
            "series": [self._series(series) for series in chart.series],
        }

    def _series(self, series: Series) -> Data:
        x, y = self._area(series.categories), self._area(series.values)
        where, top, bottom, left, right, *rest = x
        found = {
            "name": series.name if isinstance(series.name, str) else self._area(series.name),
            "x": x,
            "y": y if y != [where, top, bottom, left + 1, right + 1, *rest] else None,
            "labels": list(series.labels),
            "colour": series.colour,
            "joined": int(series.joined),
            "bears": series.bears,
        }
        return {name: part for name, part in found.items() if part}

    def _area(self, area: Area) -> list[Any]:
        if isinstance(area.grid, Block) and area.grid.name in self.book.graph.blocks:
            return [area.grid.name, *area.rect, 1]
        sheet, rect = self.book.locate(area)
        return [sheet, *rect]

    def _suggestions(self) -> list[Data]:
        """The sheet's suggested edits; on Start, the book's."""
        rows = [
            row
            for (row, _), entry in self.sheet.entries.items()
            if entry.style == "heading" and str(entry.value).startswith("Three things to try")
        ]
        on_start = self.sheet.name == START
        made = self.book.suggestions if on_start else self.sheet.suggestions
        return [
            {**suggestion(self.book, s), "row": row}
            for row, s in enumerate(made, rows[0] + 1 if rows else 0)
        ]


def _cells(place: Place) -> Iterator[Span]:
    """The cells of the sheet that a block takes, in the block's order."""
    return (place.cell(*at) for at in place.block.whole.cells())


def _said(value: Any) -> Any:
    """The text of a cell on the page."""
    return said(value) if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    return value.item() if hasattr(value, "item") else value


def _shade(dressing: Dressing) -> tuple[Any, ...] | None:
    """A dressing as data; the page marks what is not as built itself."""
    match dressing:
        case Beyond(limit):
            return ("beyond", limit)
        case Unlike(value):
            return ("unlike", value)
        case str():
            return (dressing, 0)
    return None


def _look(style: dict[str, Any]) -> list[str]:
    """A style's classes, and its number format if it has one."""
    classes = [
        INKS[style.get("font_color", theme.BLACK)],
        FILLS[style["bg_color"]] if "bg_color" in style else "",
        {"right": "r", "center": "c", "fill": "l"}.get(style.get("align", ""), ""),
        f"s{style['font_size']}" if "font_size" in style else "",
    ]
    classes += [flag for name, flag in FLAGS.items() if style.get(name)]
    told = " ".join(name for name in classes if name)
    return [told, style["num_format"]] if "num_format" in style else [told]
