"""Figure: a matplotlib figure that shows itself in any notebook."""

import io

from matplotlib import figure

DPI = 110


class Figure(figure.Figure):
    """A figure that shows itself in any notebook."""

    def _repr_png_(self) -> bytes:
        into = io.BytesIO()
        self.savefig(into, format="png", dpi=DPI)
        return into.getvalue()
