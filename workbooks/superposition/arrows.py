"""Pictures of superposition: arrows from the middle of a plane, each with its name."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.cells.expression import Area, Expression
from exporters.book import Chart, Series
from exporters.tables import Worksheet



class Arrows(NamedTuple):
    """Some arrows of one colour."""

    name: str
    ends: Area  # [arrows, 2]
    labels: Sequence[str]
    colour: str


def draw(
    ws: Worksheet,
    at: tuple[int, int],
    title: str,
    several: Sequence[Arrows],
    size: tuple[int, int],
    reach: float,
) -> None:
    """A chart of so many pixels at a row and a column, whose axes reach so far; the line that it
    follows is a table at the cursor."""
    ws.heading(f"The line of the picture {title!r}: from the middle to each end, and back")
    lines, points = [], []
    left, here = 1, ws.sheet.name.replace(" ", "_")
    for arrows in several:
        ends, top = arrows.ends, ws.cursor

        def cell(i: int, j: int, ends: Area = ends) -> Expression | int:
            return ends[i // 2, j] if i % 2 else 0

        name, n = f"{here}_to_{ends.grid.name}", 2 * ends.shape[0] + 1
        line = ws.computed(name, (n, 2), cell, cols=["number 1", "number 2"], left=left)
        ws.cursor, left = top, left + 3
        lines.append(Series("", line[:, 0], line[:, 1], joined=True))
        points.append(Series(arrows.name, ends[:, 0], ends[:, 1], arrows.labels, arrows.colour))
    ws.cursor += 2 * max(arrows.ends.shape[0] for arrows in several) + 3
    series, axes = lines + points, ("number 1", "number 2")
    ws.chart(Chart(*at, "scatter", title, series, size, axes, number="0.0", reach=reach))
