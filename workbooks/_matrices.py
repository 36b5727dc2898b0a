"""A worksheet of matrices: tables found by name, their values given at once, products as sums."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from exporters.by_hand import Formula, Table, Worksheet


class Page:
    """A sheet whose tables take their values [rows, columns] by name."""

    def __init__(self, ws: Worksheet, values: Mapping[str, np.ndarray]):
        self.ws, self.values, self.at = ws, values, dict[str, Table]()

    def put(self, name: str, formula: Formula | None = None, beside: str = "", style: str = "",
            rows: Sequence[str] = (), cols: Sequence[str] = (),
            title: str = "") -> Table:  # fmt: skip
        """A table, a weight unless it has a formula or a style; rows and columns are numbered."""
        height, width = self.values[name].shape
        self.at[name] = self.ws.table(
            name, self.values[name], formula, rows or [str(k + 1) for k in range(height)],
            cols or [str(k + 1) for k in range(width)], title or f"{name}: {height} × {width}",
            style or ("activation" if formula else "weight"), self.at[beside] if beside else None,
        )  # fmt: skip
        return self.at[name]

    def section(self, heading: str, *equations: str) -> None:
        """A heading and the equations of what follows."""
        self.ws.heading(heading)
        self.ws.text(*equations, style="equation")


def times(left: Table, right: Table, bias: Table | None = None) -> Callable[[int, int], str]:
    """The matrix product left @ right, with a bias for each row."""

    def cell(i: int, j: int) -> str:
        terms = [f"{left.at(i, k)}*{right.at(k, j)}" for k in range(left.values.shape[1])]
        return "+".join([*terms, bias.at(i)] if bias else terms)

    return cell


def across(left: Table, right: Table) -> Callable[[int, int], str]:
    """The product left @ right^T: rows with rows."""
    return lambda i, j: f"SUMPRODUCT({left.row(i)},{right.row(j)})"
