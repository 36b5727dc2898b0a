"""The columns of a study's rows: one set for the terminal, CSV, Parquet, JSON, many prompts.

A row is a dataclass or a named tuple. Each field is a column: its name is the heading everywhere,
and its annotation says what it is and, for people, how it is shown, by a format or by a function:
`Annotated[float, "of the target", ".4f"]`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import numpy as np


def heads(kind: type) -> list[str]:
    """The names of the columns of a kind of row."""
    return [field.name for field in fields(kind)] if is_dataclass(kind) else list(kind._fields)  # type: ignore[attr-defined]


def record(row: Any) -> dict[str, Any]:
    """A row as the values of its columns by name."""
    return {name: getattr(row, name) for name in heads(type(row))}


def values(row: Any) -> list[Any]:
    """A row as the values of its columns, numpy's numbers as Python's."""
    return [x.item() if isinstance(x, np.generic) else x for x in record(row).values()]


def shown(rows: Sequence[Any]) -> list[list[str]]:
    """Rows as people read them."""
    if not rows:
        return []
    hints: Mapping[str, Any] = get_type_hints(type(rows[0]), include_extras=True)
    how = [(get_args(hint)[2:] or ("",))[0] for hint in hints.values()]
    return [[_text(*each) for each in zip(values(row), how, strict=True)] for row in rows]


def _text(value: Any, how: Any) -> str:
    if value is None:
        return ""
    return how(value) if callable(how) else f"{value:{how}}"
