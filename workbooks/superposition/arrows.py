"""Pictures of superposition: arrows from the middle of a plane, each with its name."""

from collections.abc import Sequence
from typing import NamedTuple

from engine.cells.expression import Area
from exporters.book import Chart, Series
from exporters.tables import Worksheet

SIZE = (440, 380)  # pixels


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
    size: tuple[int, int] = SIZE,
) -> None:
    """A chart at a row and a column; the line that it follows is a table at the cursor."""
    ws.heading("The line of the picture: from the middle to each end, and back")
    lines, points = [], []
    left = 1
    for arrows in several:
        ends, top = arrows.ends, ws.cursor
        path = ws.computed(
            f"path_of_{arrows.ends.grid.name}",
            (2 * ends.shape[0] + 1, 2),
            lambda i, j, ends=ends: ends[i // 2, j] if i % 2 else 0,
            cols=["across", "up"],
            left=left,
        )
        ws.cursor, left = top, left + 3
        lines.append(Series("", path[:, 0], path[:, 1], joined=True))
        points.append(
            Series(arrows.name, ends[:, 0], ends[:, 1], arrows.labels, arrows.colour)
        )
    ws.cursor += 2 * max(arrows.ends.shape[0] for arrows in several) + 3
    axes = ("number 1", "number 2")
    ws.chart(Chart(*at, "scatter", title, lines + points, size, axes, number="0.0"))
