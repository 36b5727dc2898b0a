"""Print settings of sheets: on A4, as wide as the cells, with breaks between tables.

Excel ignores row breaks on sheets that are fitted to a page's width, so the scale is computed here
from the widths of columns and texts. A page is portrait where its cells then stay legible, else
landscape; sheets wider than that go on to the right. Some sheets print their first page alone, and
tables of many numbers do not print. Sheets that only programs read are hidden, and hidden sheets do
not print.
"""

from collections.abc import Iterator
from math import ceil

from xlsxwriter.worksheet import Worksheet

from cellformer.engine.cells.access import Rect
from cellformer.engine.cells.language import translated
from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Reading, Sheet

A4 = 9  # its number in a file
SHORT, LONG = 8.27, 11.69  # inches of a page
SIDE, TOP, BOTTOM = 0.4, 0.5, 0.6  # margins, in inches
PIXELS = 96  # an inch
WIDER = 1.12  # columns in LibreOffice, at most, than in Excel
LETTER = 6.0  # pixels of a text's character, on average
ROW = 20.0  # pixels of a row
LEGIBLE, SMALLEST = 0.7, 0.4  # scales: of a portrait page, and of any
FULL = 0.55  # of a page that ends between two tables
MOST_BREAKS = 1000  # Excel takes 1,026


def set_up(ws: Worksheet, sheet: Sheet, shown: Reading, title: str) -> None:
    """Set a sheet's paper, area, scale, breaks, and the line at the foot of each page."""
    used = _used(sheet)
    area = sheet.print_area or used
    width = max(_edge(sheet, area.right), *_texts(sheet, shown, area)) * WIDER
    portrait = LEGIBLE * width <= _room(SHORT)
    across = _room(SHORT if portrait else LONG)
    scale = min(1.0, across / width)
    if scale < SMALLEST and sheet.prints == "first page":
        scale, width = SMALLEST, across / SMALLEST
    elif scale < SMALLEST:  # as many pages across as it takes
        scale = min(1.0, ceil(SMALLEST / scale) * scale)
    room = ((LONG if portrait else SHORT) - TOP - BOTTOM) * PIXELS / scale * 0.97
    if sheet.heads is not None:
        ws.repeat_rows(sheet.heads)
        room -= _height(sheet, sheet.heads)
    breaks = list(_breaks(sheet, area, room))[:MOST_BREAKS]
    part = area._replace(right=_column(sheet, width / WIDER))
    if sheet.prints == "first page" and breaks:
        part = part._replace(bottom=breaks[0])
    elif sheet.prints == "nothing":  # one blank cell: programs leave blank pages out
        part = Rect(used.bottom + 1, used.bottom + 2, 0, 1)
    (ws.set_portrait if portrait else ws.set_landscape)()
    ws.set_paper(A4)
    ws.set_margins(SIDE, SIDE, TOP, BOTTOM)
    ws.set_print_scale(int(100 * scale))
    ws.print_area(part.top, part.left, part.bottom - 1, part.right - 1)
    ws.set_h_pagebreaks(breaks)
    is_whole = part.right >= used.right and (part.top, part.bottom) == (used.top, used.bottom)
    rest = "" if is_whole else f" · {translated('a part; to print all, clear the print area')}"
    ws.set_footer(f"&L{title.replace('&', '&&')[:90]} · &A{rest}&R&P / &N", {"margin": 0.3})


def _room(paper: float) -> float:
    """The pixels of a page's width at full size."""
    return (paper - 2 * SIDE) * PIXELS


def _used(sheet: Sheet) -> Rect:
    """The cells of a sheet that hold something, or lie under a chart."""
    areas = [*_blocks(sheet), *_charts(sheet)]
    areas += [Rect(row, row + 1, col, col + 1) for row, col in sheet.entries]
    return Rect(0, max(a.bottom for a in areas), 0, max(a.right for a in areas))


def _blocks(sheet: Sheet) -> Iterator[Rect]:
    """The blocks of a sheet, and their labels."""
    yield from (place.rect(place.block.whole) for place, _ in sheet.regions)
    yield from (run.area for run in sheet.runs)


def _charts(sheet: Sheet) -> Iterator[Rect]:
    """The cells under each chart of a sheet."""
    for chart in sheet.charts:
        right = _column(sheet, _edge(sheet, chart.col) + chart.size[0])
        yield Rect(chart.row, _row(sheet, chart.row, chart.size[1]), chart.col, right)


def _texts(sheet: Sheet, shown: Reading, area: Rect) -> Iterator[float]:
    """The end of the last text of each row, in pixels; texts run on over empty cells."""
    last = dict(sorted(sheet.entries))  # of each row its last column
    merged = {(rect.top, rect.left) for rect in sheet.merged}
    for (row, col), entry in sheet.entries.items():
        style = theme.STYLES[entry.style]
        inside = area.top <= row < area.bottom and area.left <= col < area.right
        wraps = {"text_wrap", "align", "rotation", "num_format"} & style.keys()
        if inside and col == last[row] and not wraps and (row, col) not in merged:
            text = entry.value if entry.formula is None else shown.cell(sheet.name, row, col)
            if isinstance(text, str):
                letter = LETTER * style.get("font_size", 11) / 11
                yield _edge(sheet, col) + letter * len(text)
    yield 0.0


def _breaks(sheet: Sheet, area: Rect, room: float) -> Iterator[int]:
    """The rows that begin a page: below a blank one where the page is mostly full there, else above
    a chart that it would cut."""
    held, charts = {row for row, _ in sheet.entries}, list(_charts(sheet))
    held |= {row for rect in _blocks(sheet) for row in range(rect.top, rect.bottom)}
    begun, used, best = area.top, 0.0, area.top
    for row in range(area.top, area.bottom):
        height = _height(sheet, row)
        if used + height > room:
            above = [chart.top for chart in charts if begun < chart.top < row < chart.bottom]
            begun = best if best > begun else min(above, default=row)
            yield begun
            used, best = sum(_height(sheet, k) for k in range(begun, row)), begun
        used += height
        through = any(rect.top <= row < rect.bottom - 1 for rect in charts)
        if row not in held and not through and used >= FULL * room:
            best = row + 1


def _edge(sheet: Sheet, col: int) -> float:
    """The left edge of a column, in pixels."""
    own = sum(theme.pixels(w) for k, w in sheet.widths.items() if k < col)
    others = col - sum(k < col for k in sheet.widths)
    return own + others * theme.pixels(theme.COLUMN_WIDTH)


def _column(sheet: Sheet, pixels: float) -> int:
    """The first column that begins at or beyond this many pixels."""
    col = 0
    while _edge(sheet, col) < pixels - 1:
        col += 1
    return col


def _row(sheet: Sheet, row: int, pixels: float) -> int:
    """The first row that begins this many pixels or more below another."""
    while pixels > 0:
        pixels -= _height(sheet, row)
        row += 1
    return row


def _height(sheet: Sheet, row: int) -> float:
    return sheet.heights.get(row, 0) * 4 / 3 or ROW
