"""The beginning of a sheet as a small picture, in SVG: cells in the colours of their styles and
values, bars in place of texts and numbers, and charts.

It needs no program, and the same book gives the same bytes. All parts of one colour are one path.
"""

from collections.abc import Iterator
from itertools import accumulate, cycle
from typing import Any, NamedTuple

import numpy as np

from cellformer.engine.cells.access import Rect
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Book, Chart, Series, Sheet

WIDE, HIGH = 840, 560  # pixels of a sheet that the picture shows
TOP = 3  # the first row in it: above are the title, links and the ledger of each sheet
ROW, LETTER, THICK = 20, 6, 5  # pixels: a row, a letter, the bar in place of a text
NUMBER = 5  # letters
HIDDEN = ";;;"  # the format of numbers that only a colour shows
MARGIN, TITLE, POINT = 14, 30, 6  # pixels of a chart
STEPS = 12  # of a colour's shades: the eye sees no more at this size
SHADES = {  # the colours at 1 and at -1
    "scale": (theme.FULL, theme.FULL),
    "bar": ("#9CC3E6", "#9CC3E6"),
    "diverging": (theme.ABOVE, theme.BELOW),
    "ink": ("#262626", "#262626"),
    "paper": ("#262626", "#262626"),
}
LARGEST = {"scale": 1.0, "bar": 1.0, "ink": 16.0, "paper": 16.0}  # in full colour


class Box(NamedTuple):
    """A filled rectangle, in pixels."""

    colour: str
    x: int
    y: int
    width: int
    height: int


class Window(NamedTuple):
    """The part of a sheet that the picture shows: where its rows and columns begin and end, and
    the values and looks of its cells that are not blank."""

    tops: list[int]
    lefts: list[int]
    values: dict[tuple[int, int], Any]
    looks: dict[tuple[int, int], dict[str, Any]]


def svg(book: Book, name: str) -> str:
    """The picture of a sheet."""
    sheet, paths = book.sheets[name], dict[str, list[str]]()
    window = _window(book, sheet)
    for boxes in (_fills(sheet, window), _bars(window), _charts(book, sheet, window)):
        for colour, x, y, width, height in boxes:
            width, height = min(width, WIDE - x), min(height, HIGH - y)
            if width > 0 and height > 0:
                paths.setdefault(colour, []).append(f"M{x} {y}h{width}v{height}h-{width}z")
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}">'
    drawn = [f'<path fill="{colour}" d="{"".join(parts)}"/>' for colour, parts in paths.items()]
    return "\n".join([head, f'<path fill="#fff" d="M0 0h{WIDE}v{HIGH}H0z"/>', *drawn, "</svg>\n"])


def _window(book: Book, sheet: Sheet) -> Window:
    heights = (round(4 / 3 * sheet.heights.get(k, 3 / 4 * ROW)) for k in range(HIGH))
    widths = (round(theme.pixels(sheet.widths.get(k, theme.COLUMN_WIDTH))) for k in range(WIDE))
    tops, lefts = [0, *accumulate(heights)], [0, *accumulate(widths)]
    tops = [top - tops[TOP] for top in tops]
    rows, cols = (sum(x < end for x in at) for at, end in ((tops, HIGH), (lefts, WIDE)))
    looks: dict[tuple[int, int], dict[str, Any]] = {}
    runs = [(run.area, run.style) for run in sheet.runs]
    regions = [(place.rect(place.block.whole), style) for place, style in sheet.regions]
    for (top, bottom, left, right), style in [*runs, *regions]:
        here = Rect(max(top, TOP), min(bottom, rows), left, min(right, cols))
        looks |= dict.fromkeys(here.cells(), theme.STYLES[style])
    looks |= {
        (i, j): theme.STYLES[entry.style]
        for (i, j), entry in sheet.entries.items()
        if TOP <= i < rows and j < cols
    }
    found = {at: book.clean.cell(sheet.name, *at) for at in sorted(looks)}
    return Window(tops, lefts, {at: x for at, x in found.items() if x not in (None, "")}, looks)


def _fills(sheet: Sheet, window: Window) -> Iterator[Box]:
    """The cells in the colours of their styles, and of their values, which then need no bar."""
    tops, lefts, values, looks = window
    fills = {at: look["bg_color"] for at, look in looks.items() if "bg_color" in look}
    for rect, dressing in sheet.dressings:
        if dressing in SHADES:
            here = {at: x for at in rect.cells() if isinstance(x := values.get(at), float | int)}
            most = LARGEST.get(dressing) or max(map(abs, here.values()), default=1.0) or 1.0
            fills |= {at: _shade(dressing, x / most) for at, x in here.items()}
            looks |= {at: {"num_format": HIDDEN} for at in here}
    yield from (
        Box(colour, lefts[j], tops[i], lefts[j + 1] - lefts[j], tops[i + 1] - tops[i])
        for (i, j), colour in sorted(fills.items())
    )


def _shade(kind: str, share: float) -> str:
    """A colour between white and the one for 1 or -1."""
    full = SHADES[kind][int(share < 0)]
    part = round(STEPS * min(1.0, abs(share))) / STEPS if np.isfinite(share) else 0.0
    mixed = (round(255 + part * (int(full[k : k + 2], 16) - 255)) for k in (1, 3, 5))
    return "#" + "".join(f"{x:02X}" for x in mixed)


def _bars(window: Window) -> Iterator[Box]:
    """A bar in place of each text and number, as long as it has room."""
    tops, lefts, values, looks = window
    for (i, j), value in values.items():
        look = looks[i, j]
        if look.get("num_format") == HIDDEN:
            continue
        is_text = isinstance(value, str)
        free = j + 1
        while is_text and free < len(lefts) - 1 and lefts[free] < WIDE and (i, free) not in values:
            free += 1
        width = min(LETTER * (len(value) if is_text else NUMBER), lefts[free] - lefts[j] - 6)
        height = THICK + 3 * (look.get("font_size", 10) > 11)
        ends = is_text and look.get("align") != "right"
        x = lefts[j] + 3 if ends else lefts[j + 1] - 3 - width
        ink = look.get("font_color", theme.BLACK)
        colour = "#404040" if ink == theme.BLACK else ink
        yield Box(colour, x, (tops[i] + tops[i + 1] - height) // 2, width, height)


def _charts(book: Book, sheet: Sheet, window: Window) -> Iterator[Box]:
    """The charts: a frame, and each point as a square, or as a bar from the axis."""
    for chart in sheet.charts:
        x, y = window.lefts[chart.col], window.tops[chart.row]
        yield Box(theme.GRIDLINE, x, y, *chart.size)
        yield Box("#FFFFFF", x + 2, y + 2, chart.size[0] - 4, chart.size[1] - 4)
        points = [_points(book, chart, series) for series in chart.series]
        ends = np.concatenate([np.zeros((1, 2)) if chart.kind != "scatter" else points[0], *points])
        low, high = ends.min(axis=0), ends.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        room = np.array(chart.size) - (2 * MARGIN, MARGIN + TITLE)
        colours = theme.SERIES if len(points) > 1 else theme.ONE_SERIES
        for series, colour, found in zip(chart.series, cycle(colours), points):
            for right, up in (found - low) / span * room:
                at = x + MARGIN + round(right), y + chart.size[1] - MARGIN - round(up)
                yield Box(series.colour or colour, *at, POINT, POINT)


def _points(book: Book, chart: Chart, series: Series) -> np.ndarray:
    """The x and y of a series' points; x is their number where the categories are texts."""
    x, y = (np.ravel(book.clean(area)) for area in (series.categories, series.values))
    at = x if chart.kind == "scatter" else np.arange(y.size)
    return np.array([(a, b) for a, b in zip(at, y, strict=True) if _is_number(a, b)], float)


def _is_number(*values: Any) -> bool:
    return all(isinstance(x, float | int | np.number) and np.isfinite(x) for x in values)
