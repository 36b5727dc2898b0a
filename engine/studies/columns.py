"""The columns of what a study finds: one set for the terminal, CSV, Parquet, JSON, many prompts.

A row is a dataclass. Each field is a column: its name is the heading everywhere, and its annotation
says what it is and, for people, how a number is shown: `Annotated[float, "of the target", ".4f"]`.
"""

from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any, get_args, get_type_hints

import numpy as np


def heads(kind: type) -> list[str]:
    """The names of the columns of a kind of row."""
    return [field.name for field in fields(kind)]


def values(row: Any) -> list[Any]:
    """A row as the values of its columns, numpy's numbers as Python's."""
    return [x.item() if isinstance(x, np.generic) else x for x in astuple(row)]


def shown(rows: Sequence[Any]) -> list[list[str]]:
    """Rows as people read them."""
    if not rows:
        return []
    hints = get_type_hints(type(rows[0]), include_extras=True)
    formats = [(get_args(hint)[2:] or ("",))[0] for hint in hints.values()]
    return [
        ["" if x is None else f"{x:{how}}" for x, how in zip(values(row), formats, strict=True)]
        for row in rows
    ]
