"""Objects in a notebook, as HTML: tables with coloured cells, cards, folded trees.

Names, words and formulas come from files, so every text is escaped, and nothing here is a script.
Colours are translucent, so that they suit a light notebook and a dark one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from cellformer.engine.cells.errors import InputError
from cellformer.engine.cells.groups import grouped
from cellformer.engine.cells.texts import cut

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_ROWS, MOST_COLUMNS = 40, 24  # of a table; of more, the first ones are shown
MOST_LINES = 12  # of a list within a card
LONGEST = 200  # characters of a text in a card
POSITIVE, NEGATIVE = "31,95,168", "200,90,30"  # blue and orange
DEEPEST = 0.75  # the opacity of the largest number's colour
WHOLE = "style='white-space:nowrap'"  # a label is not broken into lines


def card(title: str, facts: Iterable[tuple[str, str | Sequence[str]]]) -> str:
    """A title over facts: a name each, and a text or a list of texts."""
    rows = [
        f"<tr><th style='text-align:left;vertical-align:top'>{_text(name)}</th>"
        f"<td style='text-align:left'>{_lines(told)}</td></tr>"
        for name, told in facts
    ]
    return f"<div><b>{_text(title)}</b><table>{''.join(rows)}</table></div>"


def data_frame(data: Any, **labels: Any) -> "DataFrame":
    """A pandas DataFrame of data and labels. Raises InputError if pandas is not installed."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise InputError(
            "pandas is not installed; run pip install pandas, or use to_dict()"
        ) from None
    return DataFrame(data, **labels)


def table(
    title: str,
    values: np.ndarray,
    rows: Sequence[str | int],
    columns: Sequence[str | int],
    has: Callable[[int, int], bool],
) -> str:
    """Values as a table, numbers coloured by sign and size; cells that are not there are empty."""
    shown = values[:MOST_ROWS, :MOST_COLUMNS].tolist()
    sizes = [abs(x) for row in shown for x in row if isinstance(x, float) and np.isfinite(x)]
    largest = max(sizes, default=0.0)
    head = "".join(f"<th {WHOLE}>{_text(str(label))}</th>" for label in columns[:MOST_COLUMNS])
    body = "".join(
        f"<tr><th {WHOLE}>{_text(str(rows[i]))}</th>"
        + "".join(_cell(x, largest) if has(i, j) else "<td></td>" for j, x in enumerate(row))
        + "</tr>"
        for i, row in enumerate(shown)
    )
    left_out = values.size - sum(map(len, shown))
    note = f"<p>{left_out:,} more cells are not shown</p>" if left_out else ""
    grid = f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div style='overflow-x:auto'><b>{_text(title)}</b>{grid}{note}</div>"


def tree(title: str, leaves: Mapping[str, str]) -> str:
    """Names with dots as a tree that opens branch by branch, with a text beside each leaf."""
    paths = [(name.split("."), told) for name, told in leaves.items()]
    return f"<div><b>{_text(title)}</b>{_branches(paths, 0)}</div>"


def _branches(paths: Iterable[tuple[list[str], str]], depth: int) -> str:
    """The part of a tree below some branch: leaves, and branches that are folded."""
    found = []
    for name, below in grouped(paths, lambda one: one[0][depth]).items():
        inner = [one for one in below if len(one[0]) > depth + 1]
        leaves = below if len(inner) == 1 else [one for one in below if len(one[0]) == depth + 1]
        for path, told in leaves:
            leaf = f"{_text('.'.join(path[depth:]))} <small>{_text(told)}</small>"
            found.append(f"<div style='margin-left:1em'>{leaf}</div>")
        if len(inner) > 1:
            summary = f"<summary>{_text(name)} <small>{len(inner)}</small></summary>"
            inside = summary + _branches(inner, depth + 1)
            found.append(f"<details style='margin-left:1em'>{inside}</details>")
    return "".join(found)


def _cell(value: Any, largest: float) -> str:
    """A table's cell: a number with its colour, or a text."""
    if not isinstance(value, float):
        return f"<td style='text-align:left'>{_text(str(value))}</td>"
    depth = DEEPEST * abs(value) / largest if largest and np.isfinite(value) else 0.0
    colour = f"rgba({POSITIVE if value > 0 else NEGATIVE},{depth:.2f})"
    return f"<td style='white-space:nowrap;background:{colour}'>{value:.4g}</td>"


def _lines(told: str | Sequence[str]) -> str:
    if isinstance(told, str):
        return _text(told)
    more = [f"... {len(told) - MOST_LINES:,} more"] if len(told) > MOST_LINES else []
    return "<br>".join(map(_text, [*told[:MOST_LINES], *more]))


def _text(text: str) -> str:
    """A text of one line that is no HTML."""
    return escape(cut(text, LONGEST))
