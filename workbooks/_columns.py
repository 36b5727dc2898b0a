"""Steps as columns: tables of one column side by side, each formula over those to its left."""

from typing import Any

import numpy as np

from exporters.by_hand import Table, Worksheet


def columns(ws: Worksheet, top: int, left: int, known: dict[str, Table], values: dict[str, Any],
            *plan: tuple[str, str, str, str]) -> None:  # fmt: skip
    """Tables of one column side by side, heads in row `top`; `known` grows by them.

    Each: name, head, formula (typed if none), style. In a formula {x} is column x in the same row,
    {x_all} all of it, {x_top} its first cell, {x_down} the cells from there to {x}; of a table with
    more columns, {x_row} is this row.
    """
    for k, (name, head, formula, style) in enumerate(plan):

        def text(i: int, j: int, formula: str = formula) -> str:
            return formula.format(**{x + end: at for x, t in known.items() for end, at in (
                ("", t.at(i)), ("_all", t.column(0, True)), ("_top", t.at(fixed=True)),
                ("_row", t.row(i)), ("_down", f"{t.at(fixed=True)}:{t.at(i)}"))})  # fmt: skip

        ws.cursor, column = top, np.reshape(values[name], (-1, 1))
        known[name] = ws.table(name, column, text if formula else None, (), [head], "", style,
                               left=left + k)  # fmt: skip
