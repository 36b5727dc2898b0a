"""The charts of a book, drawn with XlsxWriter."""

from itertools import cycle
from typing import Any

from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from cellformer.exporters.compose import theme
from cellformer.exporters.compose.book import Book, Chart, Series, Sheet

SMALL = {"size": 9}  # a font
WINDOW = 1178  # pixels of columns in Excel that 1366 pixels of a window show in LibreOffice
LEAST = 0.8  # of its width that a chart keeps


class _Label(str):
    """A text beside a point. XlsxWriter parses `str(label)`: one like wow!A1 must not count as a
    reference."""

    def __str__(self) -> str:
        return ""


def add_chart(book: Book, workbook: Workbook, sheet: Sheet, ws: Worksheet, chart: Chart) -> None:
    """Add a chart to a sheet."""
    joined = {"subtype": "straight_with_markers"} if chart.joined else {}
    drawn = workbook.add_chart({"type": chart.kind} | joined)
    n = len(chart.series)
    colours = theme.SERIES[:n] if n > 1 else theme.ONE_SERIES
    for series, colour in zip(chart.series, cycle(colours)):
        drawn.add_series(_series(book, chart, series, series.colour or colour))
    drawn.set_title({"name": chart.title, "name_font": {"size": 11}})
    lines = {"visible": True, "line": {"color": theme.GRIDLINE}}
    numbers: dict[str, Any] = {"num_format": chart.number, "major_gridlines": lines}
    if chart.shares:
        numbers |= {"min": 0, "max": 1}
    if chart.reach:
        numbers |= {"min": -chart.reach, "max": chart.reach}
    x = {"name": chart.axes[0], "label_position": "low", "num_font": SMALL}
    if chart.kind == "bar":
        drawn.set_x_axis(numbers | {"name": chart.axes[0]})
        drawn.set_y_axis({"reverse": True, "label_position": "low", "num_font": SMALL})
    else:
        drawn.set_x_axis(
            x | (numbers | {"num_format": chart.across} if chart.kind == "scatter" else {})
        )
        drawn.set_y_axis(numbers | {"name": chart.axes[1], "label_position": "low"})
    names = [series.name for series in chart.series]
    unnamed = [k for k, name in enumerate(names) if isinstance(name, str) and not name]
    told = len(names) - len(unnamed) > 1 and not any(s.bears for s in chart.series)
    drawn.set_legend({"position": "bottom", "delete_series": unnamed} if told else {"none": True})
    drawn.set_size({"width": _width(sheet, chart), "height": chart.size[1]})
    ws.insert_chart(chart.row, chart.col, drawn)


def _width(sheet: Sheet, chart: Chart) -> float:
    """A chart's width in pixels, less the part that a window would cut off, if that is little."""
    widths = (sheet.widths.get(col, theme.COLUMN_WIDTH) for col in range(chart.col))
    room = WINDOW - sum(map(theme.pixels, widths))
    return room if LEAST * chart.size[0] < room < chart.size[0] else chart.size[0]


def _series(book: Book, chart: Chart, series: Series, colour: str) -> dict[str, Any]:
    """One series, in XlsxWriter's form."""
    name = series.name if isinstance(series.name, str) else f"={book.address(series.name.fixed)}"
    found: dict[str, Any] = {
        "name": name,
        "categories": "=" + book.address(series.categories.fixed),
        "values": "=" + book.address(series.values.fixed),
    }
    if chart.kind in ("column", "bar"):
        found |= {"fill": {"color": colour}, "gap": 60}
    else:
        mark = {"type": "circle", "size": 6, "fill": {"color": colour}, "border": {"none": True}}
        found |= {"marker": mark, "line": {"color": colour, "width": 1.5}}
        if chart.kind == "scatter" and not (chart.joined or series.joined):
            found["line"] = {"none": True}
        if series.joined:
            found |= {"marker": {"type": "none"}, "line": {"color": theme.GRIDLINE, "width": 1.5}}
    if series.bears:
        found["data_labels"] = {
            "series_name": True,
            "value": False,
            "position": series.bears,
            "font": SMALL,
        }
    if series.labels:
        texts = [{"value": _Label(text)} for text in series.labels]
        found["data_labels"] = {
            "value": True,
            "custom": texts,
            "position": "above",
            "font": SMALL,
        }
    return found
