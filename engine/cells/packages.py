"""What a package holds, found by being there: architectures, formats, pages, workbooks."""

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def modules(package: str, folders: Iterable[str]) -> list[ModuleType]:
    """The modules of a package, by their names, which lie in the folders of its `__path__`."""
    return [import_module(f"{package}.{name}") for name in module_names(folders)]


def module_names(folders: Iterable[str]) -> Sequence[str]:
    """The names of the modules in the folders, which are looked through once."""
    return _listed(tuple(folders))


@cache
def _listed(folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(module.name for module in iter_modules(folders))
