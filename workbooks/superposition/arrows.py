"""Pictures of superposition: arrows from the middle of a plane, each with its name."""

from collections.abc import Sequence
from typing import NamedTuple

from cellformer.engine.cells.expression import Area, Expression
from cellformer.exporters.compose.book import Chart, Series
from cellformer.exporters.compose.composer import Composer

SIDES = ("right", "left", "above", "left", "below")  # of its point, where a name stands


class Arrows(NamedTuple):
    """Some arrows of one colour, each with its name or all without."""

    ends: Area  # [arrows, 2]
    names: Sequence[str]
    colour: str

    @property
    def points(self) -> list[Series]:
        """The ends of the arrows, a series for each name, so that names of points at the same place
        stand on different sides."""
        across, up = self.ends[:, 0], self.ends[:, 1]
        if not self.names:
            return [Series("", across, up, colour=self.colour)]
        return [
            Series(name, across[i : i + 1], up[i : i + 1], colour=self.colour, bears=side)
            for i, (name, side) in enumerate(zip(self.names, SIDES, strict=False))
        ]


def draw(
    ws: Composer,
    at: tuple[int, int],
    title: str,
    several: Sequence[Arrows],
    size: tuple[int, int],
    reach: float,
) -> None:
    """Add a chart of a size in pixels at a row and a column, with axes of a given range; the tables
    of its lines are put at the cursor."""
    ws.heading(f"Points of the arrows in {title!r}: the centre, the tip, and the centre again")
    lines, top, here = [], ws.cursor, ws.sheet.name.replace(" ", "_")
    for k, ends in enumerate(arrows.ends for arrows in several):

        def cell(i: int, j: int, ends: Area = ends) -> Expression | int:
            return ends[i // 2, j] if i % 2 else 0

        line = ws.computed(
            f"{here}_to_{ends.grid.name}",
            (2 * ends.shape[0] + 1, 2),
            cell,
            cols=["number 1", "number 2"],
            left=1 + 3 * k,
            top=top,
        )
        lines.append(Series("", line[:, 0], line[:, 1], joined=True))
    ws.chart(
        Chart(
            *at,
            "scatter",
            title,
            [*lines, *(point for arrows in several for point in arrows.points)],
            size=size,
            axes=("number 1", "number 2"),
            number="0.0",
            reach=reach,
        )
    )
