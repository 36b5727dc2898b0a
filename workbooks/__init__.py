"""The workbooks: one module each, found by its name (hyphens on the command line).

A module gives `STORY` (what the workbook says of itself), `PROMPT` (what it is built with),
`model()` and `build(graph)`, the Book. Its docstring says what to look at and what to try.
"""

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def names() -> list[str]:
    """The names of all workbooks, as the command line has them."""
    return sorted(m.name.replace("_", "-") for m in iter_modules(__path__) if m.name[0] != "_")


def find(name: str) -> ModuleType:
    """The module of a workbook. Raises InputError, with the nearest names, for an unknown one."""
    from engine.errors import InputError, nearest  # here: the command sets numpy up first

    if name not in names():
        raise InputError(f"no workbook is named {name!r}; {nearest(name, names())}")
    return import_module(f"workbooks.{name.replace('-', '_')}")
